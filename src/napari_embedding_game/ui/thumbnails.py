"""Pictures of a cluster's members in a grid that fills the room it gets."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QRect, Qt
from qtpy.QtGui import QImage, QPainter, QPaintEvent
from qtpy.QtWidgets import QSizePolicy, QWidget

SMALLEST, LARGEST, GAP = 40, 72, 4


class Thumbnails(QWidget):
    """Draws as many of the pictures as there is room for."""

    def __init__(self) -> None:
        super().__init__()
        self._images: list[QImage] = []
        self.setMinimumSize(SMALLEST, SMALLEST)
        expanding = QSizePolicy.Policy.Expanding
        self.setSizePolicy(expanding, expanding)
        self.setToolTip("Members of the cluster, drawn at random.")

    def set_images(self, images: NDArray[Any]) -> None:
        """Show (m, h, w) or (m, h, w, 3) pictures, uint8 or float 0 to 1."""
        self._images = [to_qimage(image) for image in images]
        self.update()

    def n_shown(self) -> int:
        """Return how many pictures there is room for."""
        n_columns, n_rows = self._grid(self._side())
        return min(len(self._images), n_columns * n_rows)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw what is to be seen."""
        painter = QPainter(self)
        side = self._side()
        n_columns, step = self._grid(side)[0], side + GAP
        for number, image in enumerate(self._images[: self.n_shown()]):
            row, column = divmod(number, n_columns)
            place = QRect(column * step, row * step, side, side)
            painter.drawImage(_fitted(image, place), image)

    def _side(self) -> int:
        """Return the largest side at which all pictures find room."""
        for side in range(LARGEST, SMALLEST, -2):
            n_columns, n_rows = self._grid(side)
            if n_columns * n_rows >= len(self._images):
                return side
        return SMALLEST

    def _grid(self, side: int) -> tuple[int, int]:
        """Return how many columns and rows of this side there is room for."""
        n_columns = (self.width() + GAP) // (side + GAP)
        n_rows = (self.height() + GAP) // (side + GAP)
        return max(1, n_columns), max(1, n_rows)


def _fitted(image: QImage, place: QRect) -> QRect:
    size = image.size().scaled(place.size(), Qt.AspectRatioMode.KeepAspectRatio)
    fitted = QRect(place.topLeft(), size)
    fitted.moveCenter(place.center())
    return fitted


def to_qimage(image: NDArray[Any]) -> QImage:
    """Return a grey (h, w) or colour (h, w, 3) picture for Qt."""
    if image.dtype != np.uint8:
        image = (255 * np.clip(np.nan_to_num(image), 0, 1)).astype(np.uint8)
    image = np.ascontiguousarray(image)
    height, width = image.shape[:2]
    kinds = QImage.Format
    kind = kinds.Format_RGB888 if image.ndim == 3 else kinds.Format_Grayscale8
    # The copy owns its bytes; the first image only looks at the array's.
    return QImage(image.tobytes(), width, height, image.strides[0], kind).copy()
