"""Read NumPy files: one array is embedded, 1-D arrays become row metadata.

Nothing is unpickled, and declared sizes are checked before anything is read.
"""

from __future__ import annotations

import math
import warnings
import zipfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_embedding_game.data import row_images
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.errors import DataError, wrap_read_errors
from napari_embedding_game.data.formats.matrices import make_dataset_from_matrix
from napari_embedding_game.data.formats.tables import TABLES, read_frame
from napari_embedding_game.data.identity import hash_rows
from napari_embedding_game.data.limits.memory import check_fits
from napari_embedding_game.data.read_options import ReadOptions
from napari_embedding_game.data.read_result import ReadResult
from napari_embedding_game.data.roles import convert_columns_by_role
from napari_embedding_game.data.row_matrices import Matrix
from napari_embedding_game.data.stages import Stage, Stages
from napari_embedding_game.data.validation import (
    check_shape,
    to_sufficient_precision,
)

# Names under which the array to embed is usually stored, the likeliest first.
_USUAL_NAMES = ("X", "data", "x", "features", "embedding", "embeddings", "images")
_SIDE_TABLE_SUFFIX = "_text"
"""Suffix of the name of a table beside an array file that describes its rows."""
_PICKLE = (
    "{} holds Python objects (a pickle) instead of numbers, which could run any "
    "program and are never read: save it again as an array of numbers, for instance "
    "with X.astype(float)."
)

Arrays = Mapping[str, Any]


def read_arrays_in_stages(path: Path, options: ReadOptions) -> Stages[ReadResult]:
    """Read .npy or .npz, in stages; `options.space` names the array to embed.

    By default this is the first array with a usual name such as ``X``, else the first
    that can be embedded; a note names the others. Arrays with one number or text for
    each row become metadata. An array of pictures, N x h x w or uint8 with a square
    number of columns, also gives the thumbnails. A table beside the file, such as
    ``letters_text.csv`` of ``letters.npz``, adds texts and metadata, row by row.

    Raises DataError if the file is damaged or too large, or has no such array.
    """
    yield Stage(f"Reading {path.name}")
    with wrap_read_errors(path, f"a NumPy {path.suffix.lower()} file"):
        arrays, notes = _load_plain_arrays(path)
    yield Stage("Checking the numbers")
    embeddable = _find_embeddable_names(arrays, path.name)
    chosen = options.choose_space(embeddable, path.name)
    if options.space is None and len(embeddable) > 1:
        notes.append(
            f'The array "{chosen}" is embedded. It could also be '
            f"{_describe_arrays(arrays, embeddable[1:])}: choose it as the space."
        )
    values = arrays[chosen]
    n_rows = values.shape[0]
    check_shape((n_rows, math.prod(values.shape[1:])), path.name)
    pictures = row_images.to_thumbnails(values)
    X, names = _to_matrix_and_names(values, pictures)
    dataset = make_dataset_from_matrix(
        X,
        _to_row_metadata(arrays, n_rows),
        names,
        chosen,
        path.name,
        options,
        name=path.name,
        source=path,
        notes=notes,
        images=pictures,
        row_hashes={
            name: hash_rows(arrays[name].reshape(len(arrays[name]), -1))
            for name in embeddable
        },
    )
    for table in _find_side_table(path):
        yield Stage(f"Reading {table.name}")
        dataset = _add_side_table(dataset, table, options)
    return ReadResult(dataset, embeddable, names)


def _load_plain_arrays(path: Path) -> tuple[dict[str, Any], list[str]]:
    """Return the arrays of a .npy or .npz file by name, and a note on what is left out.

    Left out are arrays of Python objects, which are never unpickled, and members of an
    archive that are no arrays. Raises ValueError for a foreign format, and DataError if
    the declared size exceeds the memory, or no array is left.
    """
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
        # For other compressions Python unpacks a member at once, of any size.
        if any(member.compress_type > zipfile.ZIP_DEFLATED for member in members):
            raise ValueError("not packed as numpy does it")
        total = sum(member.file_size for member in members)
        check_fits(total, path.name, "what is packed in it")
        with np.load(path, allow_pickle=False) as file:
            read = {name: _read_plain_array(file.get, name) for name in file.files}
    else:
        check_fits(path.stat().st_size, path.name)
        with path.open("rb") as file:
            # First bytes of an array and of a pickle.
            if file.read(1) not in (b"\x93", b"\x80"):
                raise ValueError("no header of the .npy format")
        read = {path.stem: _read_plain_array(np.load, path)}
    plain = {name: one for name, one in read.items() if one is not None}
    objects = ", ".join(name for name in read if name not in plain)
    if not plain:
        why = "is empty: there is no array in it; save one with a row for each cell, "
        raise DataError(
            _PICKLE.format(path.name) if objects else f"{path.name} {why}image or text."
        )
    note = f"Not read, because they hold Python objects: {objects}."
    return plain, [note] if objects else []


