"""The compiled loops of the neighbour searches; :mod:`neighbors` says which is used.

Of :mod:`exact` are ``scan``, ``look`` and ``rank``; of :mod:`leaves` ``halve``,
``choose``, ``compare`` and ``neighbors_of_neighbors``, a round of NN-descent; of
:mod:`principal_components` ``power_pass`` and ``project``; of new
rows ``search_lists``.

Each number is a sum in one fixed order, without a library's products, so that its bits
are the same on any processor.  No loop is parallel by itself: threads share blocks of
rows, and no row sees how many there are.
"""

import numpy as np

from napari_embedding_game.core.loop_cache import njit
from napari_embedding_game.core.simd import across, fused, load, spread
from napari_embedding_game.core.threads import CHECKED, INNER, LOOP

_TILE = 1_008
"""Candidates scored at a time: a power of two would fill one set of the cache."""
_COLUMNS = 256
"""Columns of them at a time, for the same reason."""
_CHUNK = 24
"""Scores of which none is looked at where all are too large."""
_SAMPLED_ROWS = 512
"""Rows that a half's longest direction is from."""
_POWER_ITERATIONS = 6
_LOST = np.float32(1e-4)
"""Squared distance, relative to a row's length, below which scores are too rough."""
_LONG = np.float32(1e30)
"""Squared length above which scores may be infinite."""


@njit(**INNER, **CHECKED)
def _squares(x, y, begin, end, zero):
    total = zero
    for at in range(begin, end, len(zero)):
        difference = load(x, (at,), zero) - load(y, (at,), zero)
        total = total + difference * difference
    return across(total)


@njit(**INNER, **CHECKED)
def _products(x, y, begin, end, zero):
    total = zero
    for at in range(begin, end, len(zero)):
        total = total + load(x, (at,), zero) * load(y, (at,), zero)
    return across(total)


@njit(**INNER, **CHECKED)
def squared_distance(x, y):
    """Return the squared distance of two rows."""
    zero, n = np.float32(0), len(x)
    whole, rest = n - n % 16, n - n % 4
    total = _squares(x, y, 0, whole, spread(zero, 16))
    total += _squares(x, y, whole, rest, spread(zero, 4))
    return total + _squares(x, y, rest, n, spread(zero, 1))


@njit(**INNER, **CHECKED)
def dot(x, y):
    """Return the product of two rows."""
    zero, n = np.float32(0), len(x)
    whole, rest = n - n % 16, n - n % 4
    total = _products(x, y, 0, whole, spread(zero, 16))
    total += _products(x, y, whole, rest, spread(zero, 4))
    return total + _products(x, y, rest, n, spread(zero, 1))


@njit(**CHECKED)
def _add_pair(a, b, others, filled, s, t):
    """Add the products of two rows (D,) with ``others`` (D, M) to ``s``, ``t`` (M,).

    In the order of the columns; those of zeros in both rows, which change no sum, are
    left out.  ``filled`` (D,) is written to.
    """
    n = 0
    for c in range(a.shape[0]):
        filled[n] = c
        n += a[c] != 0 or b[c] != 0
    whole = n - n % 4
    for i in range(0, whole, 4):
        c, d, e, f = filled[i], filled[i + 1], filled[i + 2], filled[i + 3]
        a0, a1, a2, a3 = a[c], a[d], a[e], a[f]
        b0, b1, b2, b3 = b[c], b[d], b[e], b[f]
        o0, o1, o2, o3 = others[c], others[d], others[e], others[f]
        for j in range(others.shape[1]):
            s[j] = fused(
                a3, o3[j], fused(a2, o2[j], fused(a1, o1[j], fused(a0, o0[j], s[j])))
            )
            t[j] = fused(
                b3, o3[j], fused(b2, o2[j], fused(b1, o1[j], fused(b0, o0[j], t[j])))
            )
    for c in filled[whole:n]:
        a0, b0, o0 = a[c], b[c], others[c]
        for j in range(others.shape[1]):
            s[j] = fused(a0, o0[j], s[j])
            t[j] = fused(b0, o0[j], t[j])


@njit(**INNER, **CHECKED)
def insert(indices, distances, index, distance):
    """Put an entry into a list that is sorted by distance; the last one drops out.

    Of entries at the same distance the lower number comes first.
    """
    at = distances.shape[0] - 1
    while at > 0 and (
        distances[at - 1] > distance
        or (distances[at - 1] == distance and indices[at - 1] > index)
    ):
        distances[at] = distances[at - 1]
        indices[at] = indices[at - 1]
        at -= 1
    distances[at] = distance
    indices[at] = index


