"""Write files atomically: complete, or not at all."""

from __future__ import annotations

import glob
import os
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from napari_embedding_game.data.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

_RETRY_SECONDS = (0.05, 0.2, 0.8)
"""Seconds between attempts while another program, such as OneDrive, holds the old
file."""


def write_csv(table: pd.DataFrame, path: Path) -> None:
    """Write the columns of a table, without its index, as :func:`atomic_write` does."""
    with atomic_write(path) as temporary:
        table.to_csv(temporary, index=False)


@contextmanager
def atomic_write(path: Path, *, is_private: bool = False) -> Iterator[Path]:
    """Yield a temporary file that replaces `path` on success.

    An existing file is replaced in one step, also when the power fails, and keeps its
    mode; for a symbolic link, its target is replaced. If another program holds the old
    file, this is tried again for a second. Temporary files of killed programs for the
    same path are deleted. A new file can be read by its owner alone if it `is_private`.

    After an error in the block `path` stays as it was. Raises DataError if the file
    cannot be written; any OSError of the block becomes a DataError, too.
    """
    target = resolve_target(path)
    token = f"{os.getpid()}-{secrets.token_hex(4)}"
    temporary = target.with_name(f".{token}-{target.name}")
    try:
        delete_temporaries(target)
        mode = target.stat().st_mode & 0o7777 if target.exists() else None
        # The temporary file must not be readable for more people than the final file.
        new = 0o600 if is_private or mode is not None else 0o666
        try:
            temporary.touch(new, exist_ok=False)
            yield temporary
            with temporary.open("rb+") as file:
                os.fsync(file.fileno())
            if mode is not None:
                temporary.chmod(mode)
            for seconds in (*_RETRY_SECONDS, None):
                try:
                    os.replace(temporary, target)
                    break
                except PermissionError:
                    if seconds is None:
                        raise
                    time.sleep(seconds)
            if os.name == "posix":  # on other systems renaming is durable
                folder = os.open(target.parent, os.O_RDONLY)
                os.fsync(folder)
                os.close(folder)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise DataError(
            f"{path} could not be written ({error.strerror or error}): make room, "
            "close it in other programs, or choose another folder or name."
        ) from error


def delete_temporaries(path: Path) -> None:
    """Delete temporary files for `path` of programs that were killed while writing.

    Files of running programs stay; a file that cannot be deleted is ignored.
    """
    name = re.compile(rf"\.(\d+)-[0-9a-f]{{8}}-{re.escape(path.name)}")
    for half in path.parent.glob(f".*-{glob.escape(path.name)}"):
        match = name.fullmatch(half.name)
        if match and not psutil.pid_exists(int(match[1])):
            with suppress(OSError):  # another program may delete it first
                half.unlink()


def resolve_target(path: Path) -> Path:
    """Return the file that is written to: for a symbolic link, its target."""
    return Path(os.path.realpath(path))


def check_not_source(path: Path, source: Path | None) -> None:
    """Raise DataError if both paths are one file; an unreachable source is ignored."""
    with suppress(OSError):
        if source is not None and path.samefile(source):
            raise DataError(
                f"{path.name} is the input itself and stays as it is: choose another "
                "name for the result."
            )
