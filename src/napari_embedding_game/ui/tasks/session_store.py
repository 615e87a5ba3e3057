"""Save and autosave session files, and list the last ones."""

from __future__ import annotations

import logging
from datetime import datetime
from pathlib import Path

from qtpy.QtCore import QCoreApplication, QObject, QTimer, Signal

from napari_embedding_game.data.columns import count_text
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.session.file import archive
from napari_embedding_game.session.file.autosave import (
    Autosave,
    find_recent_sessions,
    was_closed,
)
from napari_embedding_game.session.session import error_text
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.tasks.errors import log_error, notify_error
from napari_embedding_game.ui.tasks.worker import JobRunner, Worker
from napari_embedding_game.ui.workspace import Workspace

logger = logging.getLogger(__name__)

FIRST_MS, SAVE_MS = 5_000, 60_000
"""From the first change of a map to the first saving, and from any later one."""
NOT_CLOSED = "The map could not be saved when it was closed"


class SessionStore(QObject):
    """Saves the session of a viewer every minute of work, and when it is closed."""

    trouble = Signal(str)
    saved = Signal()

    def __init__(self, workspace: Workspace) -> None:
        super().__init__()
        self._session, self._maps = workspace.session, workspace.maps
        self._autosave: Autosave | None = None
        self._save_jobs = JobRunner(
            self, lambda _: self.saved.emit(), self._on_saving_failed, finishes=True
        )
        self._timer = QTimer(self, singleShot=True)
        self._timer.timeout.connect(self._save_in_background)
        session = self._session
        changes = (
            session.state_changed,
            session.clusters.changed,
            session.selection.changed,
            session.settings.changed,
            session.look.events,
            workspace.maps.changed,
            session.columns_changed,
            session.timeline.changed,
            session.hand.changed,
        )
        self._connections = Connections()
        self._connections.connect(self._schedule_saving, *changes)
        # Where the program ends before the window can say that it is closed.
        quits = QCoreApplication.instance().aboutToQuit
        self._connections.connect(self.close, quits)

    def list_recent_maps(self) -> list[tuple[Path, str]]:
        """Return the last maps, also of a crash, and words for each, newest first."""
        try:
            paths = find_recent_sessions()
        except OSError as error:
            self.trouble.emit(
                f"The last maps cannot be listed ({error.strerror or error}): open a "
                "session by its file."
            )
            return []
        files = []
        for path in paths:
            try:
                files.append((path, _describe_session_file(path)))
            except (DataError, OSError) as error:
                logger.info("%s is not listed: %s", path.name, error)
        return files

    def finish_autosave(self) -> None:
        """Save once more in the background, as other data replace the present ones."""
        self._timer.stop()
        self._save_jobs.stop()
        autosave, self._autosave = self._autosave, None
        if autosave is None:
            return
        try:
            worker = Worker(autosave.make_closing_job(), NOT_CLOSED)
        except Exception as error:  # whatever it is, the window has to close
            log_error(NOT_CLOSED, error)
            notify_error(error)
        else:  # no slot of this object: it may be gone by then
            worker.failed.connect(notify_error)
            worker.start_thread()

    def close(self) -> None:
        """Save once more and disconnect, the first time."""
        self._connections.close()
        self.finish_autosave()

    # Inside

    def _schedule_saving(self, *event: object) -> None:
        """Save soon what has changed, once there is a map that would be lost."""
        if self._timer.isActive() or self._session.snapshot is None:
            return
        if self._autosave is not None:
            self._timer.start(SAVE_MS)
            return
        try:
            self._autosave = Autosave(self._maps.to_saved_session)
        except OSError as error:
            self._connections.close()
            self.trouble.emit(
                f"Nothing is saved on the quiet ({error.strerror or error}): save the "
                "session yourself now and then."
            )
        else:
            self._timer.start(FIRST_MS)

    def _save_in_background(self) -> None:
        job = self._autosave.make_save_job()
        if job is not None:
            self._save_jobs.submit(job)

    def _on_saving_failed(self, error: BaseException) -> None:
        self.trouble.emit(f"Not saved automatically: {error_text(error)}")
        self._schedule_saving()  # it is tried again


def _describe_session_file(path: Path) -> str:
    saved, when = (
        archive.read_summary(path),
        datetime.fromtimestamp(path.stat().st_mtime),
    )
    begin = "" if was_closed(path) else "Not closed: "
    names = f", {count_text(saved.n_names, 'named cluster')}" if saved.n_names else ""
    size = f"{saved.n_points:,} points{names}"  # last: a dock is narrow
    return f"{begin}{saved.title}, {when:%d %b %H:%M}, {size}"
