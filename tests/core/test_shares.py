"""Shares of groups compared over samples, beside tests of scipy; landmarks, too."""

import numpy as np
import pytest
from scipy import sparse, stats

from napari_embedding_game.core.inspect.shares import (
    compare_shares,
    find_landmark_changes,
    pool_neighbors,
)

LEVELS = "treated", "control"


def rows_of(counts):
    """Return group and profile of each row, of counts (P, K)."""
    profiles, groups = np.nonzero(np.ones_like(counts))
    return np.repeat(groups, counts.ravel()), np.repeat(profiles, counts.ravel())


def logits(counts):
    totals = counts.sum(axis=1, keepdims=True)
    return np.log((counts + 0.5) / (totals - counts + 0.5))


@pytest.mark.parametrize("is_paired", [False, True])
def test_few_groups_have_a_t_test_of_logits_each(is_paired):
    counts = np.random.default_rng(0).integers(5, 200, (6, 3))
    codes, profiles = rows_of(counts)
    sides = np.array([0, 0, 0, 1, 1, 1])[profiles]
    donors = np.array([*("abcabc" if is_paired else "abcdef")], object)[profiles]
    found = compare_shares(codes, 3, sides, donors, LEVELS)
    test = stats.ttest_rel if is_paired else stats.ttest_ind
    wanted = test(logits(counts)[:3], logits(counts)[3:])
    np.testing.assert_allclose(found.scores, wanted.statistic)
    np.testing.assert_allclose(found.pvals, wanted.pvalue)
    np.testing.assert_array_equal(found.counts, counts)
    said = "Paired by donor: 3 samples, 6 profiles."
    said = said if is_paired else "Not paired: 3 against 3 samples."
    assert found.describe("donor") == said
    frame, shares = found.to_frame(), counts / counts.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(frame["share_first"], shares[:3].mean(axis=0))
    with_half = (counts + 0.5) / (counts.sum(axis=1, keepdims=True) + 1)
    change = np.log2(with_half[:3].mean(axis=0) / with_half[3:].mean(axis=0))
    np.testing.assert_allclose(frame["log2_fold_change"], change)


def test_variances_of_more_groups_are_drawn_half_way_to_one_value():
    rng = np.random.default_rng(1)
    counts = rng.multinomial(4_000, [1 / 40] * 40, 6)  # spreads are those of chance
    codes, profiles = rows_of(counts)
    found = compare_shares(
        codes, 40, np.array([0, 0, 0, 1, 1, 1])[profiles], profiles, LEVELS
    )
    sides = logits(counts)[:3], logits(counts)[3:]
    variances = np.mean([side.var(axis=0, ddof=1) for side in sides], axis=0)
    # Of 4 degrees of freedom of its own, and 4 of the prior.
    prior = np.exp(np.log(variances).mean())
    errors = np.sqrt((variances + prior) / 2 * 2 / 3)
    t = (sides[0].mean(axis=0) - sides[1].mean(axis=0)) / errors
    np.testing.assert_allclose(found.scores, t)
    np.testing.assert_allclose(found.pvals, 2 * stats.t.sf(np.abs(t), 8))
    adjusted = stats.false_discovery_control(found.pvals)
    np.testing.assert_allclose(found.pvals_adj, adjusted)


def test_donors_who_differ_make_no_changes():
    rng, shares = np.random.default_rng(2), 0.7 ** np.arange(10)
    pvals = []
    for _ in range(100):
        drawn = rng.dirichlet(40 * shares / shares.sum(), 6)
        codes, donors = rows_of(rng.multinomial(500, drawn))
        found = compare_shares(codes, 10, donors % 2, donors, LEVELS)
        pvals.append(found.pvals)
    assert 0.03 < (np.array(pvals) < 0.05).mean() < 0.08


def test_one_sample_is_too_few():
    codes, donors = rows_of(np.full((3, 4), 30))
    found = compare_shares(codes, 4, (donors > 0).astype(int), donors, LEVELS)
    assert found.refusal == (
        "Too few samples to tell: treated has 1 sample with 10 or more cells, but 2 "
        "are needed."
    )
    frame = found.to_frame()
    assert frame[["score", "pval", "pval_adj"]].isna().all(axis=None)
    np.testing.assert_allclose(frame["share_first"], 0.25)
    graph = sparse.identity(4, format="csr")
    sides = (donors > 0).astype(int)
    changes, refusal = find_landmark_changes(codes, graph, sides, donors, LEVELS)
    assert np.isnan(changes).all()
    assert refusal == found.refusal


def test_a_landmark_counts_its_neighbours_as_far_as_edges_lead_to_them():
    sizes = np.array([10, 10, 40])
    counts = np.array([[4, 6, 10], [6, 4, 30]])
    alone = pool_neighbors(counts, sparse.identity(3, format="csr"), sizes)
    np.testing.assert_allclose(alone, counts)
    graph = sparse.csr_matrix([[1.0, 1, 0], [1, 1, 0], [0, 0, 1]])
    pooled = pool_neighbors(counts, graph, sizes)
    np.testing.assert_allclose(pooled, [[10, 10, 10], [10, 10, 30]])
    # A cell of the third weighs a quarter of one of the first: 25 cells in effect.
    graph = sparse.csr_matrix([[1.0, 0, 1], [0, 1, 0], [1, 0, 1]])
    weights = np.repeat([1.0, 0.25], [10, 40])
    effective = weights.sum() ** 2 / (weights**2).sum()
    pooled = pool_neighbors(counts, graph, sizes)
    np.testing.assert_allclose(pooled[:, 0].sum(), effective)


def around(n):
    """Return a graph in which each landmark of a ring is beside two others."""
    beside = sparse.identity(n, format="csr")[np.arange(-1, n - 1)]
    return (2 * sparse.identity(n) + beside + beside.T).tocsr()


def test_a_region_that_grows_is_found_on_the_map_and_others_are_not():
    n, rng = 80, np.random.default_rng(3)
    found = np.zeros(n)
    for _ in range(20):
        rates = rng.gamma(20, 1 / 20, (8, 8)).repeat(10, axis=1)  # types of ten
        rates[:4, 10:20] *= 5  # in treated samples
        counts = rng.poisson(6 * rates)
        codes, samples = rows_of(counts)
        given = around(n), (samples >= 4).astype(int), samples, LEVELS
        changes, refusal = find_landmark_changes(codes, *given)
        assert not refusal
        found += changes > 0
    assert found[10:20].mean() > 15
    assert found[[*range(8), *range(22, 80)]].mean() < 1
    same, _ = find_landmark_changes(codes, *given[:1], samples % 2, *given[2:])
    assert np.isfinite(same).sum() < 4
