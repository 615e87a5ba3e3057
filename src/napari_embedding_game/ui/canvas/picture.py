"""Render the points of a map as one picture, instead of their layer's markers.

Without a graphics card OpenGL renders each marker of napari as a picture of its own:
0.3 s for 70,000 points.  The picture here is painted for the present view
(:mod:`~napari_embedding_game.ui.pixels`), with selected points above all others and
points in space from the farthest to the nearest.  Where there are more points than
pixels it shows their density.  The picture moves with the camera at once, and is
painted again in another thread, or in this thread for a screenshot.

napari renders the markers itself where a picture cannot replace them: for another
blending, for a flat map that is turned in space, for few points in space, which are
balls, and for points with other symbols or with borders.  Colours, sizes and hidden
points that a person or a plugin sets in the layer are respected.
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

from napari_embedding_game.data.export.plots import make_paint_order
from napari_embedding_game.data.palette import Colors
from napari_embedding_game.ui.canvas.projection import (
    CanvasProjection,
    displayed_axes,
    layer_projection,
    list_view_change_events,
)
from napari_embedding_game.ui.compat import (
    LayerVisual,
    find_layer_visual,
    refresh_layer,
)
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.pixels import paint_density, paint_discs
from napari_embedding_game.ui.tasks.errors import log_error
from napari_embedding_game.ui.tasks.worker import JobRunner

REPAINT_MS = 10
"""Delay after a move of the camera; until then the picture moves with the map."""
MAX_POINTS_PER_PIXEL = 1.0
"""With more points per pixel of the canvas the picture is a density."""
FEW_ABOVE, FEW_PIXELS = 1_000, 4.0
"""Up to so many selected points are discs on a density, with at least this diameter in
pixels."""
MARGIN = 64
"""Pixels that are painted around the canvas, and come into view with a pan."""
MAX_DISC = 64.0
"""Greatest diameter of a disc in pixels of the canvas; larger discs take seconds."""
MAX_BALLS, CENTER_SAMPLE = 15_000, 1_000
"""Up to so many points are rendered as balls; so many points give the map's center."""
MIN_DEPTH = 1e-6
"""Least depth of a point, relative to the depth that the camera is centred on."""
MIN_SKEW = 1e-6
"""Largest relative skew of a flat map that counts as none."""
OVER = {
    "depth_test": False,
    "blend": True,
    "blend_func": ("one", "one_minus_src_alpha", "one", "one_minus_src_alpha"),
}
"""OpenGL state to blend a picture whose colours are multiplied by its opacity."""


@dataclass(frozen=True, eq=False)
class PointStyle:
    """Colours, sizes and order of N points."""

    colors: Colors
    sizes: NDArray[np.float32]
    """(N,) diameters, in units of the layer."""
    is_on_top: NDArray[np.bool_] | None = None
    """(N,) mask of points that are painted above all others."""

    @cached_property
    def painting_order(self) -> NDArray[np.intp]:
        """The rows (N,) in the order of painting; points in ``is_on_top`` come last."""
        order = make_paint_order(len(self.sizes))
        if self.is_on_top is None:
            return order
        is_above = self.is_on_top[order]
        return np.concatenate([order[~is_above], order[is_above]])

    def with_scaled_sizes(self, factor: float | NDArray[np.floating]) -> PointStyle:
        """Return the style with sizes multiplied by a factor, or by factors (N,)."""
        return replace(self, sizes=np.asarray(self.sizes * factor, np.float32))

    def select_rows(self, is_kept: NDArray[np.bool_]) -> PointStyle:
        """Return the style of the points for which a mask (N,) is True."""
        is_on_top = None if self.is_on_top is None else self.is_on_top[is_kept]
        return PointStyle(self.colors[is_kept], self.sizes[is_kept], is_on_top)


