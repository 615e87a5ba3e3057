"""Measure the objects of a label image: one table row for each object.

Supported: labels in 2-D or 3-D (z, y, x), or a time series or a stack of images with
2-D labels, which is measured picture by picture; each with any number of channels.  A
time series of 3-D labels is not supported and told so.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.formats.tables import from_frame
from napari_embedding_game.data.label_objects import (
    Objects,
    channel_axis,
    check_labels,
    find_objects,
    find_objects_in_time,
)
from napari_embedding_game.data.limits.memory import check_fits
from napari_embedding_game.data.read_options import AS_USUAL, ReadOptions
from napari_embedding_game.data.stages import Stage, Stages, finish

Channels = Mapping[str, NDArray[Any]]
FirstAxis = Literal["z", "time", "image"]

_BATCH = 50  # objects measured between two stages
_LEVELS = 32
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
    options: ReadOptions = AS_USUAL,
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
    options : ReadOptions
        Its columns, and what becomes of missing values and of repeated columns.

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
    pixels = check_labels(_array(labels, name))
    spacing = _spacing(scale, pixels.ndim, name)
    if pixels.ndim < 2 or (first_axis != "image" and pixels.ndim > 3):
        raise DataError(
            f"'{name}' has {pixels.ndim} axes, and objects are measured in pictures "
            "(2), stacks (3) or time series of pictures (3): measure one time point of "
            "it, or say that its first axes are images."
        )
    channels = split_channels(image, pixels.shape, channel_names)
    yield Stage("Finding the objects")
    kind = first_axis if pixels.ndim > 2 else "z"
    objects = find_objects(pixels) if kind == "z" else find_objects_in_time(pixels)
    spans = {key: value_span(channel) for key, channel in channels.items()}
    table = yield from measured_table(objects, pixels, channels, spacing, spans, kind)
    yield Stage("Checking the numbers")
    how = {
        "channels": list(channels),
        "scale": list(spacing),
        "first_axis": first_axis,
    }
    return measured_dataset(table, objects, name, how, options=options)


def measured_dataset(
    table: pd.DataFrame,
    objects: Objects,
    name: str,
    how: Mapping[str, Any],
    metadata: pd.DataFrame | None = None,
    *,
    options: ReadOptions,
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
    options : ReadOptions

    Raises
    ------
    DataError
        If there are fewer than two objects, or values are missing.
    """
    chosen = tuple(column for column in table if column not in _PLACES)
    options = replace(options, columns=options.columns or chosen)
    dataset = from_frame(table, f"The table of '{name}'", name, options)
    places = table.drop(columns=list(chosen))
    if metadata is not None:
        places = pd.concat([metadata.set_axis(places.index), places], axis="columns")
    places = places.set_axis(dataset.source_obs_names)
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
        channels = _named(_array(image, "The image"), shape, names)
    for key, channel in channels.items():
        if channel.shape != shape:
            raise DataError(_unequal(f"The channel {key}", channel.shape, shape))
        if channel.dtype.kind not in "buif":
            raise DataError(
                f"The channel {key} holds {channel.dtype} values where numbers belong."
            )
    return channels


def _named(
    image: NDArray[Any], shape: tuple[int, ...], names: Sequence[str] | None
) -> dict[str, NDArray[Any]]:
    axis = channel_axis(image.shape, shape)
    if axis is None and image.shape != shape:
        raise DataError(_unequal("The image", image.shape, shape))
    arrays = [image] if axis is None else list(np.moveaxis(image, axis, 0))
    if names is None:
        names = [f"channel {i + 1}" for i in range(len(arrays))]
        if axis == -1 and len(arrays) in (3, 4):
            names, arrays = ["red", "green", "blue"], arrays[:3]
            if all(np.array_equal(arrays[0], other) for other in arrays[1:]):
                arrays = arrays[:1]  # a grey picture that was saved in colour
        names = ["intensity"] if len(arrays) == 1 else names
    if len(names) != len(arrays) or len(set(names)) != len(names):
        raise DataError(
            f"The image has {len(arrays)} channels and {len(set(names))} different "
            "names for them: give each one a name."
        )
    return dict(zip(map(str, names), arrays, strict=True))


def _unequal(what: str, image_shape: tuple[int, ...], shape: tuple[int, ...]) -> str:
    theirs, ours = (" x ".join(map(str, sizes)) for sizes in (image_shape, shape))
    return (
        f"{what} has {theirs} pixels and the labels have {ours}: choose an image and "
        "labels that belong together."
    )


