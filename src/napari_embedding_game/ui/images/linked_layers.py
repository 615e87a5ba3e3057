"""The napari layers whose objects are the rows of the dataset.

Their colours and the selection are shown by :mod:`object_colors`, their features are
written by :mod:`object_features`.
"""

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
"""The attributes that decide where a layer lies; each has an event of that name."""
FILE_KEY = "napari-embedding-game file"
"""Metadata of a layer: its file or folder, where napari knows none."""
MAP_KEY = "napari-embedding-game map"
"""Metadata of a layer that belongs to a map, and is no source of data."""
FIELDS_KEY = "napari-embedding-game fields"
"""Metadata of a layer of an experiment: names of the images along its first axis."""


_labels_of: WeakKeyDictionary[Layer, ref[Labels]] = WeakKeyDictionary()
"""The Labels layers that were made from images, by those images."""


@dataclass(frozen=True)
class ObjectLayers:
    """The Labels layer of the objects, and the Image layers they were measured in."""

    labels: Labels
    images: tuple[Image, ...] = ()


class LayerRecord(msgspec.Struct, frozen=True):
    """The name and the file of a layer, as a session file has them."""

    name: str = ""
    path: str = ""


class ObjectLayersRecord(msgspec.Struct, frozen=True):
    """The records of the layers of the objects, as a session file has them."""

    labels: LayerRecord = LayerRecord()
    images: tuple[LayerRecord, ...] = ()


class LinkedLayers:
    """Holds the layers whose objects are the rows of a session's dataset.

    ``changed`` is emitted with the present :class:`ObjectLayers`, or None, and
    ``rows_changed`` after other rows were found for the points of layers.
    """

    changed = Signal(object)
    rows_changed = Signal()

    def __init__(self) -> None:
        self.current: ObjectLayers | None = None
        self.missing: ObjectLayersRecord | None = None
        """The record of the map's layers, as long as a layer of it is missing."""
        self.rows_by_layer: dict[Layer, NDArray[np.intp]] = {}
        """(V,) the row whose object each point of a Points layer, or each vertex of a
        Tracks layer, lies in; -1 for none.  Only layers that belong to the labels."""

    @property
    def record(self) -> ObjectLayersRecord | None:
        """The record of the layers for a session file; None without layers.

        It is the record in :attr:`missing`, if any, else that of the present layers.
        """
        if self.missing is not None or self.current is None:
            return self.missing
        images = tuple(map(make_layer_record, self.current.images))
        return ObjectLayersRecord(make_layer_record(self.current.labels), images)

    def set_layers(
        self, linked: ObjectLayers | None, missing: ObjectLayersRecord | None = None
    ) -> None:
        """Replace the layers and the record of missing ones; emit changes of layers."""
        self.missing = missing
        if linked != self.current:
            self.current = linked
            self.changed.emit(linked)


def make_layer_record(layer: Layer) -> LayerRecord:
    """Return a record of a layer's name and file."""
    path = layer.metadata.get(FILE_KEY) or layer.source.path
    return LayerRecord(layer.name, path if isinstance(path, str) else "")


def finest_pixels(layer: Layer) -> Any:
    """Return the pixels of a layer; of a multiscale layer those of its finest level.

    Pixels in a file are no numpy array, but for instance a dask array.
    """
    return layer.data[0] if layer.multiscale else layer.data


def list_selectable_labels_layers(viewer: napari.Viewer) -> list[Labels]:
    """Return the Labels layers that a person may choose, the uppermost last."""
    return [x for x in _list_selectable_layers(viewer) if isinstance(x, Labels)]


def find_joined_labels_layer(viewer: napari.Viewer, join: Join) -> Labels | None:
    """Return the Labels layer that a table was joined with; None if it is gone.

    The layer is found by its array of pixels, which must be the same object.
    """
    pixels = join.request.pixels
    return next(
        (
            x
            for x in list_selectable_labels_layers(viewer)
            if finest_pixels(x) is pixels
        ),
        None,
    )


def selectable_image_layers(viewer: napari.Viewer) -> list[Image]:
    """Return the Image layers that a person may choose, the uppermost last."""
    return [x for x in _list_selectable_layers(viewer) if isinstance(x, Image)]


