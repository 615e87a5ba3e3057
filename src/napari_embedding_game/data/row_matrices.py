"""Matrices of the rows that were read, which the maps of these rows share.

A child map has indices into them, and takes its rows whenever a matrix is asked for.
To take 500,000 rows x 50 columns costs 0.05 s of the processor; to keep them, 100 MB.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from numpy.typing import NDArray

Matrix: TypeAlias = Any
"""(N, D) numbers: an array, or a scipy CSR matrix (scipy has no types)."""


@dataclass(frozen=True, eq=False)
class RowMatrices:
    """Matrices with a row for each of N rows that were read, or for each of n of them.

    ``X`` (N, D) are the numbers to embed, ``profile`` (N, G) the numbers to compare
    clusters by, which may be ``X`` itself, and ``second_X`` (N, E) those of the second
    space, if there is one.
    """

    X: Matrix
    profile: Matrix
    second_X: Matrix = None

    def take(self, rows: NDArray[Any], *, is_pairwise: bool) -> RowMatrices:
        """Return a copy of some rows.

        ``rows``: indices or a mask. ``is_pairwise``: whether ``X`` has a column for
        each row, so that the same columns are taken.
        """
        X = take_rows(self.X, rows, is_pairwise=is_pairwise)
        profile = X if self.profile is self.X else take_rows(self.profile, rows)
        return RowMatrices(X, profile, take_rows(self.second_X, rows))


def take_rows(
    matrix: Matrix, rows: NDArray[Any] | None, *, is_pairwise: bool = False
) -> Matrix:
    """Return a copy of some rows of a matrix, and of the same columns if pairwise.

    ``rows``: indices, a mask, or None for the matrix itself. Without a matrix None is
    returned.
    """
    if matrix is None or rows is None:
        return matrix
    taken = matrix[rows]
    return taken[:, rows] if is_pairwise else taken
