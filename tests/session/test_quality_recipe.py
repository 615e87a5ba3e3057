"""A recipe with limits of quality is repeated when a session file is opened."""

import io
import json
import zipfile

import anndata
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.loading import load
from napari_embedding_game.data.read_options import Recipe
from napari_embedding_game.data.stages import finish
from napari_embedding_game.session.file import archive
from napari_embedding_game.session.file.origin import origin_of, reload
from napari_embedding_game.session.maps import MapTree
from napari_embedding_game.session.session import Session


def test_the_same_cells_are_left_out_again(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.poisson(rng.gamma(0.5, 2, (1, 200)), (60, 200)).astype(np.float32)
    X[:, 0] = 1
    X[5, 0] = 900
    var = pd.DataFrame(index=["MT-CO1", *(f"g{i}" for i in range(199))])
    obs = pd.DataFrame(index=[f"c{i}" for i in range(60)])
    anndata.AnnData(sp.csr_matrix(X), obs, var).write_h5ad(tmp_path / "cells.h5ad")
    recipe = Recipe(min_genes=20, max_mito=30.0, n_top_genes=50, n_comps=5)
    dataset = finish(load(tmp_path / "cells.h5ad", recipe=recipe))
    assert np.flatnonzero(~dataset.kept).tolist() == [5]
    again = finish(reload(origin_of(dataset), dataset.kept, tmp_path)).dataset
    np.testing.assert_array_equal(again.X, dataset.X)
    assert again.provenance["recipe"]["max_mito"] == 30.0


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("X", lambda a: a * np.nan),
        ("X", lambda a: a[1:]),
        ("projection.loadings", lambda a: a[:, 1:]),
        ("projection.mean", lambda a: a.astype("<f8")),
        ("doublet_scores", lambda a: a[1:]),
        ("projection.offset", None),
    ],
)
def test_damaged_numbers_of_a_recipe_are_told(tmp_path, name, change):
    X = np.random.default_rng(0).poisson(2, (40, 150)).astype("f4")
    np.save(tmp_path / "cells.npy", X)
    recipe = Recipe(min_genes=2, n_top_genes=50, n_comps=5)
    dataset = finish(load(tmp_path / "cells.npy", recipe=recipe))
    dataset.quality["doublet_score"] = np.linspace(0, 1, 40)
    session = Session()
    session.load(dataset)
    archive.save(MapTree(session).capture(), tmp_path / "work.zip")
    with zipfile.ZipFile(tmp_path / "work.zip") as old:
        members = {one: old.read(one) for one in old.namelist()}
    place = json.loads(members["maps/0.json"])["dataset"]["prepared"]
    for part in name.split("."):
        place = place[part]
    damaged = f"arrays/{place['array']}.npy"
    content = np.load(io.BytesIO(members.pop(damaged)))
    with zipfile.ZipFile(tmp_path / "damaged.zip", "w") as new:
        for one, kept in members.items():
            new.writestr(one, kept)
        if change is not None:
            out = io.BytesIO()
            np.save(out, change(content))
            new.writestr(damaged, out.getvalue())
    with pytest.raises(DataError, match=r"damaged\.zip is damaged"):
        archive.load(tmp_path / "damaged.zip")
