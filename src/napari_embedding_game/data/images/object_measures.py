"""Size, shape and intensity of some objects at a time, named as in scikit-image."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.data.label_objects import Objects

Measures = dict[str, NDArray[np.float64]]
"""(n,) by name."""
_LEVELS = 32


class ObjectPixels:
    """The pixels of n objects, one object after the other.

    Parameters
    ----------
    objects : Objects
        (n,) of the label image; none of them empty.
    labels : array
    n_leading : int
        Axes that only tell pictures apart, in which an object has no extent.
    """

    def __init__(
        self, objects: Objects, labels: NDArray[Any], n_leading: int = 0
    ) -> None:
        n = len(objects)
        masks = [labels[objects.slices(i)] == objects.label_ids[i] for i in range(n)]
        corners = objects.boxes[:, : labels.ndim]
        places = [np.argwhere(m) + c for m, c in zip(masks, corners, strict=True)]
        self.masks = [mask[(0,) * n_leading] for mask in masks]
        """Each in its own box."""
        self.places = np.concatenate(places)
        """(P, ndim)"""
        self.counts = np.array([len(part) for part in places])
        """(n,)"""
        self.own = np.repeat(np.arange(n), self.counts)
        """(P,) which of the objects."""
        self._starts = np.cumsum(self.counts) - self.counts
        self.pairs = [
            self._pairs(labels, objects.label_ids[self.own], axis)
            for axis in range(n_leading, labels.ndim)
        ]
        """Pixels with the next one along an axis in the same object, and its place."""

    def reduce(self, function: np.ufunc, values: NDArray[Any]) -> NDArray[np.float64]:
        """Values of all pixels (P,) reduced to one for each object (n,)."""
        reduced: NDArray[np.float64] = function.reduceat(values, self._starts)
        return reduced

    def mean(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Mean of the pixels' values (P,) of each object (n,)."""
        sums = self.reduce(np.add, values.astype(np.float64))
        return np.asarray(sums / self.counts)

    def centres(self) -> NDArray[np.float64]:
        """Centre of each object in pixels, (n, ndim)."""
        return np.column_stack([self.mean(along) for along in self.places.T])

    def _pairs(
        self, labels: NDArray[Any], ids: NDArray[np.int64], axis: int
    ) -> tuple[NDArray[np.intp], tuple[NDArray[np.intp], ...]]:
        rows = np.flatnonzero(self.places[:, axis] + 1 < labels.shape[axis])
        beside = self.places[rows]
        beside[:, axis] += 1
        is_same = labels[tuple(beside.T)] == ids[rows]
        return rows[is_same], tuple(beside[is_same].T)


def form_of(pixels: ObjectPixels, spacing: Sequence[float]) -> Measures:
    """Measures of form, by name.

    A measure that an object is too small for is that of the simplest form:
    eccentricity 0, solidity 1.

    Parameters
    ----------
    pixels : ObjectPixels
    spacing : sequence of float
        Length of a pixel along the last two or three axes.
    """
    n_axes = len(spacing)
    size = pixels.counts * math.prod(spacing)
    major, minor = _axes(pixels, spacing)
    shortness = np.divide(minor, major, out=np.ones(len(size)), where=major > 0)
    measures = {
        "area" if n_axes == 2 else "volume": size,
        "equivalent_diameter": (2 * n_axes * size / math.pi) ** (1 / n_axes),
        "major_axis_length": major,
        "minor_axis_length": minor,
        "extent": pixels.counts / [mask.size for mask in pixels.masks],
    }
    if n_axes == 3:
        return {**measures, "elongation": 1 - shortness}
    measures["eccentricity"] = np.sqrt(1 - shortness**2)
    measures["solidity"] = _solidity(pixels)
    if len(set(spacing)) == 1:
        from skimage.measure import perimeter

        around = spacing[0] * np.array([perimeter(mask) for mask in pixels.masks])
        roundness = np.ones(len(size))
        np.divide(4 * math.pi * size, around**2, out=roundness, where=around > 0)
        measures["perimeter"] = around
        measures["roundness"] = np.minimum(1.0, roundness)
    return measures


