"""Save the session automatically, and find the file of a crashed program.

Each program writes one session file into a folder of the user's own, and holds
a lock beside it for as long as it lives.  The operating system gives the lock
up when the program ends, in whatever way: a file whose lock is free, and that
was not closed in good order, is a recovery file and is offered at the next start.
"""

from __future__ import annotations

import contextlib
import json
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
SECONDS = 60.0
"""Between two savings of a session that changes."""
FIRST_SECONDS = 5.0
"""Until the first: there is a map to be lost long before a minute is over."""
_ENDING = ".autosave.zip"
_LOCK = ".lock"
KEPT = 6
"""Sessions closed in good order that are kept, for who closed by mistake."""


def folder() -> Path:
    """Return the user's folder for these files; make it where it is missing.

    A folder that is made, and the usual one, are for their owner alone: what is kept
    there may be of patients.
    """
    chosen = os.environ.get(FOLDER_VARIABLE)
    usual = platformdirs.user_state_path("napari-embedding-game") / "autosave"
    path = Path(chosen) if chosen else usual
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not chosen:
        path.chmod(0o700)  # an earlier version let others in
    return path


@dataclass(frozen=True, slots=True)
class RecoveryFile:
    """A session whose program ended before it could close it."""

    path: Path
    saved_at: float
    """Seconds since 1970, as ``time.time()``."""

    def discard(self) -> None:
        """Delete it for good."""
        # A kill in the middle of writing leaves a half-written file, too.
        delete_halves(self.path)
        self.path.unlink(missing_ok=True)
        _lock_path(self.path).unlink(missing_ok=True)


def find_recovery_files(where: Path | None = None) -> list[RecoveryFile]:
    """Return sessions of programs that were killed, the newest first."""
    recovery_files = []
    for lock in (where or folder()).glob(f"*{_ENDING}{_LOCK}"):
        path = lock.with_name(lock.name.removesuffix(_LOCK))
        if _is_held(lock):
            continue
        if path.exists():
            recovery_files.append(RecoveryFile(path, path.stat().st_mtime))
        else:
            RecoveryFile(path, 0.0).discard()  # killed before it saved anything
    return sorted(recovery_files, key=lambda recovery_file: -recovery_file.saved_at)


def find_recent_sessions(where: Path | None = None) -> list[Path]:
    """Return the last sessions that were closed in good order, the newest first.

    One that is being written is none yet, and one that another program deletes
    meanwhile is none any more.
    """
    sessions = []
    for path in (where or folder()).glob(f"*{_ENDING}"):
        if path.name.startswith(".") or _lock_path(path).exists():
            continue
        with contextlib.suppress(FileNotFoundError):
            sessions.append((path.stat().st_mtime, path))
    return [path for _, path in sorted(sessions, reverse=True)]


class Autosave:
    """Saves the session of this program every minute in which it has changed.

    The first time after a few seconds.

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
        self._capture = capture
        self._seconds = seconds
        self._folder = where or folder()
        self.path = self._folder / f"{uuid.uuid4().hex}{_ENDING}"
        self._lock = _hold(_lock_path(self.path))
        self._is_dirty = False
        self._next = time.monotonic() + min(FIRST_SECONDS, seconds)
        self._writing = threading.Lock()

    def touch(self) -> None:
        """Note that something has changed since the last saving."""
        self._is_dirty = True

    def tick(self) -> Callable[[], None] | None:
        """Return a job that saves, for any other thread; None when none is due.

        Call it every second or so: it takes next to no time itself.
        """
        if not self._is_dirty or time.monotonic() < self._next:
            return None
        return self.job()

    def job(self, *, reads_sources: bool = True) -> Callable[[], None] | None:
        """Return a job that saves the present session; None without one.

        The job raises :class:`DataError` where the file cannot be written.
        ``reads_sources`` is as for :func:`~.archive.save`.
        """
        session = self._capture()
        self._is_dirty = False
        self._next = time.monotonic() + self._seconds
        if session is None:
            return None

        def save() -> None:
            with self._writing:
                archive.save(
                    session, self.path, reads_sources=reads_sources, is_private=True
                )

        return save

    def close(self) -> None:
        """Save once more and close in good order: nothing is offered later."""
        self.closing()()

    def closing(self) -> Callable[[], None]:
        """Return a job that saves the session as it is now, and closes in good order.

        It is for any thread, and reads no data file: nobody waits for it.  The lock
        is given up whatever happens; what cannot be saved now stays as it was saved
        last, and is offered.
        """
        try:
            save = self.job(reads_sources=False)
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


def _hold(path: Path) -> IO[Any]:
    """Make a lock file and hold it until it is closed or this program ends."""
    file = path.open("w")
    _try_lock(file)
    json.dump({"pid": os.getpid()}, file)  # for a person who looks
    file.flush()
    return file


def _is_held(path: Path) -> bool:
    try:
        with path.open("r+") as file:
            return not _try_lock(file)
    except OSError:
        # Windows does not open what another program has locked.
        return path.exists()


if sys.platform == "win32":  # pragma: no cover
    import msvcrt

    _FAR = 1 << 30  # beyond what is written, which a lock here would make unreadable

    def _try_lock(file: IO[Any]) -> bool:
        """Lock a file for this program; False where another has."""
        try:
            file.seek(_FAR)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        finally:
            file.seek(0)
        return True

else:
    import fcntl

    def _try_lock(file: IO[Any]) -> bool:
        """Lock a file for this program; False where another has."""
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True
