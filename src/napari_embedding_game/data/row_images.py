"""Rows whose columns are the pixels of an image, and their thumbnails."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.data.row_matrices import Matrix
from napari_embedding_game.data.validation import to_sufficient_precision

_MIN_SIDE = 8  # fewer than 64 columns are a table and no picture


def to_thumbnails(values: NDArray[Any]) -> NDArray[np.uint8] | None:
    """Return the pictures in an array of rows as uint8; None if rows are no pictures.

    `values` are (N, h, w) or (N, h, w, 3 or 4) of any numbers, or (N, D) uint8 whose D
    is a square number of at least 64. The pictures are (N, h, w) or (N, h, w, 3),
    without a fourth channel; numbers of another type than uint8 are scaled from lowest
    to highest.
    """
    if values.ndim == 2:
        side = math.isqrt(values.shape[1])
        square = side**2 == values.shape[1] and side >= _MIN_SIDE
        if not square or values.dtype != np.uint8:
            return None
        return values.reshape(-1, side, side)
    return to_uint8(values[..., :3] if values.ndim == 4 else values)


def to_uint8(values: NDArray[Any]) -> NDArray[np.uint8]:
    """Return pictures as uint8; other types are scaled from lowest to highest value.

    The scale is one for all pictures. NaN and infinite pixels become black.
    """
    if values.dtype == np.uint8:
        return values
    pixels = values.astype(np.float32)
    finite = np.isfinite(pixels)
    lowest = pixels.min(where=finite, initial=np.inf)
    span = pixels.max(where=finite, initial=-np.inf) - lowest
    scaled = np.where(finite, pixels - lowest, 0) * (255 / span if span > 0 else 0)
    return np.round(scaled).astype(np.uint8)


def flatten_pixels(values: NDArray[Any]) -> Matrix:
    """Return pictures as rows (N, D) of numbers; uint8 is scaled to 0 ... 1."""
    flat = values.reshape(len(values), -1)
    if flat.dtype != np.uint8:
        return to_sufficient_precision(flat)
    return flat.astype(np.float32) / np.float32(255)


def make_pixel_names(shape: tuple[int, ...]) -> list[str]:
    """Return the names of the pixels of an (h, w[, c]) picture: "row,column[,c]"."""
    return [",".join(map(str, index)) for index in np.ndindex(*shape)]
