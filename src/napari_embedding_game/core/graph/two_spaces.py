"""Find neighbours in two spaces at once, from one space to the other by a share.

    d^2(i, j) = (1 - share) a^2(i, j) / A + share b^2(i, j) / B

a and b are distances in the first and the second space.  A is what the first space
loses where the second chooses: the mean of a^2 over neighbours in the second space
minus its mean over neighbours in the first.  B is the loss of the second space.  So
both lose as much at a share of 0.5, and the map changes around it.

Distances are of pairs that are near in either space (``FACTOR`` K of each), which are
found once; another share only ranks them again.  Adding the edges of both graphs
instead gives a map of one space or the other, and nothing between: ``docs/tried.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.graph.coordinates import Coordinates
from napari_embedding_game.core.graph.neighbors import NeighborGraph, knn_graph
from napari_embedding_game.core.graph.rows import SEARCHED
from napari_embedding_game.core.graph.search_loops import (
    insert_sorted,
    squared_distance,
)
from napari_embedding_game.core.loop_cache import njit
from napari_embedding_game.core.threads import LOOP, run_blocks

FACTOR = 2
"""Candidates from each space, in multiples of the neighbours K."""


@dataclass(frozen=True, slots=True, eq=False)
class TwoSpaces:
    """Candidates for neighbours in two spaces, with their distances in both."""

    graph: NeighborGraph
    """The K neighbours in the first space."""
    candidates: NDArray[np.int32]
    """(N, M) rows near in either space, those of the first space first; -1 for none."""
    squared: tuple[NDArray[np.float32], NDArray[np.float32]]
    """(N, M) squared distances in the first space over A, and in the second over B."""

    def find_neighbors(self, share: float) -> NeighborGraph:
        """Return the K nearest candidates by both spaces; at a share of 0 ``graph``."""
        if share == 0:
            return self.graph
        indices = np.empty_like(self.graph.indices)
        near = np.empty(indices.shape, np.float32)
        weights = np.float32(1 - share), np.float32(share)
        given = self.candidates, *self.squared, *weights
        run_blocks(
            _rank_candidates, len(near), 4 * given[0].size, *given, indices, near
        )
        return NeighborGraph(indices, np.sqrt(near), self.graph.search)


def find_candidates(
    graph: NeighborGraph, X: Any, second_X: Any, metric: str, random_state: int
) -> TwoSpaces:
    """Return the candidates for neighbours in the spaces of ``X`` and ``second_X``.

    A row that the second space lacks has its neighbours of the first space at any
    share.  A distance to such a row is unknown, and counts as the second space's mean
    over neighbours in the first.

    Parameters
    ----------
    graph
        The K neighbours in the first space.
    X, second_X
        Rows of both spaces, (N, D) and (N, E), dense or sparse.  More than 100 columns
        are compared by their principal components.  Rows of ``second_X`` with NaN or
        infinity are missing.
    metric
        Of both spaces; one of :data:`rows.SEARCHED`.
    random_state
        Seed of the searches.

    Raises
    ------
    InputError
        Another metric, another number of rows, or a second space in which no neighbours
        can be found: too few rows, or all rows the same.
    """
    n, k = graph.indices.shape
    if metric not in SEARCHED:
        raise InputError(
            f"Two spaces are compared by the distance {' or '.join(SEARCHED)}, not "
            f"{metric}: choose one of them, or leave out the second space."
        )
    if second_X.shape[0] != n:
        raise InputError(
            f"The second space has {second_X.shape[0]:,} rows and the first {n:,}: "
            "give a row for each, NaN where it is unknown."
        )
    is_known = find_known_rows(second_X)
    rows = np.flatnonzero(is_known)
    m = min(FACTOR * k, n - 1, len(rows) - 1)
    if m < k:
        raise InputError(
            f"{len(rows):,} rows have the second space, and {k} neighbours are asked "
            "for: lower Neighbours, or leave out the second space."
        )
    seed, reduced = random_state, []
    try:
        for part in (X, second_X[rows]):
            found = Coordinates(part, metric, seed).compute_reduced_rows()
            reduced.append(np.ascontiguousarray(found))
        of_second = knn_graph(second_X[rows], m, metric=metric, random_state=seed)
    except InputError as error:
        raise InputError(f"Second space: {error}") from error
    of_first = knn_graph(X, m, metric=metric, random_state=seed).indices
    candidates = np.full((n, 2 * m), -1, np.int32)
    candidates[:, :m] = of_first
    candidates[rows, m:] = rows[of_second.indices]
    numbers = np.full(n, -1, np.int32)
    numbers[rows] = np.arange(len(rows))
    first = _measure_candidate_distances(reduced[0], np.arange(n), candidates)
    second = _measure_candidate_distances(
        reduced[1], numbers, np.where(candidates < 0, -1, numbers[candidates])
    )
    losses = (
        _mean_of_known(first[rows, m : m + k]) - _mean_of_known(first[rows, :k]),
        _mean_of_known(second[rows, :k]) - _mean_of_known(second[rows, m : m + k]),
    )
    for squared, loss in zip((first, second), losses, strict=True):
        squared /= np.float32(loss if loss > 0 else 1)  # 1 where both spaces agree
    second[np.isnan(second)] = _mean_of_known(second[rows, :k])
    second[~is_known] = first[~is_known]
    run_blocks(_drop_repeated_candidates, n, candidates.size * m, candidates, m)
    return TwoSpaces(graph, candidates, (first, second))


def find_known_rows(X: Any) -> NDArray[np.bool_]:
    """Return which rows of ``X`` (N, D), dense or sparse, have no NaN or infinity."""
    with np.errstate(invalid="ignore", over="ignore"):
        is_known: NDArray[np.bool_] = np.isfinite(np.asarray(X.sum(axis=1)).ravel())
    return is_known


def _mean_of_known(values: NDArray[np.float32]) -> float:
    """Return the mean of the values that are not NaN; 0 without any."""
    is_known = ~np.isnan(values)
    return float(values[is_known].sum(dtype=float) / max(is_known.sum(), 1))


def _measure_candidate_distances(
    rows: NDArray[np.float32], numbers: NDArray[Any], candidates: NDArray[np.int32]
) -> NDArray[np.float32]:
    """Return the squared distance of each row to its candidates, (N, M) float32.

    ``numbers`` (N,): the row of ``rows`` that each of the N is, -1 for none.
    ``candidates`` (N, M): numbers of ``rows``, -1 for none.  NaN where one is missing.
    """
    squared = np.empty(candidates.shape, np.float32)
    numbers, candidates = (x.astype(np.int32) for x in (numbers, candidates))
    work = candidates.size * rows.shape[1]
    given = rows, numbers, candidates, squared
    run_blocks(_write_squared_distances, len(squared), work, *given)
    return squared


@njit(**LOOP)
def _write_squared_distances(begin, end, rows, numbers, candidates, squared):
    """Write the squared distances of rows begin to end to their candidates."""
    for i in range(begin, end):
        for p in range(candidates.shape[1]):
            if numbers[i] < 0 or candidates[i, p] < 0:
                squared[i, p] = np.nan
            else:
                squared[i, p] = squared_distance(
                    rows[numbers[i]], rows[candidates[i, p]]
                )


@njit(**LOOP)
def _drop_repeated_candidates(begin, end, candidates, m):
    """Set candidates of the second space that are of the first space, too, to -1."""
    for i in range(begin, end):
        for p in range(m, candidates.shape[1]):
            for q in range(m):
                if candidates[i, q] == candidates[i, p]:
                    candidates[i, p] = -1
                    break


@njit(**LOOP)
def _rank_candidates(
    begin, end, candidates, first, second, of_first, of_second, indices, near
):
    """Write the nearest candidates of rows begin to end, nearest first.

    ``of_first`` and ``of_second`` weigh the squared distances ``first`` and ``second``
    (N, M); ``indices`` and their squared distances ``near`` (N, K) are written.
    """
    for i in range(begin, end):
        near[i], indices[i] = np.inf, -1
        for p in range(candidates.shape[1]):
            if candidates[i, p] >= 0:
                distance = of_first * first[i, p] + of_second * second[i, p]
                if distance < near[i, -1]:
                    insert_sorted(indices[i], near[i], candidates[i, p], distance)
