"""Remove the batch effect between new rows and fitted rows of the same kind.

As Symphony does (Kang et al., Nature Communications 12, 5890, 2021), in a plain form:
the mean difference in each soft cluster of fitted rows is subtracted.  The correction
assumes that the new rows are of about the same kinds, and is done only on request.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.new_rows.sample import find_k_means_centres

_CLUSTERS = 20
_ROWS_OF_CLUSTER = 15
"""Least mean number of fitted rows of a cluster."""
_WIDTH = 0.2
"""Width of the soft clusters in twice the cosine distance; Harmony's sigma is 0.1."""
_RIDGE = 50.0
"""Number of rows without a difference that are added to each cluster's mean."""
_ROUNDS = 10


def remove_batch_shift(
    rows: NDArray[np.floating], fitted: NDArray[np.floating], random_state: int = 0
) -> NDArray[np.float32]:
    """Return new rows (Q, D) of a batch with its shift removed, float32.

    ``fitted`` (N, D): the fitted rows, towards whose cluster means the new rows are
    moved; clusters with few new rows move less.  ``rows`` is not changed.  The new
    rows' shares in the clusters are computed again ``_ROUNDS`` times.
    """
    n_clusters = max(1, min(_CLUSTERS, len(fitted) // _ROWS_OF_CLUSTER))
    centres = _scale_to_unit_length(
        find_k_means_centres(
            _scale_to_unit_length(fitted).astype(np.float32), n_clusters, random_state
        )
    )
    fixed = _compute_cluster_shares(fitted, centres)
    means = fixed.T @ fitted / np.maximum(fixed.sum(axis=0), 1e-12)[:, None]
    moved = np.asarray(rows, np.float64)
    for _ in range(_ROUNDS):
        shares = _compute_cluster_shares(moved, centres)
        sizes = shares.sum(axis=0)[:, None]
        shift = (shares.T @ rows - sizes * means) / (sizes + _RIDGE)
        moved = rows - shares @ shift
    return np.asarray(moved, np.float32)


def _compute_cluster_shares(
    rows: NDArray[np.floating], centres: NDArray[np.floating]
) -> NDArray[np.float64]:
    """Return the share of each row (n, D) in each soft cluster, (n, C).

    ``centres`` (C, D) have unit length.  The shares of a row sum to 1.
    """
    distances = 2 * (1 - _scale_to_unit_length(rows) @ centres.T)
    shares = np.exp(-(distances - distances.min(axis=1, keepdims=True)) / _WIDTH)
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def _scale_to_unit_length(rows: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return the rows divided by their lengths, float64; rows of zeros stay zeros."""
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.maximum(length, 1e-12), np.float64)
