"""The mouse on the canvas, whatever layer is active: clicks, lasso, brush, drags."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal
from weakref import WeakMethod

import numpy as np
from napari.layers import Labels, Shapes
from napari.utils.key_bindings import coerce_keybinding
from numpy.typing import NDArray
from qtpy.QtCore import QObject, Qt, Signal

from napari_embedding_game.session.selection import Mode
from napari_embedding_game.ui.canvas.hand import Handle, Pixel, live_handle
from napari_embedding_game.ui.canvas.overlay import MapOverlay, line_mask
from napari_embedding_game.ui.canvas.pick import CLICK_MARGIN, row_at
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.images.drawn_objects import drawn_objects

Tool = Literal["", "lasso", "brush"]
ESCAPE, BRUSH_KEY = "Escape", "B"
"""Gives up a gesture, or clears the selection; turns the brush on and off."""
BRUSH_RADIUS = 24
"""Of the brush, in pixels of the canvas."""
STEP = 3.0
"""Canvas pixels between two corners of a line."""
LANDMARK_REACH = 8.0
"""Canvas pixels from the middle of a landmark that take hold of it."""
CLICK_REACH = 4.0
"""Canvas pixels that the mouse may move during a click; more is a drag."""


class MapMouse(QObject):
    """Selects clusters, objects and points, and drags handles.

    Lasso and brush are lines of pixels, also of a map in space, which does not move
    meanwhile. ``name_at`` returns the name that can be dragged at a pixel.
    """

    picked = Signal()
    """A click or a lasso has chosen something."""
    tool_changed = Signal(str)
    """The :data:`Tool` that is on now."""

    def __init__(
        self, overlay: MapOverlay, name_at: Callable[[Pixel], Handle | None]
    ) -> None:
        super().__init__(overlay.dock)
        self._overlay, self._name_at = overlay, name_at
        self._scene, self._session = (scene := overlay.scene), scene.session
        self._viewer = viewer = scene.viewer
        self._layers, self._linked = scene.layers, scene.workspace.linked
        self.tool: Tool = ""
        """What a drag draws with; "" for the lasso with Shift alone."""
        self._handle: Handle | None = None
        self._gesture: Generator[None, None, None] = (None for _ in ())
        self._shape: Qt.CursorShape | None = None
        self._callbacks: list[Any] = []
        """napari's callbacks for a double click, which two dabs are not."""
        connections = Connections(self)
        # napari keeps both what it calls and what that returns until a release comes.
        drag = WeakMethod(self._drag)
        connections.hook(viewer.mouse_drag_callbacks, lambda *event: drag()(*event))
        connections.hook(viewer.mouse_move_callbacks, self._hover)
        self._connections = connections
        self.bind_key(ESCAPE, self._escape)
        self.bind_key(BRUSH_KEY, partial(self.toggle_tool, "brush"))
        changes = scene.drawn, scene.session.dataset_changed
        connections.connect(self._end_tool_without_map, *changes)
        overlay.connections.call(lambda: self._gesture.close())  # while it is there
        connections.call(lambda: self._set_tool(""))
        connections.call(lambda: self._show_cursor(None))

    def toggle_tool(self, tool: Tool) -> None:
        """Turn a tool on, or off if it is on."""
        self._set_tool("" if tool == self.tool else tool)

    def bind_key(self, key: str, job: Callable[[], object]) -> None:
        """Do a job when a key is pressed over a map, as long as the dock is open.

        By napari's own keymap: a key that the active layer has means what it means to
        that layer, and so does every key of a Labels or Shapes layer; one that somebody
        has bound before stays theirs.
        """
        keymap, code = self._viewer.keymap, coerce_keybinding(key)

        def press(viewer: object) -> None:
            is_of_others = isinstance(self._active, Labels | Shapes)
            has_map = self._session.snapshot is not None
            if has_map and not (is_of_others or self._is_editing()):
                job()

        if keymap.setdefault(code, press) is press:
            self._connections.call(
                lambda: keymap.get(code) is press and keymap.pop(code)
            )

    # Gestures: each from the press to the release

    def _drag(self, viewer: Any, event: Any) -> Iterator[None] | None:
        if event.button != 1 or self._is_editing() or not self._is_ours(_pixel(event)):
            return None
        self._gesture.close()  # its release was lost, as where a dialog came
        self._gesture = self._follow(event)
        return self._gesture

    def _follow(self, event: Any) -> Generator[None, None, None]:
        begun = _pixel(event)
        if self.tool or "Shift" in event.modifiers:
            with self._escape_is_ours():
                yield from self._draw_line(event, self.tool or "lasso")
        elif (handle := self._handle_at(begun)) is not None:
            with self._escape_is_ours():
                yield from self._drag_handle(event, handle)
        else:
            yield
            while event.type == "mouse_move":
                yield
            if np.hypot(*(_pixel(event) - begun)) <= CLICK_REACH:
                self.click(event)

    @contextmanager
    def _escape_is_ours(self) -> Iterator[None]:
        """Give up the gesture under way on Escape, whatever that is to the layer."""
        layer, escape = self._active, lambda layer: self._escape()
        if layer is None:
            yield
            return
        before = layer.bind_key(ESCAPE, escape, overwrite=True)
        try:
            yield
        finally:
            layer.bind_key(ESCAPE, before, overwrite=True)

    @contextmanager
    def _fixed_view(self) -> Iterator[None]:
        """Keep the camera from following the mouse."""
        camera = self._viewer.scene.camera
        before = camera.mouse_pan, camera.mouse_zoom
        camera.mouse_pan = camera.mouse_zoom = False
        try:
            yield
        finally:
            camera.mouse_pan, camera.mouse_zoom = before

    def _draw_line(self, event: Any, tool: Tool) -> Iterator[None]:
        """Draw a line until the button is let go, or Escape pressed.

        A lasso that is no drag is a click.
        """
        is_brush, mode = tool == "brush", _mode(event, tool)
        line = self._overlay.line = [_pixel(event)]
        pixels, data = self._point_pixels(), self._session.dataset  # others may come
        try:
            with self._fixed_view(), self._scene.frozen():
                self._ring(_pixel(event) if is_brush else None)
                yield
                while event.type == "mouse_move":
                    if line and np.hypot(*(_pixel(event) - line[-1])) >= STEP:
                        line.append(_pixel(event))
                    self._ring(_pixel(event) if is_brush else None)
                    yield
                is_of_others = not self._session.shows_dataset(data)
                is_given_up = event.type != "mouse_release" or not line or is_of_others
                line.append(_pixel(event))  # a move right before is left out by vispy
                if not is_given_up and (is_brush or len(line) > 3):
                    radius = BRUSH_RADIUS if is_brush else None
                    self.select_inside(np.array(line), radius, mode, pixels)
        finally:
            self._overlay.line = []
            self._overlay.refresh()
        if not is_given_up and not is_brush and len(line) <= 3:
            self.click(event)

    def _drag_handle(self, event: Any, handle: Handle) -> Iterator[None]:
        """Drag a handle until the button is let go, or Escape pressed."""
        begun, is_drag, self._handle = _pixel(event), False, handle
        self._show_cursor(Qt.CursorShape.ClosedHandCursor)
        try:
            with self._fixed_view():
                yield
                while event.type == "mouse_move":
                    is_drag |= bool(np.hypot(*(_pixel(event) - begun)) > CLICK_REACH)
                    if is_drag and self._handle is not None:
                        handle.move(_pixel(event))
                    yield
        finally:
            self._show_cursor(None)
            is_held, self._handle = self._handle is not None, None
            if not (is_held and is_drag and event.type == "mouse_release"):
                handle.cancel()
        if is_held and is_drag:
            handle.drop(_pixel(event), _adds(event))
        elif is_held:
            self.click(event)

    def _hover(self, viewer: Any, event: Any) -> None:
        """Show an open hand over what can be dragged, and the ring of the brush."""
        if self._handle is not None:  # a move from before the press may come after it
            return
        shape = None
        if not self._is_editing():
            if self.tool == "brush":
                is_ours = self._is_ours(_pixel(event))
                self._ring(_pixel(event) if is_ours else None)
                shape = Qt.CursorShape.CrossCursor if is_ours else None
            elif not self.tool and self._handle_at(_pixel(event)) is not None:
                shape = Qt.CursorShape.OpenHandCursor
        self._show_cursor(shape)

    def _escape(self) -> None:
        if self._overlay.line:
            self._overlay.line.clear()
            self._overlay.refresh()
        elif self._handle is not None:
            self._handle.cancel()
            self._handle = None
        else:
            self._session.selection.clear()

    # What they do

    def click(self, event: Any) -> None:
        """Select the cluster that was clicked on, or an object in the image."""
        session, adds, pixel = self._session, _adds(event), _pixel(event)
        seen, selection = session.view.positions, session.selection
        if seen is None:
            return
        # Not the nearest landmark: its points may have been split among clusters.
        row = row_at(self._layers, seen, pixel, reach=0.0, margin=CLICK_MARGIN)
        name, labels = self._name_at(pixel), session.clusters.labels
        cluster = None if row is None else int(labels[row % len(labels)])
        if name is not None:  # which may stand on points of another
            cluster = name.cluster
        if cluster is not None:
            (selection.toggle if adds else selection.select)(cluster)
            self.picked.emit()
            return
        objects = drawn_objects(self._viewer, session, self._linked)
        row = None if objects is None else objects.clicked(event)
        if row is not None:
            points = np.arange(len(selection.points)) == row
            selection.toggle_points(points, is_added=adds)
            self.picked.emit()

    def select_inside(
        self,
        line: NDArray[np.floating],
        radius: int | None = None,
        mode: Mode = "replace",
        pixels: NDArray[np.floating] | None = None,
    ) -> None:
        """Select points, and objects in the image, in a closed line of pixels (V, 2).

        Or, with a radius, so near to an open one; in space whatever lies behind one
        another.  ``pixels`` (m N, 2): of the points, by default those of now.
        """
        session = self._session
        if (pixels := self._point_pixels() if pixels is None else pixels) is None:
            return
        height, width = self._viewer.canvas.size
        mask = line_mask(line, width, height, radius)
        is_inside = _inside(mask, pixels)
        n_points = len(session.selection.points)
        chosen = is_inside.reshape(-1, n_points).any(axis=0)
        objects = drawn_objects(self._viewer, session, self._linked)
        if objects is not None:
            chosen |= _inside(mask, objects.positions())
            if radius is not None:
                under = map(objects.under, _dense_line(line))
                chosen[[row for row in under if row is not None]] = True
        if chosen.any():
            session.selection.select_points(chosen, mode)
            if radius is None:
                self.picked.emit()

    # Inside

    def _is_ours(self, pixel: Pixel) -> bool:
        """Return whether a gesture that begins at a pixel (x, y) is for the map.

        In the map's box and on its flat objects; on objects in space with a tool alone,
        as napari turns the camera there.
        """
        if self._session.view.positions is None or self._layers.points is None:
            return False
        objects = drawn_objects(self._viewer, self._session, self._linked)
        return self._layers.is_at(pixel) or (
            objects is not None and (bool(self.tool) or objects.covers(pixel))
        )

    def _end_tool_without_map(self, event: object = None) -> None:
        if self._session.snapshot is None or self._layers.points is None:
            self._set_tool("")

    def _point_pixels(self) -> NDArray[np.floating] | None:
        """Return the pixels (m N, 2) of the points, on each map; None without any.

        NaN where a point is not seen, as another part of napari's grid is there.
        """
        seen, projection = self._session.view.positions, self._layers.projection()
        if seen is None or projection is None:
            return None
        pixels, offset = projection.to_pixels(seen), self._layers.grid_offset()
        pixels[~projection.contains(pixels)] = np.nan
        if offset.any():
            pixels[len(pixels) // 2 :] += offset
        return pixels

    def _set_tool(self, tool: Tool) -> None:
        if (tool == "brush") != (self.tool == "brush"):
            callbacks = self._viewer.mouse_double_click_callbacks
            self._callbacks, callbacks[:] = list(callbacks), self._callbacks
        elif not tool and not self.tool:
            return
        self.tool = tool
        self._ring(None)
        self.tool_changed.emit(tool)

    def _ring(self, pixel: Pixel | None) -> None:
        """Show the brush at a pixel; None: nowhere."""
        self._overlay.ring = None if pixel is None else (pixel, BRUSH_RADIUS)
        self._overlay.refresh()

    def _show_cursor(self, shape: Qt.CursorShape | None) -> None:
        """Set the cursor of the canvas; None: the usual one."""
        canvas = self._overlay.canvas
        if canvas is not None and shape != self._shape:
            self._shape = shape
            canvas.setCursor(Qt.CursorShape.ArrowCursor if shape is None else shape)

    def _handle_at(self, pixel: Pixel) -> Handle | None:
        return self._landmark_at(pixel) or self._name_at(pixel)

    def _landmark_at(self, pixel: Pixel) -> Handle | None:
        """Return the landmark at a pixel, while their layer is the selected one."""
        layer, snapshot = self._layers.landmarks, self._session.snapshot
        is_chosen = layer is not None and layer.visible and self._active is layer
        if snapshot is None or not is_chosen:
            return None
        positions, hand, reach = snapshot.landmarks, self._session.hand, LANDMARK_REACH
        number = row_at(self._layers, positions, pixel, reach=reach, is_sized=False)
        if number is None:
            return None
        through = positions[number]  # in space: parallel to the canvas

        def follow(at: Pixel) -> None:
            position = self._layers.point_under(at, through)
            if position is not None:
                hand.drag_to(position)

        return live_handle(hand, lambda: hand.begin_landmark_drag(number), follow)

    def _is_editing(self) -> bool:
        """Whether a click means something else to the active layer."""
        return str(getattr(self._active, "mode", "pan_zoom")) != "pan_zoom"

    @property
    def _active(self) -> Any:
        return self._viewer.layers.selection.active


def _dense_line(line: NDArray[np.floating]) -> NDArray[np.floating]:
    """Return points along a line (V, 2), at most ``STEP`` pixels apart: (n, 2)."""
    ends = np.hypot(*np.diff(line, axis=0).T).cumsum()
    steps = np.arange(0.0, ends[-1] + STEP, STEP) if len(ends) else np.zeros(1)
    return np.stack([np.interp(steps, [0.0, *ends], each) for each in line.T], axis=1)


def _inside(mask: NDArray[np.bool_], pixels: NDArray[np.floating]) -> NDArray[np.bool_]:
    """Return for each pixel (n, 2) of x and y whether it is in a mask (h, w).

    NaN, and what is beyond the canvas, is not.
    """
    is_inside = ((pixels >= 0) & (pixels < mask.shape[::-1])).all(axis=1)
    x, y = pixels[is_inside].astype(int).T
    is_inside[is_inside] = mask[y, x]
    return is_inside


def _pixel(event: Any) -> Pixel:
    return np.array(event.pos[:2], dtype=float)


def _mode(event: Any, tool: Tool) -> Mode:
    """Return what a line does to what is selected: Shift is the key of the lasso."""
    if tool == "lasso":
        return "add" if _adds(event) else "replace"
    if _adds(event):
        return "remove"
    return "add" if "Shift" in event.modifiers else "replace"


def _adds(event: Any) -> bool:
    return any(key in event.modifiers for key in ("Control", "Meta"))
