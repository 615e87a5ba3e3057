"""The figures of the paper on explanations, on 8 x 8 digits and by hand."""

import numpy as np
import pytest
import torch

from napari_embedding_game.core.energy.pair_functions import NEAREST, UMAP_A, UMAP_B
from napari_embedding_game.core.graph.affinities import edges
from napari_embedding_game.core.graph.neighbors import knn_graph
from napari_embedding_game.papers.reproductions import (
    explain_conjecture1,
    explain_fig2,
    explain_fig3,
)
from napari_embedding_game.papers.reproductions.frame import Inputs, reproduce
from napari_embedding_game.papers.reproductions.table import find


def quick(module, data, folder):
    name = module.__name__.rpartition(".")[2].replace("_", "-")
    return reproduce(find(name), Inputs(data, quick=True), folder)


def test_descent_reaches_pca(data, tmp_path):
    facts = quick(explain_fig2, data, tmp_path)
    distances = [row["full gradient"] for row in facts["tables"][0]["rows"]]
    assert distances[0] > 0.9
    assert distances[-1] < 1e-3
    assert facts["checks"][1]["passed"]


def test_distance_is_up_to_an_orthogonal_map():
    X = np.random.default_rng(0).normal(size=(30, 5))
    wanted = explain_fig2.components(X)
    mirrored = wanted @ np.array([[0, 1], [1, 0]])
    assert explain_fig2.distance(mirrored, wanted) < 1e-12
    assert explain_fig2.distance(0.9 * wanted, wanted) == pytest.approx(0.1)


def test_four_methods_from_two_starts(data, tmp_path):
    facts = quick(explain_fig3, data, tmp_path)
    rows = facts["tables"][0]["rows"]
    assert len(rows) == 8
    assert {row["start"] for row in rows} == {"random", "spectral"}
    assert min(row["kNN accuracy"] for row in rows) > 0.5


def test_gradients_along_runs(data, tmp_path):
    facts = quick(explain_conjecture1, data, tmp_path)
    assert "over 15 looks, two thirds of them in the first 50" in facts["notes"][2]
    rows = facts["tables"][0]["rows"]
    assert [row["data"] for row in rows] == ["mnist", "mnist", "roll", "roll"]
    for row in rows:
        assert 0 < row["mean"] < row["most"] < 1


@pytest.fixture
def pair():
    X = np.random.default_rng(0).normal(size=(40, 5)).astype(np.float32)
    graph = knn_graph(X, 6)
    fuzzy = edges(graph, "fuzzy")
    return fuzzy, explain_conjecture1.Pair.of(fuzzy, edges(graph, "lle", X=X))


def test_the_expected_gradient_of_umap(pair):
    """One by one: each directed edge pulls both ends, its head flees 5 points."""
    fuzzy, both = pair
    y = np.random.default_rng(1).normal(size=(40, 2)).astype(np.float32)
    weights = fuzzy.matrix().toarray()
    wanted = np.zeros((40, 2))
    for i in range(40):
        apart = y[i] - y
        squared = (apart**2).sum(axis=1) + NEAREST
        curve = UMAP_A * squared**UMAP_B
        pull = 2 * UMAP_B * curve / (squared * (1 + curve))
        push = 2 * UMAP_B / (squared * (1 + curve))
        wanted[i] += 2 * (weights[i] * pull) @ apart
        wanted[i] -= 5 / 40 * weights[i].sum() * push @ apart
    found = both.expected(torch.from_numpy(y)).numpy()
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-3)


def test_the_cosine_is_that_of_the_gradients(pair):
    _, both = pair
    y = np.random.default_rng(1).normal(size=(40, 2)).astype(np.float32)
    product, cosine = both.cosine(y)
    assert np.sign(product) == np.sign(cosine)
    assert -1 <= cosine <= 1
    assert both.cosine(y + 3) == pytest.approx((product, cosine), rel=1e-2)
