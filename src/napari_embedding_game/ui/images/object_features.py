"""Write clusters and positions of the map into the features of linked layers."""

from __future__ import annotations

import numpy as np
import pandas as pd
from napari.layers import Labels, Layer, Tracks
from numpy.typing import NDArray

from napari_embedding_game.data.columns import KEY, is_own_map_column

INDEX = "index"
"""The column of a Labels layer's features that has the labels."""
SELECTED = f"{KEY}_selected"
"""The feature of a Tracks layer that is 1 for the selected tracks."""


def write_vertex_features(
    layer: Layer,
    rows: NDArray[np.intp],
    clusters: pd.Categorical,
    embedding: NDArray[np.floating],
) -> None:
    """Write cluster and position of each point's object into the layer's features.

    Columns are as in :func:`write_map_features`; points without a row have NaN and "".
    A Tracks layer has the number of the cluster in the list from 1, as napari cannot
    colour tracks by texts.

    ``layer``: a Points or Tracks layer. ``rows`` (V,): row of each point; -1 for none.
    ``clusters`` (n,): names. ``embedding``: (n, 2) or (n, 3).
    """
    is_found = rows >= 0
    columns = {
        f"{KEY}_{axis}": np.where(is_found, values[rows], np.float32(np.nan))
        for axis, values in zip("xyz", embedding.T, strict=False)
    }
    if isinstance(layer, Tracks):
        numbers = np.where(is_found, clusters.codes[rows] + 1, 0)
        # napari would sort a table that is set once more.
        table = layer.features
        for name, values in {f"{KEY}_cluster": numbers, **columns}.items():
            table[name] = values
        layer.events.properties()
        return
    names = np.where(is_found, np.asarray(clusters, dtype=object)[rows], "")
    ours = {f"{KEY}_cluster": names, **columns}
    layer.features = layer.features.drop(columns=[*ours], errors="ignore").assign(
        **ours
    )


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
