"""Read a file and join its rows with the objects of a label image."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd

from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.formats.tables import (
    NO_OBJECT,
    KnownRows,
    read_frame,
)
from napari_embedding_game.data.images.join import Join, JoinRequest, join, linked
from napari_embedding_game.data.loading import load_with_choices
from napari_embedding_game.data.read_options import ReadOptions
from napari_embedding_game.data.read_result import ReadResult
from napari_embedding_game.data.readers import is_table
from napari_embedding_game.data.reading_process import read_apart
from napari_embedding_game.data.stages import Stage, Stages

ROW_NAMES = "(row names)"
"""Stands among the columns for the names of an AnnData's rows."""
FINDING = Stage("Finding the objects")


def load_joined(
    path: Path, request: JoinRequest, options: ReadOptions
) -> Stages[ReadResult]:
    """Load a file in stages, with the label and the bounding box of each row.

    The rows are objects where there is a match; its sentences, or why there is none,
    are among the notes of the dataset.
    """
    if is_table(path):
        yield Stage(f"Reading {path.name}")
        frame = yield from read_apart(path, read_frame)
        yield FINDING
        found = join(frame, request, path.name)
        rows = KnownRows(frame, found.column, found.left_out)
        if found.objects is not None:
            options = replace(options, id_column=found.column)
        result = yield from load_with_choices(path, options, rows=rows)
    else:
        result = yield from load_with_choices(path, options)
        yield FINDING
        found = join(_table_of(result.dataset), request, path.name)
    return replace(result, dataset=joined(result.dataset, found), join=found)


def joined(dataset: Dataset, found: Join) -> Dataset:
    """Return a dataset with the objects of its rows, or with the reason why not."""
    if found.left_out is None:
        is_told = found.refusal and not found.request.is_guess
        notes = (found.refusal, *dataset.notes) if is_told else dataset.notes
        return replace(dataset, notes=notes)
    background = found.left_out[dataset.kept]
    if background.any():
        dataset = dataset.subset(~background, why=NO_OBJECT)
    return linked(dataset, found)


def _table_of(dataset: Dataset) -> pd.DataFrame:
    """Return the metadata of all rows of the source, with names that are numbers."""
    obs, source = dataset.source_obs, dataset.source
    if obs is None:
        return pd.DataFrame(index=range(dataset.n_source_rows))
    if source is None or source.suffix.lower() not in (".h5ad", ".zarr"):
        return obs
    return obs.assign(**{ROW_NAMES: obs.index})
