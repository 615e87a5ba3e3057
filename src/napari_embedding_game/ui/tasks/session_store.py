"""Save sessions automatically, and list recent session files."""

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
"""Milliseconds from a change to the first saving, and from a change to later ones."""
NOT_CLOSED = "The map could not be saved when it was closed"


class SessionStore(QObject):
    """Saves the session of a viewer after each minute of edits, and at the end."""

    trouble = Signal(str)
    """Carries a message why a session is not saved or listed."""
    saved = Signal()
    """Emitted when the session has been saved automatically."""

    def __init__(self, workspace: Workspace) -> None:
        super().__init__()
        self._session, self._maps = workspace.session, workspace.map_tree
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
            workspace.map_tree.changed,
            session.columns_changed,
            session.timeline.changed,
            session.hand.changed,
        )
        self._connections = Connections()
        self._connections.connect(self._schedule_saving, *changes)
        # The program may end before the window is closed.
        quits = QCoreApplication.instance().aboutToQuit
        self._connections.connect(self.close, quits)

    def list_recent_maps(self) -> list[tuple[Path, str]]:
        """Return (path, text) of each recent session file, newest first.

        Sessions of a crashed program are included; unreadable files are left out and
        logged. Where the files cannot be listed, ``trouble`` is emitted and [] is
        returned.
        """
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

    def start_last_autosave(self) -> None:
        """Save a last time in the background; a later edit begins a new file.

        A waiting saving is dropped.  Errors are logged and shown as a notification,
        since the window may be closed by then.  Does nothing where no file was begun.
        """
        self._timer.stop()
        self._save_jobs.stop()
        autosave, self._autosave = self._autosave, None
        if autosave is None:
            return
        try:
            worker = Worker(autosave.make_closing_job(), NOT_CLOSED)
        except Exception as error:  # after any error the window has to close
            log_error(NOT_CLOSED, error)
            notify_error(error)
        else:  # no slot of this object, which may be deleted by then
            worker.failed.connect(notify_error)
            worker.start_thread()

    def close(self) -> None:
        """Disconnect from the session and save a last time, at the first call."""
        self._connections.close()
        self.start_last_autosave()

    # Inside

    def _schedule_saving(self, *event: object) -> None:
        """Schedule a saving after a change, if there is a map and none is scheduled.

        The first change begins a file and is saved after ``FIRST_MS``, later changes
        after ``SAVE_MS``.  If no file can be begun, ``trouble`` is emitted and changes
        are no longer saved.
        """
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
        """Save the session in a thread, if it has changed since the last saving."""
        job = self._autosave.make_save_job()
        if job is not None:
            self._save_jobs.submit(job)

    def _on_saving_failed(self, error: BaseException) -> None:
        """Emit the error as ``trouble`` and schedule another saving."""
        self.trouble.emit(f"Not saved automatically: {error_text(error)}")
        self._schedule_saving()  # try again later


def _describe_session_file(path: Path) -> str:
    """Return title, time, points and named clusters of a session file as a text.

    The text begins with "Not closed: " for a session that was not closed.

    Raises DataError or OSError: the file cannot be read.
    """
    saved = archive.read_summary(path)
    when = datetime.fromtimestamp(path.stat().st_mtime)
    begin = "" if was_closed(path) else "Not closed: "
    names = f", {count_text(saved.n_names, 'named cluster')}" if saved.n_names else ""
    size = f"{saved.n_points:,} points{names}"  # last: a dock is narrow
    return f"{begin}{saved.title}, {when:%d %b %H:%M}, {size}"
