"""Neighbours in the data of the rows of a map, also where the map keeps none.

A map of a session file keeps none where it has very many rows or the file is old, and
neither does one that was carried over from another space.  There they are searched for
anew, by the distance that the map was made with.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from psygnal import Signal

from napari_embedding_game.core.names import DEFAULT_AFFINITY
from napari_embedding_game.core.threads import COMPUTING
from napari_embedding_game.core.types import Snapshot, StartSettings
from napari_embedding_game.session.quality import GIVEN
from napari_embedding_game.session.run.engine import Engine

if TYPE_CHECKING:
    from napari_embedding_game.session.session import Session


@dataclass(frozen=True, eq=False)
class FoundNeighbors:
    """What a search has found, and for which rows."""

    X: Any
    """The rows of the data."""
    metric: str
    neighbors: NDArray[np.int32]
    """(N, k) nearest rows of each, -1 for none."""


class MapNeighbors:
    """The neighbours in the data that the map of a session was made of.

    Parameters
    ----------
    session : Session
    engine : Engine
        What searches.
    """

    found = Signal()
    """A search has come to its end."""

    def __init__(self, session: Session, engine: Engine) -> None:
        self._session = session
        self._engine = engine
        self._found: FoundNeighbors | None = None
        session.dataset_changed.connect(self._forget, max_args=0)

    def of(self, snapshot: Snapshot | None) -> NDArray[np.int32] | None:
        """Return those of a snapshot of the map, (N, k), -1 for none.

        None where it keeps none and none have been found so far.
        """
        if snapshot is None or snapshot.neighbors is not None:
            return None if snapshot is None else snapshot.neighbors
        found, dataset = self._found, self._session.dataset
        if found is None or dataset is None or found.X is not dataset.X:
            return None
        return found.neighbors if found.metric == self._start().metric else None

    @property
    def missing_reason(self) -> str:
        """Why none can be searched for: a sentence; "" where they can."""
        dataset = self._session.dataset
        if dataset is None:
            return "Load some data first."
        return "" if dataset.X.shape[1] else dataset.missing_reason

    def job(self) -> Callable[[], FoundNeighbors] | None:
        """Return what searches for them, for another thread; None where it cannot.

        A run that is begun meanwhile waits for its end.
        """
        dataset = self._session.dataset
        if dataset is None or self.missing_reason:
            return None
        X, start, engine = dataset.X, self._start(), self._engine

        def search() -> FoundNeighbors:
            with COMPUTING:
                graph = engine.neighbors(X, start)
            nearest = np.ascontiguousarray(graph.indices, np.int32)
            return FoundNeighbors(X, start.metric, nearest)

        return search

    def take(self, found: FoundNeighbors) -> None:
        """Take up what a search has found, unless there are other data by now."""
        dataset = self._session.dataset
        if dataset is not None and found.X is dataset.X:
            self._found = found
            self.found.emit()

    # Inside

    def _forget(self) -> None:
        self._found = None

    def _start(self) -> StartSettings:
        """Return how the rows are searched: by the map's own distance, for a few each.

        So many as any map keeps of its own.
        """
        from napari_embedding_game.core.graph.affinities import N_NEAREST

        session = self._session
        assert session.dataset is not None
        played = session.played
        start = session.settings.start() if played is None else played.start
        return replace(
            start,
            n_neighbors=min(N_NEAREST, session.dataset.X.shape[0] - 1),
            affinity=DEFAULT_AFFINITY,
            metric=GIVEN if session.dataset.is_distances else start.metric,
        )
