"""A layer of other points: maps side by side with the one on show, or behind it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from napari.layers import Points
from numpy.typing import NDArray

from napari_embedding_game.ui.canvas.map_picture import Looks, MapPicture
from napari_embedding_game.ui.canvas.points_layer import points_layer
from napari_embedding_game.ui.compat import in_place
from napari_embedding_game.ui.connections import Connections

if TYPE_CHECKING:
    import napari

NAME, BEHIND = "compared maps", "cells of the reference"


class BesideLayer:
    """Draws points that are not those of the map on show.

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
        self._connections = Connections()
        self._connections.connect(viewer.layers.events.removed, self._on_layer_removed)

    def close(self) -> None:
        """Take the layer away, and undo the connections to the viewer."""
        self._connections.close()
        self.clear()

    def clear(self) -> None:
        """Take the layer away."""
        layer = self._forget()
        if layer is not None and layer in self._viewer.layers:
            self._viewer.layers.remove(layer)

    def show(
        self,
        world: NDArray[np.floating],
        axes: list[int],
        looks: Looks,
        below: Points | None = None,
    ) -> None:
        """Draw points (m, d), [depth,] row and column of each, in these looks.

        Parameters
        ----------
        axes : list of int
            Axes of the layer along [depth,] rows and columns.
        below : Points, optional
            The layer that these points are drawn behind of.
        """
        if self.layer is None or self.layer.data.shape != world.shape:
            self.clear()
            self._add(np.array(world, np.float32), below)
        assert self.layer is not None
        assert self._picture is not None
        with in_place(self.layer, "data") as data:
            data[:, axes] = world
        self._picture.show(looks)

    def recolor(self, looks: Looks) -> None:
        """Draw the points where they are; nothing where there are none."""
        if self._picture is not None:
            self._picture.show(looks)

    def finish(self) -> None:
        """Bring thumbnail and extent up to date after moves."""
        if self.layer is not None:
            self.layer.refresh(data_displayed=False)

    def _add(self, world: NDArray[np.floating], below: Points | None) -> None:
        layers = self._viewer.layers
        active = layers.selection.active
        self.layer = layer = points_layer(world, self._name)
        if below in layers:
            layers.insert(layers.index(below), layer)
        else:
            self._viewer.add_layer(layer)
        layers.selection.active = active
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
