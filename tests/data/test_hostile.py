"""Files made to do harm: each gives a sentence, runs nothing, fills no memory."""

import gzip
import json
import os
import pickle
import time
import tracemalloc
import zipfile
import zlib
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import h5py
import numcodecs
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
import zarr

import worlds
from napari_embedding_game import tl
from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.estimator import EmbeddingGame
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.limits import memory
from napari_embedding_game.data.read_options import ReadOptions
from napari_embedding_game.data.readers import ENDINGS
from napari_embedding_game.data.reading_process import start_reading_process
from napari_embedding_game.data.stages import finish
from napari_embedding_game.session import large_fit
from napari_embedding_game.session.file.archive import is_session
from napari_embedding_game.session.reference.reference_map import read_reference_file
from napari_embedding_game.session.sources import FileSource
from worlds import read

HUGE = 10**12
COUNTS = np.diag([5, 0, 7])[:, [0, 1, 1, 2]]
"""Of three cells and four genes."""


class Trap:
    """Unpickling makes a file."""

    def __init__(self, place):
        self.place = str(place)

    def __reduce__(self):
        return open, (self.place, "w")


@pytest.fixture
def sprung(tmp_path):
    return tmp_path / "sprung"


@pytest.fixture
def little_memory(monkeypatch):
    monkeypatch.setattr(memory, "find_byte_budget", lambda: 50_000_000)


def test_a_part_may_take_half_of_what_is_free(monkeypatch):
    free = SimpleNamespace(available=10_000_001)
    monkeypatch.setattr(memory.psutil, "virtual_memory", lambda: free)
    memory.check_fits(5_000_000, "a.csv")
    with pytest.raises(DataError, match="its numbers would take"):
        memory.check_fits(5_000_001, "a.csv")


def cells():
    return worlds.annotated(8, 5, X_pca=3)


def npy_header(shape, descr="'<f8'"):
    head = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}"
    head = head.ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode()


def test_declared_rows_of_npy(tmp_path):
    (tmp_path / "a.npy").write_bytes(npy_header((HUGE, 4)) + bytes(64))
    with pytest.raises(DataError, match=r"a\.npy .*(memory|damaged)"):
        read(tmp_path / "a.npy")


def test_pickle_under_any_name(tmp_path, sprung):
    content = pickle.dumps(Trap(sprung))
    for name in (f"a{ending}" for ending in ENDINGS):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DataError, match=name.replace(".", r"\.")):
            read(tmp_path / name)
    with zipfile.ZipFile(tmp_path / "b.npz", "w") as archive:
        archive.writestr("X.npy", npy_header((1,), "'|O'") + content)
        archive.writestr("Y.pkl", content)
    with pytest.raises(DataError, match="Python objects"):
        read(tmp_path / "b.npz")
    evil = {"name": "arrow.py_extension_type", "metadata": content}
    how = {f"ARROW:extension:{key}": value for key, value in evil.items()}
    fields = [("a", pa.float64()), ("b", pa.int64(), True, how), ("c", pa.binary())]
    schema = pa.schema([pa.field(*field) for field in fields])
    texts = {"a": np.arange(8.0), "b": np.arange(8), "c": [content] * 8}
    pq.write_table(pa.table(texts, schema), tmp_path / "b.parquet")
    assert read(tmp_path / "b.parquet").var_names == ("a", "b")
    assert not sprung.exists()


