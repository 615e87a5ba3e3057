"""The recipe on chunks of a file: what it makes in memory, without the memory."""

import anndata
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import zarr

from napari_embedding_game.data import lazy_recipe
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.lazy_recipe import (
    read_counts_shape,
    write_principal_components,
)
from napari_embedding_game.data.loader import load
from napari_embedding_game.data.read_options import Recipe
from napari_embedding_game.data.stages import finish
from worlds import write_adata

RECIPE = Recipe(min_genes=20, max_counts=90, n_top_genes=120, n_comps=10)


@pytest.fixture(scope="module")
def adata():
    """Three kinds of cells, some of them empty, and a gene that nobody has."""
    rng = np.random.default_rng(0)
    rates = rng.gamma(0.4, 1.0, (3, 200))
    counts = rng.poisson(rates[rng.integers(3, size=400)]).astype(np.float32)
    counts[::40] = 0
    counts[:, 7] = 0
    names = [f"c{i}" for i in range(400)], [f"g{i}" for i in range(200)]
    obs, var = (pd.DataFrame(index=index) for index in names)
    return anndata.AnnData(sp.csr_matrix(counts), obs, var)


@pytest.fixture(params=["counts.h5ad", "counts.zarr"])
def path(adata, tmp_path, request):
    return write_adata(adata, tmp_path / request.param)


def test_components_are_those_of_the_recipe_in_memory(path, tmp_path, monkeypatch):
    monkeypatch.setattr(lazy_recipe, "CHUNK", 64)
    told = []
    stages = write_principal_components(path, tmp_path / "pcs.zarr", RECIPE)
    rows, facts = finish(stages, lambda stage: told.append(stage.text))
    wanted = finish(load(path, recipe=RECIPE))
    found = zarr.open_array(str(tmp_path / "pcs.zarr"), mode="r")[:]
    assert found.shape == wanted.X.shape
    assert rows.tolist() == np.flatnonzero(wanted.kept).tolist()
    assert found.dtype == np.float32
    assert not set(rows) & set(range(0, 400, 40))
    sign = np.sign((found * wanted.X).sum(axis=0))
    scale = np.abs(wanted.X).max()
    np.testing.assert_allclose(sign * found, wanted.X, atol=1e-4 * scale)
    of_memory = wanted.provenance["recipe"]
    shared = {key: of_memory[key] for key in facts}
    assert facts == {**shared, "space": "X"}
    assert told[0] == "Counting the genes of each cell"
    assert read_counts_shape(path) == (400, 200)


def test_dense_counts_of_a_layer(adata, tmp_path):
    dense = anndata.AnnData(np.log1p(adata.X.toarray()), adata.obs, adata.var)
    dense.layers["counts"] = adata.X.toarray()
    dense.write_h5ad(tmp_path / "dense.h5ad")
    adata.write_h5ad(tmp_path / "sparse.h5ad")
    spaces = {"dense": "layers['counts']", "sparse": None}
    for kind, space in spaces.items():
        source = tmp_path / f"{kind}.h5ad"
        finish(write_principal_components(source, tmp_path / kind, RECIPE, space))
    one, other = (zarr.open_array(str(tmp_path / k), mode="r")[:] for k in spaces)
    np.testing.assert_allclose(np.abs(one), np.abs(other), atol=1e-3)
    with pytest.raises(DataError, match="holds no raw counts"):
        finish(
            write_principal_components(tmp_path / "dense.h5ad", tmp_path / "no", RECIPE)
        )
