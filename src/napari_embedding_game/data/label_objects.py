"""Objects of a label image: label ids, bounding boxes and areas, one for each row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_embedding_game.data.errors import DataError

FirstAxis = Literal["z", "time", "image"]
"""Meaning of the first of three axes; each picture of a series has its own objects."""
NO_OBJECT = "The labels hold no object, only background: segment first."
_MAX_LABEL = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False)
class Objects:
    """Labels, bounding boxes and areas of N objects of one label image."""

    label_ids: NDArray[np.int64]
    """(N,) value of the object's pixels in the label image. 0, the background, marks a
    row that is no object; its box is empty."""
    boxes: NDArray[np.int64]
    """(N, 2 * ndim) first pixel along each axis, then one past the last pixel. The axes
    are those of the label image, as in scikit-image's ``bbox``."""
    areas: NDArray[np.int64]
    """(N,) number of pixels of each object."""

    def __post_init__(self) -> None:
        """Raise ValueError if the shape of the boxes does not fit the labels."""
        n = len(self.label_ids)
        if self.boxes.ndim != 2 or len(self.boxes) != n or self.boxes.shape[1] % 2:
            raise ValueError(f"boxes have shape {self.boxes.shape} for {n} objects")

    def __len__(self) -> int:
        """Return the number of objects."""
        return len(self.label_ids)

    @property
    def ndim(self) -> int:
        """Number of axes of the label image."""
        return int(self.boxes.shape[1]) // 2

    @property
    def box_corners(self) -> NDArray[np.int64]:
        """(N, 2, ndim) first pixel of each box, and one past its last pixel."""
        return self.boxes.reshape(len(self), 2, self.ndim)

    @property
    def present(self) -> NDArray[np.bool_]:
        """(N,) whether each row has an object of the label image."""
        return np.asarray(self.label_ids != 0)

    @property
    def centers(self) -> NDArray[np.float64]:
        """(N, ndim) middle of each box, in pixels; a camera may be centred there."""
        return np.asarray((self.box_corners.sum(axis=1) - 1) / 2)

    def contains_along_axes(self, pixels: NDArray[np.floating]) -> NDArray[np.bool_]:
        """Return which boxes contain a pixel (ndim,) along its axes: (N, ndim)."""
        near = np.round(pixels)
        return np.asarray(
            (self.box_corners[:, 0] <= near) & (near < self.box_corners[:, 1])
        )

    def is_centered_in_counterpart(self, others: Objects) -> NDArray[np.bool_]:
        """Return whether the middle of each box lies in the other box of its row, (N,).

        It counts, too, if the middle of the other box lies in this one. ``others`` has
        N objects; all are False if the shapes differ.
        """
        if self.boxes.shape != others.boxes.shape:
            return np.zeros(len(self), bool)
        mine, theirs = (
            self.contains_along_axes(others.centers),
            others.contains_along_axes(self.centers),
        )
        return np.asarray(mine.all(axis=1) | theirs.all(axis=1))

    def match_to(
        self, others: Objects, same_label_indices: NDArray[np.intp]
    ) -> NDArray[np.intp]:
        """Return the index of each object among `others`, (N,); -1 for no match.

        1. An object matches the object of the same box and area, whatever its label; of
           several, the one of its label.
        2. An edited object matches the object that has its label, whose index is in
           `same_label_indices` (N,), if that object has no match by 1, and the middle
           of either box lies in the other.

        Step 2 counts only if at least half of the smaller set then match: some objects
        lie alike in another image by chance.
        """
        theirs = others._make_box_and_area_keys()
        row_of = {key: i for i, key in enumerate(theirs)}
        same = np.array(
            [row_of.get(key, -1) for key in self._make_box_and_area_keys()], np.intp
        )
        # Interleaved objects share a box: the label decides between them.
        pairs = zip(same_label_indices, self._make_box_and_area_keys(), strict=True)
        stays = [i >= 0 and theirs[i] == key for i, key in pairs]
        same = np.where(stays, same_label_indices, same)
        is_free = (same_label_indices >= 0) & ~np.isin(same_label_indices, same)
        is_free &= self.is_centered_in_counterpart(others.take(same_label_indices))
        found = np.where((same < 0) & is_free, same_label_indices, same)
        return found if 2 * (found >= 0).sum() >= min(len(self), len(others)) else same

    def _make_box_and_area_keys(self) -> list[tuple[int, ...]]:
        """Return box and area of each object as a tuple, for comparison."""
        return list(map(tuple, np.column_stack([self.boxes, self.areas]).tolist()))

    def take(self, rows: NDArray[Any]) -> Objects:
        """Return the objects at these rows: indices, or a mask."""
        return Objects(self.label_ids[rows], self.boxes[rows], self.areas[rows])

    def take_or_empty(self, indices: NDArray[np.integer]) -> Objects:
        """Return the object at each index (M,); for -1 an empty one with label 0."""
        result = self.take(indices)
        for values in (result.label_ids, result.boxes, result.areas):
            values[indices < 0] = 0
        return result

    def with_leading_index(self, index: Sequence[int]) -> Objects:
        """Return these objects of one picture as objects of a series, at `index`.

        ``index``: index of the picture along each leading axis; boxes get these axes.
        """
        first = np.tile(np.asarray(index, dtype=np.int64), (len(self), 1))
        ends = np.stack([first, first + 1], axis=1)
        ends = np.concatenate([ends, self.box_corners], axis=2)
        boxes = ends.reshape(len(self), 2 * ends.shape[2])
        return Objects(self.label_ids, boxes, self.areas)

    def make_box_slices(self, row: int) -> tuple[slice, ...]:
        """Return the slices that cut a row's box out of the label image."""
        return tuple(slice(*along) for along in self.box_corners[row].T.tolist())


