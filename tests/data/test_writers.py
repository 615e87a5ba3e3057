import os
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import anndata
import numpy as np
import pandas as pd
import pytest

import worlds
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.export.atomic import atomic_write
from napari_embedding_game.data.export.writers import write_result
from napari_embedding_game.data.formats.tables import result_from_features
from napari_embedding_game.data.read_options import ReadOptions
from worlds import read

posix = pytest.mark.skipif(os.name != "posix", reason="needs modes of files")


KILLED = """
import os, sys
from pathlib import Path
from napari_embedding_game.data.export.atomic import atomic_write
with atomic_write(Path(sys.argv[1])) as temporary:
    temporary.write_text("half")
    os._exit(9)
"""


def test_what_a_killed_program_left_half_written_goes_with_the_next_saving(tmp_path):
    path, kept = tmp_path / "map.csv", tmp_path / ".2023-my-map.csv"
    assert subprocess.run([sys.executable, "-c", KILLED, path]).returncode == 9
    (half,) = tmp_path.iterdir()  # a file beside the target
    kept.write_text("a person's")
    assert half != path
    with atomic_write(path) as one, atomic_write(path) as other:
        one.write_text("whole")
        other.write_text("of another thread")
    assert {*tmp_path.iterdir()} == {path, kept}


def test_a_file_held_by_another_program_is_replaced_later(tmp_path, monkeypatch):
    held, path = PermissionError(13, "held by a virus scanner"), tmp_path / "map.csv"
    tries = [held, held, None, *[held] * 4]
    monkeypatch.setattr("time.sleep", Mock())
    monkeypatch.setattr(os, "replace", tried := Mock(side_effect=tries))
    with atomic_write(path):
        assert not tried.called
    with pytest.raises(DataError, match="virus scanner"), atomic_write(path):
        assert tried.call_count == 3


def layout(n):
    parameters = {"random_state": 3, "max_iter": None, "steps": [1, 2]}
    return worlds.layout(n, 3, parameters=parameters)


@pytest.fixture
def cells(tmp_path):
    """An .h5ad file with one cell that has no place in X_pca."""
    adata = worlds.annotated(6, 4, X_pca=3)
    adata.obsm["X_pca"][2], adata.uns["title"] = np.nan, "mine"
    adata.write_h5ad(tmp_path / "cells.h5ad")
    return tmp_path / "cells.h5ad"


def check_result(adata, result, kept):
    embedding = adata.obsm["X_embedding_game"]
    assert embedding.dtype == np.float32
    np.testing.assert_array_equal(embedding[kept], result.snapshot.embedding)
    assert np.isnan(embedding[~kept]).all()
    cluster = adata.obs["embedding_game_cluster"]
    assert cluster.dtype == "category"
    assert cluster[kept].tolist() == [str(label) for label in result.snapshot.labels]
    assert (cluster[~kept] == "unassigned").all()
    pressure = adata.obs["embedding_game_pressure"].to_numpy()
    np.testing.assert_array_equal(pressure[kept], result.snapshot.pressure)
    assert np.isnan(pressure[~kept]).all()
    record = adata.uns["embedding_game"]
    assert record["parameters"]["random_state"] == 3
    assert record["parameters"]["max_iter"] == "none"
    assert record["energy"] == 1.0
    np.testing.assert_array_equal(record["landmarks"], result.snapshot.landmarks)
    assert record["versions"]["numpy"] == np.__version__


def test_h5ad_keeps_everything_it_held(cells, tmp_path):
    dataset = read(cells, missing="drop")
    result = layout(5)
    before = cells.read_bytes()
    write_result(dataset, result, tmp_path / "out.h5ad")
    assert cells.read_bytes() == before
    adata = anndata.read_h5ad(tmp_path / "out.h5ad")
    check_result(adata, result, np.array([1, 1, 0, 1, 1, 1], dtype=bool))
    source = anndata.read_h5ad(cells)
    np.testing.assert_array_equal(adata.X.toarray(), source.X.toarray())
    np.testing.assert_array_equal(adata.obsm["X_pca"], source.obsm["X_pca"])
    assert adata.obs["type"].tolist() == source.obs["type"].tolist()
    assert adata.obs_names.tolist() == source.obs_names.tolist()
    assert adata.uns["title"] == "mine"
    made_from = adata.uns["embedding_game"]["input"]
    assert made_from["space"] == "obsm['X_pca']"
    assert (made_from["rows"], made_from["rows_embedded"]) == (6, 5)
    assert "1 of 6 rows left out" in made_from["notes"]


