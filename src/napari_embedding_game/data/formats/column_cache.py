"""The user's folder of what makes columns of large files quick to read.

An entry is a folder of its own, which belongs to one part of one file as this was at
one time: path, size and time of change are its key.  It is whole or not there.
All entries together take no more than :func:`most_bytes`; those that were used least
lately go first.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import platformdirs

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.limits.memory import size_text
from napari_embedding_game.data.own_folder import own_folder

FOLDER_VARIABLE = "NAPARI_EMBEDDING_GAME_CACHE"
"""Environment variable that names another folder."""
SIZE_VARIABLE = "NAPARI_EMBEDDING_GAME_CACHE_GB"
"""Environment variable with another bound, in gigabytes."""
_MOST_GB = 50.0
_LEFT_FREE = 1 << 30
"""Bytes of the disk that are left to everybody else."""
_FORMAT = "1"
"""Another one makes all entries unknown, so that they are made anew."""
_UNFINISHED, _STALE = ".part", 86_400.0
"""What is being written, and the seconds after which nobody goes on writing it."""


def folder() -> Path:
    """Return the user's folder for these entries; make it where it is missing."""
    root = platformdirs.user_cache_path("napari-embedding-game")
    return own_folder(FOLDER_VARIABLE, root / "genes")


def most_bytes() -> int:
    """Return how much all entries may take together."""
    return int(float(os.environ.get(SIZE_VARIABLE) or _MOST_GB) * 1e9)


def key_of(path: Path, part: str) -> str:
    """Return the key of a part of a file or folder as it is now.

    Parameters
    ----------
    path : Path
    part : str
        Such as "X".
    """
    files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else []
    stats = [one.stat() for one in files or [path]]
    size = sum(stat.st_size for stat in stats)
    newest = max(stat.st_mtime_ns for stat in stats)
    text = "\0".join([
        _FORMAT, str(path.resolve()), part, str(len(stats)), str(size), str(newest)
    ])  # fmt: skip
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def find(key: str) -> Path | None:
    """Return the folder of an entry, which counts as used now; None without one."""
    with suppress(OSError):  # a folder that may not be used, or has just been deleted
        path = folder() / key
        if path.is_dir():
            os.utime(path)
            return path
    return None


def discard(key: str) -> None:
    """Delete an entry, if it is there."""
    with suppress(OSError):
        shutil.rmtree(folder() / key, ignore_errors=True)


@contextmanager
def new_entry(key: str, n_bytes: int, where: str) -> Iterator[Path]:
    """Give a folder to write an entry into; it is kept if all goes well.

    Parameters
    ----------
    key : str
    n_bytes : int
        What it will take, roughly.
    where : str
        Name of the file, for the error.

    Raises
    ------
    DataError
        The disk is too full, or the entry is larger than all may be together.
    """
    try:
        _make_room(n_bytes, where)
        part = Path(tempfile.mkdtemp(_UNFINISHED, f"{key}-", folder()))
    except OSError as error:
        raise _not_written(where) from error
    try:
        yield part
        _take_the_place_of(part, folder() / key)
    except (OSError, DataError) as error:
        if _free() <= _LEFT_FREE // 4:
            raise _too_full(n_bytes, where) from error
        if isinstance(error, DataError):
            raise
        raise _not_written(where) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _take_the_place_of(part: Path, entry: Path) -> None:
    try:
        part.rename(entry)
    except OSError:
        if not entry.is_dir():  # else another program has made the same meanwhile
            raise


def _make_room(n_bytes: int, where: str) -> None:
    most = most_bytes()
    if n_bytes > most:
        raise DataError(
            f"{where} needs {size_text(n_bytes)} in a cache on disk to read its genes "
            f"by column, and {size_text(most)} are allowed: set {SIZE_VARIABLE} to "
            "more gigabytes, or store its X as CSC (scipy's tocsc)."
        )
    entries = sorted(_entries(), key=lambda entry: entry[1])
    held = sum(size for _, _, size in entries)
    for path, _, size in entries:
        if held + n_bytes <= most and _free() >= n_bytes + _LEFT_FREE:
            break
        if size >= 1 << 20 or held + n_bytes > most:  # small ones give no room
            shutil.rmtree(path, ignore_errors=True)
            held -= size
    if _free() < n_bytes + _LEFT_FREE:
        raise _too_full(n_bytes, where)


def _entries() -> Iterator[tuple[Path, float, int]]:
    """Yield each entry, when it was used last, and its bytes; remove what is stale."""
    for path in folder().iterdir():
        with suppress(OSError):  # another program deletes it meanwhile
            used = path.stat().st_mtime
            if path.name.endswith(_UNFINISHED):
                if time.time() - used > _STALE:
                    shutil.rmtree(path, ignore_errors=True)
            elif path.is_dir():
                yield path, used, sum(f.stat().st_size for f in path.iterdir())


def _free() -> int:
    return shutil.disk_usage(folder()).free


def _not_written(where: str) -> DataError:
    return DataError(
        f"{where} needs a folder to keep its genes in by column, and the usual one "
        f"cannot be written: name another by {FOLDER_VARIABLE}."
    )


def _too_full(n_bytes: int, where: str) -> DataError:
    return DataError(
        f"{where} needs {size_text(n_bytes)} in {folder()} once to read its genes by "
        f"column, and the disk has {size_text(_free())} free: make room, or name a "
        f"folder on another disk by {FOLDER_VARIABLE}."
    )
