"""How far a map can be trusted as a whole, on a sample of its points.

======================  ===========  ===================================================
figure                  by chance    source
======================  ===========  ===================================================
neighbors_kept          K / N        share of the K nearest rows that are so on the map
trustworthiness         0.5          Venna and Kaski, Neural Networks 19 (2006)
continuity              0.5          the same
triplets                0.5          Wang et al., JMLR 22 (2021), random triplets
accuracy                most common  votes of the K nearest on the map for a label
======================  ===========  ===================================================

All are best at 1.  Each sampled point is compared with all others, in the data and on
the map, so that only the choice of points is a sample: of n points the error is some
1 / sqrt(n) of the spread between points.
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
COARSE = 0.05
"""Error of a grid's forces from which a map cannot stand for that of all pairs."""
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
    grid_error: float = math.nan
    """Of the forces by a grid, relative to those of all pairs; see ``grid_error``."""


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
    """Compare a map with its data; None where there are too few rows, fewer than 8.

    Parameters
    ----------
    X : (N, D) array or sparse matrix
    embedding : (N, d) float
    labels : (N,) int, optional
        Codes of known groups, negative where there is none.
    metric : str
        Distance between rows of ``X``, by its name in scikit-learn.
    columns : mapping of (N,) int, optional
        Codes of groups by the names of columns, negative where there is none.
    clusters : (N,) int, optional
        Ids of the clusters on the map.
    random_state : int
        Draws the sample.
    """
    n_points = X.shape[0]
    n_neighbors = min(NEIGHBORS, n_points // 2 - 1)
    if n_neighbors < 3:
        return None
    X = centred(X, metric)
    rng = np.random.default_rng(random_state)
    rows = rng.choice(n_points, _n_sampled(X.shape), replace=False)
    at_once = max(1, _BLOCK // n_points)
    groups = dict(columns or {})
    codes = [*groups.values(), *([] if clusters is None else [clusters])]
    parts = [
        _compare(
            X, embedding, rows[i : i + at_once], n_neighbors, labels, codes, metric, rng
        )
        for i in range(0, len(rows), at_once)
    ]
    figures = np.concatenate(parts).T
    known = list(map(_mean_of_known, figures))
    kept, trusted, continued, triplets, accuracy = known[:5]
    return MapQuality(
        kept,
        trusted,
        continued,
        triplets,
        accuracy,
        len(rows),
        n_neighbors,
        columns=tuple(
            sorted(_agreements(groups, known[5:]), key=lambda one: -one.agreement)
        ),
        clusters=(
            None if clusters is None else _agreement(CLUSTERS, clusters, known[-1])
        ),
    )


def _agreements(
    columns: Mapping[str, NDArray[Any]], shares: list[float]
) -> list[ColumnAgreement]:
    """Return the columns of which something is known."""
    found = (
        _agreement(name, codes, same)
        for (name, codes), same in zip(columns.items(), shares, strict=False)
    )
    return [one for one in found if one is not None]


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


def _compare(
    X: Any,
    embedding: NDArray[np.floating],
    rows: NDArray[np.integer],
    n_neighbors: int,
    labels: NDArray[Any] | None,
    columns: list[NDArray[Any]],
    metric: str,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Return the figures of each of these rows: five, and one for each column."""
    in_data = _distances(X, rows, metric)
    on_map = _distances(embedding, rows, "euclidean")
    near, shown = _nearest(in_data, n_neighbors), _nearest(on_map, n_neighbors)
    kept = (near[:, :, None] == shown[:, None, :]).any(axis=2).mean(axis=1)
    figures = [
        kept,
        _rank_score(in_data, shown, n_neighbors),
        _rank_score(on_map, near, n_neighbors),
        _triplet_score(in_data, on_map, rng),
        _votes(rows, shown, labels),
        *(_same_group(rows, shown, codes) for codes in columns),
    ]
    return np.column_stack(figures)


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
    """Return 1 less the scaled ranks beyond k that neighbours of the other side have.

    Trustworthiness for ranks in the data of neighbours on the map, continuity the
    other way round: 1 where all are among the k nearest.
    """
    n_points = distances.shape[1]
    ordered = np.sort(distances, axis=1)
    theirs = np.take_along_axis(distances, neighbors, axis=1)
    ranks = np.stack(
        [
            np.searchsorted(mine, one, side="left") + 1
            for mine, one in zip(ordered, theirs, strict=True)
        ]
    )
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
    others = rng.integers(0, in_data.shape[1], (2, len(in_data), TRIPLETS_EACH))
    first = [np.take_along_axis(one, others[0], axis=1) for one in (in_data, on_map)]
    second = [np.take_along_axis(one, others[1], axis=1) for one in (in_data, on_map)]
    is_real = np.isfinite(first[0]) & np.isfinite(second[0]) & (others[0] != others[1])
    right = (first[0] < second[0]) == (first[1] < second[1])
    count = is_real.sum(axis=1)
    kept = (right & is_real).sum(axis=1)
    share = np.full(len(kept), math.nan)
    np.divide(kept, count, out=share, where=count > 0)
    return share


def _votes(
    rows: NDArray[np.integer],
    shown: NDArray[np.intp],
    labels: NDArray[Any] | None,
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
    """Return the share of each point's neighbours on the map that are of its group.

    Neighbours without a group do not count; NaN where there is nothing to compare.
    """
    own, theirs = codes[rows][:, None], codes[shown]
    is_known = (own >= 0) & (theirs >= 0)
    n_known = is_known.sum(axis=1)
    share = np.full(len(rows), math.nan)
    n_same = ((own == theirs) & is_known).sum(axis=1)
    np.divide(n_same, n_known, out=share, where=n_known > 0)
    return share


def graph_parts(neighbors: NDArray[np.integer]) -> GraphParts:
    """Count the parts of a graph in which a neighbour links in both directions.

    Parameters
    ----------
    neighbors : (N, K) int
        Rows of each point's nearest neighbours, -1 for none.
    """
    n, k = neighbors.shape
    is_there = neighbors >= 0
    ends = np.concatenate([[0], np.cumsum(is_there.sum(axis=1))])
    links = np.ones(int(ends[-1]), np.int8)
    return _parts(csr_array((links, neighbors[is_there], ends), shape=(n, n)), k)


def parts_of_edges(edges: Edges, n_neighbors: int) -> GraphParts:
    """Count the parts of the edges that attract the points of a map.

    Parameters
    ----------
    edges : Edges
    n_neighbors : int
        How many nearest neighbours of each row they were made of.
    """
    return _parts(edges.matrix(), n_neighbors)


def _parts(graph: Any, n_neighbors: int) -> GraphParts:
    n_parts, part = connected_components(graph, directed=False)
    n, largest = graph.shape[0], int(np.bincount(part).max(initial=0))
    return GraphParts(int(n_parts), 1 - largest / n if n else 0.0, n_neighbors)
