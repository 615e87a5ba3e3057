"""The genes of a web page: which of them fit, and how their values are stored.

A value is stored as a whole number of steps of its gene's range, and only where it is
not the lowest.  Of very many rows the values of a part are stored.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from napari_embedding_game.core.inspect.group_sums import (
    iter_group_figures,
    run_to_result,
)
from napari_embedding_game.data.expression import Expression

STEPS = (254, 31)
"""Steps of a gene's range: the second number where the first leaves out genes."""
N_VARIABLE = 2_000
"""Genes that are to fit, of fewer rows if need be; as many as the recipe chooses."""
_MIN_ROWS, _SPARE, _PROBED = 1_000, 0.8, 100
"""Fewest rows stored; share of them that is kept for an error of the estimated size;
genes by which it is estimated."""
MISSING_STEP = 255
"""Stored in the place of a missing value; also a gap that goes on in the next byte."""
_NAMED = 20
"""Bytes that name, limits and sizes of a gene take, compressed; rather too many."""
_AT_ONCE = 200
"""Number of genes whose values are in memory at a time."""


@dataclass(frozen=True, eq=False)
class StoredGenes:
    """Values of G genes as bytes."""

    indices: list[int]
    """(G,) columns of the expression."""
    limits: list[tuple[float, float]]
    """(G,) lowest and highest value, of which the lowest is at most 0."""
    parts: list[tuple[bytes, bytes]]
    """(G,) gaps and steps of each gene: see :func:`encode_values`."""
    n_steps: int
    n_rows: int
    """The values are those of the last ``n_rows`` rows."""
    n_bytes: int
    """Compressed size, estimated."""


def rank_genes_by_variation(
    expression: Expression, leading: Sequence[int], is_flagged: NDArray[np.bool_]
) -> list[int]:
    """Return the columns of all genes that vary, the most useful for a map first.

    First ``leading`` in their order, then the genes for which ``is_flagged`` (G,) is
    true, then the others; both by falling ratio of variance and mean.
    """
    codes = np.zeros(expression.n_rows, np.int32)
    figures = run_to_result(iter_group_figures(expression.values, codes, 1))
    counts, means, squares, _ = figures[:, 0]
    variation = squares / np.maximum(counts, 1) / np.where(means > 0, means, 1.0)
    order = np.lexsort((-variation, ~is_flagged))
    varying = order[variation[order] > 0].tolist()
    return list(dict.fromkeys([*leading, *varying]))


def encode_first_genes(
    expression: Expression, order: Sequence[int], n_bytes: int, n_wanted: int
) -> StoredGenes:
    """Return the first genes of ``order`` whose compressed values take ``n_bytes``.

    What is done so that at least ``n_wanted`` genes fit, until they do:

    1. The range of a gene has 254 steps; this is left only if all genes fit.
    2. It has 31 steps.
    3. Only the last n rows are stored.  Rows in random order are needed for this.
    """
    n_rows, n_wanted = expression.n_rows, min(n_wanted, len(order))
    for n_steps in STEPS:
        stored = _encode_first_genes(expression, order, n_bytes, n_steps, n_rows)
        if len(stored.indices) == len(order):
            return stored
    if len(stored.indices) >= n_wanted:
        return stored
    some = [*order[: n_wanted : max(1, n_wanted // _PROBED)]]
    whole = _encode_first_genes(expression, some, math.inf, STEPS[1], n_rows)
    share = n_bytes / (whole.n_bytes / len(some) * n_wanted)
    n_kept = min(n_rows, max(_MIN_ROWS, int(_SPARE * share * n_rows)))
    return _encode_first_genes(expression, order, n_bytes, STEPS[1], n_kept)


def _encode_first_genes(
    expression: Expression,
    order: Sequence[int],
    n_bytes: float,
    n_steps: int,
    n_rows: int,
) -> StoredGenes:
    """Return the first genes of ``order`` that fit, of the last ``n_rows`` rows."""
    limits, parts = list[tuple[float, float]](), list[tuple[bytes, bytes]]()
    used = 0
    for begin in range(0, len(order), _AT_ONCE):
        values = expression.take_columns(order[begin : begin + _AT_ONCE])[-n_rows:]
        values = values.tocsc() if sp.issparse(values) else values
        for i in range(values.shape[1]):
            column = values[:, [i]]
            column = column.toarray() if sp.issparse(column) else column
            limit, part = encode_values(np.asarray(column, float).ravel(), n_steps)
            size = len(zlib.compress(b"".join(part))) + _NAMED
            if used + size > n_bytes:
                break
            used += size
            limits.append(limit)
            parts.append(part)
        if len(parts) < min(begin + _AT_ONCE, len(order)):
            break
    return StoredGenes([*order[: len(parts)]], limits, parts, n_steps, n_rows, used)


def encode_values(
    values: NDArray[np.floating], n_steps: int
) -> tuple[tuple[float, float], tuple[bytes, bytes]]:
    """Return the limits of a gene's values (n,), and the values as bytes.

    The limits are the lowest value or 0, and the highest value or 0.  The bytes are

    - gaps: for each row that is not at the lower limit, how many rows lie between it
      and the row before; 255 adds 255 rows and goes on in the next byte
    - steps: of each such row, from 1 to ``n_steps`` at the upper limit; 255 for a value
      that is missing or infinite
    """
    is_known = np.isfinite(values)
    known = values[is_known]
    low, high = float(min(known.min(initial=0.0), 0.0)), float(known.max(initial=0.0))
    span = high - low or 1.0
    # A value above 0 is never stored as 0: shares of expressing cells stay exact.
    steps = np.rint((np.where(is_known, values, low) - low) / span * n_steps)
    steps = np.where(values > low, np.maximum(steps, 1), steps)
    steps = np.where(is_known, steps, MISSING_STEP).astype(np.uint8)
    rows = np.flatnonzero(steps)
    between = np.diff(rows, prepend=-1) - 1
    n_full, rest = np.divmod(between, MISSING_STEP)
    ends = np.cumsum(n_full + 1)
    gaps = np.full(int(ends[-1]) if len(ends) else 0, MISSING_STEP, np.uint8)
    gaps[ends - 1] = rest
    return (low, high), (gaps.tobytes(), steps[rows].tobytes())


def find_flagged(
    names: Sequence[str], ids: Sequence[str], flagged: Collection[str]
) -> NDArray[np.bool_]:
    """Return which genes (G,) are among ``flagged``, by their name or identifier."""
    kept = {*flagged}
    is_flagged = np.array([name in kept for name in names], bool)
    if len(ids) == len(names):
        is_flagged |= np.array([one in kept for one in ids], bool)
    return is_flagged
