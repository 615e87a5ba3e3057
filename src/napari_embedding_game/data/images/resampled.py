"""Resample an image lazily to the pixel grid of a label image."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_NEARLY = 1e-3
"""Parts of a pixel that no value is interpolated for."""


class PlacedImage:
    """An image as an array of a label image's shape, read where it is asked for.

    Values between pixels are interpolated linearly; where the image has none they
    are `fill`.

    Parameters
    ----------
    image : array (numpy, dask, zarr)
        Of as many axes as `shape`, and perhaps one more for channels.
    shape : tuple of int
        Of the label image.
    scale, offset : sequence of float
        Pixel i of the labels is pixel ``offset + scale * i`` of the image, along each
        axis of the labels.
    channels : {None, 0, -1}
        Where the image has its channels.
    fill : float
        NaN for what is measured; 0 for pictures, whose values keep their type then.
    """

    def __init__(
        self,
        image: Any,
        shape: Sequence[int],
        scale: Sequence[float],
        offset: Sequence[float],
        channels: int | None = None,
        fill: float = np.nan,
    ) -> None:
        self._image = image
        self._fill = fill
        extra = [] if channels is None else [int(image.shape[channels])]
        sizes = [int(n) for n in shape]
        before, after = (extra, []) if channels == 0 else ([], extra)
        self.shape: tuple[int, ...] = (*before, *sizes, *after)
        self._scale = (*[1.0] * len(before), *scale, *[1.0] * len(after))
        self._offset = (*[0.0] * len(before), *offset, *[0.0] * len(after))
        kept = fill == 0 or image.dtype.kind == "f"
        wide = np.float64 if image.dtype.itemsize > 2 else np.float32
        self.dtype = np.dtype(image.dtype if kept else wide)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    def __array__(self, dtype: Any = None, copy: Any = None) -> NDArray[Any]:
        """Return all pixels."""
        return self[...].astype(dtype or self.dtype, copy=False)

    def __getitem__(self, key: Any) -> NDArray[Any]:
        """Return pixels by an index or a slice for each axis, as of an array."""
        parts = one_for_each_axis(key, self.ndim)
        wanted = [
            np.arange(*part.indices(n)) if isinstance(part, slice) else np.array([part])
            for part, n in zip(parts, self.shape, strict=True)
        ]
        values = self._values(wanted)
        single = [i for i, part in enumerate(parts) if not isinstance(part, slice)]
        return np.asarray(values.squeeze(axis=tuple(single)))

    def _values(self, wanted: list[NDArray[np.intp]]) -> NDArray[Any]:
        """Pixels at each combination of places along the axes."""
        shape = tuple(map(len, wanted))
        places: list[NDArray[np.float64]] = [
            np.asarray(offset + scale * along, dtype=np.float64)
            for offset, scale, along in zip(
                self._offset, self._scale, wanted, strict=True
            )
        ]
        sizes = self._image.shape
        block = [_covering(along, n) for along, n in zip(places, sizes, strict=True)]
        if 0 in shape or any(part.start >= part.stop for part in block):
            return np.full(shape, self._fill, dtype=self.dtype)
        values = np.asarray(self._image[tuple(block)])
        values = values.astype(np.result_type(self.dtype, np.float32), copy=False)
        for axis, (along, part) in enumerate(zip(places, block, strict=True)):
            values = _interpolated(values, axis, along - part.start)
        for axis, (along, n) in enumerate(zip(places, sizes, strict=True)):
            outside = (along < -0.5) | (along > n - 0.5)
            if outside.any():
                np.moveaxis(values, axis, 0)[outside] = self._fill
        if self.dtype.kind in "iub":
            values = np.round(values)
        return values.astype(self.dtype, copy=False)


def one_for_each_axis(key: Any, ndim: int) -> list[Any]:
    """Return an index for each of so many axes; the whole axis where none is given."""
    parts = list(key) if isinstance(key, tuple) else [key]
    dots = [i for i, part in enumerate(parts) if part is Ellipsis]
    if dots:
        (place,) = dots
        missing = ndim - len(parts) + 1
        parts[place : place + 1] = [slice(None)] * missing
    return parts + [slice(None)] * (ndim - len(parts))


def _covering(places: NDArray[np.float64], n: int) -> slice:
    """Pixels of an axis of length n that are needed for these places."""
    inside = places[(places >= -0.5) & (places <= n - 0.5)]
    if not len(inside):
        return slice(0, 0)
    low, high = np.clip([inside.min(), inside.max()], 0, n - 1)
    return slice(int(np.floor(low + _NEARLY)), int(np.ceil(high - _NEARLY)) + 1)


def _interpolated(
    values: NDArray[Any], axis: int, places: NDArray[np.float64]
) -> NDArray[Any]:
    """Values at places along an axis, between the nearest two."""
    places = np.clip(places, 0, values.shape[axis] - 1)
    near = np.round(places)
    places = np.where(np.abs(places - near) < _NEARLY, near, places)
    low = np.floor(places).astype(np.intp)
    share = places - low
    if not share.any():
        return np.take(values, low, axis=axis)
    high = np.minimum(low + 1, values.shape[axis] - 1)
    share = share.astype(values.dtype).reshape([-1] + [1] * (values.ndim - axis - 1))
    first, second = np.take(values, low, axis=axis), np.take(values, high, axis=axis)
    return np.asarray(first * (1 - share) + second * share)
