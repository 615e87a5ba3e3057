"""New cells as they are in their file, and their expression in a reference's terms."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from napari_embedding_game.data.errors import DataError, explain_damage
from napari_embedding_game.data.expression import Expression
from napari_embedding_game.data.formats.anndata import open_store
from napari_embedding_game.data.formats.anndata_contents import split_space
from napari_embedding_game.data.formats.anndata_store import check_part
from napari_embedding_game.data.projection import normalised

if TYPE_CHECKING:
    from anndata import AnnData

_OTHER_NAMES = (
    "gene_ids",
    "gene_id",
    "ensembl_id",
    "gene_name",
    "gene_names",
    "gene_symbol",
    "gene_symbols",
    "feature_name",
    "symbol",
)
"""Columns of var under which files keep other names of their genes."""


@dataclass(frozen=True, eq=False)
class NewCells:
    """Cells to be mapped, as they are in their file."""

    name: str
    adata: AnnData


def expression_of(
    cells: NewCells, target_sum: float
) -> tuple[Any, list[str], dict[str, list[str]], str]:
    """Return what new cells are compared by.

    Returns
    -------
    (n, M) array or csr matrix
        log1p of counts normalised to ``target_sum``.
    list of str
        Names of the M genes.
    dict
        Other names of them, by the column that they are of.
    str
        Which part of the file the numbers are of.

    Raises
    ------
    DataError
        There are neither counts nor logarithms.
    """
    adata = cells.adata
    names, others = list(map(str, adata.var_names)), _other_names(adata)
    candidates: list[tuple[Any, list[str], dict[str, list[str]], str]] = []
    if "counts" in adata.layers:
        candidates.append((adata.layers["counts"], names, others, "layers['counts']"))
    if adata.X is not None:
        candidates.append((adata.X, names, others, "X"))
    if adata.raw is not None:
        raw = adata.raw
        candidates.append((raw.X, list(map(str, raw.var_names)), {}, "raw"))
    usable = [one for one in candidates if Expression(one[0], True).kind != "values"]
    if not usable:
        raise DataError(
            f"{cells.name} holds neither raw counts nor their logarithms (values below "
            "0, or too large): give cells with counts in X, in layers['counts'] or in "
            "raw."
        )
    # All genes count for the depth of a cell: the widest is the most complete.
    best = max(usable, key=lambda one: one[0].shape[1])
    values = best[0]
    values = sp.csr_matrix(values) if sp.issparse(values) else np.asarray(values)
    return normalised(values, target_sum, cells.name), *best[1:]


def brought_space(cells: NewCells, space: str, width: int, where: str) -> NDArray[Any]:
    """Return the space of a reference that new cells bring along, (n, width).

    Raises
    ------
    DataError
        They do not have it, or of other width.
    """
    place = split_space(space)
    has = place is not None and place[0] == "obsm" and place[1] in cells.adata.obsm
    rows = np.asarray(cells.adata.obsm[place[1]]) if has and place else None
    if rows is None or rows.shape[1] != width or not np.isfinite(rows).all():
        raise DataError(
            f"How {space} of {where} came of genes is not known, so that "
            f"{cells.name} has to bring it along: {space} with {width} columns without "
            "missing values, computed by the model of the reference."
        )
    return rows


def _other_names(adata: AnnData) -> dict[str, list[str]]:
    return {
        name: list(map(str, adata.var[name]))
        for name in adata.var.columns
        if str(name).casefold() in _OTHER_NAMES
    }


def read_whole(path: Path) -> AnnData:
    """Read a whole .h5ad file, after a look at its size."""
    from anndata.io import read_h5ad

    with _opened(path) as root:
        check_part(root, path.name, "its content")
    with explain_damage(path, "an .h5ad file"):
        return read_h5ad(path)


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    if not path.is_file():
        raise DataError(f"{path} does not exist: check the name and the folder.")
    if path.suffix.lower() != ".h5ad":
        raise DataError(
            f"{path.name} is no .h5ad file: write the cells with AnnData's write_h5ad."
        )
    with explain_damage(path, "an .h5ad file"), open_store(path) as root:
        yield root
