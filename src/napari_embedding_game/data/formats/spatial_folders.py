"""Read the folders of 10x Visium, Visium HD and Xenium: counts, positions, picture."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from napari_embedding_game.data.columns import list_text
from napari_embedding_game.data.errors import DataError, wrap_read_errors
from napari_embedding_game.data.formats.tables import read_frame
from napari_embedding_game.data.formats.tenx import find_matrix_files, read_counts
from napari_embedding_game.data.formats.tissue_parts import (
    PICTURES,
    check_picture_size,
)
from napari_embedding_game.data.limits.memory import read_unpacked
from napari_embedding_game.data.tissue import POSITIONS

if TYPE_CHECKING:
    from anndata import AnnData

_COUNTS = ("filtered_feature_bc_matrix", "cell_feature_matrix")
_TABLES = (
    *(f"spatial/tissue_positions{x}" for x in (".parquet", ".csv", "_list.csv")),
    *(f"cells{x}" for x in (".parquet", ".csv.gz", ".csv")),
)
"""Tables of positions: of Visium, then of Xenium."""
_SPOTS = ["barcode", "in_tissue", "array_row", "array_col"]
_PIXELS = ["pxl_col_in_fullres", "pxl_row_in_fullres"]
"""Columns of Visium's table, which has the row before the column; its older form has no
headings."""
_BINS = "binned_outputs"
_USUAL_BINS = "square_008um"
_LINE_RATIO = 8  # bytes in memory for each byte of a table of text


def is_spatial_folder(folder: Path) -> bool:
    """Return whether a folder is one of Visium, Visium HD or Xenium."""
    return _has_parts(folder) or bool(_list_bins(folder))


def read_spatial_folder(folder: Path) -> tuple[AnnData, list[str]]:
    """Read the counts of a folder as an AnnData (cells, genes), and notes.

    ``obs`` has the columns of the table of cells or spots. Of Visium the positions are
    ``obsm["spatial"]``, in pixels, and the picture is in ``uns["spatial"]``, as scanpy
    has them. Of the bins of Visium HD those of 8 µm are read. Rows that the table does
    not name have no position. Raises DataError if a file is damaged or too large.
    """
    notes, name = list[str](), folder.name
    if bins := _list_bins(folder):
        folder = next((x for x in bins if x.name == _USUAL_BINS), bins[0])
        others = [x.name for x in bins if x != folder]
        notes = [
            f"Of its bins {folder.name} were read: for {list_text(others)} open that "
            f"folder in {_BINS}."
        ] * bool(others)
    counts, table = _find_counts(folder), _find_table(folder)
    assert counts is not None
    assert table is not None
    adata, count_notes = read_counts(counts)
    notes += count_notes
    with wrap_read_errors(table, "a table of positions"):
        cells = _read_cells(table).reindex(adata.obs_names)
        adata.obs = cells.drop(columns=_PIXELS, errors="ignore")
        if {*_PIXELS} <= {*cells}:
            adata.obsm[POSITIONS] = cells[_PIXELS].to_numpy(np.float64)
    if n_lost := int(cells.isna().all(axis=1).sum()):
        notes.append(f"{n_lost:,} of {len(cells):,} rows are not in {table.name}.")
    if table.parent != folder:
        try:
            adata.uns[POSITIONS] = {name: _read_library(table.parent)}
        except DataError as error:
            notes.append(f"The picture was left out: {error}")
    return adata, notes


def _list_bins(folder: Path) -> list[Path]:
    """Return the folders of Visium HD's bins in a folder, sorted by their size."""
    bins = sorted((folder / _BINS).glob("square_*um"))
    return [one for one in bins if _has_parts(one)]


def _has_parts(folder: Path) -> bool:
    """Return whether a folder has counts and a table of positions."""
    return _find_table(folder) is not None and _find_counts(folder) is not None


def _find_table(folder: Path) -> Path | None:
    """Return the table of cells or spots of a folder; None without any."""
    return next((x for x in map(folder.joinpath, _TABLES) if x.is_file()), None)


def _find_counts(folder: Path) -> Path | None:
    """Return the .h5 file of counts of a folder, else its matrix folder, else None."""
    for name in _COUNTS:
        files = [*sorted(folder.glob(f"*{name}.h5")), folder / name]
        for one in files:
            if one.is_file() or (one.is_dir() and find_matrix_files(one)):
                return one
    return None


def _read_cells(path: Path) -> pd.DataFrame:
    """Return the table of cells or spots, by the name of the cell or spot.

    Raises ValueError without unique names.
    """
    if path.name.endswith("_list.csv"):
        text = io.BytesIO(read_unpacked(path, _LINE_RATIO))
        cells = pd.read_csv(text, header=None, names=[*_SPOTS, *_PIXELS[::-1]])
    else:
        cells = read_frame(path)
    key = next(x for x in ("barcode", "cell_id", cells.columns[0]) if x in cells)
    names = [x.decode() if isinstance(x, bytes) else str(x) for x in cells[key]]
    cells = cells.drop(columns=[key]).set_axis(pd.Index(names), axis="index")
    if not cells.index.is_unique:
        raise ValueError(f"names of {key} are repeated")
    return cells


def _read_library(folder: Path) -> dict[str, Any]:
    """Return the largest picture and the scale factors of Visium, as scanpy has them.

    Raises DataError if one of them is missing, damaged or too large.
    """
    import imageio.v3 as imageio

    scales = folder / "scalefactors_json.json"
    names = {kind: folder / f"tissue_{kind}_image.png" for kind in PICTURES}
    kind = next((kind for kind, path in names.items() if path.is_file()), None)
    if kind is None or not scales.is_file():
        raise DataError(f"{folder.name} has no picture with {scales.name}.")
    with wrap_read_errors(names[kind], "a picture"):
        content = read_unpacked(names[kind])  # imageio leaves a damaged file open
        check_picture_size(imageio.improps(content).shape)
        pixels = imageio.imread(content)
    with wrap_read_errors(scales, "a list of scale factors"):
        factors = {k: float(x) for k, x in json.loads(scales.read_bytes()).items()}
    return {"images": {kind: pixels}, "scalefactors": factors}
