"""Where layers are drawn on the canvas: a plane or a space projected to pixels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from vispy.scene import ViewBox

from napari_embedding_game.session.panels import STRAIGHT
from napari_embedding_game.ui.compat import scene_of

EDGE = 1e6
"""Condition number from which on a plane is seen from its edge."""
Cell = tuple[float, float, float, float]
"""x, y, width and height of a part of the canvas."""


@dataclass(frozen=True, eq=False)
class Projection:
    """Where a plane or a space is drawn, and the way back."""

    matrix: NDArray[np.float64]
    """(3, d + 1) from (position, 1), of 2 or 3 coordinates, to (x w, y w, w), in pixels
    as Qt counts them: rotation, perspective and grid included."""
    cell: Cell
    """The part of the canvas on which it is drawn."""
    sight: NDArray[np.float64] | None = None
    """(3,) how much further from the eye a step in space leads; None of a plane."""

    def compose(
        self, step: NDArray[np.floating], begin: NDArray[np.floating]
    ) -> Projection:
        """Return the projection of x, where positions are ``step @ x + begin``."""
        columns, offset = self.matrix[:, :-1], self.matrix[:, -1]
        matrix = np.column_stack([columns @ step, columns @ begin + offset])
        sight = None if self.sight is None else self.sight @ step
        return Projection(matrix, self.cell, sight)

    def are_same_objects(self, other: Projection | None) -> bool:
        """Return whether all is drawn where another one has it."""
        return other is not None and (
            self.cell == other.cell and np.array_equal(self.matrix, other.matrix)
        )

    def to_pixels(self, positions: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return where positions (n, d) are drawn: (n, 2) of x and y.

        NaN for what is behind the camera.  Coordinates that are not drawn do not count;
        those that are missing are 0.
        """
        seen = self._homogeneous(np.asarray(positions))
        return seen[:, :2] / np.where(seen[:, 2:] > 0, seen[:, 2:], np.nan)

    def _homogeneous(self, positions: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return (x w, y w, w) of positions: (n, 3)."""
        seen = np.empty((len(positions), 3))
        # Column by column: a product of matrices takes several times as long.
        for line, column in zip(self.matrix, seen.T, strict=True):
            column[:] = line[-1]
            for factor, along in zip(line[:-1], positions.T, strict=False):
                if factor:
                    column += factor * along
        return seen

    def under(
        self, pixel: NDArray[np.floating], through: NDArray[np.floating] | None = None
    ) -> NDArray[np.float64] | None:
        """Return the position (d,) under a pixel (x, y); None without one.

        Of a space the one as far from the eye as another, ``through`` (3,).  There is
        none beyond the horizon, behind the camera, and on a plane seen from its edge.
        """
        lines = self.matrix[:2] - np.outer(pixel, self.matrix[2])
        if self.sight is not None and through is not None:
            lines = np.vstack([lines, [*self.sight, -self.sight @ through]])
        if len(lines) < lines.shape[1] - 1 or np.linalg.cond(lines[:, :-1]) > EDGE:
            return None
        position = np.linalg.solve(lines[:, :-1], -lines[:, -1])
        return position if np.isfinite(self.to_pixels(position[None])).all() else None

    def contains(self, pixels: NDArray[np.floating]) -> NDArray[np.bool_]:
        """Return which pixels (..., 2), each (x, y), are on this part of the canvas."""
        low, size = np.reshape(self.cell, (2, 2))
        return np.all((low <= pixels) & (pixels <= low + size), axis=-1)

    def zooms_at(self, positions: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return the fewest pixels (n,) that a unit takes at positions (n, d).

        In any direction; in space across the line of sight.
        """
        *pixels, depths = self._homogeneous(np.asarray(positions, dtype=float)).T
        pixels_of_unit = self.matrix[:2, :-1] - (
            (np.array(pixels) / depths).T[..., None] * self.matrix[2, :-1]
        )
        least: NDArray[np.float64] = np.linalg.svd(pixels_of_unit, compute_uv=False).T[
            -1
        ]
        return least / depths

    @cached_property
    def zoom(self) -> float:
        """Pixels of a unit across the line of sight, at depth w = 1."""
        across = self.matrix[:2, :-1]
        if self.sight is not None:
            sight = self.sight / np.linalg.norm(self.sight)
            across = across - np.outer(across @ sight, sight)
        return float(np.linalg.svd(across, compute_uv=False)[-1])


def projection_of(
    viewer: Any, layer: Any, *, of_slice: bool = False
) -> Projection | None:
    """Return how a layer is drawn; None where it is not to be seen.

    A flat layer is a plane, which napari draws at depth 0 of what is displayed,
    whatever axes these are; one of three dimensions is a space, seen as such only where
    napari displays three.  Both have the coordinates of the layer's data, in the order
    in which they are displayed (:func:`displayed_axes`).  With ``of_slice``, one of
    more axes is a plane, too: the slice of it that is on show.
    """
    cell, n = _cell_of(viewer, layer), min(layer.ndim, viewer.dims.ndisplay)
    if cell is None or not layer.visible or (n < layer.ndim and not of_slice):
        return None
    axes = displayed_axes(viewer.dims, layer.ndim, n)
    corners = np.zeros((n + 1, layer.ndim))
    if n < layer.ndim:
        corners[:] = layer.world_to_data(viewer.dims.point)
    corners[:, axes] = np.eye(n + 1)[:, 1:]
    begin, *ends = (np.asarray(layer.data_to_world(c))[axes] for c in corners)
    step = np.column_stack([end - begin for end in ends])
    matrix, sight = _camera_matrix(viewer, cell)
    if n == 2:
        return Projection(matrix[:, 1:], cell).compose(step, begin)  # depth is 0
    return Projection(matrix, cell, sight).compose(step, begin)


def displayed_axes(dims: Any, ndim: int = 2, n_axes: int = 2) -> list[int]:
    """Return the axes of a layer of ``ndim`` dimensions that are displayed.

    Along rows and columns, or, with ``n_axes`` 3, along depth, rows and columns.  Axes
    are rolled and transposed by napari's buttons under the list of layers.
    """
    first = dims.ndim - ndim
    return [axis - first for axis in dims.order if axis >= first][-n_axes:]


def facing_of(viewer: Any) -> NDArray[np.float64]:
    """Return the steps (x, y, z) of a map that go right and up on the canvas: (2, 3).

    In a flat view these are x and y.
    """
    if viewer.dims.ndisplay == 2:
        return STRAIGHT
    right, down, _ = _directions(viewer)
    rows_go_down = np.array([1.0, -1.0, 1.0])  # and y goes up
    return np.stack([right, -down])[:, ::-1] * rows_go_down


def view_changes(viewer: Any) -> tuple[Any, ...]:
    """Return the events after which layers are seen in another way."""
    layers = viewer.layers.events
    return (
        viewer.scene.camera.events,
        viewer.dims.events.ndisplay,
        viewer.canvas.grid.events,
        viewer.canvas.events.size,
        layers.inserted,
        layers.removed,
        layers.reordered,
    )


def _camera_matrix(
    viewer: Any, cell: Cell
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return (3, 4) from (depth, row, column, 1) to pixels, and the sight: (3,)."""
    camera, (x, y, width, height) = viewer.scene.camera, cell
    along = _directions(viewer)
    center = np.asarray(camera.center, dtype=float)
    matrix = np.column_stack([along, -along @ center])
    matrix[:2] *= camera.zoom
    if viewer.dims.ndisplay == 2 or not camera.perspective:
        matrix[2] = 0.0, 0.0, 0.0, 1.0
    else:
        # The eye stands where the canvas takes up the whole angle of view.
        angle = np.radians(camera.perspective) / 2
        matrix[2] *= 2 * np.tan(angle) * camera.zoom / height
        matrix[2, 3] += 1.0
    matrix[0] += matrix[2] * (x + width / 2)
    matrix[1] += matrix[2] * (y + height / 2)
    return matrix, along[2]


def _directions(viewer: Any) -> NDArray[np.float64]:
    """Return the (depth, row, column) that go right, down and into the picture.

    Into the picture nothing goes in a flat view.
    """
    camera = viewer.scene.camera
    if viewer.dims.ndisplay == 2:
        vertical, horizontal = map(str, camera.orientation2d)
        down = 1.0 if vertical == "down" else -1.0
        right = 1.0 if horizontal == "right" else -1.0
        return np.array([[0.0, 0.0, right], [0.0, down, 0.0], [0.0, 0.0, 0.0]])
    sight, up = np.array(camera.view_direction), np.array(camera.up_direction)
    right = np.cross(sight, up)  # in (depth, row, column): the other way than (x, y, z)
    return np.stack([-right if str(camera.handedness) == "left" else right, -up, sight])


def _cell_of(viewer: Any, layer: Any) -> Cell | None:
    """Return the part of the canvas in which a layer is drawn."""
    if layer not in viewer.layers:
        return None
    scene = scene_of(viewer, layer) if viewer.canvas.grid.enabled else None
    if scene is None:
        height, width = viewer.canvas.size
        return 0.0, 0.0, float(width), float(height)
    view = scene.node
    while view is not None and not isinstance(view, ViewBox):
        view = view.parent
    if view is None:  # napari is laying out the grid anew
        return None
    (x, y), (width, height) = view.pos, view.size
    return float(x), float(y), float(width), float(height)
