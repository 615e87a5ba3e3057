"""Find which objects of the linked labels are visible, and where on the canvas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import napari
import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.data.label_objects import Objects
from napari_embedding_game.session.session import Session
from napari_embedding_game.ui.canvas.projection import (
    CanvasProjection,
    layer_projection,
)
from napari_embedding_game.ui.images.linked_layers import (
    LinkedLayers,
    ObjectLayers,
    are_in_slice,
    displayed_axes_and_position,
    finest_pixels,
)

EDGE_MARGIN = 0.05
"""Distance from its labels at which a line may begin, as a share of the longest side.
"""


@dataclass(frozen=True, eq=False)
class VisibleObjects:
    """The objects of n rows with the present projection of their labels."""

    linked: ObjectLayers
    objects: Objects
    projection: CanvasProjection
    axes: list[int]
    """The displayed axes of the labels."""
    slider_position: NDArray[np.float64]
    """(ndim,) position of the sliders in pixels of the labels."""

    def compute_center_pixels(self) -> NDArray[np.float64]:
        """Return the canvas pixels (x, y) of the objects' centers, (n, 2).

        NaN for an object in another slice, and for a row without an object.
        """
        pixels = self.projection.to_pixels(self.objects.centers[:, self.axes])
        pixels[~are_in_slice(self.objects, self.axes, self.slider_position)] = np.nan
        return pixels

    def is_on_labels(self, pixel: NDArray[np.floating]) -> bool:
        """Return whether a pixel (x, y) is on flat labels or close to them.

        False for labels in space.
        """
        return self._find_labels_position(pixel, EDGE_MARGIN) is not None

    def find_object_row_at_pixel(self, pixel: NDArray[np.floating]) -> int | None:
        """Return the row whose object is at a pixel (x, y) of flat labels, or None."""
        position = self._find_labels_position(pixel)
        if position is None:
            return None
        index = tuple(np.round(position).astype(int))
        label = int(np.asarray(finest_pixels(self.linked.labels)[index]))
        return self._find_row_with_label(label, position)

    def find_row_at_event(self, event: Any) -> int | None:
        """Return the row whose object is at a mouse event of napari, or None.

        In space it is the foremost object.
        """
        if self.projection.view_direction is None:
            return self.find_object_row_at_pixel(np.array(event.pos[:2], dtype=float))
        layer, world = self.linked.labels, np.array(event.position, dtype=float)
        value = layer.get_value(
            world,
            view_direction=event.view_direction,
            dims_displayed=list(event.dims_displayed),
            world=True,
        )
        label = value[1] if isinstance(value, tuple) else value
        return self._find_row_with_label(
            int(label or 0), np.asarray(layer.world_to_data(world))
        )

    def _find_labels_position(
        self, pixel: NDArray[np.floating], margin_share: float = 0.0
    ) -> NDArray[np.float64] | None:
        """Return the position (ndim,) in the labels at a pixel (x, y), or None.

        ``margin_share`` is the accepted distance from the labels, as a share of their
        longest displayed side.  None for labels in space.
        """
        drawn = self.projection.position_at_pixel(pixel)
        if drawn is None:
            return None
        position = self.slider_position.copy()
        position[self.axes] = drawn
        index, shape = (
            np.round(position),
            np.array(finest_pixels(self.linked.labels).shape),
        )
        margin = margin_share * max(shape[self.axes])
        is_on = (index >= -margin).all() and (index < shape + margin).all()
        return position if is_on else None

    def _find_row_with_label(
        self, label: int, position: NDArray[np.floating]
    ) -> int | None:
        """Return the row of the object with a label at a position (ndim,), or None.

        Another slice may have another object with the label, and the object here may
        have been left out of the map: only objects in the slice on show count.  None
        for label 0.
        """
        if not label:  # background, and rows without an object
            return None
        rows = np.flatnonzero(self.objects.label_ids == label)
        rows = rows[
            are_in_slice(self.objects.take(rows), self.axes, self.slider_position)
        ]
        if len(rows) > 1:  # in a 3D view time is a depth
            rows = rows[
                self.objects.take(rows).contains_along_axes(position).all(axis=1)
            ]
        return int(rows[0]) if len(rows) else None


def find_visible_objects(
    viewer: napari.Viewer, session: Session, layers: LinkedLayers
) -> VisibleObjects | None:
    """Return all objects of a dataset, and how the canvas shows their labels.

    None without linked labels or objects, or while the labels are hidden.
    """
    linked, dims = layers.current, viewer.dims
    objects = None if session.dataset is None else session.dataset.objects
    if linked is None or objects is None:
        return None
    projection = layer_projection(viewer, linked.labels, includes_slices=True)
    axes, at = displayed_axes_and_position(dims, linked.labels)
    return projection and VisibleObjects(linked, objects, projection, axes, at)
