"""Draw the points of a map as one picture while they or the camera move.

napari prepares every point of a layer for each frame, and OpenGL without a graphics
card draws each as a picture of its own: half a second for 70,000 points.  The picture
here is painted by :func:`~napari_embedding_game.core.inspect.picture.paint_points` and
is drawn in the place of the points, with the same colours, sizes and order; points in
space are painted as they are seen, the farthest first.  Once
everything has come to rest the layer draws its points itself, if that does not take
long; else the picture stays.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

import numpy as np
from napari.layers import Points
from numpy.typing import NDArray
from qtpy.QtCore import QObject
from vispy.scene.visuals import Image
from vispy.visuals.transforms import MatrixTransform

from napari_embedding_game.core.inspect.picture import paint_points
from napari_embedding_game.ui.canvas.projection import (
    Projection,
    displayed_axes,
    projection_of,
    view_changes,
)
from napari_embedding_game.ui.compat import (
    Scene,
    draw,
    draw_now,
    drawing_order,
    is_drawn_in_software,
    scene_of,
)
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.tasks.throttle import debounced, throttled

if TYPE_CHECKING:
    import napari

MOVING_SECONDS = 0.03
"""Points that napari takes longer for are drawn as a picture while they move."""
RESTING_SECONDS = 0.5
"""Those that it takes longer for are drawn as a picture at rest, too."""
SECONDS_IN_SOFTWARE, SECONDS_ON_A_CARD = 2e-6, 6e-7
"""napari's seconds for a point, until they have been measured."""
MOST_MOVING = 300_000
"""Of more points, as many as this are drawn of a flat map while they move."""
REST_MS = 300
"""Without a change, until the points are drawn themselves."""
FOLLOW_MS = 10
"""After a move of the camera; until then the picture moves with the map."""
OVER = {
    "depth_test": False,
    "blend": True,
    "blend_func": ("one", "one_minus_src_alpha", "one", "one_minus_src_alpha"),
}
"""How a picture is laid over what is there when its opacity is already in it."""
SMALLEST_SKEW = 1e-6
SMALLEST_DEPTH = 1e-6
"""Of points in front of the eye, relative to what the camera looks at."""


