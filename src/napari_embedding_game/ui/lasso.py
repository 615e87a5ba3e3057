"""Drawing around points: the line on the canvas, and which points it holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from napari.layers import Vectors
from numpy.typing import NDArray

from napari_embedding_game.ui.measure_panel import OWN

if TYPE_CHECKING:
    import napari

COLOR = "#ffb000"
WIDTH = 2.0
"""Canvas pixels."""


def inside(
    polygon: NDArray[np.floating], points: NDArray[np.floating]
) -> NDArray[np.bool_]:
    """Return for each point (N, 2) whether it is in the polygon (V, 2).

    The last corner is joined to the first.  Where the line crosses itself, a part
    that it goes around twice is outside (even-odd rule).
    """
    found = ((points >= polygon.min(axis=0)) & (points <= polygon.max(axis=0))).all(1)
    y, x = points[found].T.astype(float)
    odd = np.zeros(len(y), bool)
    for (y0, x0), (y1, x1) in zip(polygon, np.roll(polygon, -1, axis=0), strict=True):
        if y0 == y1:
            continue
        crosses = (y0 > y) != (y1 > y)
        odd ^= crosses & (x < x0 + (y - y0) * (x1 - x0) / (y1 - y0))
    found[found] = odd
    return found


class LassoLine:
    """The line that follows the mouse, for as long as the button is held."""

    def __init__(self, viewer: napari.Viewer) -> None:
        self._viewer = viewer
        active = viewer.layers.selection.active
        camera = getattr(viewer, "scene", viewer).camera
        self._layer = Vectors(
            np.zeros((0, 2, 2)),
            name="lasso",
            edge_width=WIDTH / camera.zoom,
            edge_color=COLOR,
            vector_style="line",
            metadata=dict(OWN),
        )
        viewer.add_layer(self._layer)
        viewer.layers.selection.active = active

    def draw(self, corners: NDArray[np.floating]) -> None:
        """Draw through these world positions (V, 2), and back to the first."""
        ends = np.roll(corners, -1, axis=0)
        self._layer.data = np.stack([corners, ends - corners], axis=1)

    def remove(self) -> None:
        """Take the line off the canvas."""
        if self._layer in self._viewer.layers:
            self._viewer.layers.remove(self._layer)
