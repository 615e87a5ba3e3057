"""How the points and the landmarks of a map look on the canvas."""

from __future__ import annotations

from typing import Any

import numpy as np
from napari.layers import Layer, Points
from napari.utils.notifications import show_info
from numpy.typing import NDArray

POINTS_NAME, LANDMARKS_NAME = "embedding", "landmarks"
LANDMARK_SIZE = 6.0
"""World units, on a map of 1,000."""
LANDMARK_OPACITY = 0.7
SYMBOL = "disc"
SMALLEST = 0.0
"""Canvas pixels.  Points that napari holds above a larger size get an edge of half
of it, whatever their border: all small points would look grey."""
LARGEST = 10_000.0
LOCKED = (
    "The places of points and landmarks come from the data: they cannot be moved or "
    "deleted by hand. To leave points out, select the others and click 'Map of its "
    "own'; to hide the layer, click its eye."
)


class Locked(Points):
    """A Points layer whose points cannot be added, moved or deleted in the window.

    Hover card, lasso, clusters and saved files all go by the layout: a point that was
    dragged would be shown in one place and meant in another.
    """

    @property
    def _type_string(self) -> str:
        return "points"  # what its files, its icon and its controls go by

    @property
    def editable(self) -> bool:
        """Always False: napari then offers no tools that change points."""
        return False

    @editable.setter
    def editable(self, editable: bool) -> None:
        # napari sets it with the data and with the number of displayed axes.
        self._editable = False

    def remove_selected(self) -> None:
        """Say why the selected points stay."""
        show_info(LOCKED)

    def _paste_data(self) -> None:
        show_info(LOCKED)


class MapPoints(Locked):
    """A Points layer that napari draws quickly, as nothing is copied needlessly.

    For each drawing napari copies positions and colours of the points in view, and
    makes a word, then a number of each symbol, which takes longer than the drawing.
    Here all points are in view and, as a rule, of one symbol without a border.  A
    napari that asks for its views by other names is only slower.

    The points of a selection are drawn last, above all others: see ``draw_last``.
    """

    _order: NDArray[np.intp] | None = None
    """Points in the order in which they are drawn; None: as they are."""
    _compared: tuple[NDArray[np.object_], bool] | None = None
    """The symbols that were compared last, and whether they are all the same."""

    def draw_last(self, chosen: NDArray[np.bool_] | None) -> None:
        """Draw chosen points (N,) above the others from now on; None: no points."""
        if chosen is None:
            self._order = None
        else:
            self._order = np.concatenate(
                [np.flatnonzero(~chosen), np.flatnonzero(chosen)]
            )

    @property
    def current_symbol(self) -> Any:
        """Symbol of all points: a choice in napari's controls changes all of them."""
        return self._current_symbol

    @current_symbol.setter
    def current_symbol(self, symbol: Any) -> None:
        self._compared = None  # napari writes into the array that is there
        Points.current_symbol.fset(self, symbol)
        if self._has_changed_symbol():
            self.symbol = symbol

    def _has_changed_symbol(self) -> bool:
        # napari also sets it while it makes the layer or takes up a selection.
        is_asked = self._update_properties and hasattr(self, "_symbol")
        if not is_asked or not len(self.data):
            return False
        return any(str(x) != str(self._current_symbol) for x in set(self.symbol))

    @property
    def _view_indices(self) -> NDArray[np.intp]:
        indices = super()._view_indices
        order = self._order
        is_whole = order is not None and len(order) == len(indices) == len(self.data)
        return order if is_whole else indices

    @property
    def _view_selected(self) -> NDArray[np.intp]:
        chosen = np.fromiter(self.selected_data, dtype=int)
        return np.flatnonzero(np.isin(self._view_indices, chosen))

    @property
    def _view_size(self) -> NDArray[np.floating]:
        sizes = super()._view_size
        order = self._order
        is_whole = order is not None and len(order) == len(sizes)
        return sizes.take(order) if is_whole else sizes

    @property
    def _shows_all(self) -> bool:
        """Whether all points are in view as they are, their coordinates in order."""
        return self._order is None and self._is_whole

    @property
    def _shows_reordered(self) -> bool:
        """The same, those of a selection last."""
        return self._order is not None and self._is_whole

    @property
    def _is_whole(self) -> bool:
        in_order = list(self._slice_input.displayed) == list(range(self.ndim))
        is_whole = self._order is None or len(self._order) == len(self.data)
        return in_order and is_whole and len(self._view_indices) == len(self.data)

    @property
    def _view_data(self) -> NDArray[np.floating]:
        if self._shows_all:
            return self.data
        if self._shows_reordered:
            return self.data.take(self._order, axis=0)
        return super()._view_data

    @property
    def _view_face_color(self) -> NDArray[np.floating]:
        if self._shows_all:
            return self.face_color
        # ``take`` is several times quicker than an index.
        return self.face_color.take(self._view_indices, axis=0)

    @property
    def _view_border_color(self) -> NDArray[np.floating]:
        # Of borders without a width no colour is seen.
        has_borders = bool(self.border_width.any()) or not len(self.data)
        return super()._view_border_color if has_borders else self.border_color[:1]

    @property
    def _view_symbol(self) -> NDArray[np.object_]:
        symbols = self.symbol  # another array whenever one of them changes
        if self._compared is None or self._compared[0] is not symbols:
            self._compared = symbols, bool((symbols == symbols[:1]).all())
        return symbols[:1] if self._compared[1] else super()._view_symbol


