"""Prepare the neighbours that the brush corrects by, without holding the window.

Of many rows the lists of who has whom among its neighbours take a second or more, and
where a map keeps no neighbours these are searched for first.  Both is done by another
thread, from when the brush is taken on; until then it takes all that it passes over.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QObject, Signal

from napari_embedding_game.core.inspect.brushing import ListedBy
from napari_embedding_game.session.map_neighbors import FoundNeighbors
from napari_embedding_game.session.session import Session, sentence
from napari_embedding_game.ui.canvas.drawing import RESTING
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.tasks.worker import Worker

logger = logging.getLogger(__name__)

MOST_AT_ONCE = 500_000
"""Neighbours of all rows whose lists are made without another thread: some 5 ms."""
WITHOUT = "Nothing is corrected, as this map keeps no neighbours."
SEARCHING = (
    "Nothing is corrected yet: this map keeps no neighbours, so they are being "
    "searched for in the data."
)
NOT_YET = "Nothing is corrected yet: the neighbours are not known so far."
LISTING = "Nothing is corrected yet: the neighbours of all points are being listed."


class Lists(NamedTuple):
    """Neighbours, and who has a row among them."""

    neighbors: NDArray[np.int32]
    """(N, k) nearest rows of each; -1 for none, and for those of another group where
    groups lie side by side."""
    listed_by: ListedBy


class _Wanted(NamedTuple):
    """What lists are made of; compared by what it is, not by what is in it."""

    neighbors: NDArray[np.int32]
    groups: NDArray[np.intp] | None
    """(N,) the panel of each row, where a row is drawn in one of them only."""

    def is_as(self, other: _Wanted | None) -> bool:
        return other is not None and all(
            one is same for one, same in zip(self, other, strict=True)
        )

    def lists(self) -> Lists:
        neighbors = self.neighbors
        if self.groups is not None:
            is_beside = self.groups[neighbors] == self.groups[:, None]
            neighbors = np.where(is_beside, neighbors, np.int32(-1))
        return Lists(neighbors, ListedBy(neighbors))


class BrushNeighbors(QObject):
    """The lists for the map on show.

    Parameters
    ----------
    session : Session
    """

    changed = Signal()
    """They are there, or it is known that they cannot be had."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._made: tuple[_Wanted, Lists] | None = None
        self._worker: Worker | None = None
        self._failure: tuple[Any, str] = None, ""
        """The rows of which something failed, and a sentence."""
        self._connections = Connections()
        self._connections.connect(session.dataset_changed, self._forget)

    def close(self) -> None:
        """Drop what is being worked out."""
        self._connections.close()
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.abandon()

    @property
    def lists(self) -> Lists | None:
        """Those of the map on show; None while they are not there."""
        wanted = self._wanted()
        if wanted is None or self._made is None or not wanted.is_as(self._made[0]):
            return None
        return self._made[1]

    def told(self) -> str:
        """Return why there are none, "" where there are."""
        wanted = self._wanted()
        if self.lists is not None:
            return ""
        if self._why_failed():
            return f"{WITHOUT} {self._why_failed()}"
        if wanted is not None:
            return LISTING
        reason = self._session.neighbors.missing_reason
        if reason:
            return f"{WITHOUT} {reason}"
        return SEARCHING if self._worker is not None else NOT_YET

    def prepare(self) -> None:
        """Begin to work them out, where they are not there."""
        wanted = self._wanted()
        if self.lists is not None or self._worker is not None or self._why_failed():
            return
        if wanted is None:
            if self._session.snapshot is None or self._session.state not in RESTING:
                return  # a run brings its own
            job = self._session.neighbors.job()
            if job is not None:
                self._begin(job, self._take_found)
        elif wanted.neighbors.size <= MOST_AT_ONCE:
            self._made = wanted, wanted.lists()
        else:
            self._begin(lambda: (wanted, wanted.lists()), self._take_lists)

    # Inside

    def _forget(self, event: object = None) -> None:
        """Hold nothing of other data."""
        self._made, self._failure = None, (None, "")

    def _wanted(self) -> _Wanted | None:
        session = self._session
        neighbors = session.neighbors.of(session.snapshot)
        if neighbors is None:
            return None
        split = session.splitting.current
        return _Wanted(neighbors, None if split is None else split.of_points)

    def _begin(self, job: Callable[[], Any], take: Callable[[Any], None]) -> None:
        self._worker = worker = Worker(job)
        worker.returned.connect(take)
        worker.failed.connect(self._on_failed)
        worker.begin()

    def _take_found(self, found: FoundNeighbors) -> None:
        self._worker = None
        self._session.neighbors.take(found)
        self._go_on()

    def _take_lists(self, made: tuple[_Wanted, Lists]) -> None:
        self._worker, self._made = None, made
        self._go_on()

    def _go_on(self) -> None:
        self.prepare()  # of another map, if one has come meanwhile
        self.changed.emit()

    def _on_failed(self, error: BaseException) -> None:
        self._worker = None
        logger.error("No neighbours for the brush", exc_info=error)
        self._failure = self._rows, sentence(error)
        self.changed.emit()

    def _why_failed(self) -> str:
        rows, why = self._failure
        return why if rows is not None and rows is self._rows else ""

    @property
    def _rows(self) -> Any:
        dataset = self._session.dataset
        return None if dataset is None else dataset.X
