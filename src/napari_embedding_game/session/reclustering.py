"""Cluster the selected points anew, where they are: no point moves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.inspect.recluster import recluster
from napari_embedding_game.core.threads import COMPUTING
from napari_embedding_game.data.errors import DataError

if TYPE_CHECKING:
    from napari_embedding_game.data.dataset import Dataset
    from napari_embedding_game.session.session import Session


@dataclass(frozen=True, eq=False)
class Reclustered:
    """The parts of some points."""

    dataset: Dataset
    """What they are rows of."""
    rows: NDArray[np.intp]
    """(m,)"""
    parts: NDArray[np.int32]
    """(m,) from 0, the largest first."""
    cluster: int | None
    """The cluster that they are the whole of; None of any other points."""


def reclustering(session: Session, n_parts: int) -> Callable[[], Reclustered]:
    """Return what finds so many clusters in the selection, to be called in any thread.

    Raises DataError: there is no map, nothing is selected, or the rows of the data are
    not there.
    """
    dataset, selection = session.dataset, session.selection
    if dataset is None or session.snapshot is None:
        raise DataError("Press Run first: points of a map are clustered.")
    rows = selection.rows
    if not len(rows):
        raise DataError("Select clusters or points first, for instance with the lasso.")
    if not dataset.X.shape[1]:
        raise DataError(dataset.missing_reason)
    if dataset.is_distances:
        raise DataError(
            "These data are distances, of which no landmarks can be fitted to a part: "
            "split the cluster instead."
        )
    clusters = selection.clusters
    cluster = clusters[0] if len(clusters) == 1 else None
    settings = session.made_with

    def find() -> Reclustered:
        with COMPUTING:
            parts = recluster(
                dataset.X[rows],
                n_parts,
                n_neighbors=settings.n_neighbors,
                metric=settings.metric,
                random_state=settings.random_state,
                n_jobs=settings.n_jobs,
            )
        return Reclustered(dataset, rows, parts, cluster)

    return find


def take_parts(session: Session, found: Reclustered) -> list[int]:
    """Make the parts clusters, as one edit; return their ids, the largest first.

    Raises DataError: other data are on show by now, or the points do not fall into
    parts.
    """
    if session.dataset is not found.dataset:
        raise DataError("Other data were opened meanwhile: nothing was clustered.")
    return session.clusters.split(found.cluster, found.rows, found.parts)
