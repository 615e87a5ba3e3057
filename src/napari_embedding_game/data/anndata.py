"""AnnData files (.h5ad): cells, their spaces (``obsm``), genes and metadata.

Only the parts that are needed are read: metadata, the embedded space, and ``X``
for comparing genes if it fits.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from .columns import texts
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
# Results and places, not measurements: never embedded unless asked for.
_NOT_MEASURED = re.compile(r"^(X_embedding_game|X_umap|X_tsne|.*spatial.*)$", re.I)
_SPELLED_SPACE = re.compile(r"""^(obsm|layers)(?:\[['"](.+)['"]\]|/(.+))$""")


@dataclass(frozen=True)
class _Contents:
    """What can be embedded: keys of ``obsm`` with their widths, layers, X."""

    obsm: dict[str, int]
    layers: list[str]
    has_x: bool

    def spaces(self) -> list[str]:
        """Canonical names of all spaces."""
        return [
            *(_name("obsm", key) for key in self.obsm),
            *(["X"] if self.has_x else []),
            *(_name("layers", key) for key in self.layers),
        ]

    def default(self) -> str | None:
        if "X_pca" in self.obsm:
            return _name("obsm", "X_pca")
        for key, width in self.obsm.items():
            if width > 2 and not _NOT_MEASURED.match(key):
                return _name("obsm", key)
        return "X" if self.has_x else next(iter(self.spaces()), None)

    def choose(self, space: str | None, where: str) -> str:
        """Canonical name of the space asked for, or of the default."""
        if space is None:
            chosen = self.default()
        else:
            candidates = [space, _name("obsm", space), _name("layers", space)]
            if match := _SPELLED_SPACE.match(space):
                candidates = [_name(match[1], match[2] or match[3])]
            chosen = next((c for c in candidates if c in self.spaces()), None)
        if chosen is not None:
            return chosen
        if not self.spaces():
            raise DataError(
                f"{where} holds nothing to embed: neither X nor an entry of obsm with "
                "numbers; compute principal components first (scanpy's pp.pca)."
            )
        raise DataError(
            f'{where} has no space "{space}": choose one of {", ".join(self.spaces())}.'
        )


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
            legacy = _is_legacy(file, path.name)
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
            legacy = _is_legacy(file, path.name)
            contents = None if legacy else _file_contents(file)
        if contents is None:
            contents = _object_contents(read_legacy(path))
    default = contents.choose(None, path.name)
    return [default, *(space for space in contents.spaces() if space != default)]


def read_legacy(path: Path) -> AnnData:
    """Read a file of an anndata version before 0.7, whose parts need each other."""
    from anndata import read_h5ad

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # anndata tells how it updates old files
        return read_h5ad(path)


def is_legacy(file: h5py.File) -> bool:
    """Tell whether a file was written before parts carried their own encoding."""
    return "encoding-type" not in file["obs"].attrs


def _is_legacy(file: h5py.File, where: str) -> bool:
    if "obs" not in file or "var" not in file:
        raise DataError(
            f"{where} is an HDF5 file without cells (obs) and genes (var): write it "
            "with AnnData's write_h5ad."
        )
    return is_legacy(file)


def _name(group: str, key: str) -> str:
    return f"{group}['{key}']"


def _file_contents(file: h5py.File) -> _Contents:
    obsm = {key: _stored_width(item) for key, item in file.get("obsm", {}).items()}
    return _Contents(
        {key: width for key, width in obsm.items() if width},
        list(file.get("layers", {})),
        "X" in file and file["X"].attrs.get("encoding-type") != "null",
    )


def _stored_width(item: Any) -> int:
    """Columns of a stored matrix of numbers, 0 for anything else."""
    if "column-order" in item.attrs:
        return len(item.attrs["column-order"])
    if "shape" in item.attrs:
        return int(item.attrs["shape"][1])
    is_matrix = hasattr(item, "dtype") and len(item.shape) == 2
    return int(item.shape[1]) if is_matrix and item.dtype.kind in "buif" else 0


def _stored_bytes(item: Any) -> int:
    arrays = [item] if hasattr(item, "dtype") else [item["data"], item["indices"]]
    return sum(array.size * array.dtype.itemsize for array in arrays)


def _file_parts(file: h5py.File, space: str | None, where: str) -> _Parts:
    from anndata.io import read_elem

    contents = _file_contents(file)
    chosen = contents.choose(space, where)
    match = _SPELLED_SPACE.match(chosen)
    fits = contents.has_x and _stored_bytes(file["X"]) <= _LARGEST_PROFILE
    x = read_elem(file["X"]) if chosen == "X" or fits else None
    too_large = contents.has_x and x is None
    return _Parts(
        chosen,
        read_elem(file[match[1]][match[2]]) if match else x,
        read_elem(file["obs"]),
        read_elem(file["var"]).index,
        x,
        ("Genes are not compared, because X is too large.",) if too_large else (),
    )


def _object_contents(adata: AnnData) -> _Contents:
    obsm = {
        key: value.shape[1]
        for key, value in adata.obsm.items()
        if isinstance(value, pd.DataFrame) or value.dtype.kind in "buif"
    }
    return _Contents(obsm, list(adata.layers), adata.X is not None)


def _object_parts(adata: AnnData, space: str | None, where: str) -> _Parts:
    chosen = _object_contents(adata).choose(space, where)
    match = _SPELLED_SPACE.match(chosen)
    values = getattr(adata, match[1])[match[2]] if match else adata.X
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
    group, key = parts.space.partition("[")[::2]
    names = list(map(str, parts.var_names))
    if isinstance(values, pd.DataFrame):
        values = values.select_dtypes("number")
        names = list(map(str, values.columns))
        values = values.to_numpy(dtype=np.float64, na_value=np.nan)
    elif group == "obsm":
        label = key.strip("'[]").removeprefix("X_")
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