def test_few_bytes_that_unpack_to_many(tmp_path, little_memory):
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("X.npy", bytes(60_000_000))
    with pytest.raises(DataError, match=r"a\.npz says that what is packed .* 60\.0 MB"):
        read(tmp_path / "a.npz")
    with zipfile.ZipFile(tmp_path / "b.npz", "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("X.npy", npy_header((8, 8)) + bytes(512))
    with pytest.raises(DataError, match="could not be read as a NumPy"):
        read(tmp_path / "b.npz")
    with gzip.open(tmp_path / "a.csv.gz", "wb") as file:
        file.write(b"a,b\n" + b"1,2\n" * 5_000_000)
    with pytest.raises(DataError, match=r"a\.csv\.gz holds more than .* unpacked"):
        read(tmp_path / "a.csv.gz")
    tracemalloc.start()
    content = memory.read_unpacked(tmp_path / "a.csv.gz")
    assert tracemalloc.get_traced_memory()[1] < 1.5 * len(content)  # held once
    tracemalloc.stop()
    for column in (np.zeros(5_000_000), ["x" * 80_000_000]):
        table = pa.table({"a": column})
        pq.write_table(table, tmp_path / "a.parquet", compression="zstd")
        with pytest.raises(DataError, match=r"a\.parquet says .* 80\.0 MB"):
            read(tmp_path / "a.parquet")


AS_ARRAY = {"encoding-type": "array", "encoding-version": "0.2.0"}


def with_pca(path, n_rows=HUGE, **options):
    """Write an .h5ad file with a new, empty X_pca."""
    cells().write_h5ad(path)
    options = {"chunks": (min(n_rows, 1000), 3), **options}
    with h5py.File(path, "r+") as file:
        del file["obsm/X_pca"]
        item = file["obsm"].create_dataset("X_pca", (n_rows, 3), "f4", **options)
        item.attrs.update(AS_ARRAY)


def external(file, secret):
    file["obsm"].create_dataset("X_evil", (8, 3), "f4", external=[(secret, 0, 96)])


def virtual(file, secret):
    layout = h5py.VirtualLayout((8, 3), "f4")
    layout[:] = h5py.VirtualSource("other.h5ad", "X", (8, 3))
    file["obsm"].create_virtual_dataset("X_evil", layout)


def link(file, secret):
    file["obsm/X_evil"] = h5py.ExternalLink("other.h5ad", "/X")


def setting(part, place, value):
    """Return what gives one of the numbers of X another value."""
    return lambda file, _: file[f"X/{part}"].__setitem__(place, value)


H5AD = {
    "a size beyond all": (lambda f, _: f["X"].attrs.update(shape=[HUGE, 5]), "says"),
    "columns beyond all": (lambda f, _: f["X"].attrs.update(shape=[8, HUGE]), "says"),
    "an index outside": (setting("indices", 3, 99), "could not be read"),
    "a row outside": (setting("indptr", 3, 10**9), "could not be read"),
    "rows below 0": (setting("indptr", -1, -5), "could not be read"),
    "a link": (link, "has a part .* in another file"),
    "storage elsewhere": (external, "has a part .* in another file"),
    "a virtual part": (virtual, "has a part .* in another file"),
}


@pytest.mark.parametrize("harm", H5AD)
def test_harmful_parts_of_h5ad(tmp_path, harm):
    (tmp_path / "secret").write_bytes(bytes(96))
    cells().write_h5ad(tmp_path / "a.h5ad")
    change, sentence = H5AD[harm]
    with h5py.File(tmp_path / "a.h5ad", "r+") as file:
        change(file, str(tmp_path / "secret"))
    with pytest.raises(DataError, match=rf"a\.h5ad {sentence}"):
        read(tmp_path / "a.h5ad", space="X")


@pytest.mark.parametrize("options", [{}, {"compression": "gzip"}])
def test_declared_rows_of_h5ad(tmp_path, options):
    with_pca(tmp_path / "a.h5ad", **options)
    with pytest.raises(DataError, match=r"a\.h5ad says that its X_pca .* 12\.0 TB"):
        read(tmp_path / "a.h5ad")


def strayed(indptr, end=0):
    """Return row ends that leave their arrays, and come back or go below 0."""
    ends = np.full_like(indptr, 10**9)
    ends[0], ends[-1] = 0, end
    return ends


def stray_10x(path):
    worlds.tenx(path, COUNTS)
    with h5py.File(path, "r+") as file:
        file["matrix/indptr"][:] = strayed(file["matrix/indptr"][:])


def stray_cells(path, part="X", columns=False, end=0):
    """Write cells of which a sparse matrix points far outside its arrays."""
    adata = worlds.cells(60)
    adata.layers["counts"] = sp.csc_matrix(adata.X) if columns else adata.X.copy()
    adata.raw = adata
    worlds.write_adata(adata, path)
    root = h5py.File(path, "r+") if path.suffix == ".h5ad" else zarr.open(str(path))
    place = root[f"{part}/indptr"]
    place[:] = strayed(place[:], end)
    if path.suffix == ".h5ad":
        root.close()


def estimator_of(path):
    """Fit what a program has made by hand."""
    matrix = worlds.cells(60).X
    matrix.indptr = strayed(matrix.indptr)
    EmbeddingGame().fit(matrix)


def embedded(path):
    adata = worlds.cells(60)
    adata.X.indptr = strayed(adata.X.indptr)
    tl.embedding_game(adata, use_rep="X")


STRAYED = {
    "10x .h5": ("a.h5", stray_10x, read),
    ".h5ad": ("a.h5ad", stray_cells, read),
    ".h5ad, below 0": ("a.h5ad", partial(stray_cells, end=-1), read),
    ".zarr": ("a.zarr", stray_cells, read),
    "raw": ("a.h5ad", partial(stray_cells, part="raw/X"), read),
    "columns": (
        "a.h5ad",
        partial(stray_cells, part="layers/counts", columns=True),
        partial(read, space="layers['counts']"),
    ),
    "all of a file": (
        "a.h5ad",
        partial(stray_cells, part="layers/counts", columns=True),
        read_reference_file,
    ),
    "in parts": (
        "a.h5ad",
        stray_cells,
        lambda path: large_fit.map_large_file(
            path, path.parent / "out", 50, {}, recipe=True
        ),
    ),
    "fit": ("a", Path.touch, estimator_of),
    "tl": ("a", Path.touch, embedded),
}


@pytest.mark.parametrize("door", STRAYED)
def test_a_sparse_matrix_that_points_outside_its_arrays_is_refused(tmp_path, door):
    name, write, open_file = STRAYED[door]
    write(tmp_path / name)
    with pytest.raises((DataError, InputError), match="damaged"):
        open_file(tmp_path / name)


def pipe_as_session(path):
    """Write cells whose session is said to lie in a pipe, which never ends."""
    os.mkfifo(path.with_name("pipe.h5"))
    cells().write_h5ad(path)
    with h5py.File(path, "r+") as file:
        file["uns/embedding_game"] = h5py.ExternalLink("pipe.h5", "/")


def pipe_behind_a_soft_link(path):
    os.mkfifo(path.with_name("pipe.h5"))
    cells().write_h5ad(path)
    with h5py.File(path, "r+") as file:
        file["a"] = h5py.SoftLink("/z/X")
        file["z"] = h5py.ExternalLink("pipe.h5", "/")


@pytest.mark.parametrize("write", [pipe_as_session, pipe_behind_a_soft_link])
def test_what_a_link_leads_to_is_not_opened_before_it_is_refused(tmp_path, write):
    path = tmp_path / "a.h5ad"
    write(path)
    start_reading_process()

    def open_file():
        assert not (yield from is_session(path))
        return (yield from FileSource(path).read(ReadOptions()))

    begin = time.monotonic()

    def note(_):
        assert time.monotonic() - begin < 60, "it waits for the pipe"

    with pytest.raises(DataError, match=r'a\.h5ad has a part \("(uns/|z)'):
        finish(open_file(), note)


@pytest.fixture(params=[2, 3])
def zarr_cells(tmp_path, request):
    """A .zarr folder in both versions of the format."""
    path = worlds.write_adata(cells(), tmp_path / "a.zarr", request.param)
    # The copy of all metadata at the root is left out, so that one change counts.
    (path / ".zmetadata").unlink(missing_ok=True)
    if request.param == 3:
        change(path / "zarr.json", consolidated_metadata=None)
    return path


def metadata_of(array):
    version_2 = array / ".zarray"
    return version_2 if version_2.exists() else array / "zarr.json"


def change(path, **changes):
    metadata = json.loads(path.read_text())
    path.write_text(json.dumps({**metadata, **changes}))


def test_harmful_zarr(tmp_path, zarr_cells, sprung):
    place = metadata_of(zarr_cells / "obsm/X_pca")
    honest = place.read_text()
    change(place, shape=[HUGE, 3])
    with pytest.raises(DataError, match=r"a\.zarr says that its X_pca .* 24\.0 TB"):
        read(zarr_cells)
    place.write_text(honest)
    grid = {"name": "regular", "configuration": {"chunk_shape": [HUGE, 3]}}
    change(place, chunks=[HUGE, 3], chunk_grid=grid)
    with pytest.raises(DataError, match=r"a\.zarr could not be read"):
        read(zarr_cells)
    place.write_text(honest)
    evil = zarr_cells / "obsm" / "X_evil"
    zarr.open_array(str(evil), mode="w", shape=8, dtype="i4", zarr_format=2)
    change(evil / ".zarray", filters=[{"id": "pickle", "protocol": 4}])
    (evil / "0").write_bytes(pickle.dumps(Trap(sprung)))
    with pytest.raises(DataError, match=r'a\.zarr stores numbers by "pickle"'):
        read(zarr_cells)
    assert not sprung.exists()
    os.symlink(tmp_path, zarr_cells / "obsm" / "link")
    with pytest.raises(DataError, match="lies elsewhere on this computer"):
        read(zarr_cells)


def test_pipe_in_place_of_a_file(tmp_path):
    os.mkfifo(tmp_path / "a.csv")
    with pytest.raises(DataError, match="no ordinary file"):
        read(tmp_path / "a.csv")


@pytest.mark.parametrize(
    ("heading", "sentence"),
    [
        (f"4 3 {HUGE}", "memory"),
        (f"{1 << 31} {1 << 31} 2", "named beside it"),
        ("4 3 1000", "could not be read"),
        ("4 3", "could not be read"),
        ("9 9 2", "9 genes and 9 cells"),
        ("4 3 3", "could not be read"),
        ("4 3 2\0", "could not be read"),
    ],
)
def test_declared_size_of_a_10x_matrix(tmp_path, heading, sentence):
    folder = worlds.tenx(tmp_path / "m", COUNTS)
    text = (folder / "matrix.mtx").read_text()
    assert "\n4 3 2\n" in text
    (folder / "matrix.mtx").write_text(text.replace("\n4 3 2\n", f"\n{heading}\n"))
    with pytest.raises(DataError, match=sentence):
        read(folder)


@pytest.mark.parametrize("number", ["0.61E904704707603", "1e2147483648"])
def test_exponents_that_overflow(tmp_path, number):
    (tmp_path / "a.csv").write_text(f"a,b\n1,2\n{number},3\n4,4\n5,7\n6,5\n7,6\n")
    with pytest.raises(DataError, match=f'has the text "{number}"'):
        read(tmp_path / "a.csv")
    (tmp_path / "b.csv").write_text("a,b\n3e1234567890,1,2\n4,4,4\n6e9,7,5\n")
    assert read(tmp_path / "b.csv").obs.index[0] == "3e1234567890"
    (tmp_path / "c.csv").write_text("a,b\n1e20,2\n,4\n3e20,6\n")  # beyond 64 bits
    assert len(read(tmp_path / "c.csv", missing="drop").X) == 2


def test_parquet_of_texts_that_are_no_text(tmp_path):
    offsets, bytes_ = pa.py_buffer(np.arange(4, dtype="i4")), pa.py_buffer(b"a\xdfb")
    texts = pa.Array.from_buffers(pa.string(), 3, [None, offsets, bytes_])
    table = pa.table({"kind": texts, "area": [1.0, 2.0, 3.0], "red": [3.0, 2.0, 1.0]})
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r"a\.parquet could not be read as a \.parquet"):
        read(tmp_path / "a.parquet")


