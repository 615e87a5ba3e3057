"""Draw the points of a map as one picture, instead of their layer's markers.

OpenGL without a graphics card draws each marker of napari as a picture of its own:
0.3 s for 70,000 points.  The picture here is painted for what the camera shows
(:mod:`~napari_embedding_game.ui.pixels`), with selected points above the others;
points in space the farthest first.  Where more points than pixels are seen it tells how
many lie where.  It moves with the camera at once, and another thread paints what comes
into view, or this one what napari takes a screenshot of.  napari draws the markers
itself where a picture cannot be: blended in another way, a flat map that is turned in
space, few points in space, as balls, and points that somebody has given other symbols
or borders.  Colours, sizes and hidden points that somebody sets in the layer are drawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple

import napari
import numpy as np
from napari.layers import Points
from numpy.typing import NDArray
from qtpy.QtCore import QEvent, QObject
from superqt.utils import qthrottled
from vispy.scene import Node
from vispy.scene.visuals import Image
from vispy.visuals.transforms import MatrixTransform

from napari_embedding_game.data.export.plots import paint_order
from napari_embedding_game.data.palette import Colors
from napari_embedding_game.ui.canvas.projection import (
    Projection,
    displayed_axes,
    projection_of,
    view_changes,
)
from napari_embedding_game.ui.compat import Scene, draw, scene_of
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.pixels import paint_density, paint_discs
from napari_embedding_game.ui.tasks.errors import log_error
from napari_embedding_game.ui.tasks.worker import Latest

FOLLOW_MS = 10
"""After a move of the camera; until then the picture moves with the map."""
POINTS_A_PIXEL = 1.0
"""Of the canvas; where more are seen the picture is a density."""
FEW_ABOVE, FEW_PIXELS = 1_000, 4.0
"""So few selected points are discs on a density, as wide as this on the canvas."""
MARGIN = 64
"""Pixels of the canvas that are painted around it: what a pan brings into view."""
MAX_DISC = 64.0
"""Pixels of the canvas that a disc is wide at most; wider ones take seconds."""
MAX_BALLS, SOME = 15_000, 1_000
"""Points that are drawn as balls; and, about, of which the middle is found."""
MIN_DEPTH = 1e-6
"""Of points in front of the eye, relative to what the camera looks at."""
MIN_SKEW = 1e-6
OVER = {
    "depth_test": False,
    "blend": True,
    "blend_func": ("one", "one_minus_src_alpha", "one", "one_minus_src_alpha"),
}
"""How a picture is laid over what is there when its opacity is already in it."""


@dataclass(frozen=True, eq=False)
class Looks:
    """How N points look."""

    colors: Colors
    sizes: NDArray[np.float32]
    """(N,) diameters, in units of the layer."""
    above: NDArray[np.bool_] | None = None
    """(N,) points that are drawn above all others."""

    @cached_property
    def order(self) -> NDArray[np.intp]:
        """The points as they are drawn, those above the others last."""
        order = paint_order(len(self.sizes))
        if self.above is None:
            return order
        is_above = self.above[order]
        return np.concatenate([order[~is_above], order[is_above]])

    def scaled(self, size: float | NDArray[np.floating]) -> Looks:
        """Return the looks of points so many times as large, or each by its (N,)."""
        return replace(self, sizes=np.asarray(self.sizes * size, np.float32))

    def of_rows(self, rows: NDArray[np.bool_]) -> Looks:
        """Return the looks of some points (N,)."""
        above = None if self.above is None else self.above[rows]
        return Looks(self.colors[rows], self.sizes[rows], above)


class Painted(NamedTuple):
    """A picture, and where it is."""

    picture: NDArray[np.uint8]
    """(height, width, 4), red, green and blue times the opacity, and the opacity."""
    middle: NDArray[np.float64]
    """(d,) A position in the middle of the map."""
    begin: NDArray[np.float64]
    """(2,) The pixel (x, y) of the picture that lies there."""
    side: NDArray[np.float64]
    """(2,) Width and height of a pixel, in units of the map."""

    def transform(self, projection: Projection) -> NDArray[np.float64] | None:
        """Return how it is parallel to the canvas where the map is drawn so by now.

        (4, 4) from its pixels to the layer's coordinates, both as vispy has them; None
        behind the camera.
        """
        middle, n_axes = self.middle, len(self.middle)
        here = projection.to_pixels(middle[None])[0]
        ends = [projection.under(here + step, middle) for step in np.eye(2)]
        if any(end is None for end in ends):
            return None
        side = self.side * projection.zooms_at(middle[None])
        sides = (np.array(ends) - middle)[:, ::-1] * side[:, None]
        matrix = np.eye(4)
        matrix[[0, 1, 3], :n_axes] = *sides, middle[::-1] - self.begin @ sides
        if n_axes == 3:
            matrix[2, :3] = np.cross(*sides)
        return matrix


class _PaintFilter(QObject):
    """Hears whether a canvas is drawn for the window, and not for a screenshot.

    ``WA_WState_InPaintEvent`` is not set where the canvas alone is to be painted.
    """

    is_painting = False

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Note that the window paints."""
        self.is_painting |= event.type() == QEvent.Type.Paint
        return False


