"""A file whose genes stay on disk, in the window."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from anndata import AnnData

from napari_embedding_game.data.formats.anndata import ON_DISK
from napari_embedding_game.data.stored_columns import StoredColumns
from napari_embedding_game.session.sources import FileSource
from napari_embedding_game.ui.style.coloring import CLUSTER


@pytest.fixture
def large_file(tmp_path, monkeypatch, read_here):
    """40 cells with counts that count as large, beside components."""
    place = "napari_embedding_game.data.formats.anndata.part_of_budget"
    monkeypatch.setattr(place, lambda parts: 10)
    rng = np.random.default_rng(0)
    counts = sp.csc_matrix(rng.poisson(2.0, (40, 30)).astype(np.float32))
    adata = AnnData(counts, obs=pd.DataFrame(index=[f"cell{i}" for i in range(40)]))
    adata.var_names = [f"gene{i}" for i in range(30)]
    adata.obsm["X_pca"] = rng.normal(size=(40, 5)).astype(np.float32)
    path = tmp_path / "large.h5ad"
    adata.write_h5ad(path)
    return path


def test_colours_by_a_gene_while_the_file_is_there(
    dock, session, click_run, large_file, qtbot
):
    dock.controller.reading.load(FileSource(large_file))
    qtbot.waitUntil(lambda: session.dataset.name == "large.h5ad")
    assert isinstance(session.dataset.profile, StoredColumns)
    assert ON_DISK in session.dataset.notes
    layers = click_run(dock)
    by_cluster = layers.points.face_color.copy()
    session.look.color_by = "gene7"
    qtbot.waitUntil(lambda: not np.array_equal(layers.points.face_color, by_cluster))
    large_file.unlink()
    session.dataset.profile.known.clear()  # as if others were seen since
    with qtbot.waitSignal(dock.controller.writing.trouble) as told:
        dock.controller.writing.save(large_file.with_suffix(".png"))
    assert "put it back" in told.args[0]
    session.look.color_by = "gene8"
    assert session.look.color_by == CLUSTER
    assert "large.h5ad are read from its file, which is no longer" in session.message
    qtbot.waitUntil(lambda: np.array_equal(layers.points.face_color, by_cluster))
