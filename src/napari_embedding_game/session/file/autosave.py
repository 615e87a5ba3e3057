"""Save the session automatically, and find the sessions of closed or killed programs.

Each program writes one session file into a folder of the user.  While the program runs,
the file is named after its process; when the program closes normally, the file is
renamed.  A file named after a process that no longer runs is of a killed program.
"""

from __future__ import annotations

import contextlib
import os
import threading
import uuid
from collections.abc import Callable
from pathlib import Path

import platformdirs
import psutil

from napari_embedding_game.data.export.atomic import delete_temporaries
from napari_embedding_game.session.file import archive
from napari_embedding_game.session.file.saved_map import SavedSession

FOLDER_VARIABLE = "NAPARI_EMBEDDING_GAME_AUTOSAVE"
"""Environment variable that names another folder."""
_ENDING, _OPEN = ".autosave.zip", ".open.zip"
KEPT = 12
"""Most sessions in the folder, be they of closed or of killed programs."""


def ensure_autosave_folder() -> Path:
    """Return the folder of automatically saved sessions, made if it is missing.

    It is named by the environment variable ``FOLDER_VARIABLE``, else it is a folder of
    the user.  Only the owner may read this default folder: sessions may be of patients.
    """
    chosen = os.environ.get(FOLDER_VARIABLE)
    usual = platformdirs.user_state_path("napari-embedding-game") / "autosave"
    path = Path(chosen) if chosen else usual
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not chosen:
        path.chmod(0o700)
    return path


def find_recent_sessions() -> list[Path]:
    """Return the files of closed and of killed programs, the newest first.

    Temporary files that killed programs left are deleted; files that another program
    deletes meanwhile are left out.
    """
    where = ensure_autosave_folder()
    for half in where.glob(f".*{_OPEN}"):
        written = where / half.name.split("-", 2)[-1]
        delete_temporaries(written)
    killed = [x for x in where.glob(f"[!.]*{_OPEN}") if not _is_of_running_process(x)]
    files = []
    for path in (*killed, *where.glob(f"[!.]*{_ENDING}")):
        with contextlib.suppress(FileNotFoundError):  # another program deleted it
            files.append((path.stat().st_mtime, path))
    return [path for _, path in sorted(files, reverse=True)]


def was_closed(path: Path) -> bool:
    """Return whether the program of a recent session was closed normally."""
    return path.name.endswith(_ENDING)


def mark_as_closed(path: Path) -> None:
    """Rename the session of a killed program as if the program had been closed.

    A file that cannot be renamed keeps its name.
    """
    if not was_closed(path):
        with contextlib.suppress(OSError):  # it stays as it is called
            path.rename(path.with_name(path.name.removesuffix(_OPEN) + _ENDING))


class Autosave:
    """The automatically saved session file of this program.

    ``to_saved_session``: returns the present session, or None where there is nothing to
    save; is called in the thread that calls ``make_save_job`` or ``close``.
    """

    def __init__(self, to_saved_session: Callable[[], SavedSession | None]) -> None:
        self._to_saved_session, self._token = to_saved_session, uuid.uuid4().hex
        process = f"{os.getpid()}-{psutil.Process().create_time():.0f}"
        self.path = ensure_autosave_folder() / f"{process}-{self._token}{_OPEN}"
        self._writing = threading.Lock()

    def make_save_job(self) -> Callable[[], None] | None:
        """Return a job that saves the present session, for any thread.

        None where there is no session.  The job raises :class:`DataError` where the
        file cannot be written.
        """
        session = self._to_saved_session()
        if session is None:
            return None

        def save() -> None:
            """Write the session file, one job after the other."""
            with self._writing:
                with contextlib.suppress(OSError):  # said when the file is written
                    ensure_autosave_folder()
                archive.save_session(session, self.path, is_private=True)

        return save

    def make_closing_job(self) -> Callable[[], None]:
        """Return a job that saves the present session and marks its file as closed.

        Where the session cannot be saved, the file of the last save stays and is marked
        as of a killed program, and the error is raised.  The job also deletes the
        oldest sessions in the folder, beyond ``KEPT``.
        """
        try:
            save = self.make_save_job()
        except BaseException:
            self._rename(f"0-0-{self._token}{_OPEN}")
            raise

        def close() -> None:
            """Save the session, rename its file and delete the oldest sessions."""
            ending = _OPEN
            try:
                if save is not None:
                    save()
                ending = _ENDING
            finally:
                self._rename(f"0-0-{self._token}{ending}")
            for path in find_recent_sessions()[KEPT:]:
                with contextlib.suppress(OSError):  # another program reads it
                    path.unlink()

        return close

    def _rename(self, name: str) -> None:
        """Rename the file if it exists, ignoring errors."""
        with contextlib.suppress(OSError):  # it is not there, or a scanner reads it
            self.path = self.path.rename(self.path.with_name(name))


def _is_of_running_process(path: Path) -> bool:
    """Return whether the process that a file is named after still runs.

    A process of the same number that began at another time, or that is a zombie, does
    not count.
    """
    number, began, *_ = path.name.split("-")
    try:
        process = psutil.Process(int(number))
        # The system's clock may have been set meanwhile.
        is_same = abs(process.create_time() - int(began)) < 60
        return bool(is_same) and process.status() != psutil.STATUS_ZOMBIE
    except (psutil.Error, ValueError):
        return False