class MapPicture:
    """Draws a Points layer, whose data may be written in place at any time."""

    def __init__(
        self,
        viewer: napari.Viewer,
        layer: Points,
        on_colored: Callable[[Colors], object] = lambda colors: None,
    ) -> None:
        """``on_colored`` receives the colours (N, 4) that somebody else has set."""
        self._viewer, self._on_colored = viewer, on_colored
        self.layer = layer
        self._set_colors, self._set_sizes = layer.face_color, layer.size
        self._set_shown = layer.shown
        """Arrays of the layer as they were seen last: who sets one puts another in its
        place, or napari tells of it."""
        self._has_discs = True
        """Whether all points are discs without a border."""
        self._own_sizes: NDArray[np.floating] | None = None
        """(N,) sizes that somebody else has set, instead of one for all."""
        self._looks: Looks | None = None
        self._given_looks: tuple[Looks, float] | None = None
        """The looks that were given, and how many times as large the points are."""
        blank = np.zeros((1, 1, 4), np.uint8)
        self._image = Image(blank, clim=(0, 255), texture_format="auto")
        self._image.set_gl_state(**OVER)
        self._image.transform = MatrixTransform()
        self._image.visible = False
        # napari sets the transforms of its node's children anew.
        self._image.parent = self._image_parent = Node()
        self._painted: Painted | None = None
        self._ratio = 1.0
        """Pixels of the screen for one of the canvas, as it was painted for."""
        self._window = _PaintFilter()
        failed = partial(log_error, "The map could not be painted")
        self._painting = Latest(None, self._show_picture, failed, finishes=True)
        self._repaint = qthrottled(self._paint_view, FOLLOW_MS, leading=False)
        self._connections = Connections()
        self._connections.call(self._painting.stop)
        self._connections.call(self._repaint.cancel)
        self._connections.call(self._window.deleteLater)
        events = layer.events
        moved = (events.scale, events.translate, events.rotate, events.shear)
        others = (events.visible, events.opacity, events.blending, events.affine)
        style = (events.symbol, events.border_width, events.border_width_is_relative)
        self._connections.connect(self._on_view, *view_changes(viewer), *moved, *others)
        self._connections.connect(self._on_symbols, *style)
        self._connections.connect(self._on_colors, events.face_color)
        self._connections.connect(self._on_colors, events.current_face_color)
        self._connections.connect(self._on_set, events.set_data)
        self._connections.connect(self._on_sizes, events.size)

    def close(self, *, is_left: bool = True) -> None:
        """Leave the points to napari, or to nobody: markers of a million take 3 s."""
        self._connections.close()
        if is_left and self.layer in self._viewer.layers:
            self._show_markers()
        self._image.parent = self._image_parent.parent = None

    @property
    def is_blank(self) -> bool:
        """Whether nothing was drawn so far; the first drawing makes the layer seen."""
        return self._looks is None

    def show(self, looks: Looks, size: float, *, is_moved: bool = True) -> None:
        """Draw the points where their layer has them, so many times as large.

        Nothing is to be done where they have neither moved nor look otherwise.
        """
        layer, was_blank = self.layer, self.is_blank
        scene = scene_of(self._viewer, layer)
        if self._given_looks != (looks, size):
            self._given_looks = looks, size
            self._look()
        elif not is_moved:
            return
        if was_blank:
            if scene is not None:
                self._hide_markers(scene)  # or napari draws it for nothing
            layer.visible = True
        self._painting.stop()  # it is of before
        self._repaint.cancel()
        self._paint()

    # Inside

    def _look(self) -> None:
        """Have the points look as was said; their sizes may be somebody else's."""
        looks, size = self._given_looks or (None, 1.0)
        if looks is not None:
            layer, own = self.layer, self._own_sizes
            self._looks = looks.scaled(size if own is None else own)
            # In place: its setters copy, emit and draw.
            layer.face_color[:], layer.size[:] = looks.colors, self._looks.sizes

    def _on_colors(self, event: object = None) -> None:
        """Draw colours that somebody has set in the layer."""
        colors = self.layer.face_color
        if colors is not self._set_colors and self._given_looks is not None:
            self._set_colors, (looks, size) = colors, self._given_looks
            rgba = np.array(colors, np.float32)
            self._given_looks = replace(looks, colors=rgba), size
            self._look()
            self._repaint.throttle()
            self._on_colored(rgba)

    def _on_sizes(self, event: object = None) -> None:
        """Draw sizes that somebody has set in the layer."""
        if self._given_looks is not None:
            self._own_sizes = np.array(self.layer.size) / self._given_looks[0].sizes
            self._look()
            self._repaint.throttle()

    def _on_symbols(self, event: object = None) -> None:
        """Leave points to napari that somebody has given symbols or borders."""
        layer = self.layer
        is_disc = not (layer.symbol != "disc").any()
        self._has_discs = is_disc and not layer.border_width.any()
        self._repaint.throttle()

    def _on_set(self, event: object = None) -> None:
        """Look whether somebody has set sizes or hidden points: no event says so."""
        layer = self.layer
        if layer.size is not self._set_sizes:
            self._set_sizes = layer.size
            self._on_sizes()
        if layer.shown is not self._set_shown:
            self._set_shown = layer.shown
            self._repaint.throttle()

    def _paint(self) -> None:
        """Paint what is seen now, or have napari draw the markers."""
        if not self._is_possible():
            self._show_markers()
        elif (job := self._job()) is not None:
            self._show_picture(job())

    def _is_possible(self) -> bool:
        """Whether a picture can replace the markers."""
        layer = self.layer
        if layer.blending != "translucent" or is_of_balls(layer.ndim, len(layer.data)):
            return False
        if not self._has_discs:
            return False
        if scene_of(self._viewer, layer) is None:
            return False
        projection = projection_of(self._viewer, layer)
        if projection is None or projection.sight is not None:
            return True
        return self._viewer.dims.ndisplay == 2 and _is_upright(projection)

    def _job(self) -> Callable[[], Painted] | None:
        """Return what paints what is seen now; None while that is nothing."""
        layer, scene = self.layer, scene_of(self._viewer, self.layer)
        projection, looks = projection_of(self._viewer, layer), self._looks
        if projection is None or scene is None or looks is None:
            return None
        if len(looks.sizes) != len(layer.data):
            return None
        axes = displayed_axes(self._viewer.dims, layer.ndim, layer.ndim)
        is_in_order = axes == list(range(layer.ndim))
        points = layer.data if is_in_order else layer.data[:, axes]
        if not layer.shown.all():
            if not layer.shown.any():
                looks = replace(looks, colors=np.zeros_like(looks.colors))
            else:
                points, looks = points[layer.shown], looks.of_rows(layer.shown)
        self._ratio = ratio = scene.canvas.devicePixelRatioF()
        return partial(paint, points, looks, projection, layer.opacity, ratio, MARGIN)

    def _show_picture(self, painted: Painted) -> None:
        """Show a picture instead of the markers."""
        scene = scene_of(self._viewer, self.layer)
        if self._image_parent.parent is not scene.node:
            self._image_parent.parent = scene.node
            scene.canvas.installEventFilter(self._window)
            self._connections.connect(self._on_draw, self._image.canvas.events.draw)
        self._painted = painted
        self._image.set_data(painted.picture)
        self._align()
        self._image.visible = True
        self._hide_markers(scene)

    def _on_draw(self, event: object) -> None:
        """Paint what is drawn for a screenshot, or on another screen: no event comes.

        napari makes the canvas larger for a screenshot, or fits all of the map on it.
        """
        is_window, self._window.is_painting = self._window.is_painting, False
        scene = scene_of(self._viewer, self.layer)
        is_same = scene is None or scene.canvas.devicePixelRatioF() == self._ratio
        if self._image.visible and not (is_window and is_same):
            self._paint()

    def _align(self) -> None:
        """Put the picture where it belongs: in space it faces whoever looks."""
        projection = projection_of(self._viewer, self.layer)
        if projection is not None and self._painted is not None:
            matrix = self._painted.transform(projection)
            if matrix is not None:
                self._image.transform.matrix = matrix

    def _hide_markers(self, scene: Scene) -> None:
        """Hide the markers, and have napari fill none: a second for a million."""
        scene.points.visible = False
        self.layer.events.set_data.disconnect(scene.fill)

    def _show_markers(self) -> None:
        """Have napari draw the markers as they are now."""
        scene = scene_of(self._viewer, self.layer)
        self._image.visible = False
        if scene is not None:
            self.layer.events.set_data.connect(scene.fill)
            scene.points.visible = True
        draw(self._viewer, self.layer)

    def _on_view(self, event: object = None) -> None:
        if self._image.visible and self.layer.ndim == 3:
            self._align()
        self._repaint.throttle()

    def _paint_view(self) -> None:
        """Have painted what is seen now that the camera has moved."""
        if self._is_possible():
            if (job := self._job()) is not None:
                self._painting.submit(job)
        elif self._image.visible or self._painting.is_busy:
            self._painting.stop()
            self._show_markers()


