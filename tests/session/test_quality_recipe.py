"""A recipe with limits of quality is repeated when a session file is opened."""

import anndata
import numpy as np
import pandas as pd
import scipy.sparse as sp

from napari_embedding_game.data.loading import load
from napari_embedding_game.data.recipe import Recipe
from napari_embedding_game.data.stages import finish
from napari_embedding_game.session.file.origin import origin_of, reload


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
    again = finish(reload(origin_of(dataset), dataset.kept, tmp_path))
    np.testing.assert_array_equal(again.X, dataset.X)
    assert again.provenance["recipe"]["max_mito"] == 30.0