class PaintedImage(NamedTuple):
    """A picture of points, and its place on the map."""

    picture: NDArray[np.uint8]
    """(height, width, 4) with colours multiplied by the opacity, and the opacity."""
    middle: NDArray[np.float64]
    """(d,) a position in the middle of the map."""
    middle_pixel: NDArray[np.float64]
    """(2,) the pixel (x, y) of the picture at that position."""
    pixel_size: NDArray[np.float64]
    """(2,) width and height of a pixel there, in units of the map."""

    def compute_image_matrix(
        self, projection: CanvasProjection
    ) -> NDArray[np.float64] | None:
        """Return the matrix (4, 4) that keeps the picture on the map, facing the eye.

        The matrix goes from pixels of the picture to the layer's coordinates, both in
        vispy's order.  None where the map's middle is behind the camera.
        """
        middle, n_axes = self.middle, len(self.middle)
        here = projection.to_pixels(middle[None])[0]
        ends = [projection.position_at_pixel(here + step, middle) for step in np.eye(2)]
        if any(end is None for end in ends):
            return None
        side = self.pixel_size * projection.compute_pixels_per_unit(middle[None])
        sides = (np.array(ends) - middle)[:, ::-1] * side[:, None]
        matrix = np.eye(4)
        matrix[[0, 1, 3], :n_axes] = *sides, middle[::-1] - self.middle_pixel @ sides
        if n_axes == 3:
            matrix[2, :3] = np.cross(*sides)
        return matrix


