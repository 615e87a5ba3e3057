"""Few bytes that unpack to many: a sentence, and the memory stays as it was."""

import json
import re
import subprocess
import sys
import zipfile
import zlib

import h5py
import numcodecs
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zarr
from anndata import AnnData
from hypothesis import given
from hypothesis import strategies as st

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.limits import memory
from napari_embedding_game.data.limits.zarr_blocks import unpacked
from napari_embedding_game.data.readers import read

BOMB = 1_500_000_000
BUDGET = 50_000_000
ROOM = 1_000_000_000
"""Bytes that the reading process may take beyond its libraries."""

READING = f"""
import json, resource, sys
import anndata, h5py, numcodecs, pandas, pyarrow.parquet, zarr
from anndata.io import read_elem
from napari_embedding_game.data.limits import memory
from napari_embedding_game.data import readers
from napari_embedding_game.data.errors import DataError

memory.budget = lambda: {BUDGET}
taken = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (taken + {ROOM}, taken + {ROOM}))
said = {{}}
for path in sys.argv[1:]:
    try:
        said[path] = repr(readers.read(path).X.shape)
    except DataError as error:
        said[path] = str(error)
print(json.dumps(said))
"""


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


def with_pca(path, **options):
    """An .h5ad file with a new, empty X_pca in one block."""
    cells().write_h5ad(path)
    with h5py.File(path, "r+") as file:
        del file["obsm/X_pca"]
        item = file["obsm"].create_dataset(
            "X_pca", (8, 3), "f4", chunks=(8, 3), **options
        )
        item.attrs["encoding-type"], item.attrs["encoding-version"] = "array", "0.2.0"
    return path


def gzip_block(path):
    with h5py.File(with_pca(path, compression="gzip"), "r+") as file:
        file["obsm/X_pca"].id.write_direct_chunk((0, 0), deflated(BOMB))