def _axes(
    pixels: ObjectPixels, spacing: Sequence[float]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Longest and shortest axis of the ellipse, or ellipsoid, of the same moments."""
    n_axes = len(spacing)
    offsets = pixels.places - pixels.centres()[pixels.own]
    along = (offsets[:, -n_axes:] * spacing).T
    moments = np.array([[pixels.mean(one * other) for one in along] for other in along])
    moments = np.maximum(np.linalg.eigvalsh(np.moveaxis(moments, -1, 0)), 0)
    factor = 4 if n_axes == 2 else 2 * math.sqrt(5)
    return factor * np.sqrt(moments[:, -1]), factor * np.sqrt(moments[:, 0])


def _solidity(pixels: ObjectPixels) -> NDArray[np.float64]:
    from skimage.morphology import convex_hull_image

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a line of pixels has no hull
        hulls = np.array([convex_hull_image(mask).sum() for mask in pixels.masks])
    return np.asarray(np.minimum(1.0, pixels.counts / np.maximum(hulls, 1)))


def intensity_of(
    pixels: ObjectPixels, channel: NDArray[Any], span: tuple[float, float]
) -> Measures:
    """Brightness and texture in one channel, by name.

    Parameters
    ----------
    pixels : ObjectPixels
    channel : array
        Of the shape of the label image.
    span : pair of float
        Lowest and highest value of the whole channel.

    Returns
    -------
    dict
        ``mean``, ``std``, ``min``, ``max``; ``entropy`` in bits of 32 grey levels;
        ``contrast``, the mean difference between neighbouring pixels of the object
        as a share of the span (dissimilarity of the grey-level co-occurrence at
        distance 1).  All are NaN if one of the object's pixels is not finite.
    """
    values = channel[tuple(pixels.places.T)].astype(np.float64)
    is_finite = np.isfinite(values)
    is_known = pixels.reduce(np.logical_and, is_finite)
    values[~is_finite] = 0.0
    mean = pixels.mean(values)
    measures = {
        "mean": mean,
        "std": np.sqrt(pixels.mean((values - mean[pixels.own]) ** 2)),
        "min": pixels.reduce(np.minimum, values),
        "max": pixels.reduce(np.maximum, values),
        "entropy": _entropy(pixels, values, span),
        "contrast": _contrast(pixels, values, channel, span),
    }
    return {key: np.where(is_known, found, np.nan) for key, found in measures.items()}


def _entropy(
    pixels: ObjectPixels, values: NDArray[np.float64], span: tuple[float, float]
) -> NDArray[np.float64]:
    low, high = span
    scale = _LEVELS / (high - low) if high > low else 0.0
    levels = np.clip((values - low) * scale, 0, _LEVELS - 1).astype(np.int64)
    n = len(pixels.counts)
    counts = np.bincount(pixels.own * _LEVELS + levels, minlength=n * _LEVELS)
    shares = counts.reshape(n, _LEVELS) / pixels.counts[:, None]
    bits = np.log2(shares, out=np.zeros_like(shares), where=shares > 0)
    return 0.0 - np.asarray((shares * bits).sum(axis=1))


def _contrast(
    pixels: ObjectPixels,
    values: NDArray[np.float64],
    channel: NDArray[Any],
    span: tuple[float, float],
) -> NDArray[np.float64]:
    n, (low, high) = len(pixels.counts), span
    total, n_pairs = np.zeros(n), np.zeros(n)
    for rows, beside in pixels.pairs:
        with np.errstate(invalid="ignore"):
            steps = np.abs(channel[beside].astype(np.float64) - values[rows])
        total += np.bincount(pixels.own[rows], steps, n)
        n_pairs += np.bincount(pixels.own[rows], minlength=n)
    unit = n_pairs * max(0.0, high - low)
    return np.divide(total, unit, out=np.zeros(n), where=unit > 0)
