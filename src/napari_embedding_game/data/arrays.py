"""NumPy files: one array is embedded, arrays of one value a row describe the rows.

Nothing is ever unpickled: a pickle runs whatever its author put into it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from . import columns, images
from .dataset import Dataset, Matrix
from .errors import DataError, explain_damage
from .validation import (
    Missing,
    as_float32,
    check_missing,
    check_shape,
    check_values,
    usable_rows,
)

Arrays = dict[str, Any]

_PICKLE = b"\x80"  # how a pickle begins

# Names under which the array to embed is usually stored, the likeliest first.
_USUAL_NAMES = ("X", "data", "x", "features", "embedding", "embeddings", "images")
# ``label_names`` and the like spell out the whole numbers of one of these.
_SPELLING = ("label_names", "target_names", "class_names")
_SPELLED = ("y", "label", "labels", "target", "class", "digit")


def read_array(
    path: Path, *, space: str | None = None, missing: Missing = "error"
) -> Dataset:
    """Read .npy or .npz; `space` names the array of an .npz to embed.

    Arrays with one value a row become metadata.  An array of pictures, N x h x w
    or uint8 with a square number of columns, also gives the thumbnails.
    """
    check_missing(missing)
    arrays, notes = _load(path)
    chosen = _to_embed(arrays, path.name, space)
    values = arrays.pop(chosen)
    n_rows = values.shape[0]
    check_shape((n_rows, int(np.prod(values.shape[1:]))), path.name)
    pictures = None if sp.issparse(values) else images.thumbnails(values)
    X, var_names = _matrix(values, pictures)
    obs = _metadata(arrays, n_rows)
    kept, row_notes = usable_rows(
        X, path.name, row_names=obs.index, var_names=var_names, missing=missing
    )
    dataset = Dataset.from_rows(
        name=path.name,
        X=X,
        obs=obs,
        var_names=var_names,
        space=chosen,
        kept=kept,
        source=path,
        notes=[*notes, *row_notes],
        images=pictures,
        texts=columns.texts(obs),
    )
    check_values(dataset.X, path.name)
    return dataset


def array_spaces(path: Path) -> list[str]:
    """Names of the arrays in the file that can be embedded, the default first."""
    arrays, _ = _load(path)
    default = _to_embed(arrays, path.name, None)
    return [default, *(a for a in arrays if a != default and _embeddable(arrays[a]))]


def _load(path: Path) -> tuple[Arrays, list[str]]:
    """All arrays of the file by name, and a note on those that are not read."""
    with explain_damage(path, f"a NumPy {path.suffix.lower()} file"):
        if path.stat().st_size == 0:
            raise DataError(f"{path.name} is empty: there is nothing in the file.")
        # Opened here, because numpy leaves a damaged .npz open.
        with path.open("rb") as file:
            loaded = _load_numbers(file, path.name)
            if isinstance(loaded, np.ndarray):
                return {path.stem: loaded}, []
            if {"indptr", "indices", "format", "shape"} <= set(loaded.files):
                return {path.stem: sp.load_npz(path)}, []
            return _members(loaded, path.name)


def _load_numbers(file: BinaryIO, where: str) -> Any:
    start = file.read(1)
    file.seek(0)
    try:
        return np.load(file, allow_pickle=False)
    except ValueError as error:
        if start == _PICKLE or "Object arrays" in str(error):
            raise _object_array(where) from error
        raise


def _members(file: Any, where: str) -> tuple[Arrays, list[str]]:
    arrays, objects = {}, []
    for name in file.files:
        try:
            arrays[name] = file[name]
        except ValueError as error:
            if "Object arrays" not in str(error):
                raise
            objects.append(name)
    if objects and not arrays:
        raise _object_array(where)
    note = f"Not read, because they hold Python objects: {', '.join(objects)}."
    return arrays, [note] if objects else []


def _object_array(where: str) -> DataError:
    return DataError(
        f"{where} holds Python objects (a pickle) instead of numbers, which could run "
        "any program and are never read: save it again as an array of numbers, "
        "for instance with X.astype(float)."
    )


def _embeddable(array: Any) -> bool:
    if sp.issparse(array):
        return array.dtype.kind in "buif"
    pictures = array.ndim == 3 or (array.ndim == 4 and array.shape[-1] in (3, 4))
    return array.dtype.kind in "buif" and (array.ndim == 2 or pictures)


def _to_embed(arrays: Arrays, where: str, space: str | None) -> str:
    """Name of the array to embed."""
    found = [name for name in arrays if _embeddable(arrays[name])]
    if space is not None and space not in found:
        raise DataError(
            f'{where} has no array of numbers "{space}" to embed: it has '
            f"{_described(arrays)}."
        )
    if not found:
        raise DataError(
            f"{where} has no two-dimensional array of numbers to embed, only "
            f"{_described(arrays)}: save one row for each cell, image or text."
        )
    usual = [name for name in _USUAL_NAMES if name in found]
    return space or (usual + found)[0]


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
        return images.pixels(values), images.pixel_names(shape)
    X = as_float32(values)
    return X, [f"column {i + 1}" for i in range(X.shape[1])]


def _metadata(arrays: Arrays, n_rows: int) -> pd.DataFrame:
    """Arrays with one value a row, spelled out where another array has the names."""
    described = {
        name: _spelled_out(name, _decoded(array), arrays)
        for name, array in arrays.items()
        if not sp.issparse(array) and array.shape == (n_rows,)
    }
    obs = pd.DataFrame(described, index=[str(i + 1) for i in range(n_rows)])
    return pd.DataFrame({name: columns.as_metadata(obs[name]) for name in obs},
                        index=obs.index)  # fmt: skip


def _decoded(array: NDArray[Any]) -> NDArray[Any]:
    """Bytes as text, long or short floats as pandas knows them."""
    if array.dtype.kind == "S":
        return np.char.decode(array, "utf-8", "replace").astype(object)
    if array.dtype.kind == "U":
        return array.astype(object)
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def _spelled_out(
    name: str, values: NDArray[Any], arrays: Arrays
) -> NDArray[Any] | pd.Categorical:
    """`values` as groups with names, where they are indices into such names."""
    spellings = [f"{name}_names", *(_SPELLING if name in _SPELLED else ())]
    for spelling in spellings:
        names = arrays.get(spelling)
        if names is None or names.ndim != 1 or names.dtype.kind not in "SU":
            continue
        texts = list(dict.fromkeys(_decoded(names)))
        indices = values.dtype.kind in "iu" and len(texts) == len(names)
        if indices and values.min() >= 0 and values.max() < len(names):
            return pd.Categorical.from_codes(values.astype(np.int64), texts)
    return values
