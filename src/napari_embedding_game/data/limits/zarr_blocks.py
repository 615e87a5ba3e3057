"""Check the unpacked size of zarr chunks before zarr unpacks them."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.limits.memory import DEFLATE_RATIO, check_fits

_STEP = 1 << 24  # bytes unpacked at a time
_HARMLESS = 1 << 26  # zarr unpacks ten blocks at a time
_METADATA = (".zarray", ".zattrs", ".zmetadata", "zarr.json")
_PACKERS = ("blosc", "gzip", "lz4", "zlib", "zstd")
_OTHERS = ("bytes", "transpose", "vlen-utf8")
_TEXT = "vlen-utf8"
_SHARDING = "sharding_indexed"
_ENTRY, _CHECKSUM = 16, 4  # bytes in the index of a shard
_EMPTY = 2**64 - 1
_ZSTD = b"\x28\xb5\x2f\xfd"
_ZSTD_BLOCK = 1 << 17  # the most that one of its blocks unpacks to


def check_blocks(array: Any, where: str, what: str) -> None:
    """Raise DataError if reading this zarr array could fill the memory.

    `where` names the folder, `what` the part of it.
    """
    used = _codecs(array)
    shard = _Shard.of(array, used, where, what)
    if shard is not None:
        check_fits(shard.n_bytes, where, f"one file of {what}")
        used = shard.codecs
    names = [name for name, _ in used]
    packer = _packer(names, where, what)
    n_values, is_text = math.prod(map(int, array.chunks)), _TEXT in names
    size = n_values * array.dtype.itemsize
    check_fits(size, where, f"one block of {what}")
    most, held = _HARMLESS if is_text else max(_HARMLESS, size), 0
    for content in _blocks(array, shard):
        n_bytes = unpacked(content, packer, most)
        if n_bytes > most or (is_text and _n_texts(content, packer) > n_values):
            raise DataError(
                f"{where} has a block in {what} that unpacks to more than it says, "
                "and could fill this computer's memory: check where it comes from."
            )
        held += n_bytes
    check_fits(held if is_text else 0, where, f"the texts of {what}")


Codec = tuple[str, Mapping[str, Any]]
"""Name and settings."""


def _codecs(array: Any) -> list[Codec]:
    """What zarr uses, in either version of the format, in order of writing."""
    metadata = array.metadata
    if hasattr(metadata, "codecs"):
        return _named(codec.to_dict() for codec in metadata.codecs)
    used = [*(metadata.filters or ()), metadata.compressor]
    return [(str(codec.codec_id), {}) for codec in used if codec is not None]


def _named(codecs: Iterable[Mapping[str, Any]]) -> list[Codec]:
    return [(str(c["name"]), c.get("configuration") or {}) for c in codecs]


@dataclass(frozen=True, slots=True)
class _Shard:
    """A file with several blocks and an index of where each is.

    anndata writes so since 0.13.  The format is zarr's "sharding_indexed": pairs of
    offset and length, 8 bytes each, all bits set where a block is empty.
    """

    n_bytes: int
    """What all blocks of a file unpack to, by the word of the metadata."""
    n_blocks: int
    is_index_first: bool
    n_index: int
    """Bytes of the index, with its checksum."""
    codecs: list[Codec]
    """What each block is packed by."""

    @classmethod
    def of(cls, array: Any, used: list[Codec], where: str, what: str) -> _Shard | None:
        """Return the layout of an array's files; None if each is one block."""
        if [name for name, _ in used] != [_SHARDING]:
            return None
        settings = used[0][1]
        index = [name for name, _ in _named(settings["index_codecs"])]
        if index not in (["bytes"], ["bytes", "crc32c"]):
            raise _unknown(where, what, index[-1] if index else "nothing")
        file = list(map(int, array.shards))
        block = list(map(int, settings["chunk_shape"]))
        n_blocks = math.prod(a // b for a, b in zip(file, block, strict=True))
        return cls(
            n_bytes=math.prod(file) * array.dtype.itemsize,
            n_blocks=n_blocks,
            is_index_first=str(settings["index_location"]) == "start",
            n_index=_ENTRY * n_blocks + (_CHECKSUM if len(index) > 1 else 0),
            codecs=_named(settings["codecs"]),
        )

    def blocks(self, path: Path) -> Iterator[bytes]:
        """Yield each block of a file that is not empty.

        Raises
        ------
        ValueError
            If the index is cut short, or points outside the file.
        """
        n_file = path.stat().st_size
        if n_file < self.n_index:
            raise ValueError(f"{path.name} is shorter than its index")
        with path.open("rb") as file:
            file.seek(0 if self.is_index_first else n_file - self.n_index)
            places = np.frombuffer(file.read(_ENTRY * self.n_blocks), "<u8")
            for offset, length in places.reshape(-1, 2).tolist():
                if offset == length == _EMPTY:
                    continue
                if offset + length > n_file:
                    raise ValueError(f"{path.name} has a block outside the file")
                file.seek(offset)
                yield file.read(length)


def _unknown(where: str, what: str, codec: str) -> DataError:
    return DataError(
        f'{where} stores {what} packed by "{codec}", which cannot be checked '
        "before it is unpacked: write it again with AnnData's write_zarr."
    )


def _packer(names: list[str], where: str, what: str) -> str | None:
    """Name of the one codec that packs, among those AnnData and SpatialData use."""
    packers = [name for name in names if name in _PACKERS]
    unknown = [name for name in names if name not in (*_PACKERS, *_OTHERS)]
    if unknown:
        raise _unknown(where, what, unknown[0])
    if len(packers) > 1 or (packers and names[-1] != packers[0]):
        raise DataError(f"{where} is damaged: {what} is packed twice.")
    return packers[0] if packers else None


def _blocks(array: Any, shard: _Shard | None) -> Iterator[bytes]:
    root = getattr(array.store, "root", None) or array.store.path
    for path in (Path(root) / array.path).rglob("*"):
        if not path.is_file() or path.name in _METADATA:
            continue
        if shard is None:
            yield path.read_bytes()
        else:
            yield from shard.blocks(path)


def _n_texts(content: bytes, packer: str | None) -> int:
    """Number of texts that a block says it has, once it is known to be harmless."""
    from numcodecs import get_codec

    plain = content if packer is None else get_codec({"id": packer}).decode(content)
    return int.from_bytes(bytes(plain[:4]), "little")


def unpacked(content: bytes, packer: str | None, most: int) -> int:
    """Bytes that a block unpacks to, or a few more; beyond `most` it need not count.

    Parameters
    ----------
    content : bytes
    packer : {"blosc", "gzip", "lz4", "zlib", "zstd"} or None
    most : int

    Raises
    ------
    ValueError, zlib.error
        If the block is damaged.
    """
    if packer == "blosc":
        return int.from_bytes(content[4:8], "little")
    if packer == "lz4":
        return int.from_bytes(content[:4], "little")
    if packer == "zstd":
        return _of_zstd(content)
    if packer in ("gzip", "zlib"):
        return _of_deflate(content, most)
    return len(content)


def _of_deflate(content: bytes, most: int) -> int:
    """Bytes of all the streams that stand one behind the other."""
    if len(content) * DEFLATE_RATIO <= most:
        return len(content) * DEFLATE_RATIO
    held = 0
    while content and held <= most:
        unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)
        while not unpacker.eof and held <= most:
            part = unpacker.decompress(content, _STEP)
            if not part and not unpacker.unconsumed_tail:
                return held
            held, content = held + len(part), unpacker.unconsumed_tail
        content = unpacker.unused_data
    return held


