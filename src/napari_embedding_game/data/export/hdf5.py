"""Write HDF5 so that a full disk is an error, and not the end of the program."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import h5py
    from anndata import AnnData


@contextmanager
def changed_hdf5(path: Path, mode: str = "r+") -> Iterator[h5py.File]:
    """Open a file to change it, or ("w+") to write it anew.

    Raises OSError in the end if a byte could not be written.
    """
    import h5py

    with _Kept(path, mode) as kept:
        try:
            with h5py.File(kept, "w" if mode == "w+" else "r+") as file:
                yield file
        finally:
            if kept.error is not None:
                raise kept.error


def write_h5ad(adata: AnnData, path: Path) -> None:
    """Write an AnnData as ``AnnData.write_h5ad`` does.

    Raises OSError if there is no room.
    """
    from anndata.io import write_elem

    adata.strings_to_categoricals()
    if adata.raw is not None:
        adata.strings_to_categoricals(adata.raw.var)
    with changed_hdf5(path, "w+") as file:
        write_elem(file, "/", adata, dataset_kwargs={"compression": "gzip"})
        if adata.raw is None:
            file.pop("raw", None)  # a note that there is none, which its own leaves out


class _Kept(io.FileIO):
    """A file that keeps its first error, and from then on writes into memory.

    HDF5 2.0 frees a file that it could not write, but not the arrays in it, and crashes
    when a later file takes their place in memory: so it is never told.  It reads again
    what it has written, and crashes where that is not there.
    """

    error: OSError | None = None

    def __init__(self, path: Path, mode: str) -> None:
        super().__init__(path, mode)
        self._unwritten: list[tuple[int, bytes]] = []
        """Where it would begin, in the order of writing."""

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        place, begun = self.tell(), 0
        while begun < len(view) and self.error is None:
            begun += self._tried(super().write, view[begun:]) or 0
        if self.error is not None:
            self._unwritten.append((place, bytes(view)))
        return len(view)

    def truncate(self, size: int | None = None) -> int:
        return self._tried(super().truncate, size) or 0

    def seek(self, place: int, whence: int = os.SEEK_SET) -> int:
        end = super().seek(place, whence)
        if whence == os.SEEK_END:
            return max([end, *(begin + len(x) for begin, x in self._unwritten)])
        return end

    def readinto(self, buffer: Any) -> int:
        place, view = self.tell(), memoryview(buffer).cast("B")
        n_read = super().readinto(view) or 0
        if self.error is None:
            return n_read
        view[n_read:] = bytes(len(view) - n_read)
        for begin, content in self._unwritten:
            first = max(begin, place)
            n = min(begin + len(content), place + len(view)) - first
            if n > 0:
                known = content[first - begin :][:n]
                view[first - place : first - place + n] = known
        return len(view)

    def _tried(self, call: Callable[[Any], int], value: Any) -> int | None:
        try:
            return call(value) if self.error is None else None
        except OSError as error:
            self.error = error
            return None
