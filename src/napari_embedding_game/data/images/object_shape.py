"""Size, shape and intensity of one object, named as in scikit-image."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray


def shape_of(region: Any) -> dict[str, float]:
    """Measures of form of one of scikit-image's regions, by name.

    Lengths are in units of the region's ``spacing``.  A measure that an object is
    too small for is that of the simplest form: eccentricity 0, solidity 1.
    """
    major, minor = _axes(region)
    size = float(region.area)
    measures = {
        "area" if region._ndim == 2 else "volume": size,
        "equivalent_diameter": float(region.equivalent_diameter_area),
        "major_axis_length": major,
        "minor_axis_length": minor,
        "extent": float(region.extent),
    }
    shortness = minor / major if major > 0 else 1.0
    if region._ndim == 3:
        measures["elongation"] = 1 - shortness
        return measures
    measures["eccentricity"] = math.sqrt(1 - shortness**2)
    measures["solidity"] = _solidity(region)
    if len(set(region._spacing)) == 1:
        measures["perimeter"] = perimeter = float(region.perimeter)
        roundness = 4 * math.pi * size / perimeter**2 if perimeter > 0 else 1.0
        measures["roundness"] = min(1.0, roundness)
    return measures


def _axes(region: Any) -> tuple[float, float]:
    """Longest and shortest axis of the ellipse, or ellipsoid, of the same moments."""
    coordinates = region.coords * np.asarray(region._spacing)
    centred = coordinates - coordinates.mean(axis=0)
    moments = np.maximum(np.linalg.eigvalsh(centred.T @ centred / len(centred)), 0)
    factor = 4 if region._ndim == 2 else 2 * math.sqrt(5)
    return factor * math.sqrt(moments[-1]), factor * math.sqrt(moments[0])


def _solidity(region: Any) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a line of pixels has no hull
        hull = float(region.area_convex)
    return min(1.0, float(region.area) / hull) if hull > 0 else 1.0


def intensity_of(
    values: NDArray[Any], mask: NDArray[np.bool_], span: tuple[float, float]
) -> dict[str, float]:
    """Brightness and texture of one object in one channel, by name.

    Parameters
    ----------
    values : array
        The channel in the object's box.
    mask : array of the same shape
        The object's pixels.
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
    inside = values[mask].astype(np.float64)
    if not np.isfinite(inside).all():
        return dict.fromkeys(("mean", "std", "min", "max", "entropy", "contrast"),
                             math.nan)  # fmt: skip
    return {
        "mean": float(inside.mean()),
        "std": float(inside.std()),
        "min": float(inside.min()),
        "max": float(inside.max()),
        "entropy": _entropy(inside, span),
        "contrast": _contrast(values, mask, span),
    }


def _entropy(inside: NDArray[np.float64], span: tuple[float, float]) -> float:
    low, high = span
    scale = 32 / (high - low) if high > low else 0.0
    levels = np.minimum((inside - low) * scale, 31).astype(np.int64)
    shares = np.bincount(levels, minlength=32) / len(levels)
    shares = shares[shares > 0]
    return float(-(shares * np.log2(shares)).sum()) + 0.0


def _contrast(
    values: NDArray[Any], mask: NDArray[np.bool_], span: tuple[float, float]
) -> float:
    total, n_pairs = 0.0, 0
    values = values.astype(np.float32)
    for axis in range(values.ndim):
        near = np.moveaxis(mask, axis, 0)
        both = near[1:] & near[:-1]
        steps = np.abs(np.diff(np.moveaxis(values, axis, 0), axis=0))[both]
        total, n_pairs = total + float(steps.sum()), n_pairs + len(steps)
    low, high = span
    return total / n_pairs / (high - low) if n_pairs and high > low else 0.0
