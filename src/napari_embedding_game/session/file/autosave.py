"""Save the session automatically, and find the file of a crashed program.

Each program writes one session file into a folder of the user's own, and holds a lock
beside it for as long as it lives.  The operating system gives the lock up when the
program ends: a file whose lock is free, and that was not closed in good order, is a
recovery file and is offered at the next start.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import platformdirs

from napari_embedding_game.data.export.atomic import delete_halves
from napari_embedding_game.session.file import archive
from napari_embedding_game.session.file.saved_map import SavedSession

FOLDER_VARIABLE = "NAPARI_EMBEDDING_GAME_AUTOSAVE"
"""Environment variable that names another folder."""
SECONDS, FIRST_SECONDS = 60.0, 5.0
"""Between two savings of a session that changes, and until the first."""
_ENDING = ".autosave.zip"
_LOCK = ".lock"
KEPT = 6
"""Sessions closed in good order that are kept, for who closed by mistake."""


def folder() -> Path:
    """Return the user's folder for these files; make it where it is missing.

    The usual one is for its owner alone: what is kept there may be of patients.
    """
    chosen = os.environ.get(FOLDER_VARIABLE)
    usual = platformdirs.user_state_path("napari-embedding-game") / "autosave"
    path = Path(chosen) if chosen else usual
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not chosen:
        path.chmod(0o700)
    return path


@dataclass(frozen=True, slots=True)
class RecoveryFile:
    """A session whose program ended before it could close it."""

    path: Path
    saved_at: float
    """Seconds since 1970, as ``time.time()``."""

    def discard(self) -> None:
        """Delete it for good, and what a kill in the middle of writing left of it."""
        delete_halves(self.path)
        self.path.unlink(missing_ok=True)
        _lock_path(self.path).unlink(missing_ok=True)


def find_recovery_files(where: Path | None = None) -> list[RecoveryFile]:
    """Return sessions of programs that were killed, the newest first."""
    files = []
    for lock in (where or folder()).glob(f"*{_ENDING}{_LOCK}"):
        path = lock.with_name(lock.name.removesuffix(_LOCK))
        if _is_held(lock):
            continue
        if path.exists():
            files.append(RecoveryFile(path, path.stat().st_mtime))
        else:
            RecoveryFile(path, 0.0).discard()  # killed before it saved anything
    return sorted(files, key=lambda file: -file.saved_at)


def find_recent_sessions(where: Path | None = None) -> list[Path]:
    """Return the last sessions that were closed in good order, the newest first."""
    sessions = []
    for path in (where or folder()).glob(f"[!.]*{_ENDING}"):
        if not _lock_path(path).exists():
            with contextlib.suppress(FileNotFoundError):  # another program deleted it
                sessions.append((path.stat().st_mtime, path))
    return [path for _, path in sorted(sessions, reverse=True)]


class Autosave:
    """Saves the session of this program every minute in which it has changed.

    Parameters
    ----------
    capture : callable
        Returns the present session, or None where there is nothing to save; is
        called in the thread that calls ``tick`` or ``close``.
    seconds : float
        Least time between two savings, and most until the first.
    where : Path, optional
        Another folder than the user's own.
    """

    def __init__(
        self,
        capture: Callable[[], SavedSession | None],
        seconds: float = SECONDS,
        where: Path | None = None,
    ) -> None:
        self._capture, self._seconds = capture, seconds
        self._folder = where or folder()
        self.path = self._folder / f"{uuid.uuid4().hex}{_ENDING}"
        self._lock = _lock_path(self.path).open("w")
        _try_lock(self._lock)
        self._is_dirty = False
        self._next = time.monotonic() + min(FIRST_SECONDS, seconds)
        self._writing = threading.Lock()

    def touch(self) -> None:
        """Note that something has changed since the last saving."""
        self._is_dirty = True

    def tick(self) -> Callable[[], None] | None:
        """Return a job that saves, for any other thread; None when none is due."""
        is_due = self._is_dirty and time.monotonic() >= self._next
        return self.job() if is_due else None

    def job(self) -> Callable[[], None] | None:
        """Return a job that saves the present session; None without one.

        The job raises :class:`DataError` where the file cannot be written.
        """
        session = self._capture()
        self._is_dirty = False
        self._next = time.monotonic() + self._seconds
        if session is None:
            return None

        def save() -> None:
            with self._writing:
                archive.save(session, self.path, is_private=True)

        return save

    def close(self) -> None:
        """Save once more and close in good order: nothing is offered later."""
        self.closing()()

    def closing(self) -> Callable[[], None]:
        """Return a job that saves the session as it is now, and closes in good order.

        The lock is given up whatever happens; what cannot be saved now stays as it was
        saved last, and is offered.
        """
        try:
            save = self.job()
        except BaseException:
            self._lock.close()
            raise

        def close() -> None:
            try:
                if save is not None:
                    save()
            finally:
                self._lock.close()
            _lock_path(self.path).unlink(missing_ok=True)
            for path in find_recent_sessions(self._folder)[KEPT:]:
                path.unlink(missing_ok=True)

        return close


def _lock_path(path: Path) -> Path:
    return path.with_name(path.name + _LOCK)


def _is_held(path: Path) -> bool:
    try:
        with path.open("r+") as file:
            return not _try_lock(file)
    except OSError:
        return path.exists()  # Windows does not open what another program has locked


def _try_lock(file: IO[Any]) -> bool:
    """Lock a file for this program until it is closed; False where another has."""
    try:
        if sys.platform == "win32":  # pragma: no cover
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
