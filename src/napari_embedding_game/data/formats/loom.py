"""Read .loom files: genes in rows, cells in columns, and attributes of both."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from napari_embedding_game.data.columns import list_text
from napari_embedding_game.data.errors import DataError, wrap_read_errors
from napari_embedding_game.data.formats import store
from napari_embedding_game.data.formats.matrices import build_anndata
from napari_embedding_game.data.limits.memory import check_fits

if TYPE_CHECKING:
    from anndata import AnnData

_CELLS = ("CellID", "obs_names", "cell_id", "barcode", "Barcode")
_GENES = ("Gene", "var_names", "gene_name", "Accession")
"""Attributes with the names of cells and genes, the best first."""
_MAPS = (("X", "Y"), ("_X", "_Y"))
"""Attributes of cells in which loompy keeps a map, the best first."""
_CELLS_AT_ONCE = 2_048


def read_loom(path: Path) -> tuple[AnnData, list[str]]:
    """Read a .loom file as an AnnData (cells, genes), and notes on what was left out.

    Attributes of cells with several columns become entries of ``obsm``, and a map in X
    and Y ``obsm["X_loom"]``. Raises DataError if the file is damaged or too large.
    """
    with wrap_read_errors(path, "a .loom file"), store.open_store(path) as file:
        if not {"matrix", "row_attrs", "col_attrs"} <= {*file}:
            raise DataError(
                f"{path.name} is no .loom file: write it again, in Python with "
                'adata.write_h5ad("cells.h5ad").'
            )
        matrix = file["matrix"]
        n_genes, n = matrix.shape
        check_fits(store.count_declared_bytes(matrix), path.name, "its matrix")
        cells = _read_attributes(file["col_attrs"], n, path.name)
        genes = _read_attributes(file["row_attrs"], n_genes, path.name)
        steps = range(0, n, _CELLS_AT_ONCE)
        parts = [
            sp.csr_matrix(matrix[:, first : first + _CELLS_AT_ONCE].T)
            for first in steps
        ]
        X = sp.vstack(parts, format="csr") if parts else sp.csr_matrix((n, n_genes))
        layers = sorted(file.get("layers", ()))
    obs, var = _name_rows(cells, _CELLS), _name_rows(genes, _GENES)
    adata = build_anndata(X, obs, list(var.index))
    adata.var = var
    wide = {name: values for name, values in cells.items() if values.ndim == 2}
    axes = next(([*pair] for pair in _MAPS if {*pair} <= {*obs}), None)
    if axes is not None:
        wide["X_loom"] = adata.obs[axes].to_numpy()
        adata.obs = adata.obs.drop(columns=axes)
    adata.obsm.update(wide)
    note = f"Not read: the layers {list_text(layers)}."
    return adata, [note] if layers else []


def _read_attributes(group: Any, n: int, where: str) -> dict[str, NDArray[Any]]:
    """Return the attributes of n rows or columns by name; texts as str objects.

    Raises ValueError if any has another number of values.
    """
    check_fits(store.count_declared_bytes(group), where, "its attributes")
    found = {}
    for name, item in group.items():
        is_text = item.dtype.kind in "SO"
        values = item.asstr(errors="replace")[:] if is_text else item[:]
        if len(values) != n:
            raise ValueError(f"{name} has {len(values)} values, expected {n}")
        found[name] = values
    return found


def _name_rows(attributes: dict[str, NDArray[Any]], keys: tuple[str, ...]) -> Any:
    """Return the attributes of one axis as a table, named by the first key there is."""
    flat = {name: one for name, one in attributes.items() if one.ndim == 1}
    n = len(next(iter(attributes.values()), ()))
    table = pd.DataFrame(flat, index=pd.RangeIndex(n).astype(str))
    key = next((key for key in keys if key in flat), None)
    if key is None:
        return table
    return table.drop(columns=[key]).set_axis(table[key].astype(str), axis="index")
