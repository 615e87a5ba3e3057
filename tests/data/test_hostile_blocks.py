"""Few bytes that unpack to many: a sentence, and the memory is not filled."""

import warnings
import zlib

import anndata
import h5py
import numcodecs
import numpy as np
import pandas as pd
import pytest
import zarr
from anndata import AnnData

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.limits import memory
from napari_embedding_game.data.read_options import ReadOptions
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


BOMBS = {
    "gzip.h5ad": gzip_block,
    "zstd.zarr": zstd_block,
}


@pytest.mark.parametrize("name", BOMBS)
def test_what_a_window_reads_does_not_fill_the_memory(tmp_path, monkeypatch, name):
    BOMBS[name](tmp_path / name)
    monkeypatch.setattr(memory, "budget", lambda: 4 * BUDGET)
    with pytest.raises(DataError, match=rf"{name} holds more than 300\.0 MB when"):
        finish(FileSource(tmp_path / name).read(ReadOptions()))