def point_size(n_points: int) -> float:
    """Return the world size of a point on a map of 1,000 world units.

    2,638 points are 9 across, 70,000 no blob.
    """
    return float(np.clip(400 / np.sqrt(max(n_points, 1)), 2.0, 16.0))


def points_layer(world: NDArray[np.floating], unit: float) -> MapPoints:
    """Return a layer of the points.

    Parameters
    ----------
    world : array, shape (N, 2)
        Taken over: it is written in place later.
    unit : float
        World units per thousandth of the map.
    """
    layer = MapPoints(
        world,
        name=POINTS_NAME,
        size=unit * point_size(len(world)),
        border_width=0.0,
        face_color="gray",
        opacity=0.9,
        blending="translucent",
        canvas_size_limits=(SMALLEST, LARGEST),
    )
    layer.symbol[:] = SYMBOL  # words are quicker to compare than napari's symbols
    return layer


def landmarks_layer(world: NDArray[np.floating], unit: float) -> Points:
    """Return dark discs with a light rim: seen on black, on white, on any point."""
    return Locked(
        world,
        name=LANDMARKS_NAME,
        size=unit * LANDMARK_SIZE,
        face_color="#15171c",
        border_color="#f4f4f4",
        border_width=0.2,
        opacity=LANDMARK_OPACITY,
    )


def write_landmarks(
    layer: Points, places: NDArray[np.floating], axes: list[int], unit: float
) -> None:
    """Put the landmarks at these places (L, 2), however many there were.

    Parameters
    ----------
    axes : list of int
        Axes of the layer along the rows and columns of the places.
    unit : float
        World units per thousandth of the map.
    """
    if len(layer.data) != len(places):
        layer.selected_data = set()
        layer.data = np.zeros_like(places)
        layer.size[:] = unit * LANDMARK_SIZE
        if not layer.visible:
            # napari slices no hidden layer, and its next thumbnail, as with another
            # opacity, would look for rows that there are no more.
            layer.set_view_slice()
    layer.data[:, axes] = places


class Faded:
    """Lets a layer step back for a while; what its owner changes meanwhile stays.

    Parameters
    ----------
    layer : Layer
    share : float
        Of its present opacity.
    """

    def __init__(self, layer: Layer, share: float) -> None:
        self._layer = layer
        self._before = layer.opacity
        layer.opacity *= share
        self._faded = layer.opacity

    @property
    def layer(self) -> Layer:
        """The layer that has stepped back."""
        return self._layer

    def end(self) -> None:
        """Bring the layer back."""
        if self._layer.opacity == self._faded:
            self._layer.opacity = self._before
