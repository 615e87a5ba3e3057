"""The inspector dock: the table of clusters, and details of the selected ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QSize, Qt, QTimer
from qtpy.QtGui import QKeyEvent, QKeySequence, QShortcut
from qtpy.QtWidgets import QSplitter, QVBoxLayout, QWidget

from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.export.plots import ExpressionPlot, VolcanoPlot
from napari_embedding_game.session.cluster_report import ClusterReport, as_levels
from napari_embedding_game.session.session import State, sentence
from napari_embedding_game.ui.compat import main_window_of
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.game_dock import Closing
from napari_embedding_game.ui.inspector.cluster_pane import ClusterPane
from napari_embedding_game.ui.inspector.details_pane import DetailsPane
from napari_embedding_game.ui.inspector.dot_plot_pane import DotPlotPane
from napari_embedding_game.ui.inspector.markers_pane import MarkersPane
from napari_embedding_game.ui.inspector.plate_pane import PlatePane
from napari_embedding_game.ui.inspector.report_worker import ReportWorker
from napari_embedding_game.ui.inspector.scatter_pane import ScatterPane
from napari_embedding_game.ui.inspector.teaching.teach_pane import TeachPane
from napari_embedding_game.ui.shortcuts import InspectorShortcuts
from napari_embedding_game.ui.style.coloring import (
    choice_of_value,
    composition_columns,
    name_of,
)
from napari_embedding_game.ui.style.form_widgets import ignore_idle_wheel
from napari_embedding_game.ui.style.level_click import select_rows
from napari_embedding_game.ui.style.theme import theme_colors
from napari_embedding_game.ui.workspace import leave_workspace

if TYPE_CHECKING:
    import napari

    from napari_embedding_game.ui.workspace import Workspace

HINT_NO_DATA = "Open data and press Run: here you will see what is in each cluster."
HINT_NO_MAP = "Press Run, then click on the map to see what is in a cluster."
HINT_NO_CLUSTER = (
    "Click on the map or in the table to see what is in a cluster.\n"
    "Ctrl-click adds another one, Escape clears."
)
HINT_LOOKING = "Looking inside …"
REFRESH_MS = 500
"""Between two updates while the game runs."""
SOON_MS = 30
"""Edits that follow each other faster than this are shown together."""
KEYS = ("Ctrl+F", "/")
"""Lead to the search box from anywhere in the window."""
SHARE = 0.25
"""Of the window's height, which the dock begins with: the map is to be seen."""
LOWEST, HIGHEST = 200, 270
"""Pixels that this is at least and at most."""
WIDEST_TABLE = 560
"""Pixels of the clusters' table at most: the pictures beside it need more room."""


