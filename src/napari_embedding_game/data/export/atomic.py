"""Write files atomically: complete, or not at all."""

from __future__ import annotations

import errno
import glob
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from napari_embedding_game.data.errors import DataError, shortened

_PRIVATE, _USUAL = 0o600, 0o666
"""Modes of what only its owner may read, and of a new file before the umask."""


@contextmanager
def whole_or_nothing(path: Path, *, is_private: bool = False) -> Iterator[Path]:
    """Give a temporary file that takes the place of `path` when all went well.

    An existing file is replaced in one step, also when the power fails, and keeps its
    mode; of a symbolic link, what it points to is replaced.  What a killed program
    left of the same file is deleted.

    Parameters
    ----------
    path : Path
    is_private : bool
        Whether only the owner may read a file that was not there before.

    Raises
    ------
    DataError
        The file cannot be written.
    """
    target = target_of(path)
    token = f"{os.getpid()}-{secrets.token_hex(4)}"
    temporary = target.with_name(f".{token}-{target.name}")
    try:
        delete_halves(target, of_the_living=False)
        mode = _mode_of(target)
        # Nobody may read it meanwhile who may not read it in the end.
        new = _PRIVATE if is_private or mode is not None else _USUAL
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, new))
        try:
            yield temporary
            _flush(temporary)
            if mode is not None:
                temporary.chmod(mode)
            os.replace(temporary, target)
            _flush_folder(target.parent)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        too_long = error.errno == errno.ENAMETOOLONG
        name = path.with_name(shortened(path.name)) if too_long else path
        way = "a shorter name" if too_long else "another folder"
        raise DataError(
            f"{name} could not be written ({error.strerror or error}): make room or "
            f"choose {way}."
        ) from error


def delete_halves(path: Path, *, of_the_living: bool = True) -> None:
    """Delete what programs left that were killed while they wrote a file.

    Parameters
    ----------
    path : Path
    of_the_living : bool
        Whether also what a program that still runs has begun.
    """
    for half in path.parent.glob(f".*-{glob.escape(path.name)}"):
        writer = half.name[1:].split("-", 1)[0]
        if of_the_living or (writer.isdecimal() and not psutil.pid_exists(int(writer))):
            with suppress(OSError):  # another program may do the same
                half.unlink()


def target_of(path: Path) -> Path:
    """Return the file that is written to: of a symbolic link, what it points to."""
    return Path(os.path.realpath(path))


def is_same_file(path: Path, source: Path) -> bool:
    """Return whether both are one file; a source out of reach is none."""
    try:
        return path.samefile(source)
    except OSError:
        return False


def _mode_of(path: Path) -> int | None:
    """Return the mode of a file; None where there is none."""
    try:
        return path.stat().st_mode & 0o7777
    except FileNotFoundError:
        return None


def _flush(path: Path) -> None:
    """See that all of a file is on the disk."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def _flush_folder(folder: Path) -> None:
    if os.name != "posix":
        return  # elsewhere a folder cannot be opened, and renaming is durable
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
