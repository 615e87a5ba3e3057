"""Place names on the map without overlaps, by zoom."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

RADIUS_SHARE = 0.8
"""Share of a cluster's points that its radius holds."""
CLEAR, COVERED = 3.0, 2.0
"""Radii of a cluster, in half heights of its name: a name stands in the middle of a
larger one, and above a smaller one, which it would hide."""
MAX_ROWS = 1_000
"""About so many points of a cluster are used to find its position."""
SOFTLY = 1.25
"""From the zoom at which a name finds room, times this, it is seen in full."""


def group_rows(groups: NDArray[np.integer]) -> tuple[list[int], list[NDArray[np.intp]]]:
    """Return the groups (N,) of int that have points, ascending, and rows of each.

    Below 0 is no group.
    """
    if groups.max(initial=0) < np.iinfo(np.int16).max:
        groups = groups.astype(np.int16)  # which are sorted many times as quickly
    order = np.argsort(groups, kind="stable")
    ordered = groups.take(order)
    begins = np.flatnonzero(np.diff(ordered, prepend=ordered[:1] - 1))
    parts = [
        rows[:: max(1, len(rows) // MAX_ROWS)] for rows in np.split(order, begins[1:])
    ]
    present = ordered[begins].tolist()
    return [n for n in present if n >= 0], parts[sum(n < 0 for n in present) :]


def centers_and_radii(
    embedding: NDArray[np.floating], parts: Sequence[NDArray[np.intp]]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return where each of some parts is, (m, d), and how far most of it lies: (m,).

    The position is that of a point, the nearest to the median: a ring has none in its
    middle.
    """
    positions = np.empty((len(parts), embedding.shape[1]))
    radii = np.zeros(len(parts))
    for number, rows in enumerate(parts):
        points = embedding.take(rows, axis=0)
        distances = ((points - np.median(points, axis=0)) ** 2).sum(axis=1)
        positions[number] = points[int(distances.argmin())]
        distances = np.linalg.norm(points - positions[number], axis=1)
        radii[number] = np.quantile(distances, RADIUS_SHARE)
    return positions, radii


def label_offsets(
    radii: NDArray[np.floating], half_heights: NDArray[np.floating]
) -> NDArray[np.float64]:
    """Return the height of each name above its position: (m,) pixels, as all of these.

    By the radius of its cluster, as that is drawn, and half its own height.
    """
    share = (CLEAR - radii / half_heights) / (CLEAR - COVERED)
    above: NDArray[np.float64] = np.clip(share, 0.0, 1.0) * (radii + half_heights)
    return above


def zooms_without_overlap(
    positions: NDArray[np.floating], halves: NDArray[np.floating]
) -> NDArray[np.float64]:
    """Return how many times as near each name overlaps no earlier one: (m,).

    Positions (m, 2) are pixels, down and across, the most important first; infinite
    where there never is room.  Halves are half the height and half the width of each,
    in pixels.  Who comes nearer never sees a name vanish.
    """
    zooms = np.zeros(len(positions))
    for number in range(1, len(positions)):
        distances = np.abs(positions[:number] - positions[number])
        with np.errstate(divide="ignore"):
            parting = ((halves[:number] + halves[number]) / distances).min(axis=1)
        touched = parting > zooms[:number]  # seen before they part
        zooms[number] = parting[touched].max(initial=0.0)
    return zooms


def opacity(zooms: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return how strongly each name is seen, (m,) from 0 to 1; see above."""
    with np.errstate(divide="ignore"):
        return np.clip(-np.log(zooms) / np.log(SOFTLY), 0.0, 1.0)
