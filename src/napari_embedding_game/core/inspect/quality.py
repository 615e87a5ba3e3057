"""Measure how well a map represents its data, on a sample of points.

Figures are neighbours kept (by chance K / N), trustworthiness and continuity (by chance
0.5; Venna and Kaski, Neural Networks 19, 2006) and random triplets (by chance 0.5; Wang
et al., JMLR 22, 2021).  Each sampled point is compared with all points, so that for n
sampled points the error is about 1 / sqrt(n) of the spread between points.  Distances
between clusters use all points.
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

from napari_embedding_game.core.graph.neighbors import explain_metric_errors
from napari_embedding_game.core.graph.rows import (
    centre_for_library,
    compute_mean_rows_of_groups,
)

NEIGHBORS = 15
CLUSTERS = "clusters"
"""Name of the map's clusters among the compared columns."""
MAX_SAMPLED, MIN_SAMPLED, WORK = 1_000, 100, 2e9
"""Most and fewest sampled points, and about the products that their distances may take,
a second."""
_BLOCK = 16_000_000
"""Most distances that are held at once."""
TRIPLETS_EACH = 20
"""Number of random triplets of each sampled point."""


@dataclass(frozen=True, slots=True)
class GraphParts:
    """Connected components (parts) of a graph of neighbours.

    No chain of attractions connects points of different parts.  So distances between
    parts, and which parts are neighbours on the map, come from the data only where the
    large picture was played.
    """

    n_parts: int
    outside: float
    """Share of the points outside the largest part."""
    n_neighbors: int


@dataclass(frozen=True, slots=True)
class ColumnAgreement:
    """Agreement of a column of groups with positions on the map."""

    name: str
    same: float
    """Mean share of a point's neighbours on the map that are of its group."""
    by_chance: float
    """The same share on a map with shuffled points."""

    @property
    def agreement(self) -> float:
        """Agreement from 0 (by chance) to 1 (all neighbours of the same group), or NaN.

        It is NaN where there is only a single group.
        """
        return (self.same - self.by_chance) / ((1 - self.by_chance) or math.nan)


@dataclass(frozen=True, slots=True)
class MapQuality:
    """Figures of a map, from 0 to 1; higher is better; NaN where unknown."""

    neighbors_kept: float
    trustworthiness: float
    continuity: float
    triplets: float
    n_sampled: int
    n_neighbors: int
    parts: GraphParts | None = None
    """Components of the graph that the map was made from; None where unknown."""
    columns: tuple[ColumnAgreement, ...] = ()
    """The compared columns, highest agreement first."""
    clusters: ColumnAgreement | None = None
    """Agreement of the map's clusters, as a reference for the columns."""
    kept_in_second: float = math.nan
    """``neighbors_kept`` of a second space; the other figures are of the first."""
    between_clusters: float = math.nan
    """Rank correlation (Spearman) of the distances between clusters' means on the map
    and in the data, 0 if negative; NaN for fewer than 4 clusters."""


