"""Colours of clusters, categories and measurements; all (N, 4) float32 RGBA."""

from __future__ import annotations

import numpy as np
from napari.utils.colormaps import ensure_colormap
from napari.utils.colormaps.standardize_color import transform_color
from numpy.typing import NDArray
from qtpy.QtGui import QColor

Colors = NDArray[np.float32]

# Ten hues that stay apart for most colour-blind people, on black and on white.
_TEN = transform_color(
    [
        *("#4c8dd6", "#f28e2b", "#3fae6a", "#d6504f", "#9a7bc8"),
        *("#b5836a", "#e377c2", "#8c9aa6", "#bcb22d", "#29b5c2"),
    ]
).astype(np.float32)
MISSING = np.array([0.55, 0.55, 0.55, 0.55], dtype=np.float32)
GOLDEN = 0.6180339887
DARKEST = 0.2
"""Where viridis begins: what is below cannot be seen on a black canvas."""


def oklch(
    lightness: NDArray[np.floating] | float,
    chroma: NDArray[np.floating] | float,
    hue: NDArray[np.floating],
) -> Colors:
    """Return RGBA of OKLCH colours; ``hue`` in turns, out-of-gamut ones clipped.

    OKLCH keeps what looks equally bright equally bright (Ottosson, 2020).
    """
    lightness, chroma, hue = np.broadcast_arrays(lightness, chroma, hue)
    a, b = chroma * np.cos(2 * np.pi * hue), chroma * np.sin(2 * np.pi * hue)
    lms = np.stack(
        [
            lightness + 0.3963377774 * a + 0.2158037573 * b,
            lightness - 0.1055613458 * a - 0.0638541728 * b,
            lightness - 0.0894841775 * a - 1.2914855480 * b,
        ]
    )
    to_linear = np.array(
        [
            [4.0767416621, -3.3077115913, 0.2309699292],
            [-1.2684380046, 2.6097574011, -0.3413193965],
            [-0.0041960863, -0.7034186147, 1.7076147010],
        ]
    )
    linear = np.clip(to_linear @ lms**3, 0, 1)
    low, high = 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055
    rgba = np.ones((len(hue), 4), dtype=np.float32)
    rgba[:, :3] = np.where(linear <= 0.0031308, low, high).T
    return rgba


def category_colors(n_levels: int) -> Colors:
    """Return colours for ``n_levels`` categories, as different as can be."""
    extra = np.arange(max(0, n_levels - len(_TEN)))
    lightness = 0.5 + 0.35 * ((extra * 0.7548776662) % 1.0)
    more = oklch(lightness, 0.13, (0.07 + extra * GOLDEN) % 1.0)
    return np.concatenate([_TEN, more])[:n_levels]


def from_hex(name: str) -> Colors:
    """Return one colour, such as "#1f77b4", as RGBA: (4,)."""
    color: Colors = transform_color(name)[0].astype(np.float32)
    return color


def from_text(text: str) -> Colors | None:
    """Return a colour of a file, such as "#1f77b4" or "red"; None if it is none."""
    try:
        return from_hex(text) if text else None
    except ValueError:
        return None


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
