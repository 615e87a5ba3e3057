"""Read NumPy files: one array is embedded, 1-D arrays become row metadata."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from napari_embedding_game.data import row_images
from napari_embedding_game.data.columns import as_metadata, chosen_places, listed, texts
from napari_embedding_game.data.dataset import Dataset, Matrix
from napari_embedding_game.data.errors import DataError, SeveralError
from napari_embedding_game.data.formats.companion_tables import (
    add_companion,
    companion_of,
)
from napari_embedding_game.data.formats.numpy_files import Arrays, load
from napari_embedding_game.data.read_options import ReadOptions, Several
from napari_embedding_game.data.read_result import ReadResult
from napari_embedding_game.data.stages import Stage, Stages, finish
from napari_embedding_game.data.validation import (
    as_rows,
    check_shape,
    check_values,
    usable_rows,
)

# Names under which the array to embed is usually stored, the likeliest first.
_USUAL_NAMES = ("X", "data", "x", "features", "embedding", "embeddings", "images")
# ``label_names`` and the like spell out the whole numbers of one of these.
_SPELLING = ("label_names", "target_names", "class_names")
_SPELLED = ("y", "label", "labels", "target", "class", "digit")


def array_stages(path: Path, options: ReadOptions) -> Stages[ReadResult]:
    """Read .npy or .npz, in stages; `options.space` names the array to embed.

    Arrays with one value a row become metadata.  An array of pictures, N x h x w
    or uint8 with a square number of columns, also gives the thumbnails.
    `options.columns` keeps only these columns ("column 1", ...) of the array.  A table
    beside it, such as ``letters_text.csv`` of ``letters.npz``, adds texts and
    metadata.
    """
    space, columns = options.space, options.columns
    arrays, notes = yield from load(path, partial(_needed, path.name, space))
    yield Stage("Checking the numbers")
    chosen = _to_embed(arrays, path.name, space)
    if space is None:
        notes = [*notes, *_others(arrays, chosen, path.name, options.several)]
    spaces = _in_order(arrays, path.name)
    values = arrays.pop(chosen)
    n_rows = values.shape[0]
    check_shape((n_rows, int(np.prod(values.shape[1:]))), path.name)
    pictures = None if sp.issparse(values) else row_images.thumbnails(values)
    X, all_columns = _matrix(values, pictures)
    var_names = all_columns
    if columns is not None:
        places = chosen_places(var_names, columns, path.name)
        X, var_names = X[:, places], [var_names[place] for place in places]
        notes = [*notes, f"Embedded: {len(places)} columns ({listed(var_names)})."]
    obs, obs_notes = _metadata(arrays, n_rows)
    kept, row_notes = usable_rows(
        X, path.name, row_names=obs.index, var_names=var_names, missing=options.missing
    )
    dataset = Dataset.from_rows(
        name=path.name,
        X=X,
        obs=obs,
        var_names=var_names,
        space=chosen,
        kept=kept,
        source=path,
        notes=[*notes, *obs_notes, *row_notes],
        images=pictures,
        texts=texts(obs),
    )
    check_values(dataset.X, path.name)
    beside = companion_of(path)
    if beside is not None:
        yield Stage(f"Reading {beside.name}")
        dataset = add_companion(dataset, beside, path)
    return ReadResult(dataset, spaces, all_columns)


def array_spaces(path: Path) -> list[str]:
    """Names of the arrays in the file that can be embedded, the default first."""
    arrays, _ = finish(load(path, lambda declared: ()))
    return _in_order(arrays, path.name)


def _needed(where: str, space: str | None, declared: Mapping[str, Any]) -> set[str]:
    """Names of what is embedded, of what tells of its rows, and of lists of names."""
    chosen = _to_embed(dict(declared), where, space)
    n_rows = declared[chosen].shape[0]
    beside = {
        name
        for name, array in declared.items()
        if array.shape == (n_rows,) or (array.ndim == 1 and array.dtype.kind in "SU")
    }
    return {chosen, *beside}


def _in_order(arrays: Arrays, where: str) -> list[str]:
    """Names of the arrays that can be embedded, the default first."""
    default = _to_embed(arrays, where, None)
    return [default, *(a for a in arrays if a != default and _embeddable(arrays[a]))]


def _embeddable(array: Any) -> bool:
    if sp.issparse(array):
        return array.dtype.kind in "buif"
    pictures = array.ndim == 3 or (array.ndim == 4 and array.shape[-1] in (3, 4))
    return array.dtype.kind in "buif" and (array.ndim == 2 or pictures)


def _to_embed(arrays: Arrays, where: str, space: str | None) -> str:
    """Name of the array to embed."""
    embeddable = [name for name in arrays if _embeddable(arrays[name])]
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


def _others(arrays: Arrays, chosen: str, where: str, several: Several) -> list[str]:
    """Tell which arrays could be embedded instead, as a note or as an error."""
    embeddable = {name: array for name, array in arrays.items() if _embeddable(array)}
    if len(embeddable) == 1:
        return []
    if several == "error" and chosen not in _USUAL_NAMES:
        raise SeveralError(
            f"{where} has {len(embeddable)} arrays that can be embedded, "
            f"{_described(embeddable)}: say which",
            chosen,
        )
    del embeddable[chosen]
    return [
        f'The array "{chosen}" is embedded. It could also be {_described(embeddable)}: '
        "choose it as the space."
    ]


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
    of_rows = {
        name: array
        for name, array in arrays.items()
        if not sp.issparse(array) and array.shape == (n_rows,)
    }
    others = [name for name, array in of_rows.items() if not _tells_a_value(array)]
    described = {
        name: _spelled_out(name, _decoded(array), arrays)
        for name, array in of_rows.items()
        if name not in others
    }
    obs = pd.DataFrame(described, index=[str(i + 1) for i in range(n_rows)])
    obs = pd.DataFrame({name: as_metadata(obs[name]) for name in obs},
                       index=obs.index)  # fmt: skip
    if not others:
        return obs, []
    told = "Not read, because they hold neither numbers nor texts nor times"
    return obs, [f"{told}: {listed(others)}."]


def _tells_a_value(array: NDArray[Any]) -> bool:
    """Tell whether these are numbers, texts, or times with a unit."""
    if array.dtype.kind in "mM":
        return np.datetime_data(array.dtype)[0] != "generic"
    return array.dtype.kind in "biufSU"


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
