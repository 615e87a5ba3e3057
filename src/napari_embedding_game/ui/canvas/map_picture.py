"""Draw the points of a map as one picture while they or the camera move.

napari prepares every point of a layer for each frame, and OpenGL without a graphics
card draws each as a picture of its own: half a second for 70,000 points.  The picture
here is painted by :func:`~napari_embedding_game.ui.canvas.pixels.paint_discs` and
is drawn in the place of the points, with the same colours, sizes and order; points in
space are painted as they are seen, the farthest first.  Of more points than pixels
are seen it tells how many lie where.  Once everything has come to rest the layer draws
its points itself, if that does not take long; else the picture stays.

The window's thread paints as many points as it can in a third of a frame, which is
measured (:mod:`~napari_embedding_game.ui.canvas.pace`).  Of more, all are painted by
another thread as soon as nothing moves.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

import numpy as np
from napari.layers import Points
from numpy.typing import NDArray
from qtpy.QtCore import QObject, Signal
from vispy.scene.visuals import Image
from vispy.visuals.transforms import MatrixTransform

from napari_embedding_game.ui.canvas.pace import Pace
from napari_embedding_game.ui.canvas.painting import (
    FlatPainting,
    Looks,
    Painted,
    Painting,
    SpacePainting,
)
from napari_embedding_game.ui.canvas.projection import (
    Projection,
    displayed_axes,
    projection_of,
    view_changes,
)
from napari_embedding_game.ui.compat import (
    Scene,
    colors_of,
    draw,
    draw_now,
    draw_some,
    drawing_order,
    is_drawn_in_software,
    leave_out,
    scene_of,
)
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.tasks.throttle import debounced, throttled
from napari_embedding_game.ui.tasks.worker import Worker

if TYPE_CHECKING:
    import napari

logger = logging.getLogger(__name__)

MOVING_SECONDS = 0.03
"""Points that napari takes longer for are drawn as a picture while they move."""
RESTING_SECONDS = 0.5
"""Those that it takes longer for are drawn as a picture at rest, too."""
SECONDS_IN_SOFTWARE, SECONDS_ON_A_CARD = 2e-6, 6e-7
"""napari's seconds for a point, until they have been measured."""
LEAST_DRAWN = 20_000
"""So many napari draws itself where no picture can be and all would take too long."""
REST_MS = 300
"""Without a change, until the points are drawn themselves."""
COMPLETE_MS = 80
"""Without a change, until all points of a sample are painted."""
FOLLOW_MS = 10
"""After a move of the camera; until then the picture moves with the map."""
SMALLEST_PIXELS = 1.0
"""Diameter of points that napari draws well: smaller ones fade."""
OVER = {
    "depth_test": False,
    "blend": True,
    "blend_func": ("one", "one_minus_src_alpha", "one", "one_minus_src_alpha"),
}
"""How a picture is laid over what is there when its opacity is already in it."""
SMALLEST_SKEW = 1e-6


