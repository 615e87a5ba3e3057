"""Project layer coordinates to canvas pixels, and put overlays on the canvas.

Text on napari's own layers is laid out anew, letter by letter in Python, with each
step of the wheel, and knows no outline.  A widget over the canvas costs nothing
while it is not painted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QEvent, QObject, Qt
from qtpy.QtWidgets import QWidget

from napari_embedding_game.session.panels import STRAIGHT
from napari_embedding_game.ui.compat import camera_of

EDGE = 1e6
"""Condition number from which on a plane is seen from its edge."""
SMALLEST_CELL = 20
"""Pixels that napari leaves to a cell of its grid, whatever the spacing."""


@dataclass(frozen=True, eq=False)
class Projection:
    """Where a plane or the space of napari's scene is drawn, and the way back.

    Parameters
    ----------
    matrix : array, shape (3, 3) or (3, 4)
        From (row, column, 1) of the plane, or (depth, row, column, 1) of the space, to
        (x w, y w, w), in the pixels that Qt counts: rotation, perspective and grid
        included.
    cell : (x, y, width, height)
        The part of the canvas on which it is drawn.
    ahead : array, shape (3,), optional
        How much further from the eye a step in space leads; None of a plane.
    """

    matrix: NDArray[np.float64]
    cell: tuple[float, float, float, float]
    ahead: NDArray[np.float64] | None = None

    def to_pixels(self, places: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return where places (n, 2) or (n, 3) are drawn: (n, 2) of x and y.

        NaN for what is behind the camera.
        """
        seen = self._seen(np.asarray(places))
        return seen[:, :2] / np.where(seen[:, 2:] > 0, seen[:, 2:], np.nan)

    def beside(
        self, place: NDArray[np.floating], pixel: NDArray[np.floating]
    ) -> NDArray[np.float64] | None:
        """Return the place under a pixel (x, y) that is as far from the eye as another.

        That is in the plane through it that stands parallel to the canvas.

        Parameters
        ----------
        place : array, shape (3,)
            The other place: depth, row and column.
        pixel : array, shape (2,)

        Returns
        -------
        array, shape (3,)
            None of a plane, and where the place is behind the camera.
        """
        if self.ahead is None:
            return None
        seen = self._seen(np.asarray(place, dtype=float)[None])[0]
        if seen[2] <= 0:
            return None
        step = np.asarray(pixel, dtype=float) * seen[2] - seen[:2]
        equations = np.vstack([self.matrix[:2, :3], self.ahead])
        found = np.asarray(place) + np.linalg.inv(equations)[:, :2] @ step
        return found if np.isfinite(found).all() else None

    def _seen(self, places: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return (x w, y w, w) of places: (n, 3).

        Column by column: on a plane a product of matrices takes several times as long.
        """
        seen = np.empty((len(places), 3))
        for line, column in zip(self.matrix, seen.T, strict=True):
            column[:] = line[-1]
            for factor, along in zip(line[:-1], places.T, strict=True):
                if factor:
                    column += factor * along
        return seen

    def to_plane(self, pixels: NDArray[np.floating]) -> NDArray[np.float64] | None:
        """Return the (row, column) under pixels (n, 2); None where there is none.

        That is so beyond the horizon, for a plane that is seen from its edge, and in
        space, where a pixel is no place.
        """
        is_plane = self.ahead is None
        if not is_plane or np.linalg.cond(self.matrix[:2, :2]) > EDGE:
            return None
        back = np.linalg.inv(self.matrix)
        homogeneous = np.asarray(pixels, dtype=float) @ back[:, :2].T + back[:, 2]
        places = homogeneous[:, :2] / homogeneous[:, 2:]
        return places if np.isfinite(self.to_pixels(places)).all() else None

    def holds(self, pixel: NDArray[np.floating]) -> bool:
        """Return whether a pixel (x, y) is on this part of the canvas."""
        x, y, width, height = self.cell
        return bool(x <= pixel[0] <= x + width and y <= pixel[1] <= y + height)

    def stretch(self, place: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return by how much a small step from a place moves on the canvas.

        (2, 2) of a plane, (2, 3) in space.
        """
        x, y, depth = self.matrix @ np.append(np.asarray(place, dtype=float), 1.0)
        pixel = np.array([[x], [y]]) / depth
        step: NDArray[np.float64] = self.matrix[:2, :-1] - pixel * self.matrix[2, :-1]
        return step / depth

    def zoom_at(self, place: NDArray[np.floating]) -> float:
        """Return the fewest pixels that a unit takes at a place, in any direction.

        In space: in any direction across the line of sight.
        """
        return float(np.linalg.svd(self.stretch(place), compute_uv=False)[-1])


def projection_of(
    viewer: Any, layer: Any, *, of_slice: bool = False
) -> Projection | None:
    """Return how a layer is drawn; None where it is not to be seen.

    A flat layer is a plane, which napari draws at depth 0 of what is displayed,
    whatever axes these are; one of three dimensions is a space, seen as such only where
    napari displays three.  Both have the coordinates of the layer's data, in the order
    in which they are displayed (:func:`displayed_axes`).

    Parameters
    ----------
    viewer : napari.Viewer
    layer : napari.layers.Layer
    of_slice : bool
        Whether a layer of more axes than are displayed is a plane, too: the slice of
        it that is on show.
    """
    cell, n_axes = _cell_of(viewer, layer), min(layer.ndim, viewer.dims.ndisplay)
    if cell is None or not layer.visible:
        return None
    if n_axes < layer.ndim and not of_slice:
        return None
    of_layer = _layer_matrix(viewer, layer, n_axes)
    matrix, ahead = _camera_matrix(viewer, cell)
    if n_axes == 3:
        return Projection(matrix @ of_layer, cell, ahead @ of_layer[:3, :3])
    return Projection(matrix[:, 1:] @ of_layer, cell)  # depth is 0


def displayed_axes(dims: Any, ndim: int = 2, n_axes: int = 2) -> list[int]:
    """Return the axes of a layer of ``ndim`` dimensions that are displayed.

    Along rows and columns, or, with ``n_axes`` 3, along depth, rows and columns.  Axes
    are rolled and transposed by napari's buttons under the list of layers.
    """
    first = dims.ndim - ndim
    return [axis - first for axis in dims.order if axis >= first][-n_axes:]


def sight_of(viewer: Any) -> NDArray[np.float64]:
    """Return the (depth, row, column) that go right, down and into the picture: (3, 3).

    Into the picture nothing goes in a flat view.
    """
    return _directions(camera_of(viewer), viewer.dims.ndisplay)


def facing_of(viewer: Any) -> NDArray[np.float64]:
    """Return the steps (x, y, z) of a map that go right and up on the canvas: (2, 3).

    In a flat view these are x and y.
    """
    if viewer.dims.ndisplay == 2:
        return STRAIGHT
    right, down, _ = sight_of(viewer)
    rows_go_down = np.array([1.0, -1.0, 1.0])  # and y goes up
    return np.stack([right, -down])[:, ::-1] * rows_go_down


def view_changes(viewer: Any) -> tuple[Any, ...]:
    """Return the events that tell that layers are to be seen in another way."""
    camera = camera_of(viewer).events
    layers = viewer.layers.events
    return (
        camera.zoom,
        camera.center,
        camera.angles,
        camera.perspective,
        camera.orientation,
        viewer.dims.events.ndisplay,
        viewer.canvas.grid.events,
        viewer.canvas.events.size,
        layers.inserted,
        layers.removed,
        layers.reordered,
        viewer.events.theme,
    )


def _layer_matrix(viewer: Any, layer: Any, n: int) -> NDArray[np.float64]:
    """Return from n displayed coordinates of the data to the scene.

    (3, 3) of a flat layer or a slice, (4, 4) of one of three dimensions.
    """
    axes = displayed_axes(viewer.dims, layer.ndim, n)
    corners = np.zeros((n + 1, layer.ndim))
    if n < layer.ndim:
        corners[:] = layer.world_to_data(viewer.dims.point)
    corners[:, axes] = np.eye(n + 1)[:, 1:]
    origin, *steps = (np.asarray(layer.data_to_world(c))[axes] for c in corners)
    matrix = np.eye(n + 1)
    matrix[:n] = np.column_stack([*(step - origin for step in steps), origin])
    return matrix


def _camera_matrix(
    viewer: Any, cell: tuple[float, float, float, float]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return from (depth, row, column, 1) of the scene to pixels, and the sight.

    Returns
    -------
    matrix : array, shape (3, 4)
    ahead : array, shape (3,)
        Into the picture; zeros in a flat view.
    """
    camera, (x, y, width, height) = camera_of(viewer), cell
    right, down, ahead = _directions(camera, viewer.dims.ndisplay)
    center = np.asarray(camera.center, dtype=float)
    along = np.stack([right, down, ahead])
    matrix = np.column_stack([along, -along @ center])
    matrix[:2] *= camera.zoom
    is_flat = viewer.dims.ndisplay == 2 or not camera.perspective
    if is_flat:
        matrix[2] = 0.0, 0.0, 0.0, 1.0
    else:
        # The eye stands where the canvas takes up the whole angle of view.
        angle = np.radians(camera.perspective) / 2
        matrix[2] *= 2 * np.tan(angle) * camera.zoom / height
        matrix[2, 3] += 1.0
    matrix[0] += matrix[2] * (x + width / 2)
    matrix[1] += matrix[2] * (y + height / 2)
    return matrix, ahead


def _directions(camera: Any, ndisplay: int) -> NDArray[np.float64]:
    """Return the (depth, row, column) that go right, down and into the picture."""
    if ndisplay == 2:
        vertical, horizontal = map(str, camera.orientation2d)
        down = 1.0 if vertical == "down" else -1.0
        right = 1.0 if horizontal == "right" else -1.0
        return np.array([[0.0, 0.0, right], [0.0, down, 0.0], [0.0, 0.0, 0.0]])
    ahead, up = np.array(camera.view_direction), np.array(camera.up_direction)
    right = np.cross(ahead, up)  # in (depth, row, column): the other way than (x, y, z)
    if str(camera.handedness) == "left":
        right = -right
    return np.stack([right, -up, ahead])


def _cell_of(viewer: Any, layer: Any) -> tuple[float, float, float, float] | None:
    """Return the part of the canvas in which a layer is drawn: x, y, width, height."""
    height, width = viewer.canvas.size
    grid, layers = viewer.canvas.grid, viewer.layers
    if layer not in layers:
        return None
    if not grid.enabled:
        return 0.0, 0.0, float(width), float(height)
    row, column = grid.position(layers.index(layer), layers)
    if row < 0:
        return None
    n_rows, n_columns = grid.actual_shape(layers)
    gap = _grid_gap(grid.spacing, (height, width), (n_rows, n_columns))
    across = (width - gap * (n_columns - 1)) / n_columns
    along = (height - gap * (n_rows - 1)) / n_rows
    return column * (across + gap), row * (along + gap), across, along


def _grid_gap(spacing: float, size: tuple[int, int], shape: tuple[int, int]) -> float:
    """Return the pixels between two cells of napari's grid.

    Parameters
    ----------
    spacing : float
        As in ``viewer.canvas.grid``: below 1 it is a share of a cell.
    size, shape : tuple of int
        Pixels of the canvas and cells in the grid, rows and columns.
    """
    cells = [pixels / n for pixels, n in zip(size, shape, strict=True)]
    wanted = int(spacing if spacing >= 1 else spacing * np.mean(cells))
    room = min(
        (pixels - n * SMALLEST_CELL) / max(1, n - 1)
        for pixels, n in zip(size, shape, strict=True)
    )
    return min(wanted, max(0, int(room)))


class CanvasOverlay(QWidget):
    """A widget as large as the canvas it lies on; mouse and keys pass through."""

    def __init__(self, canvas: QWidget) -> None:
        super().__init__(canvas)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setGeometry(canvas.rect())
        canvas.installEventFilter(self)

    def close(self) -> None:
        """Leave the canvas for good."""
        canvas = self.parentWidget()
        if canvas is not None:
            canvas.removeEventFilter(self)
        self.hide()
        self.setParent(None)  # at once: the canvas may go before the next event
        self.deleteLater()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Follow the size of the canvas, and let every event through."""
        if event.type() == QEvent.Type.Resize and isinstance(watched, QWidget):
            self.setGeometry(watched.rect())
        return False
