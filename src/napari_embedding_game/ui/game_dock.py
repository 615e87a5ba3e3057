"""The main dock: Data, Game, Run and Look, from top to bottom."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import ref

from qtpy.QtCore import QEvent, QObject, QSize, Qt, QTimer
from qtpy.QtGui import QDragEnterEvent, QDropEvent, QKeyEvent, QShowEvent
from qtpy.QtWidgets import QScrollArea, QVBoxLayout, QWidget

from napari_embedding_game.ui.canvas.hover import Hover
from napari_embedding_game.ui.canvas.landmark_handles import LandmarkHandles
from napari_embedding_game.ui.canvas.overlays.cluster_labels import ClusterLabels
from napari_embedding_game.ui.canvas.overlays.far_lines import FarLines
from napari_embedding_game.ui.canvas.overlays.hand_marks import HandMarks
from napari_embedding_game.ui.canvas.overlays.panel_captions import PanelCaptions
from napari_embedding_game.ui.compat import canvas_widget, main_window_of
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.controller import Controller
from napari_embedding_game.ui.controls.data import DataControls
from napari_embedding_game.ui.controls.display import DisplayControls
from napari_embedding_game.ui.controls.method import MethodControls
from napari_embedding_game.ui.controls.quality_panel import QualityPanel
from napari_embedding_game.ui.controls.run import RunControls
from napari_embedding_game.ui.controls.selection import SelectionControls
from napari_embedding_game.ui.dock_corner import DockCorner
from napari_embedding_game.ui.label_loops import mend_label_loops
from napari_embedding_game.ui.larger_map import LargerMap
from napari_embedding_game.ui.napari_fixes import mend_napari
from napari_embedding_game.ui.style.form_widgets import (
    ignore_idle_wheel,
    skip_what_is_folded,
    take_numbers_once_typed,
)
from napari_embedding_game.ui.style.theme import theme_colors
from napari_embedding_game.ui.vispy_fixes import mend_vispy
from napari_embedding_game.ui.wiring import connect_views
from napari_embedding_game.ui.workspace import leave_workspace

if TYPE_CHECKING:
    import napari

    from napari_embedding_game.ui.workspace import Workspace

AFTER_SHOWN_MS = 100
"""When the engine begins to be loaded: imports would hold up the first drawing."""
WIDTH = 350
"""Also the least: in a small window Qt would lay the inspector over a wider dock."""


class Closing(QObject):
    """Calls back once when a docked widget is closed, whatever closed it.

    napari takes a closed dock's widget out of its parent without telling it,
    closing the window tells the window only, and a program that ends closes its
    windows when no further event is handed out.  Then the widget is deleted: what
    Qt holds for it, such as slots, Python cannot see and would never free.
    """

    def __init__(self, widget: QWidget, on_close: Callable[[], None]) -> None:
        super().__init__(widget)
        self._widget = widget
        self._seen_window: ref[QWidget] | None = None
        """Weak: who held a closed window would keep all of its viewer alive."""
        self._is_asked = False
        """Whether the window was asked to close, and has not refused."""
        self._on_close: Callable[[], None] | None = on_close
        self.is_with_window = False
        """Whether the whole window is closed, not this widget alone."""
        widget.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Watch, and let every event through."""
        if watched is self._widget:
            self._on_widget(event.type())
        elif self._on_close is not None and watched is self._window:
            self._on_window(event.type())
        return False

    def close(self) -> None:
        """Call back, the first time."""
        if self._on_close is not None:
            on_close, self._on_close = self._on_close, None
            if (window := self._window) is not None:
                window.removeEventFilter(self)
            self._seen_window = None
            self._widget.removeEventFilter(self)
            on_close()
            self._widget.deleteLater()

    @property
    def _window(self) -> QWidget | None:
        """The window that the widget was seen in last."""
        return None if self._seen_window is None else self._seen_window()

    def _on_widget(self, kind: QEvent.Type) -> None:
        if kind == QEvent.Type.ParentChange:
            self._on_parent()
        elif kind == QEvent.Type.Show:
            self._watch_window()  # its box may have come into the window later
        elif kind == QEvent.Type.Close:
            self.close()

    def _on_window(self, kind: QEvent.Type) -> None:
        if kind == QEvent.Type.Close:
            # Whether the window agrees to close is known after this event.
            self._is_asked = True
            QTimer.singleShot(0, self._close_with_window)
        elif kind == QEvent.Type.Hide and self._is_asked:
            self._close_as_the_window_does()
        elif kind == QEvent.Type.DeferredDelete:
            # Whoever lets go of it last deletes it: not in one of its own events.
            QTimer.singleShot(0, partial(_hold, self._window))
            self._close_as_the_window_does()

    def _on_parent(self) -> None:
        if self._widget.parentWidget() is not None:
            self._watch_window()
        elif self._window is not None:
            self.close()

    def _watch_window(self) -> None:
        window = main_window_of(self._widget)
        if self._on_close is None:
            return
        former = self._window
        if window is not former and window is not self._widget:
            if former is not None:
                former.removeEventFilter(self)
            self._seen_window = ref(window)
            window.installEventFilter(self)

    def _close_with_window(self) -> None:
        self._is_asked = False
        if self._window is None or not self._window.isVisible():
            self._close_as_the_window_does()

    def _close_as_the_window_does(self) -> None:
        self.is_with_window = True
        self.close()


def _file_of(event: QDropEvent) -> Path | None:
    """Return the one local file or folder that is dragged, if it is one."""
    files = [url.toLocalFile() for url in event.mimeData().urls()]
    return Path(files[0]) if len(files) == 1 and files[0] else None


def _hold(window: QWidget | None) -> None:
    """Do nothing but have held a window until now."""


