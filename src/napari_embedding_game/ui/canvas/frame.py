"""Fit the map into a box of napari's world, next to the images.

The map keeps filling one box of the world while it grows out of its start
layout, so that the camera stays where the person has put it.  A few points far from
all others lie outside of the box: they do not make the rest small.  The map stands as
every figure of it does, x to the right and y upwards: napari counts rows downwards.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

SIDE = 1000.0
"""Side of the box where there is nothing else in the world."""
GAP = 0.08
"""Between the images and the map, relative to the side."""
MIN_HALF = 3.0
"""Half a side, in units of the map, below which a map is shown small.

The repulsion has length 1, so a map this small has collapsed: it must look so.
"""
TOLERANCE = 0.01
"""Move of the extent, relative to it, that the frame does not follow."""
_SIGNS = np.array([1.0, -1.0, 1.0])
"""Of depth, row and column: rows grow downwards, y upwards, and both z and napari's
depth towards the eye."""
TAIL, MARGIN = 0.002, 0.25
"""Share of the points at each end of an axis that may be outliers; so far beyond all
others, relative to their extent, they are."""
SAMPLE = 20_000
"""Points of which the tails are found."""
EASE = 0.3
"""Share of the way to the new extent that the frame goes with each snapshot."""


def main_extent(values: NDArray[np.floating]) -> tuple[float, float, float]:
    """Return where values (N,) begin and end without outliers, and the lowest of all.

    The same twice where there are no outliers.
    """
    lowest, highest = float(values.min()), float(values.max())
    some = values[:: max(1, len(values) // SAMPLE)]
    low, high = map(float, np.quantile(some, [TAIL, 1 - TAIL]))
    reach = MARGIN * (high - low)
    return max(lowest, low - reach), min(highest, high + reach), lowest


class Frame:
    """Scale and shift from the units of the map to a box of the world.

    A map of three dimensions fills a cube; its depth is around that of flat layers.
    The box lies to the right of all extents, each [[top, left], [bottom, right]].
    """

    def __init__(
        self, extents: Sequence[NDArray[np.floating]] = (), n_axes: int = 2
    ) -> None:
        finite = [e for e in extents if np.isfinite(e).all()]
        self._corner, self.side, self._has_neighbors = np.zeros(2), SIDE, bool(finite)
        if finite:
            top, _ = np.min([e[0] for e in finite], axis=0)
            bottom, right = np.max([e[1] for e in finite], axis=0)
            self.side = max(float(bottom - top), 1.0)
            self._corner = np.array([top, right + GAP * self.side])
        self._center = np.zeros(n_axes)  # [depth,] row and column, in the map's units
        self._half = 0.0
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
        """Move towards the extent of positions (N, d); all the way to settle."""
        # Axis by axis, which is many times quicker than all at once.
        signs = _SIGNS[-positions.shape[1] :]
        pairs = zip(signs.astype(np.float32), positions.T[::-1], strict=True)
        low, high, first = np.array([main_extent(s * x) for s, x in pairs]).T
        center = (low + high) / 2
        half = max(float((high - low).max()) / 2, MIN_HALF)
        reach = half + float(np.abs(center - self._center).max())
        settle = settle or not self.is_fitted
        ease = 0.0
        if settle or reach > self._half * (1 + TOLERANCE):
            ease = 1.0  # what grows may not leave the box
        elif reach < self._half * (1 - TOLERANCE):
            ease = EASE  # a shrinking map is followed gently
        self._center = self._center + ease * (center - self._center)
        self._half += ease * (half - self._half)
        if settle and self._has_neighbors:
            beyond = (low[-1] - first[-1]) * self.scale
            self._shift = max(0.0, beyond - GAP * self.side)

    @property
    def unit(self) -> float:
        """World units per thousandth of the box."""
        return self.side / SIDE

    @property
    def corners(self) -> NDArray[np.floating]:
        """First and last corner of the box, (2, 2)."""
        return np.stack([self._corner, self._corner + self.side])

    @property
    def scale(self) -> float:
        """World units per unit of the map."""
        return self.side / (2 * self._half)

    @property
    def step(self) -> NDArray[np.floating]:
        """From (x, y[, z]) on the map to steps of ([depth,] row, column): (d, d)."""
        return np.fliplr(np.diag(self.scale * _SIGNS[-self.n_axes :]))

    @property
    def origin(self) -> NDArray[np.floating]:
        """World position of the map's origin."""
        middle = np.zeros(self.n_axes)
        middle[-2:] = self._corner + self.side / 2
        middle[-1] += self._shift
        return middle - self.scale * self._center

    def to_world(self, positions: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return (x, y[, z]) (..., d) of the map as ([depth,] row, column)."""
        slopes = self.scale * _SIGNS[-self.n_axes :]
        return positions[..., ::-1] * slopes + self.origin

    def write_world(
        self,
        positions: NDArray[np.floating],
        world: NDArray[np.floating],
        axes: Sequence[int],
    ) -> None:
        """Write :meth:`to_world` of (N, d) into columns ``axes`` of an array (N, d).

        Axis by axis, without arrays in between: a third of the time for a million.
        """
        slopes = self.scale * _SIGNS[-self.n_axes :]
        parts = zip(axes, positions.T[::-1], slopes, self.origin, strict=True)
        for axis, values, slope, offset in parts:
            column = world[:, axis]
            np.multiply(values, column.dtype.type(slope), out=column)
            column += column.dtype.type(offset)

    def meets(self, extent: NDArray[np.floating]) -> bool:
        """Return whether an extent [[top, left], [bottom, right]] lies on the box."""
        low, high = self.corners
        return bool((extent[0] < high).all() and (extent[1] > low).all())
