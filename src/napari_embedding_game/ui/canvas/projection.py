"""Project the positions of layers, planes or spaces, to pixels of the canvas."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from vispy.scene import ViewBox

from napari_embedding_game.session.panels import STRAIGHT
from napari_embedding_game.ui.compat import find_layer_visual

EDGE_ON_CONDITION = 1e6
"""Condition number from which on a plane is seen edge-on."""
CanvasBox = tuple[float, float, float, float]
"""x, y, width and height of a rectangle of the canvas, in pixels."""


@dataclass(frozen=True, eq=False)
class CanvasProjection:
    """The map from positions of a plane or a space to pixels, and its inverse."""

    matrix: NDArray[np.float64]
    """(3, d + 1) matrix from (position, 1), with d of 2 or 3, to (x w, y w, w).

    Pixels are as Qt counts them; rotation, perspective and napari's grid are included.
    """
    canvas_box: CanvasBox
    """The rectangle of the canvas in which the layer is rendered."""
    view_direction: NDArray[np.float64] | None = None
    """(3,) increase of depth with a unit step along each axis; None of a plane."""

    def compose_affine(
        self, step: NDArray[np.floating], begin: NDArray[np.floating]
    ) -> CanvasProjection:
        """Return the projection of x (d,) that first maps x to ``step @ x + begin``.

        ``step`` is (d, d), ``begin`` (d,).
        """
        columns, offset = self.matrix[:, :-1], self.matrix[:, -1]
        matrix = np.column_stack([columns @ step, columns @ begin + offset])
        view_direction = (
            None if self.view_direction is None else self.view_direction @ step
        )
        return CanvasProjection(matrix, self.canvas_box, view_direction)

    def equals(self, other: CanvasProjection | None) -> bool:
        """Return whether another projection, not None, has equal box and matrix."""
        return other is not None and (
            self.canvas_box == other.canvas_box
            and np.array_equal(self.matrix, other.matrix)
        )

    def to_pixels(self, positions: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return the pixels (x, y) of positions (n, d), (n, 2); NaN behind the camera.

        Coordinates beyond the projection's axes are ignored; missing ones count as 0.
        """
        seen = self._to_homogeneous_pixels(np.asarray(positions))
        return seen[:, :2] / np.where(seen[:, 2:] > 0, seen[:, 2:], np.nan)

    def _to_homogeneous_pixels(
        self, positions: NDArray[np.floating]
    ) -> NDArray[np.float64]:
        """Return (x w, y w, w) of positions (n, d) as (n, 3); w is the depth."""
        seen = np.empty((len(positions), 3))
        # A loop over columns is several times faster than a product of matrices.
        for line, column in zip(self.matrix, seen.T, strict=True):
            column[:] = line[-1]
            for factor, along in zip(line[:-1], positions.T, strict=False):
                if factor:
                    column += factor * along
        return seen

    def position_at_pixel(
        self,
        pixel: NDArray[np.floating],
        same_depth_as: NDArray[np.floating] | None = None,
    ) -> NDArray[np.float64] | None:
        """Return the position (d,) that is rendered at a pixel (x, y).

        In space the position has the depth of ``same_depth_as`` (3,), without which it
        is None.  None is also returned beyond the horizon, behind the camera, and for a
        plane seen edge-on.
        """
        lines = self.matrix[:2] - np.outer(pixel, self.matrix[2])
        if self.view_direction is not None and same_depth_as is not None:
            lines = np.vstack(
                [lines, [*self.view_direction, -self.view_direction @ same_depth_as]]
            )
        if (
            len(lines) < lines.shape[1] - 1
            or np.linalg.cond(lines[:, :-1]) > EDGE_ON_CONDITION
        ):
            return None
        position = np.linalg.solve(lines[:, :-1], -lines[:, -1])
        return position if np.isfinite(self.to_pixels(position[None])).all() else None

    def contains(self, pixels: NDArray[np.floating]) -> NDArray[np.bool_]:
        """Return which pixels (..., 2), each (x, y), are in the canvas box; not NaN."""
        low, size = np.reshape(self.canvas_box, (2, 2))
        return np.all((low <= pixels) & (pixels <= low + size), axis=-1)

    def compute_pixels_per_unit(
        self, positions: NDArray[np.floating]
    ) -> NDArray[np.float64]:
        """Return the least pixels per unit (n,) at positions (n, d), in any direction.

        In space the direction is across the line of sight.
        """
        *pixels, depths = self._to_homogeneous_pixels(
            np.asarray(positions, dtype=float)
        ).T
        pixels_of_unit = self.matrix[:2, :-1] - (
            (np.array(pixels) / depths).T[..., None] * self.matrix[2, :-1]
        )
        least: NDArray[np.float64] = np.linalg.svd(pixels_of_unit, compute_uv=False).T[
            -1
        ]
        return least / depths

    @cached_property
    def pixels_per_unit(self) -> float:
        """Pixels per unit across the line of sight, at depth w = 1."""
        across = self.matrix[:2, :-1]
        if self.view_direction is not None:
            view_direction = self.view_direction / np.linalg.norm(self.view_direction)
            across = across - np.outer(across @ view_direction, view_direction)
        return float(np.linalg.svd(across, compute_uv=False)[-1])


