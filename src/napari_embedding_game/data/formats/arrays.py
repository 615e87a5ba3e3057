"""Read NumPy files: one array is embedded, 1-D arrays become row metadata.

Nothing is unpickled, and declared sizes are looked at before anything is read.
"""

from __future__ import annotations

import math
import re
import warnings
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from napari_embedding_game.data import row_images
from napari_embedding_game.data.columns import as_metadata, listed, texts
from napari_embedding_game.data.dataset import Dataset, Matrix
from napari_embedding_game.data.errors import DataError, check_filled, explain_damage
from napari_embedding_game.data.formats.matrices import from_matrix
from napari_embedding_game.data.formats.store import checked_sparse
from napari_embedding_game.data.formats.tables import TABLES, read_frame
from napari_embedding_game.data.limits.memory import check_fits, check_shape_fits
from napari_embedding_game.data.read_options import ReadOptions
from napari_embedding_game.data.read_result import ReadResult
from napari_embedding_game.data.stages import Stage, Stages
from napari_embedding_game.data.validation import as_rows, check_shape

# Names under which the array to embed is usually stored, the likeliest first.
_USUAL_NAMES = ("X", "data", "x", "features", "embedding", "embeddings", "images")
# ``label_names`` and the like spell out the whole numbers of one of these.
_SPELLING = ("label_names", "target_names", "class_names")
_SPELLED = ("y", "label", "labels", "target", "class", "digit")
_BESIDE = ("_text", "_texts", "_obs", "_metadata", "_labels", "_ids", "_objects")
"""What ends the name of a table beside an array file that describes its rows."""
_ROW_NUMBER = re.compile(r"^(unnamed: 0|row|index|row[_ ]?(id|number))$", re.I)
_PICKLE = (
    "{} holds Python objects (a pickle) instead of numbers, which could run any "
    "program and are never read: save it again as an array of numbers, for instance "
    "with X.astype(float)."
)
_SPARSE = {"data", "format", "shape"}
# Of other kinds Python unpacks a part at once, however long it becomes.
_BOUNDED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)

Arrays = Mapping[str, Any]


def array_stages(path: Path, options: ReadOptions) -> Stages[ReadResult]:
    """Read .npy or .npz, in stages; `options.space` names the array to embed.

    Arrays with one value a row become metadata.  An array of pictures, N x h x w
    or uint8 with a square number of columns, also gives the thumbnails.  A table
    beside it, such as ``letters_text.csv`` of ``letters.npz``, adds texts and
    metadata, row by row.
    """
    yield Stage(f"Reading {path.name}")
    with explain_damage(path, f"a NumPy {path.suffix.lower()} file"):
        arrays, notes = _load(path)
    yield Stage("Checking the numbers")
    chosen = _to_embed(arrays, path.name, options.space)
    if options.space is None:
        notes += _others(arrays, chosen)
    values = arrays[chosen]
    n_rows = values.shape[0]
    check_shape((n_rows, math.prod(values.shape[1:])), path.name)
    pictures = None if sp.issparse(values) else row_images.thumbnails(values)
    X, names = _matrix(values, pictures)
    obs, obs_notes = _metadata(arrays, n_rows)
    dataset = from_matrix(
        X,
        obs,
        names,
        chosen,
        path.name,
        options,
        name=path.name,
        source=path,
        notes=[*notes, *obs_notes],
        images=pictures,
    )
    for table in _tables_beside(path):
        yield Stage(f"Reading {table.name}")
        dataset = _with_table(dataset, table)
    embeddable = [name for name in arrays if _embeddable(arrays[name])]
    default = _to_embed(arrays, path.name, None)
    spaces = list(dict.fromkeys([default, *embeddable]))
    return ReadResult(dataset, spaces, names)


def _load(path: Path) -> tuple[dict[str, Any], list[str]]:
    """Return all arrays of a file that are no pickles, and a note on those."""
    check_filled(path)
    if not zipfile.is_zipfile(path):
        check_fits(path.stat().st_size, path.name)
        with path.open("rb") as file:
            if file.read(1) not in (b"\x93", b"\x80"):  # of an array, of a pickle
                raise ValueError("no header of the .npy format")
        one = partial(np.load, path, allow_pickle=False)
        return _unpickled({path.stem: one}, path.name)
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
    # Reading a member never gives more than its declared size.
    total = sum(member.file_size for member in members)
    check_fits(total, path.name, "what is packed in it")
    if any(member.compress_type not in _BOUNDED for member in members):
        raise DataError(
            f"{path.name} is packed in an unusual way and is not read: save it again "
            "with numpy.savez."
        )
    if {member.filename.removesuffix(".npy") for member in members} >= _SPARSE:
        matrix = sp.load_npz(path)
        check_shape_fits((sum(matrix.shape),), 8, path.name)
        if matrix.format != "coo":
            matrix.check_format(full_check=True)
        return {path.stem: checked_sparse(sp.csr_matrix(matrix))}, []
    with np.load(path, allow_pickle=False) as file:
        return _unpickled({k: partial(file.get, k) for k in file.files}, path.name)


def _unpickled(
    arrays: Mapping[str, Callable[[], Any]], where: str
) -> tuple[dict[str, Any], list[str]]:
    found, objects = {}, []
    for name, read in arrays.items():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # on headers that Python 2 wrote
                array = read()
        except ValueError as error:  # numpy has no other sign
            if "pickle" not in str(error):
                raise
            array = None
        if isinstance(array, np.ndarray):
            found[name] = array
        else:  # numpy gives other content of a zip as bytes
            objects.append(name)
    if objects and not found:
        raise DataError(_PICKLE.format(where))
    if not found:
        raise DataError(
            f"{where} is empty: there is no array in it; save one with a row for "
            "each cell, image or text."
        )
    note = f"Not read, because they hold Python objects: {', '.join(objects)}."
    return found, [note] if objects else []


