"""Compiled loops of the neighbour searches; :mod:`neighbors` says which is used.

:mod:`exact` calls ``keep_nearest_by_scores``, ``keep_nearest_by_differences`` and
``rank_by_differences``; :mod:`leaves` calls ``halve_lists``, ``choose_nearest_lists``,
``compare_near_lists`` and ``search_neighbors_of_neighbors``, a round of NN-descent;
:mod:`principal_components` calls ``add_gram_products`` and ``project``; the search
for new rows calls ``search_lists``.

Each number is a sum in a fixed order, without a library's products, so that its bits
are the same on any processor.  No loop starts threads: threads share blocks of rows,
and the result of a row does not depend on their number.
"""

import numpy as np

from napari_embedding_game.core.loop_cache import njit
from napari_embedding_game.core.simd import broadcast, fma, load, sum_lanes
from napari_embedding_game.core.threads import CHECKED, INNER, LOOP

_TILE = 1_008
"""Candidates scored at a time: a power of two would fill one set of the cache."""
_COLUMNS = 256
"""Columns of candidates at a time, for the same reason."""
_CHUNK = 24
"""Number of scores that are skipped at once where all are too large."""
_SAMPLED_ROWS = 512
"""Most rows of a list that its longest direction is computed from."""
_POWER_ITERATIONS = 6
_LOST = np.float32(1e-4)
"""Squared distance, relative to a row's squared length, below which scores are too
rough."""
_LONG = np.float32(1e30)
"""Squared length above which scores may be infinite."""


@njit(**INNER, **CHECKED)
def _sum_squared_differences(x, y, begin, end, zero):
    """Return the sum of (x - y)^2 over columns begin to end, in vectors like zero.

    The number of lanes of ``zero`` must divide ``end - begin``.
    """
    total = zero
    for at in range(begin, end, len(zero)):
        difference = load(x, (at,), zero) - load(y, (at,), zero)
        total = total + difference * difference
    return sum_lanes(total)


@njit(**INNER, **CHECKED)
def _sum_products(x, y, begin, end, zero):
    """Return the sum of x y over columns begin to end, in vectors like ``zero``.

    The number of lanes of ``zero`` must divide ``end - begin``.
    """
    total = zero
    for at in range(begin, end, len(zero)):
        total = total + load(x, (at,), zero) * load(y, (at,), zero)
    return sum_lanes(total)


@njit(**INNER, **CHECKED)
def squared_distance(x, y):
    """Return the squared distance of two rows (D,), float32."""
    zero, n = np.float32(0), len(x)
    by_16, by_4 = n - n % 16, n - n % 4
    total = _sum_squared_differences(x, y, 0, by_16, broadcast(zero, 16))
    total += _sum_squared_differences(x, y, by_16, by_4, broadcast(zero, 4))
    return total + _sum_squared_differences(x, y, by_4, n, broadcast(zero, 1))


@njit(**INNER, **CHECKED)
def dot(x, y):
    """Return the dot product of two rows (D,), float32."""
    zero, n = np.float32(0), len(x)
    by_16, by_4 = n - n % 16, n - n % 4
    total = _sum_products(x, y, 0, by_16, broadcast(zero, 16))
    total += _sum_products(x, y, by_16, by_4, broadcast(zero, 4))
    return total + _sum_products(x, y, by_4, n, broadcast(zero, 1))