@njit(**CHECKED)
def _keep_smallest(scores, numbers, first, excluded, indices, distances):
    """Keep the smallest of the scores of candidates, but for that of ``excluded``."""
    last = distances.shape[0] - 1
    for begin in range(0, len(numbers), _CHUNK):
        end = min(begin + _CHUNK, len(numbers))
        n_near = 0
        for j in range(begin, end):
            n_near += scores[j] < distances[last]
        if n_near == 0:
            continue
        for j in range(begin, end):
            number = first + numbers[j]
            if scores[j] < distances[last] and number != excluded:
                insert(indices, distances, number, scores[j])


@njit(**CHECKED)
def scan(queries, excluded, rows, numbers, first, indices, distances):
    """Keep those ``numbers`` of ``rows`` nearest to each query, by |y|^2 - 2 x y.

    Query q leaves out row ``excluded[q]``; ``indices`` (Q, k) count from ``first``.
    """
    (n, n_dims), width = queries.shape, min(_TILE, len(numbers))
    doubled = np.empty((n + n % 2, n_dims), np.float32)
    for q in range(len(doubled)):
        for c in range(n_dims):
            doubled[q, c] = -2 * queries[q, c] if q < n else 0
    size = np.empty(width, np.float32)
    # Sums of all queries wait where rows are longer than a tile.
    n_sums = 2 if n_dims <= _COLUMNS else len(doubled)
    sums = np.empty((n_sums, width), np.float32)
    filled = np.empty(min(_COLUMNS, n_dims) + 1, np.int64)
    for begin in range(0, len(numbers), _TILE):
        near = numbers[begin : begin + _TILE]
        for at in range(0, n_dims, _COLUMNS):
            end = min(at + _COLUMNS, n_dims)
            tile = np.empty((end - at, len(near)), np.float32)
            for j in range(len(near)):
                row = rows[near[j]]
                size[j] = dot(row, row) if at == 0 else size[j]
                for c in range(at, end):
                    tile[c - at, j] = row[c]
            for q in range(0, len(doubled), 2):
                s, t = sums[q % n_sums], sums[q % n_sums + 1]
                if at == 0:  # by a loop: a slice takes a second more to compile
                    for j in range(len(near)):
                        s[j] = t[j] = size[j]
                x, y = doubled[q, at:end], doubled[q + 1, at:end]
                _add_pair(x, y, tile, filled, s, t)
                for p in range(q, min(q + 2, n) if end == n_dims else q):
                    scores, skip = sums[p % n_sums], excluded[p]
                    _keep_smallest(scores, near, first, skip, indices[p], distances[p])


@njit(**INNER, **CHECKED)
def _is_lost(query, squared):
    length, last = dot(query, query), squared[-1]
    # Scores find rows that are the same.
    return not (length < _LONG and (last == 0 or last >= _LOST * length))


@njit(**CHECKED)
def are_lost(queries, squared):
    """Return for which queries scores were too rough, by what is nearest (Q, k)."""
    is_lost = np.empty(len(queries), np.bool_)
    for q in range(len(queries)):
        is_lost[q] = _is_lost(queries[q], squared[q])
    return is_lost


@njit(**INNER, **CHECKED)
def _look_at(query, row, number, indices, squared):
    """Keep a row if it is among the nearest of one query, by differences."""
    distance, last = squared_distance(query, row), len(indices) - 1
    if distance < squared[last] or (
        distance == squared[last] and number < indices[last]
    ):
        insert(indices, squared, number, distance)


@njit(**CHECKED)
def look(queries, excluded, rows, first, indices, squared):
    """Keep those of ``rows`` nearest to each query, as :func:`scan`, by differences."""
    for q in range(len(queries)):
        for j in range(len(rows)):
            if first + j != excluded[q]:
                _look_at(queries[q], rows[j], first + j, indices[q], squared[q])


@njit(**CHECKED)
def rank(queries, rows, candidates, indices, squared):
    """Keep the nearest of candidates (Q, M), -1 for none, by differences of rows."""
    for q in range(len(candidates)):
        squared[q], indices[q] = np.inf, 0
        for p in range(candidates.shape[1]):
            j = np.int64(candidates[q, p])  # one type of numbers for all searches
            if j >= 0:
                _look_at(queries[q], rows[j], j, indices[q], squared[q])


@njit(**CHECKED)
def power_pass(rows, basis, moved):
    """Add R^T R b to ``moved`` (d, D) for each b of a basis (d, D)."""
    for i in range(len(rows)):
        for k in range(len(basis)):
            _add_multiple(rows[i], dot(rows[i], basis[k]), moved[k])


@njit(**CHECKED)
def project(rows, basis, out):
    """Write the products of rows (N, D) and a basis (d, D), (N, d)."""
    for i in range(len(rows)):
        for k in range(len(basis)):
            out[i, k] = dot(rows[i], basis[k])


