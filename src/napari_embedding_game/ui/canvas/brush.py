"""The brush on the canvas: points that it passes over are selected.

It works in pixels of the canvas, so that a map in space is painted as it is seen, in
front and behind.  While the button is held the map stands still.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QObject, QTimer, Signal
from qtpy.QtWidgets import QWidget

from napari_embedding_game.session.selection import Mode
from napari_embedding_game.session.session import Session
from napari_embedding_game.ui.canvas.drawing import Drawing
from napari_embedding_game.ui.canvas.overlays.brush_ring import BrushRing
from napari_embedding_game.ui.compat import pause_zooming
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.images.drawn_objects import DrawnObjects

if TYPE_CHECKING:
    import napari

RADIUS, SMALLEST, LARGEST = 24, 4, 200
"""Of the brush, in pixels of the canvas."""
GROWS = 1.2
"""Of the radius, with each press of a key."""
FRAME_MS = 25
"""Between two pictures of a stroke."""
KEY, SMALLER, LARGER = "B", "[", "]"
"""Keys that switch the brush on and off, and change its size as in Labels layers."""
HOW = "Paint with the mouse. Shift adds, Alt takes away, [ and ] change the size."


class BrushKeys:
    """Keys of the brush, on the canvas; napari's zooming is set aside while it is on.

    A layer that has one of the keys for itself, such as Labels, takes it first.  With
    Alt held napari would draw a box to zoom into, and a double click would zoom.

    Parameters
    ----------
    viewer : napari.Viewer
    brush : MapBrush
    """

    def __init__(self, viewer: napari.Viewer, brush: MapBrush) -> None:
        self._viewer = viewer
        jobs: dict[str, Callable[[Any], None]] = {
            KEY: lambda _: brush.set_on(not brush.is_on),
            SMALLER: lambda _: brush.grow(-1),
            LARGER: lambda _: brush.grow(1),
        }
        self._former = {
            key: viewer.bind_key(key, job, overwrite=True) for key, job in jobs.items()
        }
        self._zooms_again: Callable[[], None] | None = None
        self._switched = brush.switched
        self._switched.connect(self._on_switched)

    def close(self) -> None:
        """Give the keys and the zooming back."""
        self._switched.disconnect(self._on_switched)
        self._on_switched(False)
        for key, job in self._former.items():
            self._viewer.bind_key(key, job, overwrite=True)

    def _on_switched(self, is_on: bool) -> None:
        if self._zooms_again is not None:
            self._zooms_again()
            self._zooms_again = None
        if is_on:
            self._zooms_again = pause_zooming(self._viewer)


class Stroke:
    """One stroke of the brush: what it paints, and how that is drawn.

    Parameters
    ----------
    pixels : (m N, 2) array
        Where the points are drawn on the canvas: on each of the maps side by side, and
        the middle of their objects in the image.
    paintable : (N,) bool array
        Points that are not hidden.
    before : (N,) bool array
        What was selected.
    mode : {"replace", "add", "remove"}
    objects : DrawnObjects, optional
        The objects in the image: what is under the middle of the brush is painted.
    """

    def __init__(
        self,
        pixels: NDArray[np.floating],
        paintable: NDArray[np.bool_],
        before: NDArray[np.bool_],
        mode: Mode,
        objects: DrawnObjects | None = None,
    ) -> None:
        self.mode = mode
        self.painted = np.zeros(len(before), bool)
        self._pixels, self._paintable, self._before = pixels, paintable, before
        self._last: NDArray[np.floating] | None = None
        self._objects = objects

    def paint(self, pixel: NDArray[np.floating], radius: float) -> None:
        """Paint over all points that lie near the way to a pixel (x, y)."""
        last = pixel if self._last is None else self._last
        self._last = pixel
        low, high = np.minimum(last, pixel) - radius, np.maximum(last, pixel) + radius
        is_near = ((self._pixels >= low) & (self._pixels <= high)).all(axis=1)
        rows = np.flatnonzero(is_near)
        way, apart = pixel - last, self._pixels[rows] - last
        share = np.clip(apart @ way / max(float(way @ way), 1e-9), 0, 1)
        away = apart - share[:, None] * way
        rows = rows[(away**2).sum(axis=1) <= radius**2] % len(self.painted)
        self.painted[rows] = self._paintable[rows]
        under = None if self._objects is None else self._objects.under(pixel)
        if under is not None:
            self.painted[under] = True

    @property
    def chosen(self) -> NDArray[np.bool_]:
        """(N,) what is selected if the stroke ends here."""
        if self.mode == "add":
            return self._before | self.painted
        if self.mode == "remove":
            return self._before & ~self.painted
        return self.painted


class MapBrush(QObject):
    """Paints a selection with the mouse, while it is switched on.

    Parameters
    ----------
    session : Session
    drawing : Drawing
    """

    switched = Signal(bool)
    """Whether the mouse paints."""
    resized = Signal(int)
    """Radius in pixels."""
    told = Signal(str)
    """A sentence about the brush, "" while it is off."""

    def __init__(self, session: Session, drawing: Drawing) -> None:
        super().__init__()
        self._session = session
        self._drawing = drawing
        self._layers = drawing.layers
        self.is_on = False
        self.radius = RADIUS
        self.find_canvas: Callable[[], QWidget | None] = lambda: None
        """Returns what the ring is painted on; None where there is no window."""
        self.find_objects: Callable[[], DrawnObjects | None] = lambda: None
        """Returns the objects that the brush may come over in the image."""
        self._stroke: Stroke | None = None
        self._ring: BrushRing | None = None
        self._timer = QTimer(self)
        self._timer.setInterval(FRAME_MS)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self._draw)
        self._connections = Connections()
        another_map = (
            session.dataset_changed,
            session.looked_back,
            session.restored,
            session.comparing.moved,
            session.comparing.laid_out,
            session.splitting.moved,
            session.hiding.changed,
        )
        self._connections.connect_all(another_map, self.cancel)

    def close(self) -> None:
        """End a stroke, and undo the connections to the session."""
        self.cancel()
        self._connections.close()
        if self._ring is not None:
            self._ring.close()
            self._ring = None

    @property
    def sizes(self) -> tuple[int, int, int]:
        """The smallest, the largest and the present radius, in pixels."""
        return SMALLEST, LARGEST, self.radius

    @property
    def is_held(self) -> bool:
        """Whether a stroke is being painted."""
        return self._stroke is not None

    def set_on(self, is_on: bool) -> None:
        """Let the mouse paint, or be as it was."""
        if is_on == self.is_on:
            return
        self.cancel()
        self.is_on = is_on
        if not is_on and self._ring is not None:
            self._ring.hide()
        self.switched.emit(is_on)
        self._tell()

    def set_radius(self, radius: float) -> None:
        """Set the radius of the next strokes, in pixels of the canvas."""
        radius = int(np.clip(round(radius), SMALLEST, LARGEST))
        if radius != self.radius:
            self.radius = radius
            if self._ring is not None:
                self._ring.resize_ring(radius)
            self.resized.emit(radius)

    def grow(self, turns: int) -> None:
        """Make the brush larger, or, below 0, smaller; by a pixel at least."""
        wanted = self.radius * GROWS**turns
        step = max(1.0, abs(wanted - self.radius))
        self.set_radius(self.radius + np.copysign(step, turns))

    # With the mouse

    def hover(self, pixel: NDArray[np.floating]) -> None:
        """Show the ring around a pixel (x, y)."""
        if self._ring is None:
            canvas = self.find_canvas()
            if canvas is None:
                return
            self._ring = BrushRing(canvas)
        self._ring.draw(pixel, self.radius)

    def begin(self, pixel: NDArray[np.floating], mode: Mode) -> None:
        """Begin a stroke, where there is a map."""
        self.cancel()
        self._stroke = self._new_stroke(mode)
        if self._stroke is not None:
            self._drawing.hold()
        self.move(pixel)

    def move(self, pixel: NDArray[np.floating]) -> None:
        """Paint on to a pixel (x, y)."""
        self.hover(pixel)
        if self._stroke is None:
            return
        self._stroke.paint(pixel, self.radius)
        if not self._timer.isActive():
            self._timer.start()

    def end(self) -> None:
        """Select what was painted."""
        stroke = self._stroke
        if stroke is None:
            return
        self._stop()
        if stroke.painted.any():
            self._session.selection.select_points(stroke.painted, stroke.mode)
        self._drawing.release()

    def cancel(self, event: object = None) -> None:
        """Leave the selection as it was before the stroke."""
        if self._stroke is not None:
            self._stop()
            self._drawing.release()

    # Inside

    def _stop(self) -> None:
        self._stroke = None
        self._timer.stop()
        self._tell()

    def _new_stroke(self, mode: Mode) -> Stroke | None:
        session, layers = self._session, self._layers
        snapshot, seen, drawn = session.drawn, session.seen, layers.projection()
        if snapshot is None or seen is None or drawn is None:
            return None
        before, hidden = session.selection.points, session.hiding.mask
        paintable = np.ones(len(before), bool) if hidden is None else ~hidden
        pixels = drawn.to_pixels(layers.to_world(seen))
        objects = self.find_objects()
        if objects is not None:
            pixels = np.concatenate([pixels, objects.places()])
        return Stroke(pixels, paintable, before, mode, objects)

    def _draw(self) -> None:
        """Draw what is painted by now."""
        if self._stroke is not None:
            self._tell()
            self._drawing.show_chosen(self._stroke.chosen)

    def _tell(self) -> None:
        if not self.is_on:
            self.told.emit("")
        elif self._stroke is None:
            self.told.emit(HOW)
        else:
            told = f"{int(self._stroke.chosen.sum()):,} selected."
            if self._session.state == "running":
                told += " The map stands still until you let go."
            self.told.emit(told)
