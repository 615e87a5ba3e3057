"""Place the map in napari's world coordinates, beside the images.

The map keeps filling one box of the world while it grows out of its start
layout, so that the camera stays where the person has put it.  A few points far from
all others lie outside of the box: they do not make the rest small.  The map stands as
every figure of it does, x to the right and y upwards: napari counts rows downwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SIDE = 1000.0
"""Side of the box where there is nothing else in the world."""
GAP = 0.08
"""Between the images and the map, relative to the side."""
SMALLEST_HALF = 3.0
"""Half a side, in units of the map, below which a map is shown small.

The repulsion has length 1, so a map this small has collapsed: it must look so.
"""
TOLERANCE = 0.01
"""Move of the extent, relative to it, that the frame does not follow."""
_SIGNS = np.array([1.0, -1.0, 1.0])
"""Of depth, row and column: rows grow downwards, y upwards, and both z and napari's
depth towards the eye."""
TAIL = 0.002
"""Share of the points at each end of an axis that may be outliers."""
MARGIN = 0.25
"""So far beyond all others, relative to their extent, a point is an outlier."""
SAMPLE = 20_000
"""Points of which the tails are found."""
EASE = 0.3
"""Share of the way to the new extent that the frame goes with each snapshot."""


@dataclass(frozen=True, slots=True)
class Box:
    """A square of the world: (row, column) of its corner and its side."""

    corner: tuple[float, float]
    side: float
    is_beside: bool = False
    """Whether there is something to the left of it, on which nothing may lie."""

    @property
    def center(self) -> NDArray[np.floating]:
        """Middle of the box, (2,)."""
        return np.array(self.corner) + self.side / 2


def free_box(extents: Sequence[NDArray[np.floating]]) -> Box:
    """Return a box to the right of all extents, each [[top, left], [bottom, right]]."""
    known = [e for e in extents if np.isfinite(e).all()]
    if not known:
        return Box((0.0, 0.0), SIDE)
    top, _ = np.min([e[0] for e in known], axis=0)
    bottom, right = np.max([e[1] for e in known], axis=0)
    side = max(float(bottom - top), 1.0)
    return Box((float(top), float(right) + GAP * side), side, is_beside=True)


def main_extent(
    values: NDArray[np.floating],
) -> tuple[float, float, float, float]:
    """Return where values (N,) begin and end, without and with outliers.

    Returns
    -------
    low, high, lowest, highest : float
        The same twice where there are no outliers.
    """
    lowest, highest = float(values.min()), float(values.max())
    some = values[:: max(1, len(values) // SAMPLE)]
    low, high = map(float, np.quantile(some, [TAIL, 1 - TAIL]))
    reach = MARGIN * (high - low)
    return max(lowest, low - reach), min(highest, high + reach), lowest, highest


class Frame:
    """Scale and shift from the map's own units into a box of the world.

    A map of three dimensions fills a cube; its depth is around that of flat layers.
    """

    def __init__(self, box: Box, n_axes: int = 2) -> None:
        self.box = box
        self._center = np.zeros(n_axes)  # [depth,] row and column, in the map's units
        self._half = 0.0
        self._first = self._last = np.zeros(n_axes)
        """Corners of all points, outliers too, in units of the map."""
        self._shift = 0.0
        """World units to the right, so that no outlier lies on an image."""

    @property
    def is_fitted(self) -> bool:
        """Whether a map has been followed: without, there is no scale."""
        return self._half > 0

    @property
    def n_axes(self) -> int:
        """Axes of what is drawn: 2, or 3 in space."""
        return len(self._center)

    def restart(self) -> None:
        """Fit the next snapshot at once: it starts another layout."""
        self._half = 0.0

    def follow(self, positions: NDArray[np.floating], *, settle: bool = False) -> None:
        """Move towards the extent of positions (N, 2) or (N, 3); all the way to settle.

        At once, too, where there were more or fewer axes before.
        """
        # Axis by axis, which is many times quicker than all at once.
        signs = _SIGNS[-positions.shape[1] :]
        pairs = zip(signs.astype(np.float32), positions.T[::-1], strict=True)
        low, high, first, last = np.array([main_extent(s * x) for s, x in pairs]).T
        self._first, self._last = first, last
        center = (low + high) / 2
        if len(center) != len(self._center):
            self._center, self._half = np.zeros(len(center)), 0.0
        half = max(float((high - low).max()) / 2, SMALLEST_HALF)
        reach = half + float(np.abs(center - self._center).max())
        settle = settle or not self.is_fitted
        if settle or reach > self._half * (1 + TOLERANCE):
            self._move(center, half, 1.0)  # what grows may not leave the box
        elif reach < self._half * (1 - TOLERANCE):
            self._move(center, half, EASE)  # a shrinking map is followed gently
        if settle and self.box.is_beside:
            beyond = (low[-1] - first[-1]) * self.scale
            self._shift = max(0.0, beyond - GAP * self.box.side)

    def _move(self, center: NDArray[np.floating], half: float, ease: float) -> None:
        self._center = self._center + ease * (center - self._center)
        self._half += ease * (half - self._half)

    @property
    def unit(self) -> float:
        """World units per thousandth of the box."""
        return self.box.side / SIDE

    @property
    def corners(self) -> NDArray[np.floating]:
        """First and last corner of the box, (2, 2)."""
        corner = np.array(self.box.corner)
        return np.stack([corner, corner + self.box.side])

    @property
    def scale(self) -> float:
        """World units per unit of the map."""
        return self.box.side / (2 * self._half)

    @property
    def translate(self) -> NDArray[np.floating]:
        """World position of the map's origin."""
        middle = np.zeros(len(self._center))
        middle[-2:] = self.box.center
        middle[-1] += self._shift
        return middle - self.scale * self._center

    @property
    def jacobian(self) -> NDArray[np.floating]:
        """From a step (x, y[, z]) on the map to ([depth,] row, column): (d, d)."""
        return np.fliplr(np.diag(self.scale * self._signs))

    def to_world(self, positions: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return (x, y[, z]) (..., d) of the map as ([depth,] row, column)."""
        return positions[..., ::-1] * (self.scale * self._signs) + self.translate

    def write_world(
        self,
        positions: NDArray[np.floating],
        world: NDArray[np.floating],
        axes: Sequence[int],
    ) -> None:
        """Write (x, y[, z]) (N, d) of the map as world positions into an array.

        Axis by axis, without arrays in between: a third of the time of
        :meth:`to_world` for a million points.

        Parameters
        ----------
        positions : (N, d) array
        world : (N, d) array
            Written.
        axes : sequence of int
            Columns of ``world`` along [depth,] rows and columns.
        """
        slopes, offsets = self.scale * self._signs, self.translate
        for axis, values, slope, offset in zip(
            axes, positions.T[::-1], slopes, offsets, strict=True
        ):
            column = world[:, axis]
            np.multiply(values, column.dtype.type(slope), out=column)
            column += column.dtype.type(offset)

    def to_map(self, world: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return ([depth,] row, column) (..., d) of the world as (x, y[, z])."""
        return ((world - self.translate) / (self.scale * self._signs))[..., ::-1]

    @property
    def _signs(self) -> NDArray[np.float64]:
        return _SIGNS[-len(self._center) :]

    def meets(self, extent: NDArray[np.floating]) -> bool:
        """Return whether an extent [[top, left], [bottom, right]] lies on the box."""
        low, high = self.corners
        return bool((extent[0] < high).all() and (extent[1] > low).all())

    def contains(self, world: NDArray[np.floating]) -> bool:
        """Return whether a world position is on the map or just beside it."""
        if not self.is_fitted:
            return False
        low, high = self.corners + np.array([0.0, self._shift])
        first = self.translate + self.scale * self._first
        last = self.translate + self.scale * self._last
        reach = self.box.side * GAP
        low, high = np.minimum(low, first) - reach, np.maximum(high, last) + reach
        return bool((low <= world).all() and (world <= high).all())
