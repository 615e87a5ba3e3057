"""Raw counts are normalised before genes are compared; all else stays as it is."""

import numpy as np
import pandas as pd
import pytest
import scanpy as sc
import scipy.sparse as sp
from anndata import AnnData

from napari_embedding_game.core.inspect.markers import markers
from napari_embedding_game.data.formats.anndata import from_anndata

NORMALISED = "Expression: counts, normalised to 10,000 per cell, log1p."


def cells(form=sp.csr_matrix):
    """Counts of three kinds of cells, each cell read to another depth."""
    rng = np.random.default_rng(0)
    kinds = np.arange(90) % 3
    depth = np.where(kinds == 0, 0.2, 1.0) * rng.gamma(4, 0.25, 90)
    rates = rng.gamma(0.5, 2, (3, 150))
    X = rng.poisson(rates[kinds] * depth[:, None]).astype(np.float32)
    X[5] = 0
    obs = pd.DataFrame(
        {"kind": pd.Categorical.from_codes(kinds, [*"ABC"])},
        index=[f"cell{i}" for i in range(90)],
    )
    adata = AnnData(form(X), obs=obs)
    adata.var_names = [f"gene{i}" for i in range(150)]
    adata.obsm["X_pca"] = rng.normal(size=(90, 5)).astype(np.float32)
    return adata


def normalised(adata):
    """What a person makes of the counts with scanpy."""
    adata = adata.copy()
    sc.pp.normalize_total(adata, target_sum=1e4)
    sc.pp.log1p(adata)
    return adata


def dense(X):
    return X.toarray() if sp.issparse(X) else X


def by_scanpy(adata, kind, method="wilcoxon"):
    sc.tl.rank_genes_groups(adata, "kind", method=method)
    found, keys = adata.uns["rank_genes_groups"], ("scores", "logfoldchanges")
    return pd.DataFrame({key: found[key][kind] for key in keys}, found["names"][kind])


def found(dataset, kind, method="wilcoxon"):
    expression = dataset.expression
    inside = (dataset.obs["kind"] == kind).to_numpy()
    return markers(
        expression.values,
        inside,
        None,
        dataset.profile_names,
        method=method,
        n_top=None,
        log1p=expression.is_log1p,
    )


@pytest.mark.filterwarnings("ignore:Some cells have zero counts")
@pytest.mark.parametrize("method", ["wilcoxon", "t-test"])
@pytest.mark.parametrize("form", [sp.csr_matrix, sp.csc_matrix, np.asarray])
def test_markers_of_counts_beside_given_components_are_those_of_scanpy(form, method):
    adata = cells(form)
    dataset = from_anndata(adata, "cells")
    assert dataset.space == "obsm['X_pca']"
    assert dataset.expression.told == NORMALISED
    theirs = by_scanpy(normalised(adata), "A", method)
    ours = found(dataset, "A", method)
    expected = theirs.loc[list(ours.names)]
    # scanpy rounds dense counts otherwise, which makes or breaks a tie.
    np.testing.assert_allclose(ours.scores, expected["scores"], rtol=1e-3, atol=0.02)
    np.testing.assert_allclose(
        ours.logfoldchanges, expected["logfoldchanges"], rtol=2e-3, atol=2e-4
    )
    # The depth of the kinds differs by five: raw counts say something else.
    raw = markers(dataset.profile, (adata.obs["kind"] == "A").to_numpy(), n_top=None)
    assert np.abs(np.sort(raw.logfoldchanges) - np.sort(ours.logfoldchanges)).max() > 1
