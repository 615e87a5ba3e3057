"""Write and read an untrusted .zip file of texts and arrays.

Everything in it is stored as it is, without compression, so a file cannot hold
more than its own size: what would unpack to more, a zip bomb, is refused before
anything is read.  Nothing is ever unpacked to disk, and arrays are plain numbers.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.data.errors import DataError, explain_damage
from napari_embedding_game.data.export.atomic import whole_or_nothing
from napari_embedding_game.data.limits.memory import check_fits

KIND = "a session file"
ARRAY = "arrays/{}.npy"
"""Name of an array by its number."""
_NAME = re.compile(
    r"session\.json|maps/\d{1,6}\.json|arrays/\d{1,6}\.npy"
    r"|maps/\d{1,6}/[a-z_]+\.(json|npy)"  # of 0.2 and 0.3, which are told as such
)
_HEADER = re.compile(
    r"\{'descr': '(?P<dtype>[<|][biuf][1248])', 'fortran_order': False, "
    r"'shape': \((?P<shape>(\d{1,15},|\d{1,15}(, \d{1,15})+)?)\), \} *\n"
)
_EPOCH = (1980, 1, 1, 0, 0, 0)


def write(
    path: Path,
    members: Mapping[str, bytes | NDArray[Any]],
    *,
    is_private: bool = False,
) -> None:
    """Write texts and arrays by their names, as :func:`~.atomic.whole_or_nothing`.

    Raises
    ------
    DataError
        The file cannot be written.
    """
    writing = whole_or_nothing(path, is_private=is_private)
    with writing as temporary, temporary.open("wb") as file:
        _write_members(file, members)


def _write_members(file: Any, members: Mapping[str, bytes | NDArray[Any]]) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            with archive.open(zipfile.ZipInfo(name, _EPOCH), "w") as member:
                if isinstance(content, bytes):
                    member.write(content)
                else:
                    little = content.astype(content.dtype.newbyteorder("<"), copy=False)
                    np.lib.format.write_array(
                        member, little, (1, 0), allow_pickle=False
                    )


class Container:
    """A file written by :func:`write`, whose parts are read when they are asked for.

    Raises
    ------
    DataError
        The file is missing, damaged, or not such a file.
    """

    def __init__(self, path: Path) -> None:
        self.name, self._path = path.name, path
        if not path.is_file():
            raise DataError(f"{path} is not there: check the name and the folder.")
        check_fits(path.stat().st_size, path.name, "its content")
        with self._opened() as archive:
            self._check(archive.infolist(), path.stat().st_size)
            self._names = archive.namelist()

    @contextmanager
    def _opened(self) -> Iterator[zipfile.ZipFile]:
        with explain_damage(self._path, KIND), zipfile.ZipFile(self._path) as archive:
            yield archive

    def _check(self, members: list[zipfile.ZipInfo], size: int) -> None:
        names = [info.filename for info in members]
        strange = [name for name in names if not _NAME.fullmatch(name)]
        if strange or len(set(names)) < len(names):
            raise DataError(
                f"{self.name} is no session file: it holds "
                f"{ascii(strange[0])[:60] if strange else 'a name twice'}."
            )
        is_packed = any(
            info.compress_type != zipfile.ZIP_STORED
            or info.file_size != info.compress_size
            for info in members
        )
        if is_packed or sum(info.file_size for info in members) > size:
            raise DataError(
                f"{self.name} is no session file: its parts are compressed, and may "
                "unpack to more than this computer can hold."
            )

    def text(self, name: str) -> bytes:
        """Return a part as it is.

        Raises
        ------
        DataError
            It is missing, or damaged.
        """
        if name not in self._names:
            raise DataError(f"{self.name} is damaged: {name} is missing in it.")
        with self._opened() as archive:
            return archive.read(name)

    def arrays(self) -> list[NDArray[Any]]:
        """Return all arrays in the order of their numbers.

        Raises
        ------
        DataError
            One is missing, or no array of numbers.
        """
        n_arrays = sum(name.startswith("arrays/") for name in self._names)
        names = [ARRAY.format(number) for number in range(n_arrays)]
        missing = set(names).difference(self._names)
        if missing:
            raise DataError(f"{self.name} is damaged: {min(missing)} is missing in it.")
        with self._opened() as archive:
            return [self._array(name, archive.read(name)) for name in names]

    def _array(self, name: str, content: bytes) -> NDArray[Any]:
        file = BytesIO(content)
        try:
            shape, dtype = _header(file)
            return (
                np.frombuffer(content, dtype, offset=file.tell()).reshape(shape).copy()
            )
        except ValueError as error:
            raise DataError(
                f"{self.name} is damaged: {name} is no array of numbers."
            ) from error


def _header(content: BytesIO) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Read the head of a .npy file as numpy writes it, and nothing but that."""
    if content.read(8) != b"\x93NUMPY\x01\x00":
        raise ValueError("another format")
    length = int.from_bytes(content.read(2), "little")
    match = _HEADER.fullmatch(content.read(length).decode("ascii"))
    if match is None:
        raise ValueError("another kind of array")
    shape = tuple(int(part) for part in match["shape"].split(",") if part.strip())
    return shape, np.dtype(match["dtype"])
