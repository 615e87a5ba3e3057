"""Grid of pictures of a cluster's points, made when they scroll into view."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import (
    QItemSelection,
    QItemSelectionModel,
    QModelIndex,
    QObject,
    QRect,
    QSize,
    QStringListModel,
    Qt,
    QTimer,
    Signal,
)
from qtpy.QtGui import QColor, QImage, QPainter, QPen
from qtpy.QtWidgets import (
    QListView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
)

from napari_embedding_game.ui.tasks.worker import Latest

SIDE, GAP = 60, 4
BATCH = 48
"""Pictures made by the worker at a time."""
KEPT = 2000
LAID_OUT = 5000
"""Cells placed at a time; the rest follows while the window is idle."""
FAILED = (
    "The pictures cannot be cut out of the layers as they are now ({}): open the image "
    "and its labels again."
)
PICTURE_ROLE = int(Qt.ItemDataRole.UserRole)


class Pictures(Protocol):
    """A picture for each row of a dataset: (h, w) or (h, w, 3), uint8 or 0 to 1."""

    def __getitem__(self, row: int) -> NDArray[Any]:
        """Return the picture of one row."""
        ...


class PictureModel(QStringListModel):
    """The pictures of some rows; those asked for are made in the background.

    The last that were asked for are made first: they are in view.  A model of empty
    strings, as a list asks for the number of rows several times a row.
    """

    failed = Signal(str)
    """A sentence, once, when pictures cannot be made; their cells stay empty."""

    def __init__(self, owner: QObject) -> None:
        super().__init__(owner)
        self.rows: NDArray[np.intp] = np.empty(0, np.intp)
        self.row_name: Callable[[int], str] = str
        self._pictures: Pictures | None = None
        self._made: OrderedDict[int, QImage] = OrderedDict()
        self._wanted: list[int] = []
        self._making = Latest(self, self._on_made, self._on_failed)
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.timeout.connect(self._make)

    @property
    def pictures(self) -> Pictures | None:
        """What the pictures are taken from."""
        return self._pictures

    @property
    def has_pictures(self) -> bool:
        """Whether rows have a picture."""
        return self._pictures is not None

    def set_pictures(self, pictures: Pictures | None) -> None:
        """Take up other pictures and forget all that were made."""
        self._soon.stop()
        self._wanted.clear()
        self._making.stop()
        self._pictures = pictures
        self._made.clear()
        self.set_rows(np.empty(0, np.intp))

    def set_rows(self, rows: NDArray[np.intp]) -> None:
        """Show these rows of the dataset."""
        if np.array_equal(rows, self.rows):
            return
        self.rows = rows
        self._wanted.clear()
        self.setStringList([""] * len(rows))

    def places(self, rows: NDArray[np.integer]) -> list[int]:
        """Return where those of these rows stand that are shown, in growing order."""
        return np.flatnonzero(np.isin(self.rows, rows)).tolist()

    def data(
        self, index: QModelIndex, role: int = Qt.ItemDataRole.DisplayRole
    ) -> object:
        """Return a picture, None while it is being made; the name as tooltip."""
        row = int(self.rows[index.row()])
        if role == Qt.ItemDataRole.ToolTipRole:
            return self.row_name(row)
        if role != PICTURE_ROLE:
            return None
        if row in self._made:
            self._made.move_to_end(row)
            return self._made[row]
        if isinstance(self._pictures, np.ndarray):
            self._keep(row, self._pictures[row])
            return self._made[row]
        self._wanted.append(row)
        if not self._making.is_busy:
            self._soon.start(0)
        return None

    def _make(self) -> None:
        pictures = self._pictures
        asked = list(dict.fromkeys(reversed(self._wanted)))
        batch = asked[:BATCH]
        self._wanted.clear()
        if not batch or pictures is None:
            return
        self._making.ask(lambda: ([(row, pictures[row]) for row in batch], asked))

    def _on_made(self, found: tuple[list[tuple[int, NDArray[Any]]], list[int]]) -> None:
        made, asked = found
        for row, picture in made:
            self._keep(row, picture)
        places = self.places(np.array(asked))
        if places:
            # Those that are in view and were not in the batch are asked for again.
            self.dataChanged.emit(self.index(places[0]), self.index(places[-1]))
        if self._wanted:  # while these were made
            self._soon.start(0)

    def _on_failed(self, error: BaseException) -> None:
        self._pictures = None
        text = " ".join(str(error).split())[:200]
        self.failed.emit(FAILED.format(f"{type(error).__name__}: {text}"))

    def _keep(self, row: int, picture: NDArray[Any]) -> None:
        self._made[row] = to_qimage(picture)
        if len(self._made) > KEPT:
            self._made.popitem(last=False)


class PictureDelegate(QStyledItemDelegate):
    """Draws a picture, with a frame where it is selected."""

    frame = QColor("#6ea8ff")
    empty = QColor("#808080")

    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex) -> QSize:
        """Return the size of a cell."""
        return QSize(SIDE + GAP, SIDE + GAP)

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex
    ) -> None:
        """Draw one cell."""
        half = GAP // 2
        place = option.rect.adjusted(half, half, -half, -half)
        image = index.data(PICTURE_ROLE)
        if image is None:
            faint = QColor(self.empty)
            faint.setAlpha(40)
            painter.fillRect(place, faint)
        else:
            painter.drawImage(_fitted(image, place), image)
        if option.state & QStyle.StateFlag.State_Selected:
            painter.setPen(QPen(self.frame, 3))
            painter.drawRect(place.adjusted(1, 1, -2, -2))


class PictureGrid(QListView):
    """A grid of pictures that scrolls.

    Parameters
    ----------
    on_pick : callable
        Receives the rows of the dataset whose pictures a person selected.
    """

    def __init__(self, on_pick: Callable[[NDArray[np.intp]], None]) -> None:
        super().__init__()
        self._on_pick = on_pick
        self._following = False
        self.pictures = PictureModel(self)
        self.setModel(self.pictures)
        self.setEditTriggers(QListView.EditTrigger.NoEditTriggers)
        self.setItemDelegate(PictureDelegate(self))
        self.setViewMode(QListView.ViewMode.IconMode)
        self.setMovement(QListView.Movement.Static)
        self.setResizeMode(QListView.ResizeMode.Adjust)
        self.setUniformItemSizes(True)
        self.setLayoutMode(QListView.LayoutMode.Batched)
        self.setBatchSize(LAID_OUT)
        self.setSelectionMode(QListView.SelectionMode.ExtendedSelection)
        self.setVerticalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        self.setFrameShape(QListView.Shape.NoFrame)
        self.selectionModel().selectionChanged.connect(self._on_selected)

    def set_rows(self, rows: NDArray[np.intp]) -> None:
        """Show the pictures of these rows."""
        self._following = True
        self.pictures.set_rows(rows)
        self._following = False

    def follow(self, rows: NDArray[np.integer]) -> None:
        """Frame the pictures of these rows."""
        self._following = True
        wanted = QItemSelection()
        for place in self.pictures.places(rows):
            index = self.pictures.index(place)
            wanted.select(index, index)
        flags = QItemSelectionModel.SelectionFlag
        self.selectionModel().select(wanted, flags.ClearAndSelect)
        if wanted.indexes():
            self.executeDelayedItemsLayout()
            self.scrollTo(wanted.indexes()[0])
        self._following = False

    def _on_selected(self) -> None:
        if not self._following:
            places = [index.row() for index in self.selectedIndexes()]
            self._on_pick(self.pictures.rows[places])


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