def _of_zstd(content: bytes) -> int:
    """Bytes by the word of each frame, or of its blocks if they are less.

    The unpacker makes room for what a frame says and writes no more; a frame that
    does not say it is unpacked block by block (RFC 8878, section 3.1.1).
    """
    held, place = 0, 0
    while place < len(content):
        if content[place : place + 4] != _ZSTD:
            raise ValueError("no frame of zstd")
        flags = content[place + 4]
        size, begin = _zstd_head(content, place + 5)
        blocks, place = _zstd_blocks(content, begin)
        place += 4 * (flags >> 2 & 1)  # the checksum
        held += blocks if size is None else min(size, blocks)
    return held


def _zstd_head(content: bytes, place: int) -> tuple[int | None, int]:
    """Size that a frame says it has, and where its blocks begin."""
    flags = content[place - 1]
    is_single = flags >> 5 & 1
    n_size = (is_single, 2, 4, 8)[flags >> 6]
    place += (1 - is_single) + (0, 1, 2, 4)[flags & 3]
    size = int.from_bytes(content[place : place + n_size], "little")
    size += 256 if n_size == 2 else 0
    return (size if n_size else None), place + n_size


def _zstd_blocks(content: bytes, place: int) -> tuple[int, int]:
    """Bytes that the blocks of a frame unpack to at most, and where they end."""
    held, is_last = 0, False
    while not is_last:
        head = int.from_bytes(content[place : place + 3], "little")
        is_last, kind, size = bool(head & 1), head >> 1 & 3, head >> 3
        held += _ZSTD_BLOCK if kind == 2 else size
        place += 3 + (1 if kind == 1 else size)
        if place > len(content):
            raise ValueError("a frame of zstd is cut short")
    return held, place
