"""Measure the objects of many images: a folder of images with their labels.

Each image is read twice, first to find out which images fit together and how bright
they are, then to measure its objects; labels are kept compressed in memory, where they
can be edited.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_embedding_game.data.columns import count_text, list_text
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.errors import DataError, wrap_read_errors
from napari_embedding_game.data.images.channels import (
    COLORS,
    Span,
    find_value_span,
    split_channels_by_name,
)
from napari_embedding_game.data.images.folder import (
    ImagePair,
    find_image_pairs,
    find_tables,
)
from napari_embedding_game.data.images.image_table import (
    PLATE_COLUMNS,
    build_image_table,
)
from napari_embedding_game.data.images.measure import (
    make_dataset_from_measures,
    measure_picture,
)
from napari_embedding_game.data.images.ome_zarr import (
    find_plate_pairs,
    is_plate,
    read_channel_names,
    read_finest_pixels,
)
from napari_embedding_game.data.label_objects import (
    NO_OBJECT,
    Objects,
    concatenate_objects,
    mask_to_labels,
    to_integer_labels,
)
from napari_embedding_game.data.read_options import DEFAULT_OPTIONS, ReadOptions
from napari_embedding_game.data.read_result import ReadResult
from napari_embedding_game.data.stages import Stage, Stages

_DISPLAY_PERCENTILES = (0.5, 99.8)
"""Percentiles of the pixels that are shown black and in full colour."""
_MAX_SAMPLE = 1 << 16
"""Number of pixels of an image from which the percentiles are computed."""
_MAX_REASONS = 6
_ORDER = dict.fromkeys(PLATE_COLUMNS, 3) | {"well": 1, "image": 2}
"""Metadata columns that come last, after the columns on treatments."""
STACKS = "Each is measured as a stack (z, y, x)."
MASKS = (
    "The labels have one value alone: their parts that do not touch are the objects."
)


def measure_folder_in_stages(path: Path, options: ReadOptions) -> Stages[ReadResult]:
    """Measure the objects of a folder of images, in stages.

    Raises DataError as :func:`open_images` and :func:`measure_images` do, or if another
    space is requested.
    """
    spaces = [f"measures of {path.name}"]
    options.choose_space(spaces, path.name)
    images = yield from open_images(path)
    dataset = yield from measure_images(images, options)
    return ReadResult(dataset, spaces, dataset.profile_names)


@dataclass(frozen=True, eq=False)
class _Inspection:
    """Facts about one image from its first reading."""

    pair: ImagePair
    shape: tuple[int, ...]
    """(y, x) or (z, y, x)"""
    dtype: Any
    """Common type of the image's channels."""
    ends: Span
    """Lowest and highest label above 0; (0, 0) without any."""
    spans: dict[str, Span]
    """Lowest and highest value of each channel."""
    shown: dict[str, Span]
    """Values of each channel shown black and in full colour."""


@dataclass(frozen=True, eq=False)
class ExperimentImages:
    """The images of an experiment as stacks; index i of the first axis is image i."""

    folder: Path
    names: tuple[str, ...]
    """(n,) names of the images."""
    labels: Any
    """zarr array in memory, (n, z, y, x); the label files stay unchanged."""
    channels: dict[str, Any]
    """A dask array for each channel, by name; coloured pictures have one with red,
    green and blue."""
    limits: dict[str, Span]
    """Values of each channel that are shown black and in full colour."""
    is_rgb: bool
    inspections: Sequence[_Inspection]
    notes: Sequence[str]
    """Sentences on images that were left out, and why."""


