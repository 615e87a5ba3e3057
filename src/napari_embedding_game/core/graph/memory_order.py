"""Order points so that those near on the start layout are near in memory.

An iteration reads the position of every neighbour of every point.  Where near points
are stored next to one another most reads hit the processor's cache, and a layout takes
a tenth less time (``benchmarks/layout_speed.py``, b9dd4b2).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.graph.edge_loops import sort_by_group

MIN_POINTS = 20_000
"""Smallest number of points to be ordered; fewer are near in memory in any order."""
POINTS_PER_BIN = 1024
"""About the number of points in a bin: as many as a loop takes at a time."""


def memory_order(layout: NDArray[np.floating]) -> NDArray[np.intp]:
    """Return the order (N,) that sorts points of a layout (N, d) bin by bin.

    Bins are strips along the first axis, in each of which points are sorted along the
    second axis.  Below ``MIN_POINTS`` points the order is unchanged.
    """
    n = len(layout)
    return (
        np.arange(n) if n < MIN_POINTS else _sort_by_strip(layout, n / POINTS_PER_BIN)
    )


def order_points_by_group(
    layout: NDArray[np.floating], group: NDArray[np.integer]
) -> NDArray[np.intp]:
    """Return an order of points (N,) in which each group lies together.

    ``layout`` (G, d): positions of the groups, which follow one another bin by bin;
    ``group`` (N,): the group of each point.
    """
    ranks = np.empty(len(layout), np.int32)
    by_bin = _sort_by_strip(layout, len(group) / POINTS_PER_BIN)
    ranks[by_bin] = np.arange(len(layout), dtype=np.int32)
    return np.asarray(sort_by_group(ranks[group], len(layout))[1])


def _sort_by_strip(layout: NDArray[np.floating], n_bins: float) -> NDArray[np.intp]:
    """Return the order of points by strip, and inside a strip by the second axis.

    About sqrt(n_bins) strips along the first axis of ``layout`` (N, d) have equally
    many points each.
    """
    n = len(layout)
    rank = np.empty(n, np.intp)
    rank[np.argsort(layout[:, 0], kind="stable")] = np.arange(n)
    n_strips = max(1, round(np.sqrt(n_bins)))
    order: NDArray[np.intp] = np.lexsort((layout[:, 1], rank * n_strips // n))
    return order
