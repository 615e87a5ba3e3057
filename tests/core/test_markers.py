"""The same figures as scanpy's, and what scanpy does not say."""

from __future__ import annotations

import subprocess
import sys
import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse, stats

from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.inspect import group_sums
from napari_embedding_game.core.inspect.markers import iter_markers, markers
from napari_embedding_game.core.threads import limit_threads


def expression(n_rows=120, n_columns=30, seed=0, kind="ties"):
    """Log counts with many zeros; a column of zeros and one without any."""
    rng = np.random.default_rng(seed)
    counts = rng.poisson(rng.gamma(0.6, 2, n_columns), (n_rows, n_columns)) * 1.0
    counts[:40, :5] *= 3
    if kind == "continuous":
        counts *= rng.uniform(0.5, 2, counts.shape)
    counts[:, 7] = 0
    counts[:, 8] = rng.integers(1, 6, n_rows)
    return np.log1p(counts).astype(np.float32)


def groups(n_rows=120):
    return np.array(["a"] * 40 + ["b"] * 50 + ["c"] * (n_rows - 90))


@cache
def of_scanpy(kind, method, reference, tie_correct=False):
    """scanpy's table of group a against the rest or group b."""
    X = sparse.csr_matrix(expression(kind=kind))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scanpy's own, of several packages
        import anndata
        import scanpy as sc

        obs = pd.DataFrame({"group": groups()}, index=[f"c{i}" for i in range(120)])
        names = [f"g{i}" for i in range(X.shape[1])]
        cells = anndata.AnnData(X, obs=obs, var=pd.DataFrame(index=names))
        module = sys.modules["scanpy.tools._rank_genes_groups"]
        way = {"groups": ["a"], "reference": reference, "method": method, "pts": True}
        way["tie_correct"] = tie_correct
        with pytest.MonkeyPatch.context() as patch:
            ranks = getattr(module.rankdata, "__wrapped__", module.rankdata)
            patch.setattr(module, "rankdata", ranks)  # compiled, it takes 10 seconds
            sc.tl.rank_genes_groups(cells, "group", use_raw=False, **way)
        table = sc.get.rank_genes_groups_df(cells, "a").set_index("names").loc[names]
        shares = cells.uns["rank_genes_groups"]
        table["pts"] = shares["pts"]["a"]
        rest = shares["pts"]["b"] if reference == "b" else shares["pts_rest"]["a"]
        table["pts_rest"] = rest
    return table


@pytest.mark.parametrize("reference", ["rest", "b"])
@pytest.mark.parametrize("form", ["dense", "csr", "csc"])
@pytest.mark.parametrize("kind", ["ties", "continuous"])
@pytest.mark.parametrize("method", ["wilcoxon", "tie_correct", "t-test"])
def test_the_figures_are_scanpys(method, kind, form, reference):
    X = expression(kind=kind)
    ways = {"dense": np.asarray, "csr": sparse.csr_matrix, "csc": sparse.csc_matrix}
    corrects = method == "tie_correct"
    method = "wilcoxon" if corrects else method
    expected = of_scanpy(kind, method, reference, corrects)
    outside = groups() == "b" if reference == "b" else None
    table = markers(
        ways[form](X),
        groups() == "a",
        outside,
        [f"g{i}" for i in range(X.shape[1])],
        method=method,
        tie_correct=corrects,
        n_top=None,
    )
    expected = expected.loc[table.names]
    assert (np.diff(table.scores) <= 0).all()
    for figure in ("scores", "logfoldchanges", "pvals", "pvals_adj", "pts", "pts_rest"):
        np.testing.assert_allclose(
            getattr(table, figure), expected[figure], rtol=1e-6, atol=1e-12
        )


def test_a_group_without_variation_has_a_score():
    # scanpy's variance, E[x^2] - E[x]^2, can be below 0 here, and its score then 0.
    X = np.full((120, 1), np.log(2), np.float32)
    X[100] = np.log(3)
    table = markers(X, groups() == "a", method="t-test")
    assert table.scores[0] == pytest.approx(-1.0)
    # All the variance is outside: 80 - 1 degrees of freedom.
    assert table.pvals[0] == pytest.approx(2 * stats.t.sf(1, 79))


@given(st.integers(0, 10_000), st.booleans(), st.sampled_from([np.float32, np.float64]))
@settings(max_examples=40, deadline=None)
def test_rank_sums_are_those_of_scipy_for_values_of_both_signs(seed, is_sparse, dtype):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(0, 2, (40, 6)), rng.integers(0, 3)).astype(dtype)
    X[rng.random(X.shape) < 0.4] = rng.choice([0.0, -0.0])
    inside = rng.permutation(40) < rng.integers(2, 38)
    table = markers(
        sparse.csr_matrix(X) if is_sparse else X, inside, n_top=None, log1p=False
    )
    exact = X.astype(np.float64)  # scipy keeps float32
    n, m = inside.sum(), (~inside).sum()
    above = stats.rankdata(exact, axis=0)[inside].sum(axis=0) - n * 41 / 2
    expected = above / np.sqrt(n * m * 41 / 12)
    order = table.columns
    np.testing.assert_allclose(table.scores, expected[order], rtol=1e-9, atol=1e-12)
    p_values = 2 * stats.norm.sf(np.abs(expected[order]))
    np.testing.assert_allclose(table.pvals, p_values, rtol=1e-9)
    np.testing.assert_allclose(table.pts, (X[inside] > 0).mean(axis=0)[order])


