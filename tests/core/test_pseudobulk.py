"""Groups compared by their samples, beside a linear model written out by hand."""

import numpy as np
import pytest
from scipy import optimize, sparse, special, stats

from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.inspect.markers import markers

DONORS = np.repeat(np.array(["d1", "d2", "d3", "d4", "d5", "d6"], object), 50)
TREATED = DONORS > "d3"


def counts(seed=0):
    """300 cells of six donors, who differ by themselves; gene 0 rises by treatment."""
    rng = np.random.default_rng(seed)
    spreads = rng.permutation(np.geomspace(0.05, 0.8, 40))  # of donors, by gene
    rates = np.exp(np.repeat(rng.normal(0, spreads, (6, 40)), 50, axis=0))
    rates *= rng.gamma(3, 1, 40) + 2
    # And the same of the cells of a donor in one group or another.
    parts = rng.permutation(12)[np.repeat(np.arange(6), 50) * 2 + np.arange(300) % 2]
    rates *= np.exp(rng.normal(0, spreads, (12, 40))[parts] / 2)
    rates[:, 0] = np.where(TREATED, 40, 2)
    return rng.poisson(rates).astype(np.float32)


def one_by_one(values, model):
    """Fit a line to each column; return the difference, its variance and df."""
    found = []
    for column in values.T:
        coefficients, squares, rank, _ = np.linalg.lstsq(model, column, rcond=None)
        found.append((coefficients[0], squares[0] / (len(column) - rank)))
    differences, variances = np.transpose(found)
    return differences, variances, len(model) - np.linalg.matrix_rank(model)


def moderated_by_hand(variances, df, means):
    """Return limma's posterior variances and df, with a cubic of the rank as trend."""
    ranks, logs = stats.rankdata(means), np.log(variances)
    trend = np.polyval(np.polyfit(ranks, logs, 3), ranks)
    squares = (logs - trend) ** 2
    # Two standard errors are added, for caution.
    spread = squares.sum() / (len(logs) - 4) + 2 * squares.std() / len(logs) ** 0.5

    def excess(log_prior_df):
        of_both = special.polygamma(1, [np.exp(log_prior_df) / 2, df / 2]).sum()
        return of_both - spread

    prior_df = np.exp(optimize.brentq(excess, -10, 20))
    # The mean of log F of d and d0 degrees of freedom.
    bias = special.digamma(df / 2) - np.log(df / 2)
    bias -= special.digamma(prior_df / 2) - np.log(prior_df / 2)
    prior = np.exp(trend - bias)
    return (df * variances + prior_df * prior) / (df + prior_df), df + prior_df


def log_profiles(x, inside, donors, chosen, kept):
    """Return log2 of the means of (donor, group), the way the program scales them."""
    of_each = [x[(donors == donor) & (inside == side)] for donor, side in chosen]
    means, sizes = np.array([one.mean(axis=0) for one in of_each]), map(len, of_each)
    together = np.concatenate(of_each)
    seen = np.argsort((together > 0).sum(axis=0), kind="stable")[: x.shape[1] // 4]
    count = together[:, seen].sum() / (together[:, seen] > 0).sum()
    values = np.log2(means[:, kept] + count / 2 / np.mean([*sizes]))
    return values - np.median(values - values.mean(axis=0), axis=1)[:, None]


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, sparse.csc_matrix])
@pytest.mark.parametrize("is_paired", [False, True])
def test_the_figures_are_those_of_a_moderated_linear_model(form, is_paired):
    x, names = counts(), [f"g{i}" for i in range(40)]
    inside = np.arange(300) % 2 == 0 if is_paired else TREATED
    donors = np.unique(DONORS)
    chosen = [(donor, donor > "d3") for donor in donors]
    model = np.column_stack([donors > "d3", np.ones(6)])
    if is_paired:
        chosen = [(donor, side) for side in (True, False) for donor in donors]
        of_donors = [[donor == one for one in donors] for donor, _ in chosen]
        model = np.column_stack([[side for _, side in chosen], of_donors])
    table = markers(form(np.log1p(x)), inside, None, names, samples=DONORS, n_top=None)
    kept = np.sort(table.columns)  # genes with few counts are not tested
    assert len(kept) >= 38
    values = log_profiles(x, inside, DONORS, chosen, kept)
    differences, variances, df = one_by_one(values, model.astype(float))
    posterior, total = moderated_by_hand(variances, df, values.mean(axis=0))
    share = 1 / 6 + 1 / 6 if is_paired else 1 / 3 + 1 / 3
    t = differences / np.sqrt(posterior * share)
    assert (np.diff(table.scores) <= 0).all()
    at = np.searchsorted(kept, table.columns)
    np.testing.assert_allclose(
        table.logfoldchanges, differences[at], rtol=1e-4, atol=1e-6
    )
    np.testing.assert_allclose(table.scores, t[at], rtol=1e-4, atol=1e-5)
    p = 2 * stats.t.sf(np.abs(t), total)
    np.testing.assert_allclose(table.pvals, p[at], rtol=1e-3)
    np.testing.assert_allclose(table.pts, (x[inside] > 0).mean(axis=0)[table.columns])
    sizes = (6, 6) if is_paired else (3, 3)
    assert (table.n_inside, table.n_outside) == sizes
    said = "Paired by donor: 6 samples, 12 profiles."
    said = said if is_paired else "Not paired: 3 against 3 samples."
    assert table.design.describe("donor") == said
    assert (table.names[0] == "g0") is not is_paired