def open_images(folder: Path, names: Collection[str] = ()) -> Stages[ExperimentImages]:
    """Inspect the images of a folder and load their labels, in stages; measure none.

    ``names``: images to open; all if it is empty, or has no name of the folder. Images
    that cannot be read, or have other channels or axes than most, are left out, and
    notes say so. Labels of one value in all images are masks, whose connected parts
    become the objects.

    Raises DataError if no image has labels, or none can be read.
    """
    yield Stage(f"Looking for images in {folder.name}")
    (pairs, lost), inspections, notes = (
        find_plate_pairs(folder) if is_plate(folder) else find_image_pairs(folder),
        list[_Inspection](),
        [],
    )
    pairs = [pair for pair in pairs if pair.name in names] or pairs
    for i, pair in enumerate(pairs):
        yield Stage(f"Looking at image {i + 1:,} of {len(pairs):,}", i / len(pairs))
        try:
            inspections.append(_inspect_image(pair))
        except DataError as error:
            notes.append(f"{pair.name} was left out: {error}")
    if not inspections:
        raise DataError(notes[0])
    kinds = [
        (tuple(inspection.spans), len(inspection.shape)) for inspection in inspections
    ]
    usual = Counter(kinds).most_common(1)[0][0]
    both = list(zip(inspections, kinds, strict=True))
    used = [inspection for inspection, kind in both if kind == usual]
    if others := [inspection.pair.name for inspection, kind in both if kind != usual]:
        notes.append(
            "Left out, to be measured apart, as channels or axes are not those of the "
            f"other {len(used):,} ({', '.join(usual[0])}): {list_text(others)}."
        )
    more = len(notes) - _MAX_REASONS
    notes = notes[:_MAX_REASONS]
    notes += [f"So were {more:,} others."] if more > 0 else []
    ends = {end for inspection in used for end in inspection.ends if end}
    # Masks of some programs have 255 where those of others have 1.
    is_mixed = ends == {1, 255} and (1, 255) not in {
        inspection.ends for inspection in used
    }
    are_masks = len(ends) == 1 or is_mixed
    notes += [MASKS] * are_masks + [STACKS] * (usual[1] == 3) + lost
    images = _stack_images(folder.absolute(), used, notes)
    for i, inspection in enumerate(used):
        yield Stage("Reading the labels", i / len(used))
        labels = _read_labels(inspection.pair)
        labels = mask_to_labels(labels) if are_masks else labels
        images.labels[i] = _pad_to_shape(labels, images.labels.shape[1:])
    return images


def measure_images(
    images: ExperimentImages, options: ReadOptions = DEFAULT_OPTIONS
) -> Stages[Dataset]:
    """Measure the objects of all images, in stages.

    In the dataset returned

    - ``X`` has each measure with mean 0 and standard deviation 1 over all images,
    - ``obs`` has the image, label and centre of each object, and the facts about its
      image that file names or a table give,
    - ``objects`` has its place in the stacks of ``images``, whose labels are measured
      as they are now,
    - notes name images without an object.

    Raises DataError as :func:`~.measure.make_dataset_from_measures`, or if there is no
    object.
    """
    name, inspections = images.folder.name, images.inspections
    yield Stage(f"Measuring {name}")
    pairs = [inspection.pair for inspection in inspections]
    by_image, table_notes = build_image_table(pairs, find_tables(images.folder, pairs))
    spans = _unite_spans([inspection.spans for inspection in inspections])
    tables, parts = list[pd.DataFrame](), list[Objects]()
    for i in range(len(pairs)):
        table, objects = yield from _measure_image(images, i, spans)
        tables.append(table)
        parts.append(objects.with_leading_index((i, *[0] * (3 - objects.ndim))))
    n_objects = [len(table) for table in tables]
    if not any(n_objects):
        raise DataError(f"{name}: {NO_OBJECT}")
    yield Stage("Checking the numbers")
    how: dict[str, Any] = {
        "channels": list(spans),
        "scale": [1.0] * (images.labels.ndim - 1),
        "first_axis": "image",
        "folder": str(images.folder),
        "images": [
            {"name": pair.name, "labels": str(pair.labels), "objects": n}
            | {str(k): str(v) for k, v in by_image.iloc[i].dropna().items()}
            for i, (pair, n) in enumerate(zip(pairs, n_objects, strict=True))
        ],
    }
    by_image["image"] = pd.Categorical(images.names, images.names)
    by_image = by_image[sorted(by_image, key=lambda column: _ORDER.get(column, 0))]
    metadata = by_image.iloc[np.repeat(np.arange(len(pairs)), n_objects)]
    table = pd.concat([table for table in tables if len(table)])
    dataset = make_dataset_from_measures(
        table, concatenate_objects(parts), name, how, options, metadata
    )
    counts = count_text(len(table), "object"), count_text(len(pairs), "image")
    notes = [f"Measured {' of '.join(counts)} in {count_text(len(spans), 'channel')}."]
    empty = [one["name"] for one in how["images"] if not one["objects"]]
    if empty:
        notes += [f"Without an object: {list_text(empty)}."]
    notes += [*images.notes, *table_notes, *dataset.notes]
    return replace(dataset, notes=tuple(notes))


