"""One byte of a file is changed, or its end is cut off: a sentence, or what it holds.

Files are read as a window does, in the process for it.  EMBEDDING_GAME_DAMAGES is the
number of damages for each format, a few by default.
"""

import os
import shutil
import time

import numcodecs
import numpy as np
import pandas as pd
import pytest

import worlds
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.read_options import ReadOptions
from napari_embedding_game.data.readers import read_in_stages
from napari_embedding_game.data.reading_process import (
    read_in_process,
    start_reading_process,
)
from worlds import read

N_DAMAGES = int(os.environ.get("EMBEDDING_GAME_DAMAGES", "6"))
SECONDS = 60
"""The process for files ends a loop after 4 s of processor time; a busy machine takes
several times as long by the clock."""


def cells():
    return worlds.annotated(40, 12, X_pca=3)


def counts(path):
    worlds.tenx(path, np.random.default_rng(0).poisson(1, (40, 12)))


def table():
    rows = np.random.default_rng(0).normal(size=(40, 3))
    return pd.DataFrame(rows, columns=[*"abc"]).assign(kind=[*"xy"] * 20)


def spatialdata(path):
    """Write a table whose rows are about cells beside it."""
    corners = np.random.default_rng(0).uniform(0, 100, (40, 5, 2))
    shapes = pd.DataFrame({"geometry": [worlds.to_wkb(ring) for ring in corners]})
    elements = {"shapes/cells": (shapes, worlds.transformation("scale", [2.0, 2.0]))}
    table = worlds.annotate(cells(), ["cells"] * 40, np.arange(40))
    worlds.write_spatialdata(path, table, elements)


WRITERS = {
    "a.h5ad": lambda path: cells().write_h5ad(path),
    "a.zarr": lambda path: worlds.write_adata(cells(), path),
    "s.zarr": spatialdata,
    "a.npy": lambda path: np.save(path, table()[[*"abc"]].to_numpy()),
    "a.npz": lambda path: np.savez_compressed(path, X=table()[[*"abc"]].to_numpy()),
    "a.csv": lambda path: table().to_csv(path, index=False),
    "a.parquet": lambda path: table().to_parquet(path),
    "a.h5": counts,
    "a_mtx": counts,
    "a.fcs": worlds.cytometry,
}


def damaged(path, rng):
    """Damage a file, or one in a folder, and tell how."""
    files = sorted(p for p in path.rglob("*") if p.is_file()) or [path]
    file = files[rng.integers(len(files))]
    content = bytearray(file.read_bytes())
    if not content or rng.random() < 0.5:
        content = content[: rng.integers(len(content) + 1)]
    else:
        content[rng.integers(len(content))] ^= int(rng.integers(1, 256))
    file.write_bytes(content)


def outcome(path, honest):
    """Read a file, and tell what came of it."""
    start_reading_process()
    reading = read_in_process(path, read_in_stages, ReadOptions())
    try:
        first = next(reading)
        while next(reading) is first:  # the process begins
            pass
        begin = time.monotonic()
        while time.monotonic() - begin < SECONDS:
            next(reading)
        reading.close()
    except StopIteration as end:
        X = end.value.dataset.X
        same = X.shape == honest.X.shape and abs(X - honest.X).max() == 0
        return "the same" if same else "other numbers"
    except DataError as error:
        told = str(error)
        assert told.endswith("."), told
        return "a process that broke off" if "broke off" in told else "a sentence"
    return "a hang"


@pytest.mark.parametrize("name", WRITERS)
def test_a_damaged_file_is_a_sentence_or_what_it_holds(tmp_path, name):
    whole, path = tmp_path / "whole" / name, tmp_path / name
    whole.parent.mkdir()
    WRITERS[name](whole)
    honest, rng, found = read(whole), np.random.default_rng(1), {}
    for _ in range(N_DAMAGES):
        if whole.is_dir():
            shutil.rmtree(path, ignore_errors=True)
            shutil.copytree(whole, path)
        else:
            shutil.copyfile(whole, path)
        damaged(path, rng)
        told = outcome(path, honest)
        found[told] = found.get(told, 0) + 1
    print(name, dict(sorted(found.items())))
    assert not found.keys() & {"a hang", "a process that broke off"}
    assert found.get("a sentence", 0) > 0


@pytest.mark.parametrize("version", [2, 3])
def test_no_room_is_made_for_more_texts_than_a_block_has(tmp_path, version):
    whole, path = tmp_path / "whole.zarr", tmp_path / "a.zarr"
    worlds.write_adata(cells(), whole, version)
    honest = read(whole)
    shutil.copytree(whole, path)
    assert outcome(path, honest) == "the same"
    (block,) = (path / "obs/_index").rglob("0")
    # Two thousand million texts, where there are forty.
    content = (40 + (1 << 31)).to_bytes(4, "little") + bytes(205)
    codec = numcodecs.Blosc() if version == 2 else numcodecs.Zstd()
    block.write_bytes(codec.encode(content))
    assert outcome(path, honest) == "a sentence"