class GameDock(QWidget):
    """The dock a person works with.

    Parameters
    ----------
    viewer : napari.Viewer
    workspace : Workspace
        What is shown and edited.
    warm_up : bool
        Whether to load the engine in the background at once.
    """

    def __init__(
        self, viewer: napari.Viewer, workspace: Workspace, *, warm_up: bool = True
    ) -> None:
        super().__init__()
        mend_vispy()
        mend_napari()
        mend_label_loops()
        self._viewer = viewer
        self.workspace = workspace
        workspace.docks.add(self)
        self.controller = Controller(viewer, workspace)
        self.controller.replacing.parent_widget = self
        self.controller.pointing.draw_on(lambda: canvas_widget(self))
        self.controller.brush.find_canvas = lambda: canvas_widget(self)
        session, maps, linked = workspace.session, workspace.maps, workspace.linked
        self.data = DataControls(viewer, session, maps, workspace.loading, linked)
        self.game = MethodControls(session)
        self.run = RunControls(session, linked)
        self.run.mended.connect(self.game.show_settings)
        self.data.preparation_offered.connect(self.run.note_offer)
        self.run.note_offer(self.data.recipe.is_offered)
        self.quality = QualityPanel(session)
        self.data.mixable_changed.connect(self.quality.set_mixable)
        self.quality.mix_requested.connect(self.data.mix_batches)
        self.quality.continue_requested.connect(self._continue_changed)
        self.look = DisplayControls(session)
        self.select = SelectionControls(session, maps, linked)
        self.names = ClusterLabels(viewer, workspace, self.controller.layers, self)
        self.marks = HandMarks(viewer, workspace, self.controller.layers, self)
        self.captions = PanelCaptions(viewer, workspace, self.controller.layers, self)
        self.far = FarLines(viewer, workspace, self.controller.layers, self)
        self.hover = Hover(viewer, workspace, self.controller.layers, self)
        views = connect_views(
            self.controller,
            self.data,
            self.game,
            self.run,
            self.look,
            self.select,
            self.hover,
        )
        landmarks = LandmarkHandles(viewer, session, self.controller.layers)
        self.controller.pointing.drag_by(
            lambda pixel: landmarks.handle_at(pixel) or self.names.handle_at(pixel)
        )
        self.controller.pointing.drag_edited_by(landmarks.handle_of_tool)
        self.names.dragged.connect(self.controller.move_cluster)
        self.larger = LargerMap(self)
        self.data.heading.addWidget(self.larger)
        self._build()
        self._on_theme()
        self._connections = Connections()
        self._connections.connect(viewer.events.theme, self._on_theme)
        self._corner = DockCorner()
        self._connections.add(
            self.controller,
            self.hover,
            self.names,
            self.marks,
            landmarks,
            self.far,
            self.captions,
            self.look,
            self.select,
            self.run,
            self.quality,
            self.game,
            self.data,
            self._corner,
            views,
        )
        self._closing = Closing(self, self._release)
        if warm_up:
            QTimer.singleShot(AFTER_SHOWN_MS, self.controller.warm_up)

    def close(self) -> bool:
        """End the run, undo the connections to the viewer, and go; the map stays."""
        self._closing.close()
        return True

    def sizeHint(self) -> QSize:
        """Return a width at which no control is cut."""
        return QSize(WIDTH, super().sizeHint().height())

    def showEvent(self, event: QShowEvent) -> None:
        """Reach down to the bottom of the window."""
        super().showEvent(event)
        self._corner.take(main_window_of(self))

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Take a file that is dragged here: napari would ask what is to read it."""
        if _file_of(event) is not None:
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        """Open the file that is let go here."""
        path = _file_of(event)
        if path is not None:
            event.acceptProposedAction()
            self.data.open_file(path)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Clear the selection on Escape, as the canvas does."""
        if event.key() == Qt.Key.Key_Escape:
            self.controller.session.selection.clear()
        else:
            super().keyPressEvent(event)

    def _continue_changed(self) -> None:
        """Go on from the map on show with settings that a view has changed."""
        self.game.show_settings()
        self.controller.play_on()

    def _release(self) -> None:
        self._connections.close()
        self.larger.release()
        self.controller.replacing.parent_widget = None
        self.setEnabled(False)
        is_with_window = self._closing.is_with_window
        leave_workspace(self._viewer, self.workspace, self, with_window=is_with_window)

    def _build(self) -> None:
        inside = QWidget()
        column = QVBoxLayout(inside)
        column.setContentsMargins(8, 4, 8, 4)
        column.setSpacing(4)
        self.run.column.addWidget(self.quality)
        for part in (self.data, self.game, self.run, self.select, self.look):
            column.addWidget(part)
        column.addStretch(1)
        scroll = QScrollArea()
        scroll.setWidgetResizable(True)
        scroll.setFrameShape(QScrollArea.Shape.NoFrame)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setWidget(inside)
        self.data.troubled.connect(
            lambda: scroll.ensureWidgetVisible(self.data.trouble)
        )
        self.look.answered.connect(lambda: scroll.ensureWidgetVisible(self.look, 0, 0))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(4)
        layout.addWidget(scroll)
        layout.addWidget(self.run.bar_below)
        self.setMinimumWidth(WIDTH)
        self.setAcceptDrops(True)
        ignore_idle_wheel(self)
        take_numbers_once_typed(self)
        skip_what_is_folded(self)

    def _on_theme(self) -> None:
        colors = theme_colors(self._viewer.theme)
        self.setStyleSheet(colors.sheet)
        self.data.recipe.set_theme(colors)
        self.run.curve.set_theme(colors)
        self.run.timeline.set_theme(colors)