def _measure_image(
    images: ExperimentImages, i: int, spans: dict[str, Span]
) -> Stages[tuple[pd.DataFrame, Objects]]:
    """Measure image `i` by its present labels, in stages, without its padding.

    ``spans``: lowest and highest value of each channel over all images. The table is
    empty, and channels are not read, if the labels have no object.
    """
    inspection, n = images.inspections[i], len(images.inspections)
    text = f"Measuring image {i + 1:,} of {n:,}: {inspection.pair.name}"
    yield Stage(text, i / n)
    depth, height, width = (1, *inspection.shape)[-3:]
    labels = np.asarray(images.labels[i])[:depth, :height, :width]
    labels = labels.reshape(inspection.shape)
    channels = (
        _read_channels(inspection.pair, inspection.shape) if (labels > 0).any() else {}
    )
    size, share = [1.0] * labels.ndim, (i / n, 1 / n)
    table, objects = yield from measure_picture(
        labels, channels, size, spans, stage_text=text, progress_range=share
    )
    table.index = [f"{inspection.pair.name} label {k}" for k in objects.label_ids]
    return table, objects


# Files


def _inspect_image(pair: ImagePair) -> _Inspection:
    """Read an image and its labels, and return their shape, type and values.

    Raises DataError if either cannot be read, or the shapes do not fit.
    """
    labels = _read_labels(pair)
    channels = _read_channels(pair, labels.shape)
    return _Inspection(
        pair,
        labels.shape,
        np.result_type(*channels.values()),
        find_value_span(labels[labels > 0]),
        {name: find_value_span(one) for name, one in channels.items()},
        {name: _find_display_span(one) for name, one in channels.items()},
    )


def _read_pixels(path: Path) -> NDArray[Any]:
    """Read all pixels of an image file or group, without axes of length 1.

    Channels of a TIFF or an OME-Zarr come first if the file names that axis. Raises
    DataError that names the file if it is damaged, a time series, or no picture.
    """
    with wrap_read_errors(path, "an image"):
        if path.is_dir():
            pixels = read_finest_pixels(path)
        elif path.suffix.lower() in (".tif", ".tiff"):
            import tifffile

            with tifffile.TiffFile(path) as file:
                pixels, axes = file.asarray(), file.series[0].axes
            if "T" in axes:
                raise DataError(
                    f"{path.name} is a time series: open it and its labels in napari, "
                    "and measure them with Time as First axis."
                )
            if "C" in axes and len(axes) == pixels.ndim:
                pixels = np.moveaxis(pixels, axes.index("C"), 0)
        else:
            import imageio.v3 as imageio

            pixels = np.asarray(imageio.imread(path))
    if pixels.dtype.kind not in "buif" or pixels.squeeze().ndim < 2:
        raise DataError(f"{path.name} holds no picture: choose images.")
    return pixels.squeeze()


def _read_labels(pair: ImagePair) -> NDArray[Any]:
    """Read the labels of an image as whole numbers, in two or three axes.

    Whole numbers stored as floats are accepted. Raises DataError for a coloured
    picture, a JPEG, other axes or other values.
    """
    labels, name = _read_pixels(pair.labels), pair.labels.name
    is_colored = labels.shape[-1] in (3, 4) and labels.dtype == np.uint8
    is_blurred = pair.labels.suffix.lower() in (".jpg", ".jpeg")
    if is_blurred or labels.ndim not in (2, 3) or (labels.ndim == 3 and is_colored):
        raise DataError(
            f"{name} is a coloured picture, a JPEG or has {labels.ndim} axes: save "
            "labels as whole numbers in (y, x) or (z, y, x), as 16-bit TIFF or PNG."
        )
    if labels.dtype.kind == "f" and np.array_equal(labels, np.round(labels)):
        labels = labels.astype(np.int64)  # some programs save labels as floats
    try:
        return to_integer_labels(labels)
    except DataError as error:
        raise DataError(f"{name}: {error}") from error