@njit(**CHECKED)
def _add_dot_products_of_row_pair(a, b, others, filled, s, t):
    """Add the products of a pair of rows with ``others`` to the sums ``s`` and ``t``.

    ``s`` and ``t`` (M,), changed in place, hold the sums so far of the rows ``a`` and
    ``b`` (D,): a @ others is added to ``s``, and b @ others to ``t``.  ``others``
    (D, M) has a row for each column of the pair; ``filled`` (D + 1,) is scratch.
    Products are added in the order of the pair's columns; columns that are 0 in both
    rows, which change no sum, are skipped.
    """
    n = 0
    for c in range(a.shape[0]):
        filled[n] = c
        n += a[c] != 0 or b[c] != 0
    by_4 = n - n % 4
    for i in range(0, by_4, 4):
        c, d, e, f = filled[i], filled[i + 1], filled[i + 2], filled[i + 3]
        a0, a1, a2, a3 = a[c], a[d], a[e], a[f]
        b0, b1, b2, b3 = b[c], b[d], b[e], b[f]
        o0, o1, o2, o3 = others[c], others[d], others[e], others[f]
        for j in range(others.shape[1]):
            s[j] = fma(a3, o3[j], fma(a2, o2[j], fma(a1, o1[j], fma(a0, o0[j], s[j]))))
            t[j] = fma(b3, o3[j], fma(b2, o2[j], fma(b1, o1[j], fma(b0, o0[j], t[j]))))
    for c in filled[by_4:n]:
        a0, b0, o0 = a[c], b[c], others[c]
        for j in range(others.shape[1]):
            s[j] = fma(a0, o0[j], s[j])
            t[j] = fma(b0, o0[j], t[j])


