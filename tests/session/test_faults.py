"""Every write that can fail does: the file that was there, or the new one, is whole."""

import errno
import gc
import itertools
import os
from contextlib import contextmanager, suppress
from dataclasses import replace

import anndata
import h5py
import imageio.v3 as imageio
import numpy as np
import pandas as pd
import pytest

import worlds
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.export import plots
from napari_embedding_game.data.export.anndata_result import build_result_anndata
from napari_embedding_game.data.export.writers import write_map_figure, write_result
from napari_embedding_game.session.file import archive
from napari_embedding_game.session.file.autosave import Autosave
from napari_embedding_game.session.notebook.export import write_code
from napari_embedding_game.session.web_page import write_web_page

CALLS = ("open", "fsync", "replace", "chmod", "close")
"""Of the operating system, that a writer makes."""
READERS = {
    ".zip": archive.load_session,
    ".h5ad": anndata.read_h5ad,
    ".csv": pd.read_csv,
    ".parquet": pd.read_parquet,
    ".png": imageio.imread,
}
BEFORE = b"what was there before"
AUTOSAVE = ".open.zip"
BESIDE = "_beside.h5ad"
"""The end of the name of a map that is written beside what an .h5ad file holds."""
ENDINGS = *READERS, AUTOSAVE, BESIDE, ".ipynb", ".html"


@pytest.fixture
def writer(dataset, engine, tmp_path, monkeypatch):
    """Return a function that writes a played map in the form that an ending names."""
    monkeypatch.setattr(plots, "DPI", 40)  # a figure is drawn for each fault
    return writer_of(worlds.Desk(dataset, engine).play(), tmp_path)


def writer_of(desk, folder):
    """Return that function; what it writes beside another file is beside `folder`'s."""
    session, saved, result = (
        desk.session,
        desk.maps.to_saved_session(),
        desk.session.to_result(),
    )
    source = folder / "cells.h5ad"
    build_result_anndata(session.dataset, result).write_h5ad(source)
    beside = replace(session.dataset, source=source)

    def written(path):
        if path.name.endswith(AUTOSAVE):
            autosave = Autosave(lambda: saved)
            autosave.path = path
            autosave.make_save_job()()
        elif path.suffix == ".zip":
            archive.save_session(saved, path)
        elif path.suffix == ".ipynb":
            write_code(saved, path)
        elif path.suffix == ".html":
            write_web_page(build_result_anndata(session.dataset, result), path)
        elif path.suffix == ".png":
            colors = plots.PointColors(np.ones((len(session.dataset.obs), 4)))
            seen = {"colors": colors, "facing": np.eye(2, 3)}
            write_map_figure(session.dataset, result, path, **seen)
        else:
            is_beside = path.name.endswith(BESIDE)
            write_result(beside if is_beside else session.dataset, result, path)

    return written


class Failing:
    """Lets one call of the operating system fail, counted from 0."""

    def __init__(self, name, number):
        self.name, self.left = name, number
        self.real = getattr(os, name)

    def __enter__(self):
        setattr(os, self.name, self._call)
        return self

    def __exit__(self, *_):
        setattr(os, self.name, self.real)

    def _call(self, *args, **options):
        self.left -= 1
        if self.left == -1:
            raise OSError(errno.ENOSPC, "No space left on device")
        return self.real(*args, **options)

    @property
    def has_happened(self):
        return self.left < 0


@contextmanager
def full_after(n_bytes):
    """Let no file grow beyond so many bytes, as on a full disk."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def open_in_hdf5():
    """Count what HDF5 holds open: parts of a lost file crash a later writing."""
    gc.collect()
    return h5py.h5f.get_obj_count()


def assert_is_whole(path):
    """Read a file with the reader of its kind, to its end."""
    if path.suffix in (".ipynb", ".html"):
        text = path.read_text(encoding="utf-8").rstrip()
        assert text.endswith(("}", "</html>"))
    else:
        READERS[path.suffix](path)


@pytest.mark.skipif(os.name != "posix", reason="needs limits of a file's size")
@pytest.mark.parametrize("ending", ENDINGS)
def test_whatever_fails_the_old_file_or_the_new_one_is_whole(tmp_path, writer, ending):
    path = tmp_path / f"map{ending}"
    n_faults = 0
    for name in CALLS:
        for number in itertools.count():
            path.write_bytes(BEFORE)
            with Failing(name, number) as fault, suppress(DataError):
                writer(path)
            if not fault.has_happened:
                break
            n_faults += 1
            assert not list(tmp_path.glob(".*"))
            if path.read_bytes() != BEFORE:
                assert_is_whole(path)
    assert n_faults >= 4
    writer(path)
    size, n_open = path.stat().st_size, open_in_hdf5()
    for share in (0, 0.1, 0.5, 0.9, 0.99):
        path.write_bytes(BEFORE)
        with pytest.raises(DataError, match="map"), full_after(int(share * size)):
            writer(path)
        assert path.read_bytes() == BEFORE
        assert not list(tmp_path.glob(".*"))
    assert open_in_hdf5() == n_open
    writer(path)
    assert_is_whole(path)
