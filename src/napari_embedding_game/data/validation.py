"""Validate a matrix when it is read: missing, constant, duplicate values.

Every function names its source by `where`, the subject of the sentence:
``cells.csv`` or ``The layer 'cells'``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from napari_embedding_game.data.dataset import Matrix
from napari_embedding_game.data.errors import DataError, MissingValuesError
from napari_embedding_game.data.read_options import Duplicates, Missing

COUNT_TWICE = "Kept, so that they count twice"
"""How the note on columns begins that repeat others."""

# Squared differences of larger numbers overflow single precision.
_LARGEST = 1e18
# Rows that tell whether single precision will do, and the part of the distance between
# two of them that it may take away.
_COMPARED_ROWS = 200
_MOST_LOST = 1e-3


def first_of_equals(
    X: NDArray[np.float32], names: Sequence[str], duplicates: Duplicates
) -> tuple[NDArray[np.bool_], list[str]]:
    """Columns to embed, and a note on those that repeat another one.

    Parameters
    ----------
    X : array, shape (n, D)
        Standardised, so that a column in other units is the same column.

    Returns
    -------
    array, shape (D,) bool
        All columns, or the first of equals if `duplicates` is "drop".
    """
    first: dict[bytes, int] = {}
    pairs = []
    used = np.ones(X.shape[1], dtype=bool)
    # Adding 0 turns -0 into 0.
    rounded = np.ascontiguousarray((np.round(X, 4) + 0).T)
    for place, column in enumerate(rounded):
        if (original := first.setdefault(column.tobytes(), place)) != place:
            used[place] = False
            pairs.append(f"{names[place]} = {names[original]}")
    if not pairs:
        return used, []
    told = f"{_count(len(pairs), 'column')} that repeat{'s' * (len(pairs) == 1)} others"
    listed = ", ".join(pairs[:6]) + (", ..." if len(pairs) > 6 else "")
    if duplicates == "drop":
        return used, [f"Left out: {told} ({listed})."]
    return np.ones_like(used), [f"{COUNT_TWICE}: {told} ({listed})."]


def check_shape(shape: tuple[int, ...], where: str) -> None:
    """Raise DataError unless there are at least two rows and one column."""
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


def usable_rows(
    X: Matrix,
    where: str,
    *,
    row_names: pd.Index,
    var_names: Sequence[object],
    missing: Missing,
) -> tuple[NDArray[np.bool_], tuple[str, ...]]:
    """Rows in which every value is a finite number, and a note if others exist.

    Raises
    ------
    DataError
        If a value is NaN or infinite and `missing` is "error", or if "drop"
        leaves fewer than two rows.
    """
    rows, columns = _not_finite(X)
    kept = np.ones(X.shape[0], dtype=bool)
    if not len(rows):
        return kept, ()
    kept[rows] = False
    n_bad, n_rows = int(np.count_nonzero(~kept)), len(kept)
    name = str(var_names[columns[0]]).removeprefix("column ")
    first = f"{row_text(rows[0], row_names)}, column {name}"
    if missing == "error":
        raise MissingValuesError(
            f"{where} has {_count(len(rows), 'missing or infinite value')} in {n_bad} "
            f"of {n_rows} rows, the first in {first}: fill them in, or have these "
            "rows left out"
        )
    if n_rows - n_bad < 2:
        raise DataError(
            f"{where} has missing or infinite values in {n_bad} of {n_rows} rows, the "
            f"first in {first}, so that no map is left without them: fill them in, "
            "or embed other columns."
        )
    have = "it has" if n_bad == 1 else "they have"
    return kept, (
        f"{n_bad} of {n_rows} rows left out because {have} missing or infinite "
        f"values, the first in {first}.",
    )


def check_values(X: Matrix, where: str) -> None:
    """Raise DataError if numbers are too large or all rows of `X` are the same."""
    lowest, highest = column_range(X)
    largest = max(abs(float(lowest.min())), abs(float(highest.max())))
    if largest > _LARGEST:
        raise DataError(
            f"{where} has numbers larger than {_LARGEST:.0e}, too large to compare in "
            "single precision: divide them by a common factor."
        )
    check_varies(X, where)


def check_varies(X: Matrix, where: str) -> None:
    """Raise DataError if all rows of `X` are the same."""
    if np.array_equal(*column_range(X)):
        raise DataError(
            f"{where} is constant: all {X.shape[0]} rows are the same, so there is "
            "nothing to map; choose other columns or another space."
        )


def column_range(X: Matrix) -> tuple[Any, Any]:
    """Lowest and highest value of each column, each of shape (D,)."""
    if sp.issparse(X):
        return X.min(axis=0).toarray().ravel(), X.max(axis=0).toarray().ravel()
    return X.min(axis=0), X.max(axis=0)


def as_float32(X: Any) -> Matrix:
    """`X`, dense or sparse, in single precision; sparse of any kind becomes CSR."""
    with np.errstate(over="ignore"):  # what overflows is told by check_values
        if sp.issparse(X):
            return sp.csr_matrix(X, dtype=np.float32)
        return np.ascontiguousarray(X, dtype=np.float32)


def as_rows(X: Any) -> Matrix:
    """`X`, dense or sparse (CSR), to embed: in single precision where this will do.

    In double precision where single takes away what tells rows apart, as it does of
    small differences far from 0.
    """
    if np.can_cast(X.dtype, np.float32):
        return as_float32(X)
    some = X[:: max(1, X.shape[0] // _COMPARED_ROWS)].astype(np.float64)
    single = as_float32(X)
    with np.errstate(all="ignore"):  # values that are missing, infinite or too large
        apart = _differences(some)
        error = _differences(some - as_float32(some).astype(np.float64))
        is_lost = (
            np.median((error / apart)[apart > 0]) > _MOST_LOST if apart.any() else 0
        )
    if not is_lost:
        return single
    if sp.issparse(X):
        return sp.csr_matrix(X, dtype=np.float64)
    return np.ascontiguousarray(X, dtype=np.float64)


def _differences(X: Matrix) -> NDArray[np.float64]:
    """Distance of each row to the next one."""
    apart = X[1:] - X[:-1]
    squared = apart.multiply(apart) if sp.issparse(X) else np.square(apart)
    lengths: NDArray[np.float64] = np.sqrt(np.asarray(squared.sum(axis=1)).ravel())
    return lengths


def row_text(row: int, row_names: pd.Index) -> str:
    """Row number counted from 1, with its name where that says more."""
    name = str(row_names[row])
    return f"row {row + 1}" if name.isdigit() else f'row {row + 1} ("{name}")'


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}" + ("" if n == 1 else "s")


def _not_finite(X: Matrix) -> tuple[Any, ...]:
    """Row and column of each value that is NaN or infinite, row by row."""
    if not sp.issparse(X):
        return np.nonzero(~np.isfinite(X))
    bad = np.flatnonzero(~np.isfinite(X.data))
    return np.searchsorted(X.indptr, bad, side="right") - 1, X.indices[bad]
