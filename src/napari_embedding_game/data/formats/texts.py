"""Let zarr count the texts of a block before it makes room for them.

A block of texts begins with their number, 4 bytes, and each text with its length.
numcodecs makes room for so many texts as the number says: for 2,000,000,000 of a
damaged byte, which takes longer than anybody waits.
"""

from __future__ import annotations

from typing import Any

_NUMBER = 4
"""Bytes of a number."""


def count_texts() -> None:
    """Refuse blocks with more texts than they have bytes for, in all of the process.

    Then ValueError is raised by whatever reads such a block.
    """
    import numcodecs
    import zarr
    from zarr.codecs import VLenUTF8Codec as OfZarr

    class OldTexts(numcodecs.VLenUTF8):  # type: ignore[misc]
        """Texts of version 2 of zarr."""

        def decode(self, buf: Any, out: Any = None) -> Any:
            _check(bytes(memoryview(buf).cast("B")[:_NUMBER]), memoryview(buf).nbytes)
            return super().decode(buf, out)

    class VLenUTF8Codec(OfZarr):
        """Texts of version 3 of zarr, which asks for a codec of this name."""

        async def _decode_single(self, chunk_bytes: Any, chunk_spec: Any) -> Any:
            content = chunk_bytes.to_bytes()
            _check(content[:_NUMBER], len(content))
            return await super()._decode_single(chunk_bytes, chunk_spec)

    numcodecs.register_codec(OldTexts, "vlen-utf8")
    zarr.registry.register_codec("vlen-utf8", VLenUTF8Codec)
    name = f"{__name__}.{VLenUTF8Codec.__qualname__}"
    zarr.config.set({"codecs.vlen-utf8": name})


def _check(number: bytes, n_bytes: int) -> None:
    if _NUMBER * int.from_bytes(number, "little") > n_bytes:
        raise ValueError("a block says that it has more texts than it has bytes for")
