"""Align an image layer with a Labels layer, and read its pixels on that grid."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from napari.layers import Image, Labels, Layer
from numpy.typing import NDArray

from napari_embedding_game.data.images.channels import resampled
from napari_embedding_game.ui.images.linked_layers import finest

_APART = 0.05
"""Pixels by which two layers may differ over their whole length and be the same."""
_MOSTLY = 0.5
"""Share of the labels that a shifted image has to cover to be proposed."""
_ADDED_UP = ("additive", "minimum", "multiplicative")
"""Blending of layers that are the channels of one picture."""
_NOT_A_NAME = re.compile(
    r"labels?|masks?|segmentation|segmented|seg|cp|objects?|cyto\d*|stardist"
    r"|cellpose|image|img|\.[a-z]+$",
    re.IGNORECASE,
)


@dataclass(frozen=True, eq=False)
class Fit:
    """How an image lies on a label image."""

    reason: str = ""
    """Why nothing can be measured in it; "" where something can."""
    note: str = ""
    """How it is read where its pixels are not those of the labels."""
    scale: tuple[float, ...] | None = None
    """With ``offset``: pixel i of the labels is pixel ``offset + scale * i`` of the
    image, along each axis; None where the pixels are the same."""
    offset: tuple[float, ...] = ()
    coverage: float = 1.0
    """Share of the labels' pixels that the image has a value for."""


def fit_of(image: Image, labels: Labels) -> Fit:
    """Return how an image lies on labels, by the transforms of both layers."""
    ours = np.array(finest(labels).shape)
    n, name = len(ours), labels.name
    theirs, (matrix, origin) = _sizes(image), _to_world(image)
    if len(theirs) == n + 1 and not image.rgb:
        # Channels are last, where napari takes them for one more axis, or first.
        is_last = (theirs[:-1] == ours).all() and (theirs[1:] != ours).any()
        part = slice(0, n) if is_last else slice(1, n + 1)
        theirs, matrix, origin = theirs[part], matrix[part, part], origin[part]
    if len(theirs) != n:
        return Fit(f"has {len(theirs)} axes, and '{name}' has {n}")
    our_matrix, our_origin = _to_world(labels)
    shift = np.linalg.solve(matrix, our_origin - origin)
    mapping = np.linalg.solve(matrix, our_matrix)
    scale = np.diag(mapping)
    if (np.abs(mapping - np.diag(scale)) * ours > _APART).any() or (scale <= 0).any():
        return Fit(f"is rotated or sheared against '{name}'")
    has_scale = (np.abs(scale - 1) * ours > _APART).any()
    is_as_large = (theirs == ours).all()
    if has_scale and is_as_large:
        sizes = _numbers(np.diag(matrix)), _numbers(np.diag(our_matrix))
        return Fit(
            f"has a pixel size of {sizes[0]}, and '{name}' of {sizes[1]}, with as many "
            "pixels: give both layers the same scale"
        )
    if not has_scale and not (np.abs(shift) > _APART).any():
        if is_as_large:
            return Fit()
        sizes = tuple(" × ".join(map(str, shape)) for shape in (theirs, ours))
        return Fit(f"has {sizes[0]} pixels, and '{name}' has {sizes[1]}")
    coverage = 1.0
    for step, first, n_ours, n_theirs in zip(scale, shift, ours, theirs, strict=True):
        along = first + step * np.arange(n_ours)
        coverage *= float(((along >= -0.5) & (along <= n_theirs - 0.5)).mean())
    if not coverage:
        return Fit(f"lies elsewhere than '{name}'")
    note = f"shifted by {_numbers(-shift / scale)} pixels, read where it lies"
    if has_scale:
        note = (
            f"of {_numbers(scale)} pixels for one of '{name}', measured where it lies"
        )
    if coverage < 1 - 1e-9:
        note += f"; covers {coverage:.0%} of '{name}'"
    return Fit("", note, tuple(scale.tolist()), tuple(shift.tolist()), coverage)


def pixels_on(image: Image, labels: Labels) -> Any:
    """Return the pixels of an image on those of labels, NaN where it has none.

    It has to fit; what has to be interpolated is computed once it is read.
    """
    import dask
    import dask.array

    fit, pixels, shape = fit_of(image, labels), finest(image), finest(labels).shape
    if fit.scale is None:
        return pixels
    axis = -1 if image.rgb else 0 if len(pixels.shape) > len(shape) else None
    more = () if axis is None else (pixels.shape[axis],)
    whole = (*shape, *more) if image.rgb else (*more, *shape)
    later = dask.delayed(resampled)(pixels, shape, fit.scale, fit.offset, axis)
    return dask.array.from_delayed(later, whole, np.float64)


def proposed(
    labels: Labels, images: Sequence[Image], selected: Sequence[Layer] = ()
) -> list[Image]:
    """Return the images in which objects are to be measured if nobody chooses.

    Those selected together with the labels; else the only image that fits; else
    those called as the labels are, or of their file; else all that are shown as
    channels of one picture; else the selected ones.  Of several images that may as
    well be several fields of view, none.
    """
    fits = {image: fit_of(image, labels) for image in images}
    usable = [image for image in images if not fits[image].reason]
    chosen = [image for image in usable if image in selected]
    if chosen and labels in selected:
        return chosen
    same = [x for x in usable if fits[x].scale is None]
    same = same or [x for x in usable if fits[x].coverage >= _MOSTLY]
    if len(same) < 2:
        return same
    words, path = _words(labels.name), labels.source.path
    related = [
        x
        for x in same
        if (words and words <= _words(x.name)) or (path and x.source.path == path)
    ]
    # napari shows the first channel of a picture as any image, the others added up.
    if not related and all(image.blending in _ADDED_UP for image in same[1:]):
        return same
    return related or [image for image in chosen if image in same]


def pixel_size(labels: Labels) -> tuple[float, ...]:
    """Return the length of a pixel along each axis of a layer, in the world."""
    matrix, _ = _to_world(labels)
    return tuple(np.linalg.norm(matrix, axis=0).tolist())


def _words(name: str) -> set[str]:
    """Return words and numbers of a name, without those that say what it is."""
    return set(re.findall(r"[a-z]+|\d+", _NOT_A_NAME.sub(" ", name.lower())))


def _sizes(image: Image) -> NDArray[np.int_]:
    shape = finest(image).shape
    return np.array(shape[:-1] if image.rgb else shape)


def _to_world(layer: Layer) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return matrix and origin that bring the layer's pixels into the world."""
    n = layer.ndim
    origin = np.asarray(layer.data_to_world(np.zeros(n)), dtype=float)
    ends = [np.asarray(layer.data_to_world(one), dtype=float) for one in np.eye(n)]
    return np.array([end - origin for end in ends]).T, origin


def _numbers(values: NDArray[np.float64]) -> str:
    rounded = [f"{value:.3g}" for value in (values + 0.0).tolist()]
    return rounded[0] if len(set(rounded)) == 1 else f"({', '.join(rounded)})"
