"""Groups of cells compared by their samples: each sample counts once (pseudobulk).

Cells of one donor are not independent of each other, so that a test over cells takes
what sets two donors apart for a difference of the groups (Squair et al., Nature
Communications 12, 5692, 2021).  Here the cells that a sample has in a group become one
profile, their mean; Welch's t-test compares the profiles.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.inspect import rank_kernels as kernels
from napari_embedding_game.core.inspect.markers import (
    MarkerTable,
    checked_groups,
    finished,
    iter_markers,
)

FEWEST_CELLS = 10
"""Of a sample in a group; the mean of fewer says little of the sample."""
FEWEST_SAMPLES = 2
_BLOCK_ROWS = 20_000


def iter_pseudobulk(
    X: Any,
    inside: NDArray[np.bool_],
    outside: NDArray[np.bool_] | None,
    names: Sequence[str] | None,
    samples: NDArray[Any],
    *,
    n_top: int | None = 20,
    log1p: bool = True,
) -> Generator[float, None, MarkerTable]:
    """Yield the share done, 0 to 1, and return the table of two groups of samples.

    ``n_inside`` and ``n_outside`` of the table are samples; ``pts`` and ``pts_rest``
    are shares of samples in which the mean is above 0.  A sample with cells in both
    groups has a profile in each.

    Parameters
    ----------
    X : (N, G) array or scipy sparse matrix
    inside : (N,) bool
        Rows of the group.
    outside : (N,) bool, optional
        Rows to compare with; all others by default.
    names : sequence of str, optional
        Names of the columns.
    samples : (N,) array
        Name of the sample that each row is of; None or NaN where it is of none.
    n_top : int, optional
        Rows of the table; None is all.
    log1p : bool
        Whether the values are log(1 + x): means are taken of x, and then logarithms.

    Raises
    ------
    InputError
        Groups that :func:`.markers.iter_markers` refuses as well, or one with cells of
        fewer than 2 samples.
    """
    groups = checked_groups(inside, outside, X.shape[0])
    codes = _coded(samples)
    X = X.tocsr() if sparse.issparse(X) else np.asarray(X)
    profiles, sides = [], []
    for side, group in (("chosen", kernels.INSIDE), ("compared", kernels.OUTSIDE)):
        in_group = np.where(groups == group, codes, -1)
        kept = _samples_in(in_group, side)
        means = yield from _means(X, in_group, kept, log1p=log1p)
        profiles.append(means)
        sides.append(np.full(len(kept), group == kernels.INSIDE))
    table: MarkerTable = yield from iter_markers(
        np.concatenate(profiles),
        np.concatenate(sides),
        None,
        names,
        method="t-test",
        n_top=n_top,
        log1p=log1p,
        n_jobs=1,
    )
    return table


def pseudobulk(X: Any, *args: Any, **options: Any) -> MarkerTable:
    """Return the table of :func:`iter_pseudobulk`."""
    return finished(iter_pseudobulk(X, *args, **options))


def _coded(samples: NDArray[Any]) -> NDArray[np.intp]:
    """Return a number for the sample of each row, -1 where it is of none."""
    codes: NDArray[np.intp] = pd.factorize(pd.Series(samples), sort=True)[0]
    return codes


def _samples_in(codes: NDArray[np.intp], side: str) -> NDArray[np.intp]:
    """Return the samples with enough cells, of the codes of all rows."""
    kept = np.flatnonzero(np.bincount(codes[codes >= 0]) >= FEWEST_CELLS)
    if len(kept) < FEWEST_SAMPLES:
        n = len(kept)
        raise InputError(
            f"The {side} group has {n} sample{'s' if n != 1 else ''} with "
            f"{FEWEST_CELLS} or more cells, and {FEWEST_SAMPLES} are needed: choose "
            "another column, a larger group, or a test of cells."
        )
    return kept


def _means(
    X: Any, codes: NDArray[np.intp], kept: NDArray[np.intp], *, log1p: bool
) -> Generator[float, None, NDArray[np.float64]]:
    """Yield the share done, and return the mean of each sample, (S, G)."""
    place = np.full(codes.max() + 2, -1)
    place[kept] = np.arange(len(kept))
    of_row = place[codes]  # -1, of no sample, is the last
    rows = np.flatnonzero(of_row >= 0)
    sums = np.zeros((len(kept), X.shape[1]))
    for first in range(0, len(rows), _BLOCK_ROWS):
        block = rows[first : first + _BLOCK_ROWS]
        values = X[block].astype(np.float64)
        if log1p:
            values = values.expm1() if sparse.issparse(values) else np.expm1(values)
        shape = len(kept), len(block)
        ones = np.ones(len(block)), (of_row[block], np.arange(len(block)))
        sums += sparse.csr_matrix(ones, shape=shape) @ values
        yield min(first + _BLOCK_ROWS, len(rows)) / len(rows)
    sizes = np.bincount(of_row[rows], minlength=len(kept))
    means = np.asarray(sums) / sizes[:, None]
    return np.log1p(means) if log1p else means
