"""The napari layers whose objects are the rows of the map."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary, ref

import msgspec
import napari
import numpy as np
from napari.layers import Image, Labels, Layer
from numpy.typing import NDArray
from psygnal import Signal

from napari_embedding_game.data.images.join import Join
from napari_embedding_game.data.label_objects import Objects, mask_to_labels
from napari_embedding_game.data.read_result import ReadResult
from napari_embedding_game.ui.canvas.projection import displayed_axes

PICTURE_NAME, OBJECTS_NAME = "nuclei (image)", "nuclei (labels)"
OBJECTS_OPACITY = 0.5
TRANSFORM_FIELDS = ("scale", "translate", "rotate", "shear", "affine")
"""What decides where a layer lies."""
FILE_KEY = "napari-embedding-game file"
"""Metadata of a layer: the file or folder it is of, where napari knows none."""
MAP_KEY = "napari-embedding-game map"
"""Metadata of a layer: it is of a map, no source of one."""
FIELDS_KEY = "napari-embedding-game fields"
"""Metadata of a layer of an experiment: names of the images along its first axis."""


_labels_of: WeakKeyDictionary[Layer, ref[Labels]] = WeakKeyDictionary()
"""The Labels layers that were made of images."""


@dataclass(frozen=True)
class ObjectLayers:
    """The label image of the objects, and the images they were measured in."""

    labels: Labels
    images: tuple[Image, ...] = ()


class LayerRecord(msgspec.Struct, frozen=True):
    """What a session file knows of a layer."""

    name: str = ""
    path: str = ""


class ObjectLayersRecord(msgspec.Struct, frozen=True):
    """What it knows of the layers that show the objects of a map."""

    labels: LayerRecord = LayerRecord()
    images: tuple[LayerRecord, ...] = ()


class LinkedLayers:
    """Which layers belong to the dataset of a session; None where none does.

    ``changed`` brings the present :class:`Linked`.
    """

    changed = Signal(object)

    def __init__(self) -> None:
        self.current: ObjectLayers | None = None
        self.missing: ObjectLayersRecord | None = None
        """The layers that a map is about, as long as one of them is not there."""

    @property
    def record(self) -> ObjectLayersRecord | None:
        """The layers, for a session file; None without any."""
        if self.missing is not None or self.current is None:
            return self.missing
        images = tuple(map(make_layer_record, self.current.images))
        return ObjectLayersRecord(make_layer_record(self.current.labels), images)

    def set_layers(
        self, linked: ObjectLayers | None, missing: ObjectLayersRecord | None = None
    ) -> None:
        """Take up layers, or none."""
        self.missing = missing
        if linked != self.current:
            self.current = linked
            self.changed.emit(linked)


def make_layer_record(layer: Layer) -> LayerRecord:
    """Return name and file of a layer."""
    path = layer.metadata.get(FILE_KEY) or layer.source.path
    return LayerRecord(layer.name, path if isinstance(path, str) else "")


def finest_pixels(layer: Layer) -> Any:
    """Return the pixels of a layer; of a multiscale one, its finest level."""
    return layer.data[0] if layer.multiscale else layer.data


def selectable_labels_layers(viewer: napari.Viewer) -> list[Labels]:
    """Return the Labels layers whose objects a person may choose, uppermost last."""
    return [x for x in _selectable_layers(viewer) if isinstance(x, Labels)]


def joined_labels_layer(viewer: napari.Viewer, join: Join) -> Labels | None:
    """Return the Labels layer that was joined with; None if it is gone."""
    pixels = join.request.pixels
    return next(
        (x for x in selectable_labels_layers(viewer) if finest_pixels(x) is pixels),
        None,
    )


def selectable_image_layers(viewer: napari.Viewer) -> list[Image]:
    """Return the images in which objects may be measured."""
    return [x for x in _selectable_layers(viewer) if isinstance(x, Image)]


def _selectable_layers(viewer: napari.Viewer) -> list[Layer]:
    """Return the layers that a person may choose for objects, or to measure them in.

    None of an experiment, whose labels are of many images, nor an image that labels
    were made of.
    """
    layers = [x for x in viewer.layers if FIELDS_KEY not in x.metadata]
    return [x for x in layers if _labels_of.get(x, lambda: None)() not in layers]


def add_labels_of_mask(
    viewer: napari.Viewer, mask: Image, first_axis: object
) -> Labels:
    """Add the Labels layer of an image of whole numbers, and return it.

    The image is the person's: it stays, hidden, and is on offer no more while the
    labels are there.

    ``first_axis``: what the first of three axes is; a mask has objects of its own in
    each picture, where it is not "z".
    """
    mask.visible = False
    options = {name: getattr(mask, name) for name in ("units", *TRANSFORM_FIELDS)}
    metadata = {**mask.metadata, FILE_KEY: make_layer_record(mask).path}
    labels = mask_to_labels(finest_pixels(mask), in_planes=first_axis != "z")
    name = f"{mask.name} (labels)"
    layer = viewer.add_labels(labels, name=name, metadata=metadata, **options)
    _labels_of[mask] = ref(layer)
    return layer


def add_source_layers(viewer: napari.Viewer, loaded: ReadResult) -> ObjectLayers:
    """Add the source's own picture and objects as layers."""
    image = viewer.add_image(loaded.image, name=PICTURE_NAME)
    labels = viewer.add_labels(
        loaded.labels, name=OBJECTS_NAME, opacity=OBJECTS_OPACITY
    )
    return ObjectLayers(labels, (image,))


def displayed_axes_and_position(
    dims: Any, layer: Layer
) -> tuple[list[int], NDArray[np.float64]]:
    """Return the axes of a layer that are displayed, and the pixel the sliders are at.

    Two axes, or three in space.
    """
    axes = displayed_axes(dims, layer.ndim, min(layer.ndim, dims.ndisplay))
    return axes, np.asarray(layer.world_to_data(dims.point), dtype=float)


def are_in_slice(
    objects: Objects, axes: list[int], at: NDArray[np.floating]
) -> NDArray[np.bool_]:
    """Return the objects that are seen where the sliders are: (n,)."""
    hidden = np.setdiff1d(range(len(at)), axes)
    return objects.present & objects.contains_along_axes(at)[:, hidden].all(axis=1)


def center_on_objects(
    viewer: napari.Viewer,
    labels: Labels,
    objects: Objects,
    *,
    moves_camera: bool = True,
) -> None:
    """Centre the camera on objects of a layer, in the slice of the first of them.

    Without ``moves_camera`` the slice alone is shown.
    """
    objects = objects.take(objects.present)
    if not len(objects):
        return
    centers, dims = objects.centers, viewer.dims
    center = centers.mean(axis=0) if labels.ndim == 2 else centers[0]
    middle = np.asarray(labels.data_to_world(center))
    displayed, _ = displayed_axes_and_position(dims, labels)
    for axis in set(range(labels.ndim)).difference(displayed):
        dims.set_point(dims.ndim - labels.ndim + axis, middle[axis])
    if moves_camera:
        viewer.scene.camera.center = (0.0, 0.0, *middle[displayed])[-3:]
