"""Write files atomically: complete, or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from napari_embedding_game.data.errors import DataError


@contextmanager
def whole_or_nothing(path: Path) -> Iterator[Path]:
    """Give a temporary file that takes the place of `path` when all went well.

    An existing file is replaced in one step, also when the power fails.

    Raises
    ------
    DataError
        The file cannot be written.
    """
    # Not made by tempfile: nobody else could read what takes the place of `path`.
    temporary = path.with_name(f".{secrets.token_hex(6)}-{path.name}")
    try:
        try:
            yield temporary
            _flush(temporary)
            os.replace(temporary, path)
            _flush_folder(path.parent)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise DataError(
            f"{path} could not be written ({error.strerror or error}): make room or "
            "choose another folder."
        ) from error


def is_same_file(path: Path, source: Path) -> bool:
    """Return whether both are one file; a source out of reach is none."""
    try:
        return path.samefile(source)
    except OSError:
        return False


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