@njit(**CHECKED)
def _add_multiple(row, factor, out):
    for c in range(len(row)):
        out[c] += factor * row[c]


# Assignments of arrays, their sums, maxima and medians take numba seconds to compile.


@njit(**CHECKED)
def _sum_of_products(x, y):
    total = 0.0
    for c in range(len(x)):
        total += x[c] * y[c]
    return total


@njit(**CHECKED)
def orthonormalize(vectors, out):
    """Make vectors (d, D) float64 orthonormal one by one; what has no length is 0."""
    for k in range(len(vectors)):
        vector = vectors[k]
        before = np.sqrt(_sum_of_products(vector, vector))
        for _ in range(2):  # the second time takes away what rounding has left
            for earlier in range(k):
                share = -_sum_of_products(vector, vectors[earlier])
                _add_multiple(vectors[earlier], share, vector)
        length = np.sqrt(_sum_of_products(vector, vector))
        scale = 1 / length if length > 1e-9 * before else 0.0
        for c in range(len(vector)):
            vector[c] *= scale
            out[k, c] = vector[c]


@njit(**LOOP)
def _shrink(row):
    """Divide a row by its largest number, as squares may be too large."""
    largest = np.float32(0)
    for c in range(len(row)):
        largest = max(largest, abs(row[c]))
    for c in range(len(row)):
        row[c] /= largest


