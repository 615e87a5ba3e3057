"""The layer of other points: maps side by side with the one on show, or behind it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from napari.layers import Points
from numpy.typing import NDArray

from napari_embedding_game.ui.canvas.map_picture import MapPicture
from napari_embedding_game.ui.canvas.points_layer import point_size, points_layer
from napari_embedding_game.ui.compat import draw, draw_last, in_place
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.point_looks import PointLooks

if TYPE_CHECKING:
    import napari

NAME, BEHIND = "compared maps", "cells of the reference"


class BesideLayer:
    """Draws the same points once more for each other map, in the same looks.

    Or the cells of a reference behind the points that were placed on its map.

    Parameters
    ----------
    viewer : napari.Viewer
    on_removed : callable
        Called when somebody deleted the layer.
    name : str, optional
        Of the layer.
    """

    def __init__(
        self,
        viewer: napari.Viewer,
        on_removed: Callable[[], None],
        name: str = NAME,
    ) -> None:
        self._viewer = viewer
        self._on_removed = on_removed
        self._name = name
        self.layer: Points | None = None
        self._picture: MapPicture | None = None
        self._n_maps = 0
        self._connections = Connections()
        self._connections.connect(viewer.layers.events.removed, self._on_layer_removed)

    def close(self) -> None:
        """Take the layer away, and undo the connections to the viewer."""
        self._connections.close()
        self.clear()

    def clear(self) -> None:
        """Take the layer away: no maps lie side by side."""
        layer = self._forget()
        if layer is not None and layer in self._viewer.layers:
            self._viewer.layers.remove(layer)

    def show(
        self,
        world: NDArray[np.floating],
        axes: list[int],
        n_maps: int,
        below: Points | None = None,
    ) -> None:
        """Place the points; their looks come with :meth:`recolor`.

        Parameters
        ----------
        world : (n_maps N, 2) or (n_maps N, 3) array
            [Depth,] row and column of each point, map after map.
        axes : list of int
            Axes of the layer along [depth,] rows and columns.
        n_maps : int
        below : Points, optional
            The layer that these points are drawn behind of.
        """
        self._n_maps = n_maps
        if self.layer is None or self.layer.data.shape != world.shape:
            self.clear()
            self._n_maps = n_maps
            self._add(world, below)
        assert self.layer is not None
        with in_place(self.layer, "data") as data:
            data[:, axes] = world

    def move(self, world: NDArray[np.floating], axes: list[int]) -> None:
        """Draw the points elsewhere, as they look; nothing where others are shown.

        Parameters are those of :meth:`show`.
        """
        layer = self.layer
        if layer is None or layer.data.shape != world.shape:
            return
        with in_place(layer, "data") as data:
            data[:, axes] = world
        if self._picture is None or not self._picture.recolor():
            draw(self._viewer, layer)

    def finish(self) -> None:
        """Bring thumbnail and extent up to date after moves."""
        if self.layer is not None:
            self.layer.refresh(data_displayed=False)

    def recolor(
        self,
        colors: NDArray[np.float32] | PointLooks,
        magnification: NDArray[np.floating] | float,
        above: NDArray[np.bool_] | None,
        unit: float,
        hidden: NDArray[np.bool_] | None = None,
        *,
        is_moving: bool = False,
    ) -> None:
        """Draw the points as those of the map on show look; nothing without a layer.

        Parameters
        ----------
        colors : (N, 4) array or PointLooks
            Looks tell all of the next two as well.
        magnification : float or (N,) array
        above : (N,) bool, optional
            Points that are drawn above all others.
        unit : float
            World units per thousandth of the map.
        hidden : (N,) bool, optional
            Points that are not drawn.
        is_moving : bool
            Whether others follow at once: then a picture of them stays one.
        """
        layer, n_maps = self.layer, self._n_maps
        if layer is None or len(layer.data) != n_maps * len(colors):
            return
        if isinstance(colors, PointLooks):
            looks, above = replace(colors, size=1.0), colors.chosen
            colors, magnification = looks.colors_of(slice(None)), looks.sizes()
        both = [None if of is None else np.tile(of, n_maps) for of in (above, hidden)]
        draw_last(layer, *both)
        with in_place(layer, "face_color") as shown:
            shown[:] = np.tile(colors, (n_maps, 1))
        sizes_of_one = unit * point_size(len(colors)) * np.asarray(magnification)
        with in_place(layer, "size") as sizes:
            sizes[:] = np.resize(sizes_of_one, len(sizes))
        if self._picture is None or not self._picture.show():
            draw(self._viewer, layer)
        if self._picture is not None and not is_moving:
            self._picture.rest()

    # Inside

    def _add(self, world: NDArray[np.floating], below: Points | None) -> None:
        layers = self._viewer.layers
        active = layers.selection.active
        n_points = len(world) // max(self._n_maps, 1)
        layer = points_layer(np.array(world, np.float32), 1.0, n_points)
        layer.name = self._name
        if below in layers:
            layers.insert(layers.index(below), layer)
        else:
            self._viewer.add_layer(layer)
        layers.selection.active = active
        self.layer = layer
        self._picture = MapPicture(self._viewer, layer)

    def _forget(self) -> Points | None:
        if self._picture is not None:
            self._picture.close()
        layer, self.layer, self._picture = self.layer, None, None
        return layer

    def _on_layer_removed(self, event: object) -> None:
        if self.layer is not None and getattr(event, "value", None) is self.layer:
            self._forget()
            self._on_removed()
