"""The inspector: the clusters as a table, and what is inside the chosen one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from magicgui.widgets import ComboBox, PushButton
from qtpy.QtCore import QSize, Qt, QTimer
from qtpy.QtGui import QKeyEvent
from qtpy.QtWidgets import (
    QHBoxLayout,
    QScrollArea,
    QSplitter,
    QStackedLayout,
    QVBoxLayout,
    QWidget,
)

from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.session.report import ClusterReport, Reporter
from napari_embedding_game.session.session import Session, State, sentence
from napari_embedding_game.ui.cluster_table import ClusterTable
from napari_embedding_game.ui.coloring import metadata_columns
from napari_embedding_game.ui.dock import Closing
from napari_embedding_game.ui.inside import CompositionBars, ContrastBars, Texts
from napari_embedding_game.ui.parts import show_text, text_label
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
N_DRAW = 60


class InspectorDock(QWidget):
    """Shows the selected clusters of a session.

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
        self.report: ClusterReport | None = None
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
        session.dataset_changed.disconnect(self._on_dataset)
        session.state_changed.disconnect(self._on_state)
        session.look.events.color_by.disconnect(self._on_color_by)
        if self._worker is not None:
            self._worker.abandon(1.0)
        self.setEnabled(False)

    def sizeHint(self) -> QSize:
        """Return a height that shows two rows of pictures."""
        return QSize(900, 230)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Clear the selection on Escape, as the canvas does."""
        if event.key() == Qt.Key.Key_Escape:
            self._session.selection.clear()
        else:
            super().keyPressEvent(event)

    # Making

    def _make(self) -> None:
        self.table = ClusterTable(self._session.selection)
        self.hint = text_label(HINT_NO_MAP)
        self.hint.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.title = text_label("", "title")
        self.numbers = text_label()
        self.column = ComboBox(
            choices=[],
            tooltip="Which metadata column the cluster's composition is told by.",
        )
        self.another = PushButton(
            text="Another draw", tooltip="Show other members, drawn at random."
        )
        self.composition = CompositionBars()
        self.contrasts = ContrastBars()
        self.thumbnails = Thumbnails()
        self.texts = Texts()
        self._timer = QTimer(self)
        self._timer.setInterval(REFRESH_MS)
        self._timer.timeout.connect(self.refresh)
        self._soon = QTimer(self)  # a child: it ends with the widget
        self._soon.setSingleShot(True)
        self._soon.timeout.connect(self.refresh)

    def _build(self) -> None:
        inside = QWidget()
        panes = QHBoxLayout(inside)
        panes.setContentsMargins(8, 4, 8, 4)
        panes.setSpacing(16)
        panes.addWidget(_scrolled(self._left_pane()), 2)
        for pane in (self.contrasts, self.thumbnails, self.texts):
            panes.addWidget(pane, 3)
        self._stack = QStackedLayout()
        self._stack.addWidget(self.hint)
        self._stack.addWidget(inside)
        right = QWidget()
        right.setLayout(self._stack)
        splitter = QSplitter(Qt.Orientation.Horizontal)
        splitter.addWidget(self.table)
        splitter.addWidget(right)
        splitter.setStretchFactor(1, 1)
        splitter.setSizes([300, 700])
        layout = QVBoxLayout(self)
        layout.setContentsMargins(4, 2, 4, 2)
        layout.addWidget(splitter)
        self.setMinimumHeight(150)

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
        column.addWidget(self.column.native)
        column.addWidget(self.composition)
        column.addStretch(1)
        return pane

    def _connect(self) -> None:
        session = self._session
        session.selection.changed.connect(self._on_selection)
        session.dataset_changed.connect(self._on_dataset)
        session.state_changed.connect(self._on_state)
        session.look.events.color_by.connect(self._on_color_by)
        self.column.changed.connect(self.refresh)
        self.another.changed.connect(self._draw_again)
        self._viewer.events.theme.connect(self._on_theme)

    def _on_theme(self) -> None:
        colors = theme_colors(self._viewer.theme)
        self.setStyleSheet(colors.sheet)
        for view in (self.composition, self.contrasts):
            view.set_theme(colors)

    # What happens

    def _on_dataset(self, dataset: Dataset | None) -> None:
        self._reporter = Reporter(dataset) if dataset else None
        columns = metadata_columns(dataset) if dataset else []
        with self.column.changed.blocked():
            self.column.choices = columns
        self.column.native.setVisible(bool(columns))
        has_images = dataset is not None and dataset.images is not None
        has_texts = dataset is not None and dataset.texts is not None
        self.thumbnails.setVisible(has_images)
        self.texts.setVisible(has_texts)
        self.contrasts.setVisible(not has_images and not has_texts)
        self.another.native.setVisible(has_images or has_texts)
        self.refresh()

    def _on_color_by(self, choice: str) -> None:
        if choice in self.column.choices:
            self.column.value = choice

    def _on_state(self, state: State) -> None:
        if state == "running":
            self._timer.start()
        else:
            self._timer.stop()
            # the snapshot that brought the new state is taken up right after it
            self._soon.start()

    def _on_selection(self) -> None:
        self._draw_number = 0
        self.refresh()

    def _draw_again(self) -> None:
        self._draw_number += 1
        self.refresh()

    def refresh(self) -> None:
        """Bring table and report up to date; the report in the background."""
        snapshot, clusters = self._session.snapshot, self._session.selection.clusters
        self.table.show_snapshot(snapshot)
        if snapshot is None or not clusters or self._reporter is None:
            self.report = None
            self.hint.setText(HINT_NO_CLUSTER if snapshot else HINT_NO_MAP)
            self._stack.setCurrentIndex(0)
            return
        if self._worker is not None:
            self._again = True
            return
        reporter, column = self._reporter, self.column.value or ""
        seed, labels, pressure = self._draw_number, snapshot.labels, snapshot.pressure
        self._worker = Worker(
            lambda: reporter.describe(
                clusters, labels, pressure, column=column, n_draw=N_DRAW, seed=seed
            )
        )
        self._worker.returned.connect(self._on_report)
        self._worker.failed.connect(self._on_failed)
        self._worker.begin()

    def _on_report(self, report: ClusterReport) -> None:
        self._worker = None
        if self._again:
            self._again = False
            self.refresh()
        if report.clusters == self._session.selection.clusters:
            self._show(report)

    def _on_failed(self, error: BaseException) -> None:
        self._worker = None
        self.hint.setText(sentence(error))
        self._stack.setCurrentIndex(0)

    def _show(self, report: ClusterReport) -> None:
        dataset = self._session.dataset
        if dataset is None:
            return
        self.report = report
        show_text(self.title, _title(report.clusters))
        show_text(
            self.numbers,
            f"{report.size:,} points, {report.share:.1%} of all  ·  "
            f"{report.pressured_share:.0%} under pressure "
            f"(mean {report.mean_pressure:.2g})",
        )
        self.composition.set_shares(report.composition)
        self.contrasts.set_contrasts(report.contrasts)
        if dataset.images is not None:
            self.thumbnails.set_images(dataset.images[report.draw])
        if dataset.texts is not None:
            self.texts.set_texts([dataset.texts[row] for row in report.draw])
        self._stack.setCurrentIndex(1)


def _title(clusters: tuple[int, ...]) -> str:
    if len(clusters) == 1:
        return f"Cluster {clusters[0]}"
    names = ", ".join(map(str, clusters[:6])) + (" …" if len(clusters) > 6 else "")
    return f"{len(clusters)} clusters: {names}"


def _scrolled(widget: QWidget) -> QScrollArea:
    area = QScrollArea()
    area.setWidgetResizable(True)
    area.setFrameShape(QScrollArea.Shape.NoFrame)
    area.setWidget(widget)
    return area