class _PaintFilter(QObject):
    """Notes whether a canvas is painted for the window, and not for a screenshot.

    Qt's ``WA_WState_InPaintEvent`` is not set where only the canvas is painted.
    """

    is_painting = False

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Note a paint event of the window, and let the canvas handle each event."""
        self.is_painting |= event.type() == QEvent.Type.Paint
        return False


class MapPicture:
    """Renders a Points layer, whose data may be written in place at any time."""

    def __init__(
        self,
        viewer: napari.Viewer,
        layer: Points,
        on_points_colored: Callable[[Colors], object] = lambda colors: None,
    ) -> None:
        """``on_points_colored`` is called with colours (N, 4) set in the layer."""
        self._viewer, self._points_colored = viewer, on_points_colored
        self.layer = layer
        self._set_colors, self._set_sizes = layer.face_color, layer.size
        self._set_shown = layer.shown
        """Arrays of the layer when last read: setting colours, sizes or hidden points
        replaces the array, or emits an event."""
        self._has_discs = True
        """Whether all points are discs without a border."""
        self._own_sizes: NDArray[np.floating] | None = None
        """(N,) sizes that a person or plugin has set, relative to the style's."""
        self._style: PointStyle | None = None
        self._given_style: tuple[PointStyle, float] | None = None
        """The style and the size factor that :meth:`show_points` was called with."""
        blank = np.zeros((1, 1, 4), np.uint8)
        self._image = Image(blank, clim=(0, 255), texture_format="auto")
        self._image.set_gl_state(**OVER)
        self._image.transform = MatrixTransform()
        self._image.visible = False
        # napari overwrites the transforms of its own node's children.
        self._image.parent = self._image_parent = Node()
        self._painted: PaintedImage | None = None
        self._ratio = 1.0
        """Screen pixels per canvas pixel that the picture was painted for."""
        self._window = _PaintFilter()
        failed = partial(log_error, "The map could not be painted")
        self._painting = JobRunner(
            None, self._show_painted_image, failed, finishes=True
        )
        self._repaint_soon = qthrottled(
            self._paint_in_thread, REPAINT_MS, leading=False
        )
        self._connections = Connections()
        self._connections.add_cleanup(self._painting.stop)
        self._connections.add_cleanup(self._repaint_soon.cancel)
        self._connections.add_cleanup(self._window.deleteLater)
        events = layer.events
        moved = (events.scale, events.translate, events.rotate, events.shear)
        others = (events.visible, events.opacity, events.blending, events.affine)
        marks = (events.symbol, events.border_width, events.border_width_is_relative)
        self._connections.connect(
            self._on_view_changed, *list_view_change_events(viewer), *moved, *others
        )
        self._connections.connect(self._on_symbols_or_borders_set, *marks)
        self._connections.connect(self._on_layer_colors_set, events.face_color)
        self._connections.connect(self._on_layer_colors_set, events.current_face_color)
        self._connections.connect(self._on_layer_data_set, events.set_data)
        self._connections.connect(self._on_layer_sizes_set, events.size)

    def close(self, *, shows_markers: bool = True) -> None:
        """Remove the picture, and let napari render the markers if ``shows_markers``.

        A layer that is about to be removed needs no markers: a million take 3 s.
        """
        self._connections.close()
        if shows_markers and self.layer in self._viewer.layers:
            self._show_markers()
        self._image.parent = self._image_parent.parent = None

    @property
    def is_blank(self) -> bool:
        """Whether :meth:`show_points` was never called, so that the layer is hidden."""
        return self._style is None

    def show_points(
        self, style: PointStyle, size: float, *, is_moved: bool = True
    ) -> None:
        """Render the layer's points in a style whose sizes are multiplied by ``size``.

        ``is_moved``: whether positions have changed in the layer.  Without that and
        without a new style or size nothing is done.  The first call makes the layer
        visible.  The picture is painted in this thread, and one that is being painted
        in another thread is dropped.
        """
        layer, was_blank = self.layer, self.is_blank
        scene = find_layer_visual(self._viewer, layer)
        if self._given_style != (style, size):
            self._given_style = style, size
            self._write_style_to_layer()
        elif not is_moved:
            return
        if was_blank:
            if scene is not None:
                self._hide_markers(scene)  # napari would render them in vain
            layer.visible = True
        self._painting.stop()  # its picture would be outdated
        self._repaint_soon.cancel()
        self._paint_now()

    def _write_style_to_layer(self) -> None:
        """Write the given style into the layer, in place; nothing without a style.

        Relative sizes that somebody has set replace the size factor.
        """
        style, size = self._given_style or (None, 1.0)
        if style is not None:
            layer, own = self.layer, self._own_sizes
            self._style = style.with_scaled_sizes(size if own is None else own)
            # In place, since the layer's setters copy, emit and render.
            layer.face_color[:], layer.size[:] = style.colors, self._style.sizes

    def _on_layer_colors_set(self, event: object = None) -> None:
        """Adopt and report colours that a person or plugin has set in the layer.

        The picture is painted again soon.  Nothing is done where the layer's array of
        colours is not a new one.
        """
        colors = self.layer.face_color
        if colors is not self._set_colors and self._given_style is not None:
            self._set_colors, (style, size) = colors, self._given_style
            rgba = np.array(colors, np.float32)
            self._given_style = replace(style, colors=rgba), size
            self._write_style_to_layer()
            self._repaint_soon.throttle()
            self._points_colored(rgba)

    def _on_layer_sizes_set(self, event: object = None) -> None:
        """Adopt sizes that a person or plugin has set in the layer, and paint again.

        They are kept relative to the style's, so that they apply to the next style.
        """
        if self._given_style is not None:
            self._own_sizes = np.array(self.layer.size) / self._given_style[0].sizes
            self._write_style_to_layer()
            self._repaint_soon.throttle()

    def _on_symbols_or_borders_set(self, event: object = None) -> None:
        """Note whether napari must render symbols or borders, and paint again."""
        layer = self.layer
        is_disc = not (layer.symbol != "disc").any()
        self._has_discs = is_disc and not layer.border_width.any()
        self._repaint_soon.throttle()

    def _on_layer_data_set(self, event: object = None) -> None:
        """Adopt new sizes and hidden points, for which napari emits no other event."""
        layer = self.layer
        if layer.size is not self._set_sizes:
            self._set_sizes = layer.size
            self._on_layer_sizes_set()
        if layer.shown is not self._set_shown:
            self._set_shown = layer.shown
            self._repaint_soon.throttle()

    def _paint_now(self) -> None:
        """Paint the present view in this thread, or let napari render the markers.

        A view that shows no points keeps the last picture.
        """
        if not self._can_replace_markers():
            self._show_markers()
        elif (job := self._make_paint_job()) is not None:
            self._show_painted_image(job())

    def _can_replace_markers(self) -> bool:
        """Whether a picture can replace the markers.

        It can for translucent discs without borders, on a plane that is upright in a
        flat view, or in space if there are too many points for balls.  Where the layer
        is hidden the blending, the symbols and the number of points decide.
        """
        layer = self.layer
        if layer.blending != "translucent" or are_rendered_as_balls(
            layer.ndim, len(layer.data)
        ):
            return False
        if not self._has_discs:
            return False
        if find_layer_visual(self._viewer, layer) is None:
            return False
        projection = layer_projection(self._viewer, layer)
        if projection is None or projection.view_direction is not None:
            return True
        return self._viewer.dims.ndisplay == 2 and _is_upright(projection)

    def _make_paint_job(self) -> Callable[[], PaintedImage] | None:
        """Return a function that paints the present view; None if it cannot be painted.

        None without a canvas, a projection or a style, or where the layer has another
        number of points than the style.  Hidden points are left out; if all are hidden,
        the function paints them transparent.  The present pixel ratio is noted.
        """
        layer, scene = self.layer, find_layer_visual(self._viewer, self.layer)
        projection, style = layer_projection(self._viewer, layer), self._style
        if projection is None or scene is None or style is None:
            return None
        if len(style.sizes) != len(layer.data):
            return None
        axes = displayed_axes(self._viewer.dims, layer.ndim, layer.ndim)
        is_in_order = axes == list(range(layer.ndim))
        points = layer.data if is_in_order else layer.data[:, axes]
        if not layer.shown.all():
            if not layer.shown.any():
                style = replace(style, colors=np.zeros_like(style.colors))
            else:
                points, style = points[layer.shown], style.select_rows(layer.shown)
        self._ratio = pixel_ratio = scene.canvas.devicePixelRatioF()
        return partial(
            paint_points, points, style, projection, layer.opacity, pixel_ratio, MARGIN
        )

    def _show_painted_image(self, painted: PaintedImage) -> None:
        """Show a painted picture on the canvas, and hide the markers.

        Where the canvas is new, or napari has made the layer's node again, the picture
        is attached to it first.
        """
        scene = find_layer_visual(self._viewer, self.layer)
        if self._image_parent.parent is not scene.node:
            self._image_parent.parent = scene.node
            scene.canvas.installEventFilter(self._window)
            self._connections.connect(
                self._on_canvas_drawn, self._image.canvas.events.draw
            )
        self._painted = painted
        self._image.set_data(painted.picture)
        self._align_image()
        self._image.visible = True
        self._hide_markers(scene)

    def _on_canvas_drawn(self, event: object) -> None:
        """Paint again for a screenshot or another screen, which emit no other event.

        For a screenshot napari enlarges the canvas, or fits the map to it.
        """
        is_window, self._window.is_painting = self._window.is_painting, False
        scene = find_layer_visual(self._viewer, self.layer)
        is_same = scene is None or scene.canvas.devicePixelRatioF() == self._ratio
        if self._image.visible and not (is_window and is_same):
            self._paint_now()

    def _align_image(self) -> None:
        """Move the picture to its place in the present view, facing the eye.

        The picture is not moved if its middle is behind the camera.
        """
        projection = layer_projection(self._viewer, self.layer)
        if projection is not None and self._painted is not None:
            matrix = self._painted.compute_image_matrix(projection)
            if matrix is not None:
                self._image.transform.matrix = matrix

    def _hide_markers(self, scene: LayerVisual) -> None:
        """Hide the markers, and keep napari from updating them: a million take 1 s."""
        scene.markers.visible = False
        self.layer.events.set_data.disconnect(scene.update_markers)

    def _show_markers(self) -> None:
        """Hide the picture, and let napari update and render the markers."""
        scene = find_layer_visual(self._viewer, self.layer)
        self._image.visible = False
        if scene is not None:
            self.layer.events.set_data.connect(scene.update_markers)
            scene.markers.visible = True
        refresh_layer(self._viewer, self.layer)

    def _on_view_changed(self, event: object = None) -> None:
        """Turn a picture in space to the eye at once, and paint the view again soon."""
        if self._image.visible and self.layer.ndim == 3:
            self._align_image()
        self._repaint_soon.throttle()

    def _paint_in_thread(self) -> None:
        """Paint the view in a thread if a picture can stand for the markers, else stop.

        Without a picture napari renders the markers.

        Markers that napari renders already are left alone.
        """
        if self._can_replace_markers():
            if (job := self._make_paint_job()) is not None:
                self._painting.submit(job)
        elif self._image.visible or self._painting.is_busy:
            self._painting.stop()
            self._show_markers()


