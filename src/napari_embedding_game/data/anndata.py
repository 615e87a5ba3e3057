"""AnnData files (.h5ad): cells, their spaces (``obsm``), genes and metadata.

Only the parts that are needed are read: metadata, the embedded space, and ``X``
for comparing genes if it fits.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from .columns import texts
from .contents import file_contents, is_legacy, object_contents, split_space
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

if TYPE_CHECKING:
    import h5py
    from anndata import AnnData

_LARGEST_PROFILE = 2 << 30  # bytes of X that are read only to compare genes


@dataclass(frozen=True)
class _Parts:
    """One space with what describes its rows and columns."""

    space: str
    values: Any
    obs: pd.DataFrame
    var_names: pd.Index
    x: Any | None
    notes: tuple[str, ...] = ()


def read_anndata(
    path: Path, *, space: str | None = None, missing: Missing = "error"
) -> Dataset:
    """Read one space of an .h5ad file: ``X``, a layer, or an entry of ``obsm``.

    `space` is written ``X_pca``, ``obsm['X_pca']``, ``X`` or ``layers['counts']``;
    by default ``X_pca``, else the first entry of ``obsm`` with more than two
    columns that is no map or place, else ``X``.
    """
    import h5py

    with explain_damage(path, "an .h5ad file"):
        with h5py.File(path) as file:
            legacy = is_legacy(file, path.name)
            parts = None if legacy else _file_parts(file, space, path.name)
        if parts is None:
            parts = _object_parts(read_legacy(path), space, path.name)
    return _dataset(parts, path.name, path.name, path, missing)


def from_anndata(
    adata: AnnData, name: str, *, space: str | None = None, missing: Missing = "error"
) -> Dataset:
    """Dataset from an AnnData object in memory; see :func:`read_anndata`."""
    where = f"'{name}'"
    parts = _object_parts(adata, space, where)
    return _dataset(parts, name, where, None, missing)


def anndata_spaces(path: Path) -> list[str]:
    """Spaces of the file that can be embedded, the default first."""
    import h5py

    with explain_damage(path, "an .h5ad file"):
        with h5py.File(path) as file:
            legacy = is_legacy(file, path.name)
            contents = None if legacy else file_contents(file)
        if contents is None:
            contents = object_contents(read_legacy(path))
    default = contents.choose(None, path.name)
    return [default, *(space for space in contents.spaces() if space != default)]


def read_legacy(path: Path) -> AnnData:
    """Read a file of an anndata version before 0.7, whose parts need each other."""
    from anndata import read_h5ad

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # anndata tells how it updates old files
        return read_h5ad(path)


def _stored_bytes(item: Any) -> int:
    arrays = [item] if hasattr(item, "dtype") else [item["data"], item["indices"]]
    return sum(array.size * array.dtype.itemsize for array in arrays)


def _file_parts(file: h5py.File, space: str | None, where: str) -> _Parts:
    from anndata.io import read_elem

    contents = file_contents(file)
    chosen = contents.choose(space, where)
    place = split_space(chosen)
    fits = contents.has_x and _stored_bytes(file["X"]) <= _LARGEST_PROFILE
    x = read_elem(file["X"]) if chosen == "X" or fits else None
    too_large = contents.has_x and x is None
    return _Parts(
        chosen,
        read_elem(file[place[0]][place[1]]) if place else x,
        read_elem(file["obs"]),
        read_elem(file["var"]).index,
        x,
        ("Genes are not compared, because X is too large.",) if too_large else (),
    )


def _object_parts(adata: AnnData, space: str | None, where: str) -> _Parts:
    chosen = object_contents(adata).choose(space, where)
    place = split_space(chosen)
    values = getattr(adata, place[0])[place[1]] if place else adata.X
    return _Parts(chosen, values, adata.obs, adata.var_names, adata.X)


def _dataset(
    parts: _Parts, name: str, where: str, source: Path | None, missing: Missing
) -> Dataset:
    check_missing(missing)
    X, var_names = _matrix(parts, where)
    _check_fit(X, parts, where)
    in_genes = X.shape[1] == len(parts.var_names) and not parts.space.startswith("obsm")
    obs = parts.obs.set_axis(parts.obs.index.astype(str), axis="index")
    kept, row_notes = usable_rows(
        X, where, row_names=obs.index, var_names=var_names, missing=missing
    )
    x = None if parts.x is None or in_genes else as_float32(parts.x)
    dataset = Dataset.from_rows(
        name=name,
        X=X,
        obs=obs,
        var_names=var_names,
        space=parts.space,
        kept=kept,
        source=source,
        notes=[*parts.notes, *row_notes, *_count_notes(X, parts.space)],
        texts=texts(obs),
        profile=x,
        profile_names=() if x is None else list(parts.var_names),
    )
    check_values(dataset.X, f"{where} ({parts.space})")
    return dataset


def _matrix(parts: _Parts, where: str) -> tuple[Matrix, list[str]]:
    """Return the space as a float32 matrix, and the names of its columns."""
    values = parts.values
    place = split_space(parts.space)
    names = list(map(str, parts.var_names))
    if isinstance(values, pd.DataFrame):
        values = values.select_dtypes("number")
        names = list(map(str, values.columns))
        values = values.to_numpy(dtype=np.float64, na_value=np.nan)
    elif place and place[0] == "obsm":
        label = place[1].removeprefix("X_")
        names = [f"{label} {i + 1}" for i in range(values.shape[1])]
    check_shape(values.shape, f"{where} ({parts.space})")
    if values.dtype.kind not in "buif":
        raise DataError(
            f"{where} ({parts.space}) holds {values.dtype} values where numbers "
            "belong: choose another space."
        )
    return as_float32(values), names


def _check_fit(X: Matrix, parts: _Parts, where: str) -> None:
    """Raise DataError if the parts of a file are of different size."""
    n_cells, n_genes = len(parts.obs), len(parts.var_names)
    x_fits = parts.x is None or parts.x.shape == (n_cells, n_genes)
    if X.shape[0] != n_cells or not x_fits:
        raise DataError(
            f"{where} is damaged: {parts.space} has {X.shape[0]} rows, and the file "
            f"describes {n_cells} cells and {n_genes} genes; export it again."
        )


def _count_notes(X: Matrix, space: str) -> list[str]:
    """Advice when whole genes are embedded as counts, which depth dominates."""
    if space.startswith("obsm") or X.shape[1] < 100:
        return []
    values = X.data if sp.issparse(X) else X[:1000]
    counts = bool(np.all(values >= 0) and np.all(values == np.round(values)))
    if not counts or values.max(initial=0) <= 1:
        return []
    return [
        f"{space} looks like raw counts: normalise and compute principal components "
        "first for a better map (scanpy: pp.normalize_total, pp.log1p, pp.pca)."
    ]
