"""The tab of the selection: who the selected points are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QTimer, Signal
from qtpy.QtWidgets import QVBoxLayout, QWidget

from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.export.plots import VolcanoPlot
from napari_embedding_game.session.cluster_report import (
    ClusterReport,
    as_levels,
    cluster_report,
)
from napari_embedding_game.session.session import State, sentence
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.inspector.details_pane import DetailsPane
from napari_embedding_game.ui.inspector.markers_pane import MarkersPane
from napari_embedding_game.ui.style.coloring import (
    composition_columns,
    name_of,
)
from napari_embedding_game.ui.style.level_click import select_rows
from napari_embedding_game.ui.style.theme import ThemeColors
from napari_embedding_game.ui.tasks.worker import Latest

if TYPE_CHECKING:
    from napari_embedding_game.ui.workspace import Workspace

HINT_NO_CLUSTER = (
    "Click a group on the map, or in the list of the Map tab, to see who is in it. "
    "Ctrl-click adds another one, Escape clears."
)
HINT_LOOKING = "Looking inside …"
REFRESH_MS = 500
"""Between two updates while the game runs."""
SOON_MS = 30
"""Edits that follow each other faster than this are shown together."""


class SelectionTab(QWidget):
    """Shows what is inside the selected clusters of a session.

    Parameters
    ----------
    workspace : Workspace
    """

    renamed = Signal(int, str)
    """The id of a cluster, and the name that was typed for it."""

    def __init__(self, workspace: Workspace) -> None:
        super().__init__()
        self.workspace = workspace
        self._session = session = workspace.session
        self._linked = workspace.linked
        self._draw_number = 0
        self._picked = False
        self._is_column_chosen = False
        """Whether a person has said which column clusters are described by."""
        self._context: tuple[int, ...] = ()
        self.report: ClusterReport | None = None
        self._reporting = Latest(self, self._on_report, self._on_failed, finishes=True)
        self.details = DetailsPane(
            MarkersPane(session, workspace.color_by_value), self._on_pick
        )
        self._timer = QTimer(self)
        self._timer.timeout.connect(self.refresh)
        workspace.plots.offer(VolcanoPlot, self.details.markers.plot)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.details)
        self._connections = Connections(self)
        self._connections.call(self._withdraw)
        self._connect()
        self._on_dataset(session.dataset)

    def set_theme(self, colors: ThemeColors) -> None:
        """Take on the colours of napari's theme."""
        self.details.set_theme(colors)

    def refresh(self) -> None:
        """Bring the report up to date, in the background."""
        session, column = self._session, self.details.column.value or ""
        if session.state != "running":
            self._timer.stop()
        self.workspace.composition_column = column
        if session.snapshot is None or session.selection.is_empty:
            self.report = None
            self.details.say(HINT_NO_CLUSTER)
            return
        clusters = self._described()
        if self.report is None:
            self.details.say(HINT_LOOKING)
        else:
            self._show_names(clusters)
        self._ask_for_report(clusters, column)

    def _connect(self) -> None:
        session, details = self._session, self.details
        for signal, slot in (
            (session.selection.changed, self._on_selection),
            (session.clusters.changed, self._refresh_soon),
            (session.dataset_changed, self._on_dataset),
            (session.columns_changed, self._on_columns),
            (session.state_changed, self._on_state),
            (session.look.events.color_by, self._on_color_by),
            (self._linked.changed, self._on_linked),
        ):
            self._connections.connect(signal, slot)
        details.column.changed.connect(self._on_column)
        details.composition.picked.connect(self._on_levels)
        details.another.changed.connect(self._draw_again)
        details.named.connect(self._rename)

    # What happens

    def _rename(self, name: str) -> None:
        clusters = self._session.selection.clusters
        if len(clusters) == 1:
            self.renamed.emit(clusters[0], name)
            self._show_names(clusters)  # as it is, where that was refused

    def _on_dataset(self, dataset: Dataset | None) -> None:
        self._reporting.stop()
        self.details.offer_columns(composition_columns(dataset) if dataset else [])
        self._is_column_chosen = False
        self._begin_with_column()
        self._on_linked()

    def _on_columns(self) -> None:
        """Offer a column that came later, and keep the one that is described by."""
        dataset, present = self._session.dataset, self.details.column.value
        if dataset is not None:
            self.details.offer_columns(composition_columns(dataset))
            if present in self.details.column.choices:  # else there was none
                self._show_column(present)
            self._begin_with_column()
            self.refresh()

    def _on_column(self) -> None:
        self._is_column_chosen = True
        self.refresh()

    def _show_column(self, column: str) -> None:
        with self.details.column.changed.blocked():
            self.details.column.value = column

    def _begin_with_column(self) -> None:
        """Begin with the column that clusters explain best, if none was chosen."""
        dataset = self._session.dataset
        if dataset is None or self._is_column_chosen or self._session.snapshot is None:
            return
        columns = list(self.details.column.choices)
        colored_by = name_of(self._session.look.color_by, dataset)
        if columns and colored_by not in columns:
            self._show_column(self.workspace.column_order.of(columns)[0])
        elif columns and colored_by is not None:
            self._show_column(colored_by)

    def _on_linked(self) -> None:
        self.details.set_source(self._session.dataset, self._linked.current)
        self.refresh()

    def _on_color_by(self, choice: str) -> None:
        dataset = self._session.dataset
        name = None if dataset is None else name_of(choice, dataset)
        if name in self.details.column.choices:
            self.details.column.value = name

    def _on_state(self, state: State) -> None:
        if state == "running":
            self._timer.start(REFRESH_MS)
            return
        self._begin_with_column()
        # The snapshot that brought the new state is taken up right after it.
        self._timer.start(0)
        self.details.markers.refresh()

    def _refresh_soon(self) -> None:
        if not self._timer.isActive():
            self._timer.start(SOON_MS)

    def _on_selection(self) -> None:
        selection = self._session.selection
        if self._picked or self._is_in_view():
            self.details.follow(selection.rows)
            return  # one of the pictures or texts, which stay
        self._context = selection.clusters
        self._draw_number = 0
        self.refresh()
        self.details.markers.refresh()

    def _is_in_view(self) -> bool:
        """Whether one point is selected whose picture or text is among those shown."""
        selection = self._session.selection
        if not selection.is_of_points or self.report is None:
            return False
        rows = selection.rows
        return len(rows) == 1 and self.details.holds(int(rows[0]))

    def _on_pick(self, rows: NDArray[np.intp]) -> None:
        self._picked = True
        try:
            self._session.selection.select_points(rows)
        finally:
            self._picked = False

    def _on_levels(self, levels: tuple[str, ...], is_added: bool) -> None:
        """Select the points of some values of the column that is described by."""
        dataset, column = self._session.dataset, self.details.column.value
        if dataset is not None and column:
            rows = as_levels(dataset.obs[column]).isin(levels).to_numpy()
            select_rows(self._session.selection, rows, is_added=is_added)

    def _draw_again(self) -> None:
        self._draw_number += 1
        self.refresh()

    # What is shown

    def _described(self) -> tuple[int, ...]:
        """Return the clusters that are described; none: the selected points are.

        Who picks a picture of a cluster goes on seeing the cluster.
        """
        selection = self._session.selection
        if not selection.is_of_points:
            return selection.clusters
        present = self._session.clusters.clustering.by_id
        return tuple(c for c in self._context if c in present)

    def _ask_for_report(self, clusters: tuple[int, ...], column: str) -> None:
        """Ask for a report on these clusters; on the selected points if none."""
        session, seed = self._session, self._draw_number
        dataset = session.dataset
        snapshot, labels = session.snapshot, session.clusters.labels
        assert snapshot is not None
        assert dataset is not None
        wanted = clusters
        if not clusters:
            wanted, labels = (1,), session.selection.points.astype(np.int8)

        def describe() -> tuple[ClusterReport, tuple[int, ...]]:
            report = cluster_report(
                dataset,
                wanted,
                labels,
                snapshot.pressure,
                stretch=snapshot.stretch,
                isolation=snapshot.isolation,
                column=column,
                n_draw=len(labels),
                seed=seed,
            )
            return report, clusters

        self._reporting.ask(describe)

    def _on_failed(self, error: BaseException) -> None:
        self.details.say(sentence(error))

    def _withdraw(self) -> None:
        self.workspace.plots.withdraw(VolcanoPlot, self.details.markers.plot)

    def _on_report(self, found: tuple[ClusterReport, tuple[int, ...]]) -> None:
        report, clusters = found
        selection = self._session.selection
        if clusters != self._described() or selection.is_empty:
            return
        self.report = report
        self._show_names(clusters)
        self.details.show_report(report, clusters)
        if selection.is_of_points and clusters:
            self.details.follow(selection.rows)

    def _show_names(self, clusters: tuple[int, ...]) -> None:
        known = self._session.clusters.clustering.by_id
        notes = [known[c].note for c in clusters if c in known]
        note = "\n".join(note for note in notes if note)
        is_one = len(clusters) == 1 and not self._session.selection.is_of_points
        self.details.name(self._title(clusters), note, can_rename=is_one)

    def _title(self, clusters: tuple[int, ...]) -> str:
        if not clusters:
            return self._points_title()
        known = self._session.clusters.clustering.by_id
        names = [known[c].name for c in clusters if c in known]
        if len(clusters) == 1 and names:
            cluster = known[clusters[0]]
            return cluster.name if cluster.is_named else f"Cluster {cluster.name}"
        shown = ", ".join(names[:6]) + (" …" if len(names) > 6 else "")
        return f"{len(clusters)} clusters: {shown}"

    def _points_title(self) -> str:
        rows, dataset = self._session.selection.rows, self._session.dataset
        if len(rows) == 1 and dataset is not None:
            return str(dataset.obs.index[rows[0]])
        return "Selected points"
