"""The compiled loops of :mod:`group_sums` and :mod:`markers`: a block of columns.

Zeros are counted, not gathered: nine values of ten in expression data.  Each group is
sorted alone, and the rank sum is found while two groups are merged.
"""

# The compiler finds the types of these functions; annotations tell it nothing.
# mypy: disable-error-code="no-untyped-def,assignment"

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

_OPTIONS: dict[str, Any] = {"nogil": True, "cache": True, "error_model": "numpy"}


@njit(**_OPTIONS)
def _begins(count):
    """Return where the values of each column and group begin, one after another."""
    begin = np.empty(count.shape, np.int64)
    at = 0
    for column in range(count.shape[0]):
        for group in range(count.shape[1]):
            begin[column, group] = at
            at += count[column, group]
    return begin, at


@njit(**_OPTIONS)
def gather_dense(block, groups, sizes):
    """Return the values other than zero (P,), and where those of a group begin and end.

    ``block`` (n, columns); ``groups`` (n,) int32, below 0 for none; ``sizes`` (C,) rows
    of each group; begin and end (columns, C).
    """
    count = np.empty((block.shape[1], sizes.shape[0]), np.int64)
    count[:] = sizes
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


@njit(**_OPTIONS)
def _first_at_least(indices, low, high, column):
    while low < high:
        middle = (low + high) // 2
        if indices[middle] < column:
            low = middle + 1
        else:
            high = middle
    return low


@njit(**_OPTIONS)
def gather_rows(indptr, indices, data, groups, sizes, first, last):
    """Like :func:`gather_dense`, of ``first`` to ``last`` of sorted CSR rows."""
    count = np.zeros((last - first, sizes.shape[0]), np.int64)
    starts = np.empty(groups.shape[0], np.int64)
    for row in range(groups.shape[0]):
        group = groups[row]
        if group < 0:
            continue
        e = _first_at_least(indices, indptr[row], indptr[row + 1], first)
        starts[row] = e
        while e < indptr[row + 1] and indices[e] < last:
            count[indices[e] - first, group] += data[e] != 0
            e += 1
    begin, n_values = _begins(count)
    end = begin.copy()
    values = np.empty(n_values, data.dtype)
    for row in range(groups.shape[0]):
        group = groups[row]
        if group < 0:
            continue
        e = starts[row]
        while e < indptr[row + 1] and indices[e] < last:
            if data[e] != 0:
                column = indices[e] - first
                values[end[column, group]] = data[e]
                end[column, group] += 1
            e += 1
    return values, begin, end


@njit(**_OPTIONS)
def gather_columns(indptr, indices, data, groups, sizes):
    """Like :func:`gather_dense`, of all columns of a sorted CSC matrix."""
    n_columns = indptr.shape[0] - 1
    count = np.zeros((n_columns, sizes.shape[0]), np.int64)
    for column in range(n_columns):
        for e in range(indptr[column], indptr[column + 1]):
            if groups[indices[e]] >= 0:
                count[column, groups[indices[e]]] += data[e] != 0
    begin, n_values = _begins(count)
    end = begin.copy()
    values = np.empty(n_values, data.dtype)
    for column in range(n_columns):
        for e in range(indptr[column], indptr[column + 1]):
            group = groups[indices[e]]
            if group >= 0 and data[e] != 0:
                values[end[column, group]] = data[e]
                end[column, group] += 1
    return values, begin, end


@njit(**_OPTIONS)
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
            squares = n_zeros * mean * mean
            for at in range(begin[column, group], end[column, group]):
                if np.isfinite(values[at]):
                    difference = values[at] - mean
                    squares += difference * difference
            out[0, group, column] = n
            out[1, group, column] = mean
            out[2, group, column] = squares
            out[3, group, column] = positive


@njit(**_OPTIONS)
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
