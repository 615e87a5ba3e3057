"""Check the unpacked size of HDF5 chunks before HDF5 unpacks them.

HDF5 unpacks a block as far as it goes, whatever the size that the file declares; and
a thousand names may all point to the same long text, which is then held a thousand
times.
"""

from __future__ import annotations

import io
import math
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.limits.memory import DEFLATE_RATIO, check_fits, fits

_STEP = 1 << 24  # bytes unpacked at a time
_SHUFFLE, _CHECKSUM, _DEFLATE, _LZF = 2, 3, 1, 32000
_PACKERS = (_DEFLATE, _LZF)
_DESCRIPTOR = 16  # bytes that stand for a text: its length, and where it is


def check_blocks(array: Any, where: str, what: str) -> None:
    """Raise DataError if reading this HDF5 dataset could fill the memory.

    `where` names the file, `what` the part of it.
    """
    if array.chunks is not None:
        packer = _packer(array, where, what)
        block = math.prod(map(int, array.chunks)) * array.dtype.itemsize
        check_fits(block, where, f"one block of {what}")
        if packer is not None:
            _check_unpacked(array, packer, block, where, what)
    if array.dtype.hasobject:
        check_fits(_bytes_of_texts(array, where, what), where, f"the texts of {what}")


def _packer(array: Any, where: str, what: str) -> int | None:
    """Place of the one filter that packs, among those AnnData and Cell Ranger use."""
    plist = array.id.get_create_plist()
    filters = [plist.get_filter(i) for i in range(plist.get_nfilters())]
    codes = [code for code, *_ in filters]
    packers = [place for place, code in enumerate(codes) if code in _PACKERS]
    unknown = [f for f in filters if f[0] not in (*_PACKERS, _SHUFFLE, _CHECKSUM)]
    if unknown:
        name = unknown[0][-1].decode("ascii", "replace")[:40]
        raise DataError(
            f'{where} stores {what} packed by "{name}", which cannot be checked before '
            'it is unpacked: write it again with compression="gzip".'
        )
    is_strange = packers and set(codes[packers[0] + 1 :]) - {_CHECKSUM}
    if len(packers) > 1 or is_strange:
        raise DataError(f"{where} is damaged: {what} is packed twice.")
    return packers[0] if packers else None


def _check_unpacked(array: Any, packer: int, most: int, where: str, what: str) -> None:
    """Unpack the blocks on trial that are large enough to do harm."""
    if fits(array.id.get_storage_size() * DEFLATE_RATIO):
        return

    def check(block: Any) -> None:
        is_packed = not block.filter_mask >> packer & 1
        if fits(block.size * DEFLATE_RATIO) or not is_packed:
            return
        _, packed = array.id.read_direct_chunk(block.chunk_offset)
        if array.compression != "gzip" or _unpacks_beyond(packed, most):
            raise DataError(
                f"{where} has a block in {what} that unpacks to more than it says, "
                "and could fill this computer's memory: check where it comes from."
            )

    array.id.chunk_iter(check)


def _unpacks_beyond(packed: bytes, most: int) -> bool:
    unpacker, held = zlib.decompressobj(), 0
    while not unpacker.eof and held <= most:
        part = unpacker.decompress(packed, _STEP)
        if not part and not unpacker.unconsumed_tail:
            break
        held, packed = held + len(part), unpacker.unconsumed_tail
    return held > most


def _bytes_of_texts(array: Any, where: str, what: str) -> int:
    """Bytes of all texts together, or more; each is counted as often as it is named."""
    import h5py

    held = array.size * int(array.file.id.get_filesize())
    if fits(held) or h5py.check_ref_dtype(array.dtype) is not None:
        return 0
    layout = array.id.get_create_plist().get_layout()
    if h5py.check_string_dtype(array.dtype) is None or layout == h5py.h5d.COMPACT:
        raise DataError(f"{where} holds {what} in a form that is not read.")
    return int(_descriptors(array)["length"].sum(dtype=np.int64))


def _descriptors(array: Any) -> NDArray[Any]:
    """Length of each text (and 12 bytes that say where it is), as the file has it."""
    kind = np.dtype({"names": ["length"], "formats": ["<u4"], "itemsize": _DESCRIPTOR})
    if array.chunks is None:
        return _contiguous(array, kind)
    return _unpacked(array).view(kind)


def _contiguous(array: Any, kind: np.dtype[Any]) -> NDArray[Any]:
    begin, n_bytes = array.id.get_offset(), array.size * _DESCRIPTOR
    if begin is None:  # no text has been written
        return np.zeros(0, kind)
    with open(array.file.filename, "rb") as file:
        file.seek(begin)
        return np.frombuffer(file.read(n_bytes), kind)


def _unpacked(array: Any) -> NDArray[Any]:
    """Descriptors of a dataset in blocks: HDF5 unpacks them as if they were numbers."""
    import h5py

    with h5py.File(io.BytesIO(), "w") as aside:
        copy = aside.create_dataset(
            "texts",
            array.shape,
            f"V{_DESCRIPTOR}",
            chunks=array.chunks,
            compression=array.compression,
            shuffle=array.shuffle,
            fletcher32=array.fletcher32,
        )

        def take(block: Any) -> None:
            mask, packed = array.id.read_direct_chunk(block.chunk_offset)
            copy.id.write_direct_chunk(block.chunk_offset, packed, mask)

        array.id.chunk_iter(take)
        return np.asarray(copy[...]).ravel()
