"""Rows of a file that are read when they are asked for, some at a time.

A value of this kind is small and can be sent to another process, which opens the file
itself.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.formats.anndata import open_store
from napari_embedding_game.data.formats.anndata_contents import (
    choose,
    is_legacy,
    split_space,
)
from napari_embedding_game.data.formats.anndata_store import is_array
from napari_embedding_game.data.formats.anndata_zarr import check_folder


class LazyRows:
    """A dense space of AnnData (.h5ad, .zarr), or an array of zarr.

    Parameters
    ----------
    path : Path
    space : str, optional
        As :func:`~.formats.anndata.anndata_stages` takes it; not for an array.

    Raises
    ------
    DataError
        There is no such space, or it is sparse or of text.
    """

    def __init__(self, path: Path, space: str | None = None) -> None:
        self.path = path
        self._key: tuple[str, ...] = ()
        self.space = "array"
        self._open: Any = None
        self._closing = ExitStack()
        if not _is_zarr_array(path):
            self._key, self.space = self._find(space)
        item = self._item()
        if not is_array(item) or item.ndim != 2 or item.dtype.kind not in "fiub":
            raise DataError(
                f"{path.name}: {self.space} is no dense table of numbers, which is "
                "read in parts: choose a space such as X_pca."
            )
        self.shape: tuple[int, int] = (int(item.shape[0]), int(item.shape[1]))

    def read(self, begin: int, end: int) -> NDArray[np.floating]:
        """Return the rows from ``begin`` up to before ``end``, in their precision.

        Raises
        ------
        DataError
            Some of them have missing or infinite numbers.
        """
        rows = np.ascontiguousarray(self._item()[begin:end], self._dtype())
        is_whole = np.isfinite(rows).all(axis=1)
        if not is_whole.all():
            first = begin + int(np.flatnonzero(~is_whole)[0])
            raise DataError(
                f"{self.path.name} has missing or infinite numbers, first in row "
                f"{first + 1:,}: write a file without such rows."
            )
        return rows

    def take(
        self, numbers: NDArray[np.integer], n_at_once: int = 65_536
    ) -> NDArray[np.floating]:
        """Return rows by their ascending numbers, reading ``n_at_once`` at a time."""
        taken = np.empty((len(numbers), self.shape[1]), self._dtype())
        for begin in range(0, self.shape[0], n_at_once):
            end = min(begin + n_at_once, self.shape[0])
            first, last = np.searchsorted(numbers, (begin, end))
            if first < last:
                taken[first:last] = self.read(begin, end)[numbers[first:last] - begin]
        return taken

    def _find(self, space: str | None) -> tuple[tuple[str, ...], str]:
        """Return the way to the space in the file, and its name."""
        name = self.path.name
        with open_store(self.path) as root:
            if is_legacy(root, name):
                raise DataError(
                    f"{name} was written by an old anndata, and is not read in parts: "
                    "write it again with a newer one."
                )
            chosen = choose(root, space, name)
        return split_space(chosen) or (chosen,), chosen

    def _dtype(self) -> np.dtype[Any]:
        """Return the kind of float that holds the numbers of the file."""
        can_be_single = np.can_cast(self._item().dtype, np.float32)
        return np.dtype(np.float32 if can_be_single else np.float64)

    def _item(self) -> Any:
        if self._open is None:
            if self._key:
                self._open = self._closing.enter_context(open_store(self.path))
                for part in self._key:
                    self._open = self._open[part]
            else:
                import zarr

                check_folder(self.path)
                self._open = zarr.open_array(str(self.path), mode="r")
        return self._open

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the open file."""
        return {**vars(self), "_open": None, "_closing": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _closing=ExitStack())


def _is_zarr_array(path: Path) -> bool:
    """Return whether a folder is one array of zarr, of its version 2 or 3."""
    if (path / ".zarray").is_file():
        return True
    metadata = path / "zarr.json"
    return metadata.is_file() and '"node_type": "array"' in metadata.read_text()
