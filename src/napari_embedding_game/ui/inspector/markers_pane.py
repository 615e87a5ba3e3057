"""Table of the marker genes, or columns, of the selected clusters."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from qtpy.QtCore import Qt
from qtpy.QtGui import QKeyEvent, QResizeEvent
from qtpy.QtWidgets import (
    QAction,
    QActionGroup,
    QBoxLayout,
    QComboBox,
    QHBoxLayout,
    QHeaderView,
    QMenu,
    QPushButton,
    QStackedWidget,
    QTableWidget,
    QTableWidgetItem,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from napari_embedding_game.core.inspect.markers import (
    MarkerMethod,
    MarkerTable,
    iter_markers,
    iter_pseudobulk,
)
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.export.plots import (
    VolcanoPlot,
    write_plot,
)
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
from napari_embedding_game.ui.inspector.level_boxes import LevelBoxes
from napari_embedding_game.ui.inspector.volcano import HINT as VOLCANO_HINT
from napari_embedding_game.ui.inspector.volcano import Volcano, told_p
from napari_embedding_game.ui.style.coloring import worded
from napari_embedding_game.ui.style.copy_table import copy_table, is_copy
from napari_embedding_game.ui.style.form_widgets import (
    let_be_narrow,
    show_text,
    text_label,
)
from napari_embedding_game.ui.style.theme import ThemeColors
from napari_embedding_game.ui.tasks.save_dialog import ask, ask_figure, proposed
from napari_embedding_game.ui.tasks.worker import Latest

HEADINGS = ("Column", "log2 fold", "p adj.", "In", "Out")
TIPS = (
    "Click a row to colour the map by it, a heading to sort. Ctrl+C copies the table.",
    "Log2 of how many times higher the mean is inside; of expression in logarithms "
    "the mean is taken back to counts first, as in scanpy.",
    "Adjusted p-value: chance to see such a difference where there is none, corrected "
    "for the number of names (Benjamini-Hochberg).",
    "Share of the selected points with a value above 0.",
    "Share of the compared points with a value above 0.",
)
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
    "samples: More, Samples (pseudobulk)."
)
KEPT = "Kept for the notebook: {}."
WIDE = 360
"""Pixels in which what is compared has room beside the buttons."""
N_LISTED = 20
"""Columns in the table; the volcano plot and the file have all of them."""


@dataclass(frozen=True, eq=False)
class _Compared:
    """A comparison that has come to its end: what it found, and of what."""

    markers: MarkerTable
    title: str
    """What was compared, in words."""
    groups: ShownComparison


class MarkersPane(QWidget):
    """What two groups differ in: a table of the 20 highest, a volcano plot, a file.

    They are compared in the background while the pane is seen.

    Parameters
    ----------
    session : Session
    on_name : callable
        Receives the name that was clicked.
    """

    def __init__(self, session: Session, on_name: Callable[[str], None]) -> None:
        super().__init__()
        self._session = session
        self._on_name = on_name
        self._search = Latest(self, self._show, self._on_failed, self._on_share)
        self._is_due = False
        self._compared: _Compared | None = None
        """What is shown, also while another comparison goes on."""
        self.groups = GroupChoice(session)
        self._offered: tuple[Against, ...] = (REST,)
        self.against = QComboBox()
        self.levels = LevelBoxes()
        self.plotted = QPushButton("Volcano")
        self.more = QToolButton()
        self.menu = QMenu(self.more)
        self.by_ranks = QAction("Wilcoxon test (ranks)", self.menu)
        self.by_means = QAction("t-test (means)", self.menu)
        self.by_samples = QMenu("Samples (pseudobulk)", self.menu)
        self.tests = QActionGroup(self.menu)
        self.aside = QAction("Set the selection aside", self.menu)
        self.saved = QAction("Save the whole table…", self.menu)
        self.drawn = QAction("Save the volcano plot…", self.menu)
        self.kept = QAction("Keep for the notebook", self.menu)
        self._top = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self.state = text_label()
        self.table = MarkersView()
        self.volcano = Volcano()
        self.pages = QStackedWidget()
        self._build()
        self.aside.triggered.connect(self._set_aside)
        self.plotted.toggled.connect(self._on_plotted)
        self.saved.triggered.connect(self._save)
        self.drawn.triggered.connect(self._save_plot)
        self.kept.triggered.connect(self._keep)
        self.volcano.picked.connect(self._pick)
        self.against.activated.connect(self.refresh)
        self.levels.chosen.connect(self.refresh)
        self.by_ranks.triggered.connect(self.refresh)
        self.by_means.triggered.connect(self.refresh)
        self.table.itemSelectionChanged.connect(self._on_row)

    @property
    def result(self) -> MarkerTable | None:
        """All columns of what is shown, by falling score; None while nothing is."""
        return None if self._compared is None else self._compared.markers

    @property
    def is_busy(self) -> bool:
        """Whether groups are being compared."""
        return self._search.is_busy

    def set_theme(self, colors: ThemeColors) -> None:
        """Take on the colours of napari's theme."""
        self.volcano.set_theme(colors)

    def choose(self, against: Against) -> None:
        """Compare the selection with this."""
        self.against.setCurrentIndex(self._place_of(against))
        self._offer_levels()
        if self.levels.column:
            self.levels.choose(*against.levels)
        self.refresh()

    def offer_columns(self, columns: Sequence[str]) -> None:
        """Let samples be named by these columns; what was chosen stays, if it can."""
        dataset, present = self._session.dataset, self._sample_column()
        offered = [] if dataset is None else sample_columns(dataset.obs, columns)
        for action in self.by_samples.actions():
            self.tests.removeAction(action)
        self.by_samples.clear()
        for column in offered:
            action = self.by_samples.addAction(column)
            action.setCheckable(True)
            action.setChecked(column == present)
            action.triggered.connect(self.refresh)
            self.tests.addAction(action)
        if self.tests.checkedAction() is None:
            self.by_ranks.setChecked(True)
        self.by_samples.menuAction().setVisible(bool(offered))

    def refresh(self) -> None:
        """Compare what is selected, now or when it is next seen."""
        self._search.stop()
        self._is_due = not self.isVisible()
        self._offer()
        self._head()
        dataset, selection = self._session.dataset, self._session.selection
        if self._is_due or dataset is None or selection.is_empty:
            return
        if len(selection.rows) < 2:
            self._show_none("Select two or more points to find their markers.")
            return
        groups = self.groups.groups(self._against())
        against = self._against()
        method: MarkerMethod = "wilcoxon" if self.by_ranks.isChecked() else "t-test"
        samples, title = self._sample_column(), self._told_groups(against)

        def find() -> Generator[float, None, _Compared]:
            expression = dataset.expression
            rows = groups.inside, groups.outside
            log1p, names = expression.is_log1p, dataset.profile_names
            if samples:
                of_rows = dataset.obs[samples].to_numpy()
                found = iter_pseudobulk(
                    expression.values, *rows, names, of_rows, n_top=None, log1p=log1p
                )
            else:
                found = iter_markers(
                    expression.values,
                    *rows,
                    names,
                    method=method,
                    n_top=None,
                    log1p=log1p,
                )
            return _Compared((yield from found), title, shown)

        shown = ShownComparison(
            title=title,
            inside=groups.inside.copy(),
            outside=groups.outside,
            method=method,
            samples=samples,
        )
        self._say("Comparing …")
        self._search.ask(find)

    def showEvent(self, event: object) -> None:
        """Catch up."""
        super().showEvent(event)
        if self._is_due:
            self.refresh()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Give what is compared a line of its own where there is little room."""
        super().resizeEvent(event)
        ways = QBoxLayout.Direction
        is_wide = event.size().width() >= WIDE
        self._top.setDirection(ways.LeftToRight if is_wide else ways.TopToBottom)

    def _build(self) -> None:
        self.against.setToolTip(
            "What the selected points are compared with: all others, points set aside, "
            "another cluster; or, inside the selection, one level of a column with "
            "another, such as treated cells with untreated ones."
        )
        self.plotted.setCheckable(True)
        self.more.setText("More ▾")
        self.more.setProperty("role", "edit")
        self.more.setToolTip("The test, a group set aside, and saving the table.")
        self.more.setMenu(self.menu)
        self.more.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.menu.setToolTipsVisible(True)
        for test in (self.by_ranks, self.by_means):
            test.setCheckable(True)
            test.setToolTip("As in scanpy.")
            self.tests.addAction(test)
        self.by_samples.menuAction().setToolTip(SAMPLES_TIP)
        self.offer_columns(())
        self.aside.setToolTip(
            "Keep the selected points as a group: select others, and compare them with "
            "these in the list above."
        )
        self.saved.setToolTip(
            "All figures of all columns as .csv, with p-values, under scanpy's names."
        )
        self.menu.addActions([self.by_ranks, self.by_means])
        self.menu.addMenu(self.by_samples)
        self.menu.addSeparator()
        self.kept.setToolTip(
            "The notebook and the methods paragraph tell this comparison. "
            "They tell those that were saved, too, and no others."
        )
        self.menu.addActions([self.aside, self.saved, self.drawn, self.kept])
        let_be_narrow(self.against, 8)
        buttons = QHBoxLayout()
        buttons.addStretch(1)
        buttons.addWidget(self.plotted)
        buttons.addWidget(self.more)
        self._top.addWidget(self.against, 1)
        self._top.addLayout(buttons)
        self.pages.addWidget(self.table)
        self.pages.addWidget(self.volcano)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 4, 0, 0)
        layout.setSpacing(4)
        layout.addLayout(self._top)
        layout.addWidget(self.levels)
        layout.addWidget(self.state)
        layout.addWidget(self.pages, 1)
        self._enable()

    def _sample_column(self) -> str:
        """Return the column whose samples are to be compared; "" for single points."""
        chosen = self.tests.checkedAction()
        is_of_samples = chosen in self.by_samples.actions()
        return chosen.text() if chosen is not None and is_of_samples else ""

    def _head(self) -> None:
        """Call what is compared genes, measures or columns."""
        dataset = self._session.dataset
        self.table.horizontalHeaderItem(0).setText(worded("Gene", dataset))
        self.plotted.setToolTip(
            worded("Show every gene by its change and its certainty.", dataset)
        )
        self.drawn.setToolTip(
            worded(
                "As .pdf, .svg or .png, with letters that can be edited; all genes "
                "are in it.",
                dataset,
            )
        )
        self.volcano.hint = worded(VOLCANO_HINT, dataset)

    def _offer(self) -> None:
        """Offer what the present selection can be compared with."""
        present = self._against()
        self.against.clear()
        labels, self._offered = zip(*self.groups.offered(), strict=True)
        self.against.addItems(labels)
        self.against.setCurrentIndex(max(0, self._place_of(present)))
        self._offer_levels()
        self._enable()

    def _place_of(self, against: Against) -> int:
        """Return which choice means a comparison; -1 if none does.

        Of a column of many levels there is one choice, whichever two are compared.
        """
        if against in self._offered:
            return self._offered.index(against)
        places = (
            place
            for place, one in enumerate(self._offered)
            if one.kind == against.kind == "levels"
            and one.column == against.column
            and not one.levels[1]
        )
        return next(places, -1)

    def _offer_levels(self) -> None:
        """Offer two boxes where two of many levels are to be chosen."""
        column = self._choice().column
        levels = self.groups.levels(column) if column else ()
        is_wanted = is_of_many(levels)
        self.levels.offer(column if is_wanted else "", levels if is_wanted else ())
        self.levels.setVisible(is_wanted)

    def _choice(self) -> Against:
        index = self.against.currentIndex()
        return self._offered[index] if 0 <= index < len(self._offered) else REST

    def _against(self) -> Against:
        choice = self._choice()
        if choice.kind != "levels" or choice.column != self.levels.column:
            return choice
        return replace(choice, levels=self.levels.pair)

    def _enable(self) -> None:
        self.aside.setEnabled(not self._session.selection.is_empty)
        for one in (self.plotted, self.saved, self.drawn, self.kept):
            one.setEnabled(self.result is not None)

    def _set_aside(self) -> None:
        self.groups.set_aside()
        self._offer()

    def _on_plotted(self, is_on: bool) -> None:
        self.pages.setCurrentWidget(self.volcano if is_on else self.table)

    def _save(self) -> None:
        compared = self._compared
        if compared is None:
            return
        name = proposed(self._session.dataset, "comparison")
        path = ask(self, name, ".csv", "Table (*.csv)")
        if path is not None:
            write = partial(write_markers, compared.markers, path)
            self._write(write, path.name, compared)

    def plot(self, *, is_saved: bool = False) -> VolcanoPlot | None:
        """Return what is shown as a figure draws it; None where nothing is.

        ``is_saved``: a notebook tells it from now on.
        """
        compared = self._compared
        if compared is None:
            return None
        if is_saved:
            self._session.comparisons.add(compared.groups)
        return _plot_of(compared)

    def _save_plot(self) -> None:
        compared = self._compared
        if compared is None:
            return
        path = ask_figure(self, proposed(self._session.dataset, "volcano"))
        if path is not None:
            write = partial(write_plot, _plot_of(compared), path)
            self._write(write, path.name, compared)

    def _write(self, write: Callable[[], None], name: str, compared: _Compared) -> None:
        """Write a file, and have a notebook tell what was saved."""
        try:
            write()
        except (DataError, OSError) as error:
            self._session.say(sentence(error))
        else:
            self._session.comparisons.add(compared.groups)
            self._say(f"Saved as {name}.")

    def _keep(self) -> None:
        if self._compared is not None:
            self._session.comparisons.add(self._compared.groups)
            self._say(KEPT.format(self._compared.title))

    def _told_groups(self, against: Against) -> str:
        """Return what is compared, in words."""
        told = self.against.currentText()
        if against.kind == "levels":
            one, other = against.levels
            return f"{against.column}: {one} against {other or 'all others'}"
        session = self._session
        names = [session.cluster_name(c) for c in session.selection.clusters]
        chosen = ", ".join(names) if 0 < len(names) <= 3 else "Selection"
        return f"{chosen} {told}"

    def _pick(self, name: str) -> None:
        self.volcano.choose(name)
        self._on_name(name)

    def _on_share(self, share: float) -> None:
        self._say(f"Comparing … {share:.0%}")

    def _on_failed(self, error: BaseException) -> None:
        self._show_none(sentence(error))

    def _show_none(self, why: str) -> None:
        self._compared = None
        self.table.setRowCount(0)
        self.volcano.show_markers(None)
        self._enable()
        self._say(why)
        self.state.setToolTip(why)  # a low dock shows its first lines

    def _say(self, text: str) -> None:
        """Tell something on as many lines as it takes."""
        show_text(self.state, text, "note")
        self.state.setToolTip("")

    def _show(self, compared: _Compared) -> None:
        self._compared = compared
        markers, samples = compared.markers, compared.groups.samples
        dataset = self._session.dataset
        what = "samples" if samples else "points"
        sizes = f"{markers.n_inside:,} {what} against {markers.n_outside:,}."
        told = "" if dataset is None else dataset.expression.told
        self._say(f"{sizes} {EACH_SAMPLE_ONCE if samples else RANKS}")
        meant = SAMPLES_TIP if samples else RANKS_TIP
        self.state.setToolTip(" ".join(filter(None, (told, meant))))
        self.table.show_markers(markers)
        self.volcano.show_markers(markers)
        self._enable()

    def _on_row(self) -> None:
        rows = self.table.selectionModel().selectedRows()
        if rows:
            self._pick(self.table.item(rows[0].row(), 0).text())


def _plot_of(compared: _Compared) -> VolcanoPlot:
    found = compared.markers
    return VolcanoPlot(
        names=found.names,
        changes=found.logfoldchanges,
        p_values=found.pvals_adj,
        title=compared.title,
    )


class MarkersView(QTableWidget):
    """Markers, a row each: the highest score first, or in the order of a column."""

    def __init__(self) -> None:
        super().__init__(0, len(HEADINGS))
        self.setHorizontalHeaderLabels(HEADINGS)
        for column, tip in enumerate(TIPS):
            self.horizontalHeaderItem(column).setToolTip(tip)
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(20)
        self.setShowGrid(False)
        self.setSelectionBehavior(QTableWidget.SelectionBehavior.SelectRows)
        self.setSelectionMode(QTableWidget.SelectionMode.SingleSelection)
        self.setEditTriggers(QTableWidget.EditTrigger.NoEditTriggers)
        header = self.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        header.setMinimumSectionSize(40)
        header.setHighlightSections(False)
        header.setSortIndicator(-1, Qt.SortOrder.AscendingOrder)  # by score
        header.setSortIndicatorClearable(True)  # a third click: by score again
        self.setSortingEnabled(True)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Copy the table with Ctrl+C."""
        if is_copy(event):
            copy_table(self)
        else:
            super().keyPressEvent(event)

    def show_markers(self, markers: MarkerTable) -> None:
        """Show the highest of these, in the order that was chosen."""
        self.blockSignals(True)
        self.setSortingEnabled(False)  # or rows would move while they are filled
        self.clearSelection()
        n_rows = min(N_LISTED, len(markers))
        self.setRowCount(n_rows)
        for row in range(n_rows):
            numbers = (row, *_numbers(markers, row))
            texts = _texts(markers, row)
            for column, (text, number) in enumerate(zip(texts, numbers, strict=True)):
                item = MarkerItem(text, number, row, is_name=column == 0)
                self.setItem(row, column, item)
        self.setSortingEnabled(True)
        self.blockSignals(False)
        self.scrollToTop()