def is_of_balls(n_axes: int, n_points: int) -> bool:
    """Return whether points are drawn as balls: in space, if they are few."""
    return n_axes == 3 and n_points <= MAX_BALLS


def paint(
    positions: NDArray[np.floating],
    looks: Looks,
    projection: Projection,
    opacity: float = 1.0,
    ratio: float = 1.0,
    margin: float = 0.0,
) -> Painted:
    """Paint points (N, 2) of an upright plane, or (N, 3) in space, as they are seen.

    Positions are along the displayed axes; ``ratio`` are the pixels of the screen for
    one of the canvas, along one side; ``margin``: pixels of the canvas that are painted
    around it, too, of a plane.
    """
    n_most = projection.cell[2] * projection.cell[3] * POINTS_A_PIXEL
    widen = np.array([-1, -1, 2, 2]) * (margin if projection.sight is None else 0.0)
    x, y, width, height = np.add(projection.cell, widen).tolist()
    shape = max(1, round(height * ratio)), max(1, round(width * ratio))
    pixels = np.array([width / shape[1], height / shape[0]])
    middle = positions[:: 1 + len(positions) // SOME].mean(axis=0, dtype=float)
    begin = (projection.to_pixels(middle[None])[0] - [x, y]) / pixels
    location = middle, begin, pixels / projection.zooms_at(middle[None])
    above, depth, lines = looks.above, None, ((1.0, 0.0), (1.0, 0.0))
    if projection.sight is None:  # rows and columns become those of the picture
        matrix = projection.matrix[:2] / projection.matrix[2, 2]
        (_, across, left), (down, _, top) = matrix
        row = down / pixels[1], (top - y) / pixels[1]
        lines = row, (across / pixels[0], (left - x) / pixels[0])
    else:
        depths = positions @ projection.matrix[2, :3] + projection.matrix[2, 3]
        zooms = projection.zoom / np.maximum(depths, MIN_DEPTH) / pixels[0]
        looks = replace(looks, sizes=(looks.sizes * zooms).astype(np.float32))
        depth = positions @ projection.sight
        positions = ((projection.to_pixels(positions) - [x, y]) / pixels)[:, ::-1]
    largest = MAX_DISC * ratio / max(abs(lines[1][0]), 1e-9)
    points = positions, np.minimum(looks.sizes, largest), looks.colors
    if len(positions) > n_most:
        args = lines, shape, above, opacity, n_most
        density = paint_density(positions, looks.colors, *args)
        if density is not None:
            if above is not None and 0 < np.count_nonzero(above) <= FEW_ABOVE:
                least = FEW_PIXELS / math.sqrt(abs(lines[0][0] * lines[1][0]))
                large = positions, np.maximum(looks.sizes, least), looks.colors
                rows = np.flatnonzero(above)
                paint_discs(*large, lines, shape, rows, opacity, density)
            return Painted(density, *location)
    order = looks.order
    if depth is not None:
        order = order[np.argsort(-depth[order])]  # farthest first
    return Painted(paint_discs(*points, lines, shape, order, opacity), *location)


def _is_upright(projection: Projection) -> bool:
    """Return whether rows go down or up and columns go across on the canvas."""
    matrix = projection.matrix
    largest = abs(matrix[:2, :2]).max()
    skewed = max(abs(matrix[0, 0]), abs(matrix[1, 1]), *abs(matrix[2, :2]))
    return bool(skewed <= MIN_SKEW * largest)
