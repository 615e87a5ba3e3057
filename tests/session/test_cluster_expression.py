"""Genes in clusters: equal to scanpy's dot plot, from counts and from logarithms."""

import anndata
import numpy as np
import pandas as pd
import pytest
import scanpy as sc
import scipy.sparse as sp

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.session.cluster_expression import (
    iter_cluster_expression,
    list_row_choices,
)
from worlds import rows

N, G = 300, 30
NAMES = [f"g{i}" for i in range(G)]
GENES = {"var_names": NAMES, "has_expression": True}


def counts_of(seed=0):
    """Counts of three groups, each with three genes of its own."""
    rng = np.random.default_rng(seed)
    labels = np.repeat([7, 2, 5], [150, 100, 50])
    rates = np.full((N, G), 0.4)
    for place, label in enumerate((7, 2, 5)):
        rates[labels == label, 3 * place : 3 * place + 3] = 6
    return rng.poisson(rates).astype(np.float32), labels


def result_of(steps):
    shares = []
    while True:
        try:
            shares.append(next(steps))
        except StopIteration as end:
            return end.value, shares


@pytest.mark.parametrize("is_scaled", [False, True])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_the_figures_are_those_of_scanpy(kind, is_scaled):
    counts, labels = counts_of()
    found, _ = result_of(
        iter_cluster_expression(
            rows(kind(counts), **GENES), pd.Categorical(labels), ["g4", "g0", "g20"]
        )
    )
    obs = pd.DataFrame({"cluster": pd.Categorical(labels)})
    obs.index = [f"c{i}" for i in range(N)]
    adata = anndata.AnnData(counts.copy(), obs, pd.DataFrame(index=NAMES))
    sc.pp.normalize_total(adata, target_sum=1e4)
    sc.pp.log1p(adata)
    plot = sc.pl.dotplot(
        adata,
        list(found.genes),
        "cluster",
        standard_scale="var" if is_scaled else None,
        return_fig=True,
        show=False,
    )
    assert found.genes == ("g4", "g0", "g20")
    assert found.sizes == (100, 50, 150)
    summary = found.summary
    means = summary.scaled_means if is_scaled else summary.means
    np.testing.assert_allclose(means, plot.dot_color_df, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(summary.shares, plot.dot_size_df, rtol=1e-6)


def test_leading_markers_stand_under_their_cluster():
    counts, labels = counts_of()
    data = rows(sp.csr_matrix(counts), **GENES)
    found, shares = result_of(
        iter_cluster_expression(data, pd.Categorical(labels, [7, 2, 5]))
    )
    assert [set(found.genes[i : i + 3]) for i in (0, 3, 6)] == [
        {"g0", "g1", "g2"},
        {"g3", "g4", "g5"},
        {"g6", "g7", "g8"},
    ]
    assert shares == sorted(shares)
    assert shares[-1] == 1


def test_rows_are_of_columns_with_at_most_60_levels_and_200_genes_fit():
    of = {f"of {n}": [f"level {i % n}" for i in range(N)] for n in (12, 13, 60, 61)}
    dataset = rows(np.zeros((N, 2)), obs=pd.DataFrame(of))
    texts = [choice.text for choice in list_row_choices(dataset, list(of))]
    assert texts == ["Clusters", "of 12", "of 13", "of 60", "Clusters by of 12"]
    names = [f"g{i}" for i in range(201)]
    genes = rows(np.ones((6, 201)), var_names=names, has_expression=True)
    groups = pd.Categorical([*"aabbcc"])
    result_of(iter_cluster_expression(genes, groups, names[:200]))
    with pytest.raises(DataError, match="201 names, and 200 can be shown"):
        next(iter_cluster_expression(genes, groups, names))
