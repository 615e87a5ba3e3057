"""What is to be painted of a map: all that a thread needs to paint it, and no window.

Points in a plane are painted as they are, those in space as they are seen, the farthest
first.  Where more are seen than the picture has pixels, it tells how many lie where
(:mod:`~napari_embedding_game.core.inspect.density`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.inspect.density import paint_density, points_inside
from napari_embedding_game.core.inspect.picture import paint_points
from napari_embedding_game.ui.canvas.projection import Projection

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
    colors : (N, 4) float
    order : (m,) int or None
        The points that are drawn, in that order; None: all as they come.
    n_above : int
        The last of them that lie above all others.
    opacity : float
    shape : (height, width)
        Of the picture.
    n_pixels : int
        Of the canvas, as a person counts them: a screen may have several for each.
    """

    sizes: NDArray[np.floating]
    colors: NDArray[np.floating]
    order: NDArray[np.intp] | None
    n_above: int
    opacity: float
    shape: tuple[int, int]
    n_pixels: int

    @property
    def n_drawn(self) -> int:
        """Points that are drawn."""
        return len(self.sizes) if self.order is None else len(self.order)


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
        looks, sample = self.looks, sampled(self.looks, stride)
        seen = _Seen(self.positions, looks.sizes, looks.colors, self.rows, self.columns)
        picture, coarse = _paint(looks, sample, seen._replace(order=sample.order))
        (row, top), (column, left) = self.rows, self.columns
        side = max(1, coarse)
        matrix = np.diag([side / column, side / row, 1.0, 1.0])
        matrix[3, :2] = -left / column, -top / row
        return Painted(picture, matrix, coarse > 0, sample.n_points)


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
        rows = slice(None) if sample.order is None else sample.order
        places = self.positions[rows]
        on_canvas = (drawn.to_pixels(places) - corner) / self.pixels
        depths = places @ drawn.matrix[2, :3] + drawn.matrix[2, 3]
        zooms = _zoom(drawn) / np.maximum(depths, SMALLEST_DEPTH) / self.pixels[0]
        seen = _Seen(on_canvas[:, ::-1], looks.sizes[rows] * zooms, looks.colors[rows])
        picture, coarse = _paint(looks, sample, seen, places @ drawn.ahead)
        matrix = self._standing(places.mean(axis=0, dtype=float), max(1, coarse))
        return Painted(picture, matrix, coarse > 0, sample.n_points)

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

    order: NDArray[np.intp] | None
    """(m,) None: all, as they come."""
    n_points: int
    n_above: int
    """The last of them that lie above the others."""
    weights: tuple[float, float]
    """How many each of those below, and each of those above, stands for."""


def sampled(looks: Looks, stride: int) -> Sample:
    """Return one in so many of the points that are drawn.

    Of those above the others as many more as that makes half of it: they are what was
    chosen.
    """
    order, n_drawn, n_above = looks.order, looks.n_drawn, looks.n_above
    if stride == 1:
        return Sample(order, n_drawn, n_above, (1.0, 1.0))
    if order is None:
        some = _one_in(n_drawn, stride)
        return Sample(some, len(some), 0, (n_drawn / max(1, len(some)), 1.0))
    every = max(1, math.ceil(2 * n_above * stride / max(1, n_drawn)))
    below, above = np.split(order, [n_drawn - n_above])
    parts = below[_one_in(len(below), stride)], above[_one_in(len(above), every)]
    weights = [
        len(all_) / max(1, len(some))
        for all_, some in zip((below, above), parts, strict=True)
    ]
    some = np.concatenate(parts)
    return Sample(some, len(some), len(parts[1]), (weights[0], weights[1]))


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
    order: NDArray[np.intp] | None = None


def _paint(
    looks: Looks,
    sample: Sample,
    seen: _Seen,
    depths: NDArray[np.floating] | None = None,
) -> tuple[NDArray[np.uint8], int]:
    """Return a picture, and of a density the pixels along a side of its own, else 0.

    Parameters
    ----------
    depths : (m,) float, optional
        The farthest points are painted first.
    """
    if _is_dense(looks, sample, seen):
        return _density(looks, sample, seen)
    picture = paint_points(
        seen.positions,
        seen.sizes,
        seen.colors,
        seen.rows,
        seen.columns,
        looks.shape,
        order=seen.order if depths is None else np.argsort(-depths),
        opacity=looks.opacity,
    )
    return picture, 0


def _is_dense(looks: Looks, sample: Sample, seen: _Seen) -> bool:
    """Return whether more points are seen than there are pixels."""
    if looks.n_drawn <= looks.n_pixels:
        return False
    n_inside = points_inside(
        seen.positions, seen.rows, seen.columns, looks.shape, order=seen.order
    )
    return n_inside * looks.n_drawn > looks.n_pixels * max(1, sample.n_points)


def _density(
    looks: Looks, sample: Sample, seen: _Seen
) -> tuple[NDArray[np.uint8], int]:
    # Few points of a sample lie in a pixel: in several of them they are counted better.
    stride = looks.n_drawn / max(1, sample.n_points)
    coarse = int(np.clip(math.sqrt(stride / 2), 1, MOST_COARSE))
    height, width = (math.ceil(n / coarse) for n in looks.shape)
    below, above = (weight / coarse**2 for weight in sample.weights)
    rows, columns = ((a / coarse, b / coarse) for a, b in (seen.rows, seen.columns))
    picture = paint_density(
        seen.positions,
        seen.colors,
        rows,
        columns,
        (height, width),
        order=seen.order,
        n_above=sample.n_above,
        weights=(below, above),
        opacity=looks.opacity,
    )
    if 0 < sample.n_above <= FEW_ABOVE:
        shown = seen._replace(rows=rows, columns=columns)
        chosen = _chosen(looks, sample, shown, picture.shape[:2], FEW_PIXELS / coarse)
        rest = 255 - chosen[..., 3:].astype(np.uint16)
        picture = (picture * rest // 255).astype(np.uint8) + chosen
    return picture, coarse


def _chosen(
    looks: Looks, sample: Sample, seen: _Seen, shape: tuple[int, ...], least: float
) -> NDArray[np.uint8]:
    """Return a picture of the points above all others: discs of some pixels or more."""
    order = np.arange(sample.n_points) if seen.order is None else seen.order
    above = order[-sample.n_above :]
    unit = math.sqrt(abs(seen.rows[0] * seen.columns[0]))
    return paint_points(
        seen.positions[above],
        np.maximum(seen.sizes[above], least / unit),
        seen.colors[above],
        seen.rows,
        seen.columns,
        (shape[0], shape[1]),
        opacity=looks.opacity,
    )


def _zoom(drawn: Projection) -> float:
    """Return the pixels of a unit across the line of sight, at depth 1."""
    assert drawn.ahead is not None
    sight = drawn.ahead / np.linalg.norm(drawn.ahead)
    across = drawn.matrix[:2, :3] - np.outer(drawn.matrix[:2, :3] @ sight, sight)
    return float(np.linalg.svd(across, compute_uv=False)[-1])
