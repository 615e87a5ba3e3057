"""Check that declared sizes fit into memory before anything is read."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import psutil

from napari_embedding_game.data.errors import DataError

_BLOCK = 1 << 20  # bytes read at a time


def find_byte_budget() -> int:
    """Return the bytes that one part of a file may take: half of the free memory."""
    return int(psutil.virtual_memory().available) // 2


def check_fits(n_bytes: int, where: str, what: str = "its numbers") -> None:
    """Raise DataError if `n_bytes` exceed the :func:`find_byte_budget`.

    `where` names the file, `what` the part of the file: "its table", "X".
    """
    if n_bytes <= find_byte_budget():
        return
    raise DataError(
        f"{where} says that {what} would take {format_size(n_bytes)}, and this "
        f"computer has {format_size(2 * find_byte_budget())} of memory free: embed a "
        "smaller part, or check where the file comes from."
    )


def read_unpacked(path: Path, memory_factor: int = 1) -> bytes:
    """Return the content of a file, of a .gz file its unpacked content.

    ``memory_factor``: bytes of memory that each byte of the content will take. Raises
    DataError if these exceed the :func:`find_byte_budget`; reading stops there.
    """
    most, content = find_byte_budget() // memory_factor, io.BytesIO()
    opened = gzip.open if path.suffix.lower() == ".gz" else open
    with opened(path, "rb") as file:
        while content.write(file.read(_BLOCK)):
            check_bytes_read(content.tell(), path.name, most)
    return content.getvalue()  # this makes no copy


def check_bytes_read(n_bytes: int, where: str, n_most: int) -> None:
    """Raise DataError if `n_bytes`, read from `where` so far, exceed `n_most`."""
    if n_bytes > n_most:
        raise DataError(
            f"{where} holds more than {format_size(n_most)} when unpacked, too much "
            "for this computer's memory: embed a smaller part, or check where the file "
            "comes from."
        )


def format_size(n_bytes: float) -> str:
    """Format a number of bytes with a unit: "8.0 TB"."""
    units = ["bytes", "kB", "MB", "GB", "TB"]
    while n_bytes >= 1000 and len(units) > 1:
        n_bytes, units = n_bytes / 1000, units[1:]
    return f"{n_bytes:,.{0 if units[0] == 'bytes' else 1}f} {units[0]}"
