"""Whether datasets are of one source, and which rows are the same."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.data.dataset import Dataset


def is_same_source(one: Dataset, other: Dataset) -> bool:
    """Return whether two datasets hold rows of the same source."""
    return one.n_source_rows == other.n_source_rows and bool(
        np.array_equal(one.source_obs_names, other.source_obs_names)
    )


def has_same_rows(one: Dataset, other: Dataset) -> bool:
    """Return whether two datasets of a source have the same rows and numbers."""
    if one.space != other.space or not np.array_equal(one.kept, other.kept):
        return False
    X, Y = one.X, other.X
    if X is Y or X.shape != Y.shape or type(X) is not type(Y):
        return X is Y
    parts = [(X, Y)]
    if not isinstance(X, np.ndarray):
        parts = [(X.data, Y.data), (X.indices, Y.indices), (X.indptr, Y.indptr)]
    return all(np.array_equal(a, b) for a, b in parts)


def rows_in(one: Dataset, other: Dataset) -> NDArray[np.intp]:
    """Return the row of another dataset of the same source for each row, or -1."""
    places = np.full(other.n_source_rows, -1)
    places[other.kept] = np.arange(len(other.obs))
    rows: NDArray[np.intp] = places[one.kept]
    return rows
