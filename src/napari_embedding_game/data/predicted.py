"""Labels of cells that were predicted from a reference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

PREDICTED = "_predicted"
"""Ends the name of the column with predicted labels."""
OR_UNLIKE = "_or_unlike"
"""Ends the name of the column that tells besides which cells are unlike any."""
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

    def take(self, rows: NDArray[np.bool_]) -> PredictedLabels:
        """Return those of the rows where `rows` (n,) is True."""
        return replace(
            self,
            codes=self.codes[rows],
            confidence=self.confidence[rows],
            likeness=self.likeness[rows],
            distance=self.distance[rows],
            unlike=self.unlike[rows],
        )

    @property
    def columns(self) -> Mapping[str, Any]:
        """(n,) each: by the ending of the column that they go into."""
        return {
            "": pd.Categorical.from_codes(self.codes, list(self.names)),
            "_confidence": self.confidence,
            "_reference": pd.Categorical.from_codes(
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
