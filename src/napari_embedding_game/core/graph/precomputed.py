"""Read neighbours from a matrix of distances, without a search."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from napari_embedding_game.core.errors import InputError, PrecomputedDistancesError

_BLOCK = 1_024


def validate_distances(distances: Any) -> None:
    """Raise :class:`InputError` unless the matrix is square, without values below 0.

    ``distances``: a dense or sparse matrix.  NaN and symmetry are not checked.
    """
    n_rows, n_columns = distances.shape
    if n_rows != n_columns:
        raise InputError(
            'Under metric="precomputed" the data are distances, as many columns as '
            f"rows, not {n_rows} x {n_columns}: give such a matrix or the name of a "
            "distance."
        )
    values = distances.data if sparse.issparse(distances) else distances
    if values.size and values.min() < 0:
        raise InputError(
            f"The distances given have values below 0, the least {values.min():.3g}: "
            "if these are similarities, turn them into distances."
        )


def find_precomputed_neighbors(
    distances: Any, n_neighbors: int
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Return row numbers and distances of the nearest rows, nearest first, (N, K) each.

    The neighbours in a sparse matrix are its stored entries, explicit zeros included;
    no entry may be stored twice.  A sparse matrix may hold K - 1 entries in a row, as
    scanpy counts the row itself; then the result has K - 1 columns.

    InputError: the matrix is not square, has values below 0 or too few neighbours, or
    all distances are 0.
    """
    validate_distances(distances)
    if sparse.issparse(distances):
        indices, nearest = _find_neighbors_of_sparse(distances.tocoo(), n_neighbors)
    else:
        indices, nearest = _find_neighbors_of_dense(np.asarray(distances), n_neighbors)
    if not nearest.any():
        raise InputError(
            "All distances between neighbours are 0, so there is nothing to lay out."
        )
    return indices, nearest


def _find_neighbors_of_sparse(
    entries: sparse.coo_matrix, n_neighbors: int
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Return the nearest stored entries of each row: columns and distances, (N, k).

    k is the least number of entries of a row, ``n_neighbors`` at most.  Of equal
    distances the lower column comes first.  PrecomputedDistancesError: k is less than
    ``n_neighbors`` - 1, or 0.
    """
    is_other = entries.row != entries.col
    row, column = entries.row[is_other], entries.col[is_other]
    values = entries.data[is_other]
    counts = np.bincount(row, minlength=entries.shape[0])
    k = min(n_neighbors, int(counts.min()))
    if k < max(1, n_neighbors - 1):
        fewer = "set n_neighbors, or three times the perplexity, to "
        raise PrecomputedDistancesError(
            f"Row {counts.argmin()} has {counts.min()} neighbours in the distances "
            f"given, and {n_neighbors} are asked for: "
            f"{f'{fewer}{k + 1} or less, or ' if k else ''}work out the distances "
            "again, with as many neighbours and of these rows alone (zeros must be "
            "stored for copies of a row to count)."
        )
    order = np.lexsort((column, values, row))
    first = np.cumsum(counts) - counts
    chosen = order[first[:, None] + np.arange(k)]
    return column[chosen].astype(np.int32), values[chosen].astype(np.float64)


def _find_neighbors_of_dense(
    matrix: NDArray[Any], n_neighbors: int
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Return the nearest columns of each row and their distances, (N, k) each.

    The diagonal is left out; of equal distances the lower column comes first.
    """
    indices = np.empty((len(matrix), n_neighbors), np.int32)
    nearest = np.empty(indices.shape)
    for begin in range(0, len(matrix), _BLOCK):
        block = matrix[begin : begin + _BLOCK].astype(np.float64)
        at = np.arange(len(block))
        block[at, begin + at] = np.inf
        order = np.argsort(block, axis=1, kind="stable")[:, :n_neighbors]
        indices[begin : begin + _BLOCK] = order
        nearest[begin : begin + _BLOCK] = np.take_along_axis(block, order, axis=1)
    return indices, nearest
