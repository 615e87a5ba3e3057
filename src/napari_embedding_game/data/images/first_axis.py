"""Distinguish a movie from a volume by how labels continue from plane to plane."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

MAX_PIXELS = 4_000_000
"""Number of pixels inspected, evenly spaced in each plane; this takes 0.2 s."""
NEARLY_ALL, MOST = 0.9, 0.5
"""Share of the planes in which a tracked cell is seen, and of labels that must
agree."""
MIN_SHIFT = 1.0
"""Diameters by which a cell moves during a movie; a nucleus that spans all planes of a
volume is tilted by less."""
MAX_STEP = 0.5
"""Largest step from plane to plane, as a share of the spread of the labels in a plane:
above it labels are numbered anew in each plane."""
MIN_OVERLAP, MAX_END = 0.5, 0.7
"""Of a volume: the share of the smaller part of an object that overlaps its part in the
adjacent plane, and the size of its last part as a share of its largest part."""


def guess_first_axis(labels: NDArray[Any]) -> Literal["z", "time"] | None:
    """Guess whether the first axis of a label image is z or time; None if unclear.

    In a movie cells are seen in nearly all planes, and move away from their first
    place. In a volume an object overlaps itself in adjacent planes, and gets smaller
    before it ends. Unclear are cells that stand still, labels that are numbered anew in
    each plane, objects as thick as the whole volume, and fewer than three planes.
    """
    if labels.ndim != 3 or len(labels) < 3:
        return None
    step = max(1, math.ceil(math.sqrt(labels.size / MAX_PIXELS)))
    areas, overlaps, centres = _measure_labels_by_plane(labels[:, ::step, ::step])
    present = areas > 0
    both = present[1:] & present[:-1]
    if not both.any():
        return None
    is_tracked = present.mean(axis=0) >= NEARLY_ALL
    if is_tracked.mean() >= MOST:
        steps = np.linalg.norm(np.diff(centres, axis=0), axis=-1)[both]
        spread = np.linalg.norm(centres[present].std(axis=0))
        is_same_cell = np.median(steps) <= MAX_STEP * spread
        shifts = _measure_shifts(areas, centres)[is_tracked]
        is_elsewhere = np.median(shifts) >= MIN_SHIFT
        return "time" if is_same_cell and is_elsewhere else None
    smaller = np.where(both, np.minimum(areas[1:], areas[:-1]), 0).sum(axis=0)
    goes_on = both.any(axis=0)
    shares = overlaps.sum(axis=0)[goes_on] / smaller[goes_on]
    ends = _compute_relative_end_areas(areas)
    is_rounded = len(ends) >= MOST * len(shares) and np.median(ends) <= MAX_END
    return "z" if is_rounded and np.median(shares) >= MIN_OVERLAP else None


def _measure_labels_by_plane(
    labels: NDArray[Any],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Return areas (T, K) of K labels in T planes, overlaps (T - 1, K), and centres.

    Centres (T, K, 2) are (y, x) in pixels, 0 where the label is absent. An overlap is
    the number of a label's pixels in a plane that have this label in the next plane,
    too.
    """
    n_planes = len(labels)
    planes, y, x = np.nonzero(labels > 0)
    codes, ids = pd.factorize(labels[planes, y, x])
    shape = n_planes, len(ids)
    places = planes * len(ids) + codes
    size = n_planes * len(ids)
    areas = np.bincount(places, minlength=size).reshape(shape)
    sums = [np.bincount(places, at, size).reshape(shape) for at in (y, x)]
    centres = np.stack(sums, axis=-1) / np.maximum(areas, 1)[..., None]
    numbers = np.full(labels.shape, -1)
    numbers[planes, y, x] = codes
    same = (numbers[1:] == numbers[:-1]) & (numbers[1:] >= 0)
    below = np.nonzero(same)[0]
    shared = below * len(ids) + numbers[1:][same]
    overlaps = np.bincount(shared, minlength=size - len(ids))
    return areas, overlaps.reshape(n_planes - 1, len(ids)), centres


def _measure_shifts(
    areas: NDArray[np.int64], centres: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return each label's largest distance from its first place, in diameters, (K,).

    ``areas`` (T, K) and ``centres`` (T, K, 2) are those of each plane. The diameter is
    that of a disc of the label's largest area.
    """
    present, every = areas > 0, np.arange(areas.shape[1])
    first = centres[present.argmax(axis=0), every]
    far = np.where(present, np.linalg.norm(centres - first, axis=-1), 0).max(axis=0)
    diameters = 2 * np.sqrt(areas.max(axis=0) / math.pi)
    return np.asarray(far / diameters)


def _compute_relative_end_areas(areas: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the mean area of the ends of each label by its largest area, (K,).

    ``areas`` (planes, labels): number of pixels. An end is a part beside a plane
    without the label; labels without ends are left out.
    """
    present = areas > 0
    absent = ~present
    is_end = np.zeros_like(present)
    is_end[1:] |= present[1:] & absent[:-1]
    is_end[:-1] |= present[:-1] & absent[1:]
    n_ends = is_end.sum(axis=0)
    ends = np.where(is_end, areas, 0).sum(axis=0) / np.maximum(n_ends, 1)
    return np.asarray((ends / areas.max(axis=0))[n_ends > 0])
