"""How far a map can be trusted as a whole, on a sample of its points.

Neighbours kept (by chance K / N), trustworthiness and continuity (0.5; Venna and Kaski,
Neural Networks 19, 2006), random triplets (0.5; Wang et al., JMLR 22, 2021), votes of
the nearest for a label.  Each sampled point is compared with all others, so that of n
points the error is some 1 / sqrt(n) of the spread between points.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from napari_embedding_game.core.graph.edges import Edges
from napari_embedding_game.core.graph.rows import centred

NEIGHBORS = 15
CLUSTERS = "clusters"
"""The name under which the map's own clusters are compared with it."""
MOST_SAMPLED, LEAST_SAMPLED = 1_000, 100
WORK = 2e9
"""Products that the distances to the sampled points may take, about: a second."""
_BLOCK = 16_000_000
"""Distances that are held at once."""
TRIPLETS_EACH = 20
"""Random triplets of each sampled point."""


@dataclass(frozen=True, slots=True)
class GraphParts:
    """Parts of a graph of neighbours.

    Points of different parts attract one another through nobody: how far apart parts
    come to lie on a map, and which of them side by side, is not told by the data.
    """

    n_parts: int
    outside: float
    """Share of the points that are not in the largest part."""
    n_neighbors: int


@dataclass(frozen=True, slots=True)
class ColumnAgreement:
    """How far a column of groups tells where a point lies on the map."""

    name: str
    same: float
    """Share of a point's neighbours on the map that are of its own group."""
    by_chance: float
    """That share on a map where the points were shuffled."""

    @property
    def agreement(self) -> float:
        """0 as by chance, 1 where all neighbours are of one group."""
        return (self.same - self.by_chance) / (1 - self.by_chance)


@dataclass(frozen=True, slots=True)
class MapQuality:
    """Figures from 0 to 1, higher is better; NaN where one is not known."""

    neighbors_kept: float
    trustworthiness: float
    continuity: float
    triplets: float
    accuracy: float
    n_sampled: int
    n_neighbors: int
    parts: GraphParts | None = None
    """Of the graph that the map was made of, where it is known."""
    columns: tuple[ColumnAgreement, ...] = ()
    """Those that were asked about, the one that agrees best with the map first."""
    clusters: ColumnAgreement | None = None
    """How far the clusters of the map itself agree with it, to compare columns with."""


