"""Cluster the selected points anew, where they are: no point moves."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from napari_embedding_game.core.inspect.recluster import recluster
from napari_embedding_game.core.threads import COMPUTING
from napari_embedding_game.data.errors import DataError

if TYPE_CHECKING:
    from napari_embedding_game.session.session import Session

Take = Callable[[], list[int]]
"""Makes the parts that were found clusters, as one edit; returns their ids, the largest
first.  Raises DataError: other data are on show by now, or there are no parts."""


def reclustering(session: Session, n_parts: int) -> Callable[[], Take]:
    """Return what finds so many clusters in the selection, to be called in any thread.

    Raises DataError: there is no map, nothing is selected, or the rows of the data are
    not there.
    """
    if session.snapshot is None:
        raise DataError("Press Run first: points of a map are clustered.")
    dataset, rows = session.data(), session.selection.rows
    if not len(rows):
        raise DataError("Select clusters or points first, for instance with the lasso.")
    if dataset.is_distances:
        raise DataError(
            "These data are distances, of which no landmarks can be fitted to a part: "
            "split the cluster instead."
        )
    clusters, settings = session.selection.clusters, session.made_with
    whole = clusters[0] if len(clusters) == 1 else None
    names = ("n_neighbors", "metric", "random_state", "n_jobs")
    how = {name: getattr(settings, name) for name in names}

    def find() -> Take:
        with COMPUTING:
            parts = recluster(dataset.X[rows], n_parts, **how)

        def take() -> list[int]:
            if session.dataset is not dataset:
                raise DataError("Other data were opened meanwhile: nothing was found.")
            return session.clusters.split(whole, rows, parts)

        return take

    return find
