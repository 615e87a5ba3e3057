"""Compute cluster reports in a worker thread, one at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from qtpy.QtCore import QObject, Signal

from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.session.cluster_report import cluster_report
from napari_embedding_game.session.session import Session
from napari_embedding_game.ui.tasks.worker import Worker


class ReportWorker(QObject):
    """Reports on clusters of a session, or on its selected points.

    Parameters
    ----------
    session : Session
    """

    answered = Signal(object, tuple)
    """The :class:`ClusterReport`, and the clusters it was asked for."""
    failed = Signal(object)
    outdated = Signal()
    """Something else was asked for in the meantime: ask again.

    What was found is answered as well: while a game runs, it is better than nothing.
    """

    def __init__(self, session: Session, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._dataset: Dataset | None = None
        self._worker: Worker | None = None
        self._is_outdated = False

    def set_dataset(self, dataset: Dataset | None) -> None:
        """Report on these rows from now on; what was asked of others is dropped."""
        if self._worker is not None:
            self._worker.abandon()
            self._worker, self._is_outdated = None, False
        self._dataset = dataset

    def close(self) -> None:
        """Answer nothing any more."""
        if self._worker is not None:
            self._worker.close()

    def ask(self, clusters: tuple[int, ...], column: str, seed: int) -> None:
        """Ask for a report on these clusters; on the selected points if none."""
        if self._worker is not None:
            self._is_outdated = True
            return
        session, dataset = self._session, self._dataset
        snapshot, labels = session.snapshot, session.clusters.labels
        assert snapshot is not None
        wanted = clusters
        if not clusters:
            wanted, labels = (1,), session.selection.points.astype(np.int8)

        def describe() -> Any:
            assert dataset is not None
            return cluster_report(
                dataset,
                wanted,
                labels,
                snapshot.pressure,
                stretch=snapshot.stretch,
                isolation=snapshot.isolation,
                column=column,
                n_draw=len(labels),
                seed=seed,
            )

        self._worker = Worker(describe)
        self._worker.returned.connect(lambda report: self._on_report(report, clusters))
        self._worker.failed.connect(self._on_failed)
        self._worker.begin()

    def _on_report(self, report: object, clusters: tuple[int, ...]) -> None:
        self._worker = None
        if self._is_outdated:
            self._is_outdated = False
            self.outdated.emit()
        self.answered.emit(report, clusters)

    def _on_failed(self, error: BaseException) -> None:
        self._worker = None
        self.failed.emit(error)
