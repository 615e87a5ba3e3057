"""Check zip archives (.npz, sessions) before anything is unpacked."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import PurePosixPath

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.limits.memory import budget, size_text

_MOST_MEMBERS = 100_000
# Of other kinds Python unpacks a part at once, however long it becomes.
_BOUNDED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


def check_archive(
    archive: zipfile.ZipFile, where: str, limit: int | None = None
) -> Mapping[str, zipfile.ZipInfo]:
    """Members by name, all of them harmless to read.

    Reading a member never gives more than its declared size, so it is enough to
    add those up.

    Parameters
    ----------
    archive : ZipFile
    where : str
        Name of the file, as the subject of a sentence.
    limit : int, optional
        The most bytes that all members may have together; by default what fits
        into memory.

    Raises
    ------
    DataError
        If the members are too large together, if a name leads out of the archive,
        if two members have the same name, or if one is encrypted, a link, or packed
        in a way that has no bound.
    """
    most = budget() if limit is None else limit
    members = archive.infolist()
    if len(members) > _MOST_MEMBERS:
        raise DataError(
            f"{where} is damaged: it says that it has {len(members)} parts."
        )
    total = sum(member.file_size for member in members)
    if total > most:
        raise DataError(
            f"{where} would take {size_text(total)} when unpacked, too much for this "
            "computer's memory: embed a smaller part, or check where it comes from."
        )
    by_name: dict[str, zipfile.ZipInfo] = {}
    for member in members:
        if not _stays_inside(member.filename) or _is_link(member):
            raise DataError(
                f'{where} has a part ("{member.filename[:60]}") that leads out of it '
                "and is not read: check where the file comes from."
            )
        if member.filename in by_name or member.flag_bits & 1:
            raise DataError(
                f'{where} has a part ("{member.filename[:60]}") that is there twice or '
                "encrypted: save it again."
            )
        if member.compress_type not in _BOUNDED:
            raise DataError(
                f'{where} has a part ("{member.filename[:60]}") that is packed in an '
                "unusual way and is not read: save it again with numpy.savez."
            )
        by_name[member.filename] = member
    return by_name


def _stays_inside(name: str) -> bool:
    path = PurePosixPath(name.replace("\\", "/"))
    drive = len(name) > 1 and name[1] == ":"
    return not (path.is_absolute() or drive or ".." in path.parts or "\0" in name)


def _is_link(member: zipfile.ZipInfo) -> bool:
    return (member.external_attr >> 16) & 0o170000 == 0o120000
