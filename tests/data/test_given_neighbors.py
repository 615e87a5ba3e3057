"""Neighbours that an AnnData brings: read as distances, cut to the rows kept."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from anndata import AnnData
from sklearn.neighbors import kneighbors_graph

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.formats.anndata import from_anndata
from napari_embedding_game.data.read_options import ReadOptions
from worlds import read, write_adata

SPACE = "obsp['distances']"


@pytest.fixture
def cells():
    """Sixty cells in an order of their own, two of them the same."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 6)).astype(np.float32)
    X[7] = X[3]
    graph = kneighbors_graph(X, 9, mode="distance")
    assert (graph.data == 0).sum() == 2  # stored, as they are neighbours
    adata = AnnData(
        rng.poisson(3, (60, 8)).astype(np.float32),
        obs=pd.DataFrame(index=[f"cell {i}" for i in rng.permutation(60)]),
        obsm={"X_pca": X},
    )
    adata.obsp["distances"] = graph
    adata.obsp["connectivities"] = (graph > 0).astype(np.float32)
    adata.obsp["coarse_distances"] = kneighbors_graph(X, 20, mode="distance")
    adata.uns["neighbors"] = {"distances_key": "distances"}
    return adata


@pytest.fixture(params=["h5ad", "zarr"])
def path(cells, tmp_path, request):
    return write_adata(cells, tmp_path / f"cells.{request.param}")


def same(found, expected):
    """Whether two sparse matrices hold the same, stored zeros too."""
    found, expected = (sp.csr_matrix(one, copy=True) for one in (found, expected))
    for one in (found, expected):
        one.sort_indices()
    np.testing.assert_array_equal(found.indptr, expected.indptr)
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_allclose(found.data, expected.data, rtol=1e-6)
    return True


@pytest.mark.parametrize("name", [SPACE, "distances", "obsp/distances"])
def test_they_are_read_as_they_are_stored(path, cells, name):
    dataset = read(path, space=name)
    assert dataset.is_distances
    assert dataset.space == SPACE
    assert same(dataset.X, cells.obsp["distances"])
    assert dataset.var_names == tuple(cells.obs_names)
    assert dataset.profile.shape == (60, 8)  # genes are still what clusters differ in
    assert any("neighbours of the file" in note for note in dataset.notes)


def test_rows_without_a_distance_are_left_out_with_their_column(cells):
    graph = cells.obsp["distances"].copy()
    graph.data[graph.indptr[4]] = np.nan
    cells.obsp["distances"] = graph
    with pytest.raises(DataError, match="missing"):
        from_anndata(cells, "cells", options=ReadOptions(space="distances"))
    dataset = from_anndata(
        cells, "cells", options=ReadOptions(space="distances", missing="drop")
    )
    kept = np.arange(60) != 4
    assert same(dataset.X, graph[kept][:, kept])
    assert dataset.var_names == tuple(cells.obs_names[kept])
    np.testing.assert_array_equal(dataset.kept, kept)
