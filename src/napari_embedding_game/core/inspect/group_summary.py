"""Mean of each column, and share of rows above 0, in every group of rows.

These are the figures of a dot plot: those of ``scanpy.pl.dotplot``, whose
``dot_color_df`` holds the means and whose ``dot_size_df`` the shares.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from napari_embedding_game.core.errors import InputError

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class GroupSummary:
    """Figures of C groups in G columns."""

    means: FloatArray
    """(C, G) over the rows whose value is known; NaN where there is none."""
    shares: FloatArray
    """(C, G) of all rows of the group that are above 0, 0 to 1; NaN without rows."""

    @property
    def scaled(self) -> FloatArray:
        """(C, G) means, of each column from 0 in its lowest group to 1 in its highest.

        Where a column is the same in all groups it is 0, as ``standard_scale="var"``
        of scanpy has it.
        """
        low = np.nanmin(self.means, axis=0, initial=np.inf)
        above = self.means - low
        span = np.nanmax(above, axis=0, initial=0.0)
        scaled: FloatArray = np.divide(
            above, span, out=np.zeros_like(above), where=span > 0
        )
        return scaled


def summarize(X: Any, codes: NDArray[np.integer], n_groups: int) -> GroupSummary:
    """Summarise every column of X in every group of rows.

    Parameters
    ----------
    X : (N, G) array or scipy sparse matrix
        NaN where a value is missing.  A sparse matrix is not made dense.
    codes : (N,) int
        Group of each row, from 0; -1 of a row in none.
    n_groups : int

    Raises
    ------
    InputError
        As many codes as rows are needed, each below `n_groups`.
    """
    codes = np.asarray(codes)
    if len(codes) != X.shape[0]:
        raise InputError(f"There are {len(codes)} groups for {X.shape[0]} rows.")
    if len(codes) and codes.max() >= n_groups:
        raise InputError(f"Group {codes.max()} is none of the {n_groups} groups.")
    rows = np.flatnonzero(codes >= 0)
    members = sp.csr_matrix(
        (np.ones(len(rows)), (codes[rows], rows)), shape=(n_groups, X.shape[0])
    )
    is_missing = _where(X, np.isnan)
    known = _where(X, np.isnan, keep=False)
    sizes = np.bincount(codes[rows], minlength=n_groups)[:, None].astype(float)
    sums, positive = _sums(members, known), _sums(members, known > 0)
    n_known = sizes - _sums(members, is_missing)
    return GroupSummary(_ratio(sums, n_known), _ratio(positive, sizes))


def _where(X: Any, test: Any, *, keep: bool = True) -> Any:
    """Return where a test holds, as 1; or X without these values."""
    if sp.issparse(X):
        changed = X.copy()
        found = test(X.data)
        changed.data = found.astype(float) if keep else np.where(found, 0, X.data)
        return changed
    found = test(X)
    return found.astype(float) if keep else np.where(found, 0, X)


def _sums(members: Any, X: Any) -> FloatArray:
    """Return the sum over each group, (C, G), in double precision."""
    summed = members @ X
    dense: FloatArray = summed.toarray() if sp.issparse(summed) else summed
    return dense


def _ratio(part: FloatArray, whole: FloatArray) -> FloatArray:
    whole = np.broadcast_to(whole, part.shape)
    missing = np.full(part.shape, np.nan)
    ratio: FloatArray = np.divide(part, whole, out=missing, where=whole > 0)
    return ratio
