"""A grid of pictures of rows, which are made in another thread."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QSignalBlocker, QSize, Qt, Signal
from qtpy.QtGui import QIcon, QImage, QPixmap, QResizeEvent
from qtpy.QtWidgets import QListWidget, QListWidgetItem, QStyle

from napari_embedding_game.ui.style.form_widgets import make_icon_with_fixed_colors
from napari_embedding_game.ui.style.layouts import escape_tooltip
from napari_embedding_game.ui.tasks.worker import JobRunner

SIDE, GAP = 60, 4
"""Side of a picture, and least gap between pictures, in pixels."""
MIN_SMOOTHED = 40
"""Longest side from which on a picture is smoothed: a smaller picture would blur."""
FAILED = (
    "The pictures cannot be cropped from the layers as they are now ({}). Open the "
    "image and its labels again."
)
RowPictures = list[tuple[int, QImage]]
"""Pairs of a row and its picture."""
Pictures: TypeAlias = Any
"""``pictures[row]`` is the picture of a row: (h, w) or (h, w, 3), uint8 or 0 to 1."""


class PictureGrid(QListWidget):
    """A scrolled grid of the pictures of rows.

    ``on_pick`` is called with the rows whose pictures a person selected.
    """

    failed = Signal(str)
    """A sentence, emitted once, on why pictures cannot be made."""

    def __init__(self, on_pick: Callable[[NDArray[np.intp]], None]) -> None:
        super().__init__()
        self._on_pick = on_pick
        self.rows: NDArray[np.intp] = np.empty(0, np.intp)
        """The rows of the dataset that are shown, in the order of their pictures."""
        self.row_name: Callable[[int], str] = str
        """Returns the tooltip of a row's picture."""
        self.pictures: Pictures | None = None
        """The source of the pictures; None without any."""
        self._icons: dict[int, QIcon] = {}
        self._picture_job = JobRunner(
            self, self._set_new_pictures, self._on_making_failed, self._set_new_pictures
        )
        self.setIconSize(QSize(SIDE, SIDE))
        self.setViewMode(QListWidget.ViewMode.IconMode)
        self.setMovement(QListWidget.Movement.Static)
        self.setResizeMode(QListWidget.ResizeMode.Adjust)
        self.setUniformItemSizes(True)
        self.setSelectionMode(QListWidget.SelectionMode.ExtendedSelection)
        self.setVerticalScrollMode(QListWidget.ScrollMode.ScrollPerPixel)
        self.setFrameShape(QListWidget.Shape.NoFrame)
        self.itemSelectionChanged.connect(self._on_item_selection_changed)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Spread the columns of pictures evenly over the width."""
        extent, bar = QStyle.PixelMetric.PM_ScrollBarExtent, self.verticalScrollBar()
        width = self.maximumViewportSize().width() - 1
        width -= self.style().pixelMetric(
            extent, None, bar
        )  # Qt leaves the bar's room free
        side = SIDE + GAP
        self.setGridSize(QSize(width // max(1, width // side), side))
        super().resizeEvent(event)

    def set_pictures(self, pictures: Pictures | None) -> None:
        """Replace the source of pictures, forget made pictures, and clear the grid."""
        self.pictures = pictures
        self._icons.clear()
        self.set_rows(np.empty(0, np.intp))

    def set_rows(self, rows: NDArray[np.intp]) -> None:
        """Show the pictures of rows, each as soon as another thread has made it.

        The same rows in the same order change nothing.  Other rows stop the job that
        makes pictures, and clear the selection without a signal.
        """
        if np.array_equal(rows, self.rows):
            return
        self._picture_job.stop()
        self.rows = rows
        with QSignalBlocker(self):
            self.clear()
        for row in rows.tolist():
            item = QListWidgetItem(self._icons.get(row, QIcon()), "", self)
            item.setSizeHint(QSize(SIDE + GAP, SIDE + GAP))
            item.setToolTip(escape_tooltip(self.row_name(row)))
        pictures, lacking = self.pictures, [r for r in rows if r not in self._icons]

        def make() -> Generator[RowPictures, None, RowPictures]:
            """Yield the same growing list after each picture, and return it."""
            images: RowPictures = []
            for row in lacking:
                picture = to_qimage(pictures[row])
                images.append(
                    (int(row), fit_into_square(picture, 2 * SIDE))
                )  # sharp on any
                yield images
            return images

        if pictures is not None and lacking:
            self._picture_job.submit(make)

    def find_indices_of_rows(self, rows: NDArray[np.integer]) -> list[int]:
        """Return the ascending positions in the grid that show any of ``rows``."""
        return np.flatnonzero(np.isin(self.rows, rows)).tolist()

    def select_rows(self, rows: NDArray[np.integer]) -> None:
        """Select the pictures of rows without a signal, and scroll to the first.

        Rows without a picture in the grid are ignored.
        """
        chosen = [self.item(index) for index in self.find_indices_of_rows(rows)]
        with QSignalBlocker(self):
            self.clearSelection()
            for item in chosen:
                item.setSelected(True)
        if chosen:
            self.executeDelayedItemsLayout()
            self.scrollToItem(chosen[0])

    def _set_new_pictures(self, pictures: RowPictures) -> None:
        """Keep and show the pictures that were made so far."""
        new = {row: image for row, image in pictures[:] if row not in self._icons}
        for row, image in new.items():
            self._icons[row] = make_icon_with_fixed_colors(QPixmap.fromImage(image))
        for index in self.find_indices_of_rows(np.array([*new], np.intp)):
            self.item(index).setIcon(self._icons[int(self.rows[index])])

    def _on_making_failed(self, error: BaseException) -> None:
        """Drop the source of pictures, and report the error."""
        self.pictures = None
        self.failed.emit(describe_pictures_failure(error))

    def _on_item_selection_changed(self) -> None:
        """Call ``on_pick`` with the rows of the selected pictures."""
        indices = [index.row() for index in self.selectedIndexes()]
        self._on_pick(self.rows[indices])


def describe_pictures_failure(error: BaseException) -> str:
    """Return sentences with an error's type and first 200 letters, and what to do."""
    text = " ".join(str(error).split())[:200]
    return FAILED.format(f"{type(error).__name__}: {text}")


def fit_into_square(image: QImage, side: int) -> QImage:
    """Return a picture scaled up or down to fit into a square of ``side`` pixels.

    Its proportions stay.  A picture whose longer side is below ``MIN_SMOOTHED`` pixels
    is not smoothed.
    """
    modes, size = Qt.TransformationMode, max(image.width(), image.height())
    is_fast = size < MIN_SMOOTHED
    mode = modes.FastTransformation if is_fast else modes.SmoothTransformation
    return image.scaled(side, side, Qt.AspectRatioMode.KeepAspectRatio, mode)


def to_qimage(image: NDArray[Any]) -> QImage:
    """Convert a grey (h, w) or colour (h, w, 3) picture to an image of Qt.

    The picture is uint8, or has numbers from 0 to 1: others are clipped, NaN is black.
    """
    if image.dtype != np.uint8:
        image = (255 * np.clip(np.nan_to_num(image), 0, 1)).astype(np.uint8)
    image = np.ascontiguousarray(image)
    size, kinds = image.shape[1::-1], QImage.Format
    kind = kinds.Format_RGB888 if image.ndim == 3 else kinds.Format_Grayscale8
    # The copy owns its bytes; the first image only refers to the array's.
    return QImage(image.tobytes(), *size, image.strides[0], kind).copy()
