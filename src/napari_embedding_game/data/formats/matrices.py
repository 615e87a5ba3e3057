"""Build a Dataset from a matrix of numbers with metadata of its rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from napari_embedding_game.data.columns import chosen_places, listed, texts
from napari_embedding_game.data.dataset import (
    MISSING_VALUES,
    Dataset,
    Matrix,
    is_of_pairs,
)
from napari_embedding_game.data.read_options import ReadOptions
from napari_embedding_game.data.validation import check_values, usable_rows


def from_matrix(
    X: Matrix,
    obs: pd.DataFrame,
    var_names: Sequence[str],
    space: str,
    where: str,
    options: ReadOptions,
    *,
    name: str,
    source: Path | None,
    notes: Sequence[str] = (),
    **more: Any,
) -> Dataset:
    """Return the dataset of the usable rows of a matrix; checks what it holds.

    ``X`` (N, D) is as :func:`~.validation.as_rows` makes it, `where` is the subject of
    sentences, and `more` is as for :meth:`Dataset.from_rows`.

    Raises DataError if values are missing, all rows are the same, or there is no such
    column.
    """
    notes, chosen = list(notes), options.columns
    if chosen is not None and not is_of_pairs(space):
        places = chosen_places(var_names, chosen, where)
        n_all, var_names = len(var_names), [var_names[place] for place in places]
        X = X[:, places]
        notes.append(
            f"Embedded: {len(places)} of {n_all} columns of {space} "
            f"({listed(var_names)})."
        )
    are_empty = _without_values(X, space)
    filled = np.where(are_empty[:, None], 0, X) if are_empty.any() else X
    kept, row_notes = usable_rows(
        filled,
        where,
        row_names=obs.index,
        var_names=var_names,
        missing=options.missing,
    )
    left_out = {f"no values in {space}": are_empty, MISSING_VALUES: ~kept}
    if are_empty.any():
        kept = kept & ~are_empty
        notes.append(
            f"{np.count_nonzero(are_empty):,} of {len(obs):,} rows left out, of which "
            f"{space} has no values."
        )
    dataset = Dataset.from_rows(
        name=name,
        X=X,
        obs=obs,
        var_names=var_names,
        space=space,
        kept=kept,
        source=source,
        notes=(*notes, *row_notes),
        texts=texts(obs),
        left_out=left_out,
        **more,
    )
    check_values(dataset.X, f"{where} ({space})")
    return dataset


def _without_values(X: Matrix, space: str) -> NDArray[np.bool_]:
    """Rows that a space says nothing of, as whoever made it left them out."""
    none = np.zeros(X.shape[0], bool)
    if not space.startswith("obsm") or sp.issparse(X):
        return none
    are_empty = np.isnan(X).all(axis=1)
    return are_empty if np.count_nonzero(are_empty) <= X.shape[0] - 2 else none
