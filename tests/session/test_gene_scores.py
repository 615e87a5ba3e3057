"""Scores of gene sets through a session: told, written, stored and read again."""

import anndata
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from napari_embedding_game.data.export.writers import write_csv, write_h5ad
from napari_embedding_game.data.gene_sets import GeneSet, score_genes
from napari_embedding_game.data.readers import read
from napari_embedding_game.session.file import archive
from napari_embedding_game.session.file.saved_map import SavedSession
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


def test_a_session_file_brings_the_scores_back(session, scored, tmp_path):
    session.look.color_by = "T cells"
    saved = session.capture()
    path = tmp_path / "work.zip"
    archive.save(SavedSession(maps=(saved,)), path)
    found = archive.load(path).maps[0]
    assert found.dataset.scores == {"T cells": ("g1", "g2", "none")}
    again, troubles = archive.open_session(path)
    assert not troubles
    other = Session(session._engine)
    other.restore(again.maps[0])
    np.testing.assert_allclose(other.dataset.obs["T cells"], scored.values)
    assert other.look.color_by == "T cells"


def test_sets_of_a_session_without_its_data_are_kept(session, scored, tmp_path):
    path = tmp_path / "work.zip"
    archive.save(SavedSession(maps=(session.capture(),)), path)
    (tmp_path / "cells.h5ad").unlink()
    lost, troubles = archive.open_session(path)
    assert "missing" in troubles[0]
    other = Session(session._engine)
    other.restore(lost.maps[0])
    archive.save(SavedSession(maps=(other.capture(),)), path)
    assert archive.load(path).maps[0].dataset.scores == session.dataset.scores
    write_csv(other.dataset, other.result(), tmp_path / "map.csv")  # without scores
    assert "T cells" not in pd.read_csv(tmp_path / "map.csv")
