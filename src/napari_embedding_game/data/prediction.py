"""Labels of cells predicted from a reference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_embedding_game.data.dataset import CONFIDENCE, AddedColumns, Dataset

PREDICTED = "_predicted"
"""Suffix of the name of a column with predicted labels."""
OR_UNLIKE, REFERENCE = "_or_unlike", "_reference"
"""Suffixes of the names of columns that mark cells unlike the reference: with the
labels of the other cells, and without."""
LIKE, UNLIKE = "like the reference", "unlike the reference"


@dataclass(frozen=True, eq=False)
class PredictedLabels:
    """Labels that the cells of a reference voted for, with their reliability.

    Of n rows, see :mod:`~napari_embedding_game.session.reference.mapping`.
    """

    record: AddedColumns
    """Column and reference that were predicted from."""
    labels: pd.Categorical
    """(n,) predicted label of each row."""
    confidence: NDArray[np.float32]
    """(n,) share of the votes for the label, 0 to 1."""
    likeness: NDArray[np.float32]
    """(n,) share of the reference's cells that are as unlike the others, 0 to 1."""
    distance: NDArray[np.float32]
    """(n,) mean distance to the nearest reference cells, 1 as among reference cells."""
    unlike: NDArray[np.bool_]
    """(n,) whether the reference has no cells like this row."""

    @property
    def columns_by_suffix(self) -> Mapping[str, Any]:
        """Six columns of n values, keyed by the suffix to append to the base name."""
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
    """Return the dataset with columns of predicted labels, and the first one's name.

    The name is ``<label>_predicted``, with "_" for "/". Columns of a former prediction
    of this name are replaced; if the file has such a column, the name gets a number.
    Confidence, likeness and distance, and marks of unlike cells, are further columns.
    """
    # an .h5ad key has no slash.
    name = predicted.record.label.replace("/", "_") + PREDICTED
    return dataset.with_columns(name, predicted.columns_by_suffix, predicted.record)
