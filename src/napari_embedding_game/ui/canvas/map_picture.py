"""Draw the points of a map as one picture while they or the camera move.

napari prepares every point of a layer for each frame, and OpenGL without a graphics
card draws each as a picture of its own: half a second for 70,000 points.  The picture
here is painted by :func:`~napari_embedding_game.core.inspect.picture.paint_points` and
is drawn in the place of the points, with the same colours, sizes and order.  Once
everything has come to rest the layer draws its points itself, if that does not take
long; else the picture stays.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
from napari.layers import Points
from numpy.typing import NDArray
from qtpy.QtCore import QObject
from vispy.scene.visuals import Image
from vispy.visuals.transforms import STTransform

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

        That is so for few points, which napari draws as quickly, in three dimensions,
        and where the layer is turned or blended in another way.
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
            if not self.is_shown:
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
        if not _is_upright(drawn) or self._viewer.dims.ndisplay != 2:
            return self._leave()
        self._show_picture(scene, drawn)
        return True

    def _show_picture(self, scene: Scene, drawn: Projection) -> None:
        layer = self.layer
        x, y, width, height = drawn.cell
        ratio = scene.canvas.devicePixelRatioF()
        shape = max(1, round(height * ratio)), max(1, round(width * ratio))
        across, along = shape[1] / width, shape[0] / height
        matrix = drawn.matrix / drawn.matrix[2, 2]
        rows = matrix[1, 0] * along, (matrix[1, 2] - y) * along
        columns = matrix[0, 1] * across, (matrix[0, 2] - x) * across
        positions: NDArray[Any] = layer.data
        axes = displayed_axes(self._viewer.dims)
        if axes != [0, 1]:
            positions = positions[:, axes]
        picture = paint_points(
            positions,
            layer.size,
            layer.face_color,
            rows,
            columns,
            shape,
            order=drawing_order(layer),
            opacity=layer.opacity,
        )
        image = self._node_in(scene)
        image.set_data(picture)
        # From pixels of the picture to the layer, which vispy has as x and y.
        image.transform.scale = 1 / columns[0], 1 / rows[0]
        image.transform.translate = -columns[1] / columns[0], -rows[1] / rows[0]
        image.visible = True
        scene.points.visible = False

    def _node_in(self, scene: Scene) -> Any:
        """Return the vispy node of the picture, where the layer is drawn now."""
        if self._image is None:
            self._image = Image(
                np.zeros((1, 1, 4), np.uint8), clim=(0, 255), texture_format="auto"
            )
            self._image.set_gl_state(**OVER)
            self._image.transform = STTransform()
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


def _is_upright(drawn: Projection) -> bool:
    """Return whether rows go down or up and columns go across on the canvas."""
    matrix = drawn.matrix
    largest = abs(matrix[:2, :2]).max()
    skewed = max(abs(matrix[0, 0]), abs(matrix[1, 1]), *abs(matrix[2, :2]))
    return bool(skewed <= SMALLEST_SKEW * largest)
