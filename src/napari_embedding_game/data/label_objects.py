"""The objects of a label image that rows are about: label ids and boxes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.data.errors import DataError

NO_OBJECT = "The labels hold no object, only background: segment first."


@dataclass(frozen=True, eq=False)
class Objects:
    """Label and bounding box of N objects of one label image."""

    label_ids: NDArray[np.int64]
    """(N,) value of the object's pixels in the label image.

    0, the background, stands for a row that is no object; its box is empty.
    """
    boxes: NDArray[np.int64]
    """(N, 2 * ndim) first pixel along each axis, then the one after the last.

    The axes are those of the label image, as in scikit-image's ``bbox``.
    """
    areas: NDArray[np.int64] | None = None
    """(N,) number of pixels; None where they were not counted."""
    n_below_0: int = 0
    """Labels below 0 in the image, which are background as 0 is."""

    def __post_init__(self) -> None:
        n = len(self.label_ids)
        if self.boxes.ndim != 2 or len(self.boxes) != n or self.boxes.shape[1] % 2:
            raise ValueError(f"boxes have shape {self.boxes.shape} for {n} objects")

    def __len__(self) -> int:
        """Return the number of objects."""
        return len(self.label_ids)

    @property
    def ndim(self) -> int:
        """Axes of the label image."""
        return int(self.boxes.shape[1]) // 2

    @property
    def present(self) -> NDArray[np.bool_]:
        """(N,) whether each row is an object of the label image."""
        return np.asarray(self.label_ids != 0)

    @property
    def centers(self) -> NDArray[np.float64]:
        """(N, ndim) middle of each box, in pixels; where a camera may go."""
        first, last = np.split(self.boxes.astype(np.float64), 2, axis=1)
        return (first + last - 1) / 2

    @property
    def notes(self) -> list[str]:
        """What a person has to know of the labels, in sentences."""
        n = self.n_below_0
        told = "1 label is" if n == 1 else f"{n:,} labels are"
        return [
            f"{told} below 0, which is background here and on no map: number the "
            "objects from 1."
        ] * bool(n)

    def take(self, rows: NDArray[Any]) -> Objects:
        """Objects of these rows: indices, or a mask."""
        areas = None if self.areas is None else self.areas[rows]
        return Objects(self.label_ids[rows], self.boxes[rows], areas)

    def spread(self, rows: NDArray[np.bool_]) -> Objects:
        """Return these as the objects of marked rows; the others are no objects."""

        def over_all(values: NDArray[np.int64]) -> NDArray[np.int64]:
            spread = np.zeros((len(rows), *values.shape[1:]), np.int64)
            spread[rows] = values
            return spread

        areas = None if self.areas is None else over_all(self.areas)
        return Objects(over_all(self.label_ids), over_all(self.boxes), areas)

    def within(self, place: Sequence[int]) -> Objects:
        """Objects of one picture as those of a series, in which it has this place."""
        ends = np.tile(np.asarray(place, dtype=np.int64), (len(self), 1))
        first, last = np.split(self.boxes, 2, axis=1)
        boxes = np.hstack([ends, first, ends + 1, last])
        return Objects(self.label_ids, boxes, self.areas)

    def slices(self, row: int) -> tuple[slice, ...]:
        """Slices that cut the box of one object out of the label image."""
        first, last = np.split(self.boxes[row], 2)
        return tuple(slice(int(a), int(b)) for a, b in zip(first, last, strict=True))


def find_objects_in_time(labels: NDArray[Any], n_leading: int | None = None) -> Objects:
    """Objects of each picture of a series (..., y, x), one picture thick.

    Parameters
    ----------
    labels : array
    n_leading : int, optional
        Axes that tell pictures apart; all but the last two by default.

    Raises
    ------
    DataError
        As :func:`find_objects`.
    """
    found: list[Objects] = []
    n_below_0 = 0
    n_leading = labels.ndim - 2 if n_leading is None else n_leading
    for place in np.ndindex(labels.shape[:n_leading]):
        picture = np.asarray(labels[place])
        n_below_0 += _n_below_0(picture)
        if picture.max(initial=0) > 0:
            found.append(find_objects(picture).within(place))
    if not found:
        raise DataError(NO_OBJECT)
    return replace(joined(found), n_below_0=n_below_0)


def joined(parts: Sequence[Objects]) -> Objects:
    """All objects of several parts, one part after the other."""
    ids = np.concatenate([part.label_ids for part in parts])
    areas = [part.areas for part in parts if part.areas is not None]
    return Objects(
        ids,
        np.concatenate([part.boxes for part in parts]),
        np.concatenate(areas) if len(areas) == len(parts) else None,
        sum(part.n_below_0 for part in parts),
    )


def find_objects(labels: NDArray[Any]) -> Objects:
    """All objects of a label image, by growing label.

    Parameters
    ----------
    labels : array of integers or booleans
        0 is background, and so are negative values.

    Raises
    ------
    DataError
        If the labels are no whole numbers, or all are background.
    """
    from scipy import ndimage

    labels = check_labels(labels)
    largest = int(labels.max(initial=0))
    if largest <= 0:
        raise DataError(NO_OBJECT)
    # One entry for each value up to the largest; huge values are numbered anew.
    if largest > 2 * labels.size:
        values = np.append(0, np.maximum(labels, 0))
        ids, compact = np.unique(values, return_inverse=True)
        compact = compact[1:].reshape(labels.shape).astype(np.int32)
    else:
        ids, compact = np.arange(largest + 1), labels
    found = enumerate(ndimage.find_objects(compact), start=1)
    present = [(i, box) for i, box in found if box is not None]
    boxes = [[*(s.start for s in box), *(s.stop for s in box)] for _, box in present]
    areas = [np.count_nonzero(compact[box] == i) for i, box in present]
    return Objects(
        ids[[i for i, _ in present]].astype(np.int64),
        np.array(boxes, dtype=np.int64),
        np.array(areas, dtype=np.int64),
        _n_below_0(labels),
    )


def _n_below_0(labels: NDArray[Any]) -> int:
    """Return how many labels are below 0."""
    if labels.min(initial=0) >= 0:
        return 0
    return len(np.unique(labels[labels < 0]))


def check_labels(labels: NDArray[Any]) -> NDArray[Any]:
    """Return the labels as whole numbers, or raise DataError."""
    if labels.dtype == bool:
        return labels.astype(np.uint8)
    if labels.dtype.kind not in "iu":
        raise DataError(
            f"The labels are {labels.dtype} values, and whole numbers are needed: "
            "choose a Labels layer."
        )
    return labels


def channel_axis(
    image_shape: tuple[int, ...], labels_shape: tuple[int, ...]
) -> Literal[0, -1] | None:
    """Return where an image of several channels has them; None if it has not."""
    if image_shape[:-1] == labels_shape:
        return -1
    return 0 if image_shape[1:] == labels_shape else None
