"""What is to be painted of a map: all that a thread needs to paint it, and no window.

Points in a plane are painted as they are, those in space as they are seen, the farthest
first.  Where more are seen than the picture has pixels, it tells how many lie where
(:mod:`~napari_embedding_game.ui.canvas.pixels`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.ui.canvas.pixels import (
    Lines,
    Part,
    paint_density,
    paint_discs,
    points_near,
)
from napari_embedding_game.ui.canvas.projection import Projection
from napari_embedding_game.ui.point_looks import AT_ONCE, DrawingOrder, PointLooks

MOST_COARSE = 3
"""Pixels along one side of those that a sample is counted in."""
FEW_ABOVE, FEW_PIXELS = 1_000, 4.0
"""So few points that were chosen are discs on a density, as wide as this on the canvas.

A pixel among half a million is not found.
"""
SMALLEST_DEPTH = 1e-6
"""Of points in front of the eye, relative to what the camera looks at."""


class Painted(NamedTuple):
    """A picture, and where it is."""

    picture: NDArray[np.uint8]
    """(height, width, 4), red, green and blue times the opacity, and the opacity."""
    matrix: NDArray[np.float64]
    """(4, 4) from its pixels to the layer's coordinates, both as vispy has them."""
    is_density: bool
    """Whether it tells how many points lie where, and shows none of them."""
    n_painted: int


@dataclass(frozen=True, eq=False)
class Looks:
    """The looks of points (N,), and where they are seen.

    Parameters
    ----------
    sizes : (N,) float
        In units of the layer.
    colors : (N, 4) float or PointLooks
    order : DrawingOrder or None
        Which points are drawn, and which above all others; None: all as they come.
    opacity : float
    shape : (height, width)
        Of the picture.
    n_pixels : int
        Of the canvas, as a person counts them: a screen may have several for each.
    """

    sizes: NDArray[np.floating]
    colors: NDArray[np.floating] | PointLooks
    order: DrawingOrder | None
    opacity: float
    shape: tuple[int, int]
    n_pixels: int

    @property
    def n_drawn(self) -> int:
        """Points that are drawn."""
        return len(self.sizes) if self.order is None else self.order.n_drawn

    @property
    def n_above(self) -> int:
        """Points that are drawn above all others."""
        return 0 if self.order is None else self.order.n_above

    def colors_of(self, rows: NDArray[np.intp] | None) -> NDArray[np.floating]:
        """Return the colours of some points, None for all: (m, 4)."""
        if isinstance(self.colors, PointLooks):
            return self.colors.colors_of(slice(None) if rows is None else rows)
        return self.colors if rows is None else self.colors[rows]


class Painting(Protocol):
    """Points that can be painted, in any thread."""

    looks: Looks

    def paint(self, stride: int = 1) -> Painted:
        """Paint one in so many of the points."""
        ...


@dataclass(frozen=True, eq=False)
class FlatPainting:
    """Points of an upright plane.

    Parameters
    ----------
    looks : Looks
    positions : (N, 2) float
        Row and column.
    rows, columns : (slope, offset)
        From these to the pixels of the picture.
    """

    looks: Looks
    positions: NDArray[np.floating]
    rows: tuple[float, float]
    columns: tuple[float, float]

    def paint(self, stride: int = 1) -> Painted:
        """Paint one in so many of the points."""
        sample = sampled(self.looks, stride)
        if self._is_dense(sample):
            picture, coarse = self._density(sample)
        else:
            picture, coarse = self._discs(sample), 0
        (row, top), (column, left) = self.rows, self.columns
        side = max(1, coarse)
        matrix = np.diag([side / column, side / row, 1.0, 1.0])
        matrix[3, :2] = -left / column, -top / row
        return Painted(picture, matrix, coarse > 0, sample.n_points)

    @property
    def _lines(self) -> Lines:
        return self.rows, self.columns

    def _is_dense(self, sample: Sample) -> bool:
        if self.looks.n_drawn <= self.looks.n_pixels:
            return False
        shape, rows = self.looks.shape, sample.rows
        # Without a sample hidden points count as well: they lie where others do.
        inside = points_near(self.positions, self._lines, shape, 0.0, rows)
        n_counted = len(self.positions if rows is None else rows)
        return _is_dense(self.looks, len(inside), n_counted)

    def _density(self, sample: Sample) -> tuple[NDArray[np.uint8], int]:
        order, rows = self.looks.order, sample.below
        if rows is None and order is not None:
            rows = order.parts[0]
        below = self._parts(rows, is_above=False)
        above = self._parts(sample.above, is_above=True)
        picture, coarse = _density(self.looks, sample, below, above, self._lines)
        if 0 < len(sample.above) <= FEW_ABOVE:
            seen = self._seen(sample.above)
            picture = _with_chosen(self.looks, picture, seen, coarse)
        return picture, coarse

    def _parts(
        self,
        rows: NDArray[np.intp] | None,
        *,
        is_above: bool,
    ) -> Iterator[Part]:
        """Yield some points, None for all, and their colours."""
        looks, positions = self.looks.colors, self.positions
        held = (
            looks.held(is_chosen=is_above) if isinstance(looks, PointLooks) else looks
        )
        if held is not None:
            yield Part(positions, held, rows)
        else:  # colours for each point, which are muted: a few at a time
            n_points = len(positions) if rows is None else len(rows)
            for begin in range(0, n_points, AT_ONCE):
                part = slice(begin, begin + AT_ONCE)
                some = np.arange(n_points)[part] if rows is None else rows[part]
                yield Part(positions[some], self.looks.colors_of(some))

    def _discs(self, sample: Sample) -> NDArray[np.uint8]:
        looks, rows = self.looks, sample.rows
        if not isinstance(looks.colors, PointLooks):
            seen = _Seen(self.positions, looks.sizes, looks.colors, *self._lines)
            if rows is None and looks.order is not None:
                rows = looks.order.rows
            return _paint_discs(looks, seen, looks.shape, rows)
        # Colours are worked out of what is seen.
        unit = math.sqrt(abs(self.rows[0] * self.columns[0]))
        margin = max(1.0, looks.colors.largest * unit) / 2 + 1.0
        all_ = [rows] if rows is not None or looks.order is None else looks.order.parts
        near = [
            points_near(self.positions, self._lines, looks.shape, margin, part)
            for part in all_
        ]
        return _paint_discs(looks, self._seen(np.concatenate(near)), looks.shape)

    def _seen(self, rows: NDArray[np.intp]) -> _Seen:
        looks, positions = self.looks, self.positions.take(rows, axis=0)
        colors = looks.colors_of(rows)
        return _Seen(positions, looks.sizes.take(rows), colors, *self._lines)


