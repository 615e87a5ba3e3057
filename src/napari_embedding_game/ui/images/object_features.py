"""Write clusters and positions of the map into the features of a Labels layer."""

from __future__ import annotations

import numpy as np
import pandas as pd
from napari.layers import Labels
from numpy.typing import NDArray

from napari_embedding_game.data.columns import KEY, is_own_map_column

INDEX = "index"
"""The column of a Labels layer's features that has the labels."""


def write_map_features(
    labels: Labels,
    label_ids: NDArray[np.integer],
    clusters: pd.Categorical,
    embedding: NDArray[np.floating],
) -> None:
    """Write cluster and position of each object into the features of its label.

    The columns are ``embedding_game_cluster`` and ``embedding_game_x`` and so on; those
    of a former map are replaced, and the other columns stay.  Without features, a table
    with the objects' labels is made.  Nothing is written where two rows have the same
    label, as in a time series: the table has one row for each label.

    Parameters
    ----------
    labels : Labels
        The layer of the objects.
    label_ids : array of shape (n,)
        Label of each row; 0 for a row without an object.
    clusters : Categorical of length n
        Names of the clusters.
    embedding : array of shape (n, 2) or (n, 3)
        Positions on the map.
    """
    names = [f"{KEY}_{axis}" for axis in "xyz"[: embedding.shape[1]]]
    ours = pd.DataFrame(embedding, index=label_ids, columns=names)
    ours.insert(0, f"{KEY}_cluster", np.asarray(clusters, dtype=object))
    ours = ours[ours.index != 0]
    if not ours.index.is_unique:
        return
    table = labels.features
    theirs = table.drop(columns=[name for name in table if is_own_map_column(name)])
    if theirs.columns.empty:
        theirs = pd.DataFrame({INDEX: np.sort(ours.index)})
    # napari takes the number of a row for its label where there is no such column.
    keys = theirs[INDEX] if INDEX in theirs else pd.RangeIndex(len(theirs))
    written = ours.reindex(keys).set_axis(theirs.index).fillna({f"{KEY}_cluster": ""})
    labels.features = pd.concat([theirs, written], axis=1)
