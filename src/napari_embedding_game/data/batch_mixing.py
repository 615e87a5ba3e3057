"""Mix the batches of components that a file came with.

The recipe for raw counts mixes those that it computes itself.
"""

from __future__ import annotations

from dataclasses import replace
from importlib import metadata

import numpy as np
import scipy.sparse as sp

from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.harmony import (
    SEED,
    check_batches,
    mixed_by_harmony,
    told_of_batches,
)
from napari_embedding_game.data.read_options import ReadOptions
from napari_embedding_game.data.recipe import Prepared
from napari_embedding_game.data.stages import Stages


def can_mix(dataset: Dataset) -> bool:
    """Return whether a dataset holds components that a file came with."""
    is_dense = not dataset.is_distances and not sp.issparse(dataset.X)
    return dataset.space.startswith("obsm[") and is_dense and dataset.X.shape[1] > 1


def with_batches_mixed(
    dataset: Dataset, key: str, made: Prepared | None = None
) -> Stages[Dataset]:
    """Return a dataset whose components have the batches of a column mixed.

    Parameters
    ----------
    dataset : Dataset
        Of components that a file came with: :func:`can_mix`.
    key : str
        Column of its ``obs``.
    made : Prepared, optional
        What came of the same another time.

    Raises
    ------
    DataError
        These are no components, the column names no batches, or there is no harmonypy.
    """
    if not can_mix(dataset):
        raise DataError(
            f"Harmony mixes batches in components, such as obsm['X_pca'], and not in "
            f"{dataset.space} of {dataset.name}: choose another space."
        )
    check_batches(dataset.obs, key, dataset.name)
    if made is not None and np.array_equal(made.kept, dataset.kept):
        mixed = made.X
    else:
        mixed = yield from mixed_by_harmony(dataset.X, dataset.obs, key)
    return replace(
        dataset,
        X=mixed,
        space=f'{dataset.space}, "{key}" mixed by Harmony',
        read_options=replace(dataset.read_options or ReadOptions(), batch_key=key),
        notes=(*dataset.notes, told_of_batches(key)),
        provenance={
            **dataset.provenance,
            "harmony": {
                "batch_key": key,
                "space": dataset.space,
                "random_state": SEED,
                "harmonypy": metadata.version("harmonypy"),
            },
        },
    )