def measure_map_quality(
    X: Any,
    embedding: NDArray[np.floating],
    *,
    metric: str = "euclidean",
    columns: Mapping[str, NDArray[Any]] | None = None,
    clusters: NDArray[np.integer] | None = None,
) -> MapQuality | None:
    """Measure how well a map represents its data; None for fewer than 8 rows.

    At most ``MAX_SAMPLED`` points are drawn at random with a fixed seed, fewer of large
    data.  Columns, and clusters, whose agreement is NaN are left out.

    Parameters
    ----------
    X
        (N, D) rows of the data.
    embedding
        (N, d) positions on the map.
    metric
        Name of a metric in scikit-learn.
    columns
        Group codes (N,) of each column by its name, negative for no group.
    clusters
        (N,) cluster ids on the map, negative for no cluster.

    Raises
    ------
    InputError
        scikit-learn does not know the metric.
    """
    n_points = X.shape[0]
    k = min(NEIGHBORS, n_points // 2 - 1)
    if k < 3:
        return None
    X, rng = centre_for_library(X, metric), np.random.default_rng(0)
    affordable = int(WORK / (n_points * max(X.shape[1], 1)))
    n_sampled = min(n_points, MAX_SAMPLED, max(MIN_SAMPLED, affordable))
    rows = rng.choice(n_points, n_sampled, replace=False)
    groups = list((columns or {}).items())
    if clusters is not None:  # appended last, as a column may have the same name
        groups.append((CLUSTERS, clusters))
    at_once = max(1, _BLOCK // n_points)

    def measure_points(some: NDArray[np.integer]) -> list[NDArray[np.float64]]:
        """Return four figures of points, then each column's share of same groups, (n,).

        The points ``some`` (n,) are compared with all points.  The figures are
        neighbours kept, trustworthiness, continuity and random triplets.
        """
        with explain_metric_errors(metric):
            in_data = _measure_distances_to_all(X, some, metric)
            on_map = _measure_distances_to_all(embedding, some)
        near, mapped = (np.argpartition(e, k - 1)[:, :k] for e in (in_data, on_map))
        return [
            (near[:, :, None] == mapped[:, None, :]).any(axis=2).mean(axis=1),
            _compute_trustworthiness(in_data, mapped, k),
            _compute_trustworthiness(on_map, near, k),
            _compute_triplet_score(in_data, on_map, rng),
            *(
                _compute_share_of_same_group(of[some][:, None], of[mapped])
                for _, of in groups
            ),
        ]

    starts = range(0, n_sampled, at_once)
    parts = [measure_points(rows[start : start + at_once]) for start in starts]
    valid = [each[~np.isnan(each)] for each in np.concatenate(parts, axis=1)]
    figures = [float(each.mean()) if len(each) else math.nan for each in valid]
    agreements = [
        ColumnAgreement(name, same, _compute_expected_share(codes))
        for (name, codes), same in zip(groups, figures[4:], strict=True)
    ]
    last = None if clusters is None else agreements.pop()
    agreeing = (one for one in agreements if not math.isnan(one.agreement))
    kept, trusted, continued, triplets = figures[:4]
    return MapQuality(
        neighbors_kept=kept,
        trustworthiness=trusted,
        continuity=continued,
        triplets=triplets,
        n_sampled=n_sampled,
        n_neighbors=k,
        columns=tuple(sorted(agreeing, key=lambda one: -one.agreement)),
        clusters=last if last and not math.isnan(last.agreement) else None,
        between_clusters=(
            math.nan
            if clusters is None
            else _correlate_cluster_distances(X, embedding, clusters, metric)
        ),
    )


def _correlate_cluster_distances(
    X: Any,
    embedding: NDArray[np.floating],
    clusters: NDArray[np.integer],
    metric: str,
) -> float:
    """Return the rank correlation of cluster distances in the data and on the map.

    A cluster is at the mean of its rows; negative ids are no cluster.  A negative
    correlation is 0.  NaN for fewer than four clusters or equal distances.
    """
    from scipy.stats import spearmanr
    from sklearn.metrics import pairwise_distances

    ids, group = np.unique(clusters, return_inverse=True)
    pairs = np.triu_indices(int((ids >= 0).sum()), 1)
    if len(pairs[0]) < 6:  # fewer than four clusters
        return math.nan
    of_data, of_map = (
        compute_mean_rows_of_groups(rows, group, len(ids))[ids >= 0]
        for rows in (X, embedding)
    )
    with explain_metric_errors(metric):
        in_data = pairwise_distances(of_data, metric=metric)[pairs]
    on_map = pairwise_distances(of_map)[pairs]
    if np.ptp(in_data) == 0 or np.ptp(on_map) == 0:  # equal distances have no ranks
        return math.nan
    return max(0.0, float(spearmanr(in_data, on_map).statistic))


def _compute_expected_share(codes: NDArray[np.integer]) -> float:
    """Return the expected share of random neighbours of the same group.

    Rows of negative ``codes`` (N,) are left out.  It is 1 for one group or no group.
    """
    counts = np.unique(codes[codes >= 0], return_counts=True)[1]
    return float(((counts / counts.sum()) ** 2).sum()) if len(counts) else 1.0


def _measure_distances_to_all(
    X: Any, rows: NDArray[np.integer], metric: str = "euclidean"
) -> NDArray[np.floating[Any]]:
    """Return distances of ``rows`` (n,) to all rows of ``X`` (N, D), (n, N).

    The distance of a row to itself is set to infinity.
    """
    from sklearn.metrics import pairwise_distances

    distances = pairwise_distances(X[rows], X, metric=metric)
    distances[np.arange(len(rows)), rows] = np.inf
    return np.asarray(distances)


def _compute_trustworthiness(
    distances: NDArray[np.floating], neighbors: NDArray[np.intp], k: int
) -> NDArray[np.float64]:
    """Return each point's trustworthiness, or continuity with exchanged roles, (n,).

    It is 1 minus the scaled ranks beyond k, by ``distances`` (n, N) in the data, of
    ``neighbors`` (n, k) on the map.  For continuity distances are on the map and
    neighbours in the data.
    """
    n_points = distances.shape[1]
    ordered = np.sort(distances, axis=1)
    theirs = np.take_along_axis(distances, neighbors, axis=1)
    ranks = 1 + np.array(list(map(np.searchsorted, ordered, theirs)))
    beyond = np.maximum(ranks - k, 0).sum(axis=1)
    # The normalisation of Venna and Kaski, for each point, with k below N / 2.
    result: NDArray[np.float64] = 1 - 2 * beyond / (k * (2 * n_points - 3 * k - 1))
    return result


def _compute_triplet_score(
    in_data: NDArray[np.floating],
    on_map: NDArray[np.floating],
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Return the share of each point's random pairs whose order the map keeps, (n,).

    The order is kept where the same point of the pair is nearer in the data and on the
    map.  Each point has ``TRIPLETS_EACH`` pairs, without those of two equal points or
    with the point itself; NaN where no pair is left.  ``in_data``, ``on_map`` (n, N):
    distances to all points.
    """
    pairs = rng.integers(0, in_data.shape[1], (2, len(in_data), TRIPLETS_EACH))
    (first, second), (map_first, map_second) = (
        [np.take_along_axis(distances, partners, axis=1) for partners in pairs]
        for distances in (in_data, on_map)
    )
    is_real = np.isfinite(first) & np.isfinite(second) & (pairs[0] != pairs[1])
    return _compute_share_of_counted(
        (first < second) == (map_first < map_second), is_real
    )


def _compute_share_of_same_group(
    group: NDArray[Any], theirs: NDArray[Any]
) -> NDArray[np.float64]:
    """Return the share of each point's neighbours that are of its group, (n,).

    ``group`` (n, 1): code of the point; ``theirs`` (n, k): codes of its neighbours.
    Neighbours of a code below 0 are not counted; NaN where none is counted, or the
    point has no group.
    """
    return _compute_share_of_counted(group == theirs, (group >= 0) & (theirs >= 0))


def _compute_share_of_counted(
    is_right: NDArray[Any], counts: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return the share of right entries among each row's counted entries, (n,).

    ``is_right``, ``counts`` (n, k): whether an entry is right, and whether it is
    counted.  NaN for a row without counted entries.
    """
    n = counts.sum(axis=1)
    right = (is_right & counts).sum(axis=1)
    return np.where(n > 0, right / np.maximum(n, 1), math.nan)


def count_graph_parts(graph: Any, n_neighbors: int) -> GraphParts:
    """Count the connected components of a graph of neighbours.

    ``graph``: a sparse matrix (N, N), or the neighbours of each row (N, K), -1 for no
    row; an edge in either direction connects.  ``n_neighbors``: K of the fit, copied
    into the result.
    """
    n = graph.shape[0]
    if isinstance(graph, np.ndarray):
        at, which = np.nonzero(graph >= 0)
        ends = at, graph[at, which]
        graph = csr_array((np.ones(len(at), np.int8), ends), shape=(n, n))
    n_parts, part = connected_components(graph, directed=False)
    largest = int(np.bincount(part).max(initial=0))
    return GraphParts(int(n_parts), 1 - largest / n if n else 0.0, n_neighbors)