class MapPicture(QObject):
    """The picture of a Points layer, in its place.

    Parameters
    ----------
    viewer : napari.Viewer
    layer : Points
        Its arrays may be written in place at any time.
    """

    def __init__(self, viewer: napari.Viewer, layer: Points) -> None:
        super().__init__()
        self._viewer = viewer
        self.layer = layer
        self._image: Any = None
        """The vispy node; made when it is first needed."""
        self._seconds: float | None = None
        """napari's seconds for one point."""
        self._is_moving = False
        self._is_sample = False
        """Whether only some of the points are on the picture."""
        self._settle = debounced(REST_MS, self._rest, self)
        self._repaint = throttled(FOLLOW_MS, self._follow, self)
        self._connections = Connections()
        for turn in (self._settle, self._repaint):
            self._connections.call(turn.cancel)
        events = layer.events
        self._connections.connect_all(
            (
                *view_changes(viewer),
                events.visible,
                events.opacity,
                events.blending,
                events.scale,
                events.translate,
                events.rotate,
                events.shear,
                events.affine,
            ),
            self._on_view,
        )

    def close(self) -> None:
        """Leave the points to napari."""
        self._connections.close()
        if self.layer in self._viewer.layers:
            self._leave()
        if self._image is not None:
            self._image.parent = None
            self._image = None

    @property
    def is_shown(self) -> bool:
        """Whether the picture is drawn, and not the points themselves."""
        return self._image is not None and bool(self._image.visible)

    def appear(self) -> None:
        """Make the layer visible, without many points being drawn one by one."""
        scene = scene_of(self._viewer, self.layer)
        if scene is not None and self._takes() > MOVING_SECONDS:
            scene.points.visible = False
        self.layer.visible = True
        self.show()

    def show(self) -> bool:
        """Draw points that move; return False where napari has to draw them.

        That is so for few points, which napari draws as quickly, and where the layer
        is blended in another way, or is flat and turned.
        """
        self._is_moving = True
        self._settle.cancel()
        return self._paint(MOVING_SECONDS)

    def recolor(self) -> bool:
        """Draw the points after a change of their looks, like :meth:`show`."""
        if not self._paint(MOVING_SECONDS):
            return False
        if not self._is_moving:
            self._settle.throttle()
        return True

    def rest(self) -> None:
        """Have the points drawn themselves: they have come to rest."""
        self._is_moving = False
        if self.is_shown:
            self._rest()

    # Inside

    def _rest(self) -> None:
        """Draw the points themselves, or the picture if these take too long."""
        if self._takes() > RESTING_SECONDS:
            if not self.is_shown or self._is_sample:
                self._paint(RESTING_SECONDS)
            return
        self._hide()
        begun = time.perf_counter()
        draw(self._viewer, self.layer)
        scene = scene_of(self._viewer, self.layer)
        if scene is not None:
            draw_now(scene)  # so that it can be measured
            spent = time.perf_counter() - begun
            self._seconds = spent / max(len(self.layer.data), 1)

    def _takes(self) -> float:
        """Return the seconds that napari takes to draw the points."""
        scene = scene_of(self._viewer, self.layer)
        if self._seconds is None and scene is not None:
            in_software = is_drawn_in_software(scene)
            self._seconds = SECONDS_IN_SOFTWARE if in_software else SECONDS_ON_A_CARD
        return (self._seconds or 0.0) * len(self.layer.data)

    def _paint(self, allowed: float) -> bool:
        """Paint and show the picture, if napari would take longer than allowed."""
        layer = self.layer
        if layer.blending != "translucent":
            return self._leave()
        scene = scene_of(self._viewer, layer)
        if scene is None or self._takes() <= allowed:
            return self._leave()
        drawn = projection_of(self._viewer, layer)
        if drawn is None:  # hidden: there is nothing to be drawn
            return self.is_shown
        is_turned = not _is_upright(drawn) or self._viewer.dims.ndisplay != 2
        if drawn.ahead is None and is_turned:
            return self._leave()
        self._show_picture(scene, drawn)
        return True

    def _show_picture(self, scene: Scene, drawn: Projection) -> None:
        _, _, width, height = drawn.cell
        ratio = scene.canvas.devicePixelRatioF()
        shape = max(1, round(height * ratio)), max(1, round(width * ratio))
        pixels = np.array([width / shape[1], height / shape[0]])
        paint = self._flat if drawn.ahead is None else self._spatial
        picture, matrix = paint(drawn, shape, pixels)
        image = self._node_in(scene)
        image.set_data(picture)
        image.transform.matrix = matrix
        image.visible = True
        scene.points.visible = False

    def _flat(
        self, drawn: Projection, shape: tuple[int, int], pixels: NDArray[np.float64]
    ) -> tuple[NDArray[np.uint8], NDArray[np.float64]]:
        """Return a picture of an upright plane, and where it is in the layer.

        Parameters
        ----------
        drawn : Projection
        shape : (height, width)
            Of the picture.
        pixels : array, shape (2,)
            Width and height of one of its pixels on the canvas.

        Returns
        -------
        picture : array, shape (height, width, 4)
        matrix : array, shape (4, 4)
            From its pixels to the layer's coordinates, both as vispy has them.
        """
        layer, (x, y, *_) = self.layer, drawn.cell
        matrix = drawn.matrix / drawn.matrix[2, 2]
        rows = matrix[1, 0] / pixels[1], (matrix[1, 2] - y) / pixels[1]
        columns = matrix[0, 1] / pixels[0], (matrix[0, 2] - x) / pixels[0]
        positions: NDArray[Any] = layer.data
        axes = displayed_axes(self._viewer.dims)
        if axes != [0, 1]:
            positions = positions[:, axes]
        order = drawing_order(layer)
        n_drawn = len(positions) if order is None else len(order)
        self._is_sample = self._is_moving and n_drawn > MOST_MOVING
        if self._is_sample:
            order = _sample(len(positions), order)
        picture = paint_points(
            positions,
            layer.size,
            layer.face_color,
            rows,
            columns,
            shape,
            order=order,
            opacity=layer.opacity,
        )
        to_layer = np.diag([1 / columns[0], 1 / rows[0], 1.0, 1.0])
        to_layer[3, :2] = -columns[1] / columns[0], -rows[1] / rows[0]
        return picture, to_layer

    def _spatial(
        self, drawn: Projection, shape: tuple[int, int], pixels: NDArray[np.float64]
    ) -> tuple[NDArray[np.uint8], NDArray[np.float64]]:
        """Return a picture of points in space; it stands in the middle of them.

        Parameters and what is returned are those of :meth:`_flat`.
        """
        layer, corner = self.layer, np.array(drawn.cell[:2])
        assert drawn.ahead is not None
        places = layer.data[:, displayed_axes(self._viewer.dims, 3, 3)]
        on_canvas = (drawn.to_pixels(places) - corner) / pixels
        depths = places @ drawn.matrix[2, :3] + drawn.matrix[2, 3]
        zooms = _zoom(drawn) / np.maximum(depths, SMALLEST_DEPTH) / pixels[0]
        picture = paint_points(
            on_canvas[:, ::-1],
            layer.size * zooms,
            layer.face_color,
            (1.0, 0.0),
            (1.0, 0.0),
            shape,
            order=_farthest_first(places @ drawn.ahead, drawing_order(layer)),
            opacity=layer.opacity,
        )
        middle = places.mean(axis=0, dtype=float)
        steps = corner + np.array([[0.0, 0.0], [pixels[0], 0.0], [0.0, pixels[1]]])
        found = [drawn.beside(middle, step) for step in steps]
        to_layer = np.eye(4)
        if all(place is not None for place in found):
            origin, across, down = np.array(found)[:, ::-1]
            steps = across - origin, down - origin
            to_layer[:4, :3] = *steps, np.cross(*steps), origin
        return picture, to_layer

    def _node_in(self, scene: Scene) -> Any:
        """Return the vispy node of the picture, where the layer is drawn now."""
        if self._image is None:
            self._image = Image(
                np.zeros((1, 1, 4), np.uint8), clim=(0, 255), texture_format="auto"
            )
            self._image.set_gl_state(**OVER)
            self._image.transform = MatrixTransform()
            self._image.visible = False
        if self._image.parent is not scene.node:
            self._image.parent = scene.node
        return self._image

    def _leave(self) -> bool:
        """Leave the points to napari, as they are now; return False."""
        if self._hide():
            draw(self._viewer, self.layer)
        return False

    def _hide(self) -> bool:
        """Show the points themselves, as napari had them last.

        Returns
        -------
        bool
            Whether they were not to be seen.
        """
        if self._image is not None:
            self._image.visible = False
        scene = scene_of(self._viewer, self.layer)
        if scene is None or scene.points.visible:
            return False
        scene.points.visible = True
        return True

    def _on_view(self, event: object = None) -> None:
        self._repaint.throttle()

    def _follow(self) -> None:
        """Draw what is seen now that the camera has moved."""
        if self.layer in self._viewer.layers and self.layer.visible:
            self.recolor()


