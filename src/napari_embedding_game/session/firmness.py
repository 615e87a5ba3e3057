"""How firm the numbers of clusters of a session are, and whether two are one."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from napari_embedding_game.core.threads import COMPUTING
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.session.quality import find_dataset_and_settings

if TYPE_CHECKING:
    from napari_embedding_game.core.inspect.firmness import Cut
    from napari_embedding_game.core.inspect.separation import Separation
    from napari_embedding_game.session.clusters.landmark_merge import LandmarkMerge
    from napari_embedding_game.session.session import Session


MIN_CLUSTERS, MAX_CLUSTERS = 2, 30
"""Numbers of clusters that are tested."""


@dataclass(frozen=True, eq=False)
class Firmness:
    """What is known so far of the numbers of clusters of one moment."""

    merging: LandmarkMerge
    """The merge tree of the landmarks that is cut into clusters."""
    cuts: tuple[Cut, ...] = ()
    """The measured cuts, from ``MIN_CLUSTERS`` clusters on."""
    suggested: tuple[int, ...] = ()
    """Once complete: a coarse and a fine number of clusters, one number for both, or
    () where no cut is firm."""
    is_complete: bool = False
    """Whether all cuts are measured."""

    def find_cut(self, n_clusters: int) -> Cut | None:
        """Return the cut into ``n_clusters`` clusters; None where it is not known."""
        index = n_clusters - MIN_CLUSTERS
        return self.cuts[index] if 0 <= index < len(self.cuts) else None


def make_firmness_job(
    session: Session,
) -> Callable[[], Generator[Firmness, None, Firmness]] | None:
    """Return a job, for any thread, that computes how firm numbers of clusters are.

    The job is a generator function: it yields a :class:`Firmness` after each cut, and
    returns the complete result with the suggested numbers.  Returns None while points
    move, without a map, or where the data have no rows to compare.
    """
    data, snapshot, merging = (
        find_dataset_and_settings(session),
        session.snapshot,
        session.merging,
    )
    if data is None or snapshot is None or merging is None or session.is_moving:
        return None
    (dataset, settings), labels = data, snapshot.labels

    def measure() -> Generator[Firmness, None, Firmness]:
        """Measure the cuts up to ``MAX_CLUSTERS``, releasing the lock between them."""
        from napari_embedding_game.core.inspect.firmness import (
            measure_cuts,
            suggest_n_clusters,
        )

        cuts: tuple[Cut, ...] = ()
        cut_from = dataset.X, merging.tree, merging.graph, labels
        coming = measure_cuts(
            *cut_from, metric=settings.metric, max_clusters=MAX_CLUSTERS
        )
        while True:
            with COMPUTING:
                cut = next(coming, None)
            if cut is None:
                return Firmness(
                    merging, cuts, suggest_n_clusters(cuts), is_complete=True
                )
            cuts = (*cuts, cut)
            yield Firmness(merging, cuts)

    return measure


def make_separation_job(
    session: Session, clusters: tuple[int, ...]
) -> Callable[[], Separation]:
    """Return a job, for any thread, that measures whether two clusters are separate.

    ``clusters``: the ids of the two clusters.

    Raises DataError: these are not two clusters of the map, there are no data, or the
    data are distances.
    """
    dataset, clustering = session.require_data(), session.clusters.clustering
    if len([c for c in clusters if c in clustering.by_id]) != 2:
        raise DataError("Select two clusters of a map to compare them.")
    if dataset.is_distances:
        raise DataError(
            "These data are distances, which do not tell what lies between two groups: "
            "open the rows that they were made of."
        )
    metric = session.map_settings.metric
    first, second = (clustering.rows_in_cluster(cluster) for cluster in clusters)
    others = np.setdiff1d(np.arange(len(dataset.obs)), np.concatenate([first, second]))

    def measure() -> Any:
        """Measure the separation, holding the lock of all computing."""
        from napari_embedding_game.core.inspect.separation import measure_separation

        with COMPUTING:
            return measure_separation(
                dataset.X, first, second, others=others, metric=metric
            )

    return measure
