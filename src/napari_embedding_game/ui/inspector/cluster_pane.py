"""The clusters of the map: search box, list, and slider of their number.

Edits and their menu are in :mod:`cluster_edits`.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from qtpy.QtCore import Qt

from napari_embedding_game.core.snapshot import MISPLACED_STRETCH
from napari_embedding_game.data.columns import share_text
from napari_embedding_game.data.palette import cluster_colors, to_hex_colors
from napari_embedding_game.session.clusters.landmark_merge import LandmarkMerge
from napari_embedding_game.session.firmness import Firmness, make_firmness_job
from napari_embedding_game.ui.connections import Listener
from napari_embedding_game.ui.inspector.cluster_edits import ClusterEdits
from napari_embedding_game.ui.inspector.cluster_slider import ClusterSlider
from napari_embedding_game.ui.inspector.search_box import SearchBox
from napari_embedding_game.ui.style.form_widgets import CTRL, TextLabel
from napari_embedding_game.ui.style.layouts import vertical_box
from napari_embedding_game.ui.style.table import Table, TableColumn
from napari_embedding_game.ui.tasks.errors import log_error
from napari_embedding_game.ui.tasks.worker import JobRunner
from napari_embedding_game.ui.workspace import Workspace

NAME, SIZE, MISPLACED = range(3)
SIZE_TIP = "How many points it has. Its area on the map says little of that."
MIN_WARNING_SHARE = 0.02
"""Share of misplaced points from which on the share has the colour of a warning."""
COLUMNS = (
    TableColumn(
        "Cluster",
        "Name of the cluster, or its number. Double-click to rename it, "
        f"{CTRL}-click a second one to compare the two.",
        is_editable=True,
    ),
    TableColumn("Points", SIZE_TIP, "{:,}".format, has_bar=True),
    TableColumn(
        "Misplaced",
        f"Share of its points that lie far from similar points: doubt these. Amber "
        f"from {MIN_WARNING_SHARE:.0%} on.",
        share_text,
        warns_from=MIN_WARNING_SHARE,
    ),
)
MAX_ROWS, MIN_ROWS = 14, 8
"""Visible rows of the list, at most and at least."""


class ClusterPane(Listener):
    """Lists the clusters of a session, to select and edit clusters."""

    def __init__(self, workspace: Workspace) -> None:
        super().__init__(session := workspace.session)
        self.search = SearchBox(workspace)
        self.slider = ClusterSlider(session)
        self.table = Table(
            *COLUMNS, selects_many=True, max_rows=MAX_ROWS, min_rows=MIN_ROWS
        )
        self.table.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.table.sortByColumn(SIZE, Qt.SortOrder.DescendingOrder)
        self.message = TextLabel(role="warning")
        self.edits = ClusterEdits(session, self.table, self.message)
        self.table.cell_edited.connect(
            lambda cluster, name: self.edits.rename_cluster(
                cluster, name, self.table.source
            )
        )
        self.table.rows_picked.connect(self._on_clusters_picked)
        self._firmness_job = JobRunner(
            self,
            self._on_firmness_computed,
            self._on_firmness_failed,
            self._on_firmness_computed,
        )
        self._asked_merging: LandmarkMerge | None = None
        """The merging of the latest request of firmness."""
        # A name that is being typed belongs to the clusters of the former data.
        self._connections.connect(self.table.close_open_editor, session.dataset_changed)
        self.connect_while_open(self._mark_selected_clusters, session.selection.changed)
        self.connect_while_open(self.update_view, session.dataset_changed)
        self.call_soon_after_map_changes(self.update_view)
        self.setLayout(vertical_box(self.table, self.slider))
        self.update_view()

    def update_view(self) -> None:
        """List the present clusters and request the firmness of their numbers.

        Without a map the list is empty.  The column of misplaced points is hidden where
        the shares are not known.
        """
        session, snapshot = self._session, self._session.snapshot
        clusters = session.clusters.clusters if snapshot is not None else ()
        ids = [cluster.id for cluster in clusters]
        sizes = np.array([cluster.size for cluster in clusters], int)
        misplaced = np.full(len(ids), np.nan)
        if snapshot is not None and snapshot.stretch is not None:
            are_far = snapshot.stretch > MISPLACED_STRETCH
            misplaced = np.bincount(session.clusters.labels, are_far)[ids] / sizes
        frame = pd.DataFrame(
            {
                "name": [cluster.name for cluster in clusters],
                "size": sizes,
                "misplaced": misplaced,
            },
            index=pd.Index(ids, dtype=object),
        )
        colors = to_hex_colors(cluster_colors(clusters))
        self.table.show_frame(
            frame,
            colors=dict(zip(ids, colors, strict=True)),
            tips={cluster.id: cluster.note for cluster in clusters},
            source=session.clusters.clustering,
        )
        self._mark_selected_clusters(scrolls=False)  # a person may be scrolling
        self.table.setColumnHidden(MISPLACED, bool(np.isnan(misplaced).any()))
        self._request_firmness()

    def _request_firmness(self) -> None:
        """Compute in a thread how firm each number of clusters is, once points rest.

        A former computation is stopped and its bars are hidden.  Does nothing while
        this is hidden, or where the merging of landmarks is that of the latest request.
        """
        session = self._session
        merging = None if session.is_moving else session.merging
        if merging is self._asked_merging or not self.isVisible():
            return
        self._asked_merging = merging
        self._firmness_job.stop()
        self.slider.strip.show_firmness(None)
        job = make_firmness_job(session)
        if job is not None:
            self._firmness_job.submit(job)

    def _on_firmness_computed(self, firmness: Firmness) -> None:
        """Show a partial or complete firmness, unless it is of a former merging."""
        if firmness.merging is self._asked_merging:
            self.slider.strip.show_firmness(firmness)

    def _on_firmness_failed(self, error: BaseException) -> None:
        """Write the error to the log only: the bars are left out."""
        log_error("How firm the clusters are", error)

    def _on_clusters_picked(self, keys: list[int], is_added: bool) -> None:
        """Select the picked clusters that still exist: a game may have merged some."""
        present = self._session.clusters.find_clusters(keys)
        self._session.selection.select_clusters(cluster.id for cluster in present)

    def _mark_selected_clusters(self, *, scrolls: bool = True) -> None:
        """Mark the rows of the selected clusters, and scroll to them if wanted."""
        self.table.select_keys(self._session.selection.clusters, scrolls=scrolls)