def test_columns_of_several_units_have_a_t_test_each():
    x = counts() * np.geomspace(1e-6, 1e6, 40)
    table = markers(x, TREATED, samples=DONORS, n_top=None, log1p=False)
    means = np.array([x[donor == DONORS].mean(axis=0) for donor in np.unique(DONORS)])
    wanted = stats.ttest_ind(means[3:], means[:3])
    np.testing.assert_allclose(table.scores, wanted.statistic[table.columns], rtol=1e-6)
    np.testing.assert_allclose(table.pvals, wanted.pvalue[table.columns], rtol=1e-6)
    folds = np.log2(means[3:].mean(axis=0) / means[:3].mean(axis=0))
    np.testing.assert_allclose(table.logfoldchanges, folds[table.columns], rtol=1e-4)
    inside = np.arange(300) % 2 == 0
    table = markers(x, inside, samples=DONORS, n_top=None, log1p=False)
    pairs = [
        [
            x[(inside == side) & (one == DONORS)].mean(axis=0)
            for one in np.unique(DONORS)
        ]
        for side in (True, False)
    ]
    wanted = stats.ttest_rel(*pairs)
    np.testing.assert_allclose(table.pvals, wanted.pvalue[table.columns], rtol=1e-6)


def changed_cells(rng, n_pairs=2, n_genes=1_200, n_changed=40):
    """Cells of donors before and after, counts, and the genes changed 4-fold."""
    base = rng.lognormal(-1.5, 1.5, n_genes)
    base *= 2_000 / base.sum()
    changed = rng.choice(np.flatnonzero(base > 0.2), n_changed, replace=False)
    folds = np.ones(n_genes)
    folds[changed] = np.where(np.arange(n_changed) % 2, 4.0, 0.25)
    parts, inside, donors = [], [], []
    for donor in range(n_pairs):
        of_donor = base * rng.lognormal(0, 0.4, n_genes)
        for side in (True, False):
            rates = of_donor * folds**side * rng.gamma(4, 0.25, (80, 1))
            parts.append(rng.poisson(rates).astype(np.float32))
            inside += [side] * 80
            donors += [f"d{donor}"] * 80
    x = np.concatenate(parts)
    logs = np.log1p(x / x.sum(axis=1, keepdims=True) * 1e4)
    return logs, np.array(inside), np.array(donors, object), changed


def test_two_pairs_find_most_of_the_changed_genes_and_hardly_a_false_one():
    n_true = n_false = 0
    for seed in range(5):
        x, inside, donors, changed = changed_cells(np.random.default_rng(seed))
        table = markers(x, inside, samples=donors, n_top=None)
        found = table.columns[table.pvals_adj < 0.05]
        n_true += np.isin(found, changed).sum()
        n_false += (~np.isin(found, changed)).sum()
        first = table.columns[np.argsort(table.pvals)[:20]]
        assert np.isin(first, changed).all()
    assert n_true / 5 > 20
    assert n_false <= 0.05 * n_true


def test_samples_that_do_not_differ_have_no_genes():
    with_any = 0
    for seed in range(20):
        rng = np.random.default_rng(100 + seed)
        x, inside, donors, _ = changed_cells(rng, 3, 400, 0)
        table = markers(x, inside, samples=donors, n_top=None)
        assert 0.01 < (table.pvals < 0.05).mean() < 0.12
        with_any += (table.pvals_adj < 0.05).any()
    assert with_any <= 2


