"""A pane of the groups that lie beside each other in tissue, compared with chance."""

from __future__ import annotations

import numpy as np
import pandas as pd

from napari_embedding_game.core.inspect.neighborhoods import Neighborhoods
from napari_embedding_game.data.export.plots import ExpressionPlot
from napari_embedding_game.session.cluster_expression import (
    assign_figure_rows,
    list_row_choices,
)
from napari_embedding_game.session.neighborhoods import make_neighborhood_job
from napari_embedding_game.session.session import Session
from napari_embedding_game.ui.inspector.expression_pane import WAITING, PlotGroups
from napari_embedding_game.ui.inspector.markers_pane import p_text
from napari_embedding_game.ui.style.coloring import (
    composition_columns,
    make_change_colors,
)
from napari_embedding_game.ui.style.form_widgets import CTRL, ChoiceBox
from napari_embedding_game.ui.style.layouts import horizontal_box
from napari_embedding_game.ui.style.plot_canvas import PlotPane
from napari_embedding_game.ui.style.table import Table, TableColumn
from napari_embedding_game.ui.tasks.worker import PaneJobRunner

EACH, SELECTION = "Each", "Selection"
NO_SELECTION = "Select cells with the lasso, or a cluster, to see what lies around it."
K = (6, 15, 30)
"""Numbers of nearest cells that can be chosen."""
MAX_Z = 20.0
"""Largest |z| that has a colour of its own."""
CAVEAT = (
    "z compares with {n:,} permutations of the labels within each section. Cells of "
    "one section are no independent samples: compare conditions by samples."
)
COLUMNS = (
    TableColumn("Around", f"Click to select it; {CTRL}+C copies all."),
    TableColumn("Neighbour", "The group that is counted around it."),
    TableColumn(
        "Ratio", "Observed over expected number of neighbours.", "{:.2f}".format
    ),
    TableColumn("z", "Standard deviations from chance.", "{:+.1f}".format),
    TableColumn("p adj.", "Adjusted for all pairs (Benjamini-Hochberg).", p_text),
)


