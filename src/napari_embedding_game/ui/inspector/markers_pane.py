"""A pane that compares two groups of points and lists the markers in a table."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import pandas as pd
from qtpy.QtCore import Qt, Signal

from napari_embedding_game.core.inspect.markers import (
    MarkerTable,
    iter_markers,
)
from napari_embedding_game.data.columns import count_text, share_text
from napari_embedding_game.data.export.atomic import write_csv
from napari_embedding_game.data.export.plots import VolcanoPlot
from napari_embedding_game.session.file.saved_map import ShownComparison
from napari_embedding_game.session.groups import (
    REST,
    Against,
    find_compared_points,
    list_sample_columns,
    make_comparison_title,
    offer_comparisons,
)
from napari_embedding_game.ui.connections import Listener
from napari_embedding_game.ui.style.coloring import replace_gene_word
from napari_embedding_game.ui.style.form_widgets import (
    CTRL,
    ChoiceBox,
    TextLabel,
)
from napari_embedding_game.ui.style.layouts import (
    escape_tooltip,
    horizontal_box,
    push_button,
    vertical_box,
)
from napari_embedding_game.ui.style.table import Table, TableColumn
from napari_embedding_game.ui.tasks.save_dialog import ask_and_save
from napari_embedding_game.ui.tasks.worker import PaneJobRunner
from napari_embedding_game.ui.workspace import Workspace

SAMPLES_TIP = (
    "Each sample, such as a donor, counts once in a group, by the mean of its cells "
    "(10 or more). Samples that are in both groups are paired. Expression is tested by "
    "limma's moderated t-test, where there are enough counts (edgeR's rule)."
)
RANKS = "Use p-values to rank, not as proof."
RANKS_TIP = "Clusters were found in these numbers. For a test, compare samples."
AGAINST_TIP = "What the selection is compared with: all others, or a cluster."
TESTS: dict[str, dict[str, Any]] = {
    "Wilcoxon": {"method": "wilcoxon"},
    "Wilcoxon, with ties": {"method": "wilcoxon", "tie_correct": True},
    "t-test": {"method": "t-test"},
}
"""Fields of a :class:`ShownComparison` that make a test, by the title of the test."""
TEST_TIP = (
    "The test, as in scanpy. Without the correction for ties (equal values), p-values "
    "are too large where most values are 0."
)
N_LISTED = 20
"""Markers in the table; the volcano plot and the file have all of the markers."""
MAX_P = 0.05
"""Adjusted p-value up to which markers are ranked by another column than the score."""


def p_text(p: float) -> str:
    """Return a p-value as text, short enough for a narrow dock; "<1e-300" for 0."""
    return f"{p:.1g}" if p > 0 else "<1e-300"


COLUMNS = (
    TableColumn("Column", f"Click a row to colour the map by it. {CTRL}+C copies all."),
    TableColumn(
        "log2 FC",
        "Log2 of how many times higher the mean is inside. Click to list the largest, "
        f"or the lowest, changes of all with p adj. up to {MAX_P:g}.",
        lambda x: f"{x:+.1f}" if np.isfinite(x) else "–",
    ),
    TableColumn(
        "p adj.",
        "p-value adjusted for the number of tests (Benjamini-Hochberg).",
        p_text,
    ),
    TableColumn("In", "Share of the selected points above 0.", share_text),
    TableColumn("Out", "Share of the compared points above 0.", share_text),
)
NAMES = ["names", "logfoldchanges", "pvals_adj", "pct_nz_group", "pct_nz_reference"]
"""Columns of the frame of a :class:`MarkerTable`, in the order of ``COLUMNS``."""


@dataclass(frozen=True, eq=False)
class FinishedComparison:
    """A finished comparison of two groups of points: its markers and the groups."""

    markers: MarkerTable
    groups: ShownComparison
    frame: pd.DataFrame
    """All markers by falling score, with the columns ``NAMES``, indexed by name."""
    note: str = ""
    """A sentence on the values that were compared; "" for none."""

    def rank_by(self, column: str, *, falls: bool) -> pd.DataFrame:
        """Return the first N_LISTED rows of ``frame``, ranked by a column.

        "" keeps the order, which is by falling score; else only rows with an adjusted
        p-value up to MAX_P are ranked, if there are any.  ``falls``: whether the
        largest come first.
        """
        frame = self.frame
        if column:
            is_certain = frame["pvals_adj"] <= MAX_P
            frame = frame[is_certain] if is_certain.any() else frame
            frame = frame.sort_values(column, ascending=not falls, kind="stable")
        return frame[:N_LISTED]

    @cached_property
    def plot(self) -> VolcanoPlot:
        """The comparison as a volcano plot of all its columns."""
        return VolcanoPlot(
            names=self.markers.names,
            changes=self.markers.logfoldchanges,
            p_values=self.markers.pvals_adj,
            title=self.groups.title,
        )


class MarkersPane(Listener):
    """Compares two groups of points in the background, and lists the markers.

    Compares only while this pane or a plot of its comparison is open.
    """

    compared_changed = Signal()
    """Emitted when another comparison, none, or another text on it is shown."""

    def __init__(self, workspace: Workspace) -> None:
        super().__init__(session := workspace.session)
        self.workspace = workspace
        self._search = PaneJobRunner(
            self,
            "Comparing …",
            self._show_comparison,
            self._show_text,
            self._clear_comparison,
        )
        self.compared: FinishedComparison | None = None
        """The shown comparison, which stays until another comparison has ended."""
        self._obs: object = None
        """The metadata whose columns are offered; each change makes another frame."""
        self._sample_columns: list[str] = []
        self._request: object = None
        """The latest request: the title, the points and the test."""
        self.against, self.test = (
            ChoiceBox(tip, self.update_view, n_letters=6)
            for tip in (AGAINST_TIP, f"{TEST_TIP} Samples: {SAMPLES_TIP}")
        )
        tip = "All columns as .csv; Save > Notebook and Methods then include it."
        self.saved = push_button("Save table…", tip, self._ask_and_save_table)
        policy = self.saved.sizePolicy()
        policy.setRetainSizeWhenHidden(True)
        self.saved.setSizePolicy(policy)
        self.state, self.table = TextLabel(), Table(*COLUMNS, min_rows=3)
        under = horizontal_box(self.test, self.saved)
        parts = self.against, under, self.state, self.table
        self.setLayout(vertical_box(*parts, margins=(0, 4, 0, 0)))
        self.layout().setStretchFactor(self.table, 1)
        color = workspace.color_by_value
        head = self.table.horizontalHeader()
        head.sortIndicatorChanged.connect(self._list_rows)
        self.table.rows_picked.connect(lambda names, _: list(map(color, names)))
        self._show_text("")
        data_changes = session.dataset_changed, session.columns_changed
        self.connect_while_open(
            self.update_view, session.selection.changed, *data_changes
        )
        self.call_soon_after_map_changes(self._compare_again_at_rest)

    @property
    def result(self) -> MarkerTable | None:
        """All markers of the shown comparison, by falling score; None without one."""
        return None if self.compared is None else self.compared.markers

    def update_view(self, *event: object) -> None:
        """Offer the present choices, and compare the chosen groups if these changed.

        Nothing is compared if the request is the latest one, or if there is nothing to
        compare, for which a hint is shown.  A running comparison is replaced.
        """
        dataset = self._session.dataset
        self._offer_choices()
        self.table.set_heading(0, replace_gene_word("Gene", dataset))
        if dataset is None:
            return
        comparison = self._make_comparison()
        request = comparison.title, comparison.key
        if request == self._request:
            return
        self._request = request
        self._search.stop()
        if hint := self._find_hint():
            self._clear_comparison(hint)
            return

        def find_markers() -> Generator[float, None, FinishedComparison]:
            """Yield the finished share of the comparison, and return the comparison."""
            expression, samples = dataset.expression, comparison.samples
            values, names = expression.values, dataset.profile_names
            steps = iter_markers(
                *(values, comparison.inside, comparison.outside, names),
                method=comparison.method,
                tie_correct=comparison.tie_correct,
                samples=dataset.obs[samples].to_numpy() if samples else None,
                n_top=None,
                log1p=expression.is_log1p,
            )
            markers = yield from steps
            frame = markers.to_frame().set_index("names", drop=False)[NAMES]
            return FinishedComparison(markers, comparison, frame, expression.note)

        self._search.submit(find_markers)

    # Inside

    def clear_data(self) -> None:
        """Remove the comparison of the former data, and stop a running one."""
        self._is_outdated, self._request = True, None
        self._search.stop()
        self._clear_comparison("")

    def _compare_again_at_rest(self) -> None:
        """Compare again, at rest, if clusters or their names have changed since."""
        if not self._session.is_moving:
            self.update_view()

    def _offer_choices(self) -> None:
        """Offer the groups and tests that can be compared now.

        What was chosen stays chosen if it is still offered.
        """
        dataset = self._session.dataset
        obs = None if dataset is None else dataset.obs
        if dataset is None or obs is not self._obs:
            self._obs, self._request = obs, None
            self._sample_columns = (
                [] if dataset is None else list_sample_columns(dataset)
            )
        self._offer_groups()
        # Each level of the compared column is one sample.
        named = [
            one for one in self._sample_columns if one != self._chosen_comparison.column
        ]
        of_samples = {
            f"Samples: {one}": {"method": "t-test", "samples": one} for one in named
        }
        self.test.set_choices([*TESTS.items(), *of_samples.items()])

    def _offer_groups(self) -> None:
        """Offer all other points, and clusters, to compare the selection with."""
        self.against.set_choices([*offer_comparisons(self._session)])

    @property
    def _chosen_comparison(self) -> Against:
        """The chosen comparison."""
        against: Against = self.against.value or REST
        return against

    def _find_hint(self) -> str:
        """Return a sentence on what to select if nothing can be compared, else ""."""
        is_enough = len(self._session.selection.rows) > 1
        return "" if is_enough else "Select two or more points to find their markers."

    def _make_comparison(self) -> ShownComparison:
        """Return the chosen comparison with its title, points and test."""
        against = self._chosen_comparison
        inside, outside = find_compared_points(self._session, against)
        return ShownComparison(
            title=make_comparison_title(self._session, against),
            inside=inside,
            outside=outside,
            **self.test.value,
        )

    def _ask_and_save_table(self) -> None:
        """Ask for a .csv file and write all markers.

        Once written, the comparison is stored in the session.
        """
        compared = self.compared
        assert compared is not None
        kinds, write = (
            {".csv": "Table"},
            partial(write_csv, compared.markers.to_frame()),
        )
        message = ask_and_save(self, self._session, "comparison", kinds, write)
        if message:
            self._session.store_comparison(compared.groups)
            self._show_text(message)

    def _clear_comparison(self, message: str) -> None:
        """Remove the shown comparison, empty the table and show a message."""
        self.compared = None
        self.table.show_frame(pd.DataFrame())
        self._show_text(message)

    def _show_text(self, text: str, tip: str = "") -> None:
        """Show a text and its tooltip, and emit ``compared_changed``.

        The button to save is shown only for a comparison that no other is about to
        replace.
        """
        # While another comparison runs, the boxes do not describe the shown one.
        self.saved.setVisible(self.compared is not None and not self._search.is_busy)
        self.state.show_text(text)
        self.state.setToolTip(escape_tooltip(tip))
        self.compared_changed.emit()

    def _show_comparison(self, compared: FinishedComparison) -> None:
        """Show a finished comparison: its rows, and a text on groups and test.

        Where samples were compared, the text describes the design and the untested
        genes.
        """
        self.compared = compared
        markers, dataset = compared.markers, self._session.dataset
        noun = "points" if dataset is None else f"{dataset.row_noun}s"
        text = f"{markers.n_inside:,} {noun} against {markers.n_outside:,}. {RANKS}"
        tip = RANKS_TIP
        if markers.design is not None:
            text, tip = markers.design.describe(compared.groups.samples), SAMPLES_TIP
            if markers.n_untested:
                genes = count_text(markers.n_untested, "gene")
                text += f" Not tested: {genes} with few counts."
        self._list_rows()
        self._show_text(text, " ".join(filter(None, (compared.note, tip))))

    def _list_rows(self, *event: object) -> None:
        """Fill the table with the first rows by score, or by the pressed heading.

        Does nothing without a comparison.
        """
        if self.compared is not None:
            head = self.table.horizontalHeader()
            section = head.sortIndicatorSection()
            column = NAMES[section] if section > 0 else ""
            falls = head.sortIndicatorOrder() == Qt.SortOrder.DescendingOrder
            self.table.show_frame(self.compared.rank_by(column, falls=falls))