def test_genes_that_few_cells_have_leave_the_table():
    x, names = counts(), [f"g{i}" for i in range(40)]
    x[:, 5] = np.arange(300) % 50 < 9  # 9 counts of each sample, and 10 are needed
    x[:, 6] = np.arange(300) % 50 < 11
    x[:, 7] = (np.arange(300) % 50 < 30) & (DONORS == "d1")  # enough in one of three
    x[:, 8] = (np.arange(300) % 50 < 30) & TREATED
    x[:, 9:16] = (np.arange(300) % 50 < 15)[:, None]  # one count in a cell
    # Cells of one depth, so that a count is the same in all.
    x[:, 39] = 3_000 - x[:, :39].sum(axis=1)
    table = markers(np.log1p(x), TREATED, None, names, samples=DONORS, n_top=None)
    assert {f"g{i}" for i in range(40)} - {*table.names} == {"g5", "g7"}
    assert table.n_untested == 2
    adjusted = stats.false_discovery_control(table.pvals)
    np.testing.assert_allclose(table.pvals_adj, adjusted, rtol=1e-9)
    rare = np.zeros((300, 40), np.float32)
    rare[::30] = 1
    with pytest.raises(InputError, match="No gene has 10 counts in enough samples"):
        markers(rare, TREATED, samples=DONORS)


def test_samples_in_one_group_only_are_left_out_of_pairs():
    x, inside = np.log1p(counts()), np.arange(300) % 2 == 0
    outside = ~inside & (DONORS != "d6")
    table = markers(x, inside, outside, samples=DONORS, n_top=None)
    said = "Paired by donor: 5 samples, 10 profiles. Left out: 1 in one group only"
    assert table.design.describe("donor").startswith(said)
    without = DONORS != "d6"
    alone = markers(x[without], inside[without], samples=DONORS[without], n_top=None)
    np.testing.assert_allclose(table.pvals, alone.pvals, rtol=1e-9)
    # Two of four in both: those in one group only are as many, so all are compared.
    inside = np.isin(DONORS, ["d1", "d2", "d3"]) & inside
    outside = np.isin(DONORS, ["d1", "d2", "d4"]) & ~inside
    table = markers(x, inside, outside, samples=DONORS)
    assert table.design.describe("donor") == "Not paired: 3 against 3 samples."


def test_donors_are_no_difference_of_the_groups():
    x = np.log1p(counts())
    of_cells = markers(x, TREATED, None, n_top=None, method="t-test")
    of_donors = markers(x, TREATED, samples=DONORS, n_top=None)
    assert (of_cells.pvals_adj < 0.05).sum() > 10  # donors, but for gene 0
    found = of_donors.columns[of_donors.pvals_adj < 0.05].tolist()
    assert 0 in found
    assert len(found) <= 2


def test_order_of_rows_and_cells_of_no_sample_do_not_matter():
    x, order = np.log1p(counts()), np.random.default_rng(1).permutation(300)
    found = markers(x, TREATED, samples=DONORS)
    unknown = np.full(20, None, object)
    other = markers(
        np.concatenate([x[order], np.full((20, 40), 9.0, np.float32)]),
        np.concatenate([TREATED[order], np.arange(20) % 2 == 0]),
        samples=np.concatenate([DONORS[order], unknown]),
    )
    assert other.columns.tolist() == found.columns.tolist()
    np.testing.assert_allclose(other.scores, found.scores, rtol=1e-9)


def test_small_samples_are_left_out_and_too_few_are_told():
    x = np.log1p(counts())
    some = TREATED & ~((DONORS == "d6") & (np.arange(300) < 295))
    table = markers(x, some, ~TREATED, samples=DONORS)
    assert table.n_inside == 2
    assert "Left out: 1 with fewer than 10 cells in a group." in table.design.describe(
        "donor"
    )
    one = DONORS == "d4"
    with pytest.raises(InputError, match=r"Too few .* chosen group has 1 sample with"):
        markers(x, one, samples=DONORS)
    with pytest.raises(InputError, match=r"compared group has 0 samples"):
        markers(x, TREATED, np.arange(300) < 4, samples=DONORS)
    with pytest.raises(InputError, match=r"100 rows are in both groups"):
        markers(x, TREATED, DONORS > "d4", samples=DONORS)