class NeighborhoodsPane(PlotPane):
    """Counts groups around groups in tissue, in the background while this is open."""

    def __init__(self, session: Session) -> None:
        super().__init__(session, self._make_tooltip)
        self._jobs = PaneJobRunner(
            self,
            "Comparing …",
            self._on_groups_compared,
            self.state.show_text,
            self._on_comparison_failed,
        )
        self._request: tuple[object, ...] = ()
        self._groups: PlotGroups | None = None
        self.result: Neighborhoods | None = None
        tip = "Whose neighbours are counted: clusters, or groups of a column."
        self.grouping = ChoiceBox(tip, self.compare_groups, n_letters=7)
        tip = "Around which cells: those of each group, or the selected ones."
        self.around = ChoiceBox(tip, self.compare_groups, n_letters=5)
        self.around.set_choices((x, x) for x in (EACH, SELECTION))
        tip = "How many nearest cells of the section, or of the frame, are neighbours."
        self.k = ChoiceBox(tip, self.compare_groups, n_letters=4)
        self.k.set_choices((f"k = {k}", k) for k in K)
        boxes = self.grouping, self.around, self.k
        self.head.addLayout(horizontal_box(*boxes, stretched=(self.grouping,)))
        self.table = Table(*COLUMNS, max_rows=6, min_rows=3)
        self.layout().addWidget(self.table)
        self.canvas.clicked.connect(self._on_plot_clicked)
        self.table.rows_picked.connect(self._on_rows_picked)
        self.connect_while_open(
            self.compare_groups,
            session.clusters.changed,
            session.selection.changed,
            session.state_changed,
            session.dataset_changed,
            session.columns_changed,
        )

    def clear_data(self) -> None:
        """Forget the result for the former data, also while this is closed."""
        self._jobs.stop()
        self._request, self._groups = (), None
        self._show_result(None)

    def update_view(self) -> None:
        """Compare the present groups."""
        self.compare_groups()

    def compare_groups(self, *event: object) -> None:
        """Compare the chosen groups if these, or the selected cells, have changed.

        While points move only a hint is shown; without a map or positions nothing is
        done.
        """
        session, dataset = self._session, self._session.dataset
        if dataset is None or dataset.tissue is None or session.snapshot is None:
            return
        if session.is_moving:
            self.state.show_text(WAITING)
            return
        choices = list_row_choices(dataset, composition_columns(dataset))
        self.grouping.set_choices((x.text, x) for x in choices if not x.splits_clusters)
        choice, clustering = self.grouping.value, session.clusters.clustering
        rows = session.selection.rows if self.around.value == SELECTION else None
        if rows is not None and not len(rows):
            self._request = ()
            self._show_result(None, NO_SELECTION)
            return
        groups = assign_figure_rows(choice, dataset, clustering)
        self._groups = PlotGroups(groups, choice, tuple(clustering.by_id))
        chosen = b"" if rows is None else np.asarray(rows).tobytes()
        names = tuple(groups.categories)
        request = dataset, choice, self.k.value, groups.codes.tobytes(), chosen, names
        if request != self._request:
            self._request = request
            self._jobs.submit(make_neighborhood_job(dataset, groups, request[2], rows))

    # Inside

    def _on_groups_compared(self, result: Neighborhoods) -> None:
        """Show the result of the latest request."""
        self._show_result(result, CAVEAT.format(n=result.n_permutations))

    def _on_comparison_failed(self, message: str) -> None:
        """Clear the result, and show the message of the error."""
        self._request = ()
        self._show_result(None)
        self.state.show_text(message, "warning")

    def _show_result(self, result: Neighborhoods | None, text: str = "") -> None:
        """Show a result as matrix of z and as table, largest |z| first."""
        self.result = result
        self.state.show_text(text)
        self.canvas.show_plot(self._make_plot(), is_scrolled=True)
        self.table.setVisible(result is not None)
        frame = pd.DataFrame()
        if result is not None:
            frame = result.to_frame(*self._find_row_and_column_names())
            order = frame["z"].abs().sort_values(ascending=False, kind="stable").index
            frame = frame.loc[order, ["around", "neighbor", "ratio", "z", "p_adjusted"]]
        self.table.show_frame(frame)

    def _find_row_and_column_names(self) -> tuple[list[str], list[str]]:
        """Return the names of the rows and the columns of the result."""
        assert self._groups is not None
        names = [str(x) for x in self._groups.point_groups.categories]
        is_single = self.result is not None and len(self.result.z) == 1
        return [SELECTION] if is_single else names, names

    def _make_plot(self) -> ExpressionPlot | None:
        """Return the matrix of z, a row for each group around which was counted."""
        if self.result is None:
            return None
        sources, names = self._find_row_and_column_names()
        z = self.result.z.clip(-MAX_Z, MAX_Z)
        most = max(1.0, float(np.nanmax(np.abs(z), initial=0)))
        limits = -most, most
        return ExpressionPlot(
            title="z, columns around rows",
            groups=tuple(names),
            genes=tuple(sources),
            values=z.T,
            scale=make_change_colors(np.linspace(*limits, 256), limits),
            limits=limits,
        )

    def _find_pair(self, x: float, y: float) -> tuple[int, int] | None:
        """Return the row and the column of the matrix at a position; None outside."""
        if self.result is None:
            return None
        row, column = round(y), round(x)
        is_inside = 0 <= row < len(self.result.z) and 0 <= column < len(self.result.z.T)
        return (row, column) if is_inside else None

    def _make_tooltip(self, x: float, y: float) -> str:
        """Return the figures of the pair at a position."""
        if (pair := self._find_pair(x, y)) is None or self.result is None:
            return ""
        (sources, names), result = self._find_row_and_column_names(), self.result
        return (
            f"{names[pair[1]]} around {sources[pair[0]]}: {result.counts[pair]:,} "
            f"neighbours, {result.expected[pair]:,.0f} by chance. "
            f"z {result.z[pair]:+.1f}, adjusted p {p_text(result.p_adjusted[pair])}."
        )

    def _on_plot_clicked(self, x: float, y: float, is_added: bool) -> None:
        """Select the group of the clicked column, or of the row where each has one."""
        if (pair := self._find_pair(x, y)) is not None and self.result is not None:
            is_single = len(self.result.z) == 1
            self._select_group(pair[1] if is_single else pair[0], is_added)

    def _on_rows_picked(self, rows: list[int], is_added: bool) -> None:
        """Select the group around which the first picked row of the table is."""
        if rows and self.result is not None:
            row, column = np.unravel_index(rows[0], self.result.z.shape)
            is_single = len(self.result.z) == 1
            self._select_group(int(column if is_single else row), is_added)

    def _select_group(self, group: int, is_added: bool) -> None:
        """Select a group on the map, unless that would replace the selected cells."""
        if self._groups is not None and self.around.value == EACH:
            self._groups.select_group(self._session, group, is_added)
