"""One table for everything that has rows: sorted, copied, clicked, with bars."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from qtpy.QtCore import (
    QAbstractTableModel,
    QItemSelection,
    QItemSelectionModel,
    QModelIndex,
    QRectF,
    Qt,
    Signal,
)
from qtpy.QtGui import QColor, QKeyEvent, QMouseEvent, QPainter
from qtpy.QtWidgets import (
    QHeaderView,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
)

from napari_embedding_game.ui.style.copy_table import copy_table, is_copy
from napari_embedding_game.ui.style.level_click import adds
from napari_embedding_game.ui.style.theme import LOWER, ThemeColors

ROW = 20
"""Pixels of a row."""
_VALUE = int(Qt.ItemDataRole.UserRole)
_TOP = QModelIndex()


@dataclass(frozen=True)
class Column:
    """How a column of a frame is shown."""

    title: str
    tip: str = ""
    text: Callable[[Any], str] = str
    """How a value is written."""
    is_bar: bool = False
    """Whether values are bars: where one begins and ends, 0 to 1, and where a mark
    stands, NaN for none."""
    is_edited: bool = False


class TableModel(QAbstractTableModel):
    """The rows of a frame, in its own order or in that of a column."""

    edited = Signal(object, str)
    """Key of a row, and what was typed into it."""

    def __init__(self, columns: Iterable[Column]) -> None:
        super().__init__()
        self.columns = list(columns)
        self.frame = pd.DataFrame()
        """A column for each of the columns; its index has the keys."""
        self.colors: Mapping[Any, QColor] = {}
        """Of the swatches of rows, by their keys."""
        self._order = np.empty(0, np.intp)
        self._sorted_by, self._descends = -1, False

    def set_frame(
        self, frame: pd.DataFrame, colors: Mapping[Any, QColor] | None = None
    ) -> None:
        """Show other rows, in the order that was chosen."""
        self.beginResetModel()
        self.frame, self.colors = frame, colors or {}
        self._arrange()
        self.endResetModel()

    def key(self, row: int) -> Any:
        """Return the key of the row that stands there."""
        return self.frame.index[self._order[row]]

    def rows_of(self, keys: Iterable[Any]) -> list[int]:
        """Return where some keys stand."""
        is_wanted = self.frame.index[self._order].isin(list(keys))
        found: list[int] = np.flatnonzero(is_wanted).tolist()
        return found

    def sort(
        self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder
    ) -> None:
        """Put the rows in the order of a column; -1: in their own."""
        self._sorted_by = column
        self._descends = order == Qt.SortOrder.DescendingOrder
        self.layoutAboutToBeChanged.emit()
        held = self.persistentIndexList()
        keys = [self._order[index.row()] for index in held]
        self._arrange()
        row_of = np.argsort(self._order)
        moved = [
            self.index(int(row_of[key]), index.column())
            for key, index in zip(keys, held, strict=True)
        ]
        self.changePersistentIndexList(held, moved)
        self.layoutChanged.emit()

    def _arrange(self) -> None:
        rows = pd.Series(np.arange(len(self.frame)))
        if 0 <= self._sorted_by < self.frame.shape[1]:
            values = self.frame.iloc[:, self._sorted_by].reset_index(drop=True)
            if not pd.api.types.is_numeric_dtype(values):
                values = values.astype(str).str.casefold()
            rows = values.sort_values(ascending=not self._descends, kind="stable").index
        self._order = np.asarray(rows, np.intp)

    def rowCount(self, parent: QModelIndex = _TOP) -> int:
        """Return the number of rows."""
        return 0 if parent.isValid() else len(self.frame)

    def columnCount(self, parent: QModelIndex = _TOP) -> int:
        """Return the number of columns."""
        return 0 if parent.isValid() else len(self.columns)

    def flags(self, index: QModelIndex) -> Qt.ItemFlag:
        """Return whether a cell can be typed into."""
        present = super().flags(index)
        is_edited = self.columns[index.column()].is_edited
        return present | Qt.ItemFlag.ItemIsEditable if is_edited else present

    def data(
        self, index: QModelIndex, role: int = Qt.ItemDataRole.DisplayRole
    ) -> object:
        """Return what Qt asks of a cell."""
        roles, column = Qt.ItemDataRole, self.columns[index.column()]
        value = self.frame.iat[self._order[index.row()], index.column()]
        if role == _VALUE:
            return value
        if role == roles.DecorationRole and index.column() == 0:
            return self.colors.get(self.key(index.row()))
        if role == roles.TextAlignmentRole:
            sides = Qt.AlignmentFlag
            side = sides.AlignRight if index.column() else sides.AlignLeft
            return side | sides.AlignVCenter
        is_text = role in (roles.DisplayRole, roles.EditRole)
        is_cut = role == roles.ToolTipRole and not index.column()
        return column.text(value) if (is_text or is_cut) and not column.is_bar else None

    def setData(
        self, index: QModelIndex, value: object, role: int = Qt.ItemDataRole.EditRole
    ) -> bool:
        """Say what was typed."""
        if role == Qt.ItemDataRole.EditRole:
            self.edited.emit(self.key(index.row()), str(value))
        return False

    def headerData(
        self,
        section: int,
        orientation: Qt.Orientation,
        role: int = Qt.ItemDataRole.DisplayRole,
    ) -> object:
        """Return what Qt asks of a heading."""
        if orientation != Qt.Orientation.Horizontal:
            return None
        return heading(self.columns[section].title, self.columns[section].tip, role)


def heading(title: str, tip: str, role: int) -> object:
    """Return what Qt asks of the heading of a column."""
    roles = Qt.ItemDataRole
    return {roles.DisplayRole: title, roles.ToolTipRole: tip}.get(role)


class Bars(QStyledItemDelegate):
    """Paints bars; those that end left of the middle, where others begin, as lower."""

    colors: ThemeColors | None = None

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex
    ) -> None:
        """Paint the ground of a bar, the bar and its mark."""
        if self.colors is None:
            return
        begin, end, mark = index.data(_VALUE)
        room = QRectF(option.rect).adjusted(4, 4, -4, -4)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self.colors.foreground)
        painter.drawRoundedRect(room, 2, 2)
        painter.setBrush(LOWER if begin > end else self.colors.line)
        bar = QRectF(room)
        bar.setLeft(room.left() + min(begin, end) * room.width())
        bar.setRight(room.left() + max(begin, end) * room.width())
        painter.drawRoundedRect(bar, 2, 2)
        if np.isfinite(mark):
            left = room.left() + mark * room.width() - 1
            line = QRectF(left, room.top() - 2, 2, room.height() + 4)
            painter.fillRect(line, self.colors.text)
        painter.restore()


class Table(QTableView):
    """Shows frames of these columns, the first as wide as there is room.

    Parameters
    ----------
    *columns : Column
    is_many : bool
        Whether several rows can be chosen.
    has_head : bool
        Whether headings are seen, by which rows are sorted.
    wraps : bool
        Whether long texts take several lines.
    """

    picked = Signal(object, bool)
    """Keys of the rows that a person chose, and whether these add to a selection."""

    def __init__(
        self,
        *columns: Column,
        is_many: bool = False,
        has_head: bool = True,
        wraps: bool = False,
    ) -> None:
        super().__init__()
        self._is_following = self._adds = False
        self.rows = TableModel(columns)
        self.setModel(self.rows)
        self._bars = Bars(self)
        modes = QTableView.SelectionMode
        self.setSelectionMode(
            modes.ExtendedSelection if is_many else modes.SingleSelection
        )
        self.setSelectionBehavior(QTableView.SelectionBehavior.SelectRows)
        self.setVerticalScrollMode(QTableView.ScrollMode.ScrollPerPixel)
        self.setFrameShape(QTableView.Shape.NoFrame)
        self.setShowGrid(False)
        self.setWordWrap(wraps)
        side = self.verticalHeader()
        side.hide()
        side.setDefaultSectionSize(ROW)
        sizes = QHeaderView.ResizeMode
        if wraps:
            side.setSectionResizeMode(sizes.ResizeToContents)
        head = self.horizontalHeader()
        head.setSectionResizeMode(sizes.ResizeToContents)
        head.setMinimumSectionSize(36)
        head.setHighlightSections(False)
        for place, column in enumerate(columns):
            if column.is_bar:
                self.setItemDelegateForColumn(place, self._bars)
            if column.is_bar or not place:
                head.setSectionResizeMode(place, sizes.Stretch)
        head.setVisible(has_head)
        if has_head:
            head.setSortIndicator(-1, Qt.SortOrder.AscendingOrder)
            head.setSortIndicatorClearable(True)  # a third click: their own order
            self.setSortingEnabled(True)
            head.setSortIndicatorShown(False)  # each heading would keep room for it
        self.selectionModel().selectionChanged.connect(self._on_selected)

    def set_theme(self, colors: ThemeColors) -> None:
        """Take on the colours of napari's theme."""
        self._bars.colors = colors
        self.viewport().update()

    def show_frame(
        self, frame: pd.DataFrame, colors: Mapping[Any, QColor] | None = None
    ) -> None:
        """Show other rows; the same ones again leave all as it is."""
        rows = self.rows
        is_same = frame.equals(rows.frame) and (colors or {}) == rows.colors
        if not is_same:
            self._is_following = True
            rows.set_frame(frame, colors)
            self._is_following = False
            self.scrollToTop()

    def choose(self, keys: Iterable[Any]) -> None:
        """Mark the rows of these keys, and scroll to the first of them."""
        self._is_following = True
        found = self.rows.rows_of(keys)
        wanted = QItemSelection()
        for row in found:
            wanted.select(self.rows.index(row, 0), self.rows.index(row, 0))
        flags = QItemSelectionModel.SelectionFlag
        self.selectionModel().select(wanted, flags.ClearAndSelect | flags.Rows)
        if found:
            first = self.rows.index(found[0], 0)
            self.selectionModel().setCurrentIndex(first, flags.NoUpdate)
            self.scrollTo(first)
        self._is_following = False

    def chosen(self) -> list[Any]:
        """Return the keys of the marked rows, in the order in which they stand."""
        rows = sorted(index.row() for index in self.selectionModel().selectedRows())
        return [self.rows.key(row) for row in rows]

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Copy the table with Ctrl+C."""
        if is_copy(event):
            copy_table(self)
        else:
            super().keyPressEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Note whether a click adds to what is selected."""
        self._adds = adds(event)
        super().mousePressEvent(event)
        self._adds = False

    def _on_selected(self) -> None:
        if not self._is_following:
            self.picked.emit(self.chosen(), self._adds)
