"""The order in which a game keeps its points.

An iteration reads the position of every neighbour of every point.  Points that are near
on the start layout are stored next to one another, so most reads hit the processor's
cache, and a layout takes a tenth less time (``benchmarks/layout_speed.py``, b9dd4b2).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

MIN_POINTS = 20_000
"""Points; fewer are near in memory in any order."""
CELL = 1024
"""Points of a cell, about: as many as a loop takes at a time."""


def memory_order(layout: NDArray[np.floating]) -> NDArray[np.intp]:
    """Return the order, cell by cell of the layout (N, d): strips, each sorted."""
    n = len(layout)
    if n < MIN_POINTS:
        return np.arange(n)
    rank = np.empty(n, np.intp)
    rank[np.argsort(layout[:, 0], kind="stable")] = np.arange(n)
    n_strips = round(np.sqrt(n / CELL))
    order: NDArray[np.intp] = np.lexsort((layout[:, 1], rank * n_strips // n))
    return order
