"""Place cluster labels on the map without overlaps, by zoom."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

MOST_OF_IT = 0.8
"""Share of a cluster's points that its radius holds."""
CLEAR, COVERED = 3.0, 2.0
"""Radii of a cluster, in half heights of its name: a name stands in the middle of a
larger one, and above a smaller one, which it would hide."""
MOST_ROWS, LEAST_ROWS = 50_000, 200
"""Of very many points so many tell where clusters are, and so many of a small one."""
SOFTLY = 1.25
"""From the zoom at which a name finds room, times this, it is seen in full."""


def members(
    labels: NDArray[np.integer], ids: Sequence[int], most: int = MOST_ROWS
) -> list[NDArray[np.intp]]:
    """Return rows of each cluster, by which its place is found.

    All of them, or of very many points some that stand for all: at least ``LEAST_ROWS``
    of each cluster that has so many.

    Parameters
    ----------
    labels : (N,) int
        Cluster of each point.
    ids : sequence of int
        The clusters, each of which has points.
    most : int
        About so many rows of all clusters together are enough.
    """
    stride = max(1, len(labels) // most)
    rows = np.arange(0, len(labels), stride)
    if stride > 1:  # by lot: rows may be of two samples in turns
        rows += np.random.default_rng(0).integers(0, stride, len(rows))
        np.minimum(rows, len(labels) - 1, out=rows)
    some = labels.take(rows)
    order = np.argsort(some, kind="stable")
    rows, in_order = rows.take(order), some.take(order)
    begins = np.searchsorted(in_order, ids, side="left")
    ends = np.searchsorted(in_order, ids, side="right")
    parts = [rows[b:e] for b, e in zip(begins, ends, strict=True)]
    few = [i for i, part in zip(ids, parts, strict=True) if len(part) < LEAST_ROWS]
    if stride == 1 or not few:
        return parts
    inside = np.flatnonzero(np.isin(labels, few))
    of_inside = labels.take(inside)
    whole = {one: inside[of_inside == one] for one in few}
    return [whole.get(i, part) for i, part in zip(ids, parts, strict=True)]


def centers(
    embedding: NDArray[np.floating], parts: Sequence[NDArray[np.intp]]
) -> NDArray[np.float64]:
    """Return for each cluster the one of its points that is nearest its median.

    A median alone may lie in the gap of a bent cluster: (len(parts), d).

    Parameters
    ----------
    embedding : (N, d) float
    parts : sequence of (m,) int
        Rows of each cluster, see :func:`members`.
    """
    places = np.zeros((len(parts), embedding.shape[1]))
    for number, rows in enumerate(parts):
        points = embedding.take(rows, axis=0)
        away = ((points - np.median(points, axis=0)) ** 2).sum(axis=1)
        places[number] = points[int(away.argmin())]
    return places


def radii(
    embedding: NDArray[np.floating],
    parts: Sequence[NDArray[np.intp]],
    places: NDArray[np.floating],
) -> NDArray[np.float64]:
    """Return how far most points of each cluster lie from its place: (len(parts),).

    Parameters are those of :func:`centers`, and what it returns.
    """
    distances = np.zeros(len(parts))
    for number, rows in enumerate(parts):
        away = embedding.take(rows, axis=0) - places[number]
        distances[number] = np.quantile(np.linalg.norm(away, axis=1), MOST_OF_IT)
    return distances


def lifts(
    radii: NDArray[np.floating], half_heights: NDArray[np.floating]
) -> NDArray[np.float64]:
    """Return how far above its place each name stands: (m,) pixels.

    Parameters
    ----------
    radii : (m,)
        Of the clusters as they are drawn, in pixels.
    half_heights : (m,)
        Of their names, in pixels.
    """
    share = (CLEAR - radii / half_heights) / (CLEAR - COVERED)
    above: NDArray[np.float64] = np.clip(share, 0.0, 1.0) * (radii + half_heights)
    return above


def zooms_with_room(
    places: NDArray[np.floating], halves: NDArray[np.floating]
) -> NDArray[np.float64]:
    """Return from which zoom on each name touches none of those before it: (m,).

    Who comes nearer never sees a name vanish.

    Parameters
    ----------
    places : (m, 2)
        Middle of each name in the world, the most important first.
    halves : (m, 2)
        Half its height and half its width on the canvas, in pixels.

    Returns
    -------
    array, shape (m,)
        Pixels for each unit of the world; infinite where there never is room.
    """
    zooms = np.zeros(len(places))
    for number in range(1, len(places)):
        apart = np.abs(places[:number] - places[number])
        with np.errstate(divide="ignore"):
            parting = ((halves[:number] + halves[number]) / apart).min(axis=1)
        touched = parting > zooms[:number]  # seen before they part
        zooms[number] = parting[touched].max(initial=0.0)
    return zooms


def opacity(zoom: float, zooms: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return how strongly each name is seen at a zoom: (m,) from 0 to 1."""
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.log(zoom / zooms) / np.log(SOFTLY)
    return np.clip(np.nan_to_num(share, nan=0.0, posinf=1.0, neginf=0.0), 0.0, 1.0)
