"""The edges of new rows: those that they would have in a fit."""

import numpy as np
import pytest

from napari_embedding_game.core.graph.edges import build_edges
from napari_embedding_game.core.graph.neighbors import knn_graph
from napari_embedding_game.core.new_rows.edges import NewRowEdges
from napari_embedding_game.core.new_rows.search import FittedSearch


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).normal(size=(800, 4)).astype(np.float32)


def of_one_more(rows, affinity, k, n_nearest=None):
    """Return the weights of the last row's edges in a fit of all, and as a new row."""
    fitted = build_edges(knn_graph(rows, k), affinity, X=rows, perplexity=k / 3)
    graph = knn_graph(rows[:-1], k)
    scale = build_edges(graph, affinity, X=rows[:-1], perplexity=k / 3).scale
    new = NewRowEdges(graph, affinity, scale, k / 3)
    search = FittedSearch(rows[:-1], "euclidean")
    found, distances = search(rows[-1:], n_nearest or new.n_nearest)
    weights = new.compute_weights(found, distances)
    as_new = np.zeros(len(rows))
    as_new[found[0]] = weights[0]
    return fitted.to_csr_matrix()[-1].toarray()[0], as_new


AFFINITIES = ["uniform", "fuzzy", "mixed", "entropic"]


@pytest.mark.parametrize("affinity", AFFINITIES)
def test_weights_are_finite_among_equal_rows(rows, affinity):
    fitted = np.repeat(rows[:20], 40, axis=0)
    fitted[0] = 0  # alone
    graph = knn_graph(fitted, 12)
    found = build_edges(graph, affinity, X=fitted, perplexity=4)
    new = NewRowEdges(graph, affinity, found.scale, 4)
    beside = rows[:20] + np.array([0, 1e-30, 1e-3, 1])[:, None, None]
    for part in beside.astype(np.float32):
        nearest = FittedSearch(fitted, "euclidean")(part, new.n_nearest)
        weights = new.compute_weights(*nearest)
        assert np.isfinite(weights).all()
        assert (weights >= 0).all()
    beside = np.full((1, 4), 1e-12, np.float32)
    nearest = FittedSearch(fitted, "euclidean")(beside, new.n_nearest)
    weights = new.compute_weights(*nearest)
    assert 1e11 < weights.max() < 1e14


@pytest.mark.parametrize("affinity", AFFINITIES)
def test_a_new_row_has_the_edges_that_a_fit_would_give_it(rows, affinity):
    for seed in range(8):
        order = np.random.default_rng(seed).permutation(len(rows))
        fitted, as_new = of_one_more(rows[order], affinity, 12, n_nearest=400)
        np.testing.assert_array_equal(as_new > 0, fitted > 0)
        # In the fit, a row that has it near gives less to all others.
        assert np.corrcoef(as_new, fitted)[0, 1] > 0.97
        assert 0.9 * fitted.sum() < as_new.sum() < 1.3 * fitted.sum()
        # Rows that are far in its own list, and have it near in theirs, are left out.
        _, of_near = of_one_more(rows[order], affinity, 12)
        assert 0.6 * as_new.sum() < of_near.sum() <= as_new.sum() * 1.001