@pytest.mark.parametrize("value", [0.1, np.log1p(3.0), 1 / 3])
def test_a_column_of_one_value_is_no_marker(value):
    X = np.full((1000, 2), value)
    X[:, 1] = np.random.default_rng(0).normal(size=1000)
    table = markers(X, np.arange(1000) < 137, method="t-test", n_top=None)
    assert table.columns[0] == 1
    assert (table.scores[1], table.pvals[1]) == (0, 1)
    X = np.where(np.arange(6) < 3, value, 2 * value)[:, None]  # one value each
    assert markers(X, np.arange(6) < 3, method="t-test").pvals == pytest.approx(0.1)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, sparse.csc_matrix])
def test_blocks_and_threads_change_nothing(form, monkeypatch):
    X = expression()
    inside = groups() == "a"
    with limit_threads(1):
        whole = markers(X, inside, n_top=None)
    monkeypatch.setattr(group_sums, "BLOCK_VALUES", 500)
    with limit_threads(3):
        parts = markers(form(X), inside, n_top=None)
    for figure in ("columns", "scores", "logfoldchanges", "pvals_adj", "pts_rest"):
        np.testing.assert_array_equal(getattr(whole, figure), getattr(parts, figure))


def test_without_logarithms_the_fold_change_is_that_of_the_means():
    X = np.column_stack([np.repeat([8.0, 2.0], 10), np.repeat([-1.0, 1.0], 10)])
    table = markers(X, np.arange(20) < 10, log1p=False)
    change = dict(zip(table.columns, table.logfoldchanges, strict=True))
    assert change[0] == pytest.approx(2.0)
    assert np.isnan(change[1])  # a negative mean has no ratio
    small = markers(1e-15 * X, np.arange(20) < 10, log1p=False)
    np.testing.assert_allclose(small.logfoldchanges, table.logfoldchanges, rtol=1e-6)


def test_progress_is_told_and_closing_cancels(monkeypatch):
    monkeypatch.setattr(group_sums, "BLOCK_VALUES", 1)  # so that a block is a column
    X = expression()
    shares = list(iter_markers(X, groups() == "a"))
    assert shares == [(1 + column) / 30 for column in range(30)]
    steps = iter_markers(X, groups() == "a")
    next(steps)
    steps.close()
    assert next(steps, None) is None


@pytest.mark.parametrize(
    ("inside", "outside", "said"),
    [
        (np.arange(10) < 1, None, "chosen group has 1 row,"),
        (np.arange(10) < 9, None, "compared group has 1 row,"),
        (np.arange(10) < 10, None, "All rows are chosen"),
        (np.arange(10) < 5, np.arange(10) > 3, "1 rows are in both"),
    ],
)
def test_groups_that_cannot_be_compared_are_refused(inside, outside, said):
    with pytest.raises(InputError, match=said):
        markers(np.ones((10, 2)), inside, outside)


def test_values_that_are_no_numbers_are_named():
    X = np.ones((10, 3))
    X[4, 1] = np.nan
    for method in ("wilcoxon", "t-test"):
        for names in (["one", "two", "three"], np.array(["one", "two", "three"])):
            with pytest.raises(InputError, match=r"1 columns .* first of them two"):
                markers(X, np.arange(10) < 5, None, names, method=method)


def test_dask_may_be_half_imported_in_another_thread():
    code = (
        "import sys, types\n"
        "sys.modules['dask.array'] = types.ModuleType('dask.array')\n"
        "import numpy as np\n"
        "from napari_embedding_game.core.inspect.markers import markers\n"
        "X = np.random.default_rng(0).random((40, 3), np.float32)\n"
        "for method in ('wilcoxon', 't-test'):\n"
        "    markers(X, np.arange(40) < 20, method=method)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_unknown_methods_are_refused():
    with pytest.raises(InputError, match="method"):
        markers(np.ones((10, 3)), np.arange(10) < 5, method="logreg")


def test_p_values_of_rare_genes_are_those_of_chance_with_ties_corrected():
    rng = np.random.default_rng(0)
    X = sparse.random(600, 500, 0.02, "csr", np.float32, rng)
    found = [
        markers(X, np.arange(600) < 300, tie_correct=one, n_top=None).pvals
        for one in (False, True)
    ]
    assert (found[0] < 0.05).mean() == 0
    assert 0.02 < (found[1] < 0.05).mean() < 0.08
