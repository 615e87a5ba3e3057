"""Cut thumbnails of objects out of an image, on demand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.data.label_objects import Objects, channel_axis

Color = tuple[float, float, float]

_FEWEST_PIXELS = 8
_KEPT = 4096  # thumbnails held; 48 MB at 64 x 64


@dataclass(frozen=True, eq=False)
class Channel:
    """One image layer as it is shown."""

    data: Any
    """Array (numpy, dask, zarr) of the labels' shape; with 3 or 4 more if `rgb`."""
    limits: tuple[float, float] = (0.0, 255.0)
    """Values shown black and in full colour."""
    colors: NDArray[Any] | Color = (1.0, 1.0, 1.0)
    """Colour in full, or a (K, 3 or 4) table of two or more from dark to full."""
    gamma: float = 1.0
    """Exponent of the brightness, as of a napari layer."""
    opacity: float = 1.0
    """Share of its light that the channel gives."""
    rgb: bool = False
    """Whether the last axis holds red, green and blue, shown as they are."""


@dataclass(frozen=True, eq=False)
class Plane:
    """One of an image's channels as an image of its own, read where it is cut."""

    image: Any
    number: int
    axis: Literal[0, -1]
    """Where the image has its channels: first or last."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape without the axis of the channels."""
        shape = tuple(self.image.shape)
        return shape[1:] if self.axis == 0 else shape[:-1]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the pixels."""
        dtype: np.dtype[Any] = np.dtype(self.image.dtype)
        return dtype

    def __array__(self, dtype: Any = None, copy: Any = None) -> NDArray[Any]:
        """Return all pixels."""
        every = (slice(None),) * len(self.shape)
        return np.asarray(self[every]).astype(dtype or self.dtype, copy=False)

    def __getitem__(self, place: tuple[Any, ...]) -> Any:
        """Pixels at a place that has an index for every axis of the shape."""
        number = self.number
        return self.image[(number, *place) if self.axis == 0 else (*place, number)]


def planes(image: Any, shape: tuple[int, ...]) -> list[Any]:
    """Channels of an image, each of the shape of the labels; none if it fits none."""
    axis = channel_axis(tuple(image.shape), shape)
    if axis is None:
        return [image] if tuple(image.shape) == shape else []
    return [Plane(image, number, axis) for number in range(image.shape[axis])]


def thumbnail(
    channels: Sequence[Channel],
    labels: Any,
    objects: Objects,
    row: int,
    *,
    size: int = 64,
    margin: float = 0.25,
    field: int | None = None,
    outline: Color | None = (1.0, 1.0, 0.0),
) -> NDArray[np.uint8]:
    """Picture of one object.

    Parameters
    ----------
    channels : sequence of Channel
        Their light is added up.
    labels : array
        The label image; only the object's surroundings are read of it.
    objects : Objects
    row : int
        Which of the objects.
    size : int
        Side of the picture in pixels.
    margin : float
        Surroundings on each side, as a share of the object's longer side.
    field : int, optional
        Side of the field of view in pixels of the image, so that objects compare
        in size; by default the object fills the picture.
    outline : colour, optional
        Of the line around the object; None draws no line.

    Returns
    -------
    array, shape (size, size, 3), uint8
        Black beyond the edge of the image, and of a row that is no object.  Of a
        3-D object, the slice along the first axis that cuts most of it.
    """
    if not objects.present[row]:
        return np.zeros((size, size, 3), dtype=np.uint8)
    label = objects.label_ids[row]
    plane = _fullest_slice(labels, objects, row)
    window = _window(objects.boxes[row], objects.ndim, margin, field)
    light = np.zeros((size, size, 3), dtype=np.float32)
    for channel in channels:
        light += channel.opacity * _colored(channel, plane, window, size)
    if outline is not None:
        mask = _sampled(_cut(labels, plane, window) == label, size)
        light[_edge(mask)] = outline
    return np.asarray(np.clip(light, 0, 1) * 255 + 0.5, dtype=np.uint8)


class Thumbnails:
    """Thumbnails of all objects as a sequence; each is made when it is first asked for.

    ``len(thumbnails)`` and ``thumbnails[row]``; options as of :func:`thumbnail`.
    The last few thousand are held.
    """

    def __init__(
        self,
        channels: Sequence[Channel],
        labels: Any,
        objects: Objects,
        **options: Any,
    ) -> None:
        self.channels = tuple(channels)
        self.labels = labels
        self.objects = objects
        self.options = options
        self._made = lru_cache(_KEPT)(self._make)

    def __len__(self) -> int:
        """Return the number of objects."""
        return len(self.objects)

    def __getitem__(self, row: int) -> NDArray[np.uint8]:
        """Picture of one object; see :func:`thumbnail`."""
        if not 0 <= row < len(self):
            raise IndexError(row)
        return self._made(row)

    def _make(self, row: int) -> NDArray[np.uint8]:
        return thumbnail(self.channels, self.labels, self.objects, row, **self.options)


@dataclass(frozen=True)
class _Window:
    """Square in an image: first row and column, and its side; may lie outside."""

    top: int
    left: int
    side: int


def _window(box: NDArray[Any], ndim: int, margin: float, field: int | None) -> _Window:
    top, left = (int(n) for n in box[ndim - 2 : ndim])
    bottom, right = (int(n) for n in box[2 * ndim - 2 :])
    longer = max(bottom - top, right - left)
    side = field or max(_FEWEST_PIXELS, round(longer * (1 + 2 * margin)))
    return _Window((top + bottom - side) // 2, (left + right - side) // 2, side)


def _fullest_slice(labels: Any, objects: Objects, row: int) -> tuple[int, ...]:
    """Place along the axes before the last two; none of a 2-D image."""
    if objects.ndim == 2:
        return ()
    box = objects.slices(row)
    leading = objects.ndim - 2
    mask = np.asarray(labels[box]) == objects.label_ids[row]
    areas = mask.sum(axis=(-2, -1))
    place = np.unravel_index(int(areas.argmax()), areas.shape)
    return tuple(
        int(i) + part.start for i, part in zip(place, box[:leading], strict=True)
    )


def _cut(image: Any, plane: tuple[int, ...], window: _Window) -> NDArray[Any]:
    """Window of a plane of the image, 0 where it lies outside."""
    height, width = image.shape[len(plane) : len(plane) + 2]
    top, left = max(0, window.top), max(0, window.left)
    bottom = min(height, window.top + window.side)
    right = min(width, window.left + window.side)
    pixels = np.asarray(image[(*plane, slice(top, bottom), slice(left, right))])
    whole = np.zeros((window.side, window.side, *pixels.shape[2:]), dtype=pixels.dtype)
    rows = slice(top - window.top, bottom - window.top)
    columns = slice(left - window.left, right - window.left)
    whole[rows, columns] = pixels
    return whole


def _colored(
    channel: Channel, plane: tuple[int, ...], window: _Window, size: int
) -> NDArray[np.float32]:
    """(size, size, 3) light of one channel, 0 to 1."""
    pixels = _cut(channel.data, plane, window)
    values = _resized(pixels.astype(np.float32), size)
    if channel.rgb:
        full = 255.0 if pixels.dtype == np.uint8 else 1.0
        return np.asarray(np.clip(values[..., :3] / full, 0, 1))
    low, high = channel.limits
    light = np.clip((values - low) / max(high - low, 1e-30), 0, 1) ** channel.gamma
    light = np.nan_to_num(light)
    table = np.asarray(channel.colors, dtype=np.float32)
    if table.ndim == 1:
        return np.asarray(light[..., None] * table[:3])
    places = light * (len(table) - 1)
    low = np.minimum(places.astype(np.intp), len(table) - 2)
    share = (places - low)[..., None]
    return np.asarray(table[low, :3] * (1 - share) + table[low + 1, :3] * share)


def _resized(image: NDArray[np.float32], size: int) -> NDArray[np.float32]:
    """Image of `size` x `size`: means of blocks when smaller, else interpolated."""
    block = image.shape[0] // size
    if block > 1:
        side = image.shape[0] // block * block
        blocks = image[:side, :side].reshape(
            side // block, block, side // block, block, *image.shape[2:]
        )
        image = blocks.mean(axis=(1, 3))
    return _interpolated(_interpolated(image, size).swapaxes(0, 1), size).swapaxes(0, 1)


def _interpolated(image: NDArray[np.float32], size: int) -> NDArray[np.float32]:
    """Rows of the image at `size` evenly spaced places, between the nearest two."""
    places = np.clip(
        (np.arange(size) + 0.5) * len(image) / size - 0.5, 0, len(image) - 1
    )
    low = places.astype(np.intp)
    high = np.minimum(low + 1, len(image) - 1)
    share = (places - low).astype(np.float32).reshape(-1, *[1] * (image.ndim - 1))
    return np.asarray(image[low] * (1 - share) + image[high] * share)


def _sampled(mask: NDArray[np.bool_], size: int) -> NDArray[np.bool_]:
    """Mask of `size` x `size`, by the nearest pixel."""
    places = (np.arange(size) * len(mask) + len(mask) // 2) // size
    places = np.minimum(places, len(mask) - 1)
    return np.asarray(mask[np.ix_(places, places)])


def _edge(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Pixels of the mask with one of another kind beside them."""
    padded = np.pad(mask, 1)
    inner = padded[:-2, 1:-1] & padded[2:, 1:-1] & padded[1:-1, :-2] & padded[1:-1, 2:]
    return np.asarray(mask & ~inner)
