"""Which names of clusters find room on the map, where, and at which zoom."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

SOFTLY = 1.25
"""From the zoom at which a name finds room, times this, it is seen in full."""


def centers(
    embedding: NDArray[np.floating], labels: NDArray[np.integer], ids: Sequence[int]
) -> NDArray[np.float64]:
    """Return for each cluster the one of its points that is nearest its median.

    A median alone may lie in the gap of a bent cluster: (len(ids), 2).
    """
    order = np.argsort(labels, kind="stable")
    begins = np.searchsorted(labels[order], ids, side="left")
    ends = np.searchsorted(labels[order], ids, side="right")
    places = np.zeros((len(ids), 2))
    for number, (begin, end) in enumerate(zip(begins, ends, strict=True)):
        points = embedding[order[begin:end], :2]
        away = ((points - np.median(points, axis=0)) ** 2).sum(axis=1)
        places[number] = points[int(away.argmin())]
    return places


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


def strength(zoom: float, zooms: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return how strongly each name is seen at a zoom: (m,) from 0 to 1."""
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.log(zoom / zooms) / np.log(SOFTLY)
    return np.clip(np.nan_to_num(share, nan=0.0, posinf=1.0, neginf=0.0), 0.0, 1.0)
