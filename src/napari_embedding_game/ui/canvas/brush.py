"""The brush on the canvas: it paints a selection, and corrects the map meanwhile.

What it takes, who steps out and who is drawn in is found by
:class:`~napari_embedding_game.core.inspect.brushing.Brushing`, in pixels of the canvas.
Here its strokes are drawn.  While the button is held the map is drawn as it was when it
went down, with these corrections; then it is as before, and the brushed points are the
selection.  In space points move parallel to the canvas, each as deep as it lies; of
maps side by side they move on the one over which the mouse is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QObject, QTimer, Signal
from qtpy.QtWidgets import QWidget

from napari_embedding_game.core.inspect.brushing import Brushing
from napari_embedding_game.session.selection import Mode
from napari_embedding_game.session.session import Session
from napari_embedding_game.ui.canvas.brush_neighbors import BrushNeighbors
from napari_embedding_game.ui.canvas.displaced import STEP_MS, Displaced
from napari_embedding_game.ui.canvas.drawing import Drawing
from napari_embedding_game.ui.canvas.overlays.brush_ring import BrushRing
from napari_embedding_game.ui.canvas.projection import Projection
from napari_embedding_game.ui.compat import pause_zooming
from napari_embedding_game.ui.connections import Connections

if TYPE_CHECKING:
    import napari

RADIUS, SMALLEST, LARGEST = 24, 4, 200
"""Of the brush, in pixels of the canvas."""
GROWS = 1.2
"""Of the radius, with each press of a key."""
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
    """One stroke of the brush: what it takes, and how that is drawn.

    Parameters
    ----------
    brushing : Brushing
        In pixels of the canvas.
    world : (m N, 2) or (m N, 3) array
        Where the points are drawn, as of :meth:`.MapLayers.to_world`.
    before : (N,) bool array
        What was selected.
    mode : {"replace", "add", "remove"}
    drawn : Projection
        How the map was drawn when the button went down.
    looks : tuple
        Colours (N, 4) of points that stand out and of those that do not, and the sizes
        of both.
    """

    def __init__(
        self,
        brushing: Brushing,
        world: NDArray[np.floating],
        before: NDArray[np.bool_],
        mode: Mode,
        drawn: Projection,
        looks: tuple[NDArray[np.float32], ...],
    ) -> None:
        self.brushing, self.mode, self.drawn = brushing, mode, drawn
        self._world, self._before = world, before
        self._bright, self._muted, self._large, self._small = looks
        # Most points are outside of what is painted first.
        self.colors, self.sizes = self._muted.copy(), self._small.copy()
        self.above = np.zeros(len(before), bool)
        self.n_chosen = 0

    @property
    def painted(self) -> NDArray[np.bool_]:
        """(N,) what was brushed, on whichever of the maps side by side."""
        return self.brushing.chosen.copy()

    @property
    def waits(self) -> bool:
        """Whether it would correct, and has no neighbours yet."""
        return self.brushing.is_plain and self.mode != "remove"

    def follow(self) -> None:
        """Let what is chosen by now stand out."""
        painted = self.painted
        chosen = painted
        if self.mode == "add":
            chosen = self._before | painted
        elif self.mode == "remove":
            chosen = self._before & ~painted
        self.n_chosen = int(chosen.sum())
        bright = chosen
        if not self.brushing.is_plain:
            bright = chosen | self.brushing.on_any(self.brushing.drawn_in)
        if not bright.any():
            bright = np.ones(len(bright), bool)
            chosen = np.zeros(len(bright), bool)
        rows = np.flatnonzero(bright != self.above)
        self.colors[rows] = np.where(
            bright[rows, None], self._bright[rows], self._muted[rows]
        )
        sizes = np.where(chosen, self._large, self._small)
        self.sizes, self.above = sizes, bright

    def places(self, rows: NDArray[np.intp]) -> NDArray[np.float64] | None:
        """Return where these points are to be drawn, on the plane or in the space.

        None where the plane is seen from its edge.
        """
        pixels = self.brushing.places[rows]
        if self.drawn.ahead is None:
            return self.drawn.to_plane(pixels)
        return self.drawn.each_beside(self._world[rows], pixels)


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
        self._stroke: Stroke | None = None
        self._displaced = Displaced(drawing.layers)
        self._neighbors = BrushNeighbors(session)
        self._neighbors.changed.connect(self._on_neighbors)
        self._ring: BrushRing | None = None
        self._timer = QTimer(self)
        self._timer.setInterval(STEP_MS)
        self._timer.timeout.connect(self._go_on)
        self._is_stale = False
        """Whether more was painted than is drawn."""
        self._connections = Connections()
        another_map = (
            session.dataset_changed,
            session.looked_back,
            session.restored,
            session.comparing.moved,
            session.comparing.laid_out,
            session.splitting.moved,
            session.facing_changed,
            session.hiding.changed,
        )
        self._connections.connect_all(another_map, self._give_up)
        self._connections.connect(session.state_changed, self._prepare)

    def close(self) -> None:
        """End a stroke, and undo the connections to the session."""
        self.cancel()
        self._connections.close()
        self._neighbors.close()
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
        self._prepare()

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
        self.hover(pixel)
        self._stroke = stroke = self._new_stroke(mode)
        if stroke is None:
            return
        self._drawing.hold()
        self._displaced.begin()
        self.move(pixel)

    def move(self, pixel: NDArray[np.floating]) -> None:
        """Paint on to a pixel (x, y)."""
        self.hover(pixel)
        if self._stroke is None:
            return
        self._stroke.brushing.paint(pixel)
        self._is_stale = True
        if not self._timer.isActive():
            self._go_on()
            self._timer.start()

    def end(self) -> None:
        """Select what was brushed; the map is as before."""
        stroke = self._stroke
        if stroke is None:
            return
        painted = stroke.painted
        self._stop()
        if painted.any():
            self._session.selection.select_points(painted, stroke.mode)
        self._drawing.release()

    def cancel(self) -> None:
        """Leave selection and map as they were before the stroke."""
        if self._stroke is not None:
            self._stop()
            self._drawing.release()

    # Inside

    def _stop(self) -> None:
        self._stroke = None
        self._timer.stop()
        self._displaced.end()
        self._tell()

    def _give_up(self, event: object = None) -> None:
        self.cancel()
        self._prepare()

    def _new_stroke(self, mode: Mode) -> Stroke | None:
        session, layers = self._session, self._layers
        snapshot, seen, drawn = session.drawn, session.seen, layers.projection()
        if snapshot is None or seen is None or drawn is None:
            return None
        self._neighbors.prepare()
        lists = None if mode == "remove" else self._neighbors.lists
        before, hidden = session.selection.points, session.hiding.mask
        fixed = np.zeros(len(before), bool) if hidden is None else hidden
        if mode == "add":
            fixed = fixed | before
        world = layers.to_world(seen)
        brushing = Brushing(
            drawn.to_pixels(world),
            None if lists is None else lists.neighbors,
            float(self.radius),
            None if lists is None else lists.listed_by,
            fixed,
            len(seen) // len(before),
        )
        looks = self._drawing.looks_of_two(snapshot)
        return Stroke(brushing, world, before, mode, drawn, looks)

    def _prepare(self, event: object = None) -> None:
        """Have the neighbours ready before they are needed."""
        if self.is_on:
            self._neighbors.prepare()
        self._tell()

    def _on_neighbors(self) -> None:
        """Correct what has been painted without the neighbours."""
        stroke, lists = self._stroke, self._neighbors.lists
        if stroke is not None and lists is not None and stroke.waits:
            stroke.brushing.learn(*lists)
            self._is_stale = True
            self._timer.start()
        self._tell()

    def _go_on(self) -> None:
        """Draw what was painted since, and points that are still on their way."""
        stroke = self._stroke
        if stroke is None:
            return
        if self._is_stale:
            stroke.follow()
            if not stroke.brushing.is_plain:
                rows = stroke.brushing.moved
                places = stroke.places(rows)
                if places is not None:
                    self._displaced.send(rows, places)
            self._tell()
        is_moving = self._displaced.step()
        if not (is_moving or self._is_stale):
            self._timer.stop()
            return
        self._is_stale = False
        self._layers.show_looks(stroke.colors, stroke.sizes, stroke.above)

    def _tell(self, event: object = None) -> None:
        if not self.is_on:
            self.told.emit("")
            return
        stroke, snapshot = self._stroke, self._session.drawn
        if stroke is None:
            why = "" if snapshot is None else self._neighbors.told()
            self.told.emit(f"{HOW} {why}".strip())
        else:
            self.told.emit(self._told(stroke))

    def _told(self, stroke: Stroke) -> str:
        parts = [f"{stroke.n_chosen:,} selected."]
        brushing = stroke.brushing
        if stroke.waits:
            parts.append(self._neighbors.told())
        elif not brushing.is_plain:
            drawn_in = brushing.on_any(brushing.drawn_in)
            n_in = int((drawn_in & ~brushing.chosen).sum())
            n_out = int(brushing.on_any(brushing.stepped_out).sum())
            like = "1 like them from elsewhere waits"
            if n_in != 1:
                like = f"{n_in:,} like them from elsewhere wait"
            strangers = "1 stranger" if n_out == 1 else f"{n_out:,} strangers"
            parts.append(f"{like} at the rim, {strangers} stepped out.")
        if self._session.state == "running":
            parts.append("The map stands still until you let go.")
        return " ".join(part for part in parts if part)
