"""From the neighbours of each row (N, K) to symmetric rows, in parallel.

1. The pairs are sorted by their second row: by ranges of rows, then inside of each.
2. What a row gives and what it is given are joined and sorted by column.
3. The gaps between the rows are closed.

Rows are compressed: ``indptr`` (N + 1,), columns and weights.  Every step has the same
result for any number of threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.loop_cache import njit
from napari_embedding_game.core.threads import LOOP, run_blocks

_CHUNK = 4_096
"""Rows whose pairs are counted and sorted together."""
_MAX_RANGE_BITS = 8
"""Ranges of rows are 2 to this at most: each has a place in the cache."""
_GAPS = (40, 13, 4, 1)
"""Of Shell's sort: rows have few entries."""
_STEPS = 8
"""What an entry costs, in pairs of points."""

Rows = tuple[NDArray[Any], NDArray[np.uint32], NDArray[np.floating]]
"""indptr (N + 1,) uint32, or uint64 where that is too small; columns; weights."""


def join_directions(
    indices: NDArray[np.int32], weights: NDArray[np.floating], takes_product: bool
) -> tuple[Rows, float]:
    """Return the symmetric rows of weights (N, K) to ``indices``, and their sum.

    Two rows that give a and b to one another get a + b, with ``takes_product`` a + b -
    a b, in both directions.  Weights of 0 are left out.
    """
    n, k = indices.shape
    begins, entries = sort_by_target(indices)
    room = begins[:-1] + np.arange(0, n * k, k)
    columns = np.empty(2 * n * k, np.uint32)
    values = np.empty(len(columns), weights.dtype)
    lengths, sums = np.empty(n, np.int64), np.empty(n)
    share = weights.dtype.type(takes_product)
    pairs = indices, weights.ravel(), begins, entries, share
    found = room, columns, values, lengths, sums
    run_blocks(_join_rows, n, _STEPS * len(columns), *pairs, *found)
    indptr = _indptr(lengths)
    _close_gaps(room, indptr, columns, values)
    columns.resize(int(indptr[-1]), refcheck=False)  # in place: no second copy
    values.resize(len(columns), refcheck=False)
    return (indptr, columns, values), float(sums.sum())


def permute(rows: Rows, order: NDArray[np.integer]) -> Rows:
    """Return rows in another order, their columns renumbered: (N,) former numbers."""
    indptr, columns, weights = rows
    ranks = np.empty(len(order), np.uint32)
    ranks[order] = np.arange(len(order), dtype=np.uint32)
    lengths = np.diff(indptr.astype(np.int64))
    now = _indptr(lengths[order])
    found = now, np.empty_like(columns), np.empty_like(weights)
    work = _STEPS * len(columns)
    run_blocks(_permute_rows, len(order), work, *rows, order, ranks, *found)
    return found


def _indptr(lengths: NDArray[np.int64]) -> NDArray[Any]:
    ends = np.concatenate([[0], np.cumsum(lengths)])
    fits = ends[-1] <= np.iinfo(np.uint32).max
    return ends.astype(np.uint32 if fits else np.uint64)