@dataclass(frozen=True, eq=False)
class SpacePainting:
    """Points in space, on a picture that stands in the middle of them.

    Parameters
    ----------
    looks : Looks
    positions : (N, 3) float
        Depth, row and column.
    drawn : Projection
    pixels : (2,) array
        Width and height of a pixel of the picture on the canvas.
    """

    looks: Looks
    positions: NDArray[np.floating]
    drawn: Projection
    pixels: NDArray[np.float64]

    def paint(self, stride: int = 1) -> Painted:
        """Paint one in so many of the points."""
        drawn, corner = self.drawn, np.array(self.drawn.cell[:2])
        assert drawn.ahead is not None
        looks, sample = self.looks, sampled(self.looks, stride)
        rows = sample.rows
        if rows is None and looks.order is not None:
            rows = looks.order.rows
        places = self.positions if rows is None else self.positions[rows]
        sizes = looks.sizes if rows is None else looks.sizes[rows]
        on_canvas = (drawn.to_pixels(places) - corner) / self.pixels
        depths = places @ drawn.matrix[2, :3] + drawn.matrix[2, 3]
        zooms = _zoom(drawn) / np.maximum(depths, SMALLEST_DEPTH) / self.pixels[0]
        seen = _Seen(on_canvas[:, ::-1], sizes * zooms, looks.colors_of(rows))
        picture, coarse = self._painted(sample, seen, places @ drawn.ahead)
        matrix = self._standing(places.mean(axis=0, dtype=float), max(1, coarse))
        return Painted(picture, matrix, coarse > 0, sample.n_points)

    def _painted(
        self, sample: Sample, seen: _Seen, depths: NDArray[np.floating]
    ) -> tuple[NDArray[np.uint8], int]:
        looks, n_seen = self.looks, len(depths)
        if looks.n_drawn > looks.n_pixels:
            n_inside = len(points_near(seen.positions, seen.lines, looks.shape, 0.0))
            if _is_dense(looks, n_inside, n_seen):
                split = np.split(np.arange(n_seen), [n_seen - sample.n_above])
                parts = [[Part(seen.positions, seen.colors, rows)] for rows in split]
                picture, coarse = _density(looks, sample, *parts, seen.lines)
                if 0 < sample.n_above <= FEW_ABOVE:
                    chosen = seen.last(sample.n_above)
                    picture = _with_chosen(looks, picture, chosen, coarse)
                return picture, coarse
        return _paint_discs(looks, seen, looks.shape, np.argsort(-depths)), 0

    def _standing(
        self, middle: NDArray[np.float64], coarse: int
    ) -> NDArray[np.float64]:
        """Return the matrix of a picture that stands there, parallel to the canvas."""
        corner, (across, down) = np.array(self.drawn.cell[:2]), coarse * self.pixels
        steps = corner + np.array([[0.0, 0.0], [across, 0.0], [0.0, down]])
        found = [self.drawn.beside(middle, step) for step in steps]
        matrix = np.eye(4)
        if all(place is not None for place in found):
            origin, right, below = np.array(found)[:, ::-1]
            sides = right - origin, below - origin
            matrix[:4, :3] = *sides, np.cross(*sides), origin
        return matrix


