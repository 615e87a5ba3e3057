"""What is asked of the engine about the quality of the map of a session."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pandas as pd

if TYPE_CHECKING:
    from napari_embedding_game.core.inspect.map_quality import MapQuality
    from napari_embedding_game.session.session import Session

GIVEN = "precomputed"
"""The metric of distances that are given: then there are no rows to compare with."""


def label_column(session: Session) -> str | None:
    """Return the column of groups that the map is coloured by, if it is one."""
    dataset, column = session.dataset, session.look.color_by
    if dataset is None or column not in dataset.obs:
        return None
    is_of_groups = isinstance(dataset.obs[column].dtype, pd.CategoricalDtype)
    return column if is_of_groups else None


def is_comparable(session: Session) -> bool:
    """Return whether the rows of the data can be compared with the map."""
    dataset, played = session.dataset, session.played
    if dataset is None or played is None:
        return False
    return bool(dataset.X.shape[1]) and played.start.metric != GIVEN


def quality_job(session: Session) -> Callable[[], MapQuality | None] | None:
    """Return what works out the quality of the present map, for another thread.

    None where there is no map, or where its data are not there.
    """
    dataset, snapshot, played = session.dataset, session.snapshot, session.played
    if dataset is None or snapshot is None or played is None:
        return None
    if not is_comparable(session):
        return None
    X, embedding, metric = dataset.X, snapshot.embedding, played.start.metric
    column = label_column(session)
    labels = None if column is None else dataset.obs[column].cat.codes.to_numpy()

    def work_out() -> MapQuality | None:
        from napari_embedding_game.core.inspect.map_quality import map_quality

        return map_quality(
            X, embedding, labels, metric=metric, neighbors=snapshot.neighbors
        )

    return work_out
