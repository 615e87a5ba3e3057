"""Groups compared by their samples, beside SciPy's test of the means by hand."""

import numpy as np
import pytest
from scipy import sparse, stats

from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.inspect.markers import markers

DONORS = np.repeat(np.array(["d1", "d2", "d3", "d4", "d5", "d6"], object), 50)
TREATED = DONORS > "d3"


def counts(seed=0):
    """300 cells of six donors, who differ by themselves; gene 0 rises by treatment."""
    rng = np.random.default_rng(seed)
    rates = rng.gamma(3, 1, 40) * np.repeat(rng.gamma(4, 0.25, (6, 40)), 50, axis=0)
    rates[:, 0] = np.where(TREATED, 40, 2)
    return rng.poisson(rates).astype(np.float32)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, sparse.csc_matrix])
def test_the_figures_are_those_of_the_means(form):
    x = counts()
    names = [f"g{i}" for i in range(40)]
    found = markers(form(np.log1p(x)), TREATED, None, names, samples=DONORS, n_top=None)
    means = np.log1p([x[donor == DONORS].mean(axis=0) for donor in np.unique(DONORS)])
    wanted = stats.ttest_ind(means[3:], means[:3], equal_var=False)
    np.testing.assert_allclose(found.scores, wanted.statistic[found.columns], atol=1e-4)
    np.testing.assert_allclose(found.pvals, wanted.pvalue[found.columns], atol=1e-5)
    assert (found.n_inside, found.n_outside) == (3, 3)
    np.testing.assert_allclose(found.pts, (x[TREATED] > 0).mean(axis=0)[found.columns])
    assert found.names[0] == "g0"
    ratio = np.expm1(means[3:].mean(axis=0)) / np.expm1(means[:3].mean(axis=0))
    folds = np.log2(ratio)[found.columns]
    np.testing.assert_allclose(found.logfoldchanges, folds, atol=1e-4)


def test_donors_are_no_difference_of_the_groups():
    x = np.log1p(counts())
    of_cells = markers(x, TREATED, None, n_top=None, method="t-test")
    of_donors = markers(x, TREATED, samples=DONORS, n_top=None)
    assert (of_cells.pvals_adj < 0.05).sum() > 20  # donors, but for gene 0
    assert of_donors.columns[of_donors.pvals_adj < 0.05].tolist() == [0]


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
    assert markers(x, some, ~TREATED, samples=DONORS).n_inside == 2
    one = DONORS == "d4"
    with pytest.raises(InputError, match=r"chosen group has 1 sample with 10 or more"):
        markers(x, one, samples=DONORS)
    with pytest.raises(InputError, match=r"compared group has 0 samples"):
        markers(x, TREATED, np.arange(300) < 4, samples=DONORS)
    with pytest.raises(InputError, match=r"100 rows are in both groups"):
        markers(x, TREATED, DONORS > "d4", samples=DONORS)
