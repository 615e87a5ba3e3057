"""Which picture each row of a dataset has."""

from __future__ import annotations

from typing import Any

import numpy as np
from napari.layers import Image
from numpy.typing import NDArray

from napari_embedding_game.data.crops import Channel
from napari_embedding_game.data.crops import Thumbnails as Crops
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.ui.linked import Linked
from napari_embedding_game.ui.thumbnails import Pictures


def pictures_of(dataset: Dataset | None, linked: Linked | None) -> Pictures | None:
    """Return the pictures of a dataset's rows: its own, or cut out of its layers."""
    if dataset is None:
        return None
    if dataset.images is not None:
        return dataset.images
    if dataset.objects is None or linked is None:
        return None
    labels = _finest(linked.labels)
    channels = [channel(image, labels.ndim) for image in linked.images]
    return Crops(channels, labels, dataset.objects)


def channel(layer: Image, ndim: int) -> Channel:
    """Return an image layer as it looks now."""
    low, high = layer.contrast_limits
    return Channel(
        _finest(layer),
        limits=(float(low), float(high)),
        colors=np.asarray(layer.colormap.map(np.linspace(0, 1, 64))),
        gamma=float(layer.gamma),
        opacity=float(layer.opacity) if layer.visible else 1.0,
        rgb=bool(layer.rgb),
    )


def _finest(layer: Any) -> NDArray[Any]:
    return layer.data[0] if layer.multiscale else layer.data
