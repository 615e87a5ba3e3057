"""How very many points look, and in which order they are drawn.

Both are worked out for those points that are drawn, when they are: of millions a
picture shows a sample, or the mean of those in each pixel, and an array of all colours,
16 bytes a point, would hold the window up with each click.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.ui.style.colors import CodedColors, Colors

AT_ONCE = 1 << 18
"""Points whose colours are worked out together: they fit into a processor's cache."""


class DrawingOrder:
    """Which of N points are drawn, and which of these above all others.

    Parameters
    ----------
    chosen : (N,) bool, optional
        Points that are drawn above the others; by default none.
    hidden : (N,) bool, optional
        Points that are not drawn; by default none.
    """

    def __init__(
        self,
        chosen: NDArray[np.bool_] | None = None,
        hidden: NDArray[np.bool_] | None = None,
    ) -> None:
        given = hidden if chosen is None else chosen
        assert given is not None
        self.n_points = len(given)
        shown = None if hidden is None else ~hidden
        self._is_above = chosen
        if chosen is not None and shown is not None:
            self._is_above = chosen & shown
        self._is_below = shown
        if chosen is not None:
            self._is_below = ~chosen if shown is None else shown & ~chosen

    @cached_property
    def n_above(self) -> int:
        """Points that are drawn above the others."""
        return 0 if self._is_above is None else int(np.count_nonzero(self._is_above))

    @cached_property
    def n_below(self) -> int:
        """Points that are drawn below these."""
        return int(np.count_nonzero(self.is_below))

    @property
    def n_drawn(self) -> int:
        """Points that are drawn."""
        return self.n_below + self.n_above

    @property
    def is_below(self) -> NDArray[np.bool_]:
        """Whether a point is drawn below those above: (N,)."""
        assert self._is_below is not None
        return self._is_below

    @cached_property
    def above(self) -> NDArray[np.intp]:
        """The points (n_above,) that are drawn above the others."""
        if self._is_above is None:
            return np.empty(0, np.intp)
        return np.flatnonzero(self._is_above)

    @property
    def parts(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The points that are drawn below the others, and those above these."""
        return np.flatnonzero(self.is_below), self.above

    @cached_property
    def rows(self) -> NDArray[np.intp]:
        """The points (n_drawn,) that are drawn, in that order."""
        return np.concatenate(self.parts)

    def one_in(self, stride: int) -> NDArray[np.intp]:
        """Return one in so many of the points that are drawn, in that order."""
        some = np.arange(0, self.n_points, stride)
        return np.concatenate([some[self.is_below.take(some)], self.above[::stride]])


@dataclass(frozen=True, eq=False)
class Muting:
    """How points look that others stand out among: greyer, and opaque."""

    share: float
    """Of the grey, 0 to 1."""
    grey: float
    """Its lightness, 0 to 1."""

    def of(self, colors: Colors) -> Colors:
        """Return (n, 4) colours as they are muted."""
        muted = colors * np.array([*3 * [1 - self.share], 0.0], np.float32)
        muted += np.array([*3 * [self.share * self.grey], 1.0], np.float32)
        return muted


@dataclass(frozen=True, eq=False)
class PointLooks:
    """The looks of N points.  Its arrays are not to be written any more.

    Parameters
    ----------
    colors : (N, 4) array or CodedColors
    size : float
        Diameter of a point.
    magnification : float or (N,) array
        Of the size of each.
    chosen : (N,) bool, optional
        Points that stand out; by default none.
    muting : Muting, optional
        Of all others, where there are points that stand out; by default these keep
        their colours.
    enlargement : float
        Of the points that stand out, besides their magnification.
    """

    colors: Colors | CodedColors
    size: float = 1.0
    magnification: NDArray[np.floating] | float = 1.0
    chosen: NDArray[np.bool_] | None = None
    muting: Muting | None = None
    enlargement: float = 1.0

    def __len__(self) -> int:
        return len(self.colors)

    def colors_of(self, rows: NDArray[np.intp] | slice) -> Colors:
        """Return the colours of some points, (m, 4), which may be written."""
        if self.chosen is None or self.muting is None:
            return self._bright(rows)
        if isinstance(self.colors, CodedColors):
            colors = self.colors.mapped(self.muting.of).of(rows)
        else:
            colors = self.muting.of(self.colors[rows])
        chosen = np.flatnonzero(self.chosen[rows])
        if isinstance(rows, slice):
            colors[chosen] = self._bright(chosen + (rows.start or 0))
        else:
            colors[chosen] = self._bright(rows[chosen])
        return colors

    def held(self, *, is_chosen: bool) -> Colors | CodedColors | None:
        """Return the colours of all points that stand out, or of all that do not.

        None where these have to be worked out.
        """
        if self.muting is None or self.chosen is None or is_chosen:
            return self.colors
        if isinstance(self.colors, CodedColors):
            return self.colors.mapped(self.muting.of)
        return None

    @property
    def largest(self) -> float:
        """Diameter of the largest point, or a little more."""
        return self.size * float(np.max(self.magnification)) * max(1, self.enlargement)

    def write_colors(self, colors: NDArray[np.floating]) -> None:
        """Write the colours of all points into an array (N, 4)."""
        for begin in range(0, len(self), AT_ONCE):
            part = slice(begin, min(begin + AT_ONCE, len(self)))
            colors[part] = self.colors_of(part)

    def write_sizes(self, sizes: NDArray[np.floating]) -> None:
        """Write the sizes of all points into an array (N,)."""
        sizes[:] = self.size
        if not np.isscalar(self.magnification) or self.magnification != 1.0:
            sizes *= self.magnification
        if self.chosen is not None and self.enlargement != 1.0:
            np.multiply(sizes, self.enlargement, out=sizes, where=self.chosen)

    def sizes(self) -> NDArray[np.floating]:
        """Return the sizes of all points: (N,)."""
        sizes = np.empty(len(self))
        self.write_sizes(sizes)
        return sizes

    def _bright(self, rows: NDArray[np.intp] | slice) -> Colors:
        if isinstance(self.colors, CodedColors):
            return self.colors.of(rows)
        if isinstance(rows, slice):
            return np.array(self.colors[rows], np.float32)
        return self.colors.take(rows, axis=0)
