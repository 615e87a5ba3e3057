"""List the spaces of an AnnData that can be embedded, and their names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.formats.anndata_store import is_array, members

if TYPE_CHECKING:
    from anndata import AnnData

OBS = "obs"
"""The space of numbers among the metadata, never embedded unless asked for."""

# Results and places, not measurements: never embedded unless asked for.
_DISTANCES = re.compile(r"(^|_)distances$")
"""Keys of ``obsp`` under which scanpy keeps the distances of its ``pp.neighbors``."""
_NOT_MEASURED = re.compile(r"^(X_embedding_game|X_umap|X_tsne|.*spatial.*)$", re.I)
_SPELLED_SPACE = re.compile(r"""^(obsm|layers|obsp)(?:\[['"](.+)['"]\]|/(.+))$""")


@dataclass(frozen=True)
class Contents:
    """What can be embedded: keys of ``obsm`` with their widths, layers, X."""

    obsm: dict[str, int]
    layers: list[str]
    has_x: bool
    has_obs: bool = True
    obsp: Sequence[str] = ()
    """Keys of distances between cells and their neighbours."""

    def spaces(self) -> list[str]:
        """Canonical names of all spaces."""
        return [
            *(_name("obsm", key) for key in self.obsm),
            *(["X"] if self.has_x else []),
            *(_name("layers", key) for key in self.layers),
            *(_name("obsp", key) for key in self.obsp),
        ]

    def default(self) -> str | None:
        """Canonical name of the space that suits a map best, if there is any."""
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
            groups = ("obsm", "layers", "obsp")
            candidates = [space, *(_name(group, space) for group in groups)]
            if place := split_space(space):
                candidates = [_name(*place)]
            known = [*self.spaces(), *([OBS] if self.has_obs else [])]
            chosen = next((c for c in candidates if c in known), None)
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


def is_legacy(file: Any, where: str) -> bool:
    """Return whether a file was written before AnnData stored encodings.

    Raises
    ------
    DataError
        If it is no AnnData file at all.
    """
    if "obs" not in file or "var" not in file:
        raise DataError(
            f"{where} is a file without cells (obs) and genes (var): write it "
            "with AnnData's write_h5ad or write_zarr."
        )
    return "encoding-type" not in file["obs"].attrs


def split_space(space: str) -> tuple[str, str] | None:
    """Group and key of a space such as ``obsm['X_pca']``; None for ``X``."""
    match = _SPELLED_SPACE.match(space)
    return (match[1], match[2] or match[3]) if match else None


def _name(group: str, key: str) -> str:
    return f"{group}['{key}']"


def file_contents(file: Any) -> Contents:
    """Find what an .h5ad file or a .zarr group holds, reading none of it."""
    obsm = {}
    if "obsm" in file:
        obsm = {key: _stored_width(item) for key, item in members(file["obsm"])}
    return Contents(
        {key: width for key, width in obsm.items() if width},
        [key for key, _ in members(file["layers"])] if "layers" in file else [],
        has_matrix(file),
        obsp=_distances(key for key, _ in members(file["obsp"]))
        if "obsp" in file
        else (),
    )


def _distances(keys: Iterable[str]) -> list[str]:
    return [key for key in keys if _DISTANCES.search(key)]


def has_matrix(group: Any) -> bool:
    """Return whether an AnnData, or its ``raw``, holds X.

    Where there is no ``raw``, anndata may have stored a place that says so.
    """
    if is_array(group) or "X" not in group:
        return False
    return bool(group["X"].attrs.get("encoding-type") != "null")


def _stored_width(item: Any) -> int:
    """Columns of a stored matrix of numbers, 0 for anything else."""
    if "column-order" in item.attrs:
        return len(item.attrs["column-order"])
    if "shape" in item.attrs:
        return int(item.attrs["shape"][1])
    is_matrix = hasattr(item, "dtype") and len(item.shape) == 2
    return int(item.shape[1]) if is_matrix and item.dtype.kind in "buif" else 0


def object_contents(adata: AnnData) -> Contents:
    """Find what an AnnData in memory holds."""
    obsm = {
        key: value.shape[1]
        for key, value in adata.obsm.items()
        if isinstance(value, pd.DataFrame) or value.dtype.kind in "buif"
    }
    # anndata 0.13 lists X among the layers, as None.
    layers = [key for key in adata.layers if key is not None]
    return Contents(obsm, layers, adata.X is not None, obsp=_distances(adata.obsp))
