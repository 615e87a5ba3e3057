"""Sessions of files whose genes stay on disk."""

import numpy as np
import pandas as pd
import scipy.sparse as sp
from anndata import AnnData

from napari_embedding_game.data.read_options import ReadOptions
from napari_embedding_game.data.stored_columns import StoredColumns
from napari_embedding_game.session.axis_values import axis_of
from napari_embedding_game.session.file import archive
from napari_embedding_game.session.file.saved_map import SavedSession
from napari_embedding_game.session.session import Session
from napari_embedding_game.session.sources import FileSource


def test_a_session_finds_the_genes_again(tmp_path, monkeypatch, read_here):
    place = "napari_embedding_game.data.formats.anndata.part_of_budget"
    monkeypatch.setattr(place, lambda parts: 10)
    rng = np.random.default_rng(0)
    counts = sp.csc_matrix(rng.poisson(2.0, (40, 30)).astype(np.float32))
    adata = AnnData(counts, obs=pd.DataFrame(index=[f"cell{i}" for i in range(40)]))
    adata.var_names = [f"gene{i}" for i in range(30)]
    adata.obsm["X_pca"] = rng.normal(size=(40, 5)).astype(np.float32)
    adata.write_h5ad(tmp_path / "cells.h5ad")
    read = FileSource(tmp_path / "cells.h5ad").read(ReadOptions())
    texts = []
    try:
        while True:
            texts.append(next(read).text)
    except StopIteration as end:
        loaded = end.value
    assert "Counting the values of each cell in X" in texts
    session = Session()
    session.load(loaded.dataset)
    expected = axis_of(session.dataset, "gene7").values
    archive.save(SavedSession(maps=(session.capture(),)), tmp_path / "work.zip")
    opened, troubles = archive.open_session(tmp_path / "work.zip")
    assert not troubles
    dataset = opened.maps[0].dataset
    assert isinstance(dataset.profile, StoredColumns)
    np.testing.assert_array_equal(axis_of(dataset, "gene7").values, expected)
    (tmp_path / "cells.h5ad").unlink()
    opened, troubles = archive.open_session(tmp_path / "work.zip")
    assert "is missing" in troubles[0]
    assert opened.maps[0].dataset.profile.shape[1] == 0
