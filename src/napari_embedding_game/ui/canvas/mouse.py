"""Mouse clicks, Escape and lasso on the canvas, whatever layer is active."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import Qt
from qtpy.QtGui import QCursor
from qtpy.QtWidgets import QWidget

from napari_embedding_game.session.selection import Mode
from napari_embedding_game.ui.canvas.overlays.lasso_overlay import LassoOverlay
from napari_embedding_game.ui.compat import camera_of

if TYPE_CHECKING:
    import napari

STEP = 3.0
"""Canvas pixels between two corners of a lasso."""
CLICK_REACH = 4.0
"""Canvas pixels that the mouse may move during a click; more is a drag."""


@dataclass(frozen=True, eq=False)
class CanvasClick:
    """Position of the mouse on the canvas, from an event of napari."""

    pixel: NDArray[np.floating]
    """(x, y) on the canvas."""
    world: NDArray[np.floating]
    """(ndim,) of the viewer; in 3-D somewhere along the line of sight."""
    view_direction: NDArray[np.floating] | None = None
    """(ndim,) of the line of sight; None in 2-D."""
    displayed: tuple[int, ...] = (0, 1)
    """The displayed axes of the viewer."""

    @classmethod
    def of(cls, event: Any) -> CanvasClick:
        """Take it from an event of napari's mouse."""
        sight = event.view_direction
        return cls(
            np.array(event.pos[:2], dtype=float),
            np.array(event.position, dtype=float),
            None if sight is None else np.array(sight, dtype=float),
            tuple(event.dims_displayed),
        )


class Handle(Protocol):
    """What is held by the mouse while its button is down."""

    def move(self, pixel: NDArray[np.floating]) -> None:
        """Follow the mouse to (x, y) of the canvas."""

    def drop(self, pixel: NDArray[np.floating], *, is_pinned: bool) -> None:
        """Stay where the mouse let go; pinned there if Ctrl or Cmd was held."""

    def put_back(self) -> None:
        """Be where it was before: it was given up, or only clicked."""


class Brush(Protocol):
    """What paints while it is switched on, see :class:`.brush.MapBrush`."""

    is_on: bool
    find_objects: Callable[[], Any]
    """Returns the :class:`.DrawnObjects` of the image, None where there are none."""

    @property
    def is_held(self) -> bool:
        """Whether a stroke is being painted."""

    def hover(self, pixel: NDArray[np.floating]) -> None:
        """Show where it would paint."""

    def begin(self, pixel: NDArray[np.floating], mode: Mode) -> None:
        """Begin a stroke at (x, y) of the canvas."""

    def move(self, pixel: NDArray[np.floating]) -> None:
        """Paint on to (x, y)."""

    def end(self) -> None:
        """Take what was painted."""

    def cancel(self) -> None:
        """Be as before the stroke."""


