"""Fit the map into a box of napari's world, next to the images.

The map keeps filling the same box while it grows out of its start layout, so that the
camera can stay where a person has put it.  A few points far from all others may lie
outside the box, since they would make the map small.  As in figures x goes to the right
and y upwards, although napari counts rows downwards.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

SIDE = 1000.0
"""Side of the box, in world units, where there are no other layers."""
WIDE = 1.6
"""Other layers that are so many times wider than high have the map below them."""
GAP = 0.08
"""Gap between the images and the map, relative to the side."""
HIDDEN = 0.5
"""Side of a hidden map among other layers, relative to their shorter side: its outliers
stay among them, too."""
MIN_HALF = 3.0
"""The least half side of the box, in units of the map.

The repulsion has length 1, so a map smaller than this has collapsed and must look
small.
"""
TOLERANCE = 0.01
"""Relative change of the extent up to which the frame stays."""
_SIGNS = np.array([1.0, -1.0, 1.0])
"""Signs of depth, row and column: rows grow downwards and y upwards, while z and
napari's depth both grow towards the eye."""
TAIL, MARGIN = 0.002, 0.25
"""Share of the points at each end of an axis that may be outliers, and how far beyond
the other points, relative to their extent, a point is an outlier."""
MAX_SAMPLED = 20_000
"""About so many points are used to find the tails."""
EASE = 0.3
"""Share of the way to a smaller extent that the frame goes with each snapshot."""