def _list_selectable_layers(viewer: napari.Viewer) -> list[Layer]:
    """Return the layers that may be chosen as objects, or to measure objects in.

    Layers of an experiment, whose labels belong to many images, are left out, and so is
    an image that a Labels layer was made from.
    """
    layers = [x for x in viewer.layers if FIELDS_KEY not in x.metadata]
    return [x for x in layers if _labels_of.get(x, lambda: None)() not in layers]


def add_labels_of_mask(
    viewer: napari.Viewer, mask: Image, first_axis: object
) -> Labels:
    """Add a Labels layer made from a mask, an image of integers, and return it.

    The labels have the mask's transforms, units and file.  The mask is hidden, and
    cannot be chosen while the labels are in the viewer.

    ``first_axis`` says what the first of three axes is: unless it is "z", objects of a
    binary mask are found in each plane by itself.
    """
    mask.visible = False
    options = {name: getattr(mask, name) for name in ("units", *TRANSFORM_FIELDS)}
    metadata = {**mask.metadata, FILE_KEY: make_layer_record(mask).path}
    labels = mask_to_labels(finest_pixels(mask), in_planes=first_axis != "z")
    name = f"{mask.name} (labels)"
    layer = viewer.add_labels(labels, name=name, metadata=metadata, **options)
    _labels_of[mask] = ref(layer)
    return layer


def add_source_layers(viewer: napari.Viewer, read_result: ReadResult) -> ObjectLayers:
    """Add the image and the labels of a read source as layers, and return them."""
    image = viewer.add_image(read_result.image, name=PICTURE_NAME)
    labels = viewer.add_labels(
        read_result.labels, name=OBJECTS_NAME, opacity=OBJECTS_OPACITY
    )
    return ObjectLayers(labels, (image,))


def displayed_axes_and_position(
    dims: Any, layer: Layer
) -> tuple[list[int], NDArray[np.float64]]:
    """Return the displayed axes of a layer, and the sliders' position in its pixels.

    There are two axes, or three in space; the position is (ndim,).
    """
    axes = displayed_axes(dims, layer.ndim, min(layer.ndim, dims.ndisplay))
    return axes, np.asarray(layer.world_to_data(dims.point), dtype=float)


def are_in_slice(
    objects: Objects, axes: list[int], position: NDArray[np.floating]
) -> NDArray[np.bool_]:
    """Return which objects (n,) the slice at the sliders' ``position`` (ndim,) meets.

    ``axes`` are the displayed axes; along the others the box of the object must contain
    the position, in pixels.  False for a row without an object.
    """
    hidden = np.setdiff1d(range(len(position)), axes)
    is_within = objects.contains_along_axes(position)[:, hidden].all(axis=1)
    return objects.present & is_within


def find_view_center(labels: Labels, objects: Objects) -> NDArray[np.float64]:
    """Return the pixel (ndim,) of labels on which a camera shows objects in the middle.

    It is the mean of all objects of flat labels, else the first object.  Rows without
    an object are ignored.
    """
    centers = objects.centers[objects.present]
    center = centers.mean(axis=0) if labels.ndim == 2 else centers[0]
    return np.asarray(center)


def center_on_objects(
    viewer: napari.Viewer,
    labels: Labels,
    objects: Objects,
    *,
    moves_camera: bool = True,
) -> None:
    """Show the slice of the first object, and centre the camera on objects.

    The camera is centred on :func:`find_view_center`.  Without ``moves_camera`` only
    the sliders are moved.  Where no object is present nothing is done.
    """
    if not objects.present.any():
        return
    dims = viewer.dims
    middle = np.asarray(labels.data_to_world(find_view_center(labels, objects)))
    displayed, _ = displayed_axes_and_position(dims, labels)
    for axis in set(range(labels.ndim)).difference(displayed):
        dims.set_point(dims.ndim - labels.ndim + axis, middle[axis])
    if moves_camera:
        viewer.scene.camera.center = (0.0, 0.0, *middle[displayed])[-3:]