@njit(**CHECKED)
def _kth_smallest(numbers, at):
    """Return the number at an index of the sorted numbers, which it reorders."""
    low, high = 0, len(numbers) - 1
    while low < high:
        i, j, pivot = low, high, numbers[(low + high) // 2]
        while i <= j:
            while numbers[i] < pivot:
                i += 1
            while numbers[j] > pivot:
                j -= 1
            if i <= j:
                numbers[i], numbers[j] = numbers[j], numbers[i]
                i, j = i + 1, j - 1
        low = i if at >= i else low
        high = j if at <= j else high
        if j < at < i:
            break
    return numbers[at]


@njit(**CHECKED)
def _halve(rows, order):
    n, n_dims = len(order), rows.shape[1]
    count = min(n, _SAMPLED_ROWS)
    sample = np.empty((count, n_dims), np.float32)
    centre, direction = np.zeros(n_dims, np.float32), np.zeros(n_dims, np.float32)
    for s in range(count):
        row = rows[order[s * n // count]]
        for c in range(n_dims):
            sample[s, c] = row[c]
            centre[c] += row[c] / np.float32(count)
    longest = np.float32(0)
    for s in range(count):
        for c in range(n_dims):
            sample[s, c] -= centre[c]
        length = dot(sample[s], sample[s])
        if length > longest:  # copies of one row have no direction: any half will do
            longest = length
            for c in range(n_dims):
                direction[c] = sample[s, c]
    for _ in range(_POWER_ITERATIONS * (longest > 0)):
        _shrink(direction)
        moved = np.zeros(n_dims, np.float32)
        for s in range(count):
            _add_multiple(sample[s], dot(sample[s], direction), moved)
        _shrink(moved)
        direction = moved
    along, ranked = np.empty(n, np.float32), np.empty(n, np.float32)
    for i in range(n):
        along[i] = ranked[i] = dot(rows[order[i]], direction)
    n_equal = middle = n // 2
    limit = _kth_smallest(ranked, middle)
    for i in range(n):
        n_equal -= along[i] < limit
    members, low, high = order.copy(), 0, middle
    for i in range(n):
        is_low = along[i] < limit
        if along[i] == limit and n_equal > 0:
            is_low, n_equal = True, n_equal - 1
        if is_low:
            order[low] = members[i]
            low += 1
        else:
            order[high] = members[i]
            high += 1


@njit(**CHECKED)
def halve(begin, end, rows, members, begins, ends):
    """Halve some lists, in place, along about their longest direction."""
    for at in range(begin, end):
        _halve(rows, members[begins[at] : ends[at]])


@njit(**CHECKED)
def mean_rows(begin, end, rows, bounds, out):
    """Write the mean row of each of the lists from ``begin`` to ``end``."""
    for at in range(begin, end):
        out[at] = 0
        for i in range(bounds[at], bounds[at + 1]):
            _add_multiple(rows[i], np.float32(1), out[at])
        out[at] /= np.float32(bounds[at + 1] - bounds[at])


@njit(**CHECKED)
def choose(begin, end, rows, bounds, means, near, chosen):
    """Write the nearest of the lists near its list for each row."""
    for at in range(begin, end):
        for i in range(bounds[at], bounds[at + 1]):
            least = np.float32(np.inf)
            for p in range(near.shape[1]):
                distance = squared_distance(rows[i], means[near[at, p]])
                if distance < least:
                    least, chosen[i] = distance, near[at, p]


@njit(**CHECKED)
def compare(begin, end, rows, bounds, near, fewest, indices, squared):
    """Compare the rows of some lists with those of near ones, ``fewest`` at least."""
    k = indices.shape[1]
    for at in range(begin, end):
        n_lists, count = 0, 0
        while n_lists < near.shape[1] and (n_lists == 0 or count < fewest):
            count += bounds[near[at, n_lists] + 1] - bounds[near[at, n_lists]]
            n_lists += 1
        if count <= k:  # lists of a row each: look into all
            numbers = np.arange(len(rows)).astype(np.int32)
        else:
            numbers, count = np.empty(count, np.int32), 0
            for p in range(n_lists):
                for i in range(bounds[near[at, p]], bounds[near[at, p] + 1]):
                    numbers[count] = i
                    count += 1
        first, last = bounds[at], bounds[at + 1]
        best = np.full((last - first, k), -1, np.int32)
        scores = np.full((last - first, k), np.inf, np.float32)
        excluded = np.arange(first, last)
        scan(rows[first:last], excluded, rows, numbers, 0, best, scores)
        rank(rows[first:last], rows, best, indices[first:last], squared[first:last])
        for i in range(first, last):
            if _is_lost(rows[i], squared[i]):
                squared[i] = np.inf
                for j in numbers:
                    if j != i:
                        _look_at(rows[i], rows[j], j, indices[i], squared[i])


@njit(**CHECKED)
def search_lists(
    begin, end, queries, rows, order, bounds, means, n_probes, indices, squared
):
    """Write the nearest rows of some queries, from lists with near means.

    ``rows`` (N, D) lie in the ``order`` of the lists, of which all are searched where
    the nearest hold fewer rows than k.
    """
    n_lists, last = len(means), indices.shape[1] - 1
    for q in range(begin, end):
        query = queries[q]
        near, far = np.arange(n_lists), np.full(n_probes, np.inf, np.float32)
        if n_probes < n_lists:
            for at in range(n_lists):
                distance = squared_distance(query, means[at])
                if distance < far[-1]:
                    insert(near[:n_probes], far, at, distance)
        count = 0
        for at in near[:n_probes]:
            count += bounds[at + 1] - bounds[at]
        if count <= last:
            near = np.arange(n_lists)
        squared[q] = np.inf
        for at in near if count <= last else near[:n_probes]:
            for i in range(bounds[at], bounds[at + 1]):
                _look_at(query, rows[i], order[i], indices[q], squared[q])


@njit(**CHECKED)
def reverse_neighbors(begin, end, begins, entries, squared, is_new, reverse):
    """Write the nearest rows that list some rows: 2 i + is new, or -1 for none.

    ``entries``: i k + p of each neighbour p of row i, by the neighbour; ``begins``:
    where those of each row begin.  ``reverse`` (N, width).
    """
    k, width = squared.shape[1], reverse.shape[1]
    distances = np.empty(width, np.float32)
    for j in range(begin, end):
        distances[:], reverse[j] = np.inf, -1
        for e in entries[begins[j] : begins[j + 1]]:
            i, p = np.int64(e // k), np.int64(e % k)
            if squared[i, p] < distances[width - 1]:
                insert(reverse[j], distances, 2 * i + is_new[i, p], squared[i, p])


@njit(inline="always", **CHECKED)
def _entry(indices, is_new, reverse, i, p):
    """Return the p-th of a row's neighbours, reverse ones last: 2 j + is new, or -1."""
    width = reverse.shape[1]
    if p < width:
        return 2 * indices[i, p] + is_new[i, p]
    return reverse[i, p - width]


@njit(**CHECKED)
def neighbors_of_neighbors(
    begin, end, rows, indices, squared, is_new, reverse, nearer, distances, is_added
):
    """Look for nearer rows among the neighbours of neighbours, in both directions.

    A round of NN-descent (Dong and others, 2011): pairs by two old edges were looked at
    in an earlier one.
    """
    k, width = indices.shape[1], reverse.shape[1]
    seen = np.full(len(rows), -1, np.int32)  # the row that last looked at each
    for i in range(begin, end):
        seen[i] = i
        for p in range(k):
            nearer[i, p], distances[i, p] = indices[i, p], squared[i, p]
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
                    insert(nearer[i], distances[i], j, distance)
        for p in range(k):
            is_added[i, p] = 1
            for q in range(k):
                if nearer[i, p] == indices[i, q]:
                    is_added[i, p] = 0
                    break
