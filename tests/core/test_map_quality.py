"""The quality of a map on a sample, against scikit-learn's and plain counting."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import pdist
from scipy.stats import spearmanr
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.manifold import trustworthiness

from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.inspect import quality
from napari_embedding_game.core.inspect.quality import measure_map_quality
from napari_embedding_game.papers.reproductions.metrics import neighbor_recall


@pytest.fixture(scope="module")
def digits():
    X, labels = load_digits(return_X_y=True)
    # Pixels have ties, which every program breaks in its own way.
    noise = np.random.default_rng(0).normal(0, 1e-3, (600, X.shape[1]))
    X = (X[:600] + noise).astype(np.float64)
    return X, PCA(2).fit_transform(X), labels[:600]


def test_on_all_points_it_is_what_others_work_out(digits):
    X, embedding, _ = digits
    found = measure_map_quality(X, embedding)
    assert (found.n_sampled, found.n_neighbors) == (600, 15)
    expected = trustworthiness(X, embedding, n_neighbors=15)
    assert found.trustworthiness == pytest.approx(expected, abs=1e-9)
    expected = trustworthiness(embedding, X, n_neighbors=15)
    assert found.continuity == pytest.approx(expected, abs=1e-9)
    square = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    np.fill_diagonal(square, np.inf)
    near = np.argsort(square, axis=1)[:, :15]
    expected = neighbor_recall(near, embedding)
    assert found.neighbors_kept == pytest.approx(expected, abs=1e-9)


def test_of_many_points_as_many_are_sampled_as_take_little_time(digits, monkeypatch):
    X, embedding, _ = digits
    monkeypatch.setattr(quality, "WORK", 600 * X.shape[1] * 350)
    assert measure_map_quality(X, embedding).n_sampled == 350


def test_triplets_are_those_of_plain_counting(digits):
    X, embedding, _ = digits
    found = measure_map_quality(X, embedding)
    rng = np.random.default_rng(5)
    i, j, k = rng.integers(0, 600, (3, 60_000))
    is_nearer = [
        np.linalg.norm(A[i] - A[j], axis=1) < np.linalg.norm(A[i] - A[k], axis=1)
        for A in (X, embedding)
    ]
    expected = (is_nearer[0] == is_nearer[1])[(i != j) & (i != k) & (j != k)].mean()
    assert found.triplets == pytest.approx(expected, abs=0.02)


def test_the_data_themselves_are_perfect_and_chance_is_chance(digits):
    X, _, labels = digits
    best = measure_map_quality(X, X, clusters=labels)
    assert best.between_clusters == pytest.approx(1.0)
    assert best.neighbors_kept == best.trustworthiness == best.continuity == 1.0
    assert best.triplets == 1.0
    anywhere = np.random.default_rng(1).normal(size=(600, 2))
    chance = measure_map_quality(X, anywhere, clusters=labels)
    assert chance.between_clusters < 0.4
    assert chance.trustworthiness == pytest.approx(0.5, abs=0.03)
    assert chance.continuity == pytest.approx(0.5, abs=0.03)
    assert chance.triplets == pytest.approx(0.5, abs=0.02)
    assert chance.neighbors_kept < 0.06


def test_distances_between_clusters_are_those_of_their_means(digits):
    X, embedding, labels = digits
    some = np.where(labels < 7, labels, -1)
    middles = [
        [rows[labels == each].mean(axis=0) for each in range(7)]
        for rows in (X, embedding)
    ]
    wanted = spearmanr(*map(pdist, middles)).statistic
    for rows in (X, sp.csr_matrix(X)):
        found = measure_map_quality(rows, embedding, clusters=some).between_clusters
        assert found == pytest.approx(wanted)
    turned = measure_map_quality(X, embedding, metric="cosine", clusters=some)
    assert turned.between_clusters not in (0, found)
    three = np.minimum(labels, 2)
    alike = np.tile(np.eye(4), (5, 1))  # all as far apart
    for result in (
        measure_map_quality(X, embedding),
        measure_map_quality(X, embedding, clusters=three),
        measure_map_quality(alike, alike, clusters=np.tile(np.arange(4), 5)),
    ):
        assert np.isnan(result.between_clusters)


@pytest.mark.parametrize("metric", ["cosine", "correlation", "manhattan"])
def test_other_distances_and_sparse_rows(digits, metric):
    X, embedding, _ = digits
    dense = measure_map_quality(X, embedding, metric=metric)
    assert dense != measure_map_quality(X, embedding)
    if metric != "correlation":
        sparse = measure_map_quality(sp.csr_matrix(X), embedding, metric=metric)
        assert sparse.neighbors_kept == pytest.approx(dense.neighbors_kept)


def test_a_distance_of_another_library_is_refused(digits):
    X, embedding, _ = digits
    with pytest.raises(InputError, match="'hellinger' cannot be used"):
        measure_map_quality(X, embedding, metric="hellinger")  # pynndescent's


def test_too_few_rows_have_no_figures():
    X = np.arange(14.0).reshape(7, 2)
    assert measure_map_quality(X, X) is None
    assert (
        measure_map_quality(np.arange(16.0).reshape(8, 2), np.zeros((8, 2))).n_neighbors
        == 3
    )


def test_columns_agree_with_a_map_as_their_groups_lie_on_it(digits):
    X, embedding, labels = digits
    halves = (embedding[:, 0] > np.median(embedding[:, 0])).astype(int)
    shuffled = np.random.default_rng(0).permutation(halves)
    partly = np.where(np.arange(600) % 2, labels, -1)
    columns = {"shuffled": shuffled, "kind": labels, "half": halves, "partly": partly}
    one_group = {"all": np.zeros(600, int), "none": np.full(600, -1)}
    found = measure_map_quality(X, embedding, columns=columns | one_group).columns
    assert found[0].name == "half"
    assert found[-1].name == "shuffled"
    by_name = {one.name: one for one in found}
    assert set(by_name) == set(columns)  # what has one group tells nothing
    assert by_name["half"].same > 0.95
    assert by_name["half"].by_chance == pytest.approx(0.5, abs=0.01)
    assert by_name["shuffled"].agreement == pytest.approx(0, abs=0.05)
    kind, half_known = by_name["kind"], by_name["partly"]
    assert half_known.same == pytest.approx(kind.same, abs=0.05)
    assert measure_map_quality(X, embedding).columns == ()
    named = measure_map_quality(
        X, embedding, columns={"clusters": halves}, clusters=labels
    )
    assert [one.same for one in named.columns] == [by_name["half"].same]
    assert named.clusters.same == kind.same
