"""What two groups of points differ in: the comparison, and its table of markers."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from qtpy.QtCore import Signal
from qtpy.QtWidgets import QComboBox, QLabel

from napari_embedding_game.core.inspect.markers import (
    MarkerMethod,
    MarkerTable,
    iter_markers,
)
from napari_embedding_game.data.export.atomic import whole_or_nothing
from napari_embedding_game.data.export.plots import VolcanoPlot
from napari_embedding_game.session.clusters.annotation import unique_name
from napari_embedding_game.session.groups import (
    EACH_SAMPLE_ONCE,
    REST,
    Against,
    groups,
    level_columns,
    levels_in,
    offered,
    sample_columns,
)
from napari_embedding_game.session.looked_at import ShownComparison, newest
from napari_embedding_game.session.session import Session, sentence
from napari_embedding_game.ui.connections import Listener
from napari_embedding_game.ui.style.coloring import composition_columns, worded
from napari_embedding_game.ui.style.form_widgets import (
    let_be_narrow,
    show_text,
    text_label,
)
from napari_embedding_game.ui.style.layouts import column, panel, push_button, row
from napari_embedding_game.ui.style.table import HEAD, ROW, Column, Table
from napari_embedding_game.ui.tasks.save_dialog import save
from napari_embedding_game.ui.tasks.worker import Latest

SAMPLES_TIP = (
    "Each sample, such as a donor, counts once, by the mean of its cells (10 or more)."
)
RANKS = "Use p-values to rank, not as proof."
RANKS_TIP = "Clusters were found in these numbers. For a test, compare samples."
AGAINST_TIP = (
    "Compare with all others or another cluster; or, inside the selection, two "
    "clusters or two levels of a column."
)
TESTS: dict[str, tuple[MarkerMethod, str]] = {
    "Wilcoxon": ("wilcoxon", ""),
    "t-test": ("t-test", ""),
}
LEAST_ROWS = 3
"""Of the table that are seen however little room there is."""
N_LISTED = 20
"""Columns in the table; the volcano plot and the file have all of them."""
OTHERS = "all others"


def told_p(p: float) -> str:
    """Return a p-value as text, short enough for a narrow dock."""
    return f"{p:.1g}" if p > 0 else "<1e-300"


COLUMNS = (
    Column("Column", "Click a row to colour the map by it. Ctrl+C copies all."),
    Column(
        "log2 FC",
        "Log2 of how many times higher the mean is inside, as in scanpy.",
        lambda x: f"{x:+.1f}" if np.isfinite(x) else "–",
    ),
    Column(
        "p adj.",
        "p-value adjusted for the number of tests (Benjamini-Hochberg).",
        told_p,
    ),
    Column("In", "Share of the selected points above 0.", "{:.0%}".format),
    Column("Out", "Share of the compared points above 0.", "{:.0%}".format),
)


@dataclass(frozen=True, eq=False)
class Compared:
    """A comparison that has come to its end: what it found, and of what."""

    markers: MarkerTable
    groups: ShownComparison
    told: str = ""
    """What is to be known of the numbers that were compared; "" for nothing."""

    def plot(self) -> VolcanoPlot:
        """Return it as a plot."""
        found = self.markers
        changes, p_values = found.logfoldchanges, found.pvals_adj
        title = self.groups.title
        return VolcanoPlot(
            names=found.names, changes=changes, p_values=p_values, title=title
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


class MarkersPane(Listener):
    """Compares the selection, in the background while it or a plot of it is seen.

    ``on_name`` receives the name that was clicked.
    """

    compared_changed = Signal()
    """Another comparison, or none, is shown, or another sentence on it."""

    def __init__(self, session: Session, on_name: Callable[[str], None]) -> None:
        super().__init__()
        self.session = session
        self._search = Latest(self, self._show, self._on_failed, self._on_share)
        self._level_column = ""
        """Column whose levels are in the two boxes."""
        self.compared: Compared | None = None
        """What is shown, also while another comparison goes on."""
        self._obs: object = None
        """The metadata whose columns are offered; each change makes others."""
        self._asked: object = None
        """What was asked for last: the title, the points and the test."""
        self._columns: list[str] = []
        """Those whose levels can be compared."""
        self.against = self._box(AGAINST_TIP)
        self.test = self._box(f"The test, as in scanpy. Samples: {SAMPLES_TIP}")
        self.one = self._box("The level whose markers are looked for.")
        self.other = self._box("The level that it is compared with, or all others.")
        tip = "All columns as .csv. The notebook and the methods have what was saved."
        self.saved = push_button("Save table…", tip, self._save)
        self.state, self.table = text_label(), Table(*COLUMNS)
        self.table.setMinimumHeight(HEAD + LEAST_ROWS * ROW)
        pair = self.one, QLabel("vs"), self.other
        self.levels = panel(row(*pair, wide=(self.one, self.other)))
        under = row(self.test, self.saved)
        parts = self.against, self.levels, under, self.state, self.table
        self.setLayout(column(*parts, margins=(0, 4, 0, 0)))
        self.layout().setStretchFactor(self.table, 1)
        self.table.picked.connect(lambda names, _: list(map(on_name, names)))
        self._offer_tests()
        self._say("")
        self.keep_until(session.dataset_changed)
        others = session.dataset_changed, session.columns_changed
        self.listen([session.selection.changed, *others], self.catch_up)
        moves = session.state_changed, session.clusters.changed
        self.follow(session, moves, self._follow)

    @property
    def result(self) -> MarkerTable | None:
        """All columns of what is shown, by falling score; None while nothing is."""
        return None if self.compared is None else self.compared.markers

    def catch_up(self, *event: object) -> None:
        """Compare what is selected, unless that was asked for last."""
        dataset, selection = self.session.dataset, self.session.selection
        if self._obs is not (None if dataset is None else dataset.obs):
            self._offer_tests()
        self._offer()
        self.table.name_first(worded("Gene", dataset))
        if dataset is None:
            return
        shown = self._wanted()
        points = shown.inside, shown.outside
        codes = [one if one is None else one.tobytes() for one in points]
        asked = shown.title, shown.method, shown.samples, *codes
        if asked == self._asked:
            return
        self._asked = asked
        self._search.stop()
        if len(selection.rows) < 2:
            self._show_none("Select two or more points to find their markers.")
            return

        def find() -> Generator[float, None, Compared]:
            expression, samples = dataset.expression, shown.samples
            values, names = expression.values, dataset.profile_names
            found = iter_markers(
                *(values, shown.inside, shown.outside, names),
                method=shown.method,
                samples=dataset.obs[samples].to_numpy() if samples else None,
                n_top=None,
                log1p=expression.is_log1p,
            )
            return Compared((yield from found), shown, expression.told)

        self._search.ask(find)
        self._say("Comparing …")

    def remember(self, compared: Compared) -> None:
        """Have a notebook tell a comparison, which has been written to a file."""
        session = self.session
        session.comparisons = newest(session.comparisons, compared.groups)

    # Inside

    def _box(self, tip: str) -> QComboBox:
        box = QComboBox()
        box.setToolTip(tip)
        let_be_narrow(box, 6)
        box.activated.connect(self.catch_up)
        return box

    def let_go(self) -> None:
        """Show nothing of data that are gone."""
        self._has_missed, self._asked = True, None
        self._search.stop()
        self._show_none("")

    def _follow(self) -> None:
        """Compare anew where clusters, or their names, are others than were asked."""
        if not self.session.is_moving:
            self.catch_up()

    def _offer_tests(self) -> None:
        """Let samples be named by a column; what was chosen stays, if it can."""
        dataset, present = self.session.dataset, self.test.currentText()
        named: list[str] = []
        self._obs, self._columns, self._asked = None, [], None
        if dataset is not None:
            self._obs, self._columns = dataset.obs, level_columns(dataset.obs)
            named = sample_columns(dataset.obs, composition_columns(dataset))
        tests = TESTS | {f"Samples: {name}": ("wilcoxon", name) for name in named}
        _fill(self.test, tests)
        self.test.setCurrentIndex(max(0, self.test.findText(present)))

    def _offer(self) -> None:
        """Offer what the present selection can be compared with."""
        present, choices = self._against(), dict[str, Against]()
        for text, choice in offered(self.session, self._columns):
            choices[unique_name(text, {*choices})] = choice
        _fill(self.against, choices)
        # Of a column of many levels there is one choice, whichever two are compared.
        columns = [one.kind == "levels" and one.column for one in choices.values()]
        place = 0
        if present in choices.values():
            place = [*choices.values()].index(present)
        elif present.column in columns:
            place = columns.index(present.column)
        self.against.setCurrentIndex(place)
        self._offer_levels(present)

    def _offer_levels(self, present: Against) -> None:
        """Offer two boxes where two of many levels are to be chosen."""
        of = self._choice.column
        levels = levels_in(self.session, of) if of else {}
        is_wanted = len(levels) > 2
        self._level_column = of if is_wanted else ""
        self.levels.setVisible(is_wanted)
        if is_wanted:
            texts = {f"{name} ({n:,})": name for name, n in levels.items()}
            one, other = present.levels if present.column == of else ("", None)
            _fill(self.one, texts, one)
            texts.pop(self.one.currentText())
            _fill(self.other, {OTHERS: None, **texts}, other)

    def _wanted(self) -> ShownComparison:
        against, (method, samples) = self._against(), self.test.currentData()
        inside, outside = groups(self.session, against)
        return ShownComparison(
            title=self._title(against),
            inside=inside,
            outside=outside,
            method=method,
            samples=samples,
        )

    @property
    def _choice(self) -> Against:
        choice: Against | None = self.against.currentData()
        return choice or REST

    def _against(self) -> Against:
        choice = self._choice
        if not self._level_column or choice.column != self._level_column:
            return choice
        pair = self.one.currentData(), self.other.currentData()
        return replace(choice, levels=pair)

    def _save(self) -> None:
        compared = self.compared
        assert compared is not None

        def write(path: Path) -> None:
            with whole_or_nothing(path) as temporary:
                compared.markers.frame().to_csv(temporary, index=False)

        said = save(self, self.session, "comparison", {".csv": "Table"}, write)
        if said:
            self.remember(compared)
            self._say(said)

    def _title(self, against: Against) -> str:
        """Return what is compared, in words."""
        if against.kind == "levels":
            one, other = against.levels
            return (
                f"{against.column}: {one} against {OTHERS if other is None else other}"
            )
        session = self.session
        if against.cluster in session.selection.clusters:
            return self.against.currentText()
        clusters = session.clusters.clustering.by_id
        names = [clusters[c].title for c in session.selection.clusters]
        chosen = ", ".join(names) if 0 < len(names) <= 3 else "Selection"
        return f"{chosen} {self.against.currentText()}"

    def _on_share(self, share: float) -> None:
        self._say(f"Comparing … {share:.0%}")

    def _on_failed(self, error: BaseException) -> None:
        self._asked = None  # again where it is asked for again
        self._show_none(sentence(error))

    def _show_none(self, why: str) -> None:
        self.compared = None
        self.table.show_frame(pd.DataFrame())
        self._say(why)

    def _say(self, text: str, tip: str = "") -> None:
        """Tell something on as many lines as it takes."""
        # What is shown while another is worked out is not what the boxes say.
        self.saved.setEnabled(self.compared is not None and not self._search.is_busy)
        show_text(self.state, text, "note")
        self.state.setToolTip(tip)
        self.compared_changed.emit()

    def _show(self, compared: Compared) -> None:
        self.compared = compared
        markers, dataset = compared.markers, self.session.dataset
        what = "points" if dataset is None else f"{dataset.noun}s"
        words, tip = RANKS, RANKS_TIP
        if compared.groups.samples:
            what, words, tip = "samples", EACH_SAMPLE_ONCE, SAMPLES_TIP
        self.table.show_frame(compared.frame())
        sizes = f"{markers.n_inside:,} {what} against {markers.n_outside:,}."
        self._say(f"{sizes} {words}", " ".join(filter(None, (compared.told, tip))))


def _fill(box: QComboBox, choices: Mapping[str, Any], chosen: Any = None) -> None:
    """Offer what texts stand for."""
    box.clear()
    for text, value in choices.items():
        box.addItem(text, value)
    box.setCurrentIndex(max(0, box.findData(chosen)))