# Its arrays


def _embeddable(array: Any) -> bool:
    is_picture = array.ndim == 3 or (array.ndim == 4 and array.shape[-1] in (3, 4))
    return array.dtype.kind in "buif" and (array.ndim == 2 or is_picture)


def _to_embed(arrays: Arrays, where: str, space: str | None) -> str:
    """Name of the array to embed."""
    embeddable = [name for name, array in arrays.items() if _embeddable(array)]
    if space is not None and space not in embeddable:
        raise DataError(
            f'{where} has no array of numbers "{space}" to embed: it has '
            f"{_described(arrays)}."
        )
    if not embeddable:
        raise DataError(
            f"{where} has no two-dimensional array of numbers to embed, only "
            f"{_described(arrays)}: save one row for each cell, image or text."
        )
    usual = [name for name in _USUAL_NAMES if name in embeddable]
    return space or (usual + embeddable)[0]


def _others(arrays: Arrays, chosen: str) -> list[str]:
    """Tell which arrays could be embedded instead."""
    others = {k: one for k, one in arrays.items() if k != chosen and _embeddable(one)}
    told = f'The array "{chosen}" is embedded. It could also be {_described(others)}'
    return [f"{told}: choose it as the space."] if others else []


def _described(arrays: Arrays) -> str:
    described = [
        f"{name} ({' x '.join(map(str, a.shape)) or 'one value'}, {a.dtype})"
        for name, a in arrays.items()
    ]
    return ", ".join(described) or "no array"


def _matrix(
    values: Any, pictures: NDArray[np.uint8] | None
) -> tuple[Matrix, list[str]]:
    if pictures is not None:
        shape = pictures.shape[1:] if values.ndim == 2 else values.shape[1:]
        return row_images.pixels(values), row_images.pixel_names(shape)
    X = as_rows(values)
    return X, [f"column {i + 1}" for i in range(X.shape[1])]


def _metadata(arrays: Arrays, n_rows: int) -> tuple[pd.DataFrame, list[str]]:
    """Arrays with one value a row, spelled out where another array has the names.

    And a note on those of other types, such as records, which no column can hold.
    """
    obs, others = pd.DataFrame(index=[str(i + 1) for i in range(n_rows)]), []
    for name, array in arrays.items():
        kind, is_time = array.dtype.kind, array.dtype.kind in "mM"
        if array.shape != (n_rows,):
            continue
        if is_time and np.datetime_data(array.dtype)[0] == "generic":
            others.append(name)
        elif kind in "biufSUmM":
            values = _spelled_out(name, _decoded(array), arrays)
            obs[name] = as_metadata(pd.Series(values, obs.index))
        else:
            others.append(name)
    told = "Not read, because they hold neither numbers nor texts nor times"
    return obs, [f"{told}: {listed(others)}."] if others else []


def _decoded(array: NDArray[Any]) -> NDArray[Any]:
    """Bytes as text, long or short floats as pandas knows them."""
    if array.dtype.kind == "S":
        return np.char.decode(array, "utf-8", "replace").astype(object)
    if array.dtype.kind == "U":
        return array.astype(object)
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def _spelled_out(name: str, values: NDArray[Any], arrays: Arrays) -> Any:
    """`values` as groups with names, where they are indices into such names."""
    for spelling in [f"{name}_names", *(_SPELLING if name in _SPELLED else ())]:
        names = arrays.get(spelling)
        if (
            names is None
            or names.dtype.kind not in "SU"
            or values.dtype.kind not in "iu"
        ):
            continue
        levels = list(dict.fromkeys(_decoded(names)))
        if len(levels) == len(names) and 0 <= values.min() <= values.max() < len(names):
            return pd.Categorical.from_codes(values.astype(np.int64), levels)
    return values


# The table beside it


def _tables_beside(path: Path) -> list[Path]:
    """Return the first table whose name says that it describes the rows of a file."""
    names = (path.stem + word + ending for word in _BESIDE for ending in TABLES)
    return [one for one in map(path.with_name, names) if one.is_file()][:1]


def _with_table(dataset: Dataset, path: Path) -> Dataset:
    """Return a dataset with the columns of a table that it has not, row by row."""
    frame = read_frame(path)
    frame.columns = frame.columns.astype(str)
    if len(frame) != dataset.n_source_rows:
        raise DataError(
            f"{path.name} has {len(frame):,} rows and {dataset.name} has "
            f"{dataset.n_source_rows:,}: give a table with a row for each."
        )
    assert dataset.source_obs is not None
    first = frame.columns[0]
    if _ROW_NUMBER.match(first) and _numbers_rows(frame[first]):
        frame = frame.sort_values(first, ignore_index=True)
    new = [name for name in frame.columns if name not in dataset.obs]
    added = pd.DataFrame({name: as_metadata(frame[name]) for name in new})
    added = added.set_axis(dataset.source_obs.index)
    source_obs = pd.concat([dataset.source_obs, added], axis="columns")
    obs = source_obs[dataset.kept]
    return replace(
        dataset,
        obs=obs,
        source_obs=source_obs,
        texts=texts(obs) if dataset.texts is None else dataset.texts,
        notes=(*dataset.notes, f"With {', '.join(new)} from {path.name}."),
    )


def _numbers_rows(column: pd.Series) -> bool:
    """Return whether a column numbers its rows, from 0 or from 1, in any order."""
    numbers = pd.to_numeric(column, errors="coerce").sort_values()
    return numbers.iloc[0] in (0, 1) and bool((numbers.diff().iloc[1:] == 1).all())