class InspectorDock(QWidget):
    """Shows the clusters of a session, and what is inside the selected ones.

    Parameters
    ----------
    viewer : napari.Viewer
    workspace : Workspace
    """

    def __init__(self, viewer: napari.Viewer, workspace: Workspace) -> None:
        super().__init__()
        self._viewer = viewer
        self.workspace = workspace
        workspace.docks.add(self)
        self._session = session = workspace.session
        self._draw_number = 0
        self._picked = False
        self._is_column_chosen = False
        """Whether a person has said which column clusters are told by."""
        self._context: tuple[int, ...] = ()
        self.report: ClusterReport | None = None
        self._linked = workspace.linked
        self._report_worker = ReportWorker(session, self)
        self.clusters = ClusterPane(workspace)
        self.details = DetailsPane(
            MarkersPane(session, self._on_gene),
            DotPlotPane(session, workspace.palette, self._on_gene),
            ScatterPane(session, workspace.palette),
            PlatePane(session),
            TeachPane(session, workspace.teaching, self._on_pick),
            self._on_pick,
        )
        self._timer = QTimer(self)
        self._timer.setInterval(REFRESH_MS)
        self._timer.timeout.connect(self.refresh)
        self._soon = QTimer(self)  # a child: it ends with the widget
        self._soon.setSingleShot(True)
        self._soon.timeout.connect(self.refresh)
        self._connections = Connections()
        for kind, find in self._plots():
            workspace.plots.offer(kind, find)
        self._build()
        self._connect()
        self._on_theme()
        self._on_dataset(session.dataset)
        self._closing = Closing(self, self._release)

    def _release(self) -> None:
        self._connections.close()
        for kind, find in self._plots():
            self.workspace.plots.withdraw(kind, find)
        self.setEnabled(False)
        is_with_window = self._closing.is_with_window
        leave_workspace(self._viewer, self.workspace, self, with_window=is_with_window)

    def close(self) -> bool:
        """Undo the connections to session and viewer, and go, once."""
        self._closing.close()
        return True

    def sizeHint(self) -> QSize:
        """Return a height that shows two rows of pictures; less in a low window."""
        height = round(SHARE * main_window_of(self).height())
        return QSize(900, min(max(height, LOWEST), HIGHEST))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Clear the selection on Escape, as the canvas does."""
        if event.key() == Qt.Key.Key_Escape:
            self._session.selection.clear()
        else:
            super().keyPressEvent(event)

    def refresh(self) -> None:
        """Bring table and report up to date; the report in the background."""
        session, column = self._session, self.details.column.value or ""
        self.workspace.composition_column = column
        self.clusters.refresh(column)
        self.details.dot_plot.refresh()
        self.details.scatter.refresh()
        self.details.plate.refresh()
        if session.snapshot is None or session.selection.is_empty:
            self.report = None
            has_map = session.snapshot is not None
            hint = HINT_NO_MAP if session.dataset is not None else HINT_NO_DATA
            hint = HINT_NO_CLUSTER if has_map else hint
            self.details.say(hint, has_map=has_map)
            return
        clusters = self._told()
        if self.report is None:
            self.details.say(HINT_LOOKING, has_map=True)
        else:
            self._show_names(clusters)
        self._report_worker.ask(clusters, column, self._draw_number)

    # Making

    def _plots(self) -> tuple[tuple[type, Callable[..., Any]], ...]:
        """Return what draws the plots that figures can have."""
        return (
            (ExpressionPlot, self.details.dot_plot.plot),
            (VolcanoPlot, self.details.markers.plot),
        )

    def _build(self) -> None:
        splitter = QSplitter(Qt.Orientation.Horizontal)
        splitter.addWidget(self.clusters)
        splitter.addWidget(self.details)
        splitter.setStretchFactor(0, 2)
        splitter.setStretchFactor(1, 3)
        self.clusters.setMaximumWidth(WIDEST_TABLE)
        splitter.setSizes([460, 640])
        layout = QVBoxLayout(self)
        layout.setContentsMargins(4, 2, 4, 2)
        layout.addWidget(splitter)
        self.setMinimumHeight(170)
        ignore_idle_wheel(self)

    def _connect(self) -> None:
        session = self._session
        for signal, slot in (
            (session.selection.changed, self._on_selection),
            (session.clusters.changed, self._on_clusters),
            (session.dataset_changed, self._on_dataset),
            (session.columns_changed, self._on_columns),
            (session.state_changed, self._on_state),
            (session.look.events.color_by, self._on_color_by),
            (self._linked.changed, self._on_linked),
            (self._viewer.events.theme, self._on_theme),
        ):
            self._connections.connect(signal, slot)
        self._report_worker.answered.connect(self._on_report)
        self._report_worker.outdated.connect(self.refresh)
        self._report_worker.failed.connect(self._on_failed)
        self.details.column.changed.connect(self._on_column)
        self.details.composition.picked.connect(self._on_levels)
        self.details.another.changed.connect(self._draw_again)
        self.details.thumbnails.pictures.failed.connect(self.clusters.tell)
        edits = self.clusters.edits
        teach = self.details.teach
        undoing = [edits.undo, edits.redo, teach.undo, teach.redo]
        self.addActions([edits.rename, *undoing, *teach.keys])
        self._keys = InspectorShortcuts(
            self, self._viewer, [edits.rename], undoing, teach.keys
        )
        teach.shown_changed.connect(self._on_teach_shown)
        self._connections.add(
            self._report_worker, self.details, self.clusters, self._keys
        )
        self._connections.call(self._soon.stop)
        self._connections.call(self._timer.stop)
        for key in KEYS:
            QShortcut(QKeySequence(key), self, self.clusters.search.begin)

    # What happens

    def _on_teach_shown(self, is_shown: bool) -> None:
        """Let the keys of undoing mean the boxes while these are seen."""
        self.clusters.edits.let_have_keys(not is_shown)
        self.details.teach.let_have_keys(is_shown)

    def _on_theme(self) -> None:
        colors = theme_colors(self._viewer.theme)
        self.setStyleSheet(colors.sheet)
        self.clusters.search.set_theme(colors)
        self.details.set_theme(colors)

    def _on_gene(self, name: str) -> None:
        dataset = self._session.dataset
        if dataset is not None:
            self._session.look.color_by = choice_of_value(name, dataset)

    def _on_dataset(self, dataset: Dataset | None) -> None:
        self._report_worker.set_dataset(dataset)
        columns = composition_columns(dataset) if dataset else []
        self.details.offer_columns(columns)
        self._is_column_chosen = False
        self._begin_with_column()
        self.clusters.search.begin_anew()
        self.clusters.tell("")
        self._on_linked()
        self.refresh()

    def _on_columns(self) -> None:
        """Offer a column that came later, and keep the one that is told by."""
        dataset, present = self._session.dataset, self.details.column.value
        if dataset is not None:
            self.details.offer_columns(composition_columns(dataset))
            if present in self.details.column.choices:  # else there was none
                self._show_column(present)
            self._begin_with_column()
            self.details.plate.set_dataset(dataset)
            self.clusters.search.forget()
            self.refresh()

    def _on_column(self) -> None:
        self._is_column_chosen = True
        self.refresh()

    def _show_column(self, column: str) -> None:
        with self.details.column.changed.blocked():
            self.details.column.value = column

    def _begin_with_column(self) -> None:
        """Tell of clusters by the column that they explain best, if none was chosen."""
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
        self.clusters.refresh(self.details.column.value or "")  # dots come and go
        self.details.dot_plot.mark()

    def _on_state(self, state: State) -> None:
        if state == "running":
            self._timer.start()
        else:
            self._timer.stop()
            self._begin_with_column()
            # the snapshot that brought the new state is taken up right after it
            self._soon.start(0)
            self.details.markers.refresh()

    def _on_clusters(self) -> None:
        self.clusters.search.forget()
        if not self._timer.isActive():
            self._soon.start(SOON_MS)

    def _on_selection(self) -> None:
        selection = self._session.selection
        self.details.dot_plot.mark()
        self.details.scatter.recolor()
        self.details.plate.refresh()
        self.details.teach.follow()
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
        """Select the points of some values of the column that is told by."""
        dataset, column = self._session.dataset, self.details.column.value
        if dataset is not None and column:
            rows = as_levels(dataset.obs[column]).isin(levels).to_numpy()
            select_rows(self._session.selection, rows, is_added=is_added)

    def _draw_again(self) -> None:
        self._draw_number += 1
        self.refresh()

    # What is told

    def _told(self) -> tuple[int, ...]:
        """Return the clusters that are described; none: the selected points are.

        Who picks a picture of a cluster goes on seeing the cluster.
        """
        selection = self._session.selection
        if not selection.is_of_points:
            return selection.clusters
        present = self._session.clusters.clustering.by_id
        return tuple(c for c in self._context if c in present)

    def _on_report(self, report: ClusterReport, clusters: tuple[int, ...]) -> None:
        selection = self._session.selection
        if clusters != self._told() or selection.is_empty:
            return
        self.report = report
        self._show_names(clusters)
        self.details.show_report(report, clusters)
        if selection.is_of_points and clusters:
            self.details.follow(selection.rows)

    def _on_failed(self, error: BaseException) -> None:
        self.details.say(sentence(error))

    def _show_names(self, clusters: tuple[int, ...]) -> None:
        known = self._session.clusters.clustering.by_id
        notes = [known[c].note for c in clusters if c in known]
        note = "\n".join(note for note in notes if note)
        self.details.name(self._title(clusters), note)

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
