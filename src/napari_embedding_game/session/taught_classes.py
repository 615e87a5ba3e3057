"""Classes of all rows of a dataset, learned from examples among them."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_embedding_game.core.inspect.teaching import Learned, learn
from napari_embedding_game.data.dataset import Dataset, Examples
from napari_embedding_game.data.stages import Stage, Stages, finish


def learn_examples(dataset: Dataset, examples: Examples) -> Stages[Learned]:
    """Learn the classes of all rows of a dataset from examples among them.

    Examples that are no rows of it are passed over.

    Raises
    ------
    InputError
        If there are fewer than two classes.
    """
    points = [rows_of(dataset, rows) for rows in examples.values()]
    filled = [np.flatnonzero(one) for one in points if one.any()]
    rows = np.concatenate([*filled, np.zeros(0, np.intp)])
    codes = np.repeat(np.arange(len(filled)), [len(one) for one in filled])
    steps = learn(dataset.X, rows, codes, is_scaled=has_unit(dataset))
    while True:
        try:
            share = next(steps)
        except StopIteration as end:
            learned: Learned = end.value
            return learned
        yield Stage("Learning", share)


def has_unit(dataset: Dataset) -> bool:
    """Return whether what is embedded has a common unit, as components have."""
    return (
        dataset.space.startswith("obsm[")
        or "recipe" in dataset.provenance
        or dataset.images is not None
    )


def teach_again(dataset: Dataset, taught: Mapping[str, Examples]) -> None:
    """Learn classes anew on data that were read again, as columns of the metadata."""
    for name, examples in taught.items():
        present = {
            key: rows for key, rows in examples.items() if rows_of(dataset, rows).any()
        }
        if len(present) < 2 or dataset.is_distances:
            continue
        add_classes(dataset, name, finish(learn_examples(dataset, examples)), examples)


def add_classes(
    dataset: Dataset, name: str, learned: Learned, examples: Examples
) -> str:
    """Make learned classes columns of the metadata; return what they are called."""
    present = [key for key, rows in examples.items() if rows_of(dataset, rows).any()]
    classes = pd.Categorical.from_codes(learned.codes, present)
    return dataset.add_taught(name, classes, learned.confidence, examples)


def rows_of(dataset: Dataset, rows: Collection[int]) -> NDArray[np.bool_]:
    """(n,) whether each row of a dataset is one of these rows of its source."""
    mask = np.zeros(dataset.n_source_rows, bool)
    mask[list(rows)] = True
    return np.asarray(mask[dataset.kept])
