"""Clicks, lasso, brush and drags on the canvas, whichever layer is active."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Literal
from weakref import WeakMethod

import numpy as np
from napari.layers import Labels, Shapes
from numpy.typing import NDArray
from qtpy.QtCore import QObject, Qt, Signal

from napari_embedding_game.session.selection import Mode
from napari_embedding_game.session.tracks import find_tracks
from napari_embedding_game.ui.canvas.handles import Handle, Pixel, make_game_handle
from napari_embedding_game.ui.canvas.overlay import MapOverlay, line_mask
from napari_embedding_game.ui.canvas.pick import CLICK_MARGIN, find_row_at_pixel
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.images.track_layers import find_track_row_at_pixel
from napari_embedding_game.ui.images.visible_objects import find_visible_objects

Tool = Literal["", "lasso", "brush"]
ESCAPE, BRUSH_KEY = "Escape", "B"
"""Keys to cancel a gesture or clear the selection, and to toggle the brush."""
BRUSH_RADIUS = 24
"""Radius of the brush in pixels of the canvas."""
STEP = 3.0
"""Canvas pixels between two corners of a line."""
LANDMARK_REACH = 8.0
"""Canvas pixels from the center of a landmark at which it can be dragged."""
CLICK_REACH = 4.0
"""Canvas pixels that the mouse may move during a click; more is a drag."""


class MapMouse(QObject):
    """Selects clusters, objects and points, and drags handles.

    Lasso and brush are lines of pixels, also on a map in space, which cannot be turned
    meanwhile.  ``make_name_handle`` returns the handle of the name at a pixel, or None.
    """

    selection_picked = Signal()
    """A click or a lasso has selected something."""
    tool_changed = Signal(str)
    """The :data:`Tool` that is now active."""

    def __init__(
        self, overlay: MapOverlay, make_name_handle: Callable[[Pixel], Handle | None]
    ) -> None:
        super().__init__(overlay.dock)
        self._overlay, self._make_name_handle = overlay, make_name_handle
        self._scene, self._session = (scene := overlay.scene), scene.session
        self._viewer = viewer = scene.viewer
        self._layers, self._linked = scene.map_layers, scene.workspace.linked_layers
        self.tool: Tool = ""
        """The active tool; with "" a drag with Shift traces a lasso."""
        self._handle: Handle | None = None
        self._gesture: Generator[None, None, None] = (None for _ in ())
        self._cursor_shape: Qt.CursorShape | None = None
        self._camera_at_press: tuple[Any, Any] = None, None
        """Center and zoom of the camera when the mouse was last pressed."""
        self._double_click_callbacks: list[Any] = []
        """napari's callbacks for a double click, removed while the brush is active."""
        connections = Connections(self)
        # napari keeps callbacks and the generators they return until the button is
        # released, which would keep a closed dock alive.
        press = WeakMethod(self._on_mouse_pressed)
        connections.append_callback(
            viewer.mouse_drag_callbacks, lambda *event: press()(*event)
        )
        connections.append_callback(viewer.mouse_move_callbacks, self._on_mouse_moved)
        callbacks = viewer.mouse_double_click_callbacks
        connections.append_callback(callbacks, self._on_double_clicked)
        self._connections = connections
        self.bind_key(ESCAPE, self._cancel_gesture_or_selection)
        self.bind_key(BRUSH_KEY, partial(self.toggle_tool, "brush"))
        changes = scene.map_rendered, scene.session.dataset_changed
        connections.connect(self._end_tool_without_map, *changes)
        overlay.connections.add_cleanup(lambda: self._gesture.close())  # before it goes
        connections.add_cleanup(lambda: self._set_tool(""))
        connections.add_cleanup(lambda: self._set_cursor(None))

    def toggle_tool(self, tool: Tool) -> None:
        """Activate a tool, or deactivate it if it is active."""
        self._set_tool("" if tool == self.tool else tool)

    def bind_key(self, key: str, job: Callable[[], object]) -> None:
        """Run a job when a key is pressed over a map, as long as the dock is open.

        A key that is bound to the viewer already stays as it is.  Keys of the active
        layer take precedence.  The job is not run without a map, with an
        active Labels or Shapes layer, or while a click would edit the active layer.
        """
        viewer = self._viewer

        def press(viewer: object) -> None:
            """Run the job if the key is meant for the map."""
            is_of_others = isinstance(self._active_layer, Labels | Shapes)
            has_map = self._session.snapshot is not None
            if has_map and not (is_of_others or self._is_layer_in_edit_mode()):
                job()

        def unbind_key() -> None:
            """Free the key, unless somebody else has bound it since."""
            bound = viewer.bind_key(key, None)
            if bound is not None and bound is not press:
                viewer.bind_key(key, bound)

        with suppress(ValueError):  # the key is taken
            viewer.bind_key(key, press)
            self._connections.add_cleanup(unbind_key)

    # Gestures: each from the press to the release

    def _on_mouse_pressed(self, viewer: Any, event: Any) -> Iterator[None] | None:
        """Return the generator of a gesture on the map, which napari advances.

        None for another button than the left one, while a click would edit the active
        layer, and off the map and the image's objects.  A former gesture is ended.
        """
        if (
            event.button != 1
            or self._is_layer_in_edit_mode()
            or not self._is_gesture_for_map(_event_pixel(event))
        ):
            return None
        self._gesture.close()  # a dialog may have taken its release
        self._gesture = self._run_gesture(event)
        return self._gesture

    def _run_gesture(self, event: Any) -> Generator[None, None, None]:
        """Trace a line with a tool or Shift, else drag a handle, or select at a click.

        A move of more than ``CLICK_REACH`` pixels is no click; it moves the camera.
        """
        start_pixel, camera = _event_pixel(event), self._viewer.scene.camera
        self._camera_at_press = camera.center, camera.zoom
        if self.tool or "Shift" in event.modifiers:
            with self._bind_escape():
                yield from self._trace_line(event, self.tool or "lasso")
        elif (handle := self._handle_at(start_pixel)) is not None:
            with self._bind_escape():
                yield from self._drag_handle(event, handle)
        else:
            yield
            while event.type == "mouse_move":
                yield
            if np.hypot(*(_event_pixel(event) - start_pixel)) <= CLICK_REACH:
                self.select_at_click(event)

    @contextmanager
    def _bind_escape(self) -> Iterator[None]:
        """Let Escape cancel the gesture, even if the active layer binds that key.

        The layer's own binding is restored after the ``with`` block.
        """
        layer = self._active_layer
        if layer is None:
            yield
            return

        def escape(layer: object) -> None:
            self._cancel_gesture_or_selection()

        before = layer.bind_key(ESCAPE, escape, overwrite=True)
        try:
            yield
        finally:
            layer.bind_key(ESCAPE, before, overwrite=True)

    @contextmanager
    def _hold_camera(self) -> Iterator[None]:
        """Keep the mouse from moving the camera inside the ``with`` block."""
        camera = self._viewer.scene.camera
        before = camera.mouse_pan, camera.mouse_zoom
        camera.mouse_pan = camera.mouse_zoom = False
        try:
            yield
        finally:
            camera.mouse_pan, camera.mouse_zoom = before

    def _trace_line(self, event: Any, tool: Tool) -> Iterator[None]:
        """Trace a line until the button is released, then select points in it.

        Escape or another dataset cancels the line.  A lasso of up to 3 corners is a
        click.  The map is not rendered meanwhile, and the camera stays.
        """
        is_brush, mode = tool == "brush", _choose_selection_mode(event, tool)
        line = self._overlay.line = [_event_pixel(event)]
        # A running game or other data may change both during the gesture.
        pixels, dataset = self._compute_point_pixels(), self._session.dataset
        try:
            with self._hold_camera(), self._scene.hold_rendering():
                self._show_brush_ring(_event_pixel(event) if is_brush else None)
                yield
                while event.type == "mouse_move":
                    if line and np.hypot(*(_event_pixel(event) - line[-1])) >= STEP:
                        line.append(_event_pixel(event))
                    self._show_brush_ring(_event_pixel(event) if is_brush else None)
                    yield
                is_stale = not self._session.shows_dataset(dataset)
                is_cancelled = event.type != "mouse_release" or not line or is_stale
                line.append(_event_pixel(event))  # vispy omits the last move
                if not is_cancelled and (is_brush or len(line) > 3):
                    radius = BRUSH_RADIUS if is_brush else None
                    self.select_in_line(np.array(line), radius, mode, pixels)
        finally:
            self._overlay.line = []
            self._overlay.refresh()
        if not is_cancelled and not is_brush and len(line) <= 3:
            self.select_at_click(event)

    def _drag_handle(self, event: Any, handle: Handle) -> Iterator[None]:
        """Drag a handle until the button is released; Escape cancels the drag.

        A release with Ctrl pins the dragged object.  A press without a drag cancels the
        handle, and is a click.
        """
        start_pixel, is_drag, self._handle = _event_pixel(event), False, handle
        self._set_cursor(Qt.CursorShape.ClosedHandCursor)
        try:
            with self._hold_camera():
                yield
                while event.type == "mouse_move":
                    is_drag |= bool(
                        np.hypot(*(_event_pixel(event) - start_pixel)) > CLICK_REACH
                    )
                    if is_drag and self._handle is not None:
                        handle.move(_event_pixel(event))
                    yield
        finally:
            self._set_cursor(None)
            is_held, self._handle = self._handle is not None, None
            if not (is_held and is_drag and event.type == "mouse_release"):
                handle.cancel()
        if is_held and is_drag:
            handle.drop(_event_pixel(event), _is_ctrl_held(event))
        elif is_held:
            self.select_at_click(event)

    def _on_mouse_moved(self, viewer: Any, event: Any) -> None:
        """Show the ring of the active brush, or without a tool a hand over a handle."""
        if self._handle is not None:  # napari may deliver an older move late
            return
        shape = None
        if not self._is_layer_in_edit_mode():
            if self.tool == "brush":
                is_for_map = self._is_gesture_for_map(_event_pixel(event))
                self._show_brush_ring(_event_pixel(event) if is_for_map else None)
                shape = Qt.CursorShape.CrossCursor if is_for_map else None
            elif not self.tool and self._handle_at(_event_pixel(event)) is not None:
                shape = Qt.CursorShape.OpenHandCursor
        self._set_cursor(shape)

    def _cancel_gesture_or_selection(self) -> None:
        """Cancel the line or drag under way; without either, clear the selection."""
        if self._overlay.line:
            self._overlay.line.clear()
            self._overlay.refresh()
        elif self._handle is not None:
            self._handle.cancel()
            self._handle = None
        else:
            self._session.selection.clear()

    # Selecting

    def _on_double_clicked(self, viewer: Any, event: Any) -> None:
        """Select all rows of the track of a double-clicked point or object.

        With Ctrl they are added to the selection.  The camera returns to its place:
        napari has zoomed in.  Nothing is done at a cluster's name, where there is no
        point or object, and for data without tracks.
        """
        session, tracks = self._session, find_tracks(self._session.dataset)
        is_for_map = event.button == 1 and self._is_gesture_for_map(_event_pixel(event))
        if tracks is None or not is_for_map or self._is_layer_in_edit_mode():
            return
        row = self._find_point_row(_event_pixel(event))
        row = self._find_object_or_track_row(event) if row is None else row
        found = [] if row is None else tracks.find_tracks_of_rows([row])
        if not len(found) or self._make_name_handle(_event_pixel(event)) is not None:
            return
        camera = self._viewer.scene.camera
        camera.center, camera.zoom = self._camera_at_press
        mode: Mode = "add" if _is_ctrl_held(event) else "replace"
        session.selection.select_points(tracks.find_moments_of_tracks(found), mode)
        self.selection_picked.emit()

    def select_at_click(self, event: Any) -> None:
        """Select the cluster at a click, else the object that the image shows there.

        A cluster's name takes precedence over a point.  Of data with tracks a point is
        selected alone, as a moment of its track.  With Ctrl a cluster, a moment or an
        object is toggled.  :attr:`selection_picked` is emitted if there is any.
        """
        session, pixel = self._session, _event_pixel(event)
        is_added = _is_ctrl_held(event)
        selection, clusters = session.selection, session.clusters
        if session.view.positions is None:
            return
        # The nearest landmark would not tell: its points may be in several clusters.
        row, name = self._find_point_row(pixel), self._make_name_handle(pixel)
        cluster = None if row is None else int(clusters.labels[row])
        if name is not None:  # a name may lie on points of another cluster
            cluster = name.cluster
        has_tracks = find_tracks(session.dataset) is not None
        if cluster is not None and not (name is None and has_tracks):
            (selection.toggle_cluster if is_added else selection.select_cluster)(
                cluster
            )
            self.selection_picked.emit()
            return
        row = self._find_object_or_track_row(event) if row is None else row
        if row is not None:
            points = np.arange(len(selection.points)) == row
            selection.toggle_points(points, is_added=is_added)
            self.selection_picked.emit()

    def _find_point_row(self, pixel: Pixel) -> int | None:
        """Return the row of the point nearest to a pixel (x, y), or None.

        The point may be on the map or in tissue.
        """
        return self._scene.find_row_at_pixel(
            pixel, reach_pixels=0.0, margin_share=CLICK_MARGIN
        )

    def _find_object_or_track_row(self, event: Any) -> int | None:
        """Return the row whose object, or else whose track, is at a mouse event."""
        objects = find_visible_objects(self._viewer, self._session, self._linked)
        row = None if objects is None else objects.find_row_at_event(event)
        if row is not None:
            return row
        return find_track_row_at_pixel(self._viewer, self._linked, _event_pixel(event))

    def select_in_line(
        self,
        line: NDArray[np.floating],
        radius: int | None = None,
        mode: Mode = "replace",
        pixels: NDArray[np.floating] | None = None,
    ) -> None:
        """Select points and image objects inside a closed line of pixels (V, 2).

        With a radius they are selected along the open line, within the radius, and so
        is each object that the line crosses.  In space all points behind one another
        are selected.  A line around neither point nor object leaves the selection as it
        is.  A lasso, which has no radius, else emits :attr:`selection_picked`.

        Parameters
        ----------
        line : array of shape (V, 2)
            Pixels (x, y) of the line.
        radius : int, optional
            Radius of a brush in pixels; None for a lasso.
        mode : str
            Whether the points replace, join or leave the selection.
        pixels : array of shape (m N, 2), optional
            Pixels of the N points on m maps; by default the present pixels.
        """
        session = self._session
        if (
            pixels := self._compute_point_pixels() if pixels is None else pixels
        ) is None:
            return
        height, width = self._viewer.canvas.size
        mask = line_mask(line, width, height, radius)
        is_inside = _are_pixels_in_mask(mask, pixels)
        n_points = len(session.selection.points)
        chosen = is_inside.reshape(-1, n_points).any(axis=0)
        objects = find_visible_objects(self._viewer, session, self._linked)
        if objects is not None:
            chosen |= _are_pixels_in_mask(mask, objects.compute_center_pixels())
            if radius is not None:
                under = map(objects.find_object_row_at_pixel, _resample_line(line))
                chosen[[row for row in under if row is not None]] = True
        if chosen.any():
            session.selection.select_points(chosen, mode)
            if radius is None:
                self.selection_picked.emit()

    def _is_gesture_for_map(self, pixel: Pixel) -> bool:
        """Return whether a gesture that begins at a pixel (x, y) is for the map.

        It is for the map in the box of the map or of its tissue, on flat labels of the
        image, and with an active tool anywhere while labels are visible.  In space a
        drag without a tool turns the camera.
        """
        if self._session.view.positions is None or self._layers.points is None:
            return False
        objects = find_visible_objects(self._viewer, self._session, self._linked)
        placed = self._scene.list_placed_points()
        return any(layers.is_map_at(pixel) for layers, _ in placed) or (
            objects is not None and (bool(self.tool) or objects.is_on_labels(pixel))
        )

    def _end_tool_without_map(self, event: object = None) -> None:
        """Deactivate the tool if there is no map to select on."""
        if self._session.snapshot is None or self._layers.points is None:
            self._set_tool("")

    def _compute_point_pixels(self) -> NDArray[np.floating] | None:
        """Return the pixels (m N, 2) of the points on m maps and in tissue, or None.

        A point outside its box of the canvas has NaN.  In napari's grid the pixels of
        the compared map, the second half of the maps' pixels, are in that map's box.
        None where neither map nor tissue is visible.
        """
        found = []
        for layers, seen in self._scene.list_placed_points():
            projection, offset = layers.projection(), layers.find_grid_offset()
            assert projection is not None
            pixels = projection.to_pixels(seen)
            pixels[~projection.contains(pixels)] = np.nan
            if offset.any():
                pixels[len(pixels) // 2 :] += offset
            found.append(pixels)
        return np.concatenate(found) if found else None

    def _set_tool(self, tool: Tool) -> None:
        """Activate a tool, hide the ring, and emit :attr:`tool_changed`.

        The brush removes napari's callbacks for double clicks, and another tool
        restores them.  Nothing is done without a tool before and after.
        """
        if (tool == "brush") != (self.tool == "brush"):
            callbacks = self._viewer.mouse_double_click_callbacks
            self._double_click_callbacks, callbacks[:] = (
                list(callbacks),
                self._double_click_callbacks,
            )
        elif not tool and not self.tool:
            return
        self.tool = tool
        self._show_brush_ring(None)
        self.tool_changed.emit(tool)

    def _show_brush_ring(self, pixel: Pixel | None) -> None:
        """Show the ring of the brush at a pixel; None hides the ring."""
        self._overlay.ring = None if pixel is None else (pixel, BRUSH_RADIUS)
        self._overlay.refresh()

    def _set_cursor(self, shape: Qt.CursorShape | None) -> None:
        """Set the cursor of the canvas; None stands for the arrow."""
        canvas = self._overlay.canvas
        if canvas is not None and shape != self._cursor_shape:
            self._cursor_shape = shape
            canvas.setCursor(Qt.CursorShape.ArrowCursor if shape is None else shape)

    def _handle_at(self, pixel: Pixel) -> Handle | None:
        return self._make_landmark_handle(pixel) or self._make_name_handle(pixel)

    def _make_landmark_handle(self, pixel: Pixel) -> Handle | None:
        """Return a handle of the landmark at a pixel, or None.

        It is the nearest landmark within ``LANDMARK_REACH`` pixels, in space the
        foremost.  Landmarks can be dragged only while their layer is visible and
        active.
        """
        layer, snapshot = self._layers.landmarks, self._session.snapshot
        is_chosen = layer is not None and layer.visible and self._active_layer is layer
        if snapshot is None or not is_chosen:
            return None
        positions, hand, reach = snapshot.landmarks, self._session.hand, LANDMARK_REACH
        number = find_row_at_pixel(
            self._layers, positions, pixel, reach_pixels=reach, uses_point_sizes=False
        )
        if number is None:
            return None
        through = positions[number]  # in space the drag keeps its depth

        def drag_to_pixel(at: Pixel) -> None:
            """Drag the landmark to a pixel; one off the map's plane is ignored."""
            position = self._layers.position_at_pixel(at, through)
            if position is not None:
                hand.drag_to(position)

        begin_drag = partial(hand.begin_landmark_drag, number)
        return make_game_handle(hand, begin_drag, drag_to_pixel)

    def _is_layer_in_edit_mode(self) -> bool:
        """Return whether the active layer is in a mode in which a click edits it."""
        return str(getattr(self._active_layer, "mode", "pan_zoom")) != "pan_zoom"

    @property
    def _active_layer(self) -> Any:
        return self._viewer.layers.selection.active


def _resample_line(line: NDArray[np.floating]) -> NDArray[np.floating]:
    """Return points (n, 2) along an open line (V, 2), at most ``STEP`` pixels apart."""
    ends = np.hypot(*np.diff(line, axis=0).T).cumsum()
    steps = np.arange(0.0, ends[-1] + STEP, STEP) if len(ends) else np.zeros(1)
    return np.stack([np.interp(steps, [0.0, *ends], each) for each in line.T], axis=1)


def _are_pixels_in_mask(
    mask: NDArray[np.bool_], pixels: NDArray[np.floating]
) -> NDArray[np.bool_]:
    """Return for each pixel (x, y) of (n, 2) whether a mask (h, w) is True there.

    NaN, and pixels beyond the canvas, give False.
    """
    is_inside = ((pixels >= 0) & (pixels < mask.shape[::-1])).all(axis=1)
    x, y = pixels[is_inside].astype(int).T
    is_inside[is_inside] = mask[y, x]
    return is_inside


def _event_pixel(event: Any) -> Pixel:
    return np.array(event.pos[:2], dtype=float)


def _choose_selection_mode(event: Any, tool: Tool) -> Mode:
    """Return how the points in a line change the selection, by tool and keys.

    Ctrl adds with the lasso, and removes with the brush; Shift adds with the brush.
    Without a key the selection is replaced.  Shift starts the lasso, and so means
    nothing else for that tool.
    """
    if tool == "lasso":
        return "add" if _is_ctrl_held(event) else "replace"
    if _is_ctrl_held(event):
        return "remove"
    return "add" if "Shift" in event.modifiers else "replace"


def _is_ctrl_held(event: Any) -> bool:
    """Return whether Ctrl, or Cmd on a Mac, is held during a mouse event."""
    return any(key in event.modifiers for key in ("Control", "Meta"))
