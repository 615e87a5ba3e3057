"""Split an image into channels, each of the shape of its labels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.limits.memory import check_fits

Channels: TypeAlias = Mapping[str, NDArray[Any]]
Span: TypeAlias = tuple[float, float]
GREY, COLORS = ("intensity",), ("red", "green", "blue")


def split_into_channels(image: Any, labels_shape: tuple[int, ...]) -> list[Any]:
    """Split an image into channels of the labels' shape; [] if the shapes do not fit.

    An image of that shape is the only channel. Else the channels are the last axis, or
    if that does not fit, the first. Channels of a zarr or dask array are dask arrays,
    which read pixels only when computed.
    """
    theirs = tuple(map(int, image.shape))
    if theirs == labels_shape:
        return [image]
    if labels_shape not in (theirs[:-1], theirs[1:]):
        return []
    if not isinstance(image, np.ndarray):
        import dask.array as da

        # With name=True dask would read all pixels to compute a name.
        is_lazy = isinstance(image, da.Array)
        image = image if is_lazy else da.from_array(image, name=False)
    return list(np.moveaxis(image, -1 if theirs[:-1] == labels_shape else 0, 0))


def split_channels_by_name(
    image: Any, labels_shape: tuple[int, ...]
) -> dict[str, NDArray[Any]]:
    """Return the channels of an image by name, each of the labels' shape.

    `image` is an array, a mapping of channels, or None for no channels. A single
    channel of an array is named "intensity", others "channel 1" onwards. Three channels
    on the last axis are named red, green, blue, or are one if they are equal; a fourth
    that is constant is an alpha channel and left out.

    Raises DataError if shapes or types do not fit, or pixels exceed the memory.
    """
    if image is None:
        return {}
    if isinstance(image, Mapping):
        channels = {str(k): load_pixels(value, str(k)) for k, value in image.items()}
    else:
        channels = _name_channels(load_pixels(image, "The image"), labels_shape)
    for key, channel in channels.items():
        if channel.shape != labels_shape:
            raise DataError(
                _describe_shape_mismatch(
                    f"The channel {key}", channel.shape, labels_shape
                )
            )
        if channel.dtype.kind not in "buif":
            raise DataError(
                f"The channel {key} holds {channel.dtype} values where numbers belong."
            )
    return channels


def find_value_span(channel: NDArray[Any]) -> Span:
    """Return the lowest and the highest finite value of a channel; 0, 0 without any."""
    finite = channel[np.isfinite(channel)] if channel.dtype.kind == "f" else channel
    return (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)


def _name_channels(
    image: NDArray[Any], labels_shape: tuple[int, ...]
) -> dict[str, NDArray[Any]]:
    """Return the channels of one array by name, each of the labels' shape.

    A single channel is named "intensity", and three channels on the last axis "red",
    "green" and "blue"; else the names are "channel 1" onwards. Of four channels on the
    last axis a constant fourth one, the opacity, is dropped. Three equal channels on
    that axis are a grey picture and become one.

    Raises DataError if the shapes do not fit.
    """
    arrays = split_into_channels(image, labels_shape)
    if not arrays:
        raise DataError(
            _describe_shape_mismatch("The image", image.shape, labels_shape)
        )
    is_last = image.shape[:-1] == labels_shape
    if is_last and len(arrays) == 4 and (arrays[3] == arrays[3].flat[0]).all():
        arrays = arrays[:3]
    names: Sequence[str] = [f"channel {i + 1}" for i in range(len(arrays))]
    if is_last and len(arrays) == 3:
        names = COLORS
        if all(np.array_equal(arrays[0], other) for other in arrays[1:]):
            arrays = arrays[:1]  # the picture is grey, saved in colour
    return dict(zip(names if len(arrays) > 1 else GREY, arrays, strict=False))


def _describe_shape_mismatch(
    what: str, image_shape: tuple[int, ...], labels_shape: tuple[int, ...]
) -> str:
    """Return a sentence on an image and labels of different shapes.

    ``what``: subject of the sentence, such as "The image".
    """
    theirs, ours = (
        " x ".join(map(str, sizes)) for sizes in (image_shape, labels_shape)
    )
    return (
        f"{what} has {theirs} pixels and the labels have {ours}: choose an image and "
        "labels that belong together."
    )


def load_pixels(values: Any, what: str) -> NDArray[Any]:
    """Return numpy, dask or zarr pixels as an array in memory.

    ``what``: subject of the message. Raises DataError if twice their size exceeds the
    memory.
    """
    size = math.prod(map(int, values.shape))
    check_fits(2 * size * np.dtype(values.dtype).itemsize, what, "its pixels")
    return np.asarray(values)