class Picker:
    """Tells where the canvas was clicked, and when Escape was pressed.

    Parameters
    ----------
    viewer : napari.Viewer
    on_click : callable
        Receives where it was, as :class:`CanvasClick`, and whether Ctrl or Cmd was
        held.
    on_escape : callable
    on_lasso : callable
        Receives the pixels (V, 2) of the canvas that were drawn through with Shift
        held, and whether Ctrl or Cmd was held too.
    """

    def __init__(
        self,
        viewer: napari.Viewer,
        on_click: Callable[[CanvasClick, bool], None],
        on_escape: Callable[[], None],
        on_lasso: Callable[[np.ndarray, bool], None] | None = None,
    ) -> None:
        self._viewer = viewer
        self._on_click = on_click
        self._on_escape = on_escape
        self._on_lasso = on_lasso
        self.always_lasso = False
        """Whether a drag draws a line without Shift, too."""
        self.find_canvas: Callable[[], QWidget | None] = lambda: None
        """Returns what the line is drawn on; None where there is no window."""
        self.find_handle: Callable[[NDArray[np.floating]], Handle | None] = (
            lambda pixel: None
        )
        """Returns what can be dragged at a pixel of the canvas."""
        self.find_edited: Callable[[NDArray[np.floating]], Handle | None] = (
            lambda pixel: None
        )
        """The same, while the active layer has another tool of napari's."""
        self.brush: Brush | None = None
        self._held: Handle | None = None
        self._callback = self._drag  # one object, so that it can be taken out again
        viewer.mouse_drag_callbacks.append(self._callback)
        self._shape: Qt.CursorShape | None = None
        self._former_cursor: QCursor | None = None
        self._hovering = self._hover
        viewer.mouse_move_callbacks.append(self._hovering)
        self._former = viewer.bind_key("Escape", self._escape, overwrite=True)

    def close(self) -> None:
        """Give mouse and key back."""
        if self._callback in self._viewer.mouse_drag_callbacks:
            self._viewer.mouse_drag_callbacks.remove(self._callback)
        if self._hovering in self._viewer.mouse_move_callbacks:
            self._viewer.mouse_move_callbacks.remove(self._hovering)
        self._show_hand(None)
        self._viewer.bind_key("Escape", self._former, overwrite=True)

    def _drag(self, viewer: Any, event: Any) -> Iterator[None]:
        if event.button != 1:
            return
        if self._is_editing():
            edited = self.find_edited(np.array(event.pos[:2], dtype=float))
            if edited is not None:
                yield from self._pull(viewer, event, edited, is_tool=True)
            return
        if self.brush is not None and self.brush.is_on:
            yield from self._paint(viewer, event, self.brush)
            return
        if self._on_lasso is not None and self._is_lasso(event):
            yield from self._draw(viewer, event)
            return
        handle = self.find_handle(np.array(event.pos[:2], dtype=float))
        if handle is not None:
            yield from self._pull(viewer, event, handle)
            return
        begun = np.array(event.pos, dtype=float)
        yield
        while event.type == "mouse_move":
            yield
        if np.hypot(*(np.array(event.pos, dtype=float) - begun)) > CLICK_REACH:
            return
        self._on_click(CanvasClick.of(event), _adds(event))

    def _paint(self, viewer: Any, event: Any, brush: Brush) -> Iterator[None]:
        """Paint until the button is let go, or Escape pressed."""
        camera = camera_of(viewer)
        before = camera.mouse_pan, camera.mouse_zoom
        camera.mouse_pan = camera.mouse_zoom = False
        brush.begin(np.array(event.pos[:2], dtype=float), _mode(event))
        try:
            yield
            while event.type == "mouse_move":
                brush.move(np.array(event.pos[:2], dtype=float))
                yield
        finally:
            camera.mouse_pan, camera.mouse_zoom = before
            if event.type != "mouse_release":
                brush.cancel()
        # A move right before it is one of those that vispy leaves out.
        brush.move(np.array(event.pos[:2], dtype=float))
        brush.end()

    def _is_lasso(self, event: Any) -> bool:
        return self.always_lasso or "Shift" in event.modifiers

    def _draw(self, viewer: Any, event: Any) -> Iterator[None]:
        """Draw a line until the button is let go; what is no drag is a click."""
        camera = camera_of(viewer)
        before = camera.mouse_pan, camera.mouse_zoom
        corners = [np.array(event.pos[:2], dtype=float)]
        canvas = self.find_canvas()
        overlay = None if canvas is None else LassoOverlay(canvas)
        # The line is one of pixels: what is under it stays there meanwhile.
        camera.mouse_pan = camera.mouse_zoom = False
        try:
            yield
            while event.type == "mouse_move":
                pixel = np.array(event.pos[:2], dtype=float)
                if np.hypot(*(pixel - corners[-1])) >= STEP:
                    corners.append(pixel)
                    if overlay is not None:
                        overlay.draw(np.array(corners))
                yield
        finally:
            if overlay is not None:
                overlay.close()
            camera.mouse_pan, camera.mouse_zoom = before
        if len(corners) < 3:
            self._on_click(CanvasClick.of(event), _adds(event))
        elif self._on_lasso is not None:
            self._on_lasso(np.array(corners), _adds(event))

    def _pull(
        self, viewer: Any, event: Any, handle: Handle, *, is_tool: bool = False
    ) -> Iterator[None]:
        """Drag a handle until the button is let go, or Escape pressed.

        What is no drag is a click, unless it is one of a tool of napari's.
        """
        camera = camera_of(viewer)
        before = camera.mouse_pan, camera.mouse_zoom
        begun = np.array(event.pos[:2], dtype=float)
        is_drag, self._held = False, handle
        camera.mouse_pan = camera.mouse_zoom = False
        self._show_hand(Qt.CursorShape.ClosedHandCursor)
        try:
            yield
            while event.type == "mouse_move":
                pixel = np.array(event.pos[:2], dtype=float)
                is_drag = is_drag or np.hypot(*(pixel - begun)) > CLICK_REACH
                if is_drag and self._held is not None:
                    handle.move(pixel)
                yield
        finally:
            camera.mouse_pan, camera.mouse_zoom = before
            self._show_hand(None)
            is_held, self._held = self._held is not None, None
            if not (is_held and is_drag and event.type == "mouse_release"):
                handle.put_back()
        if is_held and is_drag:
            pixel = np.array(event.pos[:2], dtype=float)
            handle.drop(pixel, is_pinned=_adds(event))
        elif is_held and not is_tool:
            self._on_click(CanvasClick.of(event), _adds(event))

    def _hover(self, viewer: Any, event: Any) -> None:
        """Show an open hand over what can be dragged."""
        pixel = np.array(event.pos[:2], dtype=float)
        brush, is_editing = self.brush, self._is_editing()
        if brush is not None and brush.is_on and not is_editing:
            brush.hover(pixel)
            self._show_hand(Qt.CursorShape.CrossCursor)
            return
        is_free = not (self.always_lasso or is_editing)
        find = self.find_edited if is_editing else self.find_handle
        is_over = (is_free or is_editing) and find(pixel) is not None
        self._show_hand(Qt.CursorShape.OpenHandCursor if is_over else None)

    def _show_hand(self, shape: Qt.CursorShape | None) -> None:
        """Set the cursor of the canvas; None: as it was before."""
        canvas = self.find_canvas()
        if canvas is None or shape == self._shape:
            return
        if self._shape is None:
            self._former_cursor = canvas.cursor()
        self._shape = shape
        former = self._former_cursor
        if shape is not None:
            canvas.setCursor(shape)
        elif former is not None:
            canvas.setCursor(former)

    def _is_editing(self) -> bool:
        """Whether a click means something else to the active layer."""
        active = self._viewer.layers.selection.active
        return str(getattr(active, "mode", "pan_zoom")) != "pan_zoom"

    def _escape(self, viewer: Any) -> None:
        if self.brush is not None and self.brush.is_held:
            self.brush.cancel()
            return
        if self._held is not None:
            self._held.put_back()
            self._held = None
            return
        self._on_escape()


def _mode(event: Any) -> Mode:
    """Return what a stroke of the brush does to what is selected."""
    if "Alt" in event.modifiers:
        return "remove"
    return "add" if "Shift" in event.modifiers or _adds(event) else "replace"


def _adds(event: Any) -> bool:
    return any(key in event.modifiers for key in ("Control", "Meta"))
