"""Align an image layer with a Labels layer, and read its pixels on that grid."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from napari.layers import Image, Labels, Layer
from numpy.typing import NDArray

from napari_embedding_game.data.images.resampled import PlacedImage
from napari_embedding_game.data.label_objects import channel_axis
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
_WORD = re.compile(r"[a-z]+|\d+")


@dataclass(frozen=True, eq=False)
class Fit:
    """How an image lies on a label image."""

    reason: str = ""
    """Why nothing can be measured in it; "" where something can."""
    note: str = ""
    """How it is read where its pixels are not those of the labels."""
    scale: tuple[float, ...] | None = None
    """With ``offset``, as for ``PlacedImage``; None where the pixels are the same."""
    offset: tuple[float, ...] = ()
    coverage: float = 1.0
    """Share of the labels' pixels that the image has a value for."""

    @property
    def is_same(self) -> bool:
        """Whether the image has the labels' own pixels."""
        return not self.reason and self.scale is None


def fit_of(image: Image, labels: Labels) -> Fit:
    """Return how an image lies on labels, by the transforms of both layers."""
    theirs, ours = _sizes(image), tuple(finest(labels).shape)
    n = len(ours)
    if not image.rgb and theirs[:-1] == ours and theirs[1:] != ours:
        return _fit_with_channels_last(image, labels)
    if len(theirs) not in (n, n + 1):
        return Fit(f"has {len(theirs)} axes, and '{labels.name}' has {n}")
    theirs = theirs[-n:]
    image_matrix, image_origin = _to_world(image)
    matrix, origin = _to_world(labels)
    image_matrix, image_origin = image_matrix[-n:, -n:], image_origin[-n:]
    shifted = np.linalg.solve(image_matrix, origin - image_origin)
    mapping = np.linalg.solve(image_matrix, matrix)
    scale = np.diag(mapping)
    if (np.abs(mapping - np.diag(scale)) * np.array(ours) > _APART).any():
        return Fit(f"is rotated or sheared against '{labels.name}'")
    has_scale = (np.abs(scale - 1) * np.array(ours) > _APART).any()
    has_shift = (np.abs(shifted) > _APART).any()
    if theirs == ours and has_scale:
        sizes = _numbers(np.diag(image_matrix)), _numbers(np.diag(matrix))
        return Fit(
            f"has a pixel size of {sizes[0]}, and '{labels.name}' of {sizes[1]}, with "
            "as many pixels: give both layers the same scale"
        )
    if not has_scale and not has_shift:
        if theirs == ours:
            return Fit()
        return Fit(
            f"has {_times(theirs)} pixels, and '{labels.name}' has {_times(ours)}"
        )
    return _placed(labels, theirs, ours, scale, shifted, has_scale)


def _placed(
    labels: Labels,
    theirs: tuple[int, ...],
    ours: tuple[int, ...],
    scale: NDArray[np.float64],
    shifted: NDArray[np.float64],
    has_scale: bool,
) -> Fit:
    coverage = 1.0
    for axis, n in enumerate(ours):
        places = shifted[axis] + scale[axis] * np.arange(n)
        inside = (places >= -0.5) & (places <= theirs[axis] - 0.5)
        coverage *= float(inside.mean())
    if not coverage:
        return Fit(f"lies elsewhere than '{labels.name}'")
    how = f"shifted by {_numbers(-shifted / scale)} pixels"
    if has_scale:
        how = f"of {_numbers(scale)} pixels for one of '{labels.name}'"
    note = f"{how}, measured where it lies"
    if coverage < 1 - 1e-9:
        note += f"; covers {coverage:.0%} of '{labels.name}'"
    return Fit("", note, tuple(scale.tolist()), tuple(shifted.tolist()), coverage)