def mask_to_labels(pixels: Any, *, in_planes: bool = False) -> NDArray[np.integer]:
    """Label the connected parts of a mask, from 1; 0 and below is background.

    Labels of several values are returned unchanged. With `in_planes` parts in different
    planes (y, x) are never connected.
    """
    from scipy import ndimage

    values = np.asarray(pixels)
    inside = values[values > 0]
    if inside.size and inside.min() < inside.max():
        return values
    n_axes = 2 if in_planes else values.ndim
    near = np.zeros((3,) * values.ndim, bool)
    near[(1,) * (values.ndim - n_axes)] = ndimage.generate_binary_structure(n_axes, 1)
    return np.asarray(ndimage.label(values > 0, near)[0], dtype=np.int32)


def find_objects(labels: NDArray[Any], n_series_axes: int = 0) -> Objects:
    """Find all objects of a label image, by ascending label; 0 and below is background.

    Along the first `n_series_axes` axes each index is a picture with its own objects;
    the objects of one picture follow those of the picture before. Raises DataError if
    the labels are not whole numbers, or all are background.
    """
    labels = to_integer_labels(labels)
    indices = np.ndindex(labels.shape[:n_series_axes])
    objects = concatenate_objects(
        [renumber_objects(labels[at])[0].with_leading_index(at) for at in indices]
    )
    if not len(objects):
        raise DataError(NO_OBJECT)
    return objects


def concatenate_objects(parts: Sequence[Objects]) -> Objects:
    """Return the objects of all parts, one part after the other."""
    values = ([one.label_ids, one.boxes, one.areas] for one in parts)
    return Objects(*map(np.concatenate, zip(*values, strict=True)))


def renumber_objects(labels: NDArray[Any]) -> tuple[Objects, NDArray[np.int64]]:
    """Return the objects by ascending label, and an image of their numbers 1 to N.

    Labels of 0 and below are background, 0 in that image.
    """
    from scipy import ndimage

    background = np.zeros(1, labels.dtype)
    values = np.append(background, np.maximum(labels, 0)).astype(np.int64)
    codes, ids = pd.factorize(values, sort=True)
    numbers = codes[1:].reshape(labels.shape)
    found = ndimage.find_objects(numbers) if len(ids) > 1 else []
    ends = [[*(s.start for s in box), *(s.stop for s in box)] for box in found]
    boxes = np.array(ends, np.int64).reshape(len(ends), 2 * labels.ndim)
    return Objects(ids[1:], boxes, np.bincount(codes)[1:]), numbers