# In a window: few bytes that unpack to many do not fill the memory

BOMB = 2_000_000_000


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


def gzip_block(path):
    # A chunk large enough for HDF5 1.14 to write down how many bytes it is packed into.
    with_pca(path, 8, compression="gzip", chunks=(1000, 3), maxshape=(None, 3))
    with h5py.File(path, "r+") as file:
        file["obsm/X_pca"].id.write_direct_chunk((0, 0), deflated(BOMB))


def zstd_block(path):
    worlds.write_adata(cells(), path)
    (path / ".zmetadata").unlink()
    obsm = zarr.open_group(str(path), mode="r+")["obsm"]
    how = {"shape": (8, 3), "chunks": (8, 3), "dtype": "f4", "overwrite": True}
    pca = obsm.create_array("X_pca", compressors=numcodecs.Zstd(), **how)
    pca.attrs.update(AS_ARRAY)
    (path / "obsm/X_pca/0.0").write_bytes(zstd_of_zeros(BOMB))


def long_text(path):
    cells().write_h5ad(path)
    with h5py.File(path) as file:
        names = file["obs/_index"]  # of later versions a group with a mask
        texts = names["values"] if isinstance(names, h5py.Group) else names
        place = texts.id.get_offset()
    content = bytearray(path.read_bytes())
    content[place : place + 4] = BOMB.to_bytes(4, "little")  # of the first text
    path.write_bytes(content)


MORE = r"holds more than 300\.0 MB when"
BOMBS = {
    "gzip.h5ad": (gzip_block, MORE),
    "zstd.zarr": (zstd_block, MORE),
    "text.h5ad": (long_text, MORE),
}


@pytest.mark.parametrize("name", BOMBS)
def test_what_a_window_reads_does_not_fill_the_memory(tmp_path, monkeypatch, name):
    make, told = BOMBS[name]
    make(tmp_path / name)
    start_reading_process()
    monkeypatch.setattr(memory, "find_byte_budget", lambda: 200_000_000)
    with pytest.raises(DataError, match=f"{name} {told}"):
        finish(FileSource(tmp_path / name).read(ReadOptions()))
