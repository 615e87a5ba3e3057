"""The inspector: the clusters as a table, and what is inside the chosen ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from magicgui.widgets import ComboBox, PushButton
from numpy.typing import NDArray
from qtpy.QtCore import QSize, Qt, QTimer
from qtpy.QtGui import QKeyEvent, QKeySequence, QShortcut
from qtpy.QtWidgets import (
    QHBoxLayout,
    QScrollArea,
    QSplitter,
    QStackedLayout,
    QTabWidget,
    QVBoxLayout,
    QWidget,
)

from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.session.report import ClusterReport, Reporter, as_levels
from napari_embedding_game.session.search import Hit
from napari_embedding_game.session.session import Session, State, sentence
from napari_embedding_game.ui import search_box
from napari_embedding_game.ui.cluster_colors import palette_of
from napari_embedding_game.ui.cluster_edits import ClusterEdits
from napari_embedding_game.ui.cluster_rows import NO_ROWS, ClusterRows
from napari_embedding_game.ui.cluster_slider import ClusterSlider
from napari_embedding_game.ui.cluster_table import ClusterTable
from napari_embedding_game.ui.coloring import metadata_columns
from napari_embedding_game.ui.dock import Closing
from napari_embedding_game.ui.flight import flight_of
from napari_embedding_game.ui.inside import CompositionBars, ContrastBars
from napari_embedding_game.ui.linked import linked_layers
from napari_embedding_game.ui.markers_pane import MarkersPane
from napari_embedding_game.ui.parts import show_text, text_label
from napari_embedding_game.ui.pictures import LooksWatch, pictures_of
from napari_embedding_game.ui.search_box import SearchBox
from napari_embedding_game.ui.texts import Texts
from napari_embedding_game.ui.theme import theme_colors
from napari_embedding_game.ui.thumbnails import Thumbnails
from napari_embedding_game.ui.worker import Worker

if TYPE_CHECKING:
    import napari

HINT_NO_MAP = "Run the game, then click on the map to see what is in a cluster."
HINT_NO_CLUSTER = (
    "Click on the map or in the table to see what is in a cluster.\n"
    "Ctrl-click adds another one, Escape clears."
)
REFRESH_MS = 500
"""Between two updates while the game runs."""
SOON_MS = 30
"""Edits that follow each other faster than this are shown together."""
N_TEXTS = 200
LEFT_NARROWEST, TABS_NARROWEST = 168, 210
"""Pixels in which names and numbers can still be read."""
KEYS = ("Ctrl+F", "/")
"""Lead to the search box from anywhere in the window."""


class InspectorDock(QWidget):
    """Shows the clusters of a session, and what is inside the selected ones.

    Parameters
    ----------
    viewer : napari.Viewer
    session : Session
    """

    def __init__(self, viewer: napari.Viewer, session: Session) -> None:
        super().__init__()
        self._viewer = viewer
        self._session = session
        self._reporter: Reporter | None = None
        self._worker: Worker | None = None
        self._again = False
        self._draw_number = 0
        self._picked = False
        self._context: tuple[int, ...] = ()
        self._levels: tuple[object, str, NDArray[np.integer]] | None = None
        self.report: ClusterReport | None = None
        self._palette = palette_of(session)
        self._linked = linked_layers(session)
        self._make()
        self._build()
        self._connect()
        self._on_theme()
        self._on_dataset(session.dataset)
        self._closing = Closing(self, self.shut_down)

    def shut_down(self) -> None:
        """Let go of session and viewer."""
        self._timer.stop()
        self._soon.stop()
        self._viewer.events.theme.disconnect(self._on_theme)
        session = self._session
        session.selection.changed.disconnect(self._on_selection)
        session.clusters.changed.disconnect(self._on_clusters)
        session.dataset_changed.disconnect(self._on_dataset)
        session.state_changed.disconnect(self._on_state)
        session.look.events.color_by.disconnect(self._on_color_by)
        self._linked.changed.disconnect(self._on_linked)
        self.table.close_table()
        for part in (self.slider, self.edits, self.markers):
            part.shut_down()
        self._looks.watch(None)
        self.thumbnails.pictures.stop()
        if self._worker is not None:
            self._worker.abandon(1.0)
        self.setEnabled(False)

    def sizeHint(self) -> QSize:
        """Return a height that shows two rows of pictures."""
        return QSize(900, 270)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Clear the selection on Escape, as the canvas does."""
        if event.key() == Qt.Key.Key_Escape:
            self._session.selection.clear()
        else:
            super().keyPressEvent(event)

    # Making

    def _make(self) -> None:
        session = self._session
        self.table = ClusterTable(
            session.selection, lambda cluster, name: self.edits.name(cluster, name)
        )
        self.edits = ClusterEdits(session, self.table, self._palette, self._tell)
        self.slider = ClusterSlider(session.clusters)
        self.search = SearchBox(self._names, self._on_found)
        self.message = text_label(role="warning")
        self.hint = text_label(HINT_NO_MAP)
        self.hint.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.title = text_label("", "title")
        self.numbers = text_label()
        self.note = text_label(role="plain")
        self.column = ComboBox(
            choices=[],
            tooltip="Which metadata column composition and purity are told by.",
        )
        self.another = PushButton(
            text="Shuffle", tooltip="Show the members in another order."
        )
        self.composition = CompositionBars()
        self.contrasts = ContrastBars()
        self.markers = MarkersPane(session, self._on_gene)
        self.thumbnails = Thumbnails(self._on_pick)
        self.texts = Texts(self._on_pick)
        self._looks = LooksWatch(self._on_looks)
        self._timer = QTimer(self)
        self._timer.setInterval(REFRESH_MS)
        self._timer.timeout.connect(self.refresh)
        self._soon = QTimer(self)  # a child: it ends with the widget
        self._soon.setSingleShot(True)
        self._soon.timeout.connect(self.refresh)

    def _build(self) -> None:
        self.tabs = QTabWidget()
        self.tabs.setDocumentMode(True)
        self.tabs.tabBar().setDrawBase(False)
        inside = QWidget()
        panes = QHBoxLayout(inside)
        panes.setContentsMargins(8, 4, 4, 4)
        panes.setSpacing(10)
        left = _scrolled(self._left_pane())
        left.setMinimumWidth(LEFT_NARROWEST)
        self.tabs.setMinimumWidth(TABS_NARROWEST)
        panes.addWidget(left, 2)
        panes.addWidget(self.tabs, 3)
        self._stack = QStackedLayout()
        self._stack.addWidget(self.hint)
        self._stack.addWidget(inside)
        right = QWidget()
        right.setLayout(self._stack)
        splitter = QSplitter(Qt.Orientation.Horizontal)
        splitter.addWidget(self._cluster_pane())
        splitter.addWidget(right)
        splitter.setStretchFactor(1, 1)
        splitter.setSizes([460, 640])
        layout = QVBoxLayout(self)
        layout.setContentsMargins(4, 2, 4, 2)
        layout.addWidget(splitter)
        self.setMinimumHeight(170)

    def _cluster_pane(self) -> QWidget:
        pane = QWidget()
        column = QVBoxLayout(pane)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        for part in (self.search, self.slider, self.table, self.message, self.edits):
            column.addWidget(part, int(part is self.table))
        self._tell("")
        return pane

    def _left_pane(self) -> QWidget:
        pane = QWidget()
        column = QVBoxLayout(pane)
        column.setContentsMargins(0, 0, 6, 0)
        column.setSpacing(4)
        head = QHBoxLayout()
        head.addWidget(self.title, 1)
        head.addWidget(self.another.native)
        column.addLayout(head)
        column.addWidget(self.numbers)
        column.addWidget(self.note)
        column.addWidget(self.column.native)
        column.addWidget(self.composition)
        column.addStretch(1)
        return pane

    def _connect(self) -> None:
        session = self._session
        session.selection.changed.connect(self._on_selection)
        session.clusters.changed.connect(self._on_clusters)
        session.dataset_changed.connect(self._on_dataset)
        session.state_changed.connect(self._on_state)
        session.look.events.color_by.connect(self._on_color_by)
        self._linked.changed.connect(self._on_linked)
        self.column.changed.connect(self.refresh)
        self.another.changed.connect(self._draw_again)
        self._viewer.events.theme.connect(self._on_theme)
        # Their keys work wherever in this dock the cursor is.
        self.addActions([self.edits.undo, self.edits.redo])
        for key in KEYS:
            QShortcut(QKeySequence(key), self, self.search.begin)

    def _on_theme(self) -> None:
        colors = theme_colors(self._viewer.theme)
        self.setStyleSheet(colors.sheet)
        self.search.set_theme(colors)
        for view in (self.composition, self.contrasts):
            view.set_theme(colors)

    # What is found by name

    def _names(self) -> dict[str, Sequence[str]]:
        """Return all that can be searched, by what it is called."""
        dataset = self._session.dataset
        if dataset is None:
            return {}
        clusters = self._session.clusters.clusters
        names = {search_box.CLUSTER: [cluster.name for cluster in clusters]}
        if dataset.images is None:  # else they are pixels
            names[search_box.GENE] = dataset.profile_names
        names[search_box.COLUMN] = metadata_columns(dataset)
        names[search_box.CELL] = list(map(str, dataset.obs.index))
        return names

    def _on_found(self, hit: Hit) -> None:
        if hit.kind == search_box.CLUSTER:
            clusters = self._session.clusters.clusters
            found = [c.id for c in clusters if c.name == hit.name]
            self._session.selection.replace(found)
        elif hit.kind == search_box.CELL:
            self._session.selection.select_points(np.array([hit.index]))
            flight_of(self._session).asked.emit(hit.index)
        else:
            self._session.look.color_by = hit.name

    # What happens

    def _tell(self, message: str) -> None:
        show_text(self.message, message)

    def _on_gene(self, name: str) -> None:
        self._session.look.color_by = name

    def _on_dataset(self, dataset: Dataset | None) -> None:
        self._reporter = Reporter(dataset) if dataset else None
        columns = metadata_columns(dataset) if dataset else []
        with self.column.changed.blocked():
            self.column.choices = columns
        self.column.native.setVisible(bool(columns))
        self.search.forget()
        self._tell("")
        self._on_linked()
        self.refresh()

    def _on_linked(self) -> None:
        """Offer a tab for each kind of thing that is known of the rows."""
        dataset, linked = self._session.dataset, self._linked.current
        self._looks.watch(linked)
        pictures = pictures_of(dataset, linked)
        self.thumbnails.pictures.set_pictures(pictures)
        if dataset is not None:
            names = dataset.obs.index
            self.thumbnails.pictures.row_name = lambda row: str(names[row])
        self.tabs.clear()
        has_texts = dataset is not None and dataset.texts is not None
        if pictures is not None:
            self.tabs.addTab(self.thumbnails, "Pictures")
        if has_texts:
            self.tabs.addTab(self.texts, "Texts")
        if dataset is None or dataset.images is None:  # single pixels tell nothing
            self.tabs.addTab(self.markers, "Markers")
            self.tabs.addTab(_scrolled(self.contrasts), "Differences")
        self.another.native.setVisible(pictures is not None or has_texts)

    def _on_looks(self) -> None:
        """Cut the pictures anew: an image layer has other colours now."""
        model = self.thumbnails.pictures
        rows = model.rows
        model.set_pictures(pictures_of(self._session.dataset, self._linked.current))
        self.thumbnails.set_rows(rows)

    def _on_color_by(self, choice: str) -> None:
        if choice in self.column.choices:
            self.column.value = choice

    def _on_state(self, state: State) -> None:
        if state == "running":
            self._timer.start()
        else:
            self._timer.stop()
            # the snapshot that brought the new state is taken up right after it
            self._soon.start(0)
            self.markers.refresh()

    def _on_clusters(self) -> None:
        self.search.forget()
        if not self._timer.isActive():
            self._soon.start(SOON_MS)

    def _on_selection(self) -> None:
        if self._picked or self._is_in_view():
            self._follow_rows()
            return  # one of the pictures or texts, which stay
        self._context = self._session.selection.clusters
        self._draw_number = 0
        self.refresh()
        self.markers.refresh()

    def _is_in_view(self) -> bool:
        """Whether one point is selected whose picture or text is among those shown."""
        selection = self._session.selection
        if not selection.is_of_points or self.report is None:
            return False
        rows = selection.rows
        if len(rows) != 1:
            return False
        has_pictures = self.tabs.indexOf(self.thumbnails) >= 0
        is_pictured = has_pictures and bool(self.thumbnails.pictures.places(rows))
        has_texts = self.tabs.indexOf(self.texts) >= 0
        return is_pictured or (has_texts and self.texts.holds(int(rows[0])))

    def _follow_rows(self) -> None:
        """Mark the pictures and texts of the selected points."""
        rows = self._session.selection.rows
        self.thumbnails.follow(rows)
        self.texts.follow(rows)

    def _on_pick(self, rows: NDArray[np.intp]) -> None:
        self._picked = True
        try:
            self._session.selection.select_points(rows)
        finally:
            self._picked = False

    def _draw_again(self) -> None:
        self._draw_number += 1
        self.refresh()

    def refresh(self) -> None:
        """Bring table and report up to date; the report in the background."""
        snapshot, selection = self._session.snapshot, self._session.selection
        self.table.set_rows(self._rows())
        if snapshot is None or selection.is_empty or self._reporter is None:
            self.report = None
            self.hint.setText(HINT_NO_CLUSTER if snapshot else HINT_NO_MAP)
            self._stack.setCurrentIndex(0)
            return
        clusters = self._told()
        if self.report is not None:
            self._show_names(clusters)
        if self._worker is not None:
            self._again = True
            return
        reporter, column = self._reporter, self.column.value or ""
        seed, pressure = self._draw_number, snapshot.pressure
        labels, asked = self._session.clusters.labels, clusters
        if not clusters:
            clusters, labels = (1,), selection.points.astype(np.int8)
        self._worker = Worker(
            lambda: reporter.describe(
                clusters,
                labels,
                pressure,
                column=column,
                n_draw=len(labels),
                seed=seed,
            )
        )
        self._worker.returned.connect(lambda report: self._on_report(report, asked))
        self._worker.failed.connect(self._on_failed)
        self._worker.begin()

    def _rows(self) -> ClusterRows:
        session, snapshot = self._session, self._session.snapshot
        if snapshot is None:
            return NO_ROWS
        clusters = session.clusters.clusters
        return ClusterRows.of(
            clusters,
            self._palette.of(clusters),
            session.clusters.labels,
            snapshot.pressure,
            self._level_numbers(),
        )

    def _level_numbers(self) -> NDArray[np.integer] | None:
        """Return the number of each point's value of the chosen column."""
        dataset, column = self._session.dataset, self.column.value
        if dataset is None or column not in dataset.obs:
            return None
        if self._levels is None or self._levels[:2] != (dataset, column):
            codes = as_levels(dataset.obs[column]).cat.codes.to_numpy(np.int64)
            self._levels = (dataset, column, codes)
        return self._levels[2]

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
        self._worker = None
        if self._again:
            self._again = False
            self.refresh()
        if clusters == self._told() and not self._session.selection.is_empty:
            self._show(report, clusters)

    def _on_failed(self, error: BaseException) -> None:
        self._worker = None
        self.hint.setText(sentence(error))
        self._stack.setCurrentIndex(0)

    def _show(self, report: ClusterReport, clusters: tuple[int, ...]) -> None:
        dataset = self._session.dataset
        if dataset is None:
            return
        self.report = report
        self._show_names(clusters)
        show_text(
            self.numbers,
            f"{_count(report.size)}, {report.share:.1%} of all  ·  "
            f"{report.pressured_share:.0%} under pressure "
            f"(mean {report.mean_pressure:.2g})",
        )
        self.composition.set_shares(report.composition)
        self.contrasts.set_contrasts(report.contrasts)
        self.thumbnails.set_rows(report.draw)
        if dataset.texts is not None:
            rows = report.draw[:N_TEXTS]
            self.texts.set_texts(rows, [dataset.texts[row] for row in rows])
        if self._session.selection.is_of_points and clusters:
            self._follow_rows()
        self._stack.setCurrentIndex(1)

    def _show_names(self, clusters: tuple[int, ...]) -> None:
        show_text(self.title, self._title(clusters))
        known = self._session.clusters.clustering.by_id
        notes = [known[c].note for c in clusters if c in known]
        show_text(self.note, "\n".join(note for note in notes if note))

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


def _count(size: int) -> str:
    return "1 point" if size == 1 else f"{size:,} points"


def _scrolled(widget: QWidget) -> QScrollArea:
    area = QScrollArea()
    area.setWidgetResizable(True)
    area.setFrameShape(QScrollArea.Shape.NoFrame)
    area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    area.setWidget(widget)
    return area
