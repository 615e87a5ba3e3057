from types import SimpleNamespace

import h5py
import numpy as np
import pytest
from anndata import AnnData

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.limits import memory
from napari_embedding_game.data.readers import can_read, holds_layers_or_images
from worlds import read


def test_files_that_are_no_data(tmp_path):
    with pytest.raises(DataError, match=r"nothing\.csv does not exist"):
        read(tmp_path / "nothing.csv")
    with pytest.raises(DataError, match="is a folder"):
        read(tmp_path)
    (tmp_path / "notes.txt").write_text("a")
    with pytest.raises(DataError, match=r"notes\.txt cannot be .*\.h5ad, .*\.npy"):
        read(tmp_path / "notes.txt")
    names = ["a/b.H5AD", "b.csv.gz", "b.gz", "image.png"]
    assert [can_read(name) for name in names] == [True, True, False, False]


@pytest.mark.parametrize(
    ("name", "content", "are_layers"),
    [
        ("points.csv", "index,axis-0,axis-1\n0,1.5,2\n", True),
        ("shapes.csv", "index,shape-type,vertex-index,axis-0\n0,line,0,1\n", True),
        ("cells.csv", "index,area\n0,1.5\n", False),
        ("old.zarr/.zattrs", '{"multiscales": []}', True),
        ("new.zarr/zarr.json", '{"attributes": {"ome": {"multiscales": []}}}', True),
        ("plate.zarr/.zattrs", '{"plate": {}}', True),
        ("cells.zarr/.zattrs", '{"encoding-type": "anndata"}', False),
        ("cells.zarr/zarr.json", '{"attributes": {"encoding-type": "anndata"}}', False),
        ("damaged.zarr/zarr.json", "[1, 2", False),
        ("other.zarr/zarr.json", "[1, 2]", False),
    ],
)
def test_layers_and_images_are_told_from_tables(tmp_path, name, content, are_layers):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(content)
    assert holds_layers_or_images(tmp_path / name.split("/")[0]) is are_layers
    assert not holds_layers_or_images(tmp_path / "nothing.csv")


@pytest.mark.parametrize(
    ("array", "are_images"),
    [
        (np.zeros((200, 30)), False),
        (np.zeros((600, 150), np.int64), False),  # counts
        (np.zeros((500, 60), np.uint8), False),  # small pictures, one in a row
        (np.zeros((500, 640), np.uint16), True),
        (np.zeros((20, 64, 64)), True),
        (np.array(["a", None]), False),  # refused later, in a sentence
    ],
)
def test_pictures_are_told_from_tables_by_the_array(tmp_path, array, are_images):
    np.save(tmp_path / "array.npy", array)
    assert holds_layers_or_images(tmp_path / "array.npy") is are_images


def test_other_peoples_hdf5_is_left_to_them(tmp_path):
    for name, is_ours in (("matrix", True), ("obs", True), ("exported_data", False)):
        with h5py.File(tmp_path / f"{name}.h5", "w") as file:
            file[f"{name}/data"] = np.zeros(3)
        assert holds_layers_or_images(tmp_path / f"{name}.h5") is not is_ours
    with h5py.File(tmp_path / "far.h5", "w") as file:
        file["matrix"] = h5py.ExternalLink(tmp_path / "matrix.h5", "matrix")
    assert holds_layers_or_images(tmp_path / "far.h5")
    (tmp_path / "damaged.h5").write_text("no HDF5")
    assert not holds_layers_or_images(tmp_path / "damaged.h5")  # it is told so


def test_file_without_permission(tmp_path, monkeypatch):
    def refuse(*how):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(memory, "open", refuse, raising=False)
    (tmp_path / "a.csv").write_text("a,b\n1,2\n2,3\n")
    with pytest.raises(DataError, match="may not be read: close it"):
        read(tmp_path / "a.csv")


@pytest.mark.parametrize("kind", ["npy", "pictures", "h5ad"])
def test_numbers_far_from_0_keep_what_they_differ_by(tmp_path, kind):
    """The neighbours of a file are those of its numbers in double precision."""
    from sklearn.neighbors import NearestNeighbors

    from napari_embedding_game.core.graph.neighbors import knn_graph

    X = np.random.default_rng(0).normal(size=(90, 64)) + 1e8
    path = tmp_path / f"far.{'h5ad' if kind == 'h5ad' else 'npz'}"
    if kind == "h5ad":
        AnnData(np.zeros((90, 1), "f4"), obsm={"X_pca": X}).write_h5ad(path)
    else:
        np.savez(path, X=X.reshape(90, 8, 8) if kind == "pictures" else X)
    search = NearestNeighbors(n_neighbors=5, algorithm="kd_tree").fit(X)
    found = knn_graph(read(path).X, 5).indices
    np.testing.assert_array_equal(found, search.kneighbors(return_distance=False))


def test_a_part_of_a_file_may_take_half_of_the_free_memory(monkeypatch):
    free = SimpleNamespace(available=1_000)
    monkeypatch.setattr(memory.psutil, "virtual_memory", lambda: free)
    memory.check_fits(500, "cells.csv")
    with pytest.raises(DataError, match=r"cells\.csv"):
        memory.check_fits(501, "cells.csv")