def _fit_with_channels_last(image: Image, labels: Labels) -> Fit:
    """Return the fit of an image whose last axis napari takes for one of places."""
    matrix, origin = _to_world(image)
    ours, our_origin = _to_world(labels)
    same = np.allclose(matrix[:-1, :-1], ours) and np.allclose(origin[:-1], our_origin)
    return Fit() if same else Fit(f"lies elsewhere than '{labels.name}'")


def pixels_on(image: Image, labels: Labels, fill: float = np.nan) -> Any:
    """Return the pixels of an image on those of labels; it has to fit.

    `fill` stands where the image has none, as for
    :class:`~napari_embedding_game.data.images.resampled.PlacedImage`.
    """
    fit, pixels = fit_of(image, labels), finest(image)
    if fit.scale is None:
        return pixels
    shape = tuple(finest(labels).shape)
    more = len(pixels.shape) > len(shape)
    channels = None if not more else -1 if image.rgb else 0
    return PlacedImage(pixels, shape, fit.scale, fit.offset, channels, fill)


def proposed(
    labels: Labels, images: Sequence[Image], selected: Sequence[Layer] = ()
) -> list[Image]:
    """Return the images in which objects are to be measured if nobody chooses.

    Those selected together with the labels; else the only image that fits; else
    those called as the labels are, or of their file; else all that are shown as
    channels of one picture; else the selected ones.  Of several images that may as
    well be several fields of view, none.
    """
    fits = {id(image): fit_of(image, labels) for image in images}
    usable = [image for image in images if not fits[id(image)].reason]
    chosen = [image for image in usable if image in selected]
    if chosen and labels in selected:
        return chosen
    same = [image for image in usable if fits[id(image)].is_same]
    if not same:
        same = [x for x in usable if fits[id(x)].coverage >= _MOSTLY]
    if len(same) < 2:
        return same
    related = [image for image in same if _belongs(image, labels)]
    if related:
        return related
    # napari shows the first channel of a picture as any image, the others added up.
    if all(image.blending in _ADDED_UP for image in same[1:]):
        return same
    return [image for image in chosen if image in same]


def n_channels(image: Image, labels: Labels) -> int:
    """Return how many channels of an image are measured."""
    if image.rgb:
        return 3
    ours, shape = tuple(finest(labels).shape), _sizes(image)
    if len(shape) == len(ours):
        return 1
    axis = channel_axis(shape, ours)
    return int(shape[0 if axis is None else axis])


def pixel_size(labels: Labels) -> tuple[float, ...]:
    """Return the length of a pixel along each axis of a layer, in the world."""
    matrix, _ = _to_world(labels)
    return tuple(np.linalg.norm(matrix, axis=0).tolist())


def _belongs(image: Image, labels: Labels) -> bool:
    """Return whether name or file say that an image is that of the labels."""
    path = image.source.path
    if path and path == labels.source.path:
        return True
    theirs, ours = _words(image.name), _words(labels.name)
    return bool(ours) and ours <= theirs


def _words(name: str) -> set[str]:
    """Return words and numbers of a name, without those that say what it is."""
    return set(_WORD.findall(_NOT_A_NAME.sub(" ", name.lower())))


def _sizes(image: Image) -> tuple[int, ...]:
    shape = tuple(int(n) for n in finest(image).shape)
    return shape[:-1] if image.rgb else shape


def _to_world(layer: Layer) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return matrix and origin that bring the layer's pixels into the world."""
    n = layer.ndim
    origin = np.asarray(layer.data_to_world(np.zeros(n)), dtype=float)
    ends = [np.asarray(layer.data_to_world(one), dtype=float) for one in np.eye(n)]
    return np.array([end - origin for end in ends]).T, origin


def _numbers(values: NDArray[np.float64]) -> str:
    rounded = [f"{value:.3g}" for value in (values + 0.0).tolist()]
    return rounded[0] if len(set(rounded)) == 1 else f"({', '.join(rounded)})"


def _times(shape: tuple[int, ...]) -> str:
    return " × ".join(map(str, shape))
