"""The compiled loops of the searches in lists, in components and of all rows.

None is parallel by itself: threads share blocks of rows, so that a row is computed by
the same instructions whatever their number.  Sums may be reordered, as vector
instructions do, in the same way each time.
"""

# mypy: disable-error-code="no-untyped-def,assignment"

from __future__ import annotations

import numpy as np
from numba import njit

_REORDERED = {"reassoc", "contract", "nsz"}


@njit(nogil=True, cache=True, fastmath=_REORDERED, inline="always")
def squared_distance(a, b):
    """Return the squared euclidean distance of two rows."""
    total = np.float32(0)
    for c in range(a.shape[0]):
        difference = a[c] - b[c]
        total += difference * difference
    return total


@njit(nogil=True, cache=True, inline="always")
def _insert(indices, distances, index, distance):
    """Put an entry into a list that is sorted by distance; the last one drops out."""
    place = distances.shape[0] - 1
    while place > 0 and distances[place - 1] > distance:
        distances[place] = distances[place - 1]
        indices[place] = indices[place - 1]
        place -= 1
    distances[place] = distance
    indices[place] = index


@njit(nogil=True, cache=True)
def nearest_candidates(scores, candidates, rows, begin, indices, squared):
    """Fill the lists of the rows from ``begin`` on with their nearest candidates.

    ``scores`` (S, M): squared distances to the candidates (M,), each row's without a
    number of its own.  What is chosen by them is ranked by differences of the rows,
    which lose nothing where both are far from the origin.
    """
    n_candidates = len(candidates)
    k = indices.shape[1]
    found = np.empty(k, np.int32)
    for q in range(scores.shape[0]):
        i = begin + q
        squared[i] = np.inf
        for c in range(n_candidates):
            if scores[q, c] < squared[i, k - 1] and candidates[c] != i:
                _insert(indices[i], squared[i], candidates[c], scores[q, c])
        found[:] = indices[i]
        squared[i] = np.inf
        for p in range(k):
            distance = squared_distance(rows[i], rows[found[p]])
            _insert(indices[i], squared[i], found[p], distance)


@njit(nogil=True, cache=True)
def smallest(scores, own, begin, numbers, best):
    """Keep of each row of scores (S, M) the smallest, in order, and their numbers.

    The scores are of rows ``begin`` and on; that of the row ``own`` (S,) itself is left
    out.  ``best`` (S, k) float32 is infinite before, ``numbers`` (S, k) int32.
    """
    last = best.shape[1] - 1
    for s in range(scores.shape[0]):
        for c in range(scores.shape[1]):
            if scores[s, c] < best[s, last] and begin + c != own[s]:
                _insert(numbers[s], best[s], begin + c, scores[s, c])


@njit(nogil=True, cache=True)
def rank_rows(rows, begin, candidates, indices, squared):
    """Keep the nearest of candidates (S, M), -1 for none, of rows ``begin`` and on."""
    for q in range(candidates.shape[0]):
        i = begin + q
        squared[i] = np.inf
        for p in range(candidates.shape[1]):
            j = candidates[q, p]
            if j >= 0:
                distance = squared_distance(rows[i], rows[j])
                if distance < squared[i, -1]:
                    _insert(indices[i], squared[i], j, distance)


@njit(nogil=True, cache=True)
def reverse_neighbors(indices, squared, is_new, width):
    """Return who has each row in its list: the nearest ``width`` of them, (N, width).

    An entry is 2 i, or 2 i + 1 where it is new in the list of i, or -1 for none.
    """
    n, k = indices.shape
    reverse = np.full((n, width), -1, np.int32)
    distances = np.full((n, width), np.inf, np.float32)
    for i in range(n):
        for p in range(k):
            j = indices[i, p]
            if squared[i, p] < distances[j, width - 1]:
                entry = 2 * i + is_new[i, p]
                _insert(reverse[j], distances[j], entry, squared[i, p])
    return reverse


@njit(nogil=True, cache=True, inline="always")
def _entry(indices, is_new, reverse, i, p):
    """Return the p-th of a row's neighbours, reverse ones last: 2 j + is new, or -1."""
    width = reverse.shape[1]
    if p < width:
        return 2 * indices[i, p] + is_new[i, p]
    return reverse[i, p - width]


@njit(nogil=True, cache=True)
def neighbors_of_neighbors(
    rows, indices, squared, is_new, reverse, begin, end, seen, nearer, distances, found
):
    """Look for nearer rows among the neighbours of neighbours, in both directions.

    As many forward as reverse neighbours count, of a row and of each of these.  What
    neither edge is new of was looked at in an earlier round.  ``nearer`` and
    ``distances`` are the new lists, ``found`` which of their entries are new.
    ``seen`` (N,) int32 belongs to the calling thread: the row that last looked at it.
    """
    k = indices.shape[1]
    width = reverse.shape[1]
    for i in range(begin, end):
        nearer[i] = indices[i]
        distances[i] = squared[i]
        seen[i] = i
        for p in range(k):
            seen[indices[i, p]] = i
        for p in range(2 * width):
            via = _entry(indices, is_new, reverse, i, p)
            if via < 0:
                break
            for q in range(-1, 2 * width):
                other = via
                if q >= 0:
                    other = _entry(indices, is_new, reverse, via >> 1, q)
                    if other < 0:
                        break
                if not (via | other) & 1 or seen[other >> 1] == i:
                    continue
                j = other >> 1
                seen[j] = i
                distance = squared_distance(rows[i], rows[j])
                if distance < distances[i, k - 1]:
                    _insert(nearer[i], distances[i], j, distance)
        for p in range(k):
            found[i, p] = 1
            for q in range(k):
                if nearer[i, p] == indices[i, q]:
                    found[i, p] = 0
                    break


@njit(nogil=True, cache=True, fastmath=_REORDERED)
def rank(X, scale, order, begin, end, candidates, indices, squared):
    """Keep of each row's candidates the nearest by the distance in all columns.

    ``scale`` (N,) is what each row of ``X`` (N, D) is multiplied by.  The rows are
    those from ``begin`` to ``end`` of ``order``, as is their place in ``candidates``.
    """
    for at in range(begin, end):
        i = order[at]
        squared[at] = np.inf
        for p in range(candidates.shape[1]):
            j = order[candidates[at, p]]
            total = X[i, 0] * 0
            for c in range(X.shape[1]):
                difference = X[i, c] * scale[i] - X[j, c] * scale[j]
                total += difference * difference
            if total < squared[at, -1]:
                _insert(indices[at], squared[at], j, total)
