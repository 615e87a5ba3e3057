"""Colours of clusters, categories and measurements; all (N, 4) float32 RGBA."""

from __future__ import annotations

import numpy as np
from napari.utils.colormaps import ensure_colormap
from napari.utils.colormaps.standardize_color import transform_color
from numpy.typing import NDArray
from qtpy.QtGui import QColor

from napari_embedding_game.data.palette import Colors

MISSING = np.array([0.55, 0.55, 0.55, 0.55], dtype=np.float32)
DARKEST = 0.2
"""Where viridis begins: what is below cannot be seen on a black canvas."""


def from_hex(name: str) -> Colors:
    """Return one colour, such as "#1f77b4", as RGBA: (4,)."""
    color: Colors = transform_color(name)[0].astype(np.float32)
    return color


def to_hex(rgba: NDArray[np.floating]) -> str:
    """Return a colour as "#rrggbb"."""
    return "#" + "".join(f"{round(255 * float(part)):02x}" for part in rgba[:3])


def qcolor(rgba: NDArray[np.floating]) -> QColor:
    """Return red, green, blue and opacity, 0 to 1, as Qt has a colour."""
    return QColor.fromRgbF(*(float(part) for part in rgba))


def value_limits(values: NDArray[np.floating]) -> tuple[float, float]:
    """Return the 1st and 99th percentile: a few outliers must not grey the map."""
    known = values[np.isfinite(values)]
    low, high = np.percentile(known, [1, 99]) if len(known) else (0.0, 0.0)
    # Most values may be the same, as the zeros of a rare gene.
    return (float(low), float(high)) if low < high else value_extent(known)


def value_extent(values: NDArray[np.floating]) -> tuple[float, float]:
    """Return the lowest and the highest value, which are never the same."""
    known = values[np.isfinite(values)]
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
    return low, high if high > low else low + 1


def value_colors(values: NDArray[np.floating], limits: tuple[float, float]) -> Colors:
    """Return viridis colours between the limits; grey where a value is missing."""
    low, high = limits
    known = np.isfinite(values)
    place = np.clip((np.where(known, values, low) - low) / (high - low), 0, 1)
    place = DARKEST + (1 - DARKEST) * place
    colors = ensure_colormap("viridis").map(place).astype(np.float32)
    colors[~known] = MISSING
    return colors
