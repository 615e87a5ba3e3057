"""Which names of clusters find room on the map, and where."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

LETTER, LINE, AIR = 0.7, 1.5, 4.0
"""Width of a letter and height of a line, in sizes of the type; free pixels around."""


def centers(
    embedding: NDArray[np.floating], labels: NDArray[np.integer], ids: Sequence[int]
) -> NDArray[np.float64]:
    """Return for each cluster the one of its points that is nearest its median.

    A median alone may lie in the gap of a bent cluster: (len(ids), 2).
    """
    places = np.zeros((len(ids), 2))
    for number, cluster in enumerate(ids):
        points = embedding[labels == cluster][:, :2]
        away = ((points - np.median(points, axis=0)) ** 2).sum(axis=1)
        places[number] = points[int(away.argmin())]
    return places


def with_room(
    places: NDArray[np.floating], names: Sequence[str], size: float
) -> NDArray[np.bool_]:
    """Return which names can be written without touching another: (m,) bool.

    Parameters
    ----------
    places : (m, 2)
        Row and column of the middle of each name, in pixels of the canvas.
    names : sequence of str
        The most important first: it gets the room.
    size : float
        Of the type, in pixels.
    """
    widths = np.array([LETTER * size * max(len(name), 1) for name in names])
    half = np.column_stack([np.full(len(names), LINE * size), widths]) / 2 + AIR / 2
    shown = np.zeros(len(names), bool)
    for number in range(len(names)):
        apart = np.abs(places[shown] - places[number])
        touches = (apart < half[shown] + half[number]).all(axis=1)
        shown[number] = not touches.any()
    return shown