class MarkerItem(QTableWidgetItem):
    """A cell that is sorted by its number, not by the text; a name by its letters."""

    def __init__(self, text: str, number: float, rank: int, *, is_name: bool) -> None:
        super().__init__(text)
        self.number, self.rank, self._is_name = number, rank, is_name
        if is_name:
            self.setToolTip(text)  # a long one is cut in a small window
        side = Qt.AlignmentFlag.AlignLeft if is_name else Qt.AlignmentFlag.AlignRight
        self.setTextAlignment(side | Qt.AlignmentFlag.AlignVCenter)

    def __lt__(self, other: QTableWidgetItem) -> bool:
        """Whether it comes before another of its column; equals by their score."""
        assert isinstance(other, MarkerItem)
        view = self.tableWidget()
        if view is not None and view.horizontalHeader().sortIndicatorSection() < 0:
            return self.rank < other.rank
        if self._is_name:
            return self.text().casefold() < other.text().casefold()
        return (self.number, self.rank) < (other.number, other.rank)


def _texts(markers: MarkerTable, row: int) -> tuple[str, ...]:
    change = markers.logfoldchanges[row]
    return (
        str(markers.names[row]),
        f"{change:+.1f}" if np.isfinite(change) else "–",
        told_p(markers.pvals_adj[row]),
        f"{markers.pts[row]:.0%}",
        f"{markers.pts_rest[row]:.0%}",
    )


def _numbers(markers: MarkerTable, row: int) -> tuple[float, ...]:
    """Return what the columns behind the name are sorted by."""
    change = float(markers.logfoldchanges[row])
    return (
        change if np.isfinite(change) else -np.inf,
        float(markers.pvals_adj[row]),
        float(markers.pts[row]),
        float(markers.pts_rest[row]),
    )
