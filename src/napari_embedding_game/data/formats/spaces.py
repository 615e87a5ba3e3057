"""Find the spaces of an AnnData that can be embedded, and their names.

A *root* holds the parts of an AnnData by their names: an open file, a group of zarr, or
the result of :func:`make_root_from_anndata`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd

from napari_embedding_game.data.columns import KEY
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.formats.store import is_array

if TYPE_CHECKING:
    from anndata import AnnData

RAW = "raw"
"""Name of the space that AnnData keeps as its ``raw``."""
_DISTANCES = re.compile(r"(^|_)distances$")
"""Keys of ``obsp`` under which scanpy keeps the distances of its ``pp.neighbors``."""
# Maps and positions are no measurements and are never embedded by default.
_NOT_MEASURED = re.compile(r"^(X_embedding_game|X_umap|X_tsne|.*spatial.*)$", re.I)
OF = " of "
"""Text between a space and its modality, as in "obsm['X_pca'] of rna"."""
_WITH_MODALITY = re.compile(rf"^(X|{RAW}|\w+\[.+\]){OF}[^\]]+$")
_SPELLED_SPACE = re.compile(r"""^(obsm|layers|obsp)(?:\[['"](.+)['"]\]|/(.+))$""")


def make_root_from_anndata(adata: AnnData) -> Mapping[str, Any]:
    """Return the parts of an AnnData in memory, keyed by their names in a file.

    A sparse ``X`` of a backed AnnData is read from its file; ``X`` and ``raw`` are
    missing where the AnnData has none.
    """
    root: dict[str, Any] = {
        "obs": adata.obs,
        "var": adata.var,
        "obsm": dict(adata.obsm),
        # anndata 0.13 lists X among the layers under the key None.
        "layers": {key: one for key, one in adata.layers.items() if key is not None},
        "obsp": dict(adata.obsp),
        "uns": adata.uns,
    }
    # The sparse X of a backed AnnData has to be read from its file first.
    if (X := adata.X) is not None:
        root["X"] = X.to_memory() if hasattr(X, "to_memory") else X
    if adata.raw is not None:
        root["raw"] = {"X": adata.raw.X, "var": adata.raw.var}
    return root


def list_spaces_default_first(root: Any, where: str) -> list[str]:
    """Return the names of the spaces of a root, the default space first.

    Raises DataError if there is none.
    """
    return list(
        dict.fromkeys([choose_space(root, None, where), *find_all_spaces(root)])
    )


def choose_space(root: Any, space: str | None, where: str) -> str:
    """Return the canonical name of the requested space, or of the default space.

    ``space``: "X", "raw", ``obsm['X_pca']``, ``obsm/X_pca``, or a key alone, which is
    sought in ``obsm``, ``layers`` and ``obsp``; None for the default: ``X_pca``, else
    the first measured entry of ``obsm`` with more than three columns, else ``X``, else
    any space. A modality behind the name is ignored.

    Raises DataError if there is no such space, or none at all.
    """
    spaces = find_all_spaces(root)
    if not spaces:
        raise DataError(
            f"{where} holds nothing to embed: neither X nor an entry of obsm with "
            "numbers; compute principal components first (scanpy's pp.pca)."
        )
    if space is None:
        measured = {
            k: w
            for k, w in _find_obsm_widths(root).items()
            if not _NOT_MEASURED.match(k)
        }
        wide = [f"obsm['{key}']" for key, width in measured.items() if width > 3]
        candidates = ["obsm['X_pca']", *wide, "X", *spaces]
    elif element := split_space(space := _WITH_MODALITY.sub(r"\1", space)):
        candidates = ["{}['{}']".format(*element)]
    else:
        candidates = [space, *(f"{g}['{space}']" for g in ("obsm", "layers", "obsp"))]
    chosen = next((one for one in candidates if one in spaces), None)
    if chosen is None:
        raise DataError(
            f'{where} has no space "{space}": choose one of {", ".join(spaces)}.'
        )
    return chosen


def find_map_keys(root: Any) -> list[str]:
    """Return the keys of ``obsm`` with two or three columns that hold external maps.

    Keys with "spatial" are positions, and are left out as this program's own maps are.
    """
    positions = find_position_keys(root)
    return [key for key in find_coordinate_keys(root) if key not in positions]


def find_position_keys(root: Any) -> list[str]:
    """Return the keys of ``obsm`` with "spatial" that hold two or three coordinates."""
    return [key for key in find_coordinate_keys(root) if "spatial" in key.lower()]


def find_coordinate_keys(root: Any) -> list[str]:
    """Return the keys of ``obsm`` with two or three columns: maps and positions.

    Maps that this program wrote are left out.
    """
    flat = (key for key, width in _find_obsm_widths(root).items() if width in (2, 3))
    return [key for key in flat if KEY not in key.lower()]


def split_space(space: str) -> tuple[str, str] | None:
    """Split ``obsm['X_pca']`` or ``obsm/X_pca`` into group and key, without a modality.

    Returns None for another name, such as ``X``.
    """
    match = _SPELLED_SPACE.match(_WITH_MODALITY.sub(r"\1", space))
    return (match[1], match[2] or match[3]) if match else None


def find_uns_item(root: Any, *keys: str) -> Any:
    """Return the unread entry of ``uns`` under nested keys; None without it."""
    item = root.get("uns", {})
    for key in keys:
        if not hasattr(item, "keys") or key not in item:
            return None
        item = item[key]
    return item


def get_space_item(root: Any, space: str) -> Any:
    """Return the matrix of a root that a canonical space names."""
    element = split_space(space)
    return (
        root[element[0]][element[1]]
        if element
        else _find_group_with_genes(root, space)["X"]
    )


def get_space_var(root: Any, space: str) -> Any:
    """Return the table of genes that belongs to a canonical space."""
    return _find_group_with_genes(root, space)["var"]


def _find_group_with_genes(root: Any, space: str) -> Any:
    """Return the group whose X and var a space names: ``raw``, or the root itself."""
    return root["raw"] if space == RAW else root


def has_matrix(group: Any) -> bool:
    """Return whether an AnnData, or its ``raw``, holds X; False for None.

    Where there is no ``raw``, anndata may have stored a null in its place.
    """
    if group is None or is_array(group) or "X" not in group:
        return False
    attributes = getattr(group["X"], "attrs", {})
    return bool(attributes.get("encoding-type") != "null")


def _find_obsm_widths(root: Any) -> dict[str, int]:
    """Return the number of columns of each numeric entry of ``obsm``, by its key."""
    group = root.get("obsm", {})
    widths = {key: _find_matrix_width(group[key]) for key in sorted(group.keys())}
    return {key: width for key, width in widths.items() if width}


def _find_matrix_width(item: Any) -> int:
    """Return the number of columns of a numeric matrix or table; 0 for anything else.

    An item of a file declares it in its attributes, and a sparse matrix in "shape".
    """
    attributes = getattr(item, "attrs", {})
    if "column-order" in attributes:
        return len(attributes["column-order"])
    if "shape" in attributes:
        return int(attributes["shape"][1])
    is_matrix = is_array(item) and len(item.shape) == 2 and item.dtype.kind in "buif"
    is_matrix = is_matrix or isinstance(item, pd.DataFrame)
    return int(item.shape[1]) if is_matrix else 0


def find_all_spaces(root: Any) -> list[str]:
    """Return the names of all spaces of a root that can be embedded.

    The order is: numeric entries of ``obsm``, ``X``, ``raw``, layers, and of ``obsp``
    the entries of distances, each sorted by key.
    """
    pairs = [key for key in sorted(root.get("obsp", {})) if _DISTANCES.search(key)]
    return [
        *(f"obsm['{key}']" for key in _find_obsm_widths(root)),
        *(["X"] if has_matrix(root) else []),
        *([RAW] if has_matrix(root.get(RAW)) else []),
        *(f"layers['{key}']" for key in sorted(root.get("layers", {}))),
        *(f"obsp['{key}']" for key in pairs),
    ]
