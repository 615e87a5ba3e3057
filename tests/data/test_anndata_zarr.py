import json
import re
import warnings

import anndata
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import zarr
from anndata import AnnData
from anndata.io import write_elem

from napari_embedding_game.data.errors import DataError, SeveralError
from napari_embedding_game.data.export.result import EmbeddingResult
from napari_embedding_game.data.export.writers import write_h5ad
from napari_embedding_game.data.readers import can_read, columns, read, spaces


def cells(n=8):
    rng = np.random.default_rng(0)
    obs = pd.DataFrame(
        {
            "type": pd.Categorical(list("ab") * (n // 2)),
            "area": rng.random(n),
            "instance_id": np.arange(n) + 1,
        },
        index=[f"c{i}" for i in range(n)],
    )
    X = sp.random(n, 6, 0.6, format="csr", dtype=np.float32, random_state=0)
    adata = AnnData(X, obs=obs, layers={"raw": sp.csc_matrix(X * 2)})
    adata.obsm["X_pca"] = rng.normal(size=(n, 3))
    adata.obsm["scores"] = pd.DataFrame(
        {"a": rng.random(n), "b": rng.random(n)}, index=obs.index
    )
    return adata


@pytest.fixture(params=[2, 3])
def version(request):
    with (
        warnings.catch_warnings(),
        anndata.settings.override(zarr_write_format=request.param),
    ):
        warnings.simplefilter("ignore")
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


@pytest.mark.parametrize("space", [None, "X", "layers['raw']", "obsm['scores']"])
def test_same_as_h5ad(folder, tmp_path, space):
    cells().write_h5ad(tmp_path / "cells.h5ad")
    ours, theirs = read(folder, space=space), read(tmp_path / "cells.h5ad", space=space)
    np.testing.assert_array_equal(dense(ours.X), dense(theirs.X))
    np.testing.assert_array_equal(dense(ours.profile), dense(theirs.profile))
    assert ours.var_names == theirs.var_names
    assert ours.space == theirs.space
    assert ours.obs["type"].tolist() == theirs.obs["type"].tolist()
    assert spaces(folder) == spaces(tmp_path / "cells.h5ad")
    assert columns(folder, space) == columns(tmp_path / "cells.h5ad", space)
    assert columns(folder, space) == list(ours.var_names)


def test_result_beside_what_the_folder_held(folder, tmp_path):
    dataset = read(folder)
    result = EmbeddingResult(
        np.ones((8, 2), np.float32),
        np.zeros((2, 2), np.float32),
        np.arange(8, dtype=np.int32) % 2,
        np.zeros(8, np.float32),
        0.0,
    )
    write_h5ad(dataset, result, tmp_path / "out.h5ad")
    adata = anndata.read_h5ad(tmp_path / "out.h5ad")
    np.testing.assert_array_equal(adata.X.toarray(), cells().X.toarray())
    np.testing.assert_array_equal(
        adata.layers["raw"].toarray(), (cells().X * 2).toarray()
    )
    assert adata.obs["embedding_game_cluster"].tolist() == ["0", "1"] * 4


def test_table_of_spatialdata(spatial):
    assert can_read(spatial)
    assert spaces(spatial) == spaces_of_one()
    dataset = read(spatial)
    assert dataset.space == "obsm['X_pca']"
    assert dataset.X.shape == (8, 3)


def spaces_of_one():
    return ["obsm['X_pca']", "obsm['scores']", "X", "layers['raw']"]


def test_several_tables_of_spatialdata(spatial, tmp_path):
    root = zarr.open_group(str(spatial), mode="r+")
    write_elem(root["tables"], "nuclei", cells(4))
    assert spaces(spatial)[0] == "tables['cells'] obsm['X_pca']"
    assert len(spaces(spatial)) == 8
    dataset = read(spatial, space="tables['nuclei'] X")
    assert dataset.X.shape == (4, 6)
    assert dataset.space == "tables['nuclei'] X"
    assert read(spatial).X.shape == (8, 3)
    with pytest.raises(SeveralError, match=r"2 tables, cells, nuclei: say .*cells"):
        read(spatial, several="error")
    assert read(spatial, space="tables['nuclei'] X", several="error").X.shape == (4, 6)
    assert columns(spatial, "tables['nuclei'] obs") == ["area", "instance_id"]
    with pytest.raises(DataError, match='no table "moon": choose one of cells, nuclei'):
        read(spatial, space="tables['moon'] X")
    result = EmbeddingResult(
        np.ones((4, 2), np.float32),
        np.zeros((2, 2), np.float32),
        np.zeros(4, np.int32),
        np.zeros(4, np.float32),
        0.0,
    )
    write_h5ad(dataset, result, tmp_path / "out.h5ad")
    assert anndata.read_h5ad(tmp_path / "out.h5ad").n_obs == 4


def sharded(folder):
    """Write every array of a folder again, blocks and an index in one file.

    anndata does so since 0.13.
    """
    root = zarr.open_group(str(folder), mode="r+", use_consolidated=False)
    for key, item in [*root.members(max_depth=None)]:
        if not hasattr(item, "dtype") or not item.ndim:
            continue
        values, attributes = item[:], dict(item.attrs)
        again = root.create_array(
            key,
            shape=item.shape,
            dtype=item.dtype if item.dtype.kind in "biuf" else "str",
            chunks=(2,) * item.ndim,
            shards=tuple(n + n % 2 for n in item.shape),
            overwrite=True,
        )
        again.attrs.update(attributes)
        again[:] = values
    # The copy of all metadata at the root is left out, so that a change counts.
    changed(folder / "zarr.json", lambda root: root.pop("consolidated_metadata", None))
    return folder


def changed(path, change):
    metadata = json.loads(path.read_text())
    change(metadata)
    path.write_text(json.dumps(metadata))


@pytest.fixture
def in_shards(tmp_path):
    with (
        warnings.catch_warnings(),
        anndata.settings.override(zarr_write_format=3),
    ):
        warnings.simplefilter("ignore")
        cells().write_zarr(tmp_path / "cells.zarr")
        return sharded(tmp_path / "cells.zarr")


def test_blocks_in_one_file_that_lies(in_shards):
    (file,) = (in_shards / "obsm/X_pca/c").rglob("0/0")
    honest = file.read_bytes()
    n_index = 16 * 8 + 4

    def with_first_block(offset, length):
        place = len(honest) - n_index
        entry = offset.to_bytes(8, "little") + length.to_bytes(8, "little")
        file.write_bytes(honest[:place] + entry + honest[place + 16 :])

    with_first_block(0, len(honest) + 1)
    with pytest.raises(DataError, match="could not be read"):
        read(in_shards)
    # A frame of zstd that says it unpacks to 1 GB, as far as it goes.
    frame = b"\x28\xb5\x2f\xfd\x80\x58" + (1 << 30).to_bytes(4, "little")
    again = (1 << 17 << 3 | 1 << 1).to_bytes(3, "little") + b"\0"
    last = (1 << 17 << 3 | 1 << 1 | 1).to_bytes(3, "little") + b"\0"
    bomb = frame + again * ((1 << 13) - 1) + last
    honest = bomb + honest
    with_first_block(0, len(bomb))
    with pytest.raises(DataError, match="could not be read"):
        read(in_shards)
    file.write_bytes(honest[-20:])
    with pytest.raises(DataError, match="could not be read"):
        read(in_shards)


def test_an_index_that_is_packed_is_refused(in_shards):
    def change(array):
        settings = array["codecs"][0]["configuration"]
        settings["index_codecs"] = settings["codecs"]

    changed(in_shards / "obsm/X_pca/zarr.json", change)
    # zarr 3.4 does not open it either.
    refused = 'packed by "zstd", which cannot be checked|could not be read'
    with pytest.raises(DataError, match=refused):
        read(in_shards)


def test_a_part_that_this_anndata_cannot_read(in_shards):
    root = zarr.open_group(str(in_shards), mode="r+", use_consolidated=False)
    root["obs"].attrs["encoding-version"] = "9.9.9"
    with pytest.raises(DataError) as error:
        read(in_shards)
    assert re.match(
        r"cells\.zarr stores its table obs as dataframe 9\.9\.9 or has such a part in "
        r"it, which anndata [\d.]+ cannot read: update anndata, or write",
        str(error.value),
    )
