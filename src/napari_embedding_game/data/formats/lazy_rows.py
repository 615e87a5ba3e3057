"""Rows of a file that are read on demand, a range at a time.

A LazyRows is small and can be sent to another process, which opens the file itself.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.formats.anndata import to_readable_root
from napari_embedding_game.data.formats.spaces import choose_space, get_space_item
from napari_embedding_game.data.formats.store import (
    check_zarr_folder,
    is_array,
    is_zarr_array,
    open_store,
)


class LazyRows:
    """The rows of a dense space of AnnData (.h5ad, .zarr), or of a zarr array.

    Raises DataError if there is no such space, or it is sparse or of text.
    """

    def __init__(self, path: Path, space: str | None = None) -> None:
        """Open the rows of a space of `path`, by default of the space that suits a map.

        ``self.space`` becomes the full name of the space; of a zarr array it is
        "array".
        """
        self.path, self.space = path, space
        self._open: Any = None
        item = self._open_item()
        is_dense = is_array(item) and not sp.issparse(item)
        if not is_dense or item.ndim != 2 or item.dtype.kind not in "fiub":
            raise DataError(
                f"{path.name}: {self.space} is no dense table of numbers, which is "
                "read in parts: choose a space such as X_pca."
            )
        self.shape: tuple[int, int] = (int(item.shape[0]), int(item.shape[1]))
        is_single = np.can_cast(item.dtype, np.float32)
        self._dtype = np.dtype(np.float32 if is_single else np.float64)

    def read_range(self, begin: int, end: int) -> NDArray[np.floating]:
        """Return the rows from ``begin`` up to before ``end``, as float32 or float64.

        The type is float32 if it holds all numbers of the stored type, else float64.
        Raises DataError if any row has missing or infinite numbers, and names the
        first.
        """
        rows = np.ascontiguousarray(self._open_item()[begin:end], self._dtype)
        is_finite = np.isfinite(rows).all(axis=1)
        if not is_finite.all():
            raise DataError(
                f"{self.path.name} has missing or infinite numbers, first in row "
                f"{begin + int(is_finite.argmin()) + 1:,}: write a file without such "
                "rows."
            )
        return rows

    def take_rows(
        self, numbers: NDArray[np.integer], n_at_once: int = 65_536
    ) -> NDArray[np.floating]:
        """Return the rows with the given numbers, (k, D), in the order of the numbers.

        ``numbers``: (k,) ascending numbers of rows from 0. The file is read in ranges
        of ``n_at_once`` rows; ranges without a wanted row are skipped. Raises DataError
        as :meth:`read_range` does, also for unwanted rows of a range.
        """
        values = np.empty((len(numbers), self.shape[1]), self._dtype)
        for begin in range(0, self.shape[0], n_at_once):
            end = min(begin + n_at_once, self.shape[0])
            first, last = np.searchsorted(numbers, (begin, end))
            if first < last:
                values[first:last] = self.read_range(begin, end)[
                    numbers[first:last] - begin
                ]
        return values

    def _open_item(self) -> Any:
        """Return the array with the rows; the first call opens it and sets the space.

        Raises DataError if the file has no such space, or is not safe to open.
        """
        if self._open is None:
            self._closing = ExitStack()
            if is_zarr_array(self.path):
                import zarr

                check_zarr_folder(self.path)
                self._open = zarr.open_array(str(self.path), mode="r")
                self.space = "array"
            else:
                root = self._closing.enter_context(open_store(self.path))
                parts = to_readable_root(root, self.path)
                self.space = choose_space(parts, self.space, self.path.name)
                self._open = get_space_item(parts, self.space)
        return self._open

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes without the open file, for pickle."""
        return {**vars(self), "_open": None, "_closing": None}
