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
SOFTLY = 1.25
"""From the zoom at which a name finds room, times this, it is seen in full."""


def centers(
    embedding: NDArray[np.floating], labels: NDArray[np.integer], ids: Sequence[int]
) -> NDArray[np.float64]:
    """Return for each cluster the one of its points that is nearest its median.

    A median alone may lie in the gap of a bent cluster: (len(ids), d).
    """
    order = np.argsort(labels, kind="stable")
    begins = np.searchsorted(labels[order], ids, side="left")
    ends = np.searchsorted(labels[order], ids, side="right")
    places = np.zeros((len(ids), embedding.shape[1]))
    for number, (begin, end) in enumerate(zip(begins, ends, strict=True)):
        points = embedding[order[begin:end]]
        away = ((points - np.median(points, axis=0)) ** 2).sum(axis=1)
        places[number] = points[int(away.argmin())]
    return places


def radii(
    embedding: NDArray[np.floating],
    labels: NDArray[np.integer],
    ids: Sequence[int],
    places: NDArray[np.floating],
) -> NDArray[np.float64]:
    """Return how far most points of each cluster lie from its place: (len(ids),)."""
    order = np.argsort(labels, kind="stable")
    begins = np.searchsorted(labels[order], ids, side="left")
    ends = np.searchsorted(labels[order], ids, side="right")
    distances = np.zeros(len(ids))
    for number, (begin, end) in enumerate(zip(begins, ends, strict=True)):
        away = embedding[order[begin:end]] - places[number]
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
