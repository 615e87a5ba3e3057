"""Neighbours that an AnnData brings: read as distances, cut to the rows kept."""

import warnings

import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from anndata import AnnData
from sklearn.neighbors import kneighbors_graph

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.formats.anndata import from_anndata
from napari_embedding_game.data.read_options import ReadOptions
from napari_embedding_game.data.readers import read, spaces

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
    path = tmp_path / f"cells.{request.param}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what later versions of anndata will do
        getattr(cells, f"write_{request.param}")(path)
    return path


def same(found, expected):
    """Whether two sparse matrices hold the same, stored zeros too."""
    found, expected = (sp.csr_matrix(one, copy=True) for one in (found, expected))
    for one in (found, expected):
        one.sort_indices()
    np.testing.assert_array_equal(found.indptr, expected.indptr)
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_allclose(found.data, expected.data, rtol=1e-6)
    return True


def test_distances_are_offered_but_never_taken_by_themselves(path):
    offered = spaces(path)
    assert offered[0] == "obsm['X_pca']"
    assert offered[-2:] == ["obsp['coarse_distances']", SPACE]
    assert not any("connectivities" in space for space in offered)
    assert not read(path).is_distances


@pytest.mark.parametrize("name", [SPACE, "distances", "obsp/distances"])
def test_they_are_read_as_they_are_stored(path, cells, name):
    dataset = read(path, space=name)
    assert dataset.is_distances
    assert dataset.space == SPACE
    assert same(dataset.X, cells.obsp["distances"])
    assert dataset.var_names == tuple(cells.obs_names)
    assert dataset.profile.shape == (60, 8)  # genes are still what clusters differ in
    assert any("neighbours of the file" in note for note in dataset.notes)


def test_an_object_in_memory_is_read_in_the_same_way(cells):
    dataset = from_anndata(
        cells, "cells", options=ReadOptions(space="coarse_distances")
    )
    assert same(dataset.X, cells.obsp["coarse_distances"])


def test_of_a_part_the_rows_and_columns_stay_together(path, cells):
    dataset = read(path, space="distances")
    mask = np.random.default_rng(1).random(60) < 0.6
    part = dataset.subset(mask)
    assert part.is_distances
    assert same(part.X, cells.obsp["distances"][mask][:, mask])
    assert part.var_names == tuple(cells.obs_names[mask])
    again = part.subset(np.arange(mask.sum()) < 20)
    rows = np.flatnonzero(mask)[:20]
    assert same(again.X, cells.obsp["distances"][rows][:, rows])


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


def test_without_genes_clusters_are_compared_by_nothing(cells):
    bare = AnnData(obs=cells.obs, obsp=dict(cells.obsp))
    dataset = from_anndata(bare, "bare", options=ReadOptions(space="distances"))
    assert dataset.profile.shape == (60, 0)
    assert dataset.profile_names == ()
    assert from_anndata(bare, "bare").is_distances  # the only thing there is


def test_a_matrix_that_does_not_fit_the_cells_is_told(cells, tmp_path):
    path = tmp_path / "damaged.h5ad"
    cells.write_h5ad(path)
    with h5py.File(path, "r+") as file:
        group = file["obsp/distances"]
        group.attrs["shape"] = (60, 90)
    with pytest.raises(DataError, match=r"damaged\.h5ad"):
        read(path, space="distances")