def _read_plain_array(read: Callable[[Any], Any], what: object) -> Any:
    """Return the array ``read(what)`` in native byte order; None for other values.

    Arrays of Python objects are not unpickled. Any other ValueError of `read` is
    raised.
    """
    try:
        # numpy warns of headers that Python 2 wrote.
        with warnings.catch_warnings(action="ignore"):
            array = read(what)
    except ValueError as error:  # only the message of numpy's error mentions the pickle
        if "pickle" not in str(error):
            raise
        return None
    if not isinstance(array, np.ndarray):  # other members of a zip are read as bytes
        return None
    # pandas needs native byte order.
    return array.astype(array.dtype.newbyteorder("="), copy=False)


# Arrays of a file


def _find_embeddable_names(arrays: Arrays, where: str) -> list[str]:
    """Return the names of the numeric arrays that can be embedded, the likeliest first.

    These have two or three dimensions, or four with three or four channels at the end.
    Names such as ``X`` come first. Raises DataError if there is no such array.
    """
    names = [
        name
        for name, one in arrays.items()
        if one.dtype.kind in "buif"
        and (one.ndim in (2, 3) or (one.ndim == 4 and one.shape[-1] in (3, 4)))
    ]
    if not names:
        raise DataError(
            f"{where} has no two-dimensional array of numbers to embed, only "
            f"{_describe_arrays(arrays, arrays)}: save one row for each cell, "
            "image or text."
        )
    return list(dict.fromkeys([n for n in _USUAL_NAMES if n in names] + names))


def _describe_arrays(arrays: Arrays, names: Iterable[str]) -> str:
    """Return the named arrays as a text, with their shapes and types."""
    shapes = {
        k: " x ".join(map(str, a.shape)) or "one value" for k, a in arrays.items()
    }
    return ", ".join(f"{name} ({shapes[name]}, {arrays[name].dtype})" for name in names)


def _to_matrix_and_names(
    values: Any, pictures: NDArray[np.uint8] | None
) -> tuple[Matrix, list[str]]:
    """Return an array as the (N, D) matrix to embed, and the D names of its columns.

    If there are `pictures`, the columns are pixels.
    """
    if pictures is not None:
        shape = pictures.shape[1:] if values.ndim == 2 else values.shape[1:]
        return row_images.flatten_pixels(values), row_images.make_pixel_names(shape)
    X = to_sufficient_precision(values)
    return X, [f"column {i + 1}" for i in range(X.shape[1])]


def _to_row_metadata(arrays: Arrays, n_rows: int) -> pd.DataFrame:
    """Return the (n_rows,) arrays of numbers, truth values, texts or dates as columns.

    Rows are named "1" to n_rows; other arrays are left out.
    """
    obs = pd.DataFrame(index=[str(i + 1) for i in range(n_rows)])
    for name, one in arrays.items():
        # Dates without a unit are unusable.
        is_supported = one.dtype.kind in "biufMSU" and one.dtype != "M8"
        if one.shape == (n_rows,) and is_supported:
            obs[name] = pd.Series(_to_pandas_types(one), obs.index)
    return obs


def _to_pandas_types(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array with bytes decoded to text, and all floats as float64."""
    if array.dtype.kind == "S":
        array = np.char.decode(array, "utf-8", "replace")
    kinds = {"U": object, "f": np.float64}
    return array.astype(kinds.get(array.dtype.kind, array.dtype))


# The table beside a file


def _find_side_table(path: Path) -> list[Path]:
    """Return a list with the first table beside a file that describes its rows, or [].

    The table is called as the file, with "_text" and an ending in the order of
    :data:`TABLES`.
    """
    names = (
        path.with_name(path.stem + _SIDE_TABLE_SUFFIX + ending) for ending in TABLES
    )
    return [one for one in names if one.is_file()][:1]


def _add_side_table(dataset: Dataset, path: Path, options: ReadOptions) -> Dataset:
    """Return a dataset with the columns of a table beside its file, matched by order.

    Columns that the dataset has already are left out. Raises DataError if the table and
    the source have different numbers of rows.
    """
    frame = read_frame(path)
    frame.columns = frame.columns.astype(str)
    if len(frame) != dataset.n_source_rows:
        raise DataError(
            f"{path.name} has {len(frame):,} rows and {dataset.name} has "
            f"{dataset.n_source_rows:,}: give a table with a row for each."
        )
    assert dataset.source_obs is not None
    new = [name for name in frame.columns if name not in dataset.obs]
    added, roles = convert_columns_by_role(frame[new], options.roles, path.name)
    added = added.set_axis(dataset.source_obs.index)
    source_obs = pd.concat([dataset.source_obs, added], axis="columns")
    notes = (*dataset.notes, f"With {', '.join(new)} from {path.name}.")
    return replace(
        dataset,
        obs=source_obs[dataset.kept],
        source_obs=source_obs,
        roles={**dataset.roles, **roles},
        notes=notes,
    )
