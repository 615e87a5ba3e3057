"""Make the pictures of rows: from the dataset, or cropped from image layers."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import cycle
from typing import Any

import numpy as np
from napari.layers import Image, Labels

from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.images.channels import split_into_channels
from napari_embedding_game.data.images.crops import Channel
from napari_embedding_game.data.images.crops import Thumbnails as Crops
from napari_embedding_game.data.label_objects import Objects
from napari_embedding_game.ui.images.alignment import misfit_reason, pixel_size
from napari_embedding_game.ui.images.linked_layers import (
    TRANSFORM_FIELDS,
    ObjectLayers,
    finest_pixels,
)
from napari_embedding_game.ui.images.picture_grid import Pictures

APPEARANCE_FIELDS = (
    "data",
    "contrast_limits",
    "colormap",
    "gamma",
    "opacity",
    "visible",
    *TRANSFORM_FIELDS,
)
"""The attributes that a picture depends on; a layer has an event of each name."""
RED, GREEN, BLUE = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
CYAN, MAGENTA, YELLOW = (0.0, 1.0, 1.0), (1.0, 0.0, 1.0), (1.0, 1.0, 0.0)
OF_TWO, OF_MORE = (MAGENTA, GREEN), (RED, GREEN, BLUE, CYAN, MAGENTA, YELLOW)
"""Colours of the channels in a layer that holds two, or more."""
MAX_OBJECTS = 0.98
"""Share of the objects that fit into a picture."""
MIN_PIXELS = 8


def make_row_pictures(
    dataset: Dataset | None,
    layers: ObjectLayers | None,
    hidden_channels: Collection[str] = (),
) -> Pictures | None:
    """Return the pictures of a dataset's rows: its own, or crops of the linked images.

    The dataset's own pictures come first.  Channels with a name in ``hidden_channels``
    are left out of crops.  None without a dataset, or without both pictures and objects
    of linked layers.
    """
    if dataset is None or dataset.images is not None:
        return None if dataset is None else dataset.images
    if dataset.objects is None or layers is None:
        return None
    channels = [x for x in list_shown_channels(layers) if x.name not in hidden_channels]
    sizes = pixel_size(layers.labels)[-2:]
    spacing = sizes[0] / min(sizes), sizes[1] / min(sizes)
    field = compute_common_field_side(dataset.objects, spacing)
    pixels = finest_pixels(layers.labels)
    return Crops(channels, pixels, dataset.objects, field, spacing)


def compute_common_field_side(objects: Objects, spacing: tuple[float, float]) -> int:
    """Return the side, in pixels, of the field of view of all pictures.

    It is the same for all, so that a small object looks small next to a large object.
    The share ``MAX_OBJECTS`` of the objects fits; a few larger objects are cut off at
    the edge.  The side is at least ``MIN_PIXELS``.  ``spacing`` is the height and width
    of a pixel, of which the lesser is 1.
    """
    first, last = np.moveaxis(objects.box_corners[objects.present], 1, 0)
    if not len(first):
        return MIN_PIXELS
    longer = ((last - first)[:, -2:] * spacing).max(axis=1)
    return max(MIN_PIXELS, round(1.2 * float(np.quantile(longer, MAX_OBJECTS))))


def list_shown_channels(layers: ObjectLayers) -> list[Channel]:
    """Return the channels of the visible images, or of all images if all are hidden.

    A person who hides all images to see the labels still wants pictures.
    """
    images = [image for image in layers.images if image.visible] or layers.images
    return [
        channel
        for image in images
        for channel in _make_layer_channels(image, layers.labels)
    ]


def _make_layer_channels(layer: Image, labels: Labels) -> list[Channel]:
    """Return the channels of an image layer with its present look.

    The channels of a layer that holds several are all shown, in different colours that
    are not the layer's, and named by their number.  A layer that does not fit the
    labels has no channels.
    """
    if misfit_reason(layer, labels):
        return []
    pixels, shape = finest_pixels(layer), tuple(finest_pixels(labels).shape)
    parts = [pixels] if layer.rgb else split_into_channels(pixels, shape)
    colors: Sequence[Any] = OF_TWO if len(parts) == 2 else OF_MORE
    names = [f"{layer.name} {i + 1}" for i in range(len(parts))]
    if len(parts) == 1:
        colors, names = [layer.colormap.map(np.linspace(0, 1, 64))], [layer.name]
    low, high = map(float, layer.contrast_limits)
    looks = (float(layer.gamma), float(layer.opacity), bool(layer.rgb))
    return [
        Channel(part, (low, high), color, *looks, name)
        for part, color, name in zip(parts, cycle(colors), names, strict=False)
    ]


def list_appearance_events(layers: ObjectLayers) -> list[Any]:
    """Return the events of layers after which pictures look different."""
    laid = [getattr(layers.labels.events, name) for name in TRANSFORM_FIELDS]
    return laid + [
        getattr(x.events, look) for x in layers.images for look in APPEARANCE_FIELDS
    ]
