"""Read a file and join its rows with the objects of a label image."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from napari_embedding_game.data.columns import FIRST
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.formats.tables import NO_OBJECT
from napari_embedding_game.data.images.join import (
    Join,
    JoinRequest,
    join,
    linked,
)
from napari_embedding_game.data.loading import load_with_choices
from napari_embedding_game.data.read_options import ReadOptions
from napari_embedding_game.data.read_result import ReadResult
from napari_embedding_game.data.readers import is_table
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
    is_of_columns = is_table(path)
    if not is_of_columns:
        result = yield from load_with_choices(path, options)
    else:
        options = replace(options, id_column=request.column or options.id_column)
        look = replace(options, missing="drop")
        result = yield from load_with_choices(path, look)
    yield FINDING
    dataset = result.dataset
    found = join(_table_of(dataset, is_of_columns), request, path.name)
    if is_of_columns:
        is_other = options.missing != "drop" and not dataset.kept.all()
        if found.left_out is not None and found.column != options.id_column:
            options = replace(options, id_column=found.column)
            is_embedded = found.column in dataset.profile_names
            is_other |= is_embedded or bool(found.left_out.any())
        if is_other:  # ids measure nothing, and what misses values is told now
            result = yield from load_with_choices(path, options)
        else:
            result = replace(result, dataset=replace(dataset, read_options=options))
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


def _table_of(dataset: Dataset, is_of_columns: bool) -> pd.DataFrame:
    """Return what all rows of the source are told by, with names that are numbers."""
    obs, source = dataset.source_obs, dataset.source
    if obs is None:
        return pd.DataFrame(index=range(dataset.n_source_rows))
    if is_of_columns:  # whole numbers under another name were embedded
        places = np.flatnonzero(dataset.kept)
        values = pd.DataFrame(dataset.profile, places, list(dataset.profile_names))
        whole = values.loc[:, (values.head(FIRST) % 1 == 0).all()]
        parts = [obs.reset_index(drop=True), whole.reindex(range(len(obs)))]
        return pd.concat(parts, axis="columns")
    if source is None or source.suffix.lower() not in (".h5ad", ".zarr"):
        return obs
    return obs.assign(**{ROW_NAMES: obs.index})
