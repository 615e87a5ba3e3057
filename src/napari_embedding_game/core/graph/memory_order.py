"""The order in which a game keeps its points.

An iteration reads the position of every neighbour of every point.  Points that are near
on the start layout are stored next to one another, so most reads hit the processor's
cache, and a layout takes a tenth less time (``benchmarks/layout_speed.py``, b9dd4b2).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.graph.edge_loops import by_group

MIN_POINTS = 20_000
"""Points; fewer are near in memory in any order."""
CELL = 1024
"""Points of a cell, about: as many as a loop takes at a time."""


def memory_order(layout: NDArray[np.floating]) -> NDArray[np.intp]:
    """Return the order, cell by cell of the layout (N, d): strips, each sorted."""
    n = len(layout)
    return np.arange(n) if n < MIN_POINTS else _by_cell(layout, n / CELL)


def order_groups(
    layout: NDArray[np.floating], group: NDArray[np.integer]
) -> NDArray[np.intp]:
    """Return the order of points (N,) whose groups lie at a layout (G, d).

    Points of one ``group`` (N,) lie together.
    """
    ranks = np.empty(len(layout), np.int32)
    by_cell = _by_cell(layout, len(group) / CELL)
    ranks[by_cell] = np.arange(len(layout), dtype=np.int32)
    return np.asarray(by_group(ranks[group], len(layout))[1])


def _by_cell(layout: NDArray[np.floating], n_cells: float) -> NDArray[np.intp]:
    n = len(layout)
    rank = np.empty(n, np.intp)
    rank[np.argsort(layout[:, 0], kind="stable")] = np.arange(n)
    n_strips = max(1, round(np.sqrt(n_cells)))
    order: NDArray[np.intp] = np.lexsort((layout[:, 1], rank * n_strips // n))
    return order
