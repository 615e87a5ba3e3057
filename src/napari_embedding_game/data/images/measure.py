"""Measure the objects of a label image: one table row for each object.

Supported: labels in 2-D or 3-D (z, y, x), or a time series or a stack of images with
2-D labels, which is measured picture by picture; each with any number of channels.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_embedding_game.data import label_objects
from napari_embedding_game.data.columns import count_text
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.formats.tables import result_from_frame
from napari_embedding_game.data.images import channels as of_image
from napari_embedding_game.data.images.channels import Channels, Span
from napari_embedding_game.data.read_options import DEFAULT_OPTIONS, ReadOptions
from napari_embedding_game.data.roles import convert_columns_by_role
from napari_embedding_game.data.stages import Stage, Stages
from napari_embedding_game.data.tissue import Tissue

Group = Literal["shape", "intensity", "texture", "neighbours"]
GROUPS: tuple[Group, ...] = get_args(Group)
USUAL = GROUPS[:3]

_SHAPES = {
    "area": "area",
    "equivalent_diameter": "equivalent_diameter_area",
    "major_axis_length": "axis_major_length",
    "minor_axis_length": "axis_minor_length",
    "extent": "extent",
}
_BATCH = 50  # objects measured between two stages
_LEVELS = 32
_NEAREST = 5
_CENTRES = ("centroid_z", "centroid_y", "centroid_x")
_POSITIONS = ("label", "time", "image", *_CENTRES)


def measure_labels_in_stages(
    image: Any,
    labels: Any,
    *,
    name: str = "labels",
    scale: Sequence[float] | None = None,
    first_axis: label_objects.FirstAxis = "z",
    groups: Sequence[Group] = USUAL,
    with_border: bool = True,
    options: ReadOptions = DEFAULT_OPTIONS,
) -> Stages[Dataset]:
    """Measure every object of a label image, in stages.

    ``image``: of the shape of `labels`, with one more axis for channels first or last,
    or one array for each channel by name. None: only shapes and neighbours are
    measured. ``labels``: (y, x), (z, y, x), (time, y, x) or (image, y, x), the last
    with any number of axes before (y, x); 0 and below is background. ``name``: name of
    the labels in messages. ``scale``: size of a pixel along each axis of `labels`, or
    of the last axes; 1 by default. ``first_axis`` {"z", "time", "image"}: meaning of
    the first of three axes; "image": each picture is an image of its own. ``groups``
    sequence of {"shape", "intensity", "texture", "neighbours"}: what is measured, see
    :func:`measure_picture`. ``with_border``: whether objects at the border of their
    picture are measured, too. ``options``: columns to embed, and how missing values are
    treated.

    In the dataset returned ``X`` has each measure with mean 0 and standard deviation 1,
    ``profile`` in its own units; ``obs`` label and centre (in pixels) of each object;
    ``objects`` label and bounding box. Notes point out axes that may mean something
    else.

    Raises DataError if shapes do not fit or there are fewer than two objects.
    """
    yield Stage("Looking at the image")
    pixels = label_objects.to_integer_labels(of_image.load_pixels(labels, name))
    if pixels.ndim < 2 or (first_axis != "image" and pixels.ndim > 3):
        raise DataError(
            f"'{name}' has {pixels.ndim} axes, and objects are measured in pictures "
            "(2), stacks (3) or time series of pictures (3): measure one time point of "
            "it, or say that its first axes are images."
        )
    channels = of_image.split_channels_by_name(image, pixels.shape)
    spans = {
        key: of_image.find_value_span(channel) for key, channel in channels.items()
    }
    n_leading = 0 if first_axis == "z" else pixels.ndim - 2
    spacing = [1.0] * pixels.ndim if scale is None else list(scale)[-pixels.ndim :]
    indices = list(np.ndindex(pixels.shape[:n_leading]))
    tables, parts, notes = [], [], []
    for i, index in enumerate(indices):
        part = {key: channel[index] for key, channel in channels.items()}
        share = i / len(indices), 1 / len(indices)
        table, objects = yield from measure_picture(
            pixels[index],
            part,
            spacing[n_leading:],
            spans,
            groups,
            progress_range=share,
        )
        if n_leading and len(objects):
            at = float(index[0]) if first_axis == "time" else ", ".join(map(str, index))
            table.insert(1, first_axis, at)
        parts.append(objects.with_leading_index(index))
        tables.append(table)
    objects = label_objects.concatenate_objects(parts)
    if not len(objects):
        raise DataError(label_objects.NO_OBJECT)
    table = pd.concat([table for table in tables if len(table)])
    names, at = table["label"].astype(str), table.get(first_axis)
    if at is not None:  # the objects are in several pictures
        where = at.astype(int) if first_axis == "time" else at
        names = f"{first_axis} " + where.astype(str) + " label " + names
    table.index = pd.Index(names)
    twice = (len(pixels), *pixels.shape)
    if pixels.ndim > 2 and getattr(image, "shape", ()) == twice:
        notes.append(
            f"The image has {len(pixels)} channels and as many pictures, of which the "
            "first axis was taken for the channels: if it is the second, swap them."
        )
    if first_axis == "z" and pixels.ndim == 3:
        many = objects.label_ids[
            objects.box_corners[:, 1, 0] > objects.box_corners[:, 0, 0] + 1
        ]
        below = pixels[1:]
        touching = below[(below == pixels[:-1]) & (below > 0)]
        n_loose = len(np.setdiff1d(many, touching))
        if 2 * n_loose > len(many):
            notes.append(
                f"Of another place in each plane: {count_text(n_loose, 'object')}. If "
                "the planes are times or images, choose that as the first axis."
            )
    if pixels.ndim > 3 or (n_leading and first_axis == "time"):
        note = "Each picture (y, x) is measured by itself"
        notes.append(f"{note}: an object in several of them is several rows.")
    if n_below := len(np.unique(pixels[pixels < 0])):
        notes.append(
            f"Below 0, which is background here: {count_text(n_below, 'label')}. "
            "Number the objects from 1."
        )
    if not with_border:
        edges = [[0, 0], pixels.shape[-2:]]
        touches = (objects.box_corners[:, :, -2:] == edges).any(axis=(1, 2))
        table, objects = table[~touches], objects.take(~touches)
        touching = count_text(int(touches.sum()), "object")
        notes.append(f"Left out at the border of the image: {touching}.")
    yield Stage("Checking the numbers")
    how = {
        "channels": list(channels),
        "scale": spacing,
        "first_axis": first_axis,
        "groups": list(groups),
        "with_border": with_border,
    }
    dataset = make_dataset_from_measures(table, objects, name, how, options)
    return replace(dataset, notes=(*notes, *dataset.notes))


def make_dataset_from_measures(
    table: pd.DataFrame,
    objects: label_objects.Objects,
    name: str,
    provenance: Mapping[str, Any],
    options: ReadOptions,
    metadata: pd.DataFrame | None = None,
) -> Dataset:
    """Return the dataset of a table of N measured objects, named by its index.

    `table` has labels and centres, which become ``obs``, and measures, which are
    embedded; if the options choose columns, these alone. `objects` (N) are recorded as
    places of the rows, and `provenance` says how they were measured; by its "scale"
    positions in tissue are in units of the layer. `metadata` (N rows) are further
    columns of ``obs``. Raises DataError if nothing is measured, or
    values are missing.
    """
    chosen = tuple(column for column in table if column not in _POSITIONS)
    if not chosen or table.empty:
        raise DataError(
            f"Nothing of '{name}' is measured: choose shape or neighbours, or an image "
            "to measure intensity or texture in, and take objects at the border too."
        )
    options = replace(options, columns=options.columns or chosen)
    dataset = result_from_frame(table, f"The table of '{name}'", name, options).dataset
    obs = table.drop(columns=list(chosen))
    if metadata is not None:
        metadata, _ = convert_columns_by_role(metadata, {}, name)
        obs = pd.concat([metadata.set_axis(obs.index), obs], axis="columns")
    obs = obs.set_axis(dataset.source_obs_names)
    tissue = dataset.source_tissue
    if tissue is not None:
        tissue = _scale_tissue(tissue, provenance.get("scale", ()))
    return replace(
        dataset,
        source_tissue=tissue,
        space=f"measures of {name}",
        obs=obs[dataset.kept],
        source_obs=obs,
        # Other roles are decided from the present columns.
        roles={"time": "times"} if "time" in table else {},
        source_objects=objects,
        provenance={"measured": dict(provenance)},
    )


def _scale_tissue(tissue: Tissue, scale: Sequence[float]) -> Tissue:
    """Return positions in pixels in the units of a layer.

    ``scale``: size of a pixel along the layer's axes, z, y, x; empty or all 1 for
    pixels.
    """
    if {*scale} <= {1}:
        return replace(tissue, unit="pixel")
    sizes = np.array(scale, np.float32)[::-1]  # positions are x, y, z
    positions = tissue.positions * sizes[: tissue.positions.shape[1]]
    return replace(tissue, positions=positions, unit="")


def measure_picture(
    labels: NDArray[Any],
    channels: Channels,
    spacing: Sequence[float],
    spans: Mapping[str, Span],
    groups: Collection[Group] = USUAL,
    *,
    stage_text: str = "Measuring the objects",
    progress_range: tuple[float, float] = (0.0, 1.0),
) -> Stages[tuple[pd.DataFrame, label_objects.Objects]]:
    """Measure the objects of one picture or stack, in stages, by ascending label.

    - shape: area, diameter, axes, extent, eccentricity, solidity, perimeter, roundness
    - intensity: mean, std, min and max
    - texture: entropy in bits of 32 grey levels of the span, and contrast, the mean
      difference of neighbouring pixels as a share of the span
    - neighbours: distance to the nearest object, mean distance to the nearest five

    Channels have the shape of the labels, `spacing` is the size of a pixel along each
    axis, `spans` the lowest and highest value of each channel. All measures in a
    channel are NaN where a pixel of the object is not finite.

    `progress_range` is the share of all work done before, and the share of this
    picture. Returns the measures, a row for each object with its label and centre, and
    the objects; an empty table without any object.
    """
    from scipy import ndimage

    objects, numbers = label_objects.renumber_objects(labels)
    n = len(objects)
    if not n:
        return pd.DataFrame(), objects
    every = np.arange(1, n + 1)
    centres = np.array(ndimage.center_of_mass(numbers > 0, numbers, every))
    columns: dict[str, Any] = {"label": objects.label_ids}
    columns.update(zip(_CENTRES[-labels.ndim :], centres.T, strict=True))
    if "shape" in groups:
        columns |= yield from _measure_shapes(
            numbers, spacing, stage_text, progress_range
        )
    for key, channel in channels.items():
        yield Stage(stage_text, sum(progress_range))
        values, measures = channel.astype(np.float64), dict[str, Any]()
        parts = values, numbers, every
        if "intensity" in groups:
            measures["mean"] = ndimage.mean(*parts)
            # Scipy divides by 0 where there is no background.
            with np.errstate(invalid="ignore"):
                measures["std"] = ndimage.standard_deviation(*parts)
            measures |= {"min": ndimage.minimum(*parts), "max": ndimage.maximum(*parts)}
        if "texture" in groups:
            measures |= _measure_textures(values, numbers, spans[key], n)
        is_finite = ndimage.minimum(np.isfinite(values), numbers, every).astype(bool)
        for name, one in measures.items():
            columns[f"{key}_{name}"] = np.where(is_finite, one, np.nan)
    if "neighbours" in groups:
        from scipy.spatial import cKDTree

        centres, k = centres * spacing, min(_NEAREST + 1, max(2, n))
        distances, _ = cKDTree(centres).query(centres, k=k)
        columns["nearest"] = distances[:, 1]
        columns[f"nearest_{_NEAREST}"] = distances[:, 1:].mean(axis=1)
    return pd.DataFrame(columns), objects


def _measure_shapes(
    object_numbers: NDArray[Any],
    spacing: Sequence[float],
    stage_text: str,
    progress_range: tuple[float, float],
) -> Stages[pd.DataFrame]:
    """Return a table of shapes by scikit-image, a row for each numbered object.

    Stacks have volume and elongation, pictures eccentricity and solidity, and with
    square pixels perimeter and roundness. A stage is yielded every 50 objects.
    """
    from skimage.measure import regionprops

    names, is_flat = dict(_SHAPES), object_numbers.ndim == 2
    if is_flat:
        names |= {"eccentricity": "eccentricity", "solidity": "solidity"}
    if is_flat and len(set(spacing)) == 1:
        names["perimeter"] = "perimeter"
    regions, rows = regionprops(object_numbers, spacing=spacing), []
    for i, region in enumerate(regions):
        if i % _BATCH == 0:
            yield Stage(
                stage_text, progress_range[0] + progress_range[1] * i / len(regions)
            )
        # A convex hull needs three pixels.
        defaults = {"solidity": 1.0} if region.num_pixels < 3 else {}
        rows.append([defaults.get(k) or getattr(region, k) for k in names.values()])
    shapes = pd.DataFrame(rows, columns=list(names), dtype=float)
    if not is_flat:
        ratio = shapes["minor_axis_length"] / shapes["major_axis_length"]
        shapes = shapes.assign(elongation=1 - ratio.fillna(1))
        return shapes.rename(columns={"area": "volume"})
    shapes["solidity"] = shapes["solidity"].clip(upper=1)
    if "perimeter" in shapes:
        ratio = 4 * math.pi * shapes["area"] / np.square(shapes["perimeter"])
        shapes["roundness"] = ratio.clip(upper=1)
    return shapes


def _measure_textures(
    values: NDArray[np.float64],
    object_numbers: NDArray[Any],
    span: Span,
    n_objects: int,
) -> dict[str, NDArray[np.float64]]:
    """Return entropy and contrast of n numbered objects in one channel, (n,) each.

    ``span``: lowest and highest value of the channel, between which values are scaled
    to 0 to 1. Contrast is 0 for an object without neighbouring pixels.
    """
    low, high = span
    values = np.where(np.isfinite(values), values, low) - low
    values /= high - low if high > low else np.inf
    is_inside = object_numbers > 0
    levels = np.clip(values[is_inside] * _LEVELS, 0, _LEVELS - 1).astype(np.intp)
    indices = (object_numbers[is_inside] - 1) * _LEVELS + levels
    counts = np.bincount(indices, minlength=n_objects * _LEVELS).reshape(
        n_objects, _LEVELS
    )
    shares = counts / counts.sum(axis=1, keepdims=True)
    entropy = -(shares * np.log2(np.where(shares > 0, shares, 1))).sum(axis=1) + 0.0
    total, n_pairs = np.zeros(n_objects), np.zeros(n_objects, np.intp)
    for axis in range(object_numbers.ndim):
        along, inside = (
            np.moveaxis(values, axis, 0),
            np.moveaxis(object_numbers, axis, 0),
        )
        pairs = (inside[1:] == inside[:-1]) & (inside[1:] > 0)
        pair_of = inside[1:][pairs] - 1
        total += np.bincount(pair_of, np.abs(along[1:] - along[:-1])[pairs], n_objects)
        n_pairs += np.bincount(pair_of, minlength=n_objects)
    return {"entropy": entropy, "contrast": total / np.maximum(n_pairs, 1)}