def find_extent_without_outliers(
    values: NDArray[np.floating],
) -> tuple[float, float, float]:
    """Return the lowest and highest of values (N,) without outliers, and the minimum.

    Outliers lie more than ``MARGIN`` times the range between the quantiles ``TAIL`` and
    1 - ``TAIL`` beyond that range; quantiles are those of about ``MAX_SAMPLED`` values.
    The first and the third number are equal where no low value is an outlier.
    """
    lowest, highest = float(values.min()), float(values.max())
    subset = values[:: max(1, len(values) // MAX_SAMPLED)]
    low, high = map(float, np.quantile(subset, [TAIL, 1 - TAIL]))
    reach = MARGIN * (high - low)
    return max(lowest, low - reach), min(highest, high + reach), lowest


class Frame:
    """Scale and shift from the units of the map to a box of napari's world.

    The box is a square with ``n_axes`` 2, and with 3 a cube centred on the depth of
    flat layers.  It lies to the right of ``extents``, each [[top, left], [bottom,
    right]] of another layer, and is as high as all of them together.  If these are
    wide, it lies below their middle, ``WIDE`` times less wide.  Extents that are
    not finite are ignored.  Without extents the box has the side ``SIDE`` and begins at
    (0, 0).
    """

    def __init__(
        self, extents: Sequence[NDArray[np.floating]] = (), n_axes: int = 2
    ) -> None:
        finite = [e for e in extents if np.isfinite(e).all()]
        self._corner, self.side, self._has_neighbors = np.zeros(2), SIDE, bool(finite)
        self._shifted_axis = -1
        """The axis, rows or columns, along which the map lies beside the others."""
        if finite:
            top, left = np.min([e[0] for e in finite], axis=0)
            bottom, right = np.max([e[1] for e in finite], axis=0)
            self.side = max(float(bottom - top), 1.0)
            self._corner = np.array([top, right + GAP * self.side])
            if right - left > WIDE * self.side:
                self.side, self._shifted_axis = float(right - left) / WIDE, -2
                middle = (left + right - self.side) / 2
                self._corner = np.array([bottom + GAP * self.side, middle])
        self._center = np.zeros(n_axes)  # [depth,] row and column, in the map's units
        self._half = 0.0
        self._shift = 0.0
        """World units by which the map is shifted away from images, to keep outliers
        off them."""

    @classmethod
    def of_world(cls, side: float, n_axes: int = 2) -> Frame:
        """Return a frame that neither scales nor moves points from 0 to a side.

        A tissue has such a frame: its positions are in units of the world.
        """
        frame = cls(n_axes=n_axes)
        frame.side, frame._half = side, side / 2
        frame._center[-2:] = side / 2
        return frame

    @classmethod
    def of_hidden_map(
        cls, extents: Sequence[NDArray[np.floating]], n_axes: int = 2
    ) -> Frame:
        """Return the frame of a hidden map, in the middle of the finite ``extents``.

        napari's view of all layers then stays as it were without the map.
        """
        frame = cls(n_axes=n_axes)
        if finite := [e for e in extents if np.isfinite(e).all()]:
            low, high = np.min(finite, axis=(0, 1)), np.max(finite, axis=(0, 1))
            frame.side = max(HIDDEN * float((high - low).min()), 1.0)
            frame._corner = (low + high - frame.side) / 2
        return frame

    @property
    def is_fitted(self) -> bool:
        """Whether an extent has been followed; before that there is no scale."""
        return self._half > 0

    @property
    def n_axes(self) -> int:
        """Number of axes of the map as rendered: 2, or 3 in space."""
        return len(self._center)

    def reset_fit(self) -> None:
        """Forget the scale, so that the next extent is fitted at once."""
        self._half = 0.0

    def follow_extent(
        self, positions: NDArray[np.floating], *, is_immediate: bool = False
    ) -> None:
        """Adapt center and scale to the extent of positions (N, d) of the map.

        Outliers are ignored, and changes of the extent up to ``TOLERANCE``.  A growing
        map is fitted at once.  A shrinking map is followed by the share ``EASE`` of the
        way with each call.

        With ``is_immediate``, and at the first call, any map is fitted at once.  Next
        to other layers the shift that keeps outliers off images is then updated, too.
        """
        # The loop over axes is many times faster than an operation on all of them.
        signs = _SIGNS[-positions.shape[1] :]
        pairs = zip(signs.astype(np.float32), positions.T[::-1], strict=True)
        low, high, first = np.array(
            [find_extent_without_outliers(s * x) for s, x in pairs]
        ).T
        center = (low + high) / 2
        half = max(float((high - low).max()) / 2, MIN_HALF)
        reach = half + float(np.abs(center - self._center).max())
        is_immediate = is_immediate or not self.is_fitted
        ease = 0.0
        if is_immediate or reach > self._half * (1 + TOLERANCE):
            ease = 1.0  # a growing map must not leave the box
        elif reach < self._half * (1 - TOLERANCE):
            ease = EASE  # a shrinking map is followed step by step
        self._center = self._center + ease * (center - self._center)
        self._half += ease * (half - self._half)
        if is_immediate and self._has_neighbors:
            axis = self._shifted_axis
            beyond = (low[axis] - first[axis]) * self.scale
            self._shift = max(0.0, beyond - GAP * self.side)

    @property
    def unit(self) -> float:
        """World units per thousandth of the box's side."""
        return self.side / SIDE

    @property
    def corners(self) -> NDArray[np.floating]:
        """First and last corner (row, column) of the box in the world, (2, 2)."""
        return np.stack([self._corner, self._corner + self.side])

    @property
    def scale(self) -> float:
        """World units per unit of the map; an extent must have been followed before."""
        return self.side / (2 * self._half)

    @property
    def step_matrix(self) -> NDArray[np.floating]:
        """Matrix (d, d) from (x, y[, z]) steps to ([depth,] row, column) steps."""
        return np.fliplr(np.diag(self.scale * _SIGNS[-self.n_axes :]))

    @property
    def origin(self) -> NDArray[np.floating]:
        """World position (d,), ([depth,] row, column), of the map's origin (0, 0)."""
        middle = np.zeros(self.n_axes)
        middle[-2:] = self._corner + self.side / 2
        middle[self._shifted_axis] += self._shift
        return middle - self.scale * self._center

    def to_world(self, positions: NDArray[np.floating]) -> NDArray[np.floating]:
        """Convert map positions (x, y[, z]), (..., d), to ([depth,] row, column)."""
        slopes = self.scale * _SIGNS[-self.n_axes :]
        return positions[..., ::-1] * slopes + self.origin

    def write_world_positions(
        self,
        positions: NDArray[np.floating],
        world: NDArray[np.floating],
        axes: Sequence[int],
    ) -> None:
        """Write :meth:`to_world` of positions (N, d) into ``world`` (N, d), in place.

        ``axes`` are the columns of ``world`` for [depth,] row and column.  Without
        intermediate arrays it takes a third of the time for a million points.
        """
        slopes = self.scale * _SIGNS[-self.n_axes :]
        parts = zip(axes, positions.T[::-1], slopes, self.origin, strict=True)
        for axis, values, slope, offset in parts:
            column = world[:, axis]
            np.multiply(values, column.dtype.type(slope), out=column)
            column += column.dtype.type(offset)

    def overlaps_box(self, extent: NDArray[np.floating]) -> bool:
        """Return whether an extent [[top, left], [bottom, right]] overlaps the box.

        An extent that only touches the box does not.
        """
        low, high = self.corners
        return bool((extent[0] < high).all() and (extent[1] > low).all())
