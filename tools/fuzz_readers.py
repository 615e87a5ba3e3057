"""Read and use files that were damaged at random: each gives a sentence, or data.

    python tools/fuzz_readers.py            # all formats, 300 damages each
    python tools/fuzz_readers.py a.h5ad session.zip --runs 2000 --seed 7

Half of the damages change bytes, as a bad disk does.  The others change arrays *inside*
a file that stays a proper one, as a stranger would: ends of rows, indices, shapes,
types, lengths, codes of levels, and values of JSON.  Each damaged file is opened in a
process of its own, forked from this one (so not on Windows).  Printed is for each
format how many runs there were and how they ended; where one ended by a signal, by an
error that is no sentence, or took more than SECONDS of processor or MEGABYTES, the
damaged file is kept, and the exit status is 1: make it a test.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import scipy.sparse as sp

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests" / each) for each in ("data", "session", "")]
import test_file  # noqa: E402
from test_damage import WRITERS, damaged  # noqa: E402

import worlds  # noqa: E402
from napari_embedding_game.core.errors import InputError  # noqa: E402
from napari_embedding_game.data.errors import DataError  # noqa: E402
from napari_embedding_game.data.loader import load  # noqa: E402
from napari_embedding_game.data.stages import finish  # noqa: E402
from napari_embedding_game.session.file import archive  # noqa: E402

SECONDS, MEGABYTES = 10, 700
"""Of the processor, and of memory beyond what the process begins with."""
WALL_SECONDS = 300
"""After which a process that waits for something is ended."""
ADDRESSES = 12 << 30
"""Bytes of addresses that a process may ask for, so that no other one suffers."""
SESSIONS = {
    "session.zip": "layer of sparse rows",
    "genes.zip": "layer of genes",
    "columns.zip": "every kind of column",
    "recipe.zip": "raw counts",
}
"""Session files, by the scenario of ``tests/session/test_file.py`` that is saved."""
EXTREMES = (0, 1, -1, 2, 127, 10**6, 10**9, 2**31 - 1, 2**31, 2**62, -(2**31), 10**18)
FLOATS = (np.nan, np.inf, -np.inf, 1e300, -1e300, 1e-310)
ENCODINGS = ("csr_matrix", "csc_matrix", "array", "categorical", "dict", "dataframe")
TYPES = ("i1", "u1", "i4", "i8", "u8", "f4", "f8", "?", "S4", "c8", ">i4")


# What is damaged


def write_cells(path: Path) -> None:
    """Write cells with sparse parts of all kinds, levels, colours and distances."""
    adata = worlds.cells(40)
    adata.layers["columns"] = sp.csc_matrix(adata.X)
    adata.raw = adata
    rng = np.random.default_rng(0)
    adata.obsm["X_pca"] = rng.normal(size=(40, 5)).astype(np.float32)
    adata.obsp["distances"] = sp.csr_matrix(np.triu(rng.random((40, 40)), 1))
    adata.uns["kind_colors"] = np.array(["#111111", "#222222", "#333333"], object)
    adata.uns["log1p"] = {"base": 2.0}
    adata.obs["text"] = [f"text {i}" for i in range(40)]
    adata.obs["maybe"] = pd.array([True, None] * 20, "boolean")
    worlds.write_adata(adata, path)


def write_arrays(path: Path) -> None:
    """Write arrays of numbers, pictures and texts."""
    rng = np.random.default_rng(0)
    kind = np.array(["x", "y"] * 20)
    pictures = rng.integers(0, 255, (40, 8, 8)).astype(np.uint8)
    np.savez(path, X=rng.normal(size=(40, 3)), images=pictures, kind=kind)


def write_session(path: Path) -> None:
    """Write the session file of a scenario, by its name."""
    with tempfile.TemporaryDirectory() as folder:
        desk = test_file.world(Path(folder), SESSIONS[path.name])
        desk.save(path)


def write_map(path: Path) -> None:
    """Write cells with the session of their map inside."""
    with tempfile.TemporaryDirectory() as folder:
        test_file.in_h5ad(test_file.world(Path(folder), "PCA given"), path)


FILES: dict[str, Callable[[Path], Any]] = {
    **WRITERS,
    "a.h5ad": write_cells,
    "a.zarr": write_cells,
    "a.npz": write_arrays,
    "map.h5ad": write_map,
    **dict.fromkeys(SESSIONS, write_session),
}


# How


def alter_bytes(path: Path, rng: np.random.Generator) -> str:
    """Change a byte of a file, or cut its end off."""
    damaged(path, rng)
    return "bytes"


def alter_array(values: Any, rng: np.random.Generator) -> Any:
    """Return an array with other numbers, another length, type or shape."""
    values = np.array(values)
    is_number = values.dtype.kind in "biuf"
    extremes = EXTREMES + (FLOATS if values.dtype.kind == "f" else ())
    choice = rng.integers(9)
    if choice < 4 and is_number and values.size:
        at = rng.integers(values.size)
        places = [at, slice(at, None), slice(1, -1), slice(None)][choice]
        extreme = extremes[rng.integers(len(extremes))]
        values.flat[places] = np.array(extreme).astype(values.dtype)
    elif choice == 4:
        values = values[:: -1 if rng.random() < 0.5 else 2]
    elif choice == 5:
        values = rng.permutation(values)
    elif choice == 6:
        values = values[: rng.integers(len(values) + 1)]
    elif choice == 7:
        values = np.concatenate([values, values[: rng.integers(1, len(values) + 1)]])
    elif rng.random() < 0.7 and is_number:
        values = values.astype(TYPES[rng.integers(len(TYPES))])
    else:
        values = values[:, None] if rng.random() < 0.5 else values[None]
    return values


def alter_json(value: Any, rng: np.random.Generator) -> Any:
    """Return a value of JSON with another one somewhere in it."""
    if isinstance(value, dict) and value:
        key = list(value)[rng.integers(len(value))]
        if rng.random() < 0.05:
            return {k: v for k, v in value.items() if k != key}
        return {**value, key: alter_json(value[key], rng)}
    if isinstance(value, list) and value:
        if rng.random() < 0.1:
            return value[: rng.integers(len(value))]
        if rng.random() < 0.05:
            return value * 2
        at = int(rng.integers(len(value)))
        return [*value[:at], alter_json(value[at], rng), *value[at + 1 :]]
    others: list[Any] = [*EXTREMES, -0.5, 1e300, "", "x" * 300, "a\0b", None, True]
    others += [[], {}, [1], {"a": 1}, "0"]
    return others[rng.integers(len(others))]


def alter_table(table: pa.Table, rng: np.random.Generator) -> pa.Table:
    """Return a table of Arrow with another column."""
    at = int(rng.integers(table.num_columns))
    column, n = table.column(at).combine_chunks(), table.num_rows
    if isinstance(column, pa.DictionaryArray) and rng.random() < 0.7:
        codes = alter_array(column.indices.fill_null(0).to_numpy(), rng)
        codes = np.resize(np.ravel(codes), n)
        new = pa.DictionaryArray.from_arrays(codes, column.dictionary, safe=False)
    else:
        new = [
            lambda: pa.nulls(n),
            lambda: pa.array([[1, 2]] * n),
            lambda: pa.array([{"a": 1}] * n),
            lambda: pa.array(["x\0"] * n),
            lambda: pa.array([b"\xff"] * n),
            lambda: pa.array(np.full(n, np.nan)),
            lambda: pa.array([2**63] * n, pa.uint64()),
        ][rng.integers(7)]()
    return table.set_column(at, table.field(at).name, new)


def alter_h5(path: Path, rng: np.random.Generator) -> str:
    """Alter an array or an attribute of an HDF5 file, and tell which."""
    with h5py.File(path, "r+") as file:
        names: list[str] = []
        file.visit(names.append)
        name = names[rng.integers(len(names))]
        item = file[name]
        if rng.random() < 0.05:
            del file[name]
            return f"no {name}"
        if isinstance(item, h5py.Group) or rng.random() < 0.1:
            attributes = list(item.attrs)
            if not attributes:
                raise ValueError("nothing to alter")
            key = attributes[rng.integers(len(attributes))]
            value = item.attrs[key]
            if isinstance(value, str):
                item.attrs[key] = ENCODINGS[rng.integers(len(ENCODINGS))]
            else:
                item.attrs[key] = alter_array(np.atleast_1d(value), rng)
            return f"{key} of {name}"
        values, attributes = item[()], dict(item.attrs)
        is_bytes = name.endswith("session") and rng.random() < 0.9
        if is_bytes:
            content = alter_session(values.tobytes(), rng)
            new = np.frombuffer(content, np.uint8)
        else:
            new = alter_array(np.atleast_1d(values), rng)
        del file[name]
        dtype = h5py.string_dtype() if new.dtype == object else None
        file.create_dataset(name, data=new, dtype=dtype).attrs.update(attributes)
        return name


def alter_zarr(path: Path, rng: np.random.Generator) -> str:
    """Alter an array or a metadata file of a .zarr folder, and tell which."""
    import zarr

    if rng.random() < 0.4:
        files = [*path.rglob(".z*"), *path.rglob("zarr.json")]
        file = sorted(files)[rng.integers(len(files))]
        file.write_text(json.dumps(alter_json(json.loads(file.read_text()), rng)))
        return str(file.relative_to(path))
    # Of names that differ in case alone zarr mistakes its list of all parts.
    root = zarr.open_group(str(path), mode="r+", use_consolidated=False)
    arrays = sorted(path.rglob(".zarray"))
    name = str(arrays[rng.integers(len(arrays))].parent.relative_to(path))
    item = root[name]
    attributes, new = dict(item.attrs), alter_array(np.atleast_1d(item[...]), rng)
    if new.dtype.kind not in "biufc":
        raise ValueError("a text")
    parent, _, key = name.rpartition("/")
    group = root[parent] if parent else root
    del group[key]
    group.create_array(key, data=np.ascontiguousarray(new), attributes=attributes)
    return name


def alter_npz(path: Path, rng: np.random.Generator) -> str:
    """Alter an array of a .npz file, and tell which."""
    with np.load(path) as file:
        parts = dict(file)
    name = list(parts)[rng.integers(len(parts))]
    parts[name] = alter_array(parts[name], rng)
    with path.open("wb") as file:
        np.savez(file, **parts)
    return name


def alter_npy(path: Path, rng: np.random.Generator) -> str:
    """Alter the array of a .npy file."""
    np.save(path, alter_array(np.load(path), rng))
    return "array"


def alter_parquet(path: Path, rng: np.random.Generator) -> str:
    """Alter a column of a .parquet file."""
    pq.write_table(alter_table(pq.read_table(path), rng), path)
    return "a column"


def alter_session(content: bytes, rng: np.random.Generator) -> bytes:
    """Return a session file with another array, value of JSON or table."""
    with np.load(io.BytesIO(content)) as file:
        parts = dict(file)
    arrays = [name for name in parts if name not in ("session", "maps")]
    if rng.random() < 0.4:
        name = "maps" if rng.random() < 0.9 else "session"
        text = json.dumps(alter_json(json.loads(parts[name].tobytes()), rng)).encode()
        parts[name] = np.frombuffer(text, np.uint8)
    else:
        name = arrays[rng.integers(len(arrays))]
        values = parts[name]
        if values.dtype == np.uint8 and values[:6].tobytes() == b"ARROW1":
            table, out = pyarrow.feather.read_table(io.BytesIO(values.tobytes())), None
            out, packed = io.BytesIO(), rng.random() < 0.2
            if table.num_columns:
                table = alter_table(table, rng)
            how = "zstd" if packed else "uncompressed"
            pyarrow.feather.write_feather(table, out, compression=how)
            parts[name] = np.frombuffer(out.getvalue(), np.uint8)
        else:
            parts[name] = alter_array(values, rng)
    out = io.BytesIO()
    np.savez(out, **parts)
    return out.getvalue()


def alter_session_file(path: Path, rng: np.random.Generator) -> str:
    """Alter a part of a session file."""
    path.write_bytes(alter_session(path.read_bytes(), rng))
    return "a part"


ALTER: dict[str, Callable[[Path, np.random.Generator], str]] = {
    **{"h5ad": alter_h5, "h5": alter_h5, "zarr": alter_zarr, "npz": alter_npz},
    **{"npy": alter_npy, "parquet": alter_parquet, "zip": alter_session_file},
}
"""By ending; in files of other kinds there are no arrays to alter."""


# What is done with it


def use_data(path: Path) -> None:
    """Read a file and look at all numbers, as a run and a plot do."""
    spaces = (None, "X", "layers['columns']", "distances")
    for space in spaces if path.name in ("a.h5ad", "a.zarr") else (None,):
        dataset = finish(load(path, space=space, missing="drop"))
        for X in (dataset.X, dataset.expression.values):
            (X.T @ X).sum(), X.max(axis=0), X[::3].sum()
            if sp.issparse(X):
                X.tocsc().sum_duplicates()
        if dataset.obs.shape[1]:
            dataset.obs.describe(include="all")


def use_session(path: Path) -> None:
    """Open a session, cut its clusters, rename one and save it, as a person does."""
    saved, _ = archive.open_session(path)
    desk = worlds.Desk.restored(saved)
    for n_clusters in (2, 5, None):
        desk.book.set_n_clusters(n_clusters)
    desk.book.rename(desk.book.clusters[0].id, "renamed")
    desk.book.undo()
    for mark in desk.session.timeline.marks:
        desk.session.show_mark(mark.number)
    desk.save(path.with_name("again.zip"))


def open_alone(path: Path, told: int) -> None:
    """Use a file in this process, which ends with it; write an error into a pipe."""
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.alarm(WALL_SECONDS)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (1, 2):
        os.dup2(nowhere, number)
    try:
        is_map = path.name == "map.h5ad" or path.name in SESSIONS
        (use_session if is_map else use_data)(path)
        os.write(told, b"read")
    except (DataError, InputError) as error:
        is_sentence = str(error).endswith(".")
        os.write(told, b"sentence" if is_sentence else f"!{error}".encode())
    except BaseException:
        os.write(told, traceback.format_exc().encode(errors="replace")[-4_000:])
    finally:
        os._exit(0)


def outcome(path: Path) -> tuple[str, str, float]:
    """Return how a process that opens a file ended, what it told, and its megabytes."""
    reader, writer = os.pipe()
    if (pid := os.fork()) == 0:
        open_alone(path, writer)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        told = pipe.read().decode(errors="replace")
    _, status, usage = os.wait4(pid, 0)
    megabytes = usage.ru_maxrss / 1024
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        is_late = number in (signal.SIGXCPU, signal.SIGKILL, signal.SIGALRM)
        return "too slow" if is_late else signal.Signals(number).name, "", megabytes
    return told if told in ("read", "sentence") else "traceback", told, megabytes


def fuzz(name: str, runs: int, seed: int, kept: Path) -> Counter[str]:
    """Damage the file of one format again and again; return how often it ended how."""
    ends: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as place:
        whole, path = Path(place) / "whole" / name, Path(place) / name
        whole.parent.mkdir()
        FILES[name](whole)
        end, told, usual = outcome(whole)
        if end != "read":
            raise RuntimeError(f"{name} is not read as it is: {told}")
        alter = ALTER.get(name.rpartition(".")[2], alter_bytes)
        for run in range(runs):
            rng = np.random.default_rng([seed, run])
            for left in (path, path.with_name("again.zip")):
                shutil.rmtree(left, ignore_errors=True)
                left.unlink(missing_ok=True) if not left.is_dir() else None
            (shutil.copytree if whole.is_dir() else shutil.copyfile)(whole, path)
            what = "as it was"
            # Not every array can be altered in every way.
            with contextlib.suppress(Exception), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                what = (alter if run % 2 else alter_bytes)(path, rng)
            end, told, megabytes = outcome(path)
            if megabytes > usual + MEGABYTES:
                end, told = "too large", f"{megabytes:.0f} MB"
            ends[end] += 1
            if end not in ("read", "sentence"):
                target = kept / f"{seed}-{run}-{name}"
                shutil.rmtree(target, ignore_errors=True)
                (shutil.copytree if path.is_dir() else shutil.copyfile)(path, target)
                print(f"{target} ({what}): {end}\n{told}", flush=True)
    return ends


def main() -> None:
    """Damage files of the formats that are named, or of all of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(FILES), metavar="NAME")
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kept", type=Path, default=Path(tempfile.gettempdir()))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    options.kept.mkdir(exist_ok=True)
    failed = 0
    for name in options.names:
        ends = fuzz(name, options.runs, options.seed, options.kept)
        wrong = sum(n for end, n in ends.items() if end not in ("read", "sentence"))
        words = ", ".join(f"{n} {end}" for end, n in sorted(ends.items()))
        print(f"{name}: {options.runs} runs, {wrong} wrong ({words})", flush=True)
        failed += wrong
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
