"""Draw some points of the map elsewhere for a while: they glide there, and go back.

The map itself is not touched: at the end each point is where it was, to the bit.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from napari.layers import Points
from numpy.typing import NDArray

from napari_embedding_game.ui.canvas.map_layers import MapLayers
from napari_embedding_game.ui.compat import in_place

STEP_MS = 25
"""Between two pictures of points that glide."""
EASE = 0.5
"""Share of its way that a point goes with each picture."""
ARRIVED = 0.3
"""Thousandths of the map from its goal, from which on a point is there."""


class Displaced:
    """The points that are drawn elsewhere, and where they go.

    They are counted as :attr:`.Session.seen` has them: those of the map, then those of
    each map beside it.  It writes into their layers; who owns it draws these.

    Parameters
    ----------
    layers : MapLayers
    """

    def __init__(self, layers: MapLayers) -> None:
        self._layers = layers
        self._parts = (
            _OfLayer(layers, lambda: layers.points),
            _OfLayer(layers, lambda: layers.beside.layer),
        )

    @property
    def is_begun(self) -> bool:
        """Whether points may be elsewhere."""
        return self._parts[0].is_begun

    def begin(self) -> bool:
        """Remember where all points are; return whether there are any."""
        first, beside = self._parts
        beside.begin()
        return first.begin()

    def send(self, rows: NDArray[np.intp], places: NDArray[np.floating]) -> None:
        """Let points glide to places, and all others home.

        Parameters
        ----------
        rows : (m,) int array
        places : (m, n) array
            Along the displayed axes, as of :meth:`MapLayers.to_world`.
        """
        first, beside = self._parts
        is_first = rows < first.n_points
        first.send(rows[is_first], places[is_first])
        beside.send(rows[~is_first] - first.n_points, places[~is_first])

    def step(self, share: float = EASE) -> bool:
        """Go on a share of the way; return whether there is some way left."""
        first, beside = self._parts
        is_moving = first.step(share)
        return beside.step(share) or is_moving

    def end(self) -> None:
        """Put every point back, unless a layer has been given other ones."""
        for part in self._parts:
            part.end()


class _OfLayer:
    """Those of one layer.

    Parameters
    ----------
    layers : MapLayers
    find : callable
        Returns the layer, None where there is none.
    """

    def __init__(self, layers: MapLayers, find: Callable[[], Points | None]) -> None:
        self._layers = layers
        self._find = find
        self._layer: Points | None = None
        self._home = self._goal = np.zeros((0, 2), np.float32)
        self._rows = np.zeros(0, np.intp)
        """Points that are not at home."""
        self._axes: list[int] = []

    @property
    def is_begun(self) -> bool:
        return self._layer is not None

    @property
    def n_points(self) -> int:
        return len(self._home)

    def begin(self) -> bool:
        self._layer = layer = self._find()
        self._rows = np.zeros(0, np.intp)
        if layer is None:
            return False
        self._home, self._goal = layer.data.copy(), layer.data.copy()
        self._axes = self._layers.axes
        return True

    def send(self, rows: NDArray[np.intp], places: NDArray[np.floating]) -> None:
        if self._layer is None:
            return
        self._goal[self._rows] = self._home[self._rows]
        self._goal[np.ix_(rows, self._axes)] = places
        self._rows = np.union1d(self._rows, rows)

    def step(self, share: float) -> bool:
        rows = self._rows
        if not self._is_there or not len(rows):
            return False
        assert self._layer is not None
        with in_place(self._layer, "data") as data:
            way = self._goal[rows] - data[rows]
            arrives = np.abs(way).max(axis=1) <= ARRIVED * self._layers.unit
            arrives |= share >= 1.0
            data[rows] += share * way
            data[rows[arrives]] = self._goal[rows[arrives]]
        at_home = arrives & (self._goal[rows] == self._home[rows]).all(axis=1)
        self._rows = rows[~at_home]
        return not bool(arrives.all())

    def end(self) -> None:
        if self._is_there:
            assert self._layer is not None
            with in_place(self._layer, "data") as data:
                data[self._rows] = self._home[self._rows]
        self._layer = None

    @property
    def _is_there(self) -> bool:
        layer = self._layer
        if layer is None or layer is not self._find():
            return False
        return bool(layer.data.shape == self._home.shape)
