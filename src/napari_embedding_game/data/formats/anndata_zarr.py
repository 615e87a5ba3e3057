"""Open AnnData in a .zarr folder, alone or as a table of SpatialData.

zarr runs what its metadata names, a pickle filter included; so the metadata is
looked through before zarr sees it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.formats.anndata_store import members
from napari_embedding_game.data.limits.memory import check_fits

_METADATA = (".zarray", ".zmetadata", "zarr.json")
_LARGEST_METADATA = 64 << 20
# Compressors, filters and codecs that only rearrange bytes.
_HARMLESS = {
    *("blosc", "bz2", "gzip", "lz4", "lzma", "zlib", "zstd"),
    *("crc32", "crc32c", "adler32", "fletcher32"),
    *("bitround", "delta", "fixedscaleoffset", "packbits", "quantize", "shuffle"),
    *("categorize", "astype", "base64", "json2", "bytes", "transpose"),
    *("vlen-utf8", "vlen-bytes", "vlen-array", "sharding_indexed"),
}
_TABLE = re.compile(r"^tables\['(.+?)'\]\s*(.*)$")
_CODEC_KEYS = ("compressor", "filters", "codecs", "index_codecs")


def open_zarr(path: Path) -> Any:
    """Open a .zarr folder for reading, after a look at what it would run.

    Raises
    ------
    DataError
        If it names a codec that may run code, leads out of the folder, or has
        chunks larger than the memory.
    """
    import zarr

    check_folder(path)
    return zarr.open_group(str(path), mode="r")


def check_folder(path: Path) -> None:
    """Raise DataError if reading this .zarr folder could do harm."""
    inside = path.resolve()
    for file in path.rglob("*"):
        if file.is_symlink() and inside not in file.resolve().parents:
            raise DataError(
                f'{path.name} has a part ("{file.relative_to(path)}") that lies '
                "elsewhere on this computer, which is not followed: copy the folder "
                "with everything inside."
            )
        if not (file.is_file() or file.is_dir()):
            raise DataError(
                f'{path.name} has a part ("{file.relative_to(path)}") that is neither '
                "file nor folder: copy the folder again."
            )
        if file.name in _METADATA:
            _check_metadata(file, path)


def _check_metadata(file: Path, path: Path) -> None:
    if file.stat().st_size > _LARGEST_METADATA:
        raise DataError(
            f"{path.name} is damaged: {file.relative_to(path)} is far too large."
        )
    for part in _arrays(json.loads(file.read_text())):
        for codec in _codecs(part):
            name = codec.removeprefix("numcodecs.")
            if name not in _HARMLESS:
                raise DataError(
                    f'{path.name} stores numbers by "{codec}", which could run any '
                    "program and is never used: write it again with AnnData's "
                    "write_zarr."
                )
        chunk = part.get("chunks") or _chunk_of_version_3(part)
        if isinstance(chunk, list) and all(isinstance(size, int) for size in chunk):
            check_fits(8 * math.prod(chunk), path.name, "one block of it")


def _arrays(metadata: Any) -> Iterator[dict[str, Any]]:
    """All objects in a piece of metadata, from the outermost inwards."""
    if isinstance(metadata, dict):
        yield metadata
        # What users note ("attributes") names nothing that zarr runs.
        metadata = [part for key, part in metadata.items() if key != "attributes"]
    if isinstance(metadata, list):
        for part in metadata:
            yield from _arrays(part)


def _codecs(part: dict[str, Any]) -> Iterator[str]:
    for key in _CODEC_KEYS:
        named = part.get(key)
        for codec in named if isinstance(named, list) else [named]:
            if isinstance(codec, dict):
                yield str(codec.get("id", codec.get("name", "")))


def _chunk_of_version_3(part: dict[str, Any]) -> Any:
    grid = part.get("chunk_grid")
    configuration = grid.get("configuration") if isinstance(grid, dict) else None
    return configuration.get("chunk_shape") if isinstance(configuration, dict) else None


def table_names(root: Any) -> list[str]:
    """Names of the tables of a SpatialData folder; none for an AnnData folder."""
    if "obs" in root or "tables" not in root:
        return []
    return [key for key, table in members(root["tables"]) if "obs" in table]


def split_table(space: str | None) -> tuple[str | None, str | None]:
    """Table and space of a name such as ``tables['cells'] X``."""
    match = _TABLE.match(space or "")
    return (match[1], match[2] or None) if match else (None, space)
