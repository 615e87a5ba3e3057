"""Segment the nuclei of the sample image."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.data.images.measure import measure_labels_in_stages
from napari_embedding_game.data.read_result import ReadResult
from napari_embedding_game.data.stages import Stage, Stages

_MIN_PIXELS = 30  # smallest area of a nucleus
_APART = 5  # smallest distance of two nuclei in pixels


def measure_nuclei_in_stages() -> Stages[ReadResult]:
    """Segment and measure the nuclei of scikit-image's immunohistochemistry picture.

    The nuclei are stained blue (haematoxylin), one protein brown (DAB).
    """
    yield Stage("Opening the picture")
    from skimage import data
    from skimage.color import rgb2hed

    image = data.immunohistochemistry()
    yield Stage("Separating the stains")
    stains = rgb2hed(image)
    yield Stage("Finding the nuclei")
    labels = segment_nuclei(stains[..., 0])
    parts = np.moveaxis(stains, -1, 0).astype(np.float32)
    channels = dict(zip(("haematoxylin", "eosin", "DAB"), parts, strict=True))
    dataset = yield from measure_labels_in_stages(channels, labels, name="nuclei")
    return ReadResult(dataset, image=image, labels=labels)


def segment_nuclei(stain: NDArray[np.float64]) -> NDArray[np.int32]:
    """Return labels of the nuclei in a stain (h, w): smoothed, thresholded and split.

    The threshold is local, and not far below Otsu's. Touching nuclei are split by the
    watershed of the distance to the background; those of fewer than 30 pixels are
    dropped. Labels count from 1.
    """
    from scipy import ndimage
    from skimage.feature import peak_local_max
    from skimage.filters import gaussian, threshold_local, threshold_otsu
    from skimage.segmentation import watershed

    smooth = gaussian(stain, 1.5)
    local = threshold_local(smooth, 101, method="gaussian")
    mask = (smooth > local) & (smooth > 0.8 * threshold_otsu(smooth))
    mask = ndimage.binary_fill_holes(ndimage.binary_opening(mask, iterations=2))
    distance = gaussian(ndimage.distance_transform_edt(mask), 1)
    middles = peak_local_max(distance, min_distance=_APART, labels=mask.astype(int))
    seeds = np.zeros(mask.shape, dtype=np.int32)
    seeds[tuple(middles.T)] = np.arange(1, len(middles) + 1)
    labels = watershed(-distance, seeds, mask=mask)
    sizes = np.bincount(labels.ravel())
    numbers = np.where(sizes >= _MIN_PIXELS, np.arange(len(sizes)), 0)
    _, compact = np.unique(numbers[labels], return_inverse=True)
    return np.asarray(compact.reshape(labels.shape), dtype=np.int32)
