"""Colours the map by the true similarity to the point under the mouse."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QObject

from napari_embedding_game.session.session import Session, sentence
from napari_embedding_game.session.similarity import Pointed, similarity_job
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.style.coloring import POINTED
from napari_embedding_game.ui.tasks.throttle import throttled
from napari_embedding_game.ui.tasks.worker import Worker

MOST_AT_ONCE = 2_000_000
"""Numbers of the data that are looked through without another thread: some 10 ms."""
EACH_MS = 60
"""Least time between two points that are asked about."""


class PointedSimilarity(QObject):
    """Tells the session how similar all rows are to the one under the mouse.

    While one answer is worked out, only the point that the mouse is on last waits for
    its turn; an answer of other data is dropped.  When the mouse leaves the points,
    the colours stay as they are.

    Parameters
    ----------
    session : Session
    """

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._row: int | None = None
        self._worker: Worker | None = None
        self._is_outdated = False
        self._turn = throttled(EACH_MS, self._ask, self, at_once=True)
        self._connections = Connections()
        self._connections.call(self._turn.cancel)
        self._connections.connect(session.dataset_changed, self._forget)

    def close(self) -> None:
        """Undo the connections; deliver nothing any more."""
        self._connections.close()
        self._forget()

    def point_at(self, row: int | None) -> None:
        """Follow the mouse, which is on the point of a row, or on none."""
        if row is not None and self._session.look.color_by == POINTED:
            self._row = row
            self._turn.throttle()

    # Inside

    def _forget(self, dataset: object = None) -> None:
        worker, self._worker, self._row = self._worker, None, None
        self._is_outdated = False
        if worker is not None:
            worker.abandon()

    def _ask(self) -> None:
        session, row = self._session, self._row
        if row is None or session.dataset is None:
            return
        if self._worker is not None:
            self._is_outdated = True
            return
        job = similarity_job(session, np.array([row]))
        if job is None:
            return
        if session.dataset.X.size <= MOST_AT_ONCE:
            session.point_at(Pointed(row, job()))
            return
        self._worker = worker = Worker(job)
        worker.returned.connect(lambda found: self._take(row, found))
        worker.failed.connect(self._on_failed)
        worker.begin()

    def _take(self, row: int, found: NDArray[np.float32]) -> None:
        self._worker = None
        self._session.point_at(Pointed(row, found))
        self._go_on()

    def _on_failed(self, error: BaseException) -> None:
        self._worker = None
        self._session.say(sentence(error))
        self._is_outdated = False

    def _go_on(self) -> None:
        if self._is_outdated:
            self._is_outdated = False
            self._ask()
