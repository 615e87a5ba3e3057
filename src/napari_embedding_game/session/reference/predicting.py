"""Labels of the cells of an open map, predicted from a reference."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from napari_embedding_game.data.as_anndata import as_anndata
from napari_embedding_game.data.columns import KEY
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.predicted import PredictedLabels
from napari_embedding_game.data.reading_process import read_apart
from napari_embedding_game.data.stages import Stages
from napari_embedding_game.session.reference.mapping import MappedCells, map_cells
from napari_embedding_game.session.reference.new_cells import NewCells, read_whole
from napari_embedding_game.session.reference.reference_map import (
    ReferenceMap,
    reference_of,
)

SURE = 0.8
"""Share of the votes from which on a label is told to be clear."""


def load_reference(path: Path) -> Stages[ReferenceMap]:
    """Read the reference of an .h5ad file, in stages.

    Raises
    ------
    DataError
        There is no map in it, or new cells cannot be projected into its space.
    """
    adata = yield from read_apart(path, read_whole)
    return reference_of(adata, path.name)


def predict_labels(
    dataset: Dataset,
    reference: ReferenceMap,
    path: Path,
    label: str,
    *,
    correct_batch: bool = False,
) -> Stages[tuple[PredictedLabels, tuple[str, ...]]]:
    """Predict a label of each cell of a dataset, in stages.

    Parameters
    ----------
    dataset : Dataset
        With expression of genes.
    reference : ReferenceMap
    path : Path
        Its file.
    label : str
        Column of the reference.
    correct_batch : bool
        As in :func:`~.mapping.map_cells`.

    Returns
    -------
    PredictedLabels
    tuple of str
        Sentences that a person has to know.

    Raises
    ------
    DataError
        The genes do not fit, or there is no such column.
    """
    cells = NewCells(dataset.name, as_anndata(dataset))
    mapped = yield from map_cells(
        reference, cells, [label], correct_batch=correct_batch
    )
    found = labels_of(mapped, path, label, correct_batch=correct_batch)
    return found, mapped.notes


def labels_of(
    mapped: MappedCells, path: Path, label: str, *, correct_batch: bool
) -> PredictedLabels:
    """Return the labels of new cells that were mapped onto the reference of a file."""
    texts = pd.Categorical(mapped.labels[label])
    told = texts.remove_categories([one for one in texts.categories if one == ""])
    return PredictedLabels(
        reference=str(path),
        label=label,
        correct_batch=correct_batch,
        names=tuple(map(str, told.categories)),
        codes=np.asarray(told.codes, np.int32),
        confidence=mapped.confidence[label].astype(np.float32),
        likeness=mapped.likeness.astype(np.float32),
        distance=mapped.distance.astype(np.float32),
        unlike=mapped.unlike,
    )


def first_label(reference: ReferenceMap) -> str | None:
    """Return the column that is predicted most likely: one that a person made."""
    columns = reference.label_columns
    by_person = [name for name in columns if not name.startswith(KEY)]
    kinds = [n for n in by_person if "type" in n.lower() or "label" in n.lower()]
    clusters = [name for name in columns if name == f"{KEY}_cluster"]
    return next(iter([*kinds, *clusters, *by_person]), None)


def told_of(found: PredictedLabels, reference: ReferenceMap) -> str:
    """Return a sentence on how far predicted labels can be believed."""
    n = len(found.codes)
    clear, unlike = float((found.confidence >= SURE).mean()), int(found.unlike.sum())
    return (
        f"{found.label} of {reference.name} for {n:,} cells: {clear:.0%} with at least "
        f"{SURE:.0%} of the votes. {unlike:,} ({unlike / n:.1%}) are unlike anything "
        "in it."
    )


def add_again(dataset: Dataset, predicted: Mapping[str, PredictedLabels]) -> None:
    """Add labels that were predicted before to data that were read again."""
    for one in predicted.values():
        dataset.add_predicted(one)
