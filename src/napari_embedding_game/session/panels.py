"""Panels: the same places of the map drawn several times, in rows beside each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

GAP = 0.12
"""Between two panels, as a share of one; captions stand in it."""


@dataclass(frozen=True)
class Panel:
    """One of the panels."""

    name: str
    told: str
    """What stands behind the name."""
    caption: tuple[float, float]
    """Where its name stands: the middle of its upper edge, in units of the map."""
    width: float
    """Of all panels, without the gap, in units of the map."""


@dataclass(frozen=True, eq=False)
class Panels:
    """Panels in rows; the first is upper left, where the map itself lies."""

    panels: tuple[Panel, ...]
    offsets: NDArray[np.float32]
    """(m, 2) from the map to each panel."""
    corners: NDArray[np.float32]
    """(2, 2) lower left and upper right corner of all panels with their captions."""


def lay_out(
    low: NDArray[np.floating],
    high: NDArray[np.floating],
    captions: Sequence[tuple[str, str]],
) -> Panels:
    """Lay panels beside each other.

    Parameters
    ----------
    low, high : (2,) array
        Corners of what each of them shows, in units of the map.
    captions : sequence of (str, str)
        Name of each panel, and what stands behind it.
    """
    pitch = (high - low) * (1 + GAP) + np.finfo(np.float32).tiny
    n_columns = math.ceil(math.sqrt(len(captions)))
    numbers = np.arange(len(captions))
    # The first row is the upper one.
    places = np.column_stack([numbers % n_columns, -(numbers // n_columns)])
    offsets = (places * pitch).astype(np.float32)
    upper = np.array([(low[0] + high[0]) / 2, high[1] + GAP / 2 * (high - low)[1]])
    panels = tuple(
        Panel(name, told, (float(x), float(y)), float(high[0] - low[0]))
        for (name, told), (x, y) in zip(captions, upper + offsets, strict=True)
    )
    below = low + places.min(axis=0) * pitch
    above = high + places.max(axis=0) * pitch + [0, GAP * (high - low)[1]]
    return Panels(panels, offsets, np.array([below, above], np.float32))
