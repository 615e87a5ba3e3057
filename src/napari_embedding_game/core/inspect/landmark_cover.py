"""Whether the landmarks of a finished map stand in for its points.

They repel the points in the place of the points themselves (Eq. 3): that is a game of
landmarks only where these lie among the points and are enough of them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from napari_embedding_game.core.energy import pair_loops
from napari_embedding_game.core.energy.pair_functions import KERNELS

OUTSIDE = 2.0
"""Distance to its nearest point from which a landmark pushes a fifth, at most, of what
it pushes a point beside it (the kernel 1 / (1 + u^2))."""
_MOST_PAIRS = 10_000_000
_FEWEST_ROWS, _MOST_ROWS = 8, 2_000


def outside_share(
    embedding: NDArray[np.floating], landmarks: NDArray[np.floating]
) -> float:
    """Return the share of the landmarks (L, d) that lie far from all points (N, d)."""
    if not len(landmarks):
        return 0.0
    return float((cKDTree(embedding).query(landmarks)[0] > OUTSIDE).mean())


def bound_share(
    embedding: NDArray[np.floating], landmarks: NDArray[np.floating], kernel: str
) -> float:
    """Return S_yz^2 / S_zz as a share of the sum over all pairs, about 0 to 1.

    Both sums are those of some points, evenly drawn, where there are many.

    Parameters
    ----------
    embedding : (N, d) float
    landmarks : (L, d) float
    kernel : str
        A key of ``pair_functions.KERNELS``.
    """
    y, z = (np.ascontiguousarray(places) for places in (embedding, landmarks))
    n_rows = max(_FEWEST_ROWS, min(len(y), _MOST_ROWS, _MOST_PAIRS // len(y)))
    some = np.ascontiguousarray(y[:: max(1, len(y) // n_rows)])
    drawn = len(y) / len(some)
    of_pairs = drawn * kernel_sum(kernel, some, y)
    to_landmarks = drawn * kernel_sum(kernel, some, z)
    return to_landmarks**2 / kernel_sum(kernel, z, z) / of_pairs


def kernel_sum(kernel: str, a: NDArray[np.floating], b: NDArray[np.floating]) -> float:
    """Return the sum of a kernel over all pairs of points of (m, d) and of (n, d).

    ``a`` and ``b``: C-contiguous, of one type, d at most 3.
    """
    columns = np.ascontiguousarray(b.T)
    chunks = pair_loops.n_chunks(len(a))
    # The loop of the game, which is there: it also writes gradients, of no use here.
    gradient, pull = np.empty_like(a), np.zeros((chunks, *columns.shape), a.dtype)
    sums = np.empty(chunks)
    pair_loops.repel(0, chunks, KERNELS[kernel], a, columns, gradient, pull, sums)
    return float(sums.sum())
