"""Write and read an untrusted .zip file of texts and arrays.

Everything in it is stored as it is, without compression, so a file cannot hold
more than its own size: what would unpack to more, a zip bomb, is refused before
anything is read.  Nothing is ever unpacked to disk, and arrays are plain numbers.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.data.errors import DataError, explain_damage
from napari_embedding_game.data.export.atomic import whole_or_nothing
from napari_embedding_game.data.limits.memory import check_fits

KIND = "a session file"
_NAME = re.compile(r"[a-z_]+\.json|maps/\d{1,6}/[a-z_]+\.(json|npy)")
_HEADER = re.compile(
    r"\{'descr': '(?P<dtype><f4|<f8|<i4|<i8|\|b1)', 'fortran_order': False, "
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
                    np.lib.format.write_array(
                        member,
                        np.ascontiguousarray(content),
                        version=(1, 0),
                        allow_pickle=False,
                    )


class Container:
    """A file written by :func:`write`, all of it read and checked for damage.

    Raises
    ------
    DataError
        The file is missing, damaged, or not such a file.
    """

    def __init__(self, path: Path) -> None:
        self.name = path.name
        if not path.is_file():
            raise DataError(f"{path} is not there: check the name and the folder.")
        check_fits(path.stat().st_size, path.name, "its content")
        with explain_damage(path, KIND), zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            self._check(members, path.stat().st_size)
            self._members = {info.filename: archive.read(info) for info in members}

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

    def __contains__(self, name: str) -> bool:
        """Whether there is a part of this name."""
        return name in self._members

    def __len__(self) -> int:
        """Return the number of parts."""
        return len(self._members)

    def text(self, name: str) -> bytes:
        """Return a part as it is.

        Raises
        ------
        DataError
            It is missing.
        """
        if name not in self._members:
            raise DataError(f"{self.name} is damaged: {name} is missing in it.")
        return self._members[name]

    def array(
        self, name: str, dtype: str, shape: tuple[int | None, ...]
    ) -> NDArray[Any]:
        """Return an array.

        Parameters
        ----------
        name : str
        dtype : str
            Such as "<f4".
        shape : tuple
            None for a length that may be any.

        Raises
        ------
        DataError
            It is missing, or not such an array.
        """
        content = BytesIO(self.text(name))
        try:
            found_shape, found_dtype = _header(content)
        except ValueError as error:
            raise DataError(
                f"{self.name} is damaged: {name} is no array of numbers."
            ) from error
        fits = len(found_shape) == len(shape) and all(
            wanted in (None, found)
            for wanted, found in zip(shape, found_shape, strict=True)
        )
        if found_dtype != np.dtype(dtype) or not fits:
            raise DataError(
                f"{self.name} is damaged: {name} is {found_dtype.str} of shape "
                f"{ascii(found_shape)[:60]}."
            )
        data = content.getbuffer()[content.tell() :]
        n_items = 1
        for length in found_shape:
            n_items *= length
        if n_items * found_dtype.itemsize != len(data):
            raise DataError(f"{self.name} is damaged: {name} is cut short.")
        return np.frombuffer(data, found_dtype).reshape(found_shape).copy()


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
