"""Images in files as one array: each is read when it is asked for."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.data.errors import DataError, explain_damage
from napari_embedding_game.data.images.resampled import one_for_each_axis
from napari_embedding_game.data.limits.memory import check_fits

Stamp = tuple[int, int]
"""Size and time of a file: reading it again tells no more while they are the same."""


def read_pixels(path: Path) -> NDArray[Any]:
    """Return all pixels of an image file.

    Raises
    ------
    DataError
        One sentence that names the file.
    """
    with explain_damage(path, "an image"):
        if path.suffix.lower() in (".tif", ".tiff"):
            import tifffile

            pixels = tifffile.imread(path)
        else:
            import imageio.v3 as imageio

            pixels = imageio.imread(path)
    pixels = np.asarray(pixels)
    if pixels.dtype.kind not in "buif" or pixels.ndim < 2:
        raise DataError(f"{path.name} holds no picture: choose images.")
    return pixels.squeeze() if 1 in pixels.shape[:-2] else pixels


def stamp_of(path: Path) -> Stamp:
    """Return what changes when a file is written again; zeros where it is gone."""
    try:
        status = path.stat()
    except OSError:
        return 0, 0
    return status.st_size, status.st_mtime_ns


class FieldStack:
    """Fields of view as one array, (n, z, y, x) or (n, z, y, x, 3).

    Smaller fields have 0 beyond their edge.

    Parameters
    ----------
    read : callable
        Returns the pixels of one field, (y, x) or (z, y, x), with 3 more if `is_rgb`.
    n : int
    size : sequence of int
        (z, y, x) that the largest fields have.
    dtype : dtype
    is_rgb : bool
    """

    def __init__(
        self,
        read: Callable[[int], NDArray[Any]],
        n: int,
        size: Sequence[int],
        dtype: Any,
        *,
        is_rgb: bool = False,
    ) -> None:
        self._read = read
        colors = (3,) if is_rgb else ()
        sizes: list[int] = [int(length) for length in size]
        self.shape: tuple[int, ...] = (n, *sizes, *colors)
        self.dtype = np.dtype(dtype)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of pixels."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all pixels, which are never in memory together."""
        n_bytes: int = self.size * self.dtype.itemsize
        return n_bytes

    def __len__(self) -> int:
        """Return the number of fields."""
        return self.shape[0]

    def field(self, i: int) -> NDArray[Any]:
        """Return one field with the size that it has."""
        return self._read(i)

    def plane(self, i: int) -> NDArray[Any]:
        """Return one field with the size of the largest."""
        pixels = self.field(i)
        wanted = self.shape[1:]
        if pixels.ndim < len(wanted):
            pixels = pixels[None]
        pixels = pixels.astype(self.dtype, copy=False)
        if pixels.shape == wanted:
            return pixels
        padded = np.zeros(wanted, self.dtype)
        padded[tuple(map(slice, pixels.shape))] = pixels
        return padded

    def __getitem__(self, key: Any) -> NDArray[Any]:
        """Return a copy of pixels, by an index, a slice or an array for each axis."""
        shape = np.broadcast_to(np.uint8(0), self.shape)[key].shape
        values: NDArray[Any] = np.empty(shape, self.dtype)
        for i, there, part in self._parts(key):
            values[there] = self.plane(i)[part]
        return values

    def _parts(self, key: Any) -> Iterator[tuple[int, Any, tuple[Any, ...]]]:
        """Yield the fields that a key is about, with their place in it, and in them."""
        first, *rest = one_for_each_axis(key, self.ndim)
        if isinstance(first, slice):
            for place, i in enumerate(range(*first.indices(len(self)))):
                yield i, place, tuple(rest)
        elif np.ndim(first) == 0:
            yield range(len(self))[int(first)], ..., tuple(rest)
        else:
            first, *others = np.broadcast_arrays(first, *rest)
            for i in np.unique(first):
                there = first == i
                yield int(i), there, tuple(other[there] for other in others)

    def __array__(self, dtype: Any = None, copy: Any = None) -> NDArray[Any]:
        """Return all pixels, if they fit into memory.

        Raises
        ------
        DataError
            If they do not.
        """
        check_fits(self.nbytes, "The stack of all images", "its pixels")
        return self[:].astype(dtype or self.dtype, copy=False)


class LabelStack(FieldStack):
    """Label images of fields, which can be edited in memory.

    The files stay as they are.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        read: Callable[[int], NDArray[Any]],
        size: Sequence[int],
        dtype: Any,
    ) -> None:
        super().__init__(read, len(paths), size, dtype)
        self._paths = tuple(paths)
        self._edited: dict[int, NDArray[Any]] = {}
        self._n_edits = [0] * len(paths)
        self._measured = [self.state(i) for i in range(len(paths))]

    def is_of(self, paths: Sequence[Path], size: Sequence[int]) -> bool:
        """Return whether this is the stack of these files, the largest of this size."""
        return self._paths == tuple(paths) and self.shape[1:] == tuple(size)

    def field(self, i: int) -> NDArray[Any]:
        """Return the labels of one field as they are now, edits included."""
        edited, own = self._edited.get(i), super().field(i)
        if edited is None:
            return own
        if own.ndim == 2:
            edited = edited[0]
        return edited[tuple(map(slice, own.shape))]

    def plane(self, i: int) -> NDArray[Any]:
        """Return the labels of one field with the size of the largest."""
        edited = self._edited.get(i)
        return super().plane(i) if edited is None else edited

    def __setitem__(self, key: Any, value: Any) -> None:
        """Edit labels, by an index, a slice or an array for each axis."""
        shape = np.broadcast_to(np.uint8(0), self.shape)[key].shape
        values = np.broadcast_to(np.asarray(value), shape)
        for i, there, part in self._parts(key):
            self._edit(i)[part] = values[there]

    def state(self, i: int) -> tuple[Stamp, int]:
        """Return what changes when labels of a field are edited, here or in a file."""
        return stamp_of(self._paths[i]), self._n_edits[i]

    def note_measured(self, i: int, state: tuple[Stamp, int]) -> None:
        """Note that a field was measured when its state was this."""
        self._measured[i] = state

    def changed(self) -> list[int]:
        """Return the fields whose labels were edited since they were measured."""
        return [i for i in range(len(self)) if self.state(i) != self._measured[i]]

    def _edit(self, i: int) -> NDArray[Any]:
        if i not in self._edited:
            self._edited[i] = np.array(self.plane(i))
        self._n_edits[i] += 1
        return self._edited[i]
