"""Pictures of a selection's points in a grid, made in the background."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QSignalBlocker, QSize, Qt, Signal
from qtpy.QtGui import QIcon, QImage, QPixmap, QResizeEvent
from qtpy.QtWidgets import QListWidget, QListWidgetItem, QStyle

from napari_embedding_game.ui.style.form_widgets import icon_with_fixed_colors
from napari_embedding_game.ui.style.layouts import escape_tooltip
from napari_embedding_game.ui.tasks.worker import JobRunner

SIDE, GAP = 60, 4
"""Pixels of a picture, and between two at least."""
MIN_SMOOTHED = 40
"""Pixels: a smaller picture shows its pixels, as it would be a blur else."""
FAILED = (
    "The pictures cannot be cut out of the layers as they are now ({}): open the image "
    "and its labels again."
)
RowPictures = list[tuple[int, QImage]]
"""Rows and their pictures."""
Pictures: TypeAlias = Any
"""``pictures[row]`` is that of a row: (h, w) or (h, w, 3), uint8 or 0 to 1."""


class PictureGrid(QListWidget):
    """A grid of pictures that scrolls.

    ``on_pick`` receives the rows of the dataset whose pictures a person selected.
    """

    failed = Signal(str)
    """A sentence, once, when pictures cannot be made; their cells stay empty."""

    def __init__(self, on_pick: Callable[[NDArray[np.intp]], None]) -> None:
        super().__init__()
        self._on_pick = on_pick
        self.rows: NDArray[np.intp] = np.empty(0, np.intp)
        """Those of the dataset that are shown, in the order of their pictures."""
        self.row_name: Callable[[int], str] = str
        self.pictures: Pictures | None = None
        """What the pictures are taken from."""
        self._icons: dict[int, QIcon] = {}
        self._picture_job = JobRunner(
            self, self._show_pictures, self._on_making_failed, self._show_pictures
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
        """Spread the pictures over the width."""
        extent, bar = QStyle.PixelMetric.PM_ScrollBarExtent, self.verticalScrollBar()
        width = self.maximumViewportSize().width() - 1
        width -= self.style().pixelMetric(extent, None, bar)  # which Qt leaves free
        side = SIDE + GAP
        self.setGridSize(QSize(width // max(1, width // side), side))
        super().resizeEvent(event)

    def set_pictures(self, pictures: Pictures | None) -> None:
        """Take up other pictures and forget all that were made."""
        self.pictures = pictures
        self._icons.clear()
        self.set_rows(np.empty(0, np.intp))

    def set_rows(self, rows: NDArray[np.intp]) -> None:
        """Show the pictures of these rows as each is made."""
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
            images: RowPictures = []
            for row in lacking:
                picture = to_qimage(pictures[row])
                images.append(
                    (int(row), scale_to_square(picture, 2 * SIDE))
                )  # sharp on any
                yield images
            return images

        if pictures is not None and lacking:
            self._picture_job.submit(make)

    def indices_of_rows(self, rows: NDArray[np.integer]) -> list[int]:
        """Return where those of these rows stand that are shown, in growing order."""
        return np.flatnonzero(np.isin(self.rows, rows)).tolist()

    def select_rows(self, rows: NDArray[np.integer]) -> None:
        """Frame the pictures of these rows."""
        chosen = [self.item(index) for index in self.indices_of_rows(rows)]
        with QSignalBlocker(self):
            self.clearSelection()
            for item in chosen:
                item.setSelected(True)
        if chosen:
            self.executeDelayedItemsLayout()
            self.scrollToItem(chosen[0])

    def _show_pictures(self, pictures: RowPictures) -> None:
        """Show what has been made by now."""
        new = {row: image for row, image in pictures[:] if row not in self._icons}
        for row, image in new.items():
            self._icons[row] = icon_with_fixed_colors(QPixmap.fromImage(image))
        for index in self.indices_of_rows(np.array([*new], np.intp)):
            self.item(index).setIcon(self._icons[int(self.rows[index])])

    def _on_making_failed(self, error: BaseException) -> None:
        self.pictures = None
        self.failed.emit(pictures_failure_text(error))

    def _on_item_selection_changed(self) -> None:
        indices = [index.row() for index in self.selectedIndexes()]
        self._on_pick(self.rows[indices])


def pictures_failure_text(error: BaseException) -> str:
    """Return a sentence on pictures that cannot be made."""
    text = " ".join(str(error).split())[:200]
    return FAILED.format(f"{type(error).__name__}: {text}")


def scale_to_square(image: QImage, side: int) -> QImage:
    """Return a picture that just fits into a square of so many pixels."""
    modes, size = Qt.TransformationMode, max(image.width(), image.height())
    is_fast = size < MIN_SMOOTHED
    mode = modes.FastTransformation if is_fast else modes.SmoothTransformation
    return image.scaled(side, side, Qt.AspectRatioMode.KeepAspectRatio, mode)


def to_qimage(image: NDArray[Any]) -> QImage:
    """Return a grey (h, w) or colour (h, w, 3) picture for Qt."""
    if image.dtype != np.uint8:
        image = (255 * np.clip(np.nan_to_num(image), 0, 1)).astype(np.uint8)
    image = np.ascontiguousarray(image)
    size, kinds = image.shape[1::-1], QImage.Format
    kind = kinds.Format_RGB888 if image.ndim == 3 else kinds.Format_Grayscale8
    # The copy owns its bytes; the first image only looks at the array's.
    return QImage(image.tobytes(), *size, image.strides[0], kind).copy()
