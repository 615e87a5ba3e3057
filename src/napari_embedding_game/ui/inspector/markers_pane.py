"""What two groups of points differ in: the comparison, and its table of markers."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from qtpy.QtCore import Signal
from qtpy.QtWidgets import (
    QAction,
    QComboBox,
    QHBoxLayout,
    QLabel,
    QMenu,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from napari_embedding_game.core.inspect.markers import (
    MarkerMethod,
    MarkerTable,
    iter_markers,
)
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.export.plots import VolcanoPlot
from napari_embedding_game.session.groups import (
    EACH_SAMPLE_ONCE,
    REST,
    Against,
    GroupChoice,
    is_of_many,
    sample_columns,
)
from napari_embedding_game.session.looked_at import ShownComparison
from napari_embedding_game.session.marker_table import write_markers
from napari_embedding_game.session.session import Session, sentence
from napari_embedding_game.ui.inspector.table import Column, Table
from napari_embedding_game.ui.style.coloring import worded
from napari_embedding_game.ui.style.form_widgets import (
    let_be_narrow,
    show_text,
    text_label,
)
from napari_embedding_game.ui.style.theme import ThemeColors
from napari_embedding_game.ui.tasks.save_dialog import ask, proposed
from napari_embedding_game.ui.tasks.worker import Latest

SAMPLES_TIP = (
    "Compares samples, such as donors, instead of single cells: each counts once, by "
    "the mean of its cells; those with fewer than 10 cells in a group are left out. "
    "Cells of one donor are not independent, so that a test of cells finds differences "
    "between donors as well."
)
RANKS = "p-values only rank."
RANKS_TIP = (
    "The p-values put the rows in an order and prove nothing: points of one sample are "
    "not independent, and clusters were found in these numbers. For a test, compare "
    "samples, where a column names them."
)
TESTS: dict[str, tuple[MarkerMethod, str]] = {
    "Wilcoxon": ("wilcoxon", ""),
    "t-test": ("t-test", ""),
}
N_LISTED = 20
"""Columns in the table; the volcano plot and the file have all of them."""
OTHERS = "all others"


@dataclass(frozen=True, eq=False)
class Compared:
    """A comparison that has come to its end: what it found, and of what."""

    markers: MarkerTable
    groups: ShownComparison

    def plot(self) -> VolcanoPlot:
        """Return it as a plot."""
        return VolcanoPlot(
            names=self.markers.names,
            changes=self.markers.logfoldchanges,
            p_values=self.markers.pvals_adj,
            title=self.groups.title,
        )

    def frame(self) -> pd.DataFrame:
        """Return the rows of the table."""
        found = self.markers
        columns = {
            "name": found.names.astype(object),
            "change": found.logfoldchanges,
            "p": found.pvals_adj,
            "in": found.pts,
            "out": found.pts_rest,
        }
        return pd.DataFrame(columns, index=found.names)[:N_LISTED]


class MarkersPane(QWidget):
    """Compares the selection, in the background while it or a plot of it is seen.

    Parameters
    ----------
    session : Session
    on_name : callable
        Receives the name that was clicked.
    """

    compared_changed = Signal()
    """Another comparison, or none, is shown, or another sentence on it."""

    def __init__(self, session: Session, on_name: Callable[[str], None]) -> None:
        super().__init__()
        self._session = session
        self._search = Latest(self, self._show, self._on_failed, self._on_share)
        self._is_due = False
        self._offered: tuple[Against, ...] = (REST,)
        self._level_column = ""
        """Column whose levels are in the two boxes."""
        self.viewers: list[QWidget] = [self]
        """Whoever shows what was compared."""
        self.compared: Compared | None = None
        """What is shown, also while another comparison goes on."""
        self.groups = GroupChoice(session)
        self.against, self.test = QComboBox(), QComboBox()
        self.one, self.other = QComboBox(), QComboBox()
        self.levels = QWidget()
        self.more = QToolButton()
        self.menu = QMenu(self.more)
        self.saved = QAction("Save the whole table…", self.menu)
        self.kept = QAction("Keep for the notebook", self.menu)
        self.state = text_label()
        self.table = Table(
            Column("Column", "Click a row to colour the map by it. Ctrl+C copies all."),
            Column(
                "log2 FC",
                "Log2 of how many times higher the mean is inside; of expression in "
                "logarithms the mean is taken back to counts first, as in scanpy.",
                text=lambda x: f"{x:+.1f}" if np.isfinite(x) else "–",
            ),
            Column(
                "p adj.",
                "Adjusted p-value: chance to see such a difference where there is "
                "none, corrected for the number of names (Benjamini-Hochberg).",
                text=told_p,
            ),
            Column("In", "Share of the selected points above 0.", text="{:.0%}".format),
            Column(
                "Out", "Share of the compared points above 0.", text="{:.0%}".format
            ),
        )
        self._build()
        self.saved.triggered.connect(self._save)
        self.kept.triggered.connect(self._keep)
        for box in (self.against, self.test, self.one, self.other):
            box.activated.connect(self.refresh)
        self.table.picked.connect(lambda names, _: list(map(on_name, names)))

    @property
    def result(self) -> MarkerTable | None:
        """All columns of what is shown, by falling score; None while nothing is."""
        return None if self.compared is None else self.compared.markers

    @property
    def is_busy(self) -> bool:
        """Whether groups are being compared."""
        return self._search.is_busy

    def set_theme(self, colors: ThemeColors) -> None:
        """Take on the colours of napari's theme."""
        self.table.set_theme(colors)

    def offer_columns(self, columns: Sequence[str]) -> None:
        """Let samples be named by these columns; what was chosen stays, if it can."""
        dataset, present = self._session.dataset, self.test.currentText()
        self.test.clear()
        for text, how in TESTS.items():
            self.test.addItem(text, how)
        for column in [] if dataset is None else sample_columns(dataset.obs, columns):
            self.test.addItem(f"Samples: {column}", ("wilcoxon", column))
        self.test.setCurrentIndex(max(0, self.test.findText(present)))

    def refresh(self) -> None:
        """Compare what is selected, now or when it is next seen."""
        self._search.stop()
        self._is_due = not any(viewer.isVisible() for viewer in self.viewers)
        self._offer()
        dataset, selection = self._session.dataset, self._session.selection
        self.table.rows.columns[0] = replace(
            self.table.rows.columns[0], title=worded("Gene", dataset)
        )
        if self._is_due or dataset is None:
            return
        if len(selection.rows) < 2:
            self._show_none("Select two or more points to find their markers.")
            return
        against, (method, samples) = self._against(), self.test.currentData()
        groups = self.groups.groups(against)
        shown = ShownComparison(
            title=self._title(against),
            inside=groups.inside.copy(),
            outside=groups.outside,
            method=method,
            samples=samples,
        )

        def find() -> Generator[float, None, Compared]:
            expression = dataset.expression
            values, names = expression.values, dataset.profile_names
            found = iter_markers(
                *(values, groups.inside, groups.outside, names),
                method=method,
                samples=dataset.obs[samples].to_numpy() if samples else None,
                n_top=None,
                log1p=expression.is_log1p,
            )
            return Compared((yield from found), shown)

        self._say("Comparing …")
        self._search.ask(find)

    def catch_up(self) -> None:
        """Compare now what was selected while nobody looked."""
        if self._is_due:
            self.refresh()

    def showEvent(self, event: object) -> None:
        """Catch up."""
        super().showEvent(event)
        self.catch_up()

    def plot(self, *, is_saved: bool = False) -> VolcanoPlot | None:
        """Return what is shown as a plot; None where nothing is.

        ``is_saved``: a notebook tells it from now on.
        """
        if self.compared is None:
            return None
        if is_saved:
            self._session.comparisons.add(self.compared.groups)
        return self.compared.plot()

    # Inside

    def _build(self) -> None:
        self.against.setToolTip(
            "What the selected points are compared with: all others, another "
            "cluster; or, inside the selection, one level of a column with "
            "another, such as treated cells with untreated ones."
        )
        self.one.setToolTip("The level whose markers are looked for.")
        self.other.setToolTip("The level that it is compared with, or all others.")
        self.more.setText("More ▾")
        self.more.setProperty("role", "edit")
        self.more.setToolTip("Saving the table, and keeping the comparison.")
        self.more.setMenu(self.menu)
        self.more.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.menu.setToolTipsVisible(True)
        self.test.setToolTip(f"The test, as in scanpy. Samples: {SAMPLES_TIP}")
        self.offer_columns(())
        self.saved.setToolTip("All columns as .csv, under scanpy's names.")
        self.kept.setToolTip("The notebook and the methods have this comparison.")
        self.menu.addActions([self.saved, self.kept])
        top, pair = QHBoxLayout(), QHBoxLayout(self.levels)
        top.addWidget(self.against, 1)
        top.addWidget(self.test)
        top.addWidget(self.more)
        pair.setContentsMargins(0, 0, 0, 0)
        for box in (self.against, self.test, self.one, self.other):
            let_be_narrow(box, 6)
        pair.addWidget(self.one, 1)
        pair.addWidget(QLabel("vs"))
        pair.addWidget(self.other, 1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 4, 0, 0)
        layout.setSpacing(4)
        layout.addLayout(top)
        for part in (self.levels, self.state):
            layout.addWidget(part)
        layout.addWidget(self.table, 1)
        self._enable()

    def _offer(self) -> None:
        """Offer what the present selection can be compared with."""
        present = self._against()
        labels, self._offered = zip(*self.groups.offered(), strict=True)
        # Of a column of many levels there is one choice, whichever two are compared.
        column = [one.kind == "levels" and one.column for one in self._offered]
        place = 0
        if present in self._offered:
            place = self._offered.index(present)
        elif present.column in column:
            place = column.index(present.column)
        self.against.clear()
        self.against.addItems(labels)
        self.against.setCurrentIndex(place)
        self._offer_levels(present)
        self._enable()

    def _offer_levels(self, present: Against) -> None:
        """Offer two boxes where two of many levels are to be chosen."""
        column = self._choice().column
        levels = self.groups.levels(column) if column else ()
        is_wanted = is_of_many(levels)
        self._level_column = column if is_wanted else ""
        self.levels.setVisible(is_wanted)
        if not is_wanted:
            return
        texts = {level.name: f"{level.name} ({level.n_points:,})" for level in levels}
        pair = present.levels if present.column == column else ("", "")
        _fill(self.one, texts, pair[0])
        texts.pop(self.one.currentData())
        _fill(self.other, {"": OTHERS} | texts, pair[1])

    def _choice(self) -> Against:
        index = self.against.currentIndex()
        return self._offered[index] if 0 <= index < len(self._offered) else REST

    def _against(self) -> Against:
        choice = self._choice()
        if not self._level_column or choice.column != self._level_column:
            return choice
        pair = self.one.currentData(), self.other.currentData()
        return replace(choice, levels=pair)

    def _enable(self) -> None:
        for action in (self.saved, self.kept):
            action.setEnabled(self.compared is not None)

    def _save(self) -> None:
        compared = self.compared
        name = proposed(self._session.dataset, "comparison")
        path = ask(self, name, ".csv", "Table (*.csv)")
        if path is None or compared is None:
            return
        try:
            write_markers(compared.markers, path)
        except (DataError, OSError) as error:
            self._session.say(sentence(error))
        else:
            self._session.comparisons.add(compared.groups)
            self._say(f"Saved as {path.name}.")

    def _keep(self) -> None:
        if self.compared is not None:
            self._session.comparisons.add(self.compared.groups)
            self._say(f"Kept for the notebook: {self.compared.groups.title}.")

    def _title(self, against: Against) -> str:
        """Return what is compared, in words."""
        if against.kind == "levels":
            one, other = against.levels
            return f"{against.column}: {one} against {other or OTHERS}"
        session = self._session
        clusters = session.clusters.clustering.by_id
        names = [clusters[c].title for c in session.selection.clusters]
        chosen = ", ".join(names) if 0 < len(names) <= 3 else "Selection"
        return f"{chosen} {self.against.currentText()}"

    def _on_share(self, share: float) -> None:
        self._say(f"Comparing … {share:.0%}")

    def _on_failed(self, error: BaseException) -> None:
        self._show_none(sentence(error))

    def _show_none(self, why: str) -> None:
        self.compared = None
        self.table.show_frame(pd.DataFrame())
        self._enable()
        self._say(why)

    def _say(self, text: str, tip: str = "") -> None:
        """Tell something on as many lines as it takes."""
        show_text(self.state, text, "note")
        self.state.setToolTip(tip)
        self.compared_changed.emit()

    def _show(self, compared: Compared) -> None:
        self.compared = compared
        markers, samples = compared.markers, compared.groups.samples
        dataset = self._session.dataset
        what = "samples" if samples else "points"
        sizes = f"{markers.n_inside:,} {what} against {markers.n_outside:,}."
        told = "" if dataset is None else dataset.expression.told
        self.table.show_frame(compared.frame())
        self._enable()
        self._say(
            f"{sizes} {EACH_SAMPLE_ONCE if samples else RANKS}",
            " ".join(filter(None, (told, SAMPLES_TIP if samples else RANKS_TIP))),
        )


def told_p(p: float) -> str:
    """Return a p-value as text, short enough for a narrow dock."""
    return f"{p:.0e}" if p > 0 else "0"


def _fill(box: QComboBox, texts: dict[str, str], chosen: str) -> None:
    box.clear()
    for name, text in texts.items():
        box.addItem(text, name)
    box.setCurrentIndex(max(0, box.findData(chosen)))
