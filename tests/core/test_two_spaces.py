"""Neighbours in two spaces, and the surroundings in tissue that may be the second."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from napari_embedding_game.core import pipeline
from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.estimator import EmbeddingGame
from napari_embedding_game.core.graph.neighbors import knn_graph
from napari_embedding_game.core.graph.tissue import (
    average_surroundings,
    find_tissue_neighbors,
)
from napari_embedding_game.core.graph.two_spaces import find_candidates
from napari_embedding_game.core.settings import Settings, fill_affinity

rng = np.random.default_rng(0)
N, K = 90, 5
X, SECOND = rng.normal(size=(N, 6)), 40 * rng.normal(size=(N, 3))
SMALL = {"n_landmarks": 10, "max_iter": 40, "n_neighbors": K, "random_state": 0}


def squares(rows):
    return ((rows[:, None] - rows) ** 2).sum(axis=2)


def spaces(second=SECOND, X=X, k=K):
    return find_candidates(knn_graph(X, k), X, second, "euclidean", 0)


def test_the_nearest_candidates_are_those_of_the_formula():
    first, second = squares(X), squares(SECOND)
    near = [np.argsort(d + np.diag([np.inf] * N), axis=1) for d in (first, second)]
    rows = np.arange(N)[:, None]
    own, other = near[0][:, :K], near[1][:, :K]
    A = first[rows, other].mean() - first[rows, own].mean()
    B = second[rows, own].mean() - second[rows, other].mean()
    found = spaces()
    for share in (0.2, 0.5, 0.9, 1.0):
        mixed = (1 - share) * first / A + share * second / B
        graph = found.find_neighbors(share)
        for i in range(N):
            candidates = np.union1d(near[0][i, : 2 * K], near[1][i, : 2 * K])
            best = candidates[np.argsort(mixed[i, candidates], kind="stable")[:K]]
            assert graph.indices[i].tolist() == best.tolist()
            np.testing.assert_allclose(
                graph.distances[i] ** 2, mixed[i, best], rtol=1e-4
            )
    assert found.find_neighbors(0.0) is found.graph
    np.testing.assert_array_equal(found.find_neighbors(1.0).indices, other)


def test_rows_that_the_second_space_lacks_keep_their_neighbours():
    second = SECOND.copy()
    second[::4] = np.nan
    found = spaces(second)
    for share in (0.3, 1.0):
        graph = found.find_neighbors(share)
        np.testing.assert_array_equal(graph.indices[::4], found.graph.indices[::4])
        assert np.isfinite(graph.distances).all()
        assert (graph.indices != np.arange(N)[:, None]).all()
    known = np.arange(N) % 4 > 0
    assert known[found.find_neighbors(1.0).indices[known]].mean() > 0.9


def test_the_order_of_rows_does_not_matter():
    order = rng.permutation(N)
    one = spaces().find_neighbors(0.5)
    other = spaces(SECOND[order], X[order]).find_neighbors(0.5)
    np.testing.assert_array_equal(order[other.indices], one.indices[order])


def test_what_is_no_second_space_is_refused():
    few = np.full_like(SECOND, np.nan)
    few[:K] = 1
    for second, words in ((few, "5 rows have"), (SECOND[1:], "89 rows")):
        with pytest.raises(InputError, match=words):
            spaces(second)
    with pytest.raises(InputError, match="Second space"):
        spaces(np.ones_like(SECOND))
    graph = knn_graph(X, K)
    with pytest.raises(InputError, match="not manhattan"):
        find_candidates(graph, X, SECOND, "manhattan", 0)
    named = EmbeddingGame(method_params={"second_space": "protein"}, **SMALL)
    with pytest.raises(InputError, match="give its rows as second_X"):
        named.fit(X)


def fit(share, **options):
    model = EmbeddingGame(method_params={"second_share": share}, **SMALL)
    return model.fit(X, second_X=SECOND, **options)


def test_a_second_space_may_be_a_table_and_has_columns():
    of_table = EmbeddingGame(**SMALL).fit(X, second_X=pd.DataFrame(SECOND))
    of_array = EmbeddingGame(**SMALL).fit(X, second_X=SECOND)
    assert of_table.map_hash_ == of_array.map_hash_
    with pytest.raises(ValueError, match="Expected 2D array"):
        EmbeddingGame(**SMALL).fit(X, second_X=SECOND[:, 0])
    with pytest.raises(ValueError, match="could not convert"):
        EmbeddingGame(**SMALL).fit(X, second_X=[["a"]] * len(X))


def test_a_share_of_0_is_the_map_of_one_space_and_1_that_of_the_other():
    of_one, of_other = (EmbeddingGame(**SMALL).fit(rows) for rows in (X, SECOND))
    assert fit(0.0).map_hash_ == of_one.map_hash_
    pair = (model.affinity_matrix_.toarray() for model in (fit(1.0), of_other))
    np.testing.assert_allclose(*pair, rtol=1e-4)
    mixed = fit(0.5)
    assert mixed.map_hash_ not in (of_one.map_hash_, of_other.map_hash_)
    assert not hasattr(mixed, "transform")  # new rows have no second space


def test_the_share_is_changed_during_the_game():
    steered = fit(0.5, steering=[(20, {"second_share": 0.0})])
    assert steered.n_iter_ == 52  # back to a fifth of 40 iterations
    one = EmbeddingGame(**SMALL).fit(X)
    assert (steered.affinity_matrix_ != one.affinity_matrix_).nnz == 0
    np.testing.assert_array_equal(steered.isolation_, one.isolation_)
    settings = replace(fill_affinity(Settings()), n_neighbors=K, second_share=0.5)
    graph = pipeline.find_neighbors(X, settings)
    edges, _ = pipeline.make_edges_and_layout(graph, X, settings, None, SECOND)
    assert edges.mix_by_share(0.5) is edges  # what is asked for again is kept
    back = edges.mix_by_share(0.25).mix_by_share(0.5)
    np.testing.assert_array_equal(back.weights, edges.weights)


def test_neighbours_in_tissue_are_of_the_same_section():
    positions = rng.uniform(size=(N, 2)).astype(np.float32)
    positions[7] = np.nan
    positions[10] = positions[20] = positions[30] = positions[40]
    sections = rng.integers(3, size=N)
    sections[sections == 2] = 1
    sections[3], sections[4] = 2, -1
    neighbors = find_tissue_neighbors(positions, sections, 4)
    means = average_surroundings(X.astype(np.float32), positions, sections, 4)
    is_known = np.isfinite(positions[:, 0]) & (sections >= 0)
    for i in range(N):
        others = np.flatnonzero(is_known & (sections == sections[i]))
        others = others[others != i]
        if i in (3, 4, 7):  # alone, of no section, without a position
            assert (neighbors[i] == -1).all()
            assert np.isnan(means[i]).all()
            continue
        far = np.sort(((positions[others] - positions[i]) ** 2).sum(axis=1))[:4]
        assert i not in neighbors[i]
        assert set(neighbors[i]) <= set(others)
        assert len(set(neighbors[i])) == 4
        found = ((positions[neighbors[i]] - positions[i]) ** 2).sum(axis=1)
        np.testing.assert_allclose(np.sort(found), far, rtol=1e-5)
        np.testing.assert_allclose(means[i], X[neighbors[i]].mean(axis=0), rtol=1e-4)
    near = find_tissue_neighbors(positions, sections, 4, radius=0.05)
    lengths = np.linalg.norm(positions[near] - positions[:, None], axis=2)
    assert (lengths[near >= 0] <= 0.05).all()
    assert 0 < (near >= 0).sum() < (neighbors >= 0).sum()
