"""Panels: the same places of the map drawn several times, in rows beside each other.

Those of maps in space stand in the plane of the canvas, whatever the camera sees: each
map is turned about its own middle, and none comes to lie in front of another.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

GAP = 0.12
"""Between two panels, as a share of one; captions stand in it."""
GAP_OF_FIGURES = 0.34
"""Above a panel whose caption has several lines."""
STRAIGHT = np.eye(2, 3)
"""Facing of a camera that looks straight at x and y."""


@dataclass(frozen=True)
class Panel:
    """One of the panels."""

    name: str
    told: str
    """What stands behind the name."""
    caption: tuple[float, ...]
    """Where its name stands: the middle of its upper edge, in units of the map."""
    width: float
    """Of all panels, without the gap, in units of the map."""
    below: float = 0.0
    """From there down to the panel, in units of the map."""


@dataclass(frozen=True, eq=False)
class Panels:
    """Panels in rows; the first is upper left, where the map itself lies."""

    panels: tuple[Panel, ...]
    offsets: NDArray[np.float32]
    """(m, d) from the map to each panel."""
    corners: NDArray[np.float32]
    """(2, d) lower left and upper right corner of all panels with their captions."""
    box: NDArray[np.float32]
    """(2, d) corners of what the scale of the map goes by.

    Of flat panels their corners.  In space a cube around the first one, as wide as
    all panels from whichever side they are seen."""
    middle: NDArray[np.float64]
    """(d,) of the first panel; in space it is turned about that."""
    facing: NDArray[np.floating]
    """(2, d) steps of length 1 that go right and up."""


@dataclass(frozen=True, eq=False)
class Room:
    """What each of the panels shows."""

    middle: NDArray[np.float64]
    """(d,) in units of the map."""
    size: NDArray[np.float64]
    """(2,) width and height."""

    @classmethod
    def around(cls, places: NDArray[np.floating]) -> Room:
        """Return the room that places (N, d) take up.

        In space that of the ball around them: they may be seen from any side.
        """
        low, high = places.min(axis=0).astype(float), places.max(axis=0).astype(float)
        middle, size = (low + high) / 2, high - low
        if len(size) > 2:
            squares = np.zeros(len(places))
            for axis, at in zip(places.T, middle, strict=True):
                squares += (axis - at) ** 2
            size = np.full(2, 2.0 * math.sqrt(squares.max()))
        return cls(middle, size)


def lay_out(
    room: Room,
    captions: Sequence[tuple[str, str]],
    facing: NDArray[np.floating] = STRAIGHT,
    gap_above: float = GAP,
) -> Panels:
    """Lay panels beside each other.

    Parameters
    ----------
    room : Room
        Of each of them.
    captions : sequence of (str, str)
        Name of each panel, and what stands behind it.
    facing : (2, 3) array
        Steps of length 1 that go right and up on the canvas, in units of the map.
    gap_above : float
        For the captions, as a share of the height.
    """
    n_axes = len(room.middle)
    facing = np.asarray(facing if n_axes > 2 else STRAIGHT[:, :n_axes], np.float64)
    size = room.size
    pitch = size * [1 + GAP, 1 + gap_above] + np.finfo(np.float32).tiny
    n_columns = math.ceil(math.sqrt(len(captions)))
    numbers = np.arange(len(captions))
    # The first row is the upper one.
    places = np.column_stack([numbers % n_columns, -(numbers // n_columns)]) * pitch
    offsets = (places @ facing).astype(np.float32)
    down = (gap_above - GAP / 2) * float(size[1])
    upper = room.middle + (size[1] / 2 + down) * facing[1]
    panels = tuple(
        Panel(name, told, tuple(map(float, place)), float(size[0]), down)
        for (name, told), place in zip(captions, upper + offsets, strict=True)
    )
    below = places.min(axis=0) - size / 2
    above = places.max(axis=0) + size / 2 + [0, gap_above * size[1]]
    corners = room.middle + np.array([below, above]) @ facing
    box = corners
    if n_axes > 2:
        box = room.middle + np.array([[-0.5], [0.5]]) * float((above - below).max())
    return Panels(
        panels,
        offsets,
        corners.astype(np.float32),
        np.broadcast_to(box, (2, n_axes)).astype(np.float32),
        room.middle,
        facing,
    )