class Sample(NamedTuple):
    """Points that stand for all, in the order in which they are painted."""

    below: NDArray[np.intp] | None
    """Those below the others; None: all, and all above these."""
    above: NDArray[np.intp]
    """Those above the others."""
    n_points: int
    weights: tuple[float, float]
    """How many each of those below, and each of those above, stands for."""

    @property
    def n_above(self) -> int:
        """The last of them, that lie above the others."""
        return len(self.above)

    @property
    def rows(self) -> NDArray[np.intp] | None:
        """All of them in their order; None: all points that are drawn."""
        return None if self.below is None else np.concatenate([self.below, self.above])


def sampled(looks: Looks, stride: int) -> Sample:
    """Return one in so many of the points that are drawn.

    Of those above the others as many more as that makes half of it: they are what was
    chosen.
    """
    order, n_drawn = looks.order, looks.n_drawn
    above = np.empty(0, np.intp) if order is None else order.above
    if stride == 1:
        return Sample(None, above, n_drawn, (1.0, 1.0))
    below, n_below = _one_in(len(looks.sizes), stride), n_drawn - len(above)
    if order is not None:
        below = below[order.is_below.take(below)]
    every = max(1, math.ceil(2 * len(above) * stride / max(1, n_drawn)))
    some = above[_one_in(len(above), every)]
    weights = n_below / max(1, len(below)), len(above) / max(1, len(some))
    return Sample(below, some, len(below) + len(some), weights)


@lru_cache(maxsize=8)
def _one_in(n_points: int, stride: int) -> NDArray[np.intp]:
    """Return one of each so many numbers below a number, always the same array.

    Which of them is drawn by lot: rows may be of two samples in turns.
    """
    first = np.arange(0, n_points, stride)
    if stride > 1:
        first += np.random.default_rng(0).integers(0, stride, len(first))
        np.minimum(first, n_points - 1, out=first)
    return first


class _Seen(NamedTuple):
    """Points on a picture."""

    positions: NDArray[np.floating]
    sizes: NDArray[np.floating]
    colors: NDArray[np.floating]
    rows: tuple[float, float] = (1.0, 0.0)
    columns: tuple[float, float] = (1.0, 0.0)

    @property
    def lines(self) -> Lines:
        """From positions to pixels."""
        return self.rows, self.columns

    def last(self, n_points: int) -> _Seen:
        """Return the last of them."""
        some = slice(len(self.positions) - n_points, None)
        return self._replace(
            positions=self.positions[some],
            sizes=self.sizes[some],
            colors=self.colors[some],
        )


def _is_dense(looks: Looks, n_inside: int, n_counted: int) -> bool:
    """Return whether more points are seen than there are pixels.

    Parameters
    ----------
    n_inside, n_counted : int
        Points on the picture, and those that were counted.
    """
    return n_inside * looks.n_drawn > looks.n_pixels * max(1, n_counted)


def _paint_discs(
    looks: Looks,
    seen: _Seen,
    shape: tuple[int, int],
    order: NDArray[np.intp] | None = None,
) -> NDArray[np.uint8]:
    """Return a picture of points, one over another."""
    points = seen.positions, seen.sizes, seen.colors
    return paint_discs(*points, seen.lines, shape, order, looks.opacity)


def _density(
    looks: Looks,
    sample: Sample,
    below: Iterable[Part],
    above: Iterable[Part],
    lines: Lines,
) -> tuple[NDArray[np.uint8], int]:
    """Return a picture of how many points lie where, and the pixels along its own."""
    # Few points of a sample lie in a pixel: in several of them they are counted better.
    stride = looks.n_drawn / max(1, sample.n_points)
    coarse = int(np.clip(math.sqrt(stride / 2), 1, MOST_COARSE))
    height, width = (math.ceil(n / coarse) for n in looks.shape)
    weights = sample.weights[0] / coarse**2, sample.weights[1] / coarse**2
    above = above if sample.n_above else ()
    where = _coarser(lines, coarse), (height, width)
    return paint_density(below, above, *where, weights, looks.opacity), coarse


def _coarser(lines: Lines, coarse: int) -> Lines:
    """Return the same lines to pixels that are larger by a factor."""
    (row, top), (column, left) = lines
    return (row / coarse, top / coarse), (column / coarse, left / coarse)


def _with_chosen(
    looks: Looks, picture: NDArray[np.uint8], seen: _Seen, coarse: int
) -> NDArray[np.uint8]:
    """Return a density with few points over it, as discs of some pixels or more."""
    rows, columns = _coarser(seen.lines, coarse)
    least = FEW_PIXELS / coarse / math.sqrt(abs(rows[0] * columns[0]))
    larger = seen._replace(
        rows=rows, columns=columns, sizes=np.maximum(seen.sizes, least)
    )
    height, width = picture.shape[:2]
    chosen = _paint_discs(looks, larger, (height, width))
    rest = 255 - chosen[..., 3:].astype(np.uint16)
    return (picture * rest // 255).astype(np.uint8) + chosen


def _zoom(drawn: Projection) -> float:
    """Return the pixels of a unit across the line of sight, at depth 1."""
    assert drawn.ahead is not None
    sight = drawn.ahead / np.linalg.norm(drawn.ahead)
    across = drawn.matrix[:2, :3] - np.outer(drawn.matrix[:2, :3] @ sight, sight)
    return float(np.linalg.svd(across, compute_uv=False)[-1])
