"""The mouse on the canvas, whatever layer is active: clicks, lasso, brush, drags."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QObject, Qt, Signal
from qtpy.QtGui import QCursor

from napari_embedding_game.session.selection import Mode
from napari_embedding_game.ui.canvas.brush import MapBrush
from napari_embedding_game.ui.canvas.hand import Handle, Pixel
from napari_embedding_game.ui.canvas.overlay import MapOverlay
from napari_embedding_game.ui.canvas.pick import BESIDE, row_at
from napari_embedding_game.ui.canvas.projection import inside
from napari_embedding_game.ui.canvas.scene import Scene
from napari_embedding_game.ui.compat import camera_of
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.images.drawn_objects import drawn_objects
from napari_embedding_game.ui.images.linked_layers import clicked_row

if TYPE_CHECKING:
    import napari

    from napari_embedding_game.ui.workspace import Workspace

STEP = 3.0
"""Canvas pixels between two corners of a lasso."""
CLICK_REACH = 4.0
"""Canvas pixels that the mouse may move during a click; more is a drag."""


class MapMouse(QObject):
    """Selects clusters, objects and points where a person points, and drags handles.

    Each of ``handles`` returns what can be dragged at a pixel of the canvas.
    """

    picked = Signal()
    """A click or a lasso has chosen something."""

    def __init__(
        self,
        viewer: napari.Viewer,
        workspace: Workspace,
        scene: Scene,
        brush: MapBrush,
        overlay: MapOverlay,
        handles: Sequence[Callable[[Pixel], Handle | None]],
    ) -> None:
        super().__init__(overlay.parent())
        self._viewer, self._session = viewer, workspace.session
        self._layers, self._linked = scene.layers, workspace.linked
        self._brush, self._overlay, self._handles = brush, overlay, handles
        self.always_lasso = False
        """Whether a drag draws a line without Shift, too."""
        self._held: Handle | None = None
        self._shape: Qt.CursorShape | None = None
        self._former_cursor = QCursor()
        connections = Connections(self)
        connections.hook(viewer.mouse_drag_callbacks, self._drag)
        connections.hook(viewer.mouse_move_callbacks, self._hover)
        connections.bind(viewer, "Escape", self._escape)
        connections.call(lambda: self._show_cursor(None))

    def set_lasso(self, always: bool) -> None:
        """Let every drag on the canvas draw around points, or only with Shift."""
        self.always_lasso = always

    # Gestures: each from the press to the release

    def _drag(self, viewer: Any, event: Any) -> Iterator[None]:
        if event.button != 1 or self._is_editing():
            return
        begun = _pixel(event)
        if self._brush.is_on:
            yield from self._paint(event)
        elif self.always_lasso or "Shift" in event.modifiers:
            yield from self._draw(event)
        elif (handle := self._handle_at(begun)) is not None:
            yield from self._pull(event, handle)
        else:
            yield
            while event.type == "mouse_move":
                yield
            if np.hypot(*(_pixel(event) - begun)) <= CLICK_REACH:
                self.click(event)

    @contextmanager
    def _still(self) -> Iterator[None]:
        """Let the mouse not move the map: what is under it stays there meanwhile."""
        camera = camera_of(self._viewer)
        before = camera.mouse_pan, camera.mouse_zoom
        camera.mouse_pan = camera.mouse_zoom = False
        try:
            yield
        finally:
            camera.mouse_pan, camera.mouse_zoom = before

    def _paint(self, event: Any) -> Iterator[None]:
        """Paint until the button is let go, or Escape pressed."""
        brush = self._brush
        brush.begin(_pixel(event), _mode(event))
        try:
            with self._still():
                yield
                while event.type == "mouse_move":
                    brush.move(_pixel(event))
                    yield
        finally:
            if event.type != "mouse_release":
                brush.cancel()
        # A move right before it is one of those that vispy leaves out.
        brush.move(_pixel(event))
        brush.end()

    def _draw(self, event: Any) -> Iterator[None]:
        """Draw a line until the button is let go; what is no drag is a click."""
        corners = [_pixel(event)]
        try:
            with self._still():
                yield
                while event.type == "mouse_move":
                    if np.hypot(*(_pixel(event) - corners[-1])) >= STEP:
                        corners.append(_pixel(event))
                        self._show_line(np.array(corners))
                    yield
        finally:
            self._show_line(None)
        if len(corners) < 3:
            self.click(event)
        else:
            self.surround(np.array(corners), _adds(event))

    def _pull(self, event: Any, handle: Handle) -> Iterator[None]:
        """Drag a handle until the button is let go, or Escape pressed."""
        begun, is_drag, self._held = _pixel(event), False, handle
        self._show_cursor(Qt.CursorShape.ClosedHandCursor)
        try:
            with self._still():
                yield
                while event.type == "mouse_move":
                    is_drag |= bool(np.hypot(*(_pixel(event) - begun)) > CLICK_REACH)
                    if is_drag and self._held is not None:
                        handle.move(_pixel(event))
                    yield
        finally:
            self._show_cursor(None)
            is_held, self._held = self._held is not None, None
            if not (is_held and is_drag and event.type == "mouse_release"):
                handle.put_back()
        if is_held and is_drag:
            handle.drop(_pixel(event), _adds(event))
        elif is_held:
            self.click(event)

    def _hover(self, viewer: Any, event: Any) -> None:
        """Show an open hand over what can be dragged, and the ring of the brush."""
        shape = None
        if not self._is_editing():
            if self._brush.is_on:
                self._brush.hover(_pixel(event))
                shape = Qt.CursorShape.CrossCursor
            elif not self.always_lasso and self._handle_at(_pixel(event)) is not None:
                shape = Qt.CursorShape.OpenHandCursor
        self._show_cursor(shape)

    def _escape(self, viewer: Any) -> None:
        if self._brush.is_held:
            self._brush.cancel()
        elif self._held is not None:
            self._held.put_back()
            self._held = None
        else:
            self._session.selection.clear()

    # What they do

    def click(self, event: Any) -> None:
        """Select the cluster that was clicked on, or an object in the image."""
        session, adds, pixel = self._session, _adds(event), _pixel(event)
        seen, selection = session.view.seen, session.selection
        if seen is None:
            return
        # Not the nearest landmark: its points may have been split among clusters.
        labels = session.clusters.labels
        hidden = session.view.hidden_places
        row = row_at(self._layers, seen, pixel, hidden, reach=0.0, beside=BESIDE)
        if row is not None:
            cluster = int(labels[row % len(labels)])
            (selection.toggle if adds else selection.select)(cluster)
            self.picked.emit()
            return
        row = self._object_at(event)
        if row is not None:
            mode: Mode = "replace"
            if adds:
                mode = "remove" if selection.points[row] else "add"
            selection.select_points(np.array([row]), mode)
            self.picked.emit()

    def _object_at(self, event: Any) -> int | None:
        """Return the row of the object that was clicked in the image."""
        objects = drawn_objects(self._viewer, self._session, self._linked)
        if objects is None:
            return None
        if objects.drawn.ahead is None:
            return objects.under(_pixel(event))
        return clicked_row(objects.linked, objects.objects, event)

    def surround(self, line: NDArray[np.floating], adds: bool) -> None:
        """Select points, and objects in the image, inside of a line of pixels (V, 2).

        In space whatever lies behind one another.
        """
        session, drawn = self._session, self._layers.projection()
        seen, hidden = session.view.seen, session.view.hidden
        if seen is None or drawn is None:
            return
        n_points = len(session.selection.points)
        is_inside = inside(line, drawn.to_pixels(seen))
        chosen = is_inside.reshape(-1, n_points).any(axis=0)
        if hidden is not None:
            chosen &= ~hidden
        objects = drawn_objects(self._viewer, session, self._linked)
        if objects is not None:
            chosen |= objects.surrounded(line)
        if chosen.any():
            session.selection.select_points(chosen, "add" if adds else "replace")
            self.picked.emit()

    # Inside

    def _show_line(self, corners: NDArray[np.floating] | None) -> None:
        self._overlay.lasso = corners
        self._overlay.refresh()

    def _show_cursor(self, shape: Qt.CursorShape | None) -> None:
        """Set the cursor of the canvas; None: as it was before."""
        canvas = self._overlay.canvas
        if canvas is None or shape == self._shape:
            return
        if self._shape is None:
            self._former_cursor = canvas.cursor()
        self._shape = shape
        canvas.setCursor(self._former_cursor if shape is None else shape)

    def _handle_at(self, pixel: Pixel) -> Handle | None:
        found = (find(pixel) for find in self._handles)
        return next((handle for handle in found if handle is not None), None)

    def _is_editing(self) -> bool:
        """Whether a click means something else to the active layer."""
        active = self._viewer.layers.selection.active
        return str(getattr(active, "mode", "pan_zoom")) != "pan_zoom"


def _pixel(event: Any) -> Pixel:
    return np.array(event.pos[:2], dtype=float)


def _mode(event: Any) -> Mode:
    """Return what a stroke of the brush does to what is selected."""
    if _adds(event):
        return "remove"
    return "add" if "Shift" in event.modifiers else "replace"


def _adds(event: Any) -> bool:
    return any(key in event.modifiers for key in ("Control", "Meta"))
