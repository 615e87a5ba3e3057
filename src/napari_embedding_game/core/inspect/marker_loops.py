"""The compiled loops of :mod:`group_sums` and :mod:`markers`: a block of columns.

Zeros are counted, not gathered: nine values of ten in expression data.  Each group is
sorted alone, and the rank sum is found while two groups are merged.
"""

import numpy as np

from napari_embedding_game.core.loop_cache import njit
from napari_embedding_game.core.threads import LOOP


@njit(**LOOP)
def _begins(count):
    """Return where the values of each column and group begin, one after another."""
    begin = np.empty(count.shape, np.int64)
    at = 0
    for column in range(count.shape[0]):
        for group in range(count.shape[1]):
            begin[column, group] = at
            at += count[column, group]
    return begin, at


@njit(**LOOP)
def gather_dense(block, groups, sizes):
    """Return the values other than zero (P,), and where those of a group begin and end.

    ``block`` (n, columns); ``groups`` (n,) int32, below 0 for none; ``sizes`` (C,) rows
    of each group; begin and end (columns, C).
    """
    count = np.empty((block.shape[1], sizes.shape[0]), np.int64)
    for column in range(block.shape[1]):
        for group in range(sizes.shape[0]):
            count[column, group] = sizes[group]
    begin, n_values = _begins(count)
    end = begin.copy()
    values = np.empty(n_values, block.dtype)
    for row in range(block.shape[0]):
        group = groups[row]
        if group < 0:
            continue
        for column in range(block.shape[1]):
            # Written always and kept if it is not 0: there is no branch to guess.
            value = block[row, column]
            values[end[column, group]] = value
            end[column, group] += value != 0
    return values, begin, end


@njit(**LOOP)
def gather_sparse(indptr, indices, data, groups, sizes, first, last, is_by_row):
    """Like :func:`gather_dense`, of a sparse matrix whose indices are sorted.

    Of compressed rows the columns from ``first`` to ``last``, or else all columns, so
    many, of compressed columns.
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
            begin, n_values = _begins(count)
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
def moments(values, begin, end, sizes, out):
    """Write figures of each group to ``out`` (4, C, columns), of finite values.

    How many there are, their mean (0 of none), the sum of squared differences from it,
    and how many are above 0.
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
            if n > 0:  # what rounding left: else groups of one value would differ
                mean += deviation / n
                squares = max(squares - deviation * deviation / n, 0.0)
            out[0, group, column] = n
            out[1, group, column] = mean
            out[2, group, column] = squares
            out[3, group, column] = positive


@njit(**LOOP)
def rank_sums(values, begin, end, sizes, out):
    """Write the rank sum of the first of two groups in each column, (columns,).

    The values of a column and group are sorted; of ties each has their mean rank.
    """
    for column in range(begin.shape[0]):
        i, j = begin[column]
        last_i, last_j = end[column]
        zeros = sizes[0] - (last_i - i), sizes[1] - (last_j - j)
        while last_i > i and np.isnan(values[last_i - 1]):
            last_i -= 1
        while last_j > j and np.isnan(values[last_j - 1]):
            last_j -= 1
        seen, rank_sum, is_zero_due = 0.0, 0.0, zeros[0] + zeros[1] > 0
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
            ties = n_inside + n_outside
            rank_sum += n_inside * (seen + 0.5 * (ties + 1.0))
            seen += ties
        out[column] = rank_sum
