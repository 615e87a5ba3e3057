"""Measure the objects of a label image: one table row for each object.

Supported: labels in 2-D or 3-D (z, y, x), or a time series or a stack of images with
2-D labels, which is measured picture by picture; each with any number of channels.  A
time series of 3-D labels is not supported and told so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.formats.tables import from_frame
from napari_embedding_game.data.images.object_measures import (
    ObjectPixels,
    form_of,
    intensity_of,
)
from napari_embedding_game.data.label_objects import (
    Objects,
    channel_axis,
    check_labels,
    find_objects,
    find_objects_in_time,
)
from napari_embedding_game.data.limits.memory import check_fits
from napari_embedding_game.data.read_options import Duplicates, Missing
from napari_embedding_game.data.stages import Stage, Stages, finish

Channels = Mapping[str, NDArray[Any]]
FirstAxis = Literal["z", "time", "image"]

_BATCH = 50  # objects measured between two stages
_CENTRES = ("centroid_z", "centroid_y", "centroid_x")
_PLACES = ("label", "time", "image", *_CENTRES)


def measure(image: Any, labels: Any, **options: Any) -> Dataset:
    """Measure every object at once; see :func:`measure_stages`."""
    return finish(measure_stages(image, labels, **options))


def measure_stages(
    image: Any,
    labels: Any,
    *,
    name: str = "labels",
    channel_names: Sequence[str] | None = None,
    scale: Sequence[float] | None = None,
    first_axis: FirstAxis = "z",
    columns: Sequence[str] | None = None,
    missing: Missing = "error",
    duplicates: Duplicates = "keep",
) -> Stages[Dataset]:
    """Measure every object of a label image, in stages.

    Parameters
    ----------
    image : array, mapping of str to array, or None
        Of the shape of `labels`, with one more axis for channels first or last, or
        one array for each channel by name.  None: only form is measured.
    labels : array of integers
        (y, x), (z, y, x), (time, y, x) or (image, y, x), the last with any number of
        axes before (y, x); 0 is background.
    name : str
        What the person calls the labels.
    channel_names : sequence of str, optional
        Names of the channels of an array.
    scale : sequence of float, optional
        Size of a pixel along each axis of `labels`; 1 by default.
    first_axis : {"z", "time", "image"}
        What the first of three axes is; "image": each picture is an image of its own.
    columns, missing, duplicates
        As for :func:`~.readers.read`.

    Returns
    -------
    Dataset
        Each measure with mean 0 and standard deviation 1 in ``X``, as measured in
        ``profile``; label and centre (in pixels) of each object in ``obs``; label
        and bounding box in ``objects``.

    Raises
    ------
    DataError
        If shapes do not fit or there are fewer than two objects.
    """
    yield Stage("Looking at the image")
    pixels = _array(labels, name)
    pixels = check_labels(pixels)
    spacing = _spacing(scale, pixels.ndim, name)
    check_axes(pixels, first_axis, name)
    channels = split_channels(image, pixels.shape, channel_names)
    yield Stage("Finding the objects")
    kind = first_axis if pixels.ndim > 2 else "z"
    objects = find_objects(pixels) if kind == "z" else find_objects_in_time(pixels)
    spans = {key: value_span(channel) for key, channel in channels.items()}
    table = yield from measured_table(objects, pixels, channels, spacing, spans, kind)
    yield Stage("Checking the numbers")
    return measured_dataset(
        table,
        objects,
        name,
        {
            "channels": list(channels),
            "scale": list(spacing),
            "first_axis": first_axis,
        },
        columns=columns,
        missing=missing,
        duplicates=duplicates,
    )


def measured_dataset(
    table: pd.DataFrame,
    objects: Objects,
    name: str,
    how: Mapping[str, Any],
    metadata: pd.DataFrame | None = None,
    *,
    columns: Sequence[str] | None = None,
    missing: Missing = "error",
    duplicates: Duplicates = "keep",
) -> Dataset:
    """Return the dataset of objects that were measured.

    Parameters
    ----------
    table : DataFrame, (N rows)
        As of :func:`measured_table`; the index names the objects.
    objects : Objects
        (N,)
    name : str
        What the person calls the labels.
    how : mapping
        How they were measured, for ``provenance``.
    metadata : DataFrame, (N rows), optional
        What else is known of each object.
    columns, missing, duplicates
        As for :func:`~.readers.read`.

    Raises
    ------
    DataError
        If there are fewer than two objects, or values are missing.
    """
    measures = [column for column in table if column not in _PLACES]
    dataset = from_frame(
        table,
        f"The table of '{name}'",
        name,
        chosen=measures if columns is None else columns,
        missing=missing,
        duplicates=duplicates,
    )
    places = table[[column for column in table if column in _PLACES]]
    if metadata is not None:
        of_image = metadata.set_axis(places.index, axis="index")
        places = pd.concat([of_image, places], axis=1)
    places = places.set_axis(dataset.source_obs_names, axis="index")
    return replace(
        dataset,
        space=f"measures of {name}",
        obs=places[dataset.kept],
        source_obs=places,
        source_objects=objects,
        notes=(*objects.notes, *dataset.notes),
        provenance={"measured": dict(how)},
    )


def split_channels(
    image: Any, shape: tuple[int, ...], names: Sequence[str] | None = None
) -> dict[str, NDArray[Any]]:
    """Channels by name, each of the shape of the labels.

    `image` is as for :func:`measure_stages`.  Three or four channels on the last
    axis are called red, green, blue (and alpha, which is left out); if they are all
    the same, they are one.
    """
    if image is None:
        return {}
    if isinstance(image, Mapping):
        channels = {str(key): _array(value, str(key)) for key, value in image.items()}
    else:
        array = _array(image, "The image")
        channels = _named(_channel_arrays(array, shape), names, array.shape, shape)
    for key, channel in channels.items():
        if channel.shape != shape:
            raise DataError(_unequal(f"The channel {key}", channel.shape, shape))
        if channel.dtype.kind not in "buif":
            raise DataError(
                f"The channel {key} holds {channel.dtype} values where numbers belong."
            )
    return channels


def _channel_arrays(image: NDArray[Any], shape: tuple[int, ...]) -> list[NDArray[Any]]:
    if image.shape == shape:
        return [image]
    axis = channel_axis(image.shape, shape)
    if axis is not None:
        return list(np.moveaxis(image, axis, 0))
    raise DataError(_unequal("The image", image.shape, shape))


def _named(
    arrays: list[NDArray[Any]],
    names: Sequence[str] | None,
    image_shape: tuple[int, ...],
    shape: tuple[int, ...],
) -> dict[str, NDArray[Any]]:
    if names is None:
        rgb = image_shape[:-1] == shape and len(arrays) in (3, 4)
        numbered = [f"channel {i + 1}" for i in range(len(arrays))]
        names = ["red", "green", "blue"] if rgb else numbered
        arrays = arrays[:3] if rgb else arrays
        if rgb and all(np.array_equal(arrays[0], other) for other in arrays[1:]):
            arrays = arrays[:1]  # a grey picture that was saved in colour
        names = ["intensity"] if len(arrays) == 1 else names
    if len(names) != len(arrays) or len(set(names)) != len(names):
        raise DataError(
            f"The image has {len(arrays)} channels and {len(set(names))} different "
            "names for them: give each one a name."
        )
    return dict(zip(map(str, names), arrays, strict=True))


def _unequal(what: str, image_shape: tuple[int, ...], shape: tuple[int, ...]) -> str:
    return (
        f"{what} has {_times(image_shape)} pixels and the labels have {_times(shape)}: "
        "choose an image and labels that belong together."
    )


def _times(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape))


def _array(values: Any, what: str) -> NDArray[Any]:
    """`values` in memory, be they numpy, dask or zarr, if they fit."""
    size = int(np.prod([int(n) for n in values.shape], dtype=object))
    check_fits(2 * size * values.dtype.itemsize, what, "its pixels")
    return np.asarray(values)


def _spacing(scale: Sequence[float] | None, ndim: int, name: str) -> tuple[float, ...]:
    spacing = (1.0,) * ndim if scale is None else tuple(map(float, scale))[-ndim:]
    if len(spacing) != ndim or not all(0 < step < np.inf for step in spacing):
        raise DataError(
            f"The pixel size of '{name}' is {spacing}, and one number above 0 is "
            f"needed for each of its {ndim} axes."
        )
    return spacing


def check_axes(labels: NDArray[Any], first_axis: str, name: str) -> None:
    """Raise DataError unless labels of this many axes can be measured."""
    if labels.ndim in (2, 3) and first_axis in ("z", "time"):
        return
    if labels.ndim >= 2 and first_axis == "image":
        return
    raise DataError(
        f"'{name}' has {labels.ndim} axes, and objects are measured in pictures (2), "
        "stacks (3) or time series of pictures (3): measure one time point of it, or "
        "say that its first axes are images."
    )


def measured_table(
    objects: Objects,
    labels: NDArray[Any],
    channels: Channels,
    spacing: tuple[float, ...],
    spans: Mapping[str, tuple[float, float]],
    first_axis: FirstAxis = "z",
) -> Stages[pd.DataFrame]:
    """Measure objects, in stages: one row for each, named by its label.

    Parameters
    ----------
    objects : Objects
        (N,)
    labels : array
    channels : mapping of str to array
        Of the shape of the labels.
    spacing : tuple of float
        Size of a pixel along each axis.
    spans : mapping of str to pair of float
        Lowest and highest value of each channel, which texture is a share of.
    first_axis : {"z", "time", "image"}
        Not "z": all axes before the last two tell pictures apart.
    """
    n_leading = 0 if first_axis == "z" else labels.ndim - 2
    parts = []
    for begin in range(0, len(objects), _BATCH):
        share = begin / len(objects)
        yield Stage(f"Measuring {len(objects):,} objects", share)
        some = objects.take(np.arange(begin, min(begin + _BATCH, len(objects))))
        pixels = ObjectPixels(some, labels, n_leading)
        columns: dict[str, Any] = {"label": some.label_ids}
        picture = some.boxes[:, :n_leading]
        if first_axis == "time":
            columns["time"] = picture[:, 0].astype(float)
        elif n_leading:
            columns["image"] = [", ".join(map(str, at)) for at in picture.tolist()]
        centres = pixels.centres()[:, n_leading:].T
        columns.update(zip(_CENTRES[-len(centres) :], centres, strict=True))
        columns.update(form_of(pixels, spacing[n_leading:]))
        for key, channel in channels.items():
            found = intensity_of(pixels, channel, spans[key])
            columns.update({f"{key}_{name}": one for name, one in found.items()})
        parts.append(pd.DataFrame(columns))
    table = pd.concat(parts)
    names = table["label"].astype(str)
    if first_axis == "time":
        names = "time " + table["time"].astype(int).astype(str) + " label " + names
    elif first_axis == "image":
        names = "image " + table["image"] + " label " + names
    return table.set_axis(pd.Index(names.tolist()), axis="index")


def value_span(channel: NDArray[Any]) -> tuple[float, float]:
    """Lowest and highest finite value of a channel."""
    finite = channel[np.isfinite(channel)] if channel.dtype.kind == "f" else channel
    return (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
