"""Transfer clusters and a person's edits to other rows of the same source."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.session.clusters.automatic import BookState
from napari_embedding_game.session.clusters.clustering import AUTOMATIC


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


def transferred(state: BookState, places: NDArray[np.intp], n_points: int) -> BookState:
    """Return the clusters of some points as those of others, with all edits.

    Parameters
    ----------
    places : (n,) int
        Row among the ``n_points`` of each point of the book; -1 for none.  Those that
        have no place are a cluster of their own.
    """

    def at_places(former: NDArray[np.int32], elsewhere: int) -> NDArray[np.int32]:
        rows = np.full(n_points, elsewhere, np.int32)
        rows[places[places >= 0]] = former[places >= 0]
        return rows

    edits = state.edits
    below = None if edits.below is None else at_places(edits.below, AUTOMATIC)
    given = {cluster: replace(one, origin="") for cluster, one in edits.given.items()}
    return BookState(
        edits=replace(
            edits,
            by_hand=at_places(edits.by_hand, AUTOMATIC),
            below=below,
            given=given,
        ),
        automatic=at_places(state.automatic, state.next_id),
        of_landmarks=np.zeros(0, np.int32),
        numbers=state.numbers,
        next_id=state.next_id + 1,
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
