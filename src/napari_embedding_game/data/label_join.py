"""Read a file and join its rows with the objects of a label image."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd

from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.formats import tables
from napari_embedding_game.data.images.join import Join, JoinRequest, join_with_labels
from napari_embedding_game.data.loader import apply_recipe_or_mixing, load_read_result
from napari_embedding_game.data.read_options import ReadOptions
from napari_embedding_game.data.read_result import ReadResult
from napari_embedding_game.data.readers import is_table_file
from napari_embedding_game.data.reading_process import read_in_process
from napari_embedding_game.data.stages import Stage, Stages

ROW_NAMES = "(row names)"
"""Name of the pseudo-column that holds the row names."""
FINDING_STAGE = Stage("Finding the objects")


def load_with_labels(
    path: Path, request: JoinRequest, options: ReadOptions
) -> Stages[ReadResult]:
    """Load a file in stages, with the label and bounding box of the object of each row.

    Rows get objects if the join succeeds, and rows about the background are left out.
    The notes of the dataset say how many rows match or, unless the join is automatic,
    why it was refused; ``join`` of the result has all details.
    """
    if is_table_file(path):
        return (yield from _load_table_with_labels(path, request, options))
    result = yield from load_read_result(path, options)
    yield FINDING_STAGE
    link = join_with_labels(
        _collect_identifying_columns(result.dataset), request, path.name
    )
    return replace(result, dataset=apply_join(result.dataset, link), join=link)


def _load_table_with_labels(
    path: Path, request: JoinRequest, options: ReadOptions
) -> Stages[ReadResult]:
    """Load a table, and join it before its numbers are checked.

    So the column of ids is known, and not embedded: the joined one, else the requested
    one, else that of the options.
    """
    frame = yield from read_in_process(path, tables.read_frame)
    yield FINDING_STAGE
    table, _ = tables.split_off_row_names(frame, path.name)
    # The first column became row names; ImageJ's are ids.
    if table.shape[1] < frame.shape[1]:
        table = table.assign(**{ROW_NAMES: table.index})
    link = join_with_labels(table, request, path.name)
    column = link.column or request.column or options.id_column
    options = replace(options, id_column=column)
    yield Stage("Checking the numbers")
    result = tables.result_from_file_frame(frame, path, options)
    dataset = replace(result.dataset, read_options=options)
    result = yield from apply_recipe_or_mixing(
        replace(result, dataset=dataset), options
    )
    return replace(result, dataset=apply_join(result.dataset, link), join=link)


def apply_join(dataset: Dataset, join: Join) -> Dataset:
    """Return a dataset with the objects of its rows, and sentences on the matches.

    Rows about the background are left out. If the join was refused, the dataset gets a
    note on the refusal, but none where the join was automatic.
    """
    if join.left_out is None:
        is_reported = join.refusal and not join.request.is_guess
        notes = (join.refusal, *dataset.notes) if is_reported else dataset.notes
        return replace(dataset, notes=notes)
    background = join.left_out[dataset.kept]
    if background.any():
        dataset = dataset.subset(
            ~background, reason=tables.NO_OBJECT
        ).with_own_matrices()
    return replace(
        dataset,
        source_objects=join.objects,
        notes=(*join.sentences, *dataset.notes),
        provenance={**dataset.provenance, "linked": {"column": join.column or ""}},
    )


def _collect_identifying_columns(dataset: Dataset) -> pd.DataFrame:
    """Return the metadata of all source rows, in which ids are sought.

    Of .h5ad and .zarr row names are a column, too. Without metadata the table has rows
    only.
    """
    obs, source = dataset.source_obs, dataset.source
    if obs is None:
        return pd.DataFrame(index=range(dataset.n_source_rows))
    if source is None or source.suffix.lower() not in (".h5ad", ".zarr"):
        return obs
    return obs.assign(**{ROW_NAMES: obs.index})
