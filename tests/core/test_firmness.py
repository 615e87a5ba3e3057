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
    measure_cuts,
    suggest_n_clusters,
)
from napari_embedding_game.core.inspect.separation import (
    Separation,
    measure_separation,
)

SIZES = (150, 90, 40)


def rows_of(sizes, between=8.0, seed=0, n_columns=20):
    """Rows of groups that are so far apart, and which each is of."""
    rng = np.random.default_rng(seed)
    of = np.repeat(np.arange(len(sizes)), sizes)
    middles = between * rng.permutation(np.eye(n_columns))[: len(sizes)]
    return (middles[of] + rng.normal(size=(len(of), n_columns))).astype(np.float32), of


def cuts_of(X, n_landmarks=40, max_clusters=30):
    """Cut the tree of landmarks, which are some of the rows."""
    labels = ((X[:, None] - X[None, :n_landmarks]) ** 2).sum(axis=2).argmin(axis=1)
    graph = landmark_graph(build_edges(knn_graph(X), "mixed"), labels, n_landmarks)
    tree = build_merge_tree(graph, np.bincount(labels, minlength=n_landmarks))
    return list(measure_cuts(X, tree, graph, labels, max_clusters=max_clusters))


def test_the_groups_there_are_are_suggested_and_no_more():
    X, _ = rows_of(SIZES)
    order = np.random.default_rng(1).permutation(len(X))
    cuts = cuts_of(X[order])
    assert [cut.n_clusters for cut in cuts] == list(range(2, len(cuts) + 2))
    assert [cut.n_clusters for cut in cuts if cut.is_firm] == [2, 3]
    assert suggest_n_clusters(cuts) == (3,)
    assert suggest_n_clusters(cuts[:1]) == (2,)
    assert suggest_n_clusters([]) == ()
    assert all(cut.separation.depth > 0.5 for cut in cuts[:2])
    first, again = cuts[0].separation, cuts_of(X[order])[0].separation
    assert first == again


SINGLE = ["round", "long", "heavy tails", "skewed", "flat", "denser at one end"]


@pytest.mark.parametrize("kind", SINGLE)
def test_one_group_is_not_divided(kind):
    chances = []
    for seed in range(8):
        X, _ = rows_of([300], seed=seed)
        if kind == "long":
            X[:, :2] *= 5, 3
        elif kind == "heavy tails":
            X *= np.random.default_rng(seed).lognormal(0, 0.4, (len(X), 1))
        elif kind == "skewed":
            X = np.random.default_rng(seed).exponential(size=(300, 8))
        elif kind == "flat":
            X = np.random.default_rng(seed).random((300, 4))
        elif kind == "denser at one end":
            X[:, 0] = 12 * np.sqrt(np.random.default_rng(seed).random(300))
        cuts = cuts_of(X, max_clusters=8)
        assert suggest_n_clusters(cuts) == ()
        chances.append(cuts[0].separation.p)
    # Of a right or careful rule at most 1 on average; 5 times too liberal, 1.6 more.
    assert -np.log(chances).mean() < 1


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
    two = measure_separation(X, one, np.flatnonzero(of == 1), metric=metric)
    assert two.is_firm
    assert str(two).startswith("A gap lies between them: ")
    half = len(order) // 2
    halves = measure_separation(X, order[:half], order[half:], metric=metric)
    assert not halves.is_firm
    assert str(halves).startswith("Not told apart: ")
    assert "however small their p-values are" in str(halves)


@pytest.mark.parametrize(
    ("sizes", "between", "begins"),
    [
        ((500, 500), 3.3, "A gap lies between them"),
        ((2_500, 500), 3.3, "Different, but without a gap"),
        ((500, 500), 1.0, "Not told apart"),
    ],
)
def test_what_lies_between_two_groups_is_told(sizes, between, begins):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(sum(sizes), 10))
    X[: sizes[0], 3] += between
    groups = np.split(np.arange(len(X)), [sizes[0]])
    told = measure_separation(X, *groups)
    assert str(told).startswith(begins)
    # The same groups the other way round, and in other units, are as far apart.
    other = measure_separation(1e-3 * X[:, ::-1] + 5, *groups[::-1])
    assert str(other).startswith(begins)
    assert other.depth == pytest.approx(told.depth, abs=0.15)


def test_other_clusters_fill_a_neck_and_leave_a_gap():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.random((3_000, 2)) - 0.5, rng.normal(0, 0.1, (3_000, 3))])
    is_glass = np.abs(X[:, 0]) < 0.15 + np.abs(X[:, 1])  # an hourglass in a square
    above, below, beside = (
        np.flatnonzero(each)
        for each in (is_glass & (X[:, 1] > 0), is_glass & (X[:, 1] < 0), ~is_glass)
    )
    assert measure_separation(X, above, below).is_firm
    assert not measure_separation(X, above, below, others=beside).is_firm
    X[above, 1] += 0.3  # a gap, which those beside do not reach
    X[beside, 0] += 3 * np.sign(X[beside, 0])
    assert measure_separation(X, above, below, others=beside).is_firm


def test_one_column_and_rows_far_from_0_are_compared():
    X, of = rows_of((150, 60))
    one, other = np.flatnonzero(of == 0), np.flatnonzero(of == 1)
    assert measure_separation(X @ X[0][:, None], one, other).is_firm
    assert measure_separation(X.astype(float) + 1e8, one, other).is_firm


def test_rows_that_are_all_the_same_are_one_group():
    X, of = rows_of((150, 60))
    X[of == 0] = X[0]
    labels = np.where(of == 0, np.arange(len(X)) % 2, 2)
    graph = landmark_graph(build_edges(knn_graph(X), "mixed"), labels, 3)
    tree = build_merge_tree(graph, np.bincount(labels))
    assert [cut.is_firm for cut in measure_cuts(X, tree, graph, labels)] == [
        True,
        False,
    ]


def test_the_answer_says_gap_or_difference_or_one_group():
    assert str(Separation(0.002, 0.623, has_gap=True)) == (
        "A gap lies between them: where they meet, the data are 62% sparser than those "
        "of one group would be (p\u00a0=\u00a00.002)."
    )
    assert "be (p\u00a0<\u00a00.0001)." in str(Separation(3e-7, 0.9, has_gap=True))
    assert str(Separation(0.002, 0.3, has_gap=False)).startswith(
        "Different, but without a gap: where they meet, the data are 30% sparser"
    )
    assert str(Separation(0.02, 0.3, has_gap=False)).startswith("Not told apart: ")


@pytest.mark.parametrize("kind", ["two values", "mostly 0", "one outlier"])
def test_strange_numbers_have_an_answer(kind):
    for seed in range(30):
        rng = np.random.default_rng(seed)
        n, n_columns = rng.integers(10, 60), rng.integers(1, 12)
        X = rng.integers(0, 2, (n + 100, n_columns)).astype(float)
        if kind == "mostly 0":
            X *= rng.random(X.shape) < 0.05
        elif kind == "one outlier":
            X = np.zeros_like(X)
            X[3] = 1e6
        told = measure_separation(X, np.arange(n), np.arange(n, n + 100))
        assert 0 <= told.p <= 1
        assert 0 <= told.depth <= 1


def test_too_few_rows_are_told():
    X, _ = rows_of([30])
    with pytest.raises(InputError, match="group has 9, but 10 or more are needed"):
        measure_separation(X, np.arange(9), np.arange(9, 30))


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
    assert suggest_n_clusters(cuts) == marks
