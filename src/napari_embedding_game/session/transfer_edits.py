"""Transfer a person's edits of clusters to other rows of the same source."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.session.clusters.automatic import FIRST_ID, BookState
from napari_embedding_game.session.clusters.clustering import (
    AUTOMATIC,
    Clustering,
    Edits,
)


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


def places_in(one: Dataset, other: Dataset) -> NDArray[np.intp]:
    """Return the row of another dataset of the same source for each row, or -1."""
    places = np.full(other.n_source_rows, -1)
    places[other.kept] = np.arange(len(other.obs))
    rows: NDArray[np.intp] = places[one.kept]
    return rows


def transferred_edits(
    clustering: Clustering, places: NDArray[np.intp], n_points: int
) -> Edits:
    """Return edits that give other points what a person gave to these.

    Named clusters and those made by hand become clusters by hand, as nobody knows
    what the next game finds there.  The number of clusters stays as chosen.

    Parameters
    ----------
    places : (n,) int
        Row among the ``n_points`` of each point of the clustering; -1 for none.
    """
    former = clustering.edits
    by_hand = np.full(n_points, AUTOMATIC, np.int32)
    given = {}
    new = FIRST_ID
    for cluster in clustering.clusters:
        is_made = cluster.is_named or cluster.is_by_hand or cluster.note
        rows = places[clustering.rows(cluster.id)]
        rows = rows[rows >= 0]
        if not is_made or not len(rows):
            continue
        by_hand[rows] = new
        if cluster.id in former.given:
            given[new] = replace(former.given[cluster.id], origin="")
        new += 1
    return Edits(
        by_hand=by_hand,
        n_clusters=former.n_clusters,
        grouping=former.grouping,
        given=given,
    )


def book_of(edits: Edits) -> BookState:
    """Return the state of a cluster book that has edits and no automatic clusters."""
    n_points = len(edits.by_hand)
    return BookState(
        edits=edits,
        automatic=np.zeros(n_points, np.int32),
        of_landmarks=np.zeros(0, np.int32),
        next_id=int(max(FIRST_ID, edits.by_hand.max(initial=0) + 1)),
    )


@dataclass(frozen=True, slots=True)
class PersonsWork:
    """Counts of a person's edits in all maps of a session."""

    names: int
    """Different names of clusters."""
    by_hand: int
    """Clusters of the first map that were merged, split or drawn."""
    parts: int
    """Maps of parts."""
    examples: int = 0
    """Points that were sorted into boxes to teach by."""

    def __bool__(self) -> bool:
        """Whether there is anything."""
        return bool(self.names or self.by_hand or self.parts or self.examples)

    def told(self) -> str:
        """Return it in words: "3 named clusters and 1 map of a part"."""
        words = [
            _count(self.names, "named cluster", "named clusters"),
            _count(self.by_hand, "cluster made by hand", "clusters made by hand"),
            _count(self.parts, "map of a part", "maps of parts"),
            _count(self.examples, "example in a box", "examples in boxes"),
        ]
        return " and ".join(", ".join(filter(None, words)).rsplit(", ", 1))


def _count(number: int, one: str, several: str) -> str:
    return f"{number} {one if number == 1 else several}" if number else ""