def lzf_block(path):
    with h5py.File(with_pca(path, compression="lzf"), "r+") as file:
        file["obsm/X_pca"].id.write_direct_chunk((0, 0), bytes(BUDGET // 1000))


def packed_twice(path):
    with h5py.File(with_pca(path), "r+") as file:
        del file["obsm/X_pca"]
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk((8, 3))
        plist.set_deflate(1)
        plist.set_deflate(1)
        space = h5py.h5s.create_simple((8, 3))
        h5py.h5d.create(file["obsm"].id, b"X_pca", h5py.h5t.IEEE_F32LE, space, plist)


def other_filter(path):
    with_pca(path, scaleoffset=2)


def one_text_many_times(path):
    """Names of cells that all point to the same text."""
    cells().write_h5ad(path)
    with h5py.File(path, "r+") as file:
        del file["obs/_index"]
        names = file["obs"].create_dataset(
            "_index", (8,), h5py.string_dtype(), chunks=(8,)
        )
        names[0] = "x" * (BUDGET // 4)
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


def zarr_block(packer, content, version=2):
    def make(path):
        group = zarr.open_group(str(path), mode="w", zarr_format=version)
        for key in ("obs", "var"):
            part = group.create_group(key)
            part.attrs.update({"encoding-type": "dataframe", "_index": "_index"})
            part.attrs.update({"encoding-version": "0.2.0", "column-order": []})
            names = part.create_array("_index", shape=(8,), dtype="int64")
            names.attrs.update({"encoding-type": "array", "encoding-version": "0.2.0"})
            names[:] = np.arange(8)
        codec = packer
        if isinstance(packer, dict) and version == 2:
            codec = numcodecs.get_codec(packer)
        pca = group.create_group("obsm").create_array(
            "X_pca", shape=(8, 3), chunks=(8, 3), dtype="f4", compressors=codec
        )
        pca.attrs.update({"encoding-type": "array", "encoding-version": "0.2.0"})
        pca[:] = np.arange(24).reshape(8, 3)
        block = path / "obsm/X_pca" / ("0.0" if version == 2 else "c/0/0")
        block.write_bytes(content(block.read_bytes()))

    return make


def says(n_bytes, begin):
    """Change the size that the head of a block gives, in four bytes."""
    return lambda old: old[:begin] + n_bytes.to_bytes(4, "little") + old[begin + 4 :]


def texts_of_zarr(path):
    zarr_block(None, bytes)(path)
    names = zarr.open_group(str(path), zarr_format=2)["obs"].create_array(
        "_index", shape=(8,), chunks=(8,), dtype="str", overwrite=True
    )
    names.attrs.update({"encoding-type": "string-array", "encoding-version": "0.2.0"})
    names[:] = np.array([*"abcdefgh"], dtype=object)
    (packer,) = names.compressors
    lie = (400_000_000).to_bytes(4, "little") + bytes(64)
    (path / "obs/_index/0").write_bytes(packer.encode(lie))


def list_in_parquet(path):
    lists = pa.array([[], [], [], np.zeros(100_000_000, "i1")], pa.list_(pa.int8()))
    pq.write_table(pa.table({"a": [1.0, 2.0, 3.0, 5.0], "bomb": lists}), path)


def texts_in_parquet(path):
    texts = [f"{i}{'x' * 1_000_000}" for i in range(100)]
    table = pa.table({"a": np.arange(100.0), "b": texts})
    pq.write_table(table, path, compression="zstd", use_dictionary=False)


def varint(number, length=0):
    """A number as parquet's footer has it, in at least so many bytes."""
    found, number = bytearray(), 2 * number
    while number >= 128 or len(found) + 1 < length:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


def lying_parquet(path):
    texts = [f"{i}{'x' * 50_000}" for i in range(2000)]
    table = pa.table({"a": np.arange(2000.0), "b": texts})
    paged = {"use_dictionary": False, "write_batch_size": 16, "data_page_size": 10_000}
    pq.write_table(table, path, compression="zstd", **paged)
    content = path.read_bytes()
    column = pq.ParquetFile(path).metadata.row_group(0).column(1)
    true = varint(column.total_uncompressed_size)
    # pyarrow before 17 writes it in two places.
    assert content.count(true) in (1, 2)
    path.write_bytes(content.replace(true, varint(1000, len(true))))


def short_rows(path):
    path.write_bytes(b"a,b\n" + b"1,2\n" * (BUDGET // 40))


def packed_by_bzip2(path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("X.npy", bytes(1_000_000))


BLOCK = "unpacks to more than it says"
GZIP, ZSTD = {"id": "gzip", "level": 1}, {"id": "zstd", "level": 0}
ZSTD_3 = [{"name": "zstd", "configuration": {"level": 0, "checksum": False}}]
FILES = {
    "gzip.h5ad": (gzip_block, rf"has a block in obsm\['X_pca'\] that {BLOCK}"),
    "lzf.h5ad": (lzf_block, BLOCK),
    "twice.h5ad": (packed_twice, "is packed twice"),
    "other.h5ad": (other_filter, 'packed by "scaleoffset".*compression="gzip"'),
    "texts.h5ad": (one_text_many_times, "the texts of its table obs would take"),
    "names.h5": (many_names_of_10x, "memory free"),
    "gzip.zarr": (zarr_block(GZIP, lambda _: deflated(BOMB, 31)), BLOCK),
    "zstd.zarr": (zarr_block(ZSTD, lambda _: zstd_of_zeros(BOMB)), BLOCK),
    "zstd3.zarr": (zarr_block(ZSTD_3, lambda _: zstd_of_zeros(BOMB), 3), BLOCK),
    "lz4.zarr": (zarr_block({"id": "lz4"}, says(BOMB, 0)), BLOCK),
    "blosc.zarr": (zarr_block({"id": "blosc"}, says(BOMB, 4)), BLOCK),
    "lzma.zarr": (zarr_block({"id": "lzma"}, bytes), 'packed by "lzma"'),
    "texts.zarr": (texts_of_zarr, rf"its table obs that {BLOCK}"),
    "list.parquet": (list_in_parquet, r"^\(4, 1\)$"),
    "texts.parquet": (texts_in_parquet, "its table would take 100.* MB"),
    "lying.parquet": (lying_parquet, "holds more than .* when unpacked"),
    "rows.csv": (short_rows, "its table would take"),
    "bzip2.npz": (packed_by_bzip2, "packed in an unusual way"),
}


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """What reading each of the files says, in one process with little memory."""
    folder = tmp_path_factory.mktemp("hostile")
    paths = [folder / name for name in FILES]
    for path in paths:
        FILES[path.name][0](path)
    command = [sys.executable, "-W", "ignore", "-c", READING, *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    return {path.name: said[str(path)] for path in paths}


@pytest.mark.skipif(sys.platform != "linux", reason="measures as Linux does")
@pytest.mark.parametrize("name", FILES)
def test_the_memory_is_not_filled(said, name):
    assert re.search(FILES[name][1], said[name], re.S), said[name]


# What is honest is read, even where it is looked at twice


@pytest.fixture
def little_memory(monkeypatch):
    monkeypatch.setattr(memory, "budget", lambda: 2_000_000)


@pytest.mark.parametrize("compression", [None, "gzip", "lzf"])
def test_honest_texts_and_numbers_of_h5ad(tmp_path, little_memory, compression):
    adata = cells(400)
    adata.obs["note"] = [f"seen by the {i % 7}th person" for i in range(400)]
    adata.write_h5ad(tmp_path / "a.h5ad", compression=compression)
    assert (tmp_path / "a.h5ad").stat().st_size * 400 > 2_000_000
    dataset = read(tmp_path / "a.h5ad")
    np.testing.assert_allclose(dataset.X, adata.obsm["X_pca"], rtol=1e-6)
    assert list(dataset.obs["note"]) == list(adata.obs["note"])


def test_honest_shuffled_block_with_checksum(tmp_path, little_memory):
    path = with_pca(tmp_path / "a.h5ad", compression="gzip", shuffle=True)
    X = np.random.default_rng(0).normal(size=(8, 5000)).astype(np.float32)
    with h5py.File(path, "r+") as file:
        del file["obsm/X_pca"]
        item = file["obsm"].create_dataset(
            "X_pca", data=X, chunks=X.shape, compression="gzip", fletcher32=True
        )
        item.attrs["encoding-type"], item.attrs["encoding-version"] = "array", "0.2.0"
    np.testing.assert_array_equal(read(path).X, X)


def test_a_list_that_is_left_out_is_told(tmp_path):
    table = pa.table({"a": [1.0, 2.0, 4.0], "genes": [["x"], [], ["y", "z"]]})
    pq.write_table(table, tmp_path / "a.parquet")
    dataset = read(tmp_path / "a.parquet")
    assert "Not read, because they hold lists or nested values: genes." in dataset.notes


PACKERS = {
    "blosc": numcodecs.Blosc(),
    "gzip": numcodecs.GZip(1),
    "lz4": numcodecs.LZ4(),
    "zlib": numcodecs.Zlib(1),
    "zstd": numcodecs.Zstd(3, checksum=True),
}


@pytest.mark.parametrize("packer", PACKERS)
@given(plain=st.binary(min_size=1, max_size=300), times=st.integers(1, 3000))
def test_size_of_a_block_is_known_before_it_is_unpacked(packer, plain, times):
    plain = plain * times
    content = PACKERS[packer].encode(plain)
    assert unpacked(content, packer, most=1000) >= min(len(plain), 1000)
    if packer not in ("gzip", "zlib"):
        assert unpacked(content, packer, most=1000) == len(plain)
    assert unpacked(plain, None, most=1000) == len(plain)


def test_streams_behind_each_other_count_together():
    two = PACKERS["gzip"].encode(bytes(5000)) + PACKERS["gzip"].encode(bytes(3000))
    assert unpacked(two, "gzip", most=100) > 100
    assert unpacked(two, "gzip", most=9000) == 8000
    two = PACKERS["zstd"].encode(bytes(5000)) + PACKERS["zstd"].encode(bytes(3000))
    assert unpacked(two, "zstd", most=9000) == 8000


@pytest.mark.parametrize("content", [b"", b"abcd", PACKERS["zstd"].encode(b"x")[:-5]])
def test_no_zstd_at_all(content):
    if not content:
        assert unpacked(content, "zstd", most=9) == 0
        return
    with pytest.raises((ValueError, IndexError)):
        unpacked(content, "zstd", most=9)


def test_mnist_that_unpacks_without_end(tmp_path, monkeypatch):
    from napari_embedding_game.data.formats import mnist

    monkeypatch.setattr(memory, "budget", lambda: 1_000_000)
    for name in mnist._SHA256:
        (tmp_path / name).write_bytes(deflated(20_000_000, 31))
    with pytest.raises(DataError, match="more than"):
        mnist.load(tmp_path)
