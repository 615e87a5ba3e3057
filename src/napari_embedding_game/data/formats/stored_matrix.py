"""A large matrix as AnnData stores it: where it is, and how parts of it are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.data.errors import DataError, explain_damage
from napari_embedding_game.data.formats.anndata_store import is_array, read_array
from napari_embedding_game.data.stages import finish
from napari_embedding_game.data.stored_columns import SAMPLED

_METADATA = (".zarray", ".zgroup", "zarr.json")


@dataclass(frozen=True)
class StoredMatrix:
    """Where a matrix is."""

    path: Path
    what: str
    """What a person calls it."""
    open: Callable[[], AbstractContextManager[Any]]
    """Opens its file, and gives the stored array or group."""
    _kept: list[Any] = field(default_factory=list)
    """What was opened of a folder, which holds no file open."""

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is open."""
        return {**vars(self), "_kept": []}

    @contextmanager
    def opened(self) -> Iterator[Any]:
        """Give the stored array or group; whatever is wrong with it is a DataError."""
        if not self.path.exists():
            raise DataError(
                f"The genes of {self.path.name} are read from its file, which is no "
                f"longer in {self.path.parent}: put it back, or open it "
                "from its new place."
            )
        with explain_damage(self.path, "a file of AnnData"):
            if self._kept:
                yield self._kept[0]
                return
            with self.open() as item:
                if self.path.is_dir():
                    self._kept.append(item)
                yield item

    def stamp(self, item: Any) -> tuple[tuple[int, int], ...]:
        """Return what another writing would change: times and sizes of files."""
        files = [self.path]
        if self.path.is_dir():
            folders = [self.path / item.path]
            folders += [folders[0] / name for name in ("data", "indices", "indptr")]
            files = [folder / name for folder in folders for name in _METADATA]
        stats = [file.stat() for file in files if file.is_file()]
        return tuple((stat.st_mtime_ns, stat.st_size) for stat in stats)


def blocks_of(array: Any) -> tuple[int, int]:
    """Rows and columns that are read from a dense array at least."""
    blocks = getattr(array, "shards", None) or array.chunks
    if blocks is None:
        return 1, int(array.shape[1])
    return int(blocks[0]), int(blocks[1])


def column_bytes(array: Any) -> int:
    """Return how much is read of a dense array at least to have one column."""
    return int(array.shape[0]) * blocks_of(array)[1] * int(array.dtype.itemsize)


def sampled(item: Any) -> NDArray[Any]:
    """Return up to :data:`SAMPLED` of the values of a stored array or group."""
    values, most = (item if is_array(item) else item["data"]), SAMPLED
    if is_array(item):
        most = max(1, SAMPLED // max(int(item.shape[1]), 1))
    parts = _some(int(values.shape[0]), most)
    return np.concatenate([np.ravel(values[part]) for part in parts])


def _some(n: int, most: int) -> list[slice]:
    """Return up to three pieces of ``n`` places: at the begin, the middle, the end."""
    if n <= most:
        return [slice(0, n)]
    length = max(1, most // 3)
    return [slice(at, at + length) for at in (0, (n - length) // 2, n - length)]


def read_indptr(item: Any, n: int, name: str, what: str) -> NDArray[np.int64]:
    """Read where each of n rows or columns begins, and check it."""
    indptr = finish(read_array(item["indptr"], name, what)).astype(np.int64)
    n_values = int(item["data"].shape[0])
    is_whole = len(indptr) == n + 1 and indptr[0] == 0 and indptr[-1] == n_values
    if not is_whole or (np.diff(indptr) < 0).any():
        raise ValueError(f"indptr of {what} does not fit its values")
    if item["indices"].shape[0] != n_values:
        raise ValueError(f"{what} has more values than places")
    return indptr


def check_places(places: NDArray[np.integer], n: int) -> None:
    """Raise ValueError if a place is none of n."""
    if len(places) and (places.min() < 0 or places.max() >= n):
        raise ValueError("an index points outside the matrix")