def map_quality(
    X: Any,
    embedding: NDArray[np.floating],
    labels: NDArray[Any] | None = None,
    *,
    metric: str = "euclidean",
    columns: Mapping[str, NDArray[Any]] | None = None,
    clusters: NDArray[np.integer] | None = None,
    random_state: int = 0,
) -> MapQuality | None:
    """Compare a map (N, d) with its data; None where there are fewer than 8 rows.

    ``labels`` (N,): codes of known groups, negative for none; ``metric``: by its name
    in scikit-learn; ``columns``: codes of groups by name; ``clusters``: ids of those on
    the map.
    """
    n_points = X.shape[0]
    k = min(NEIGHBORS, n_points // 2 - 1)
    if k < 3:
        return None
    X = centred(X, metric)
    rng = np.random.default_rng(random_state)
    rows = rng.choice(n_points, _n_sampled(X.shape), replace=False)
    groups = dict(columns or {})
    if clusters is not None:
        groups[CLUSTERS] = clusters
    parts = []
    at_once = max(1, _BLOCK // n_points)
    for begin in range(0, len(rows), at_once):
        some = rows[begin : begin + at_once]
        in_data = _distances(X, some, metric)
        on_map = _distances(embedding, some, "euclidean")
        near, shown = _nearest(in_data, k), _nearest(on_map, k)
        parts.append(
            [
                (near[:, :, None] == shown[:, None, :]).any(axis=2).mean(axis=1),
                _rank_score(in_data, shown, k),
                _rank_score(on_map, near, k),
                _triplet_score(in_data, on_map, rng),
                _votes(some, shown, labels),
                *(_same_group(some, shown, codes) for codes in groups.values()),
            ]
        )
    figures = [_mean_of_known(each) for each in np.concatenate(parts, axis=1)]
    found = [
        _agreement(name, codes, same)
        for (name, codes), same in zip(groups.items(), figures[5:], strict=True)
    ]
    own = found.pop() if clusters is not None else None
    known = [one for one in found if one is not None]
    kept, trusted, continued, triplets, accuracy = figures[:5]
    return MapQuality(
        kept,
        trusted,
        continued,
        triplets,
        accuracy,
        n_sampled=len(rows),
        n_neighbors=k,
        columns=tuple(sorted(known, key=lambda one: -one.agreement)),
        clusters=own,
    )


def _agreement(
    name: str, codes: NDArray[np.integer], same: float
) -> ColumnAgreement | None:
    """Return how far groups agree with the map; None where there is only one group."""
    counts = np.unique(codes[codes >= 0], return_counts=True)[1]
    by_chance = float(((counts / max(counts.sum(), 1)) ** 2).sum())
    is_known = not math.isnan(same) and by_chance < 1
    return ColumnAgreement(name, same, by_chance) if is_known else None


def _mean_of_known(values: NDArray[np.float64]) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else math.nan


def _n_sampled(shape: tuple[int, int]) -> int:
    affordable = int(WORK / (shape[0] * max(shape[1], 1)))
    return min(shape[0], MOST_SAMPLED, max(LEAST_SAMPLED, affordable))


def _distances(
    X: Any, rows: NDArray[np.integer], metric: str
) -> NDArray[np.floating[Any]]:
    """Return the distances of some rows to all; to themselves they are infinite."""
    from sklearn.metrics import pairwise_distances

    distances = pairwise_distances(X[rows], X, metric=metric)
    distances[np.arange(len(rows)), rows] = np.inf
    return np.asarray(distances)


def _nearest(distances: NDArray[np.floating], k: int) -> NDArray[np.intp]:
    return np.argpartition(distances, k - 1, axis=1)[:, :k]


def _rank_score(
    distances: NDArray[np.floating], neighbors: NDArray[np.intp], k: int
) -> NDArray[np.float64]:
    """Return 1 less the scaled ranks beyond k of neighbours of the other side."""
    n_points = distances.shape[1]
    ordered = np.sort(distances, axis=1)
    theirs = np.take_along_axis(distances, neighbors, axis=1)
    ranks = 1 + np.array(list(map(np.searchsorted, ordered, theirs)))
    beyond = np.maximum(ranks - k, 0).sum(axis=1)
    # The normalisation of Venna and Kaski, for each point, with k below N / 2.
    result: NDArray[np.float64] = 1 - 2 * beyond / (k * (2 * n_points - 3 * k - 1))
    return result


def _triplet_score(
    in_data: NDArray[np.floating],
    on_map: NDArray[np.floating],
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Return how often the map has the right one of two random points nearer."""
    pairs = rng.integers(0, in_data.shape[1], (2, len(in_data), TRIPLETS_EACH))
    (first, second), (shown_first, shown_second) = (
        [np.take_along_axis(one, others, axis=1) for others in pairs]
        for one in (in_data, on_map)
    )
    is_real = np.isfinite(first) & np.isfinite(second) & (pairs[0] != pairs[1])
    is_right = (first < second) == (shown_first < shown_second)
    return _share(is_right & is_real, is_real)


def _votes(
    rows: NDArray[np.integer], shown: NDArray[np.intp], labels: NDArray[Any] | None
) -> NDArray[np.float64]:
    """Return 1 where most neighbours on the map have the label of the point."""
    result = np.full(len(rows), math.nan)
    if labels is None:
        return result
    for place, (row, near) in enumerate(zip(rows, shown, strict=True)):
        voting = labels[near][labels[near] >= 0]
        if labels[row] >= 0 and len(voting):
            result[place] = np.bincount(voting).argmax() == labels[row]
    return result


def _same_group(
    rows: NDArray[np.integer], shown: NDArray[np.intp], codes: NDArray[Any]
) -> NDArray[np.float64]:
    """Return the share of each point's neighbours on the map that are of its group."""
    own, theirs = codes[rows][:, None], codes[shown]
    is_known = (own >= 0) & (theirs >= 0)
    return _share((own == theirs) & is_known, is_known)


def _share(right: NDArray[np.bool_], of: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return which share of each row is right, NaN where nothing counts."""
    n_right, n = right.sum(axis=1), of.sum(axis=1)
    return np.where(n > 0, n_right / np.maximum(n, 1), math.nan)


def graph_parts(neighbors: NDArray[np.integer]) -> GraphParts:
    """Count the parts of a graph of neighbours (N, K), -1 for none."""
    n, k = neighbors.shape
    at, which = np.nonzero(neighbors >= 0)
    ends = at, neighbors[at, which]
    return _parts(csr_array((np.ones(len(at), np.int8), ends), shape=(n, n)), k)


def parts_of_edges(edges: Edges, n_neighbors: int) -> GraphParts:
    """Count the parts of edges that were made of each row's ``n_neighbors`` nearest."""
    return _parts(edges.matrix(), n_neighbors)


def _parts(graph: Any, n_neighbors: int) -> GraphParts:
    n_parts, part = connected_components(graph, directed=False)
    n, largest = graph.shape[0], int(np.bincount(part).max(initial=0))
    return GraphParts(int(n_parts), 1 - largest / n if n else 0.0, n_neighbors)