def sort_by_target(
    indices: NDArray[np.int32],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the entries i K + p of all pairs by their second row, ascending.

    And where those of each row begin, (N + 1,).
    """
    n, k = indices.shape
    shift = max(0, (n - 1).bit_length() - _MAX_RANGE_BITS)
    n_ranges, n_chunks = ((n - 1) >> shift) + 1, -(-n // _CHUNK)
    counts = np.empty((n_chunks, n_ranges), np.int64)
    run_blocks(_count_ranges, n_chunks, indices.size, indices, shift, counts)
    ends = counts.T.ravel().cumsum().reshape(n_ranges, n_chunks).T
    places = np.ascontiguousarray(ends - counts)
    bounds = np.append(places[0], n * k)
    kind = np.uint32 if n * k <= np.iinfo(np.uint32).max else np.int64
    by_range, entries = np.empty(n * k, kind), np.empty(n * k, kind)
    given = indices, shift, places, by_range
    run_blocks(_sort_by_range, n_chunks, indices.size, *given)
    begins = np.empty(n + 1, np.int64)
    begins[n] = n * k
    found = bounds, by_range, begins, entries
    targets = indices.ravel()
    run_blocks(_sort_in_ranges, n_ranges, _STEPS * n * k, targets, n, shift, *found)
    return begins, entries


@njit(**LOOP)
def _count_ranges(begin, end, indices, shift, counts):
    """Write the number of pairs of some chunks by the range of their second row."""
    for c in range(begin, end):
        counts[c] = 0
        for i in range(c * _CHUNK, min((c + 1) * _CHUNK, len(indices))):
            for p in range(indices.shape[1]):
                counts[c, indices[i, p] >> shift] += 1


@njit(**LOOP)
def _sort_by_range(begin, end, indices, shift, places, by_range):
    """Write the entries of some chunks from ``places`` on, which are written over."""
    k = indices.shape[1]
    for c in range(begin, end):
        for i in range(c * _CHUNK, min((c + 1) * _CHUNK, len(indices))):
            for p in range(k):
                group = indices[i, p] >> shift
                by_range[places[c, group]] = i * k + p
                places[c, group] += 1


@njit(**LOOP)
def _sort_in_ranges(begin, end, targets, n, shift, bounds, by_range, begins, entries):
    """Write the entries of some ranges by row, and where those of each row begin.

    ``targets`` (N K,): the second row of each entry, of ``n`` rows.
    """
    for group in range(begin, end):
        first = group << shift
        last = min(first + (1 << shift), n)
        free = np.zeros(last - first + 1, np.int64)
        for e in by_range[bounds[group] : bounds[group + 1]]:
            free[targets[e] - first + 1] += 1
        free[0] = bounds[group]
        for j in range(first, last):
            begins[j] = free[j - first]
            free[j - first + 1] += free[j - first]
        for e in by_range[bounds[group] : bounds[group + 1]]:
            j = targets[e] - first
            entries[free[j]] = e
            free[j] += 1


@njit(**LOOP)
def _sort_pairs(columns, weights, begin, end):
    """Sort the entries of a row by column, in place."""
    for gap in _GAPS:
        for at in range(begin + gap, end):
            column, weight, to = columns[at], weights[at], at
            while to >= begin + gap and columns[to - gap] > column:
                columns[to], weights[to] = columns[to - gap], weights[to - gap]
                to -= gap
            columns[to], weights[to] = column, weight


@njit(**LOOP)
def _join_rows(
    begin,
    end,
    indices,
    weights,
    begins,
    entries,
    share,
    room,
    columns,
    values,
    lengths,
    sums,
):
    """Write some joined rows from ``room`` on, their lengths and their sums.

    ``weights`` (N K,): of each entry.
    """
    k = indices.shape[1]
    width = entries.dtype.type(k)
    for i in range(begin, end):
        first = to = room[i]
        for p in range(k):
            columns[to], values[to] = indices[i, p], weights[i * k + p]
            to += 1
        for e in entries[begins[i] : begins[i + 1]]:
            columns[to], values[to] = e // width, weights[e]
            to += 1
        _sort_pairs(columns, values, first, to)
        at, last, total = first, first, 0.0
        while at < to:
            column, value = columns[at], values[at]
            at += 1
            while at < to and columns[at] == column:
                value = value + values[at] - share * value * values[at]
                at += 1
            if value != 0:
                columns[last], values[last] = column, value
                last += 1
                total += value
        lengths[i], sums[i] = last - first, total


@njit(**LOOP)
def _close_gaps(room, indptr, columns, values):
    """Move the rows, in place, to where they lie one after another."""
    for i in range(len(room)):
        to = np.int64(indptr[i])
        for at in range(room[i], room[i] + np.int64(indptr[i + 1]) - to):
            columns[to], values[to] = columns[at], values[at]
            to += 1


@njit(**LOOP)
def _permute_rows(
    begin, end, indptr, columns, weights, order, ranks, now, moved, values
):
    """Write some rows of the other order."""
    for r in range(begin, end):
        to, i = np.int64(now[r]), order[r]
        for at in range(np.int64(indptr[i]), np.int64(indptr[i + 1])):
            moved[to], values[to] = ranks[columns[at]], weights[at]
            to += 1
        _sort_pairs(moved, values, np.int64(now[r]), to)