def _read_channels(pair: ImagePair, shape: tuple[int, ...]) -> dict[str, NDArray[Any]]:
    """Read the channels of an image by name: from one file, or one file for each.

    ``shape``: that of the labels; raises DataError if another shape is read.
    """
    files = [_read_pixels(path) for path in pair.images]
    named = dict(zip(pair.channels, files, strict=False))
    if pair.images[0].is_dir() and files[0].shape[1:] == shape:
        names = read_channel_names(pair.images[0])
        named = dict(zip(names, files[0], strict=False)) if len(names) > 1 else {}
    return split_channels_by_name(named if len(named) > 1 else files[0], shape)


def _stack_images(
    folder: Path, inspections: Sequence[_Inspection], notes: Sequence[str]
) -> ExperimentImages:
    """Return the images as lazy stacks, with labels that are still to be filled in.

    Labels are zeros in a compressed array in memory; smaller images are padded with 0
    to the size of the largest. ``inspections`` have the same channels; red, green and
    blue become one coloured channel named "".
    """
    import dask.array as da
    import zarr
    from dask.delayed import delayed

    size = tuple(
        np.max(
            [(1, *inspection.shape)[-3:] for inspection in inspections], axis=0
        ).tolist()
    )
    labels = zarr.create_array(
        store=zarr.storage.MemoryStore(),
        shape=(len(inspections), *size),
        chunks=(1, *size),
        dtype=np.int64
        if max(inspection.ends[1] for inspection in inspections) >= 2**31
        else np.int32,
    )
    dtype = np.result_type(*(inspection.dtype for inspection in inspections))
    limits = _unite_spans([inspection.shown for inspection in inspections])
    is_rgb = tuple(limits) == COLORS
    if is_rgb:
        limits = {"": (0.0, 255.0 if dtype == np.uint8 else 1.0)}
    shape = (*size, 3) if is_rgb else size

    def load_plane(inspection: _Inspection, key: str) -> NDArray[Any]:
        if is_rgb:
            pixels = _read_pixels(inspection.pair.images[0])[..., :3]
        else:
            pixels = _read_channels(inspection.pair, inspection.shape)[key]
        return _pad_to_shape(pixels, shape).astype(dtype)

    later = delayed(load_plane)
    channels = {
        key: da.stack(
            [da.from_delayed(later(k, key), shape, dtype) for k in inspections]
        )
        for key in limits
    }
    names = tuple(inspection.pair.name for inspection in inspections)
    stacks = labels, channels, limits, is_rgb
    return ExperimentImages(folder, names, *stacks, inspections, notes)


def _pad_to_shape(pixels: NDArray[Any], shape: Sequence[int]) -> NDArray[Any]:
    """Pad pixels with 0 at the ends of their axes to a shape.

    Pixels (y, x), of colours too, become the first plane if the shape has one axis
    more.
    """
    pixels = pixels[None] if pixels.ndim < len(shape) else pixels
    return np.pad(
        pixels, [(0, n - k) for n, k in zip(shape, pixels.shape, strict=True)]
    )


def _unite_spans(spans: Sequence[dict[str, Span]]) -> dict[str, Span]:
    """Return for each channel the smallest span that contains those of all images.

    All images have the channels of the first.
    """
    return {
        key: (min(one[key][0] for one in spans), max(one[key][1] for one in spans))
        for key in spans[0]
    }


def _find_display_span(channel: NDArray[Any]) -> Span:
    """Return the percentiles of a channel that are shown black and in full colour.

    About 65,000 evenly spaced pixels are inspected; (0, 1) if none is finite.
    """
    values = channel.ravel()[:: max(1, channel.size // _MAX_SAMPLE)]
    values = values[np.isfinite(values)]
    if not values.size:
        return 0.0, 1.0
    low, high = np.percentile(values, _DISPLAY_PERCENTILES).tolist()
    return low, max(high, low + 1e-9)
