"""Make labels of a mask."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def as_labels(pixels: Any) -> NDArray[np.integer]:
    """Return whole numbers as labels; of one value above 0, parts that do not touch."""
    from scipy import ndimage

    values = np.asarray(pixels)
    inside = values[values > 0]
    if inside.size and inside.min() < inside.max():
        return values
    return np.asarray(ndimage.label(values > 0)[0], dtype=np.int32)
