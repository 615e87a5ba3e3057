"""Significance of a division of rows, tested against halves of one simulated group.

Any rule divides any cloud, and its parts differ.  So the rule is repeated on rows that
are one group by construction: drawn with the mean, the covariance and the distances
from the mean of the two groups together, and divided along their neighbour graph.  A
division is firm if its parts are further apart than these halves.  After sc-SHC
(Grabski, Street and Irizarry 2023), which cuts Ward's tree; there, too, a part is
looked at only where the whole was divided firmly, and its share of ``ALPHA`` is its
share of the rows.  Rows along a curve, such as cells that develop, are further apart
than the halves of an ellipsoid, and are divided. ``docs/believing.md`` has the figures.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, stats
from scipy.optimize import isotonic_regression

from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.graph.neighbors import knn_graph
from napari_embedding_game.core.graph.rows import Rows
from napari_embedding_game.core.graph.symmetric_rows import join_directions
from napari_embedding_game.core.inspect.clusters import build_merge_tree
from napari_embedding_game.core.inspect.merge_tree import MergeTree
from napari_embedding_game.core.threads import limit_threads

ALPHA = 0.01
"""Chance that rows which are one group, an ellipsoid, are divided at all."""
MIN_ROWS, MAX_ROWS = 10, 1_000
"""Rows that a group must have; rows of both together that are looked at."""
N_NEIGHBORS, MAX_COLUMNS = 15, 50
"""Of the graph; of rows that have more the principal components."""
DRAWS, MAX_DRAWS, _CLEARLY_ONE = 5, 20, 0.25
"""Simulations; the last is the probability above which no more is drawn."""
_TRIES, _SWEEPS = 3, 3
"""Of partitions of simulated rows; of rows moved to where most of their links lead."""
_NEARLY_ALL = 0.9
"""Share of a group from which a part is still looked at as the whole."""
_NO_LINKS = 0.01
"""Resolution below which parts count as not linked at all."""

_Rows = NDArray[np.integer]


@dataclass(frozen=True, slots=True)
class Separation:
    """The distance of two groups, and that of the halves of one group."""

    distance: float
    """1 less the edges between them over those expected of their degrees: 0 for groups
    that are mixed, 1 where no edge leads across."""
    by_chance: tuple[float, ...]
    """The same of the halves of simulated rows, one a draw."""

    @property
    def p(self) -> float:
        """Probability that halves of one group are so far apart (t-distribution)."""
        n, spread = len(self.by_chance), float(np.std(self.by_chance, ddof=1))
        further = self.distance - float(np.mean(self.by_chance))
        return float(stats.t.sf(further / max(spread * sqrt(1 + 1 / n), 1e-9), n - 1))

    @property
    def beyond(self) -> float:
        """What the groups have of the way from the halves of one to 1, 0 to 1."""
        middle = float(np.mean(self.by_chance))
        return float(np.clip((self.distance - middle) / max(1 - middle, 1e-9), 0, 1))

    @property
    def is_firm(self) -> bool:
        """Whether these are two groups, at ``ALPHA``."""
        return self.p < ALPHA

    def __str__(self) -> str:
        """Return the answer to "Are these two one group?"."""
        return _ANSWER[self.is_firm].format(
            across=1 - self.distance,
            least=1 - max(self.by_chance),
            most=1 - min(self.by_chance),
            p=max(self.p, 1e-4),
        )


_ACROSS = (
    "between them are {across:.0%} of the links that mixed groups have; between halves "
    "of one group, {least:.0%} to {most:.0%} (p = {p:.1g})"
)
_ANSWER = {
    True: f"Two groups: {_ACROSS}.",
    False: f"Not told apart: {_ACROSS}. Markers of one against the other may only "
    "show where the line was drawn, however small their p-values are.",
}


@dataclass(frozen=True, slots=True)
class Cut:
    """The step of a merge tree to ``n_clusters``, which divides one cluster."""

    n_clusters: int
    n_parted: int
    """Rows of the smaller part."""
    resolution: float
    """Links between the parts over those expected: where modularity begins to gain."""
    expected: float
    """Links expected of their degrees in the whole graph, not below 1e-9."""
    is_firm: bool
    separation: Separation | None = None
    """None where it was not tested: too few rows, or inside what is one group."""


def separation(
    X: Any,
    first: _Rows,
    second: _Rows,
    *,
    metric: str = "euclidean",
    alpha: float = ALPHA,
    random_state: int = 0,
) -> Separation:
    """Return how far two groups of rows of ``X`` (N, D) are apart in the data.

    ``first``, ``second`` (m,) and (n,): their rows; of more than ``MAX_ROWS`` so many
    are drawn, each group as many as it has a share.  ``metric``: for "cosine" and
    "correlation" rows are brought to the same length, for the latter less their mean;
    for any other, they are compared as they are.
    ``alpha``: more is simulated where it is not clear on which side of it ``p`` is.

    InputError: a group has fewer than ``MIN_ROWS`` rows, or of those that are drawn.
    """
    rng, groups = np.random.default_rng(random_state), (first, second)
    share = min(1.0, MAX_ROWS / (len(first) + len(second)))
    counts = [round(share * len(rows)) for rows in groups]
    if min(counts) < MIN_ROWS:
        raise InputError(
            f"The smaller group has {min(counts)} of the rows that are compared: "
            f"choose groups of {ceil(MIN_ROWS / share):,} rows or more."
        )
    drawn = [rng.choice(rows, n, False) for rows, n in zip(groups, counts, strict=True)]
    points = _columns(X[np.concatenate(drawn)], metric)
    if (points == points[0]).all():  # one row, again and again
        return Separation(0.0, (0.0, 0.0))
    is_second = np.arange(len(points)) >= counts[0]
    distance, by_chance = _distance(_graph(points), is_second), list[float]()
    one_group = _one_group(points)
    for draw in range(MAX_DRAWS):
        graph = _graph(one_group(rng))
        tree = build_merge_tree(graph, np.ones(len(points), int), None, draw, _TRIES)
        by_chance.append(_distance(graph, tree.cut(2) == 1))
        result, is_many = Separation(distance, tuple(by_chance)), draw + 1 >= DRAWS
        if draw and result.p > (_CLEARLY_ONE if is_many else 0.5):
            break
        if is_many and result.p < alpha / 4:
            break
    return result


def firm_cuts(
    X: Any,
    tree: MergeTree,
    graph: sparse.csr_matrix,
    labels: _Rows,
    *,
    metric: str = "euclidean",
    max_clusters: int = 30,
) -> Iterator[Cut]:
    """Yield how firm each number of clusters is, from 2 to ``max_clusters``.

    ``graph`` (L, L): that of the landmarks, from which the tree was made; ``labels``
    (N,): landmark of each row of ``X`` (N, D), an array or sparse matrix.
    """
    before, divisible = tree.cut(1), {0}
    degrees = np.asarray(graph.sum(axis=1)).ravel()
    for n in range(2, min(max_clusters, tree.n_leaves) + 1):
        now = tree.cut(n)
        parent = int(before[now == n - 1][0])
        left, right = now == parent, now == n - 1
        product = float(degrees[left].sum() * degrees[right].sum())
        expected = max(product / degrees.sum(), 1e-9)
        resolution = float(graph[left][:, right].sum()) / expected
        first, second = np.flatnonzero(left[labels]), np.flatnonzero(right[labels])
        n_rows, n_parted = len(first) + len(second), min(len(first), len(second))
        result, alpha = None, ALPHA * n_rows / len(labels)
        fewest = MIN_ROWS * max(1, n_rows / MAX_ROWS)
        if parent in divisible and n_parted > fewest:
            asked = X, first, second
            result = separation(*asked, metric=metric, alpha=alpha, random_state=n)
        is_firm = result is not None and result.p < alpha
        if is_firm:
            divisible.add(n - 1)
        elif n_parted > (1 - _NEARLY_ALL) * n_rows:
            divisible.discard(parent)
        yield Cut(n, n_parted, resolution, expected, is_firm, result)
        before = now


def suggested(cuts: Sequence[Cut]) -> tuple[int, ...]:
    """Return the numbers of clusters to choose from: coarse and fine, or both in one.

    Fine is the last firm one up to resolution 1, that of modularity as it was defined.
    Coarse is the firm one, up to that, with the highest modularity over the widest
    range of resolutions, by their ratio (CHAMP, Weir et al. 2017).  () where no cut is
    firm: the rows may be one group.
    """
    firm = [i for i, cut in enumerate(cuts) if cut.is_firm]
    if not firm:
        return ()
    weights = [cut.expected for cut in cuts]
    fitted = isotonic_regression([cut.resolution for cut in cuts], weights=weights)
    begins = np.log(np.maximum(fitted.x, _NO_LINKS))  # where each is the best of all
    firm = [i for i in firm if begins[i] <= 0] or firm[:1]
    lasts = np.diff(begins, append=begins[-1])
    numbers = {cuts[i].n_clusters for i in (max(firm, key=lasts.item), firm[-1])}
    return tuple(sorted(numbers))


def _columns(rows: Any, metric: str) -> NDArray[np.float64]:
    """Return the rows as (m, C) numbers, C at most ``MAX_COLUMNS``."""
    if metric in ("cosine", "correlation"):
        rows = Rows(rows, metric)[:]
    points = rows.toarray() if sparse.issparse(rows) else np.asarray(rows)
    points = points.astype(np.float64)
    if points.shape[1] <= MAX_COLUMNS:
        return points
    from sklearn.decomposition import PCA

    n_columns = min(MAX_COLUMNS, len(points) - 1)
    pca = PCA(n_columns, svd_solver="randomized", random_state=0)
    return np.asarray(pca.fit_transform(points))


def _graph(points: NDArray[np.float64]) -> sparse.csr_matrix:
    """Return how often each two rows are neighbours of one another, (m, m)."""
    k = min(N_NEIGHBORS, len(points) // 3)
    # One thread: others are busy, and each search is short.
    with limit_threads(1):
        graph = knn_graph(points, k)
    ones = np.ones(graph.indices.shape)
    with limit_threads(1):
        rows, _ = join_directions(graph.indices, ones, takes_product=False)
    return sparse.csr_matrix(rows[::-1], shape=(len(points), len(points)))


def _distance(graph: sparse.csr_matrix, second: NDArray[np.bool_]) -> float:
    """Return the distance of two groups once each row is where most links lead."""
    degrees = np.asarray(graph.sum(axis=1)).ravel()
    for _ in range(_SWEEPS):
        balance = 2 * (graph @ second.astype(float)) - degrees
        second = np.where(balance == 0, second, balance > 0)
    share = degrees[second].sum() / degrees.sum()
    if not 0 < share < 1:
        return 0.0
    across = 2 * graph[second][:, ~second].sum() / degrees.sum()
    return float(1 - across / (2 * share * (1 - share)))


def _one_group(points: NDArray[np.float64]) -> Any:
    """Return what draws as many rows that are one group, elliptic."""
    centred = points - points.mean(axis=0)
    variances, axes = np.linalg.eigh(np.atleast_2d(np.cov(centred.T)))
    kept = variances > variances.max() * 1e-9
    scales = np.sqrt(variances[kept])
    onto = scales[:, None] * axes[:, kept].T
    lengths = np.linalg.norm(centred @ axes[:, kept] / scales, axis=1)

    def draw(rng: np.random.Generator) -> NDArray[np.float64]:
        normals = rng.normal(size=(len(points), len(scales)))
        normals *= (rng.permutation(lengths) / np.linalg.norm(normals, axis=1))[:, None]
        drawn: NDArray[np.float64] = normals @ onto
        return drawn

    return draw
