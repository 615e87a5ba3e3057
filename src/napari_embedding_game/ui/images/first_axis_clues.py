"""Infer from layers whether the first axis of labels is time or depth."""

from __future__ import annotations

from typing import Any

import napari
import numpy as np
from napari.layers import Layer, Tracks

from napari_embedding_game.data.images.first_axis import guess_first_axis
from napari_embedding_game.data.label_objects import FirstAxis
from napari_embedding_game.ui.images.linked_layers import (
    finest_pixels,
    selectable_image_layers,
)

_NAMES: dict[str, FirstAxis] = {
    **dict.fromkeys(("t", "time", "frame", "frames", "timepoint"), "time"),
    **dict.fromkeys(("z", "depth", "plane", "planes", "slice"), "z"),
}
"""What an axis is, by its name."""
_DIMENSIONS: dict[str, FirstAxis] = {"[time]": "time", "[length]": "z"}
"""What an axis is, by the dimension of its unit; napari's default, pixel, has none."""


def infer_first_axis(viewer: napari.Viewer, labels: Layer) -> FirstAxis | None:
    """Return what the first of three axes of a Labels layer is; None if unclear.

    The first clue that is found decides:

    1. the name of the axis in the labels, or in an image of the same shape
    2. a unit of time in one of these layers, or a Tracks layer of three dimensions
    3. the pixels of the labels, unless they are in a file
    4. a unit of length, which some readers give to every axis
    """
    shape = finest_pixels(labels).shape
    images = [
        x for x in selectable_image_layers(viewer) if finest_pixels(x).shape == shape
    ]
    layers = [labels, *images]
    named = (_NAMES.get(layer.axis_labels[0].lower()) for layer in layers)
    axis = next(filter(None, named), None)
    of_units = {
        _DIMENSIONS.get(_find_unit_dimension(layer.units[0])) for layer in layers
    }
    is_tracked = any(isinstance(x, Tracks) and x.ndim == 3 for x in viewer.layers)
    if axis is not None:
        return axis
    if "time" in of_units or is_tracked:
        return "time"
    pixels = finest_pixels(labels)  # pixels in a file are too slow to look at
    guess = guess_first_axis(pixels) if isinstance(pixels, np.ndarray) else None
    return guess or ("z" if "z" in of_units else None)


def _find_unit_dimension(unit: Any) -> str:
    """Return the dimension of a unit, such as "[time]"; "" if it is composed."""
    dimensions = dict(unit.dimensionality)
    return next(iter(dimensions)) if list(dimensions.values()) == [1] else ""
