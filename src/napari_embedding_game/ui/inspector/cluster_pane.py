"""The clusters of the map: search, list, number and edits."""

from __future__ import annotations

from qtpy.QtCore import QTimer
from qtpy.QtWidgets import QVBoxLayout, QWidget

from napari_embedding_game.session.view import CLUSTERS
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.inspector.cluster_edits import ClusterEdits
from napari_embedding_game.ui.inspector.cluster_slider import ClusterSlider
from napari_embedding_game.ui.inspector.cluster_table import (
    NO_CLUSTERS,
    ClusterRows,
    ClusterTable,
    misplaced_shares,
)
from napari_embedding_game.ui.inspector.search_box import SearchBox
from napari_embedding_game.ui.style.coloring import CLUSTER
from napari_embedding_game.ui.style.form_widgets import show_text, text_label
from napari_embedding_game.ui.style.theme import ThemeColors
from napari_embedding_game.ui.workspace import Workspace

REFRESH_MS = 500
"""Between two updates while the game runs."""
SOON_MS = 30
"""Edits that follow each other faster than this are shown together."""


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
        self.search = SearchBox(workspace)
        self.slider = ClusterSlider(session.clusters)
        self.table = ClusterTable(
            session.selection, lambda cluster, name: self.edits.name(cluster, name)
        )
        self.message = text_label(role="warning")
        self.edits = ClusterEdits(session, self.table, self._palette, self.tell)
        self._timer = QTimer(self)
        self._timer.timeout.connect(self.refresh)
        self._connections = Connections(self)
        for signal, slot in (
            (session.clusters.changed, self._on_clusters),
            (session.dataset_changed, self._on_dataset),
            (session.columns_changed, self.search.forget),
            (session.state_changed, self._on_clusters),
            (session.look.events.color_by, self._on_clusters),
            (session.view.hidden_changed, self._on_clusters),
        ):
            self._connections.connect(signal, slot)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        for part in (self.table, self.slider):
            column.addWidget(part)
        self.tell("")
        self.refresh()

    def set_theme(self, colors: ThemeColors) -> None:
        """Take on the colours of napari's theme."""
        self.search.set_theme(colors)
        self.table.clusters.warning = colors.warning
        self.table.viewport().update()

    def tell(self, message: str) -> None:
        """Show a sentence on an edit; "" takes it away."""
        show_text(self.message, message)

    def refresh(self) -> None:
        """Bring the list up to date."""
        session, snapshot = self._session, self._session.snapshot
        if session.state != "running":
            self._timer.stop()
        if snapshot is None:
            self.table.set_rows(NO_CLUSTERS)
            return
        clusters = session.clusters.clusters
        rows = ClusterRows(
            clusters=clusters,
            colors=self._palette.of(clusters),
            misplaced=misplaced_shares(
                clusters, session.clusters.labels, snapshot.stretch
            ),
            is_colored=session.look.color_by == CLUSTER,
            hidden=session.view.hidden_levels(CLUSTERS),
        )
        self.table.set_rows(rows)

    def _on_clusters(self, event: object = None) -> None:
        """Follow soon: changes come in flocks, and with each frame of a game."""
        self.search.forget()
        if self._session.state != "running":
            self._timer.start(SOON_MS)
        elif not self._timer.isActive():
            self._timer.start(REFRESH_MS)

    def _on_dataset(self, dataset: object) -> None:
        self.search.begin_anew()
        self.tell("")
        self.refresh()
