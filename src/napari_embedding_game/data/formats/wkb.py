"""Find the centroids of shapes in well-known binary (WKB), as GeoParquet stores them.

Read are points, polygons, and collections of one of the two, with either byte order,
and with z or measures as ISO or PostGIS (EWKB) flags them. Many shapes are read at
once: the first part of each, then the second of those that have one, and so on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_Ints = NDArray[np.int64]
_Bools = NDArray[np.bool_]
_Floats = NDArray[np.float64]

_POINT, _POLYGON = 1, 3
_TO_COLLECTION = 3
"""Number added to the code of a kind to get that of a collection of this kind."""
_Z, _M, _SRID = 1 << 31, 1 << 30, 1 << 29  # flags of EWKB
_NO_AREA = 1e-12
"""Area of a shape, divided by its squared perimeter, below which it has only lines."""
_BATCH = 1 << 16
"""Number of shapes that are read at once, which limits the memory for their corners."""


class _Runs(NamedTuple):
    """R runs of corners: each is a ring of a polygon, or a single point."""

    rows: _Ints
    """(R,) shape of each run."""
    lengths: _Ints
    """(R,) number of corners, at least 1."""
    is_hole: _Bools
    corners: _Floats
    """(sum of the lengths, 3) x, y and z, where a missing z is NaN."""


def find_centroids(shapes: Sequence[bytes | None]) -> NDArray[np.float64]:
    """Return the centroids of n shapes: (n, 3) x, y and z.

    The centroid of polygons is that of their area without holes, as GEOS has it; of
    polygons without an area that of their lines, and of points their mean. z is the
    mean of the corners, NaN where a shape has none. A shape that is missing or empty is
    NaN in all columns.

    Raises ValueError if a shape is damaged, or neither points nor polygons.
    """
    centroids = np.full((len(shapes), 3), np.nan)
    for i in range(0, len(shapes), _BATCH):
        batch = shapes[i : i + _BATCH]
        if runs := [*_Reader(batch).read_runs()]:
            joined = _Runs(*map(np.concatenate, zip(*runs, strict=True)))
            centroids[i : i + _BATCH] = _average_runs(joined, len(batch))
    return centroids


class _Reader:
    """The bytes of n shapes, and how far each shape has been read."""

    def __init__(self, shapes: Sequence[bytes | None]) -> None:
        given = [shape or b"" for shape in shapes]
        # At least one number fits into the buffer.
        self.buffer = b"".join([*given, bytes(8)])
        sizes = np.fromiter(map(len, given), np.int64, len(given))
        self.ends = np.cumsum(sizes)
        self.at = self.ends - sizes
        self.is_little = np.ones(len(given), bool)
        self.has_z = np.zeros(len(given), bool)
        self.n_axes = np.zeros(len(given), np.int64)

    def read_runs(self) -> Iterator[_Runs]:
        """Yield the runs of all shapes, in the order of their parts.

        Raises ValueError if a byte is missing or left, or for another kind of shape.
        """
        rows, begins = np.flatnonzero(self.at < self.ends), self.at.copy()
        kinds, n_parts, n_rings = np.zeros((3, len(begins)), np.int64)
        is_first_ring = np.zeros(len(begins), bool)
        kinds[rows] = self._read_headers(rows)
        is_one = np.isin(kinds[rows], (_POINT, _POLYGON))
        one, many = rows[is_one], rows[~is_one]
        self.at[one], n_parts[one] = begins[one], 1  # as if each were in a collection
        n_parts[many] = self._read_counts(many)
        kinds[many] -= _TO_COLLECTION
        if not np.isin(kinds[rows], (_POINT, _POLYGON)).all():
            raise ValueError("a shape is neither points nor polygons")
        while len(rows := rows[(n_parts[rows] > 0) | (n_rings[rows] > 0)]):
            opened = rows[n_rings[rows] == 0]
            if (self._read_headers(opened) != kinds[opened]).any():
                raise ValueError("a collection has a shape of another kind")
            n_parts[opened] -= 1
            is_point = kinds[opened] == _POINT
            points, polygons = opened[is_point], opened[~is_point]
            yield self._read_corners(
                points, np.ones_like(points), np.zeros(len(points), bool)
            )
            n_rings[polygons] = self._read_counts(polygons)
            is_first_ring[polygons] = True
            rings = rows[n_rings[rows] > 0]
            yield self._read_corners(
                rings, self._read_counts(rings), ~is_first_ring[rings]
            )
            n_rings[rings] -= 1
            is_first_ring[rings] = False
        if (self.at != self.ends).any():
            raise ValueError("a shape has more bytes than its parts")

    def _read_headers(self, rows: _Ints) -> _Ints:
        """Read byte order and type of the next part; return its kind, keep its axes."""
        orders = np.frombuffer(self.buffer, np.uint8)[self._pass_bytes(rows, 1)]
        self.is_little[rows] = orders == 1
        flags = self._read_counts(rows)
        dimensions, kinds = np.divmod(flags & (_SRID - 1), 1000)
        if (orders > 1).any() or (dimensions > 3).any():
            raise ValueError("a shape has an unknown byte order or type")
        self.has_z[rows] = (flags & _Z > 0) | (dimensions & 1 > 0)
        has_m = (flags & _M > 0) | (dimensions & 2 > 0)
        self.n_axes[rows] = 2 + self.has_z[rows] + has_m
        self._pass_bytes(rows, 4 * (flags & _SRID > 0))
        return kinds

    def _read_counts(self, rows: _Ints) -> _Ints:
        """Read an unsigned number of four bytes."""
        values = self._read_values(
            "u4", self._pass_bytes(rows, 4), self.is_little[rows]
        )
        return values.astype(np.int64)

    def _read_corners(self, rows: _Ints, lengths: _Ints, is_hole: _Bools) -> _Runs:
        """Read as many corners as `lengths` says; runs without corners are left out."""
        width = 8 * self.n_axes[rows]
        starts, is_run = self._pass_bytes(rows, lengths * width), lengths > 0
        rows, lengths, starts = rows[is_run], lengths[is_run], starts[is_run]
        run = np.repeat(np.arange(len(rows)), lengths)
        before: _Ints = np.cumsum(lengths) - lengths
        at = starts[run] + (np.arange(len(run)) - before[run]) * width[is_run][run]
        is_little, has_z = self.is_little[rows][run], self.has_z[rows][run]
        corners = np.full((len(run), 3), np.nan)
        for axis in (0, 1):
            corners[:, axis] = self._read_values("f8", at + 8 * axis, is_little)
        corners[has_z, 2] = self._read_values("f8", at[has_z] + 16, is_little[has_z])
        return _Runs(rows, lengths, is_hole[is_run], corners)

    def _pass_bytes(self, rows: _Ints, n_bytes: Any) -> _Ints:
        """Return the place reached in each shape, and pass over a number of bytes.

        Raises ValueError if a shape has not as many.
        """
        places = self.at[rows]
        self.at[rows] += n_bytes
        if (self.at[rows] > self.ends[rows]).any():
            raise ValueError("a shape is cut short")
        return places

    def _read_values(self, kind: str, at: _Ints, is_little: _Bools) -> NDArray[Any]:
        """Return the values of a type at places in the buffer, in any byte orders."""
        n = len(self.buffer) - np.dtype(kind).itemsize + 1
        little, big = (
            np.ndarray(n, order + kind, self.buffer, strides=1)[at] for order in "<>"
        )
        return np.where(is_little, little, big)


def _average_runs(runs: _Runs, n: int) -> _Floats:
    """Return the centroids (n, 3) of n shapes; NaN for a shape without runs."""
    ends = np.cumsum(runs.lengths)
    run = np.repeat(np.arange(len(ends)), runs.lengths)
    row, following = runs.rows[run], np.arange(1, len(run) + 1)
    following[ends - 1] = ends - runs.lengths  # the first corner comes after the last

    def sum_by_shape(values: _Floats | None) -> _Floats:
        return np.bincount(row, values, n).astype(np.float64)

    with np.errstate(all="ignore"):
        count = sum_by_shape(None)
        centroids = np.stack(
            [sum_by_shape(axis) / count for axis in runs.corners.T], axis=1
        )
        # Products of large coordinates would leave few digits to their differences.
        x, y = (runs.corners - centroids[row])[:, :2].T
        next_x, next_y = x[following], y[following]
        areas, lines = x * next_y - next_x * y, np.hypot(next_x - x, next_y - y)
        signs = np.sign(np.bincount(run, areas)) * np.where(runs.is_hole, -1, 1)
        areas *= signs[run]  # a ring may be written in either direction
        area, perimeter = sum_by_shape(areas), sum_by_shape(lines)
        has_area, has_lines = area > _NO_AREA * perimeter**2, perimeter > 0
        for axis, sums in enumerate((x + next_x, y + next_y)):
            by_area = sum_by_shape(areas * sums) / (3 * area)
            by_lines = sum_by_shape(lines * sums) / (2 * perimeter)
            shift = np.where(has_lines, by_lines, 0)
            centroids[:, axis] += np.where(has_area, by_area, shift)
    return centroids