def _farthest_first(
    depths: NDArray[np.floating], drawn: NDArray[np.intp] | None
) -> NDArray[np.intp]:
    """Return the points that are drawn, the farthest of these depths (N,) first."""
    if drawn is None or len(drawn) == len(depths):
        return np.argsort(-depths)
    return drawn[np.argsort(-depths[drawn])]


def _sample(n_points: int, order: NDArray[np.intp] | None) -> NDArray[np.intp]:
    """Return which points stand for all while they move, in the order of drawing.

    Those that are drawn last are all among them, as they are those that were chosen.
    """
    if order is None:
        return np.arange(0, n_points, math.ceil(n_points / MOST_MOVING))
    below, above = order[: -MOST_MOVING // 2], order[-MOST_MOVING // 2 :]
    every = math.ceil(2 * len(below) / MOST_MOVING)
    return np.concatenate([below[::every], above])


def _is_upright(drawn: Projection) -> bool:
    """Return whether rows go down or up and columns go across on the canvas."""
    matrix = drawn.matrix
    largest = abs(matrix[:2, :2]).max()
    skewed = max(abs(matrix[0, 0]), abs(matrix[1, 1]), *abs(matrix[2, :2]))
    return bool(skewed <= SMALLEST_SKEW * largest)


def _zoom(drawn: Projection) -> float:
    """Return the pixels of a unit across the line of sight, at depth 1."""
    assert drawn.ahead is not None
    sight = drawn.ahead / np.linalg.norm(drawn.ahead)
    across = drawn.matrix[:2, :3] - np.outer(drawn.matrix[:2, :3] @ sight, sight)
    return float(np.linalg.svd(across, compute_uv=False)[-1])
