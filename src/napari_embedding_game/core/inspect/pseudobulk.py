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
from napari_embedding_game.core.inspect.column_blocks import (
    is_read_by_column,
    iter_blocks,
)
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
    X : (N, G) array, scipy sparse matrix or :class:`.column_blocks.ColumnBlocks`
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
    if not is_read_by_column(X):
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
    if is_read_by_column(X):
        members = _members(of_row[rows], rows, len(kept), X.shape[0])
        for begin, end, read in iter_blocks(X):
            summed = members @ _counts(read, log1p=log1p)
            sums[:, begin:end] = summed.toarray() if sparse.issparse(summed) else summed
            yield end / X.shape[1]
        return _mean_of(sums, of_row[rows], log1p=log1p)
    for first in range(0, len(rows), _BLOCK_ROWS):
        block = rows[first : first + _BLOCK_ROWS]
        places = np.arange(len(block))
        members = _members(of_row[block], places, len(kept), len(block))
        sums += members @ _counts(X[block], log1p=log1p)
        yield min(first + _BLOCK_ROWS, len(rows)) / len(rows)
    return _mean_of(np.asarray(sums), of_row[rows], log1p=log1p)


def _members(
    places: NDArray[np.intp], rows: NDArray[np.intp], n_samples: int, n_rows: int
) -> sparse.csr_matrix:
    """Return which rows are of which sample, (S, n)."""
    ones = np.ones(len(rows)), (places, rows)
    return sparse.csr_matrix(ones, shape=(n_samples, n_rows))


def _counts(values: Any, *, log1p: bool) -> Any:
    """Return values without logarithms, in double precision."""
    values = values.astype(np.float64)
    if not log1p:
        return values
    return values.expm1() if sparse.issparse(values) else np.expm1(values)


def _mean_of(
    sums: NDArray[np.float64], places: NDArray[np.intp], *, log1p: bool
) -> NDArray[np.float64]:
    sizes = np.bincount(places, minlength=len(sums))
    means = sums / sizes[:, None]
    return np.log1p(means) if log1p else means
