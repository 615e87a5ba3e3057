import warnings

import anndata
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import zarr
from anndata.io import write_elem

import worlds
from napari_embedding_game.data.readers import can_read
from worlds import read

LAYERS = ["layers['dense']", "layers['raw']"]
SPACES = ["obsm['X_pca']", "obsm['scores']", "X", *LAYERS]


def cells(n=8):
    adata = worlds.annotated(n, X_pca=3)
    adata.layers["raw"] = sp.csc_matrix(adata.X * 2)
    numbers = {"a": np.arange(n) / 2, "b": np.arange(n) / 4}
    adata.obsm["scores"] = pd.DataFrame(numbers, index=adata.obs_names)
    return adata


@pytest.fixture(params=[2, 3])
def version(request):
    with (
        warnings.catch_warnings(action="ignore"),
        anndata.settings.override(zarr_write_format=request.param),
    ):
        yield request.param


@pytest.fixture
def folder(tmp_path, version):
    cells().write_zarr(tmp_path / "cells.zarr")
    return tmp_path / "cells.zarr"


@pytest.fixture
def spatial(tmp_path, version):
    """As SpatialData stores tables beside images."""
    root = zarr.open_group(str(tmp_path / "s.zarr"), mode="w", zarr_format=version)
    root.attrs["spatialdata_attrs"] = {"version": "0.2"}
    tables = root.create_group("tables")
    write_elem(tables, "cells", cells())
    return tmp_path / "s.zarr"


def dense(X):
    return X.toarray() if sp.issparse(X) else X


def test_same_as_h5ad(folder, tmp_path, spaces, columns):
    cells().write_h5ad(file := tmp_path / "cells.h5ad")
    assert spaces(folder) == spaces(file)
    for space in (None, "X", "layers['raw']", "obsm['scores']"):
        ours, theirs = read(folder, space=space), read(file, space=space)
        np.testing.assert_array_equal(dense(ours.X), dense(theirs.X))
        np.testing.assert_array_equal(dense(ours.profile), dense(theirs.profile))
        assert ours.var_names == theirs.var_names
        assert ours.space == theirs.space
        assert ours.obs["type"].tolist() == theirs.obs["type"].tolist()
        assert columns(folder, space) == columns(file, space) == [*ours.var_names]


def test_table_of_spatialdata(spatial, spaces):
    assert can_read(spatial)
    assert spaces(spatial) == SPACES
    dataset = read(spatial)
    assert dataset.space == "obsm['X_pca']"
    assert dataset.X.shape == (8, 3)
    assert not any("tables" in note for note in dataset.notes)
    tables = zarr.open_group(str(spatial), mode="a")["tables"]
    write_elem(tables, "spots", cells(6))
    assert "Of its tables cells, spots the first was read" in read(spatial).notes[0]
    assert len(read(spatial / "tables" / "spots").X) == 6
