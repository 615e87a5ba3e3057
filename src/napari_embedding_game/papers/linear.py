"""Compute linear maps as starts: principal components by a game, random projections."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from napari_embedding_game.core.graph.principal_components import pad_columns

from .learners import best_response, mirror_descent, play_rounds

ROUNDS = 10
"""T of the paper's experiment."""
Matrix = NDArray[np.float64]


def gradient_pca(
    X: Any, n_components: int, n_neighbors: int, random_state: int
) -> Matrix:
    """Return rows (N, D) projected on directions found by a game of ``ROUNDS``, (N, d).

    The game is f(U) = |U U^T X - X|^2 against its conjugate, OMD against BestResp+
    (paper 2, Alg. 6).  As in the paper's experiment (Remark 6.23) U starts with norm 1
    and the gradient is scaled to norm 1, so that G = 1.  The step R / (G sqrt(T)) takes
    R = 1 + sqrt(k), the largest distance of the start from a U (D, k) with orthogonal
    columns; the paper has R = 25 for every k.  The last U is then replaced by the
    nearest orthogonal matrix (Remark 1.8).

    ``n_components``: d; k is the number of components, d or D where that is less.
    ``n_neighbors`` is not used.
    """
    rng = np.random.default_rng(random_state)
    k = min(n_components, X.shape[1])
    start = rng.normal(size=(X.shape[1], k))
    start /= np.linalg.norm(start)
    rows = to_centred_operator(X)

    def gradient(U: Matrix) -> Matrix:
        """Return the gradient of f at ``U`` (D, k), scaled to norm 1."""
        CU = rows.T @ (rows @ U)
        slope = 2 * (CU @ (U.T @ U) + U @ (U.T @ CU) - 2 * CU)  # Theorem 1.7
        return np.asarray(slope / max(float(np.linalg.norm(slope)), 1e-300))

    x = mirror_descent(start, float((1 + np.sqrt(k)) / np.sqrt(ROUNDS)))
    # A further round yields the result of the step after round T.
    *_, (U, _) = play_rounds(x, best_response(gradient), np.ones(ROUNDS + 1), "y")
    left, _, right = np.linalg.svd(U, full_matrices=False)
    return pad_columns(rows @ np.asarray(left @ right), n_components)


def random_projection(
    X: Any, n_components: int, n_neighbors: int, random_state: int
) -> Matrix:
    """Return rows (N, D) projected on normally distributed directions, (N, d).

    There are at most D directions; further columns are filled up.  ``n_neighbors`` is
    not used, but all starts have it.
    """
    from sklearn.random_projection import GaussianRandomProjection

    n = min(n_components, X.shape[1])
    model = GaussianRandomProjection(n, random_state=random_state)
    return pad_columns(model.fit_transform(X), n_components)


def to_centred_operator(X: Any) -> LinearOperator:
    """Return the rows less their mean as a linear operator (N, D).

    ``X`` (N, D) may be sparse, as the operator does not make it dense.
    """
    mean = np.asarray(X.mean(axis=0), dtype=np.float64).reshape(1, -1)
    ones = aslinearoperator(np.ones((X.shape[0], 1)))
    return aslinearoperator(X) - ones @ aslinearoperator(mean)
