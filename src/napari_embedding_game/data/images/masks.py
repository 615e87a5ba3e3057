"""Tell label images that were opened as pictures by name and pixels."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

_WORD = re.compile(r"[a-z]+")
_NAMES = {
    *("label", "labels", "labelled", "labeled", "mask", "masks", "seg", "segmentation"),
    *("segmented", "instances", "objects", "nuclei", "nucleus", "cells", "cellpose"),
    *("stardist", "cp"),
}
_MOST_ROWS = 256
"""Of pixels that are looked at."""
_ALIKE = 0.8
"""Share of neighbouring pixels of objects that have the same value."""


def is_named_like_labels(*names: str) -> bool:
    """Return whether a word of some names, of a file or folder, says labels."""
    return any(_NAMES & set(_WORD.findall(name.lower())) for name in names)


def looks_like_labels(pixels: Any, *, is_rgb: bool = False) -> bool:
    """Return whether pixels are whole numbers in patches, with 0 between them.

    Parameters
    ----------
    pixels : array
        (..., y, x), with colours on one more axis if `is_rgb`; grey is one value.
    """
    plane = pixels
    while len(plane.shape) > 2 + is_rgb:
        plane = plane[len(plane) // 2]
    rows = np.asarray(plane[:: max(1, plane.shape[0] // _MOST_ROWS)])
    values = _grey(rows) if is_rgb else rows
    if values is None or not _are_whole(values):
        return False
    here, beside = values[:, :-1], values[:, 1:]
    are_inside = (here > 0) & (beside > 0)
    n_inside = np.count_nonzero(are_inside)
    n_alike = np.count_nonzero(are_inside & (here == beside))
    return bool(n_inside and n_alike >= _ALIKE * n_inside and (values == 0).any())


def as_labels(pixels: Any, *, is_rgb: bool = False) -> tuple[NDArray[np.integer], bool]:
    """Return pixels that look like labels as labels.

    Returns
    -------
    labels : array of integers
    is_numbered : bool
        Whether all objects had one value: then parts that do not touch were numbered.
    """
    from scipy import ndimage

    values = np.asarray(pixels)[..., 0] if is_rgb else np.asarray(pixels)
    labels = values.astype(np.int32) if values.dtype.kind in "bf" else values
    inside = labels[labels > 0]
    if inside.size and inside.min() < inside.max():
        return labels, False
    return np.asarray(ndimage.label(labels > 0)[0], dtype=np.int32), True


def _grey(colors: NDArray[Any]) -> NDArray[Any] | None:
    """One of the colours where all are the same, else None."""
    first = colors[..., 0]
    is_grey = all(np.array_equal(first, colors[..., i]) for i in (1, 2))
    return first if is_grey else None


def _are_whole(values: NDArray[Any]) -> bool:
    if values.dtype.kind != "f":
        return values.dtype.kind in "biu"
    return bool(np.isfinite(values).all() and (values == np.round(values)).all())
