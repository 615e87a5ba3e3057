"""A table beside an array: texts and metadata that its file cannot hold.

``letters.npz`` is accompanied by ``letters_text.csv`` or ``letters_obs.csv`` (or
.tsv, .parquet, each also with .gz), row by row.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd

from .columns import as_metadata, texts
from .dataset import Dataset
from .errors import DataError
from .table_files import NOTES, read_frame

_NAMES = ("_text", "_texts", "_obs", "_metadata")
_ENDINGS = (".csv", ".tsv", ".parquet", ".csv.gz", ".tsv.gz", ".parquet.gz")


def companion_of(path: Path) -> Path | None:
    """Table that lies beside a file and has its name, if there is one."""
    for name in _NAMES:
        for ending in _ENDINGS:
            beside = path.with_name(f"{path.stem}{name}{ending}")
            if beside.is_file():
                return beside
    return None


def add_table(dataset: Dataset, path: Path) -> Dataset:
    """Return the dataset with the columns of a table as further metadata.

    The table's rows are those of the source, in its order; a column of texts
    becomes the texts of the rows.  Columns that are there already stay.

    Raises
    ------
    DataError
        If the table has another number of rows or cannot be read.
    """
    frame = read_frame(path)
    notes = frame.attrs.get(NOTES, [])
    if len(frame) != dataset.n_source_rows:
        raise DataError(
            f"{path.name} has {len(frame):,} rows and {dataset.name} has "
            f"{dataset.n_source_rows:,}: give a table with a row for each."
        )
    frame = frame.set_axis(dataset.source_obs_names, axis="index")
    frame.columns = frame.columns.astype(str)
    obs = dataset.obs
    new = [name for name in frame.columns if name not in obs]
    added = pd.DataFrame({name: as_metadata(frame[name]) for name in new})
    # By place, because names of rows may occur twice.
    kept = added[dataset.kept].set_axis(obs.index, axis="index")
    obs = pd.concat([obs, kept], axis="columns")
    source_obs = dataset.source_obs
    if source_obs is not None:
        added.index = source_obs.index
        source_obs = pd.concat([source_obs, added], axis="columns")
    return replace(
        dataset,
        obs=obs,
        source_obs=source_obs,
        texts=texts(obs) if dataset.texts is None else dataset.texts,
        notes=(*dataset.notes, f"With {', '.join(new)} from {path.name}.", *notes),
    )
