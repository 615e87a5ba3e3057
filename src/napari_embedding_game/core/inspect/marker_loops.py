"""Compiled loops of :mod:`group_sums` and :mod:`markers` over a block of columns.

Zeros, nine of ten values in expression data, are counted and not gathered.  Each group
is sorted by itself, and the rank sum is computed while two groups are merged.
"""

import numpy as np

from napari_embedding_game.core.loop_cache import njit
from napari_embedding_game.core.threads import LOOP


@njit(**LOOP)
def _compute_begins(count):
    """Return where the values of each column and group begin, and their total number.

    ``count`` (columns, C): number of values of each column and group, which follow one
    another, column after column.  The begins are (columns, C).
    """
    begin = np.empty(count.shape, np.int64)
    at = 0
    for column in range(count.shape[0]):
        for group in range(count.shape[1]):
            begin[column, group] = at
            at += count[column, group]
    return begin, at


@njit(**LOOP)
def gather_dense(block, groups, sizes):
    """Gather the values other than 0 of a dense block by column and group.

    ``block`` (n, columns); ``groups`` (n,) int32: group of each row, below 0 for rows
    in no group; ``sizes`` (C,): rows of each group.  NaN is kept.

    Returns the values (P,), and where those of each column and group begin and end,
    (columns, C) each.  Values between an end and the next begin are undefined.
    """
    count = np.empty((block.shape[1], sizes.shape[0]), np.int64)
    for column in range(block.shape[1]):
        for group in range(sizes.shape[0]):
            count[column, group] = sizes[group]
    begin, n_values = _compute_begins(count)
    end = begin.copy()
    values = np.empty(n_values, block.dtype)
    for row in range(block.shape[0]):
        group = groups[row]
        if group < 0:
            continue
        for column in range(block.shape[1]):
            # The value is always written and counted if it is not 0: without a branch
            # the processor has nothing to guess.
            value = block[row, column]
            values[end[column, group]] = value
            end[column, group] += value != 0
    return values, begin, end


@njit(**LOOP)
def gather_sparse(indptr, indices, data, groups, sizes, first, last, is_by_row):
    """Gather the values other than 0 of a sparse matrix as :func:`gather_dense` does.

    ``indptr``, ``indices`` (sorted) and ``data`` of the matrix.  With ``is_by_row``
    they are compressed rows of all columns, of which those from ``first`` to ``last``
    (excluded) are gathered.  Otherwise they are compressed columns, of this block
    alone.
    """
    starts, stops = indptr[:-1].astype(np.int64), indptr[1:].astype(np.int64)
    if is_by_row:
        for row in range(groups.shape[0]):
            held, start = indices[starts[row] : stops[row]], starts[row]
            starts[row] = start + np.searchsorted(held, first)
            stops[row] = start + np.searchsorted(held, last)
    count = np.zeros((last - first, sizes.shape[0]), np.int64)
    begin = end = count
    values = np.empty(0, data.dtype)
    for is_counted in (False, True):
        if is_counted:
            begin, n_values = _compute_begins(count)
            end = begin.copy()
            values = np.empty(n_values, data.dtype)
        for line in range(starts.shape[0]):
            for e in range(starts[line], stops[line]):
                row = line if is_by_row else indices[e]
                column = indices[e] - first if is_by_row else line
                group = groups[row]
                if group < 0 or data[e] == 0:
                    continue
                if is_counted:
                    values[end[column, group]] = data[e]
                    end[column, group] += 1
                else:
                    count[column, group] += 1
    return values, begin, end


@njit(**LOOP)
def write_moments(values, begin, end, sizes, out):
    """Write figures of the finite values of each group to ``out`` (4, C, columns).

    The figures are the number of values, zeros included, their mean (0 for no values),
    the sum of squared differences from the mean, and the number of values above 0.
    ``values``, ``begin`` and ``end``: see :func:`gather_dense`; ``sizes`` (C,): rows of
    each group.
    """
    for column in range(begin.shape[0]):
        for group in range(sizes.shape[0]):
            total = 0.0
            positive = 0
            n = sizes[group]
            n_zeros = n - (end[column, group] - begin[column, group])
            for at in range(begin[column, group], end[column, group]):
                if np.isfinite(values[at]):
                    total += values[at]
                    positive += values[at] > 0
                else:
                    n -= 1
            mean = total / n if n > 0 else 0.0
            deviation, squares = -n_zeros * mean, n_zeros * mean * mean
            for at in range(begin[column, group], end[column, group]):
                if np.isfinite(values[at]):
                    difference = values[at] - mean
                    deviation += difference
                    squares += difference * difference
            if n > 0:  # corrects rounding, so that groups of equal values do not differ
                mean += deviation / n
                squares = max(squares - deviation * deviation / n, 0.0)
            out[0, group, column] = n
            out[1, group, column] = mean
            out[2, group, column] = squares
            out[3, group, column] = positive


@njit(**LOOP)
def write_rank_sums(values, begin, end, sizes, out):
    """Write to ``out`` (2, columns) the rank sum of the first of two groups, and ties.

    The ``values`` of each column and group must be sorted, NaN last; NaN is left out.
    Each of t equal values has their mean rank, and they add t^3 - t to the ties.
    ``begin``, ``end`` (columns, 2): see :func:`gather_dense`; ``sizes`` (2,): rows,
    with zeros.
    """
    for column in range(begin.shape[0]):
        i, j = begin[column]
        last_i, last_j = end[column]
        zeros = sizes[0] - (last_i - i), sizes[1] - (last_j - j)
        while last_i > i and np.isnan(values[last_i - 1]):
            last_i -= 1
        while last_j > j and np.isnan(values[last_j - 1]):
            last_j -= 1
        seen, rank_sum, all_ties = 0.0, 0.0, 0.0
        is_zero_due = zeros[0] + zeros[1] > 0
        while is_zero_due or i < last_i or j < last_j:
            key = values[i] if i < last_i else np.inf
            if j < last_j:
                key = min(key, values[j])
            if is_zero_due and key > 0:
                is_zero_due, (n_inside, n_outside) = False, zeros
            else:
                first_i, first_j = i, j
                while i < last_i and values[i] == key:
                    i += 1
                while j < last_j and values[j] == key:
                    j += 1
                n_inside, n_outside = i - first_i, j - first_j
            ties = float(n_inside + n_outside)
            all_ties += ties * ties * ties - ties
            rank_sum += n_inside * (seen + 0.5 * (ties + 1.0))
            seen += ties
        out[0, column] = rank_sum
        out[1, column] = all_ties
