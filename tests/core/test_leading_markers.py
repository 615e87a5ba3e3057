"""Leading markers of all groups at once: scanpy's, from dense and sparse data."""

import anndata
import numpy as np
import pandas as pd
import pytest
import scanpy as sc
import scipy.sparse as sp

from napari_embedding_game.core.inspect.markers import iter_leading_markers


def result_of(steps):
    shares = []
    while True:
        try:
            shares.append(next(steps))
        except StopIteration as end:
            return end.value, shares


@pytest.fixture
def cells():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, 90)
    rates = rng.gamma(1, 2, (3, 40))
    return np.log1p(rng.poisson(rates[codes])).astype(np.float32), codes


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_the_order_is_that_of_scanpy(cells, kind):
    X, codes = cells
    found, shares = result_of(iter_leading_markers(kind(X), codes, 3))
    assert shares[-1] == 1
    obs = pd.DataFrame({"group": pd.Categorical(codes.astype(str))})
    obs.index = [f"c{i}" for i in range(90)]
    adata = anndata.AnnData(X, obs, pd.DataFrame(index=[f"{i}" for i in range(40)]))
    adata.uns["log1p"] = {"base": None}
    sc.tl.rank_genes_groups(adata, "group", method="t-test")
    for group, columns in enumerate(found):
        wanted = sc.get.rank_genes_groups_df(adata, str(group), log2fc_min=1)
        wanted = wanted[wanted["scores"] > 0]
        assert len(columns) > 3
        assert columns.tolist() == wanted["names"].astype(int).tolist()


def test_rows_of_no_group_are_among_the_others(cells):
    X, codes = cells
    one = np.where(codes == 0, 0, -1)
    found, _ = result_of(iter_leading_markers(X, one, 1))
    wanted, _ = result_of(iter_leading_markers(X, codes, 3))
    np.testing.assert_array_equal(found[0], wanted[0])


def test_values_that_are_no_logarithms_need_no_fold(cells):
    X, codes = cells
    higher, _ = result_of(iter_leading_markers(X, codes, 3, log1p=False))
    twice, _ = result_of(iter_leading_markers(X, codes, 3))
    assert set(twice[0]) < set(higher[0])


def test_groups_that_are_too_small_have_none(cells):
    X, _ = cells
    codes = np.zeros(90, int)
    codes[0] = 1
    found, _ = result_of(iter_leading_markers(X, codes, 3))
    assert [len(columns) for columns in found] == [0, 0, 0]