@njit(**INNER, **CHECKED)
def insert_sorted(indices, distances, index, distance):
    """Insert an entry into a list sorted by distance, in place; drop its last entry.

    Of entries at the same distance the lower index comes first.  The caller checks that
    the entry is nearer than the last one.
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
    """Insert candidates with small scores into a query's sorted list, in place.

    Candidate j is row ``first + numbers[j]``; row ``excluded`` is skipped, and scores
    equal to the list's last one are not inserted.
    """
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
                insert_sorted(indices, distances, number, scores[j])


@njit(**CHECKED)
def keep_nearest_by_scores(queries, excluded, rows, numbers, first, indices, distances):
    """Insert the rows nearest to each query into its list, by scores |y|^2 - 2 x y.

    ``queries`` (Q, D) are compared with ``rows[numbers]``, which are the rows ``first +
    numbers`` of all; query q skips row ``excluded[q]``.  The sorted lists ``indices``
    and ``distances`` (Q, k), which holds scores, are updated in place.
    """
    (n, n_dims), width = queries.shape, min(_TILE, len(numbers))
    doubled = np.empty((n + n % 2, n_dims), np.float32)
    for q in range(len(doubled)):
        for c in range(n_dims):
            doubled[q, c] = -2 * queries[q, c] if q < n else 0
    size = np.empty(width, np.float32)
    # Where rows are longer than a tile, the sums of all queries are kept.
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
                _add_dot_products_of_row_pair(x, y, tile, filled, s, t)
                for p in range(q, min(q + 2, n) if end == n_dims else q):
                    scores, skip = sums[p % n_sums], excluded[p]
                    _keep_smallest(scores, near, first, skip, indices[p], distances[p])


@njit(**INNER, **CHECKED)
def _has_rough_scores(query, squared):
    """Return whether a query's nearest rows are too close for scores, or squares large.

    ``squared`` (k,): squared distances of the nearest rows, ascending.
    """
    length, last = dot(query, query), squared[-1]
    # Scores do find copies of the query, so a distance of 0 is exact.
    return not (length < _LONG and (last == 0 or last >= _LOST * length))


@njit(**CHECKED)
def find_rough_queries(queries, squared):
    """Return for each query whether its neighbours are too close for scores, (Q,) bool.

    ``squared`` (Q, k): squared distances of the nearest rows found.  It is also true of
    queries so long that squares may be infinite.
    """
    is_lost = np.empty(len(queries), np.bool_)
    for q in range(len(queries)):
        is_lost[q] = _has_rough_scores(queries[q], squared[q])
    return is_lost


@njit(**INNER, **CHECKED)
def _keep_if_nearer(query, row, number, indices, squared):
    """Insert ``row`` into a query's sorted list, in place, if it is near enough.

    It is where it is nearer than the last entry, or as near with a lower ``number``.
    """
    distance, last = squared_distance(query, row), len(indices) - 1
    if distance < squared[last] or (
        distance == squared[last] and number < indices[last]
    ):
        insert_sorted(indices, squared, number, distance)


@njit(**CHECKED)
def keep_nearest_by_differences(queries, excluded, rows, first, indices, squared):
    """Insert the rows nearest to each query into its list, by squared distances.

    Query q is compared with all ``rows``, numbered from ``first`` on, but for row
    ``excluded[q]``.  The sorted lists ``indices`` and ``squared`` (Q, k) are updated in
    place.
    """
    for q in range(len(queries)):
        for j in range(len(rows)):
            if first + j != excluded[q]:
                _keep_if_nearer(queries[q], rows[j], first + j, indices[q], squared[q])


@njit(**CHECKED)
def rank_by_differences(queries, rows, candidates, indices, squared):
    """Write the nearest of each query's candidates, by squared distances.

    ``candidates`` (Q, M): numbers of ``rows``, -1 for no row; ``indices`` and
    ``squared`` (Q, k) are overwritten, nearest first; places without a candidate get 0
    and infinity.
    """
    for q in range(len(candidates)):
        squared[q], indices[q] = np.inf, 0
        for p in range(candidates.shape[1]):
            j = np.int64(candidates[q, p])  # one type of numbers for all searches
            if j >= 0:
                _keep_if_nearer(queries[q], rows[j], j, indices[q], squared[q])


@njit(**CHECKED)
def add_gram_products(rows, basis, moved):
    """Add R^T R b to ``moved`` (d, D) for each vector b of ``basis`` (d, D).

    R: ``rows`` (N, D).
    """
    for i in range(len(rows)):
        for k in range(len(basis)):
            _add_multiple(rows[i], dot(rows[i], basis[k]), moved[k])


@njit(**CHECKED)
def project(rows, basis, out):
    """Write the dot products of ``rows`` (N, D) and ``basis`` (d, D) to ``out``."""
    for i in range(len(rows)):
        for k in range(len(basis)):
            out[i, k] = dot(rows[i], basis[k])


@njit(**CHECKED)
def _add_multiple(row, factor, out):
    """Add factor times row (D,) to ``out`` (D,), in place."""
    for c in range(len(row)):
        out[c] += factor * row[c]


# Loops over numbers, because numba takes seconds to compile assignments, sums, maxima
# and medians of arrays.


@njit(**CHECKED)
def _dot_float64(x, y):
    """Return the dot product of two rows (D,) in float64."""
    total = 0.0
    for c in range(len(x)):
        total += x[c] * y[c]
    return total


@njit(**CHECKED)
def orthonormalize(vectors, out):
    """Write orthonormalised ``vectors`` (d, D) to ``out`` (d, D); change both in place.

    ``vectors`` are float64.  A vector that depends on earlier ones becomes 0.
    """
    for k in range(len(vectors)):
        vector = vectors[k]
        before = np.sqrt(_dot_float64(vector, vector))
        for _ in range(2):  # the second pass removes rounding errors of the first
            for earlier in range(k):
                share = -_dot_float64(vector, vectors[earlier])
                _add_multiple(vectors[earlier], share, vector)
        length = np.sqrt(_dot_float64(vector, vector))
        scale = 1 / length if length > 1e-9 * before else 0.0
        for c in range(len(vector)):
            vector[c] *= scale
            out[k, c] = vector[c]


@njit(**LOOP)
def _divide_by_largest(row):
    """Divide a row by its largest absolute number, in place, so that squares fit."""
    largest = np.float32(0)
    for c in range(len(row)):
        largest = max(largest, abs(row[c]))
    for c in range(len(row)):
        row[c] /= largest


@njit(**CHECKED)
def _select_kth_smallest(numbers, at):
    """Return the number with rank ``at`` (from 0); reorder ``numbers`` in place."""
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
def _halve_list(rows, order):
    """Reorder a list of row numbers ``order``, in place, so that its halves lie apart.

    1. The longest direction of sampled rows is found by power iterations.
    2. Rows below the median along the direction come first, rows above it last; rows at
       the median are divided so that the halves are equally long.
    """
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
        if length > longest:  # copies of a row have no direction, any halves do
            longest = length
            for c in range(n_dims):
                direction[c] = sample[s, c]
    for _ in range(_POWER_ITERATIONS * (longest > 0)):
        _divide_by_largest(direction)
        moved = np.zeros(n_dims, np.float32)
        for s in range(count):
            _add_multiple(sample[s], dot(sample[s], direction), moved)
        _divide_by_largest(moved)
        direction = moved
    along, ranked = np.empty(n, np.float32), np.empty(n, np.float32)
    for i in range(n):
        along[i] = ranked[i] = dot(rows[order[i]], direction)
    n_equal = middle = n // 2
    limit = _select_kth_smallest(ranked, middle)
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
def halve_lists(begin, end, rows, members, begins, ends):
    """Reorder lists begin to end of ``members``, in place, so that halves lie apart.

    List i is ``members[begins[i] : ends[i]]``, numbers of ``rows``.
    """
    for at in range(begin, end):
        _halve_list(rows, members[begins[at] : ends[at]])


@njit(**CHECKED)
def write_mean_rows(begin, end, rows, bounds, out):
    """Write the mean row of lists begin to end to ``out`` (M, D).

    List m has the ``rows`` from ``bounds[m]`` to ``bounds[m + 1]``, at least one.
    """
    for at in range(begin, end):
        out[at] = 0
        for i in range(bounds[at], bounds[at + 1]):
            _add_multiple(rows[i], np.float32(1), out[at])
        out[at] /= np.float32(bounds[at + 1] - bounds[at])


@njit(**CHECKED)
def choose_nearest_lists(begin, end, rows, bounds, means, near, chosen):
    """Write the list that each row of lists begin to end is nearest to, to ``chosen``.

    Candidates are the lists near the row's list, ``near`` (M, count); distances are
    those to the lists' ``means`` (M, D).  ``chosen``: (N,).
    """
    for at in range(begin, end):
        for i in range(bounds[at], bounds[at + 1]):
            least = np.float32(np.inf)
            for p in range(near.shape[1]):
                distance = squared_distance(rows[i], means[near[at, p]])
                if distance < least:
                    least, chosen[i] = distance, near[at, p]


@njit(**CHECKED)
def compare_near_lists(begin, end, rows, bounds, near, fewest, indices, squared):
    """Write the nearest rows of each row of lists begin to end.

    Candidates are the rows of the nearest lists (``near``) that hold ``fewest`` rows
    together, or all rows where those are too few.  List m is ``rows[bounds[m] :
    bounds[m + 1]]``; ``indices`` and ``squared`` (N, k) are written.
    """
    k = indices.shape[1]
    for at in range(begin, end):
        n_lists, count = 0, 0
        while n_lists < near.shape[1] and (n_lists == 0 or count < fewest):
            count += bounds[near[at, n_lists] + 1] - bounds[near[at, n_lists]]
            n_lists += 1
        if count <= k:  # lists of a single row: compare with all rows
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
        own = rows[first:last]
        keep_nearest_by_scores(own, excluded, rows, numbers, 0, best, scores)
        rank_by_differences(own, rows, best, indices[first:last], squared[first:last])
        for i in range(first, last):
            if _has_rough_scores(rows[i], squared[i]):
                squared[i] = np.inf
                for j in numbers:
                    if j != i:
                        _keep_if_nearer(rows[i], rows[j], j, indices[i], squared[i])


@njit(**CHECKED)
def search_lists(
    begin, end, queries, rows, order, bounds, means, n_probes, indices, squared
):
    """Write the nearest rows of queries begin to end, from the nearest lists.

    ``rows`` (N, D) lie in the ``order`` of the lists; list m has the rows from
    ``bounds[m]`` to ``bounds[m + 1]``.  Searched are the ``n_probes`` lists with the
    nearest ``means``, or all where those hold fewer than k rows.  ``indices`` (Q, k),
    numbers by ``order``, and ``squared`` are written.
    """
    n_lists, last = len(means), indices.shape[1] - 1
    for q in range(begin, end):
        query = queries[q]
        near, far = np.arange(n_lists), np.full(n_probes, np.inf, np.float32)
        if n_probes < n_lists:
            for at in range(n_lists):
                distance = squared_distance(query, means[at])
                if distance < far[-1]:
                    insert_sorted(near[:n_probes], far, at, distance)
        count = 0
        for at in near[:n_probes]:
            count += bounds[at + 1] - bounds[at]
        if count <= last:
            near = np.arange(n_lists)
        squared[q] = np.inf
        for at in near if count <= last else near[:n_probes]:
            for i in range(bounds[at], bounds[at + 1]):
                _keep_if_nearer(query, rows[i], order[i], indices[q], squared[q])


@njit(**CHECKED)
def write_reverse_neighbors(begin, end, begins, entries, squared, is_new, reverse):
    """Write the nearest rows that have row j as neighbour, for j from begin to end.

    ``reverse`` (N, width): 2 i + is_new for row i, nearest first, or -1 for no row.
    ``entries``: i k + p for neighbour p of row i, sorted by the neighbour; ``begins``:
    where the entries of each neighbour begin; ``squared``, ``is_new`` (N, k): of
    entries.
    """
    k, width = squared.shape[1], reverse.shape[1]
    distances = np.empty(width, np.float32)
    for j in range(begin, end):
        distances[:], reverse[j] = np.inf, -1
        for e in entries[begins[j] : begins[j + 1]]:
            i, p = np.int64(e // k), np.int64(e % k)
            if squared[i, p] < distances[width - 1]:
                insert_sorted(
                    reverse[j], distances, 2 * i + is_new[i, p], squared[i, p]
                )


@njit(inline="always", **CHECKED)
def _encode_neighbor(indices, is_new, reverse, i, p):
    """Return the p-th neighbour of row i as 2 j + is_new, or -1 for no row.

    The nearest neighbours come first, as many as ``reverse`` has columns, then the rows
    of ``reverse[i]``.
    """
    width = reverse.shape[1]
    if p < width:
        return 2 * indices[i, p] + is_new[i, p]
    return reverse[i, p - width]


@njit(**CHECKED)
def search_neighbors_of_neighbors(
    begin, end, rows, indices, squared, is_new, reverse, nearer, distances, is_added
):
    """Write the nearest of each row's neighbours and its neighbours' neighbours.

    A round of NN-descent (Dong and others, 2011) in both directions of edges.  Pairs
    over two old edges were compared in an earlier round and are skipped.  Written are
    ``nearer`` and ``distances`` (N, k), and ``is_added``, 1 where a neighbour was not
    in ``indices``.  ``reverse``: see :func:`write_reverse_neighbors`.
    """
    k, width = indices.shape[1], reverse.shape[1]
    seen = np.full(len(rows), -1, np.int32)  # the row last compared with each row
    for i in range(begin, end):
        seen[i] = i
        for p in range(k):
            nearer[i, p], distances[i, p] = indices[i, p], squared[i, p]
            seen[indices[i, p]] = i
        for p in range(2 * width):
            via = _encode_neighbor(indices, is_new, reverse, i, p)
            if via < 0:
                break
            for q in range(-1, 2 * width):
                other = via
                if q >= 0:
                    other = _encode_neighbor(indices, is_new, reverse, via >> 1, q)
                    if other < 0:
                        break
                if not (via | other) & 1 or seen[other >> 1] == i:
                    continue
                j = other >> 1
                seen[j] = i
                distance = squared_distance(rows[i], rows[j])
                if distance < distances[i, k - 1]:
                    insert_sorted(nearer[i], distances[i], j, distance)
        for p in range(k):
            is_added[i, p] = 1
            for q in range(k):
                if nearer[i, p] == indices[i, q]:
                    is_added[i, p] = 0
                    break
