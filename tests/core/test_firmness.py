"""How firm divisions are: groups are found, one group is not divided."""

import numpy as np
import pytest
from scipy import sparse

from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.graph.edges import build_edges
from napari_embedding_game.core.graph.neighbors import knn_graph
from napari_embedding_game.core.inspect.clusters import build_merge_tree, landmark_graph
from napari_embedding_game.core.inspect.firmness import (
    Cut,
    Separation,
    firm_cuts,
    separation,
    suggested,
)

SIZES = (150, 90, 40)


def rows_of(sizes, between=8.0, seed=0, n_columns=20):
    """Rows of groups that are so far apart, and which each is of."""
    rng = np.random.default_rng(seed)
    of = np.repeat(np.arange(len(sizes)), sizes)
    middles = between * rng.permutation(np.eye(n_columns))[: len(sizes)]
    return (middles[of] + rng.normal(size=(len(of), n_columns))).astype(np.float32), of


def cuts_of(X, n_landmarks=40):
    """Cut the tree of landmarks, which are some of the rows."""
    labels = ((X[:, None] - X[None, :n_landmarks]) ** 2).sum(axis=2).argmin(axis=1)
    graph = landmark_graph(build_edges(knn_graph(X), "mixed"), labels, n_landmarks)
    tree = build_merge_tree(graph, np.bincount(labels, minlength=n_landmarks))
    return list(firm_cuts(X, tree, graph, labels))


def test_the_groups_there_are_are_suggested_and_no_more():
    X, _ = rows_of(SIZES)
    order = np.random.default_rng(1).permutation(len(X))
    cuts = cuts_of(X[order])
    assert [cut.n_clusters for cut in cuts] == list(range(2, len(cuts) + 2))
    assert [cut.n_clusters for cut in cuts if cut.is_firm] == [2, 3]
    assert suggested(cuts) == (3,)
    assert suggested(cuts[:1]) == (2,)
    assert suggested([]) == ()
    assert all(cut.separation.beyond > 0.5 for cut in cuts[:2])
    first, again = cuts[0].separation, cuts_of(X[order])[0].separation
    assert first == again


@pytest.mark.parametrize("kind", ["round", "long", "heavy tails"])
def test_one_group_is_not_divided(kind):
    chances = []
    for seed in range(8):
        X, _ = rows_of([300], seed=seed)
        if kind == "long":
            X[:, :2] *= 5, 3
        elif kind == "heavy tails":
            X *= np.random.default_rng(seed).lognormal(0, 0.4, (len(X), 1))
        cuts = cuts_of(X)
        assert suggested(cuts) == ()
        chances.append(cuts[0].separation.p)
    # Of a right or careful rule at most 1 on average; 5 times too liberal, 1.6 more.
    assert -np.log(chances).mean() < 1


def test_a_division_is_firm_where_one_in_a_hundred_is_so_by_chance():
    halves = (0.1, 0.2, 0.3, 0.4, 0.5)
    unclear, clear = Separation(0.8, halves), Separation(0.99, halves)
    assert 0.01 < unclear.p < 0.05
    assert not unclear.is_firm
    assert clear.p < 0.01
    assert clear.is_firm


@pytest.mark.parametrize(
    "kind", ["cosine", "correlation", "sparse", "many columns", "many rows"]
)
def test_two_groups_are_two_and_halves_of_one_are_not(kind):
    sizes = (900, 600) if kind == "many rows" else (150, 60)
    X, of = rows_of(sizes, n_columns=80 if kind == "many columns" else 20)
    one = np.flatnonzero(of == 0)
    order = one[np.argsort(X[one] @ np.r_[2.0, np.ones(X.shape[1] - 1)])]
    metric = kind if kind in ("cosine", "correlation") else "euclidean"
    if kind == "correlation":
        X = X + np.random.default_rng(0).normal(0, 100, (len(X), 1))
    if kind == "sparse":
        X = sparse.csr_matrix(X)
    two = separation(X, one, np.flatnonzero(of == 1), metric=metric)
    assert two.is_firm
    assert str(two).startswith("Two groups: between them are ")
    half = len(order) // 2
    halves = separation(X, order[:half], order[half:], metric=metric)
    assert not halves.is_firm
    assert str(halves).startswith("Not told apart: ")
    assert "however small their p-values are" in str(halves)


def test_one_column_and_rows_far_from_0_are_compared():
    X, of = rows_of((150, 60))
    one, other = np.flatnonzero(of == 0), np.flatnonzero(of == 1)
    assert separation(X @ X[0][:, None], one, other).is_firm
    assert separation(X.astype(float) + 1e8, one, other).is_firm


def test_rows_that_are_all_the_same_are_one_group():
    X, of = rows_of((150, 60))
    X[of == 0] = X[0]
    labels = np.where(of == 0, np.arange(len(X)) % 2, 2)
    graph = landmark_graph(build_edges(knn_graph(X), "mixed"), labels, 3)
    tree = build_merge_tree(graph, np.bincount(labels))
    assert [cut.is_firm for cut in firm_cuts(X, tree, graph, labels)] == [True, False]


def test_the_answer_has_its_figures():
    found = Separation(0.75, (0.25, 0.3, 0.2, 0.25, 0.25))
    assert found.beyond == pytest.approx(2 / 3)
    assert "25% of the links" in str(found)
    assert "of one group, 70% to 80% (p = 0.0001)" in str(found)
    assert Separation(0.2, (0.25, 0.3)).beyond == 0


def test_no_link_leads_across_between_the_fewest_rows_of_two_groups():
    X, _ = rows_of((10, 10))
    assert separation(X, np.arange(10), np.arange(10, 20)).distance == 1


def test_too_few_rows_are_told():
    X, _ = rows_of([30])
    with pytest.raises(InputError, match=r"smaller group has 9 .* 10 rows or more"):
        separation(X, np.arange(9), np.arange(9, 30))


@pytest.mark.parametrize(
    ("resolutions", "not_firm", "marks"),
    [
        ((0.02, 0.03, 0.6, 0.9, 1.8), (), (3, 5)),
        ((0.01, 0.03, 0.6, 0.9, 1.8), (3, 5), (2, 4)),
        ((0.03, 0.02, 0.6, 1.8), (), (3, 4)),  # a cut that the next one overtakes
        ((0, 1e-4, 0.08, 0.1), (), (3, 5)),  # no links are not a range without end
        ((0.5, 1.8, 4.0), (), (2,)),
        ((0.5, 0.6), (2, 3), ()),
    ],
)
def test_coarse_is_widest_and_fine_the_last_to_resolution_1(
    resolutions, not_firm, marks
):
    cuts = [
        Cut(n, 10, resolution, 1.0, n not in not_firm)
        for n, resolution in enumerate(resolutions, 2)
    ]
    assert suggested(cuts) == marks
