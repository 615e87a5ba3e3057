"""Points as pictures, texts or names, to be picked."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import (
    QItemSelection,
    QItemSelectionModel,
    QModelIndex,
    QObject,
    QRect,
    QSize,
    Qt,
    Signal,
)
from qtpy.QtGui import QColor, QKeyEvent, QPainter
from qtpy.QtWidgets import QListView, QStyle, QStyleOptionViewItem

from napari_embedding_game.ui.images.picture_grid import (
    GAP,
    PICTURE_ROLE,
    PictureDelegate,
    PictureModel,
    Pictures,
)

MARK_ROLE = PICTURE_ROLE + 1
TEXT_LENGTH = 120
MARK_SIDE = 15
PADDING = 3


@dataclass(frozen=True)
class Mark:
    """Says which box a point is in."""

    text: str
    color: QColor


class ExampleModel(PictureModel):
    """The pictures of some rows, or their texts where they have none."""

    def __init__(self, owner: QObject) -> None:
        super().__init__(owner)
        self.text: Callable[[int], str] = str
        self._marks: Mapping[int, Mark] = {}

    def set_marks(self, marks: Mapping[int, Mark]) -> None:
        """Mark rows."""
        if marks != self._marks:
            self._marks = dict(marks)
            if len(self.rows):
                self.dataChanged.emit(self.index(0), self.index(len(self.rows) - 1))

    def data(
        self, index: QModelIndex, role: int = Qt.ItemDataRole.DisplayRole
    ) -> object:
        """Return a picture, a text or a mark."""
        row = int(self.rows[index.row()])
        if role == MARK_ROLE:
            return self._marks.get(row)
        if role == Qt.ItemDataRole.DisplayRole and not self.has_pictures:
            return textwrap.shorten(self.text(row), TEXT_LENGTH, placeholder=" …")
        return super().data(index, role)


class ExampleDelegate(PictureDelegate):
    """Draws a picture or a text, with its mark.

    Parameters
    ----------
    view : ExampleList
    side : int
        Of a picture, in pixels.
    """

    def __init__(self, view: ExampleList, side: int) -> None:
        super().__init__(view)
        self._view = view
        self._side = side

    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex) -> QSize:
        """Return the size of a cell."""
        if self._view.shown.has_pictures:
            return QSize(self._side + GAP, self._side + GAP)
        return QSize(1, option.fontMetrics.height() + 2 * PADDING)

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex
    ) -> None:
        """Draw one cell."""
        mark = index.data(MARK_ROLE)
        if self._view.shown.has_pictures:
            super().paint(painter, option, index)
            if mark is not None:
                half = GAP // 2
                corner = option.rect.topLeft()
                place = QRect(corner.x() + half, corner.y() + half, 0, 0)
                _draw_mark(painter, place, mark)
            return
        palette = self._view.palette()
        if option.state & QStyle.StateFlag.State_Selected:
            shade = QColor(self.frame)
            shade.setAlpha(90)
            painter.fillRect(option.rect, shade)
        place = option.rect.adjusted(PADDING, 0, -PADDING, 0)
        if mark is not None:
            middle = place.top() + (place.height() - MARK_SIDE) // 2
            _draw_mark(painter, QRect(place.left(), middle, 0, 0), mark)
            place.setLeft(place.left() + MARK_SIDE + PADDING)
        text = option.fontMetrics.elidedText(
            index.data(), Qt.TextElideMode.ElideRight, place.width()
        )
        painter.setPen(palette.text().color())
        painter.drawText(place, int(Qt.AlignmentFlag.AlignVCenter), text)


def _draw_mark(painter: QPainter, corner: QRect, mark: Mark) -> None:
    place = QRect(corner.left(), corner.top(), MARK_SIDE, MARK_SIDE)
    painter.fillRect(place, mark.color)
    painter.setPen(QColor("white" if mark.color.lightness() < 150 else "black"))
    painter.drawText(place, int(Qt.AlignmentFlag.AlignCenter), mark.text)


class ExampleList(QListView):
    """Points that a person picks and takes out.

    Parameters
    ----------
    side : int
        Of a picture, in pixels.
    """

    picked = Signal(object)
    """Brings the (m,) rows that a person has picked."""
    taken_out = Signal(object)
    """Brings the (m,) picked rows, as Delete was pressed."""

    def __init__(self, side: int) -> None:
        super().__init__()
        self._following = False
        self.shown = ExampleModel(self)
        self.setModel(self.shown)
        self.setItemDelegate(ExampleDelegate(self, side))
        self.setEditTriggers(QListView.EditTrigger.NoEditTriggers)
        self.setUniformItemSizes(True)
        self.setSelectionMode(QListView.SelectionMode.ExtendedSelection)
        self.setVerticalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFrameShape(QListView.Shape.NoFrame)
        self.selectionModel().selectionChanged.connect(self._on_selected)
        self._arrange()

    def set_pictures(self, pictures: Pictures | None) -> None:
        """Show rows as pictures, or as texts where there are none."""
        self._following = True
        self.shown.set_pictures(pictures)
        self._following = False
        self._arrange()

    def set_rows(self, rows: NDArray[np.integer]) -> None:
        """Show these rows."""
        self._following = True
        if not np.array_equal(rows, self.shown.rows):
            self.shown.set_rows(np.asarray(rows, np.intp))
            self.scrollToTop()
        self._following = False

    def picked_rows(self) -> NDArray[np.intp]:
        """Return the rows that are picked, in their order here."""
        places = sorted(index.row() for index in self.selectedIndexes())
        return self.shown.rows[places]

    def pick(self, rows: NDArray[np.integer], *, is_told: bool = False) -> None:
        """Frame these rows; ``picked`` tells of it where that is wished."""
        self._following = not is_told
        wanted = QItemSelection()
        for place in self.shown.places(rows):
            index = self.shown.index(place)
            wanted.select(index, index)
        flags = QItemSelectionModel.SelectionFlag
        self.selectionModel().select(wanted, flags.ClearAndSelect)
        self._following = False
        if is_told and wanted.indexes():
            self.setCurrentIndex(wanted.indexes()[0])
            self.scrollTo(wanted.indexes()[0])

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Take the picked rows out on Delete."""
        if event.key() in (Qt.Key.Key_Delete, Qt.Key.Key_Backspace):
            rows = self.picked_rows()
            if len(rows):
                self.taken_out.emit(rows)
            return
        super().keyPressEvent(event)

    def _arrange(self) -> None:
        """Show cells of pictures side by side, texts one below the other."""
        modes = QListView.ViewMode
        has_pictures = self.shown.has_pictures
        self.setViewMode(modes.IconMode if has_pictures else modes.ListMode)
        self.setWrapping(has_pictures)
        self.setMovement(QListView.Movement.Static)
        self.setResizeMode(QListView.ResizeMode.Adjust)

    def _on_selected(self) -> None:
        if not self._following:
            self.picked.emit(self.picked_rows())
