"""The compiled loops of :mod:`fitted_search`: distances to blocks of fitted rows.

A block holds up to ``BLOCK`` rows column by column, so that a loop over rows adds up
one column after the other: it vectorises, and no sum changes its order.  A distance is
the same to the last bit for any number of queries and of threads.

Arrays: ``queries`` (Q, D) float32; ``blocks`` (B, D, BLOCK) float32; ``numbers``
(B, BLOCK) row numbers, -1 where a block is not full; ``first`` (L + 1,) where the
blocks of each list begin; ``centres`` (C, D, BLOCK) blocks of the centres of the
lists.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,assignment"

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

BLOCK = 128
_OPTIONS: dict[str, Any] = {"nogil": True, "cache": True, "error_model": "numpy"}


@njit(**_OPTIONS)
def _squared(query, block, squared):
    """Write the squared distances of a query to the rows of a block."""
    squared[:] = 0
    for k in range(query.shape[0]):
        x = query[k]
        column = block[k]
        for r in range(squared.shape[0]):
            apart = column[r] - x
            squared[r] += apart * apart


@njit(**_OPTIONS)
def _insert(distance, number, distances, numbers):
    """Put a row into those found so far, nearest first; of equals the lower number."""
    at = distances.shape[0] - 1
    while at > 0 and (
        distance < distances[at - 1]
        or (distance == distances[at - 1] and number < numbers[at - 1])
    ):
        distances[at] = distances[at - 1]
        numbers[at] = numbers[at - 1]
        at -= 1
    distances[at] = distance
    numbers[at] = number


@njit(**_OPTIONS)
def _scan(query, block, block_numbers, squared, distances, numbers):
    _squared(query, block, squared)
    last = distances.shape[0] - 1
    for r in range(squared.shape[0]):
        distance, number = squared[r], block_numbers[r]
        if number >= 0 and (
            distance < distances[last]
            or (distance == distances[last] and number < numbers[last])
        ):
            _insert(distance, number, distances, numbers)


@njit(**_OPTIONS)
def nearest_rows(
    begin, end, queries, centres, n_probes, first, blocks, numbers, found, distances
):
    """Write the rows nearest to some queries, in order; of equals the lower number.

    The ``n_probes`` lists with the nearest centres are searched, and more of them until
    there are as many rows as asked for.

    Parameters
    ----------
    found : (Q, M) int64
        Row numbers.
    distances : (Q, M) float32
        Squared distances.
    """
    n_lists = first.shape[0] - 1
    squared = np.empty(BLOCK, np.float32)
    to_lists = np.empty(centres.shape[0] * BLOCK, np.float32)
    for q in range(begin, end):
        distances[q] = np.inf
        found[q] = np.iinfo(np.int64).max
        for b in range(centres.shape[0]):
            _squared(queries[q], centres[b], squared)
            to_lists[b * BLOCK : (b + 1) * BLOCK] = squared
        for probe in range(n_lists):
            if probe >= n_probes and distances[q, -1] < np.inf:
                break
            nearest = np.argmin(to_lists[:n_lists])
            to_lists[nearest] = np.inf
            for b in range(first[nearest], first[nearest + 1]):
                _scan(
                    queries[q], blocks[b], numbers[b], squared,
                    distances[q], found[q],
                )  # fmt: skip
