"""Labels of cells that were predicted from a reference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_embedding_game.data.dataset import CONFIDENCE, AddedColumns, Dataset

PREDICTED = "_predicted"
"""Ends the name of the column with predicted labels."""
OR_UNLIKE, REFERENCE = "_or_unlike", "_reference"
"""End the names of those that tell which cells are unlike any, with and without."""
LIKE, UNLIKE = "like the reference", "unlike the reference"


@dataclass(frozen=True, eq=False)
class PredictedLabels:
    """Labels that the cells of a reference voted for, and how far they hold.

    Of n rows, see :mod:`~napari_embedding_game.session.reference.mapping`.
    """

    how: AddedColumns
    """From which column of which reference."""
    labels: pd.Categorical
    """(n,)"""
    confidence: NDArray[np.float32]
    """(n,) share of the votes, 0 to 1."""
    likeness: NDArray[np.float32]
    """(n,) share of the reference's cells that are as unlike the others, 0 to 1."""
    distance: NDArray[np.float32]
    """(n,) mean distance to the nearest cells of it, 1 as between those."""
    unlike: NDArray[np.bool_]
    """(n,) whether it has none like them."""

    @property
    def columns_by_suffix(self) -> Mapping[str, Any]:
        """(n,) each: by the ending of the column that they go into."""
        are_unlike = pd.Categorical.from_codes(self.unlike.astype(int), [LIKE, UNLIKE])
        names = list(dict.fromkeys([*self.labels.categories, UNLIKE]))
        codes = np.where(self.unlike, names.index(UNLIKE), self.labels.codes)
        return {
            "": self.labels,
            CONFIDENCE: self.confidence,
            REFERENCE: are_unlike,
            OR_UNLIKE: pd.Categorical.from_codes(codes, names),
            "_likeness": self.likeness,
            "_distance": self.distance,
        }


def with_predicted_labels(
    dataset: Dataset, predicted: PredictedLabels
) -> tuple[Dataset, str]:
    """Return the data with predicted labels of the n rows, and their column's name.

    That is ``<label>_predicted``, with a number where the file has such a column;
    confidence, likeness and distance are beside it.
    """
    name = predicted.how.label.replace("/", "_") + PREDICTED  # as .h5ad needs it
    return dataset.with_columns(name, predicted.columns_by_suffix, predicted.how)
