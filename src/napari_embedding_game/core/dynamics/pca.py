"""Principal components by attractions and repulsions (paper 3, section 4).

The layout Y starts anywhere and goes down the gradient of
|C (G_X - G_Y) C|^2, where G_X = X X^T and G_Y = Y Y^T hold the inner products of
the rows and C takes the mean away:

    gradient = -4 C (G_X - G_Y) C Y                          (Eq. 4)
             = -4 ( X_c (X_c^T Y) - Y_c (Y_c^T Y) )

Row i of the first product pulls y_i towards what is like it in the data, row i of
the second pushes it away from what is already near.  Read from right to left it
takes N D d steps: no N x N matrix is ever there.

Theorem 1: it ends at the principal components, turned or mirrored.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.graph.neighbors import check_varied

Layout = NDArray[np.float64]

STEP = 0.75
"""Of the longest stable step, 1 / (4 largest eigenvalue of G_X); at 1 it swings."""
START = 0.1
"""Length of the start, relative to the longest principal component."""
_POWER_ITERATIONS = 30
_OVERSAMPLING = 10


def principal_steps(
    X: Any,
    n_components: int = 2,
    *,
    low_rank: int | None = None,
    start: NDArray[np.floating] | None = None,
    random_state: int = 0,
) -> Iterator[Layout]:
    """Yield the layout at the start and after each step, without end.

    Parameters
    ----------
    X : (N, D) array or sparse matrix
        Finite numbers; their mean need not be 0.
    n_components : int
        d, from 1 to D.
    low_rank : int, optional
        Pull by an approximation of G_X of this rank instead (Lemma 3): a step then
        takes N low_rank d.  At least d.
    start : (N, d) array, optional
        Where the points start, in any unit; at random if not given.
    random_state : int
        Seed of all that is drawn at random.

    Yields
    ------
    (N, d) float64
        Of mean 0, in the unit of the data; a copy each time.  The first has a
        standard deviation of ``START`` times the longest component's.

    Raises
    ------
    InputError
        A number out of its range, or rows that are all the same.
    """
    _check(X, n_components, low_rank)
    rng = np.random.default_rng(random_state)
    pulling = X if low_rank is None else low_rank_rows(X, low_rank, rng)
    largest = _largest_eigenvalue(pulling, rng)
    n_rows = X.shape[0]
    if start is None:
        y = _centred(rng.normal(size=(n_rows, n_components)))
    else:
        y = _centred(start / start.std())
    y *= START * np.sqrt(largest / n_rows)
    while True:
        yield y.copy()
        y -= STEP / (4 * largest) * principal_gradient(pulling, y)


def principal_gradient(X: Any, y: Layout) -> Layout:
    """Return -4 C (G_X - G_Y) C Y, (N, d), in a time that is linear in N.

    Parameters
    ----------
    X : (N, D) array or sparse matrix
        Rows whose inner products pull; :func:`low_rank_rows` for the approximation.
    y : (N, d) array
        The layout.
    """
    y = _centred(y)
    # As y has mean 0, X^T y is X_c^T y: the data need not be centred.
    return -4 * (_centred(X @ (X.T @ y)) - y @ (y.T @ y))


def principal_energy(X: Any, y: Layout) -> float:
    """Return |C (G_X - G_Y) C|^2 - |C G_X C|^2, of which y changes nothing but this.

    It is 0 for points on one spot.  Its minimum is minus the sum of the squares of
    the d largest eigenvalues of C G_X C.  Only D x d and d x d products are needed;
    the term that is left out would take D x D.

    Parameters
    ----------
    X : (N, D) array or sparse matrix
        Rows whose inner products pull.
    y : (N, d) array
        The layout.
    """
    y = _centred(y)
    return float(((y.T @ y) ** 2).sum() - 2 * ((X.T @ y) ** 2).sum())


def low_rank_rows(X: Any, rank: int, rng: np.random.Generator) -> Layout:
    """Return rows B, (N, rank), such that B B^T approximates C G_X C (Lemma 3).

    By random projection (Halko, Martinsson and Tropp, 2011): one look at the data
    there and one back, no eigenvectors of them.
    """
    width = min(rank + _OVERSAMPLING, *X.shape)
    random = _centred(rng.normal(size=(X.shape[0], width)))
    basis, _ = np.linalg.qr(_centred(X @ (X.T @ random)))
    # Columns beyond the rank of the data are any, and need not have mean 0.
    left, singular, _ = np.linalg.svd((X.T @ _centred(basis)).T, full_matrices=False)
    rows: Layout = basis @ (left[:, :rank] * singular[:rank])
    return rows


def _largest_eigenvalue(X: Any, rng: np.random.Generator) -> float:
    """Return the largest eigenvalue of C G_X C by power iterations, from below."""
    vector = _centred(rng.normal(size=(X.shape[0], 1)))
    length = 0.0
    for _ in range(_POWER_ITERATIONS):
        vector /= np.linalg.norm(vector)
        vector = _centred(X @ (X.T @ vector))
        length = float(np.linalg.norm(vector))
    return length


def _centred(rows: Any) -> Layout:
    rows = np.asarray(rows, dtype=np.float64)
    centred: Layout = rows - rows.mean(axis=0)
    return centred


def _check(X: Any, n_components: int, low_rank: int | None) -> None:
    check_varied(X)
    most = min(X.shape)
    if not 1 <= n_components <= most:
        raise InputError(
            f"These data have from 1 to {most} dimensions, not {n_components}."
        )
    if low_rank is not None and not n_components <= low_rank <= most:
        raise InputError(
            f"The rank must be from {n_components}, the dimensions of the map, to "
            f"{most}, not {low_rank}."
        )
    values = X.data if sparse.issparse(X) else X
    if not np.isfinite(values).all():
        raise InputError("The data have missing or infinite numbers: leave them out.")
