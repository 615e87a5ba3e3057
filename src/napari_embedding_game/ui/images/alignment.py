"""Check whether an image layer has the pixels of a Labels layer, and propose images."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from napari.layers import Image, Labels, Layer
from numpy.typing import NDArray

from napari_embedding_game.ui.images.linked_layers import finest_pixels

_APART = 0.05
"""Pixels by which two layers that fit may differ over their length."""
_ADDED_UP = ("additive", "minimum", "multiplicative")
"""Blendings of layers that are channels of the same picture."""
_NOT_A_NAME = re.compile(
    r"labels?|masks?|segmentation|segmented|seg|cp|objects?|cyto\d*|stardist"
    r"|cellpose|image|img|\.[a-z]+$",
    re.IGNORECASE,
)


def misfit_reason(image: Image, labels: Labels) -> str:
    """Return why objects of labels cannot be measured in an image; "" if they can.

    Shape and transforms of the image must be those of the labels, up to ``_APART``
    pixels, and apart from a first or last axis of channels.  Compatible units are
    converted.  The text continues a sentence that begins with the image's name.
    """
    ours = np.array(finest_pixels(labels).shape)
    n, name = len(ours), labels.name
    theirs, (matrix, origin) = (
        np.array(finest_pixels(image).shape),
        compute_world_matrix_and_origin(image),
    )
    theirs, units = theirs[:-1] if image.rgb else theirs, image.units
    if len(theirs) == n + 1 and not image.rgb:
        # Channels are the last axis, which napari takes for a usual axis, or the first.
        part = slice(0, n) if (theirs[:-1] == ours).all() else slice(1, n + 1)
        theirs, matrix, origin = theirs[part], matrix[part, part], origin[part]
        units = units[part]
    if len(theirs) != n:
        return f"has {len(theirs)} axes, and '{name}' has {n}"
    if (theirs != ours).any():
        sizes = tuple(" × ".join(map(str, shape)) for shape in (theirs, ours))
        return f"has {sizes[0]} pixels, and '{name}' has {sizes[1]}"
    our_matrix, our_origin = compute_world_matrix_and_origin(labels)
    pairs = zip(units, labels.units, strict=True)  # a pixel has any length
    lengths = [(1 * u).to(v).m if u.is_compatible_with(v) else 1 for u, v in pairs]
    matrix, origin = np.diag(lengths) @ matrix, lengths * origin
    shift = np.linalg.solve(matrix, our_origin - origin)
    mapping = np.linalg.solve(matrix, our_matrix)
    if (np.abs(mapping - np.eye(n)) * ours > _APART).any():
        sizes = _format_lengths(np.diag(matrix)), _format_lengths(np.diag(our_matrix))
        return (
            f"has a pixel size of {sizes[0]}, and '{name}' of {sizes[1]}, with as many "
            "pixels: give both layers the same scale and rotation"
        )
    if (np.abs(shift) > _APART).any():
        return f"lies elsewhere than '{name}': give both layers the same translation"
    return ""


def propose_measurement_images(
    labels: Labels, images: Sequence[Image], selected: Sequence[Layer] = ()
) -> list[Image]:
    """Return the images to measure objects in by default.

    Only images that fit the labels are proposed, by the first rule that holds:

    1. images that are selected together with the labels
    2. the only image that fits
    3. images whose names contain the words of the labels' name
    4. images of the labels' file
    5. all images, if their blending shows that they are channels of one picture
    6. selected images

    Of several images that may be different fields of view none is proposed.
    """
    same = [image for image in images if not misfit_reason(image, labels)]
    chosen = [image for image in same if image in selected]
    if chosen and labels in selected:
        return chosen
    words, path = _split_name_into_words(labels.name), labels.source.path
    called = [x for x in same if words and words <= _split_name_into_words(x.name)]
    related = called or [x for x in same if path and x.source.path == path]
    # napari blends all channels of a picture but the first additively.
    if len(same) < 2 or (
        not related and all(image.blending in _ADDED_UP for image in same[1:])
    ):
        return same
    return related or chosen


def pixel_size(labels: Labels) -> tuple[float, ...]:
    """Return the length of a pixel along each axis of a layer, in world units.

    It is rounded to 7 digits, since positions far from the origin have fewer exact
    digits.
    """
    matrix, _ = compute_world_matrix_and_origin(labels)
    return tuple(float(f"{x:.7g}") for x in np.linalg.norm(matrix, axis=0))


def is_sheared(labels: Labels) -> bool:
    """Return whether a layer's transform shears its pixels noticeably."""
    matrix, _ = compute_world_matrix_and_origin(labels)
    lengths = np.linalg.norm(matrix, axis=0)
    return bool(abs(np.linalg.det(matrix)) < 0.999 * lengths.prod())


def _split_name_into_words(name: str) -> set[str]:
    """Return the lower-case words and the numbers of a layer's name.

    Words such as "labels" or "image", and the ending of a file, are left out.
    """
    return set(re.findall(r"[a-z]+|\d+", _NOT_A_NAME.sub(" ", name.lower())))


def compute_world_matrix_and_origin(
    layer: Layer,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return matrix (n, n) and origin (n,) from a layer's pixels to the world."""
    n = layer.ndim
    origin = np.asarray(layer.data_to_world(np.zeros(n)), dtype=float)
    ends = [np.asarray(layer.data_to_world(one), dtype=float) for one in np.eye(n)]
    return np.array([end - origin for end in ends]).T, origin


def _format_lengths(values: NDArray[np.float64]) -> str:
    """Return lengths as a text such as "(2, 0.5, 0.5)"; equal lengths as a number."""
    rounded = [f"{value:.3g}" for value in (values + 0.0).tolist()]
    return rounded[0] if len(set(rounded)) == 1 else f"({', '.join(rounded)})"
