"""Labels of cells that were predicted from a reference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_embedding_game.data.dataset import CONFIDENCE, Added, Dataset

PREDICTED = "_predicted"
"""Ends the name of the column with predicted labels."""
OR_UNLIKE = "_or_unlike"
"""Ends the name of the column that tells besides which cells are unlike any."""
REFERENCE = "_reference"
"""Ends the name of the column that tells which cells are unlike the reference."""
LIKE, UNLIKE = "like the reference", "unlike the reference"


@dataclass(frozen=True, eq=False)
class PredictedLabels:
    """Labels that the cells of a reference voted for, and how far they hold.

    Of n rows, see :mod:`~napari_embedding_game.session.reference.mapping`.
    """

    reference: str
    """File of the reference: its path."""
    label: str
    """Column of the reference that was predicted."""
    correct_batch: bool
    """Whether a batch effect was taken away first."""
    names: tuple[str, ...]
    """(K,) the labels that occur."""
    codes: NDArray[np.int32]
    """(n,) place of the label among them, -1 for none."""
    confidence: NDArray[np.float32]
    """(n,) share of the votes, 0 to 1."""
    likeness: NDArray[np.float32]
    """(n,) share of the reference's cells that are as unlike the others, 0 to 1."""
    distance: NDArray[np.float32]
    """(n,) mean distance to the nearest cells of it, 1 as between those."""
    unlike: NDArray[np.bool_]
    """(n,) whether it has none like them."""

    @property
    def columns(self) -> Mapping[str, Any]:
        """(n,) each: by the ending of the column that they go into."""
        return {
            "": pd.Categorical.from_codes(self.codes, list(self.names)),
            CONFIDENCE: self.confidence,
            REFERENCE: pd.Categorical.from_codes(
                self.unlike.astype(np.int8), [LIKE, UNLIKE]
            ),
            OR_UNLIKE: self._or_unlike(),
            "_likeness": self.likeness,
            "_distance": self.distance,
        }

    def _or_unlike(self) -> pd.Categorical:
        """Return the labels, with another one for rows unlike the reference."""
        names = list(dict.fromkeys([*self.names, UNLIKE]))
        codes = np.where(self.unlike, names.index(UNLIKE), self.codes)
        return pd.Categorical.from_codes(codes.astype(np.int32), names)


def add_predicted(dataset: Dataset, predicted: PredictedLabels) -> str:
    """Add predicted labels of the n rows to ``obs``; return their column's name.

    It is ``<label>_predicted``, with a number where the file has such a column;
    confidence, likeness and distance are beside it.
    """
    wanted = predicted.label.replace("/", "_") + PREDICTED  # as .h5ad needs it
    how = Added(
        kind="predicted",
        reference=predicted.reference,
        label=predicted.label,
        correct_batch=predicted.correct_batch,
    )
    return dataset.add(wanted, predicted.columns, how)
