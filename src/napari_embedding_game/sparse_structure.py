"""Check that a compressed sparse matrix points nowhere outside its own arrays.

Compiled loops of scipy, scikit-learn and this program read and write wherever
``indptr`` and ``indices`` point to.  scipy's ``check_format(full_check=True)`` looks at
neither where ``indptr`` ends at 0 or below, so it is not asked.  The engine and the
readers of files both call this module, which knows neither.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray


def validate_sparse(matrix: Any) -> None:
    """Raise ValueError unless all entries of a scipy matrix lie within its shape.

    Of the formats "csr", "csc", "bsr" and "coo"; scipy makes the arrays of the others
    itself.  More ``indices`` and ``data`` than ``indptr`` uses are allowed, as scipy
    allows them.  Nothing is changed.
    """
    if matrix.format == "coo":
        for numbers, size in zip(matrix.coords, matrix.shape, strict=True):
            _validate_range("coordinates", numbers, size)
    elif matrix.format in ("csr", "csc", "bsr"):
        shape = matrix.shape if len(matrix.shape) == 2 else (1, *matrix.shape)
        steps = matrix.blocksize if matrix.format == "bsr" else (1, 1)
        major, minor = (size // step for size, step in zip(shape, steps, strict=True))
        if matrix.format == "csc":
            major, minor = minor, major
        if len(matrix.indices) != len(matrix.data):
            raise ValueError(
                f"the sparse matrix has {len(matrix.indices)} indices and "
                f"{len(matrix.data)} values"
            )
        validate_indptr(matrix.indptr, major, len(matrix.indices))
        _validate_range("indices", matrix.indices, minor)


def validate_indptr(indptr: NDArray[Any], n_rows: int, n_entries: int) -> None:
    """Raise ValueError unless compressed rows begin at 0 and follow one another.

    ``indptr`` (n_rows + 1,): ascending from 0 to at most ``n_entries``.
    """
    is_right = (
        indptr.shape == (n_rows + 1,)
        and indptr.dtype.kind in "iu"
        and indptr[0] == 0
        and indptr[-1] <= n_entries
        and bool((indptr[1:] >= indptr[:-1]).all())
    )
    if not is_right:
        raise ValueError(
            f"indptr of the sparse matrix has to ascend from 0 to {n_entries} at most "
            f"in {n_rows} steps"
        )


def _validate_range(name: str, numbers: NDArray[Any], size: int) -> None:
    if numbers.dtype.kind not in "iu":
        raise ValueError(f"{name} of the sparse matrix are no whole numbers")
    if numbers.size and not (numbers.min() >= 0 and numbers.max() < size):
        raise ValueError(f"{name} of the sparse matrix lie outside 0 to {size - 1}")