def layer_projection(
    viewer: Any, layer: Any, *, includes_slices: bool = False
) -> CanvasProjection | None:
    """Return the projection of a layer's data coordinates to pixels of the canvas.

    None if the layer is hidden or not in the viewer, or has more axes than napari
    displays.

    A flat layer is a plane, which napari renders at depth 0 of the displayed axes.  A
    layer of three dimensions is a space.  Coordinates are in displayed order
    (:func:`displayed_axes`).  With ``includes_slices`` a layer with more axes than
    displayed has the projection of its slice on show.
    """
    box = _find_layer_canvas_box(viewer, layer)
    n = min(layer.ndim, viewer.dims.ndisplay)
    if box is None or not layer.visible or (n < layer.ndim and not includes_slices):
        return None
    axes = displayed_axes(viewer.dims, layer.ndim, n)
    corners = np.zeros((n + 1, layer.ndim))
    if n < layer.ndim:
        corners[:] = layer.world_to_data(viewer.dims.point)
    corners[:, axes] = np.eye(n + 1)[:, 1:]
    begin, *ends = (np.asarray(layer.data_to_world(c))[axes] for c in corners)
    step = np.column_stack([end - begin for end in ends])
    matrix, view_direction = _compute_camera_matrix_and_direction(viewer, box)
    if n == 2:
        return CanvasProjection(matrix[:, 1:], box).compose_affine(
            step, begin
        )  # depth is 0
    return CanvasProjection(matrix, box, view_direction).compose_affine(step, begin)


def displayed_axes(dims: Any, ndim: int = 2, n_axes: int = 2) -> list[int]:
    """Return the displayed axes of a layer with ``ndim`` dimensions.

    They are the axes along rows and columns or, with ``n_axes`` 3, along depth, rows
    and columns.  Their order changes with napari's buttons to roll and transpose.
    """
    first = dims.ndim - ndim
    return [axis - first for axis in dims.order if axis >= first][-n_axes:]


def find_steps_right_and_up(viewer: Any) -> NDArray[np.float64]:
    """Return the map steps (x, y, z) that go right and up on the canvas, (2, 3).

    In a flat view they are the unit steps along x and y.
    """
    if viewer.dims.ndisplay == 2:
        return STRAIGHT
    right, down, _ = _compute_canvas_directions(viewer)
    rows_go_down = np.array([1.0, -1.0, 1.0])  # while y goes up
    return np.stack([right, -down])[:, ::-1] * rows_go_down


def list_view_change_events(viewer: Any) -> tuple[Any, ...]:
    """Return the events after which a layer's projection may differ."""
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


def _compute_camera_matrix_and_direction(
    viewer: Any, box: CanvasBox
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the camera's matrix (3, 4), and its view direction (depth, row, column).

    The matrix goes from world coordinates (depth, row, column, 1) to (x w, y w, w) on
    the canvas, in a layer's box; w is 1 without perspective.  The direction is 0 in a
    flat view.
    """
    camera, (x, y, width, height) = viewer.scene.camera, box
    along = _compute_canvas_directions(viewer)
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


def _compute_canvas_directions(viewer: Any) -> NDArray[np.float64]:
    """Return the unit steps (depth, row, column) right, down and away from the eye.

    Shape (3, 3); in a flat view the step away from the eye is 0.
    """
    camera = viewer.scene.camera
    if viewer.dims.ndisplay == 2:
        vertical, horizontal = map(str, camera.orientation2d)
        down = 1.0 if vertical == "down" else -1.0
        right = 1.0 if horizontal == "right" else -1.0
        return np.array([[0.0, 0.0, right], [0.0, down, 0.0], [0.0, 0.0, 0.0]])
    view_direction, up = np.array(camera.view_direction), np.array(camera.up_direction)
    right = np.cross(
        view_direction, up
    )  # in (depth, row, column): the other way than (x, y, z)
    return np.stack(
        [-right if str(camera.handedness) == "left" else right, -up, view_direction]
    )


def _find_layer_canvas_box(viewer: Any, layer: Any) -> CanvasBox | None:
    """Return the rectangle of the canvas in which a layer is rendered.

    It is the whole canvas without napari's grid.  None for a layer that is not in the
    viewer, or while napari rebuilds its grid.
    """
    if layer not in viewer.layers:
        return None
    scene = find_layer_visual(viewer, layer) if viewer.canvas.grid.enabled else None
    if scene is None:
        height, width = viewer.canvas.size
        return 0.0, 0.0, float(width), float(height)
    view = scene.node
    while view is not None and not isinstance(view, ViewBox):
        view = view.parent
    if view is None:  # napari is rebuilding the grid
        return None
    (x, y), (width, height) = view.pos, view.size
    return float(x), float(y), float(width), float(height)
