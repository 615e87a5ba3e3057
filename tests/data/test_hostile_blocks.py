"""Few bytes that unpack to many: a sentence, and the memory is not filled."""

import warnings
import zipfile
import zlib

import anndata
import h5py
import numcodecs
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zarr
from anndata import AnnData

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.limits import memory
from napari_embedding_game.data.read_options import ReadOptions
from napari_embedding_game.data.readers import read
from napari_embedding_game.data.stages import finish
from napari_embedding_game.session.sources import FileSource

BOMB = 2_000_000_000
BUDGET = 50_000_000


def deflated(n_bytes, wbits=zlib.MAX_WBITS):
    """Zeros, packed: the same block over and over, which costs no time to make."""
    step = 1 << 24
    packer = zlib.compressobj(9, wbits=wbits)
    head = packer.compress(b"") + packer.flush(zlib.Z_FULL_FLUSH)
    first = packer.compress(bytes(step)) + packer.flush(zlib.Z_FULL_FLUSH)
    again = packer.compress(bytes(step)) + packer.flush(zlib.Z_FULL_FLUSH)
    return head + first + again * (n_bytes // step) + packer.flush()


def zstd_of_zeros(n_bytes):
    """A frame that does not say its size, of blocks that repeat one byte."""
    size = 1 << 17
    block = (size << 3 | 1 << 1).to_bytes(3, "little") + b"\0"
    last = (size << 3 | 1 << 1 | 1).to_bytes(3, "little") + b"\0"
    return b"\x28\xb5\x2f\xfd\x00\x58" + block * (n_bytes // size) + last


def cells(n=8):
    rng = np.random.default_rng(0)
    return AnnData(
        rng.normal(size=(n, 5)).astype(np.float32),
        obs=pd.DataFrame(index=[f"c{i}" for i in range(n)]),
        obsm={"X_pca": rng.normal(size=(n, 3))},
    )


def with_pca(path):
    """An .h5ad file with a new, empty X_pca in one block."""
    cells().write_h5ad(path)
    with h5py.File(path, "r+") as file:
        del file["obsm/X_pca"]
        item = file["obsm"].create_dataset(
            "X_pca", (8, 3), "f4", chunks=(8, 3), compression="gzip"
        )
        item.attrs["encoding-type"], item.attrs["encoding-version"] = "array", "0.2.0"
    return path


def gzip_block(path):
    with h5py.File(with_pca(path), "r+") as file:
        file["obsm/X_pca"].id.write_direct_chunk((0, 0), deflated(BOMB))


def one_text_many_times(path):
    """Names of cells that all point to the same text."""
    cells().write_h5ad(path)
    with h5py.File(path, "r+") as file:
        del file["obs/_index"]
        names = file["obs"].create_dataset(
            "_index", (8,), h5py.string_dtype(), chunks=(8,)
        )
        names[0] = "x" * BUDGET
        names.attrs["encoding-type"] = "string-array"
        names.attrs["encoding-version"] = "0.2.0"
        _, descriptors = names.id.read_direct_chunk((0,))
        names.id.write_direct_chunk((0,), bytes(descriptors[:16]) * 8)


def many_names_of_10x(path):
    with h5py.File(path, "w") as file:
        group = file.create_group("matrix")
        group["data"], group["indices"] = np.ones(40, int), np.arange(40) % 4
        group["indptr"], group["shape"] = np.arange(0, 41, 4), [4, 10]
        group.create_dataset("barcodes", (BUDGET // 20,), "S4", chunks=(1000,))
        group["features/name"] = [b"a", b"b", b"c", b"d"]
        group["features/feature_type"] = [b"Gene Expression"] * 4


def zstd_block(path):
    adata = cells()
    with anndata.settings.override(zarr_write_format=2), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        adata.write_zarr(path)
    (path / ".zmetadata").unlink()
    pca = zarr.open_group(str(path), mode="r+")["obsm"].create_array(
        "X_pca",
        shape=(8, 3),
        chunks=(8, 3),
        dtype="f4",
        compressors=numcodecs.Zstd(),
        overwrite=True,
    )
    pca.attrs.update({"encoding-type": "array", "encoding-version": "0.2.0"})
    (path / "obsm/X_pca/0.0").write_bytes(zstd_of_zeros(BOMB))


def list_in_parquet(path):
    ends = pa.array([0, 0, 0, 0, 20_000_000], pa.int32())
    lists = pa.ListArray.from_arrays(ends, pa.array(np.zeros(20_000_000, "i1")))
    pq.write_table(pa.table({"a": [1.0, 2.0, 3.0, 5.0], "bomb": lists}), path)


def texts_in_parquet(path):
    texts = [f"{i}{'x' * 1_000_000}" for i in range(100)]
    table = pa.table({"a": np.arange(100.0), "b": texts})
    pq.write_table(table, path, compression="zstd", use_dictionary=False)


def short_rows(path):
    path.write_bytes(b"a,b\n" + b"1,2\n" * (BUDGET // 40))


def packed_by_bzip2(path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("X.npy", bytes(1_000_000))


BOMBS = {
    "gzip.h5ad": gzip_block,
    "texts.h5ad": one_text_many_times,
    "zstd.zarr": zstd_block,
}


@pytest.mark.parametrize("name", BOMBS)
def test_what_a_window_reads_does_not_fill_the_memory(tmp_path, monkeypatch, name):
    BOMBS[name](tmp_path / name)
    monkeypatch.setattr(memory, "budget", lambda: 4 * BUDGET)
    with pytest.raises(DataError, match=rf"{name} holds more than 300\.0 MB when"):
        finish(FileSource(tmp_path / name).read(ReadOptions()))


FILES = {
    "names.h5": (many_names_of_10x, "memory free"),
    "texts.parquet": (texts_in_parquet, "its table would take 100.* MB"),
    "rows.csv": (short_rows, "its table would take"),
    "bzip2.npz": (packed_by_bzip2, "is packed in an unusual way"),
}


@pytest.mark.parametrize("name", FILES)
def test_what_says_its_size_is_refused_before_it_is_read(tmp_path, monkeypatch, name):
    make, sentence = FILES[name]
    make(tmp_path / name)
    monkeypatch.setattr(memory, "budget", lambda: BUDGET)
    with pytest.raises(DataError, match=sentence):
        read(tmp_path / name)


def test_a_list_of_any_length_in_parquet_is_not_read(tmp_path, monkeypatch):
    list_in_parquet(tmp_path / "list.parquet")
    monkeypatch.setattr(memory, "budget", lambda: BUDGET // 5)
    assert read(tmp_path / "list.parquet").X.shape == (4, 1)


def test_a_list_that_is_left_out_is_told(tmp_path):
    table = pa.table({"a": [1.0, 2.0, 4.0], "genes": [["x"], [], ["y", "z"]]})
    pq.write_table(table, tmp_path / "a.parquet")
    dataset = read(tmp_path / "a.parquet")
    assert "Not read, because they hold lists or nested values: genes." in dataset.notes


def test_mnist_that_unpacks_without_end(tmp_path, monkeypatch):
    from napari_embedding_game.data.formats import mnist

    monkeypatch.setattr(memory, "budget", lambda: 1_000_000)
    for name in mnist._SHA256:
        (tmp_path / name).write_bytes(deflated(20_000_000, 31))
    with pytest.raises(DataError, match="more than"):
        mnist.load(tmp_path)
