"""Place names on the map, and fade out names that overlap at the present zoom."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

RADIUS_SHARE = 0.8
"""Share of a cluster's points within its radius."""
CLEAR, COVERED = 3.0, 2.0
"""Radii of a cluster, in half heights of its name: from the first on the name is in the
middle of the cluster, and up to the second it is above, since it would hide points."""
MAX_ROWS = 1_000
"""About so many points of a cluster are used to find its position."""
FADE_ZOOM = 1.25
"""A name is opaque from the zoom at which it has room times this factor."""


def find_rows_by_group(
    groups: NDArray[np.integer],
) -> tuple[list[int], list[NDArray[np.intp]]]:
    """Return the distinct groups in ascending order, and row indices of each group.

    ``groups`` (N,) has the group of each row.  Rows with a negative group are left out;
    of a large group about ``MAX_ROWS`` rows are returned, evenly spaced.
    """
    if groups.max(initial=0) < np.iinfo(np.int16).max:
        groups = groups.astype(np.int16)  # small integers are sorted much faster
    order = np.argsort(groups, kind="stable")
    ordered = groups.take(order)
    begins = np.flatnonzero(np.diff(ordered, prepend=ordered[:1] - 1))
    rows_by_group = [
        rows[:: max(1, len(rows) // MAX_ROWS)] for rows in np.split(order, begins[1:])
    ]
    present = ordered[begins].tolist()
    n_negative = sum(n < 0 for n in present)
    return present[n_negative:], rows_by_group[n_negative:]


def compute_centers_and_radii(
    embedding: NDArray[np.floating], rows_by_group: Sequence[NDArray[np.intp]]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return centers (m, d) and radii (m,) of m groups of rows of an embedding (N, d).

    A center is the point of the group nearest to the group's median, since a ring has
    no points in its middle.  The share ``RADIUS_SHARE`` of a group is within the
    group's radius.
    """
    positions = np.empty((len(rows_by_group), embedding.shape[1]))
    radii = np.zeros(len(rows_by_group))
    for number, rows in enumerate(rows_by_group):
        points = embedding.take(rows, axis=0)
        distances = ((points - np.median(points, axis=0)) ** 2).sum(axis=1)
        positions[number] = points[int(distances.argmin())]
        distances = np.linalg.norm(points - positions[number], axis=1)
        radii[number] = np.quantile(distances, RADIUS_SHARE)
    return positions, radii


def compute_label_offsets(
    radii: NDArray[np.floating], half_heights: NDArray[np.floating]
) -> NDArray[np.float64]:
    """Return the offsets (m,) of names above the centers of their clusters, in pixels.

    ``radii`` of the clusters and ``half_heights`` of the names are (m,) in pixels.  The
    offset is 0 from ``CLEAR`` half heights on; up to ``COVERED`` half heights the name
    is above the whole cluster, and between the two the offset is interpolated.
    """
    share = (CLEAR - radii / half_heights) / (CLEAR - COVERED)
    above: NDArray[np.float64] = np.clip(share, 0.0, 1.0) * (radii + half_heights)
    return above


def find_zooms_without_overlap(
    positions: NDArray[np.floating], half_sizes: NDArray[np.floating]
) -> NDArray[np.float64]:
    """Return for each name the zoom factor (m,) from which on the name has room.

    The factor is relative to the present zoom.  A name has room where it overlaps no
    visible name before it, as these are more important.  The first name has 0, and a
    name without room at any zoom has infinity.  Zooming in never makes a name overlap
    again.

    ``positions`` (m, 2) of the names' centers, down and across, and ``half_sizes``
    (m, 2), half the height and half the width, are in pixels.
    """
    zooms = np.zeros(len(positions))
    for number in range(1, len(positions)):
        distances = np.abs(positions[:number] - positions[number])
        with np.errstate(divide="ignore"):
            needed = half_sizes[:number] + half_sizes[number]
            parting = (needed / distances).min(axis=1)
        is_hidden = parting > zooms[:number]  # the other name appears before they part
        zooms[number] = parting[is_hidden].max(initial=0.0)
    return zooms


def compute_label_opacities(zooms: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return the opacities (m,) of names from 0, without room, to 1.

    ``zooms`` (m,) are those of :func:`find_zooms_without_overlap`: from factor 1 on a
    name has opacity 0, up to 1 / ``FADE_ZOOM`` it has 1, and it fades between the two.
    """
    with np.errstate(divide="ignore"):
        return np.clip(-np.log(zooms) / np.log(FADE_ZOOM), 0.0, 1.0)