def compute_share_of_matching_objects(
    labels: Any, objects: Objects, n_checked: int = 30
) -> float:
    """Return the share of objects whose label fills an equal area of its box.

    At most `n_checked` objects, evenly spaced, are compared with `labels`. The share is
    0 without any object, or if the boxes do not fit the image.
    """
    objects = objects.take(objects.present)
    if labels.ndim != objects.ndim or not len(objects):
        return 0.0
    if (objects.box_corners[:, 1] > np.array(labels.shape)).any():
        return 0.0
    rows = np.linspace(0, len(objects) - 1, min(n_checked, len(objects))).astype(int)
    some = objects.take(rows)
    boxes = (np.asarray(labels[some.make_box_slices(row)]) for row in range(len(some)))
    areas = [(x == k).sum() for x, k in zip(boxes, some.label_ids, strict=True)]
    return float(np.mean(areas == some.areas))


def read_labels_at(pixels: Any, positions: NDArray[np.floating]) -> NDArray[np.int64]:
    """Return the label at each position (m, ndim) in pixels, (m,); 0 beyond the image.

    The pixels may be in a file: planes along the first axis are read one by one.
    """
    labels = np.zeros(len(positions), np.int64)
    near = np.round(positions)
    is_inside = ((near >= 0) & (near < np.array(pixels.shape))).all(axis=1)
    planes = np.where(is_inside, near[:, 0], -1)
    if pixels.ndim < 3:
        planes, pixels = np.where(is_inside, 0, -1), [pixels]
        near = np.insert(near, 0, 0, axis=1)
    order = np.argsort(planes, kind="stable")
    firsts = np.flatnonzero(np.diff(planes[order], prepend=-1))
    for rows in np.split(order, firsts)[1:]:
        plane = np.asarray(pixels[int(planes[rows[0]])])
        labels[rows] = plane[tuple(near[rows, 1:].astype(np.intp).T)]
    return labels


def find_rows_with_labels(
    objects: Objects,
    label_ids: NDArray[np.integer],
    positions: NDArray[np.floating],
) -> NDArray[np.intp]:
    """Return the row of the object with each label at a position, (m,); -1 for none.

    ``label_ids``: (m,). ``positions``: (m, ndim) in pixels. In a movie the object is
    that in the frame of the position; along the first of three axes or more it must
    contain the position.
    """
    keys = pd.DataFrame({"label": objects.label_ids, "frame": 0})
    asked = pd.DataFrame({"label": label_ids, "frame": 0})
    is_movie = keys["label"][objects.present].duplicated().any()
    if is_movie:
        keys["frame"] = objects.boxes[:, 0]
        asked["frame"] = np.nan_to_num(np.round(positions[:, 0]), nan=-1)
    keys = keys[objects.present].drop_duplicates(keep=False).reset_index(names="row")
    found = asked.merge(keys, how="left", on=["label", "frame"])["row"]
    rows: NDArray[np.intp] = found.fillna(-1).to_numpy(np.intp)
    if objects.ndim > 2 and len(objects):
        near, ends = np.round(positions[:, 0]), objects.box_corners[rows, :, 0]
        rows[~((ends[:, 0] <= near) & (near < ends[:, 1]))] = -1
    return rows


def to_integer_labels(labels: NDArray[Any]) -> NDArray[Any]:
    """Return labels as whole numbers: unchanged, or masks as uint8.

    Raises DataError for other types, or labels beyond 64-bit signed numbers.
    """
    if labels.dtype == bool:
        return labels.astype(np.uint8)
    if labels.dtype.kind not in "iu":
        raise DataError(
            f"The labels are {labels.dtype} values, and whole numbers are needed: "
            "choose a Labels layer."
        )
    if labels.dtype == np.uint64 and labels.size and labels.max() > _MAX_LABEL:
        raise DataError(
            f"There are labels above {_MAX_LABEL:,}, which 64-bit whole numbers do not "
            "hold: renumber the labels."
        )
    return labels
