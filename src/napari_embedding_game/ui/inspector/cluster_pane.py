"""The left half of the inspector: search, slider, table and edits of the clusters."""

from __future__ import annotations

import operator

import pandas as pd
from qtpy.QtWidgets import QVBoxLayout, QWidget

from napari_embedding_game.core.snapshot import Snapshot
from napari_embedding_game.session.cluster_report import as_levels, is_continuous
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.inspector.cluster_edits import ClusterEdits
from napari_embedding_game.ui.inspector.cluster_slider import ClusterSlider
from napari_embedding_game.ui.inspector.cluster_statistics import (
    NO_CLUSTERS,
    ClusterStatistics,
    ClusterSums,
)
from napari_embedding_game.ui.inspector.cluster_table import ClusterTable
from napari_embedding_game.ui.inspector.search_box import SearchBox
from napari_embedding_game.ui.inspector.search_results import (
    are_many_names,
    names_in,
    show_search_result,
)
from napari_embedding_game.ui.style.coloring import CLUSTER
from napari_embedding_game.ui.style.form_widgets import show_text, text_label
from napari_embedding_game.ui.workspace import Workspace


class ClusterPane(QWidget):
    """Shows the clusters of a session and lets a person edit them.

    Parameters
    ----------
    workspace : Workspace
    """

    def __init__(self, workspace: Workspace) -> None:
        super().__init__()
        self._session = session = workspace.session
        self._palette = workspace.palette
        self._levels: tuple[object, str, pd.Series | None] | None = None
        self._known: tuple[tuple[object, ...], ClusterSums] | None = None
        """What the points of each cluster sum up to, and of what these are."""
        self.search = SearchBox(
            lambda: names_in(session),
            lambda hit: show_search_result(workspace, hit),
            lambda: are_many_names(session),
        )
        self.slider = ClusterSlider(session.clusters)
        self.table = ClusterTable(
            session.selection, lambda cluster, name: self.edits.name(cluster, name)
        )
        self.message = text_label(role="warning")
        self.edits = ClusterEdits(session, self.table, self._palette, self.tell)
        self._connections = Connections()
        self._connections.add(self.edits, self.slider, self.table)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        for part in (self.search, self.slider, self.table, self.message, self.edits):
            column.addWidget(part, int(part is self.table))
        self.tell("")

    def close(self) -> None:
        """Close the views of the session."""
        self.search.close_worker()
        self._connections.close()

    def tell(self, message: str) -> None:
        """Show a sentence below the table; "" takes it away."""
        show_text(self.message, message)

    def refresh(self, column: str) -> None:
        """Bring the table up to date; purity is told by this metadata column."""
        session, snapshot = self._session, self._session.snapshot
        if snapshot is None:
            self.table.set_rows(NO_CLUSTERS)
            return
        clusters = session.clusters.clusters
        rows = ClusterStatistics.of(
            clusters,
            self._palette.of(clusters),
            self._sums(snapshot, self._levels_of(column)),
            is_colored=session.look.color_by == CLUSTER,
        )
        self.table.set_rows(rows)

    def _sums(self, snapshot: Snapshot, levels: pd.Series | None) -> ClusterSums:
        """Return what the points of each cluster sum up to.

        That is the same after each click, and after most edits.
        """
        labels, known = self._session.clusters.labels, self._known
        given = snapshot.pressure, snapshot.stretch, levels
        is_same = known is not None and all(map(operator.is_, known[0], given))
        if known is None or not is_same or not known[1].are_of(labels):
            known = given, ClusterSums.of(labels, *given)
        self._known = known
        return known[1]

    def _levels_of(self, column: str) -> pd.Series | None:
        """Return each point's value of a column; None for one of measurements.

        These are seldom equal: no cluster is pure.
        """
        dataset = self._session.dataset
        if dataset is None or column not in dataset.obs:
            return None
        obs, known = dataset.obs, self._levels
        if known is None or known[0] is not obs or known[1] != column:
            values = obs[column]
            levels = None if is_continuous(values) else as_levels(values).rename(column)
            self._levels = known = obs, column, levels
        return known[2]
