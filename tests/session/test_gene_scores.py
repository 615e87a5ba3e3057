"""Scores of gene sets through a session: told, written, stored and read again."""

import anndata
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from napari_embedding_game.data.export.writers import write_csv, write_h5ad
from napari_embedding_game.data.gene_sets import GeneSet, score_genes
from napari_embedding_game.data.readers import read
from napari_embedding_game.session.session import Session

N, G = 40, 300


@pytest.fixture
def session(engine, tmp_path):
    """Cells with expression in a file, one of them left out."""
    rng = np.random.default_rng(0)
    X = np.log1p(rng.poisson(rng.gamma(0.5, 2, G), (N, G))).astype(np.float32)
    adata = anndata.AnnData(sp.csr_matrix(X), obsm={"X_pca": rng.random((N, 5))})
    adata.obs_names = [f"c{i}" for i in range(N)]
    adata.var_names = [f"g{i}" for i in range(G)]
    adata.obsm["X_pca"][7] = np.nan
    adata.write_h5ad(tmp_path / "cells.h5ad")
    session = Session(engine)
    session.load(read(tmp_path / "cells.h5ad", missing="drop"))
    run = session.begin()
    for progress in run.frames():
        session.receive(run, progress)
        if session.state == "finished":
            break
    return session


@pytest.fixture
def scored(session):
    heard = []
    session.columns_changed.connect(lambda: heard.append(1))
    scores = score_genes(session.dataset, GeneSet("T cells", ("g1", "g2", "none")))
    assert session.add_score(scores) == "T cells"
    assert heard == [1]
    return scores


def test_files_have_the_score_of_every_row(session, scored, tmp_path):
    path = tmp_path / "map.h5ad"
    write_h5ad(session.dataset, session.result(), path)
    written = anndata.read_h5ad(path)
    score = written.obs["T cells"].to_numpy()
    assert np.flatnonzero(np.isnan(score)).tolist() == [7]
    np.testing.assert_array_equal(np.delete(score, 7), scored.values)
    record = written.uns["embedding_game"]["gene_sets"]
    assert record["T cells"].tolist() == ["g1", "g2", "none"]
    write_csv(session.dataset, session.result(), tmp_path / "map.csv")
    table = pd.read_csv(tmp_path / "map.csv")
    np.testing.assert_allclose(table["T cells"], score, rtol=1e-6)