class MapPicture(QObject):
    """The picture of a Points layer, in its place.

    Parameters
    ----------
    viewer : napari.Viewer
    layer : Points
        Its arrays may be written in place at any time.
    """

    kind_changed = Signal()
    """``is_density`` or ``is_partial`` has changed."""

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
        self._is_density = False
        self._is_partial = False
        self._pace = Pace()
        self._worker: Worker | None = None
        """Paints all points while the picture has a sample of them."""
        self._n_changes = 0
        """Pictures that were asked for: one that was begun before the last is stale."""
        self._complete = debounced(COMPLETE_MS, self._paint_all, self)
        self._settle = debounced(REST_MS, self._rest, self)
        self._repaint = throttled(FOLLOW_MS, self._follow, self)
        self._connections = Connections()
        for turn in (self._settle, self._repaint, self._complete):
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
        self.blockSignals(True)
        self._connections.close()
        if self._worker is not None:
            self._worker.close()
            self._worker = None
        if self.layer in self._viewer.layers:
            self._leave()
        if self._image is not None:
            self._image.parent = None
            self._image = None

    @property
    def is_shown(self) -> bool:
        """Whether the picture is drawn, and not the points themselves."""
        return self._image is not None and bool(self._image.visible)

    @property
    def is_density(self) -> bool:
        """Whether it tells how many points lie where, and shows none of them."""
        return self.is_shown and self._is_density

    @property
    def is_partial(self) -> bool:
        """Whether napari draws the points, and not all of them: it would take too long.

        A sample that is on a picture for a moment stands for all.
        """
        return self._is_partial

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
        self._complete.cancel()
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
        if self._takes() > RESTING_SECONDS or self._are_too_small():
            if not self.is_shown:
                self._paint(RESTING_SECONDS)
            elif self._is_sample:
                self._complete.throttle()
            return
        self._hide()
        begun = time.perf_counter()
        draw(self._viewer, self.layer)
        scene = scene_of(self._viewer, self.layer)
        if scene is not None:
            draw_now(scene)  # so that it can be measured
            spent = time.perf_counter() - begun
            self._seconds = spent / max(len(self.layer.data), 1)

    def _are_too_small(self) -> bool:
        """Return whether the points take less than a pixel each."""
        drawn = projection_of(self._viewer, self.layer)
        if drawn is None or drawn.ahead is not None or not len(self.layer.size):
            return False
        zoom = drawn.zoom_at(np.asarray(self.layer.data[0], dtype=float))
        return float(self.layer.size[0]) * zoom < SMALLEST_PIXELS

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
        painting = self._painting(scene, drawn)
        stride = self._pace.stride(painting.looks.n_drawn, painting.looks.n_pixels)
        begun = time.perf_counter()
        painted = painting.paint(stride)
        spent, n_pixels = time.perf_counter() - begun, painted.picture[..., 0].size
        self._pace.measured(painted.n_painted, n_pixels, spent)
        self._n_changes += 1
        self._show_painted(scene, painted, is_sample=stride > 1)
        if self._is_sample and not self._is_moving:
            self._complete.throttle()
        return True

    def _paint_all(self) -> None:
        """Have another thread paint all points, if only some of them are shown."""
        if self._worker is not None or self._is_moving or not self._is_sample:
            return  # the one that paints begins again if it comes too late
        scene = scene_of(self._viewer, self.layer)
        drawn = projection_of(self._viewer, self.layer)
        if scene is None or drawn is None or not self.is_shown:
            return
        painting, n_changes = self._painting(scene, drawn), self._n_changes
        self._worker = worker = Worker(painting.paint)
        worker.returned.connect(lambda painted: self._on_all(n_changes, painted))
        worker.failed.connect(self._on_failed)
        worker.begin()

    def _on_all(self, n_changes: int, painted: Painted) -> None:
        self._worker = None
        scene = scene_of(self._viewer, self.layer)
        if scene is None or not self.is_shown:
            return
        if n_changes == self._n_changes:
            self._show_painted(scene, painted, is_sample=False)
        elif not self._is_moving:
            self._complete.throttle()

    def _on_failed(self, error: BaseException) -> None:
        self._worker = None  # the sample stays
        logger.error("The map could not be painted", exc_info=error)

    def _painting(self, scene: Scene, drawn: Projection) -> Painting:
        """Return what is to be painted, as it is now."""
        layer = self.layer
        _, _, width, height = drawn.cell
        ratio = scene.canvas.devicePixelRatioF()
        shape = max(1, round(height * ratio)), max(1, round(width * ratio))
        pixels = np.array([width / shape[1], height / shape[0]])
        looks = Looks(
            sizes=layer.size,
            colors=colors_of(layer),
            order=drawing_order(layer),
            opacity=layer.opacity,
            shape=shape,
            n_pixels=round(height * width),
        )
        if drawn.ahead is not None:
            axes = displayed_axes(self._viewer.dims, 3, 3)
            return SpacePainting(looks, _along(layer.data, axes), drawn, pixels)
        rows, columns = _lines(drawn, pixels)
        positions = _along(layer.data, displayed_axes(self._viewer.dims))
        return FlatPainting(looks, positions, rows, columns)

    def _show_painted(self, scene: Scene, painted: Painted, *, is_sample: bool) -> None:
        image = self._node_in(scene)
        image.set_data(painted.picture)
        image.transform.matrix = painted.matrix
        was, self._is_sample = (self.is_density, self._is_partial), is_sample
        self._is_density, self._is_partial = painted.is_density, False
        image.visible = True
        scene.points.visible = False
        leave_out(self.layer, True)
        if (self.is_density, self._is_partial) != was:
            self.kind_changed.emit()

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
        """Leave the points to napari, as they are now; return False.

        Some of them, where all would keep the window from doing anything else.
        """
        takes, n_points = self._takes(), len(self.layer.data)
        were_hidden, was_partial = self._hide(), self._is_partial
        most = n_points
        if takes > RESTING_SECONDS:
            most = max(LEAST_DRAWN, int(RESTING_SECONDS / takes * n_points))
        self._is_partial = most < n_points
        if self._is_partial:
            draw_some(self.layer, most)
        if were_hidden:
            draw(self._viewer, self.layer)
        if self._is_partial is not was_partial:
            self.kind_changed.emit()
        return False

    def _hide(self) -> bool:
        """Show the points themselves, as napari had them last.

        Returns
        -------
        bool
            Whether they were not to be seen.
        """
        was_density = self.is_density
        if self._image is not None:
            self._image.visible = False
        if was_density:
            self.kind_changed.emit()
        was_left_out = leave_out(self.layer, False)
        scene = scene_of(self._viewer, self.layer)
        if scene is None or scene.points.visible:
            return was_left_out
        scene.points.visible = True
        return True

    def _on_view(self, event: object = None) -> None:
        self._repaint.throttle()

    def _follow(self) -> None:
        """Draw what is seen now that the camera has moved."""
        if self.layer in self._viewer.layers and self.layer.visible:
            self.recolor()


def _along(positions: NDArray[Any], axes: list[int]) -> NDArray[Any]:
    """Return positions (N, d) along displayed axes, the same array where they are."""
    is_so = axes == list(range(positions.shape[1]))
    return positions if is_so else positions[:, axes]


def _lines(
    drawn: Projection, pixels: NDArray[np.float64]
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return from rows and from columns of an upright plane to pixels: (slope, offset).

    Parameters
    ----------
    drawn : Projection
    pixels : array, shape (2,)
        Width and height of a pixel on the canvas.
    """
    x, y, *_ = drawn.cell
    matrix = drawn.matrix / drawn.matrix[2, 2]
    rows = matrix[1, 0] / pixels[1], (matrix[1, 2] - y) / pixels[1]
    columns = matrix[0, 1] / pixels[0], (matrix[0, 2] - x) / pixels[0]
    return rows, columns


def _is_upright(drawn: Projection) -> bool:
    """Return whether rows go down or up and columns go across on the canvas."""
    matrix = drawn.matrix
    largest = abs(matrix[:2, :2]).max()
    skewed = max(abs(matrix[0, 0]), abs(matrix[1, 1]), *abs(matrix[2, :2]))
    return bool(skewed <= SMALLEST_SKEW * largest)
