"""Validate a matrix when it is read: missing, constant, too large values.

Every function names its source by `where`, the subject of the sentence:
``cells.csv`` or ``The layer 'cells'``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from napari_embedding_game.data.errors import DataError, MissingValuesError
from napari_embedding_game.data.row_matrices import Matrix

if TYPE_CHECKING:
    from napari_embedding_game.data.read_options import Missing


# Squared differences of larger numbers overflow single precision.
_MAX_NUMBER = 1e18
# Number of rows by which the precision is chosen, and the largest share of the distance
# between two rows that single precision may lose.
_COMPARED_ROWS = 200
_MAX_LOST = 1e-3
_ROWS = 4_096
"""Number of rows of a sparse matrix that are inspected at a time."""


def check_shape(shape: tuple[int, ...], where: str) -> None:
    """Raise DataError unless there are at least two rows and one column.

    ``shape``: numbers of rows and columns. ``where``: subject of the message.
    """
    n_rows, n_columns = shape
    if n_rows == 0 or n_columns == 0:
        raise DataError(
            f"{where} is empty ({n_rows} rows, {n_columns} columns): "
            "choose a source with one row for each cell, image or text."
        )
    if n_rows == 1:
        raise DataError(
            f"{where} has only one row, and a map needs many: "
            "put one cell, image or text in each row."
        )


def find_finite_rows(
    X: Matrix,
    where: str,
    row_names: pd.Index,
    var_names: Sequence[object],
    missing: Missing,
) -> tuple[NDArray[np.bool_], tuple[str, ...]]:
    """Return a mask (N,) of the rows with finite numbers only, and notes on the others.

    The notes are one sentence that names the first such value, or empty. Raises
    MissingValuesError if a value is NaN or infinite and `missing` is "error", and
    DataError if fewer than two rows remain.
    """
    if sp.issparse(X):
        bad = np.flatnonzero(~np.isfinite(X.data))
        rows = np.searchsorted(X.indptr, bad, side="right") - 1
        columns = X.indices[bad]
    else:
        rows, columns = np.nonzero(~np.isfinite(X))
    kept = np.ones(X.shape[0], dtype=bool)
    if not len(rows):
        return kept, ()
    kept[rows] = False
    n_bad, n = int(np.count_nonzero(~kept)), len(rows)
    name = str(var_names[columns[0]]).removeprefix("column ")
    first = f"the first in {format_row_name(rows[0], row_names)}, column {name}"
    of_rows = f"{n_bad} of {len(kept)} rows"
    if len(kept) - n_bad < 2:
        raise DataError(
            f"{where} has missing or infinite values in {of_rows}, {first}, so that no "
            "map is left without them: fill them in, or embed other columns."
        )
    if missing == "error":
        raise MissingValuesError(
            f"{where} has {n:,} missing or infinite value{'s' * (n > 1)} in {of_rows}, "
            f"{first}: fill them in, or have these rows left out"
        )
    note = f"{of_rows} left out because of missing or infinite values, {first}."
    return kept, (note,)


def check_magnitude_and_variation(X: Matrix, where: str) -> None:
    """Raise DataError if a magnitude exceeds 1e18, or all rows of `X` are the same."""
    lowest, highest = find_column_extremes(X)
    if max(-float(lowest.min()), float(highest.max())) > _MAX_NUMBER:
        raise DataError(
            f"{where} has numbers larger than {_MAX_NUMBER:.0e}, too large to compare "
            "in single precision: divide them by a common factor."
        )
    check_rows_differ(X, where)


def check_rows_differ(X: Matrix, where: str) -> None:
    """Raise DataError if all rows of `X` are the same."""
    if np.array_equal(*find_column_extremes(X)):
        raise DataError(
            f"{where} is constant: all {X.shape[0]} rows are the same, so there is "
            "nothing to map; choose other columns or another space."
        )


def find_column_extremes(X: Matrix) -> tuple[Any, Any]:
    """Return the lowest and the highest value of each column, (D,) each."""
    lowest, highest = X.min(axis=0), X.max(axis=0)
    if sp.issparse(X):
        return lowest.toarray().ravel(), highest.toarray().ravel()
    return lowest, highest


def to_float32(X: Any) -> Matrix:
    """Return a dense or sparse matrix in single precision; sparse becomes CSR."""
    return _to_dtype(np.float32, X)


def to_sufficient_precision(X: Any) -> Matrix:
    """Return a matrix to embed in single precision, or in double where needed.

    Double precision is needed where single precision would round away the differences
    between rows, as with small differences far from 0; 200 rows are inspected. Sparse
    becomes CSR.
    """
    single = to_float32(X)
    if np.can_cast(X.dtype, np.float32):
        return single
    some = X[:: max(1, X.shape[0] // _COMPARED_ROWS)].astype(np.float64)
    with np.errstate(all="ignore"):  # values may be missing, infinite or too large
        distances = _measure_distances_to_next_row(some)
        lost = (
            _measure_distances_to_next_row(some - to_float32(some).astype(np.float64))
            / distances
        )
        is_lost = distances.any() and np.median(lost[distances > 0]) > _MAX_LOST
    return _to_dtype(np.float64, X) if is_lost else single


def _to_dtype(dtype: Any, X: Any) -> Matrix:
    """Return a matrix in a dtype; sparse becomes CSR with repeated entries summed."""
    with np.errstate(over="ignore"):  # check_magnitude_and_variation reports overflows
        if not sp.issparse(X):
            return np.ascontiguousarray(X, dtype=dtype)
        matrix = sp.csr_matrix(X, dtype=dtype)
    if matrix.has_canonical_format:
        return matrix
    for first in range(0, matrix.shape[0], _ROWS):  # blocks avoid a second large matrix
        part = matrix[first : first + _ROWS]
        n = part.nnz
        part.sum_duplicates()
        if part.nnz < n:  # an entry has several values to be summed
            matrix = matrix.copy()
            matrix.sum_duplicates()
            break
    return matrix


def _measure_distances_to_next_row(X: Matrix) -> NDArray[np.float64]:
    """Return the Euclidean distance of each row to the next row, (n - 1,)."""
    steps = X[1:] - X[:-1]
    squared = steps.multiply(steps) if sp.issparse(X) else np.square(steps)
    return np.asarray(np.sqrt(np.asarray(squared.sum(axis=1)).ravel()))


def format_row_name(row: int, row_names: pd.Index) -> str:
    """Return a row's number from 1, with its name unless the name is digits."""
    name = str(row_names[row])
    return f"row {row + 1}" if name.isdigit() else f'row {row + 1} ("{name}")'
