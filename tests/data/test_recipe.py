import warnings

import anndata
import numpy as np
import pytest
import scipy.sparse as sp

from napari_embedding_game.data.raw_counts import looks_like_counts
from worlds import prepared

sc = pytest.importorskip("scanpy")


def test_what_are_no_counts(counts):
    X = counts.X
    assert not looks_like_counts(np.log1p(X))
    assert not looks_like_counts(X - 1 * (X > 0) * 3)
    assert not looks_like_counts((X > 0).astype(np.float32))  # presence, no counts
    assert not looks_like_counts(X[:, :50])  # so few columns are no transcriptome
    assert not looks_like_counts(sp.csr_matrix(X.shape))
    assert not looks_like_counts(anndata.AnnData(obs=counts.obs))


def by_scanpy(counts):
    """The steps as a person types them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        adata = counts.copy()
        sc.pp.filter_cells(adata, min_genes=20)
        sc.pp.filter_genes(adata, min_cells=2)
        sc.pp.normalize_total(adata, target_sum=1e4)
        sc.pp.log1p(adata)
        lognorm = adata.copy()
        sc.pp.highly_variable_genes(adata, n_top_genes=100)
        adata = adata[:, adata.var["highly_variable"]].copy()
        sc.pp.scale(adata, max_value=10)
        sc.pp.pca(adata, n_comps=10, random_state=0)
    return lognorm, adata


def test_same_numbers_as_scanpy(counts):
    dataset = prepared(counts)
    lognorm, adata = by_scanpy(counts)
    np.testing.assert_allclose(dataset.X, adata.obsm["X_pca"], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(
        dataset.profile.toarray(), lognorm.X.toarray(), rtol=1e-5
    )
    assert dataset.profile_names == tuple(lognorm.var_names)
    assert dataset.obs.index.tolist() == adata.obs_names.tolist()
