"""The picture of each row: from the dataset, or cropped from image layers."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import cycle
from typing import Any

import numpy as np
from napari.layers import Image, Labels

from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.images.channels import split_image
from napari_embedding_game.data.images.crops import Channel
from napari_embedding_game.data.images.crops import Thumbnails as Crops
from napari_embedding_game.data.label_objects import Objects
from napari_embedding_game.ui.images.alignment import find_misfit, pixel_size
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
"""What a picture is made of: the layer has an event for each."""
RED, GREEN, BLUE = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
CYAN, MAGENTA, YELLOW = (0.0, 1.0, 1.0), (1.0, 0.0, 1.0), (1.0, 1.0, 0.0)
OF_TWO, OF_MORE = (MAGENTA, GREEN), (RED, GREEN, BLUE, CYAN, MAGENTA, YELLOW)
"""Colours of the channels that one layer holds."""
MAX_OBJECTS = 0.98
"""Share of the objects that have room in a picture."""
MIN_PIXELS = 8


def make_row_pictures(
    dataset: Dataset | None, linked: ObjectLayers | None, without: Collection[str] = ()
) -> Pictures | None:
    """Return the pictures of a dataset's rows: its own, or cut out of its layers.

    Channels of the names ``without`` are left out.
    """
    if dataset is None or dataset.images is not None:
        return None if dataset is None else dataset.images
    if dataset.objects is None or linked is None:
        return None
    channels = [x for x in shown_channels(linked) if x.name not in without]
    sizes = pixel_size(linked.labels)[-2:]
    spacing = sizes[0] / min(sizes), sizes[1] / min(sizes)
    field, pixels = (
        common_field_side(dataset.objects, spacing),
        finest_pixels(linked.labels),
    )
    return Crops(channels, pixels, dataset.objects, field, spacing)


def common_field_side(objects: Objects, spacing: tuple[float, float]) -> int:
    """Return the side, in finest pixels, of the field of view that all pictures have.

    So that a small object looks small next to a large one.  Nearly all objects have
    room in it; the few larger ones are cut at its edge.
    """
    first, last = np.moveaxis(objects.box_corners[objects.present], 1, 0)
    if not len(first):
        return MIN_PIXELS
    longer = ((last - first)[:, -2:] * spacing).max(axis=1)
    return max(MIN_PIXELS, round(1.2 * float(np.quantile(longer, MAX_OBJECTS))))


def shown_channels(linked: ObjectLayers) -> list[Channel]:
    """Return the channels of the images on show, or of all where none is.

    Who hides all images, to see the labels alone, still wants to see the objects.
    """
    images = [image for image in linked.images if image.visible] or linked.images
    return [
        channel for image in images for channel in _layer_channels(image, linked.labels)
    ]


def _layer_channels(layer: Image, labels: Labels) -> list[Channel]:
    """Return an image layer as it looks now, where it lies on labels.

    Of a layer that holds several channels they are all seen at once, each in a colour
    of its own; a layer that does not fit the labels shows none of these objects.
    """
    if find_misfit(layer, labels):
        return []
    pixels, shape = finest_pixels(layer), tuple(finest_pixels(labels).shape)
    parts = [pixels] if layer.rgb else split_image(pixels, shape)
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


def appearance_events(linked: ObjectLayers) -> list[Any]:
    """Return the events that tell of another display of the images of layers."""
    laid = [getattr(linked.labels.events, name) for name in TRANSFORM_FIELDS]
    return laid + [
        getattr(x.events, look) for x in linked.images for look in APPEARANCE_FIELDS
    ]