def are_rendered_as_balls(n_axes: int, n_points: int) -> bool:
    """Return whether points are rendered as balls: few points in space are."""
    return n_axes == 3 and n_points <= MAX_BALLS


def paint_points(
    positions: NDArray[np.floating],
    style: PointStyle,
    projection: CanvasProjection,
    opacity: float = 1.0,
    pixel_ratio: float = 1.0,
    margin: float = 0.0,
) -> PaintedImage:
    """Return a picture of points (N, 2) on an upright plane, or of (N, 3) in space.

    Where there are more points than ``MAX_POINTS_PER_PIXEL`` they are painted as a
    density, with up to ``FEW_ABOVE`` points on top as discs; else all are discs, in
    space from the farthest to the nearest.

    Parameters
    ----------
    positions : array
        Positions along the displayed axes.
    style : PointStyle
        Colours and order of the N points, and sizes in units of ``positions``.
    projection : CanvasProjection
        The present projection of ``positions``.
    opacity : float
        Opacity of each point, from 0 to 1.
    pixel_ratio : float
        Screen pixels per canvas pixel, along one side.
    margin : float
        Canvas pixels that are painted around the canvas of a plane.
    """
    n_most = projection.canvas_box[2] * projection.canvas_box[3] * MAX_POINTS_PER_PIXEL
    widen = np.array([-1, -1, 2, 2]) * (
        margin if projection.view_direction is None else 0.0
    )
    x, y, width, height = np.add(projection.canvas_box, widen).tolist()
    shape = max(1, round(height * pixel_ratio)), max(1, round(width * pixel_ratio))
    pixels = np.array([width / shape[1], height / shape[0]])
    middle = positions[:: 1 + len(positions) // CENTER_SAMPLE].mean(axis=0, dtype=float)
    begin = (projection.to_pixels(middle[None])[0] - [x, y]) / pixels
    location = middle, begin, pixels / projection.compute_pixels_per_unit(middle[None])
    is_on_top, depth, lines = style.is_on_top, None, ((1.0, 0.0), (1.0, 0.0))
    if projection.view_direction is None:  # the painter scales rows and columns
        matrix = projection.matrix[:2] / projection.matrix[2, 2]
        (_, across, left), (down, _, top) = matrix
        row = down / pixels[1], (top - y) / pixels[1]
        lines = row, (across / pixels[0], (left - x) / pixels[0])
    else:
        depths = positions @ projection.matrix[2, :3] + projection.matrix[2, 3]
        zooms = projection.pixels_per_unit / np.maximum(depths, MIN_DEPTH) / pixels[0]
        style = replace(style, sizes=(style.sizes * zooms).astype(np.float32))
        depth = positions @ projection.view_direction
        positions = ((projection.to_pixels(positions) - [x, y]) / pixels)[:, ::-1]
    largest = MAX_DISC * pixel_ratio / max(abs(lines[1][0]), 1e-9)
    points = positions, np.minimum(style.sizes, largest), style.colors
    if len(positions) > n_most:
        args = lines, shape, is_on_top, opacity, n_most
        density = paint_density(positions, style.colors, *args)
        if density is not None:
            if is_on_top is not None and 0 < np.count_nonzero(is_on_top) <= FEW_ABOVE:
                least = FEW_PIXELS / math.sqrt(abs(lines[0][0] * lines[1][0]))
                large = positions, np.maximum(style.sizes, least), style.colors
                rows = np.flatnonzero(is_on_top)
                paint_discs(*large, lines, shape, rows, opacity, density)
            return PaintedImage(density, *location)
    order = style.painting_order
    if depth is not None:
        order = order[np.argsort(-depth[order])]  # farthest first
    return PaintedImage(paint_discs(*points, lines, shape, order, opacity), *location)


def _is_upright(projection: CanvasProjection) -> bool:
    """Return whether rows are vertical and columns horizontal on the canvas."""
    matrix = projection.matrix
    largest = abs(matrix[:2, :2]).max()
    skewed = max(abs(matrix[0, 0]), abs(matrix[1, 1]), *abs(matrix[2, :2]))
    return bool(skewed <= MIN_SKEW * largest)
