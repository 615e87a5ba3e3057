"""Take away what new rows differ in from fitted rows of the same kind: a batch effect.

As Symphony does (Kang et al., Nature Communications 12, 5890, 2021), in a plain form:
the mean difference in each soft cluster of fitted rows is taken away.  It rests on the
new rows being of about the same kinds, and is done only on request.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.new_rows.sample import k_means

_CLUSTERS = 20
_ROWS_OF_CLUSTER = 15
"""Fitted rows that a cluster has at least, on average."""
_WIDTH = 0.2
"""Of the soft clusters, in twice the cosine distance: Harmony's sigma is 0.1."""
_RIDGE = 50.0
"""Rows that a difference is shared with that do not differ."""
_ROUNDS = 10


def without_shift(
    rows: NDArray[np.floating], fitted: NDArray[np.floating], random_state: int = 0
) -> NDArray[np.float32]:
    """Return new rows (Q, D) of one batch without what they differ in, float32."""
    n_clusters = max(1, min(_CLUSTERS, len(fitted) // _ROWS_OF_CLUSTER))
    centres = _directions(
        k_means(_directions(fitted).astype(np.float32), n_clusters, random_state)
    )
    fixed = _shares(fitted, centres)
    means = fixed.T @ fitted / np.maximum(fixed.sum(axis=0), 1e-12)[:, None]
    moved = np.asarray(rows, np.float64)
    for _ in range(_ROUNDS):
        shares = _shares(moved, centres)
        sizes = shares.sum(axis=0)[:, None]
        shift = (shares.T @ rows - sizes * means) / (sizes + _RIDGE)
        moved = rows - shares @ shift
    return np.asarray(moved, np.float32)


def _shares(
    rows: NDArray[np.floating], centres: NDArray[np.floating]
) -> NDArray[np.float64]:
    """Return how much each row is of each cluster, (n, C); a row sums to 1."""
    distances = 2 * (1 - _directions(rows) @ centres.T)
    shares = np.exp(-(distances - distances.min(axis=1, keepdims=True)) / _WIDTH)
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def _directions(rows: NDArray[np.floating]) -> NDArray[np.float64]:
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.maximum(length, 1e-12), np.float64)
