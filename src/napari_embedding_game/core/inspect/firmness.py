"""Which numbers of clusters the rows support: each division is tested by itself.

A tree of landmarks is cut into 2, 3, 4 ... clusters.  Each cut divides one cluster, and
is firm if its two parts are two groups (:mod:`separation`).  A cluster that is not
divided firmly may still have firm divisions below it: where three groups lie on a line,
the first cut may run through the middle one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import isotonic_regression

from napari_embedding_game.core.inspect.merge_tree import MergeTree
from napari_embedding_game.core.inspect.separation import (
    MAX_ROWS,
    MIN_ROWS,
    Separation,
    measure_separation,
)

CUT_ALPHA = 0.0002
"""Probability below which a division of all rows is firm; that of a cluster must be
smaller, by its share of the rows."""
_NO_LINKS = 0.01
"""Resolution below which parts count as not linked at all."""


@dataclass(frozen=True, slots=True)
class Cut:
    """The step of a merge tree to ``n_clusters``, which divides one cluster."""

    n_clusters: int
    n_parted: int
    """Rows of the smaller part."""
    resolution: float
    """Weight of the edges between the two parts over the expected weight: above this
    resolution modularity gains by dividing them."""
    expected: float
    """Weight between the parts that their degrees lead to expect, at least 1e-9."""
    is_firm: bool
    separation: Separation | None = None
    """None where a part has too few rows to be tested."""


def measure_cuts(
    X: Any,
    tree: MergeTree,
    graph: sparse.csr_matrix,
    labels: NDArray[np.integer],
    *,
    metric: str = "euclidean",
    max_clusters: int = 30,
) -> Iterator[Cut]:
    """Yield the cuts of a tree into 2 to ``max_clusters`` clusters, each with a test.

    The test asks whether the two clusters that the cut parts are two groups.

    The cuts end earlier where fewer landmarks have points.  A cut is tested where the
    smaller part has enough rows for :func:`measure_separation`; it is never firm
    without a test.  It is firm where p is below ``CUT_ALPHA`` times the cluster's
    share of the rows.

    ``graph`` (L, L): that of the landmarks, from which the tree was made; ``labels``
    (N,): landmark of each row of ``X`` (N, D), an array or sparse matrix.
    """
    before = tree.cut(1)
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
        tested, alpha = None, CUT_ALPHA * n_rows / len(labels)
        if n_parted > MIN_ROWS * max(1, n_rows / MAX_ROWS):
            others = np.flatnonzero(~(left | right)[labels])
            tested = measure_separation(
                X, first, second, others=others, metric=metric, random_state=n
            )
        is_firm = tested is not None and tested.p < alpha
        yield Cut(n, n_parted, resolution, expected, is_firm, tested)
        before = now


def suggest_n_clusters(cuts: Sequence[Cut]) -> tuple[int, ...]:
    """Return a coarse and a fine number of clusters, ascending, or one that is both.

    - Only firm cuts up to resolution 1, that of modularity as it was defined, are
      considered; where no firm cut is, the first firm cut is.
    - Fine is the last of them.
    - Coarse is the one with the highest modularity over the widest range of
      resolutions, by their ratio (CHAMP, Weir et al.  2017).

    () where no cut is firm: the rows may be one group.  ``cuts``: from 2 clusters on.
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
