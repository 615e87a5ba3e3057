"""The brush, which selects the points it passes over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QObject, Signal

from napari_embedding_game.session.selection import Mode
from napari_embedding_game.ui.canvas.overlay import MapOverlay
from napari_embedding_game.ui.canvas.scene import Scene
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.images.drawn_objects import DrawnObjects, drawn_objects
from napari_embedding_game.ui.tasks.throttle import throttled

if TYPE_CHECKING:
    import napari

    from napari_embedding_game.ui.workspace import Workspace

SMALLEST, LARGEST, RADIUS = 4, 200, 24
"""In pixels of the canvas."""
FRAME_MS = 25
"""Between two pictures of a stroke."""
KEY = "B"
"""Switches the brush on and off."""
HOW = "Paint with the mouse. Shift adds, Ctrl takes away."


class MapBrush(QObject):
    """Paints a selection with the mouse, while it is switched on.

    It works in pixels of the canvas, so that a map in space is painted as it is seen,
    in front and behind.  While the button is held the map stands still.
    """

    changed = Signal()
    """``is_on``, ``radius`` or ``told`` has changed."""

    def __init__(
        self,
        viewer: napari.Viewer,
        workspace: Workspace,
        scene: Scene,
        overlay: MapOverlay,
    ) -> None:
        super().__init__(overlay.parent())
        self._session, self._linked = workspace.session, workspace.linked
        self._scene, self._viewer, self._overlay = scene, viewer, overlay
        self.is_on = False
        """Whether the mouse paints."""
        self.radius = RADIUS
        """In pixels."""
        self._mode: Mode = "replace"
        self._painted: NDArray[np.bool_] | None = None
        """(N,) the points of the present stroke."""
        self._pixels = np.empty((0, 2))
        """(m N, 2) where they are drawn, on each map, and objects in the image."""
        self._last = np.zeros(2)
        self._objects: DrawnObjects | None = None
        self._zooms: list[Any] = []
        """napari's callbacks for a double click, which two dabs are not."""
        self._turn = throttled(FRAME_MS, self._draw, self)
        session = workspace.session
        another_map = (
            session.dataset_changed,
            session.looked_back,
            session.restored,
            session.view.laid_out,
            session.view.hidden_changed,
        )
        connections = Connections(self)
        connections.connect_all(another_map, self.cancel)
        connections.bind(viewer, KEY, lambda _: self.set_on(not self.is_on))
        connections.call(lambda: self.set_on(False))

    @property
    def is_held(self) -> bool:
        """Whether a stroke is being painted."""
        return self._painted is not None

    @property
    def told(self) -> str:
        """A sentence about the brush, "" while it is off."""
        if self._painted is None:
            return HOW if self.is_on else ""
        told = f"{int(self._chosen().sum()):,} selected."
        is_running = self._session.state == "running"
        return f"{told} The map stands still until you let go." if is_running else told

    def set_on(self, is_on: bool) -> None:
        """Let the mouse paint, or be as it was."""
        if is_on == self.is_on:
            return
        self.cancel()
        self.is_on = is_on
        callbacks = self._viewer.mouse_double_click_callbacks
        self._zooms, callbacks[:] = list(callbacks), self._zooms
        self.hover(None)
        self.changed.emit()

    def set_radius(self, radius: float) -> None:
        """Set the radius of the next strokes, in pixels of the canvas."""
        radius = int(np.clip(round(radius), SMALLEST, LARGEST))
        if radius != self.radius:
            self.radius = radius
            if self._overlay.ring is not None:
                self.hover(self._overlay.ring[0])
            self.changed.emit()

    # With the mouse

    def hover(self, pixel: NDArray[np.floating] | None) -> None:
        """Show the ring around a pixel (x, y); None: nowhere."""
        self._overlay.ring = None if pixel is None else (pixel, self.radius)
        self._overlay.refresh()

    def begin(self, pixel: NDArray[np.floating], mode: Mode) -> None:
        """Begin a stroke, where there is a map."""
        self.cancel()
        seen, drawn = self._session.view.seen, self._scene.layers.projection()
        if seen is not None and drawn is not None:
            self._mode, self._last = mode, pixel
            self._painted = np.zeros(len(self._session.selection.points), bool)
            self._pixels = drawn.to_pixels(seen)
            self._objects = drawn_objects(self._viewer, self._session, self._linked)
            if self._objects is not None:
                places = self._objects.places()
                self._pixels = np.concatenate([self._pixels, places])
            self._scene.hold()
        self.move(pixel)

    def move(self, pixel: NDArray[np.floating]) -> None:
        """Paint over all points that lie near the way to a pixel (x, y)."""
        self.hover(pixel)
        painted, last, radius = self._painted, self._last, self.radius
        if painted is None:
            return
        low, high = np.minimum(last, pixel) - radius, np.maximum(last, pixel) + radius
        is_near = ((self._pixels >= low) & (self._pixels <= high)).all(axis=1)
        rows = np.flatnonzero(is_near)
        way, apart = pixel - last, self._pixels[rows] - last
        share = np.clip(apart @ way / max(float(way @ way), 1e-9), 0, 1)
        away = apart - share[:, None] * way
        rows = rows[(away**2).sum(axis=1) <= radius**2] % len(painted)
        hidden, objects = self._session.view.hidden, self._objects
        painted[rows if hidden is None else rows[~hidden[rows]]] = True
        under = None if objects is None else objects.under(pixel)
        if under is not None:
            painted[under] = True
        self._last = pixel
        self._turn.throttle()

    def end(self) -> None:
        """Select what was painted."""
        painted = self._painted
        if painted is not None:
            self._stop()
            if painted.any():
                self._session.selection.select_points(painted, self._mode)
            self._scene.release()

    def cancel(self, event: object = None) -> None:
        """Leave the selection as it was before the stroke."""
        if self._painted is not None:
            self._stop()
            self._scene.release()

    # Inside

    def _stop(self) -> None:
        self._painted = None
        self._turn.cancel()
        self.changed.emit()

    def _chosen(self) -> NDArray[np.bool_]:
        """Return what is selected if the stroke ends here: (N,)."""
        painted, before = self._painted, self._session.selection.points
        assert painted is not None
        if self._mode == "replace":
            return painted
        return before | painted if self._mode == "add" else before & ~painted

    def _draw(self) -> None:
        """Draw what is painted by now."""
        if self._painted is not None:
            self._scene.show_chosen(self._chosen())
            self.changed.emit()
