"""Which picture each row of a dataset has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from napari.layers import Image
from qtpy.QtCore import QObject, QTimer

from napari_embedding_game.data.crops import Channel
from napari_embedding_game.data.crops import Thumbnails as Crops
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.ui.linked import Linked, finest
from napari_embedding_game.ui.thumbnails import Pictures

LOOKS = ("contrast_limits", "colormap", "gamma", "opacity", "visible")
REST_MS = 300
"""The looks of an image have rested so long before the pictures follow."""


def pictures_of(dataset: Dataset | None, linked: Linked | None) -> Pictures | None:
    """Return the pictures of a dataset's rows: its own, or cut out of its layers."""
    if dataset is None:
        return None
    if dataset.images is not None:
        return dataset.images
    if dataset.objects is None or linked is None:
        return None
    # Who hides all images, to see the labels alone, still wants to see the objects.
    images = [image for image in linked.images if image.visible] or linked.images
    labels = finest(linked.labels)
    return Crops([channel(image) for image in images], labels, dataset.objects)


def channel(layer: Image) -> Channel:
    """Return an image layer as it looks now."""
    low, high = layer.contrast_limits
    return Channel(
        finest(layer),
        limits=(float(low), float(high)),
        colors=np.asarray(layer.colormap.map(np.linspace(0, 1, 64))),
        gamma=float(layer.gamma),
        opacity=float(layer.opacity),
        rgb=bool(layer.rgb),
    )


class LooksWatch(QObject):
    """Calls back when an image layer looks otherwise, once it has come to rest.

    Parameters
    ----------
    on_change : callable
    """

    def __init__(self, on_change: Callable[[], None]) -> None:
        super().__init__()
        self._images: tuple[Image, ...] = ()
        self._rest = QTimer(self)
        self._rest.setSingleShot(True)
        self._rest.setInterval(REST_MS)
        self._rest.timeout.connect(on_change)

    def watch(self, linked: Linked | None) -> None:
        """Watch the images of these layers, and no others any more."""
        self._rest.stop()
        for event in self._events():
            event.disconnect(self._on_looks)
        self._images = linked.images if linked is not None else ()
        for event in self._events():
            event.connect(self._on_looks)

    def _events(self) -> list[Any]:
        return [getattr(image.events, look) for image in self._images for look in LOOKS]

    def _on_looks(self, event: object = None) -> None:
        self._rest.start()