def _array(values: Any, what: str) -> NDArray[Any]:
    """`values` in memory, be they numpy, dask or zarr, if they fit."""
    size = math.prod(map(int, values.shape))
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
    rows: list[dict[str, Any]] = []
    for i, label in enumerate(objects.label_ids.tolist()):
        if i % _BATCH == 0:
            yield Stage(f"Measuring {len(objects):,} objects", i / len(objects))
        box = objects.slices(i)
        mask = (labels[box] == label)[(0,) * n_leading]
        place = [part.start for part in box]
        row: dict[str, Any] = {"label": label}
        if first_axis == "time":
            row["time"] = float(place[0])
        elif n_leading:
            row["image"] = ", ".join(map(str, place[:n_leading]))
        places = np.argwhere(mask)
        centre = places.mean(axis=0) + place[n_leading:]
        row.update(zip(_CENTRES[-len(centre) :], centre.tolist(), strict=True))
        row.update(_form_of(mask, places, spacing[n_leading:]))
        for key, channel in channels.items():
            values = channel[box][(0,) * n_leading].astype(np.float64)
            found = _intensity_of(values, mask, spans[key])
            row.update({f"{key}_{name}": one for name, one in found.items()})
        rows.append(row)
    table = pd.DataFrame(rows)
    names = table["label"].astype(str)
    if first_axis == "time":
        names = "time " + table["time"].astype(int).astype(str) + " label " + names
    elif n_leading:
        names = "image " + table["image"] + " label " + names
    return table.set_axis(pd.Index(names.tolist()))


def value_span(channel: NDArray[Any]) -> tuple[float, float]:
    """Lowest and highest finite value of a channel."""
    finite = channel[np.isfinite(channel)] if channel.dtype.kind == "f" else channel
    return (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)


def _form_of(
    mask: NDArray[np.bool_], places: NDArray[np.intp], spacing: Sequence[float]
) -> dict[str, float]:
    """Measures of form by name; of an object too small for one, that of a disc."""
    from skimage.measure import perimeter
    from skimage.morphology import convex_hull_image

    n, n_axes = len(places), len(spacing)
    size = n * math.prod(spacing)
    # Axes of the ellipse, or ellipsoid, of the same moments.
    along = (places - places.mean(axis=0)) * spacing
    moments = np.maximum(np.linalg.eigvalsh(along.T @ along / n), 0)
    factor = 4 if n_axes == 2 else 2 * math.sqrt(5)
    minor, major = (factor * math.sqrt(moments[at]) for at in (0, -1))
    shortness = minor / major if major > 0 else 1.0
    measures = {
        "area" if n_axes == 2 else "volume": size,
        "equivalent_diameter": (2 * n_axes * size / math.pi) ** (1 / n_axes),
        "major_axis_length": major,
        "minor_axis_length": minor,
        "extent": n / mask.size,
    }
    if n_axes == 3:
        return {**measures, "elongation": 1 - shortness}
    measures["eccentricity"] = math.sqrt(1 - shortness**2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a line of pixels has no hull
        hull = int(np.count_nonzero(convex_hull_image(mask)))
    measures["solidity"] = min(1.0, n / hull) if hull else 1.0
    if len(set(spacing)) == 1:
        around = spacing[0] * perimeter(mask)
        roundness = 4 * math.pi * size / around**2 if around > 0 else 1.0
        measures |= {"perimeter": around, "roundness": min(1.0, roundness)}
    return measures


def _intensity_of(
    values: NDArray[np.float64], mask: NDArray[np.bool_], span: tuple[float, float]
) -> dict[str, float]:
    """Brightness and texture of one object in one channel, by name.

    Entropy is in bits of 32 grey levels of the span; contrast is the mean difference
    between neighbouring pixels of the object as a share of the span (dissimilarity of
    the grey-level co-occurrence at distance 1).  All are NaN if a pixel is not finite.
    """
    own = values[mask]
    names = ("mean", "std", "min", "max", "entropy", "contrast")
    if not np.isfinite(own).all():
        return dict.fromkeys(names, np.nan)
    low, high = span
    width = high - low
    scaled = (own - low) * (_LEVELS / width if width > 0 else 0.0)
    levels = np.clip(scaled, 0, _LEVELS - 1).astype(np.int64)
    shares = np.bincount(levels) / len(own)
    shares = shares[shares > 0]
    total, n_pairs = 0.0, 0
    for axis in range(mask.ndim):
        along, inside = np.moveaxis(values, axis, 0), np.moveaxis(mask, axis, 0)
        pairs = inside[1:] & inside[:-1]
        total += float(np.abs(along[1:][pairs] - along[:-1][pairs]).sum())
        n_pairs += int(np.count_nonzero(pairs))
    found = (
        own.mean(),
        own.std(),
        own.min(),
        own.max(),
        -(shares * np.log2(shares)).sum() + 0.0,
        total / (n_pairs * width) if n_pairs and width > 0 else 0.0,
    )
    return dict(zip(names, map(float, found), strict=True))