@pytest.mark.parametrize("name", ["cells.zarr", "counts.h5", "counts_mtx"])
def test_h5ad_holds_what_folders_and_counts_did(tmp_path, name):
    adata, path = worlds.annotated(6, 4, X_pca=3), tmp_path / name
    adata.layers["raw"] = adata.X * 2
    if path.suffix == ".zarr":
        worlds.write_adata(adata, path)
    else:
        worlds.tenx(path, np.arange(24).reshape(6, 4))
    dataset, result = read(path), layout(6)
    write_result(dataset, result, tmp_path / "out.h5ad")
    written = anndata.read_h5ad(tmp_path / "out.h5ad")
    check_result(written, result, np.ones(6, bool))
    assert (written.X != read(path, space="X").X).nnz == 0
    if path.suffix == ".zarr":
        assert (written.layers["raw"] != 2 * adata.X).nnz == 0
    else:
        assert written.var["gene_ids"].tolist() == ["id0", "id1", "id2", "id3"]
    if path.is_dir():
        with pytest.raises(DataError, match="inside the input"):
            write_result(dataset, result, path / "out.h5ad")


def test_result_can_be_read_and_written_again(cells, tmp_path):
    write_result(read(cells, missing="drop"), layout(5), tmp_path / "once.h5ad")
    adata = anndata.read_h5ad(tmp_path / "once.h5ad")
    adata.obs["embedding_game_stability"] = 1.0  # by tl.stability, of this map
    adata.write_h5ad(tmp_path / "once.h5ad")
    again = read(tmp_path / "once.h5ad", missing="drop")
    assert again.space == "obsm['X_pca']"
    result = layout(5)
    write_result(again, result, tmp_path / "twice.h5ad")
    adata = anndata.read_h5ad(tmp_path / "twice.h5ad")
    check_result(adata, result, np.array([1, 1, 0, 1, 1, 1], dtype=bool))
    assert adata.obs.columns.tolist().count("embedding_game_cluster") == 1
    assert "embedding_game_stability" not in adata.obs


def test_table_becomes_h5ad_with_its_own_units_and_all_its_rows(tmp_path):
    features = pd.DataFrame(
        {
            "area": [10.0, np.nan, 30.0, 50.0],
            "CD4/CD8": ["high", "low", None, "low"],
            "CD4_CD8": ["a", "b", "c", "d"],
            "ok": [True, False, True, True],
            "seen": pd.to_datetime(["2020-01-01"] * 4),
            "bin": pd.cut([1, 2, 3, 4], 2),
            "mixed": [1, "a", None, 2.5],
            "both": pd.Categorical([1, "1", None, 2]),
            "gaps": pd.array([1.5, None, 2.5, 3.5], dtype="Float64"),
            "arrow": pd.array([1, None, 3, 4], dtype="int64[pyarrow]"),
            "list": [[1], [2], [], None],
            "_index": ["x", "y", "z", "z"],
        }
    )
    options = ReadOptions(missing="drop", columns=("area",))
    dataset = result_from_features(features, "nuclei", options).dataset
    result = layout(3)
    write_result(dataset, result, tmp_path / "out.h5ad")
    adata = anndata.read_h5ad(tmp_path / "out.h5ad")
    check_result(adata, result, np.array([1, 0, 1, 1], dtype=bool))
    np.testing.assert_array_equal(adata.X[:, 0], [10, np.nan, 30, 50])
    assert adata.var_names.tolist() == ["area"]
    assert adata.obs["CD4_CD8"].tolist() == ["high", "low", np.nan, "low"]
    assert adata.obs["CD4_CD8-1"].tolist() == ["a", "b", "c", "d"]
    assert adata.obs["ok"].tolist() == [True, False, True, True]
    assert adata.obs["mixed"].tolist() == ["1", "a", np.nan, "2.5"]
    assert adata.obs["both"].tolist() == ["1", "1", np.nan, "2"]
    np.testing.assert_array_equal(adata.obs["gaps"], [1.5, np.nan, 2.5, 3.5])
    assert adata.obs["arrow"].tolist() == [1, pd.NA, 3, 4]
    assert adata.obs["list"].tolist() == ["[1]", "[2]", "[]", np.nan]
    assert adata.obs["seen"].tolist() == ["2020-01-01"] * 4
    assert adata.obs["index"].tolist() == ["x", "y", "z", "z"]


def test_input_is_never_overwritten(cells, tmp_path):
    dataset = read(cells, missing="drop")
    before = cells.read_bytes()
    link = tmp_path / "link.h5ad"
    link.symlink_to(cells)
    for target in (cells, link, tmp_path / "." / "cells.h5ad"):
        with pytest.raises(DataError, match="is the input itself"):
            write_result(dataset, layout(5), target)
    assert cells.read_bytes() == before


def test_input_that_changed_or_went(cells, tmp_path):
    dataset = read(cells, missing="drop")
    smaller = anndata.read_h5ad(cells)[:4].copy()
    smaller.write_h5ad(cells)
    with pytest.raises(DataError, match="now has 4 rows instead of 6"):
        write_result(dataset, layout(5), tmp_path / "out.h5ad")
    Path(cells).unlink()
    with pytest.raises(DataError, match="is no longer there"):
        write_result(dataset, layout(5), tmp_path / "out.h5ad")
    assert not (tmp_path / "out.h5ad").exists()
