"""Read the table beside an array file, which holds texts and metadata.

``letters.npz`` is accompanied by ``letters_text.csv`` or ``letters_obs.csv`` (or
.tsv, .parquet, each also with .gz), row by row; deep features ``cells.npy`` by
``cells_labels.csv``, or ``cells.csv`` where that has as many rows, which say of which
object each row is.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pandas as pd

from napari_embedding_game.data.columns import as_metadata, texts
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.formats.table_files import NOTES, read_frame

_NAMES = ("_text", "_texts", "_obs", "_metadata")
_OF_OBJECTS = ("_labels", "_label", "_ids", "_objects")
"""What a table is called that says which object each row of an array is."""
# Columns under these names say which row of the source a row is.
_ROW_NAMES = re.compile(
    r"^(unnamed: 0.*|(row|obs|sample|cell|image)?[_\- .]?(id|index|name|number)|row)?$",
    re.IGNORECASE,
)
_ENDINGS = (".csv", ".tsv", ".parquet", ".csv.gz", ".tsv.gz", ".parquet.gz")


def companion_of(path: Path) -> Path | None:
    """Table that lies beside a file and has its name, if there is one."""
    for name in (*_NAMES, *_OF_OBJECTS, ""):
        for ending in _ENDINGS:
            beside = path.with_name(f"{path.stem}{name}{ending}")
            if beside.is_file():
                return beside
    return None


def add_companion(dataset: Dataset, path: Path, of: Path) -> Dataset:
    """Return the dataset of a file `of` with the columns of its companion.

    The table's rows are those of the source: by a column of row numbers, or of the
    names of the source's rows, where it has one; else in its order.  In a table that
    tells the objects of the rows ids are no numbers of rows.  A column of texts becomes
    the texts of the rows.  Columns that are there already stay.  A table that only has
    the file's name may be about anything else, and is passed over with a note where it
    does not fit.

    Raises
    ------
    DataError
        If the table has another number of rows or cannot be read.
    """
    kind = path.name.removeprefix(of.stem).split(".")[0]
    try:
        return _with_table(dataset, path, has_row_numbers=kind in _NAMES)
    except DataError as error:
        if kind:
            raise
        told = f"Not taken: the table beside it. {error}"
        return replace(dataset, notes=(*dataset.notes, told))


def _with_table(dataset: Dataset, path: Path, *, has_row_numbers: bool) -> Dataset:
    frame = read_frame(path)
    notes = frame.attrs.get(NOTES, [])
    if len(frame) != dataset.n_source_rows:
        raise DataError(
            f"{path.name} has {len(frame):,} rows and {dataset.name} has "
            f"{dataset.n_source_rows:,}: give a table with a row for each."
        )
    if has_row_numbers:
        frame, order_notes = _in_order(frame, dataset.source_obs_names, path.name)
        notes = [*order_notes, *notes]
    frame.columns = frame.columns.astype(str)
    new = [name for name in frame.columns if name not in dataset.obs]
    added = pd.DataFrame({name: as_metadata(frame[name]) for name in new})
    source_obs = dataset.source_obs
    if source_obs is not None:
        source_obs = _beside(source_obs, added)
    obs = _beside(dataset.obs, added[dataset.kept])
    told = f"With {', '.join(new)} from {path.name}."
    return replace(
        dataset,
        obs=obs,
        source_obs=source_obs,
        texts=texts(obs) if dataset.texts is None else dataset.texts,
        notes=(*dataset.notes, told, *notes),
    )


def _beside(obs: pd.DataFrame, added: pd.DataFrame) -> pd.DataFrame:
    """Return both side by side, by place, as names of rows may occur twice."""
    return pd.concat([obs, added.set_axis(obs.index)], axis="columns")


def _in_order(
    frame: pd.DataFrame, names: pd.Index, where: str
) -> tuple[pd.DataFrame, list[str]]:
    """Rows in the order of the source's names, and a note if they were in another."""
    wanted = pd.Index(names.astype(str))
    from_zero = pd.Index([str(i) for i in range(len(wanted))])
    for column in frame.columns:
        if not _ROW_NAMES.match(str(column)) or not wanted.is_unique:
            continue
        told = pd.Index(_as_texts(frame[column]))
        for order in (wanted, from_zero):
            if not told.is_unique or set(told) != set(order) or told.equals(order):
                continue
            rows = frame.iloc[told.get_indexer(order)]
            return rows, [f"Rows of {where} joined by its column {column}."]
    return frame, []


def _as_texts(column: pd.Series) -> list[str]:
    numbers = pd.to_numeric(column.astype(object), errors="coerce")
    if numbers.notna().all() and (numbers % 1 == 0).all():
        return [str(int(number)) for number in numbers]
    return [str(value) for value in column]
