"""Turn weights of each row's neighbours (N, K) into symmetric rows, in parallel.

1. Pairs are sorted by their second row: by ranges of rows, then inside each range.
2. The weights that a row gives and those that it receives are joined, sorted by column.
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
"""Number of rows whose pairs are counted and sorted together."""
_MAX_RANGE_BITS = 8
"""At most 2 to this many ranges of rows, so that each has a place in the cache."""
_GAPS = (40, 13, 4, 1)
"""Gaps of Shell's sort, for rows of few entries."""
_STEPS = 8
"""Cost of an entry, in pairs of points."""

CompressedRows = tuple[NDArray[Any], NDArray[np.uint32], NDArray[np.floating]]
"""indptr (N + 1,) uint32, or uint64 where that is too small; columns; weights."""


def join_directions(
    indices: NDArray[np.int32], weights: NDArray[np.floating], takes_product: bool
) -> tuple[CompressedRows, float]:
    """Return the symmetric compressed rows of directed weights, and their sum.

    ``indices`` and ``weights`` (N, K): neighbours of each row and their weights.  A
    pair with the weights a and b has a + b in both directions, or a + b - a b where
    ``takes_product``; without the reverse edge b is 0.  Weights of 0 are left out.
    """
    n, k = indices.shape
    begins, entries = sort_entries_by_target(indices)
    room = begins[:-1] + np.arange(0, n * k, k)
    columns = np.empty(2 * n * k, np.uint32)
    values = np.empty(len(columns), weights.dtype)
    lengths, sums = np.empty(n, np.int64), np.empty(n)
    share = weights.dtype.type(takes_product)
    work, pairs = _STEPS * len(columns), (indices, weights.ravel(), begins, entries)
    found = room, columns, values, lengths, sums
    run_blocks(_join_rows, n, work, *pairs, share, *found)
    indptr = _to_indptr(lengths)
    _close_gaps(room, indptr, columns, values)
    columns.resize(int(indptr[-1]), refcheck=False)  # in place: no second copy
    values.resize(len(columns), refcheck=False)
    return (indptr, columns, values), float(sums.sum())


def permute_rows(rows: CompressedRows, order: NDArray[np.integer]) -> CompressedRows:
    """Return rows whose row and column i is the former ``order[i]``.

    ``rows`` are not changed; the columns of each row are sorted again.
    """
    indptr, columns, weights = rows
    ranks = np.empty(len(order), np.uint32)
    ranks[order] = np.arange(len(order), dtype=np.uint32)
    lengths = np.diff(indptr.astype(np.int64))
    now = _to_indptr(lengths[order])
    found = now, np.empty_like(columns), np.empty_like(weights)
    work = _STEPS * len(columns)
    run_blocks(_permute_rows, len(order), work, *rows, order, ranks, *found)
    return found


def _to_indptr(lengths: NDArray[np.int64]) -> NDArray[Any]:
    """Return where rows of ``lengths`` (N,) begin, (N + 1,) uint32, or uint64."""
    ends = np.concatenate([[0], np.cumsum(lengths)])
    fits = ends[-1] <= np.iinfo(np.uint32).max
    return ends.astype(np.uint32 if fits else np.uint64)


def sort_entries_by_target(
    indices: NDArray[np.int32],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sort the entries of ``indices`` (N, K) by the row that they point to.

    Returns where the entries of each row begin (N + 1,), and the entries (N K,): i K +
    p for neighbour p of row i, ascending within a row.
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
    work = indices.size
    run_blocks(_sort_by_range, n_chunks, work, indices, shift, places, by_range)
    begins = np.empty(n + 1, np.int64)
    begins[n] = n * k
    found = bounds, by_range, begins, entries
    targets = indices.ravel()
    run_blocks(_sort_in_ranges, n_ranges, _STEPS * n * k, targets, n, shift, *found)
    return begins, entries


@njit(**LOOP)
def _count_ranges(begin, end, indices, shift, counts):
    """Write how many pairs of chunks begin to end point to each range of rows.

    ``counts`` (chunks, ranges); the range of row j is ``j >> shift``.
    """
    for c in range(begin, end):
        counts[c] = 0
        for i in range(c * _CHUNK, min((c + 1) * _CHUNK, len(indices))):
            for p in range(indices.shape[1]):
                counts[c, indices[i, p] >> shift] += 1


@njit(**LOOP)
def _sort_by_range(begin, end, indices, shift, places, by_range):
    """Write the entries of chunks begin to end by range, from ``places`` on.

    ``places`` (chunks, ranges) are advanced in place.  Entry i K + p is neighbour p of
    row i; ``by_range`` (N K,) is written.
    """
    k = indices.shape[1]
    for c in range(begin, end):
        for i in range(c * _CHUNK, min((c + 1) * _CHUNK, len(indices))):
            for p in range(k):
                group = indices[i, p] >> shift
                by_range[places[c, group]] = i * k + p
                places[c, group] += 1


@njit(**LOOP)
def _sort_in_ranges(begin, end, targets, n, shift, bounds, by_range, begins, entries):
    """Write the entries of ranges begin to end by row, and where each row begins.

    ``targets`` (N K,): the row that each entry points to, of ``n`` rows; ``by_range``
    (N K,): entries by range, where range g begins at ``bounds[g]``.  ``begins`` (N +
    1,) and ``entries`` (N K,) are written.
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
    """Sort the entries begin to end of ``columns``, and ``weights`` with them.

    They are the entries of one row, sorted in place; equal columns may change places.
    """
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
    """Join each row's own neighbours with the rows that name it, for rows begin to end.

    ``indices`` (N, K): neighbours of each row; ``weights`` (N K,): the weight of each
    entry, which is i K + p for neighbour p of row i.
    ``entries[begins[i] : begins[i + 1]]`` are the entries that point to row i.  A pair
    with the weights a and b gets a + b - ``share`` a b; ``share`` is 1 or 0.

    Row i is written to ``columns`` and ``values`` from ``room[i]`` on, in ascending
    order of its columns and without weights of 0; its length and its sum are written to
    ``lengths`` and ``sums`` (N,).
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
    """Move rows from ``room[i]`` to ``indptr[i]``, in place, first row first.

    ``columns`` and ``values`` keep their length; the entries after the last row are
    left.
    """
    for i in range(len(room)):
        to = np.int64(indptr[i])
        for at in range(room[i], room[i] + np.int64(indptr[i + 1]) - to):
            columns[to], values[to] = columns[at], values[at]
            to += 1


@njit(**LOOP)
def _permute_rows(
    begin, end, indptr, columns, weights, order, ranks, now, moved, values
):
    """Write rows begin to end of the new order, their columns renumbered and sorted.

    Row r is the former row ``order[r]``, and is written from ``now[r]`` on; column c
    becomes ``ranks[c]``.
    """
    for r in range(begin, end):
        to, i = np.int64(now[r]), order[r]
        for at in range(np.int64(indptr[i]), np.int64(indptr[i + 1])):
            moved[to], values[to] = ranks[columns[at]], weights[at]
            to += 1
        _sort_pairs(moved, values, np.int64(now[r]), to)
