"""One table for everything that has rows: sorted, copied, clicked, typed, with bars."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from qtpy.QtCore import (
    QAbstractTableModel,
    QItemSelection,
    QItemSelectionModel,
    QModelIndex,
    QRectF,
    QSize,
    Qt,
    Signal,
)
from qtpy.QtGui import QColor, QIcon, QImage, QKeyEvent, QMouseEvent, QPainter, QPixmap
from qtpy.QtWidgets import (
    QHeaderView,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
)

from napari_embedding_game.ui.style.copy_table import copy_table, is_copy
from napari_embedding_game.ui.style.level_click import adds
from napari_embedding_game.ui.style.theme import LOWER, ThemeColors

ROW, HEAD, SWATCH = 20, 24, 11
"""Pixels of a row, of the headings, and of the disc in the colour of a row."""
_VALUE = int(Qt.ItemDataRole.UserRole)
_COLOR = _VALUE + 1
_TOP = QModelIndex()
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter


@dataclass(frozen=True)
class Column:
    """How a column of a frame is shown."""

    title: str
    tip: str = ""
    text: Callable[[Any], str] = str
    """How a value is written."""
    is_bar: bool = False
    """Whether values are bars: where one begins and ends, 0 to 1, and where a mark
    stands, NaN for none; or numbers with a bar behind them."""
    is_edited: bool = False
    warns_from: float = np.inf
    """Value from which on it is written in the colour of a warning."""


class TableModel(QAbstractTableModel):
    """The rows of a frame, in its own order or in that of a column.

    They are sorted here: a proxy of Qt's would compare them one by one in Python.
    """

    edited = Signal(object, str)
    """Key of a row, and what was typed into it."""

    def __init__(self, columns: Iterable[Column]) -> None:
        super().__init__()
        self.columns = list(columns)
        self.frame = pd.DataFrame()
        """A column for each of the columns; its index has the keys."""
        self.colors: Mapping[Any, QColor | QImage] = {}
        """Of the swatches of rows, or their pictures, by their keys."""
        self.tips: Mapping[Any, str] = {}
        self.warning = QColor("orange")
        self.row_of: dict[Any, int] = {}
        """Where each key stands."""
        self._icons: dict[Any, QIcon | QImage] = {}
        self._order = np.empty(0, np.intp)
        self._sorted_by, self._descends = -1, False

    def set_frame(self, frame: pd.DataFrame, **looks: Any) -> None:
        """Show other rows in the order that was chosen, or other values of the same."""
        if looks.get("colors", self.colors) != self.colors:
            self._icons = {k: _icon(color) for k, color in looks["colors"].items()}
        if len(frame) == len(self.row_of) and self.row_of.keys() == set(frame.index):
            self._rearrange(frame=frame, **looks)
            return
        self.beginResetModel()
        vars(self).update(frame=frame, **looks)
        self._arrange()
        self.endResetModel()

    def key(self, row: int) -> Any:
        """Return the key of the row that stands there."""
        return self.frame.index[self._order[row]]

    def rows_of(self, keys: Iterable[Any]) -> list[int]:
        """Return where some keys stand."""
        return sorted(self.row_of[key] for key in keys if key in self.row_of)

    def sort(
        self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder
    ) -> None:
        """Put the rows in the order of a column; -1: in their own."""
        self._sorted_by = column
        self._descends = order == Qt.SortOrder.DescendingOrder
        self._rearrange()

    def _rearrange(self, **changes: Any) -> None:
        """Change something of the same rows; what Qt points at stays what it is."""
        self.layoutAboutToBeChanged.emit()
        held = self.persistentIndexList()
        keys = [self.key(index.row()) for index in held]
        vars(self).update(changes)
        self._arrange()
        moved = [
            self.index(self.row_of[key], index.column())
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
                values = values.str.replace(r"\d+", _padded, regex=True)
            rows = values.sort_values(ascending=not self._descends, kind="stable").index
        self._order = np.asarray(rows, np.intp)
        self.row_of = {k: row for row, k in enumerate(self.frame.index[self._order])}

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
        roles, place = Qt.ItemDataRole, index.column()
        column, key = self.columns[place], self.key(index.row())
        value = self.frame.iat[self._order[index.row()], place]
        if role in (roles.DisplayRole, roles.EditRole):
            is_none = isinstance(value, tuple) or value != value
            return None if is_none else column.text(value)
        if role == _VALUE and not isinstance(value, tuple):
            return 0.0, float(value / max(self.frame.iloc[:, place].max(), 1)), np.nan
        if role == roles.ForegroundRole and column.warns_from < np.inf:
            return self.warning if value >= column.warns_from else None
        answers = {_VALUE: value, roles.TextAlignmentRole: _RIGHT if place else _LEFT}
        if role == _COLOR:
            return self.colors.get(key)
        if role == roles.ToolTipRole:
            return self.tips.get(key) or (None if place else column.text(value))
        if not place:
            answers |= {roles.DecorationRole: self._icons.get(key)}
        return answers.get(role)

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
        column, roles = self.columns[section], Qt.ItemDataRole
        return {roles.DisplayRole: column.title, roles.ToolTipRole: column.tip}.get(
            role
        )


class Bars(QStyledItemDelegate):
    """Paints bars; those that end left of the middle, where others begin, as lower."""

    colors: ThemeColors | None = None

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex
    ) -> None:
        """Paint the ground of a bar, the bar and its mark; or a number on a bar."""
        if self.colors is None:
            return
        begin, end, mark = index.data(_VALUE)
        color = index.data(_COLOR) or (LOWER if begin > end else self.colors.line)
        room = QRectF(option.rect).adjusted(4, 4, -4, -4)
        bar = QRectF(room)
        bar.setLeft(room.left() + min(begin, end) * room.width())
        bar.setWidth(max(abs(end - begin) * room.width(), 2.0))
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        if index.data():
            super().paint(painter, option, index)
            painter.setOpacity(0.45)
        else:
            painter.setBrush(self.colors.foreground)
            painter.drawRoundedRect(room, 2, 2)
        painter.setBrush(color)
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
    most_rows : int
        So many rows are seen without scrolling, and no room is left below fewer; 0:
        it takes the room that there is.
    """

    picked = Signal(object, bool)
    """Keys of the rows that a person chose, and whether these add to a selection."""

    def __init__(
        self,
        *columns: Column,
        is_many: bool = False,
        has_head: bool = True,
        wraps: bool = False,
        most_rows: int = 0,
    ) -> None:
        super().__init__()
        self._is_following = self._adds = False
        self._most_rows, self._head = most_rows, HEAD if has_head else 0
        self.rows = TableModel(columns)
        self.setModel(self.rows)
        self._bars = Bars(self)
        modes, triggers = QTableView.SelectionMode, QTableView.EditTrigger
        self.setSelectionMode(
            modes.ExtendedSelection if is_many else modes.SingleSelection
        )
        self.setSelectionBehavior(QTableView.SelectionBehavior.SelectRows)
        self.setEditTriggers(triggers.DoubleClicked | triggers.EditKeyPressed)
        self.setVerticalScrollMode(QTableView.ScrollMode.ScrollPerPixel)
        self.setFrameShape(QTableView.Shape.NoFrame)
        self.setIconSize(QSize(SWATCH, SWATCH))
        self.setShowGrid(wraps)  # texts of several lines would run together
        self.setWordWrap(wraps)
        side, sizes = self.verticalHeader(), QHeaderView.ResizeMode
        side.hide()
        side.setDefaultSectionSize(ROW)
        if wraps:
            side.setSectionResizeMode(sizes.ResizeToContents)
        head = self.horizontalHeader()
        head.setSectionResizeMode(sizes.ResizeToContents)
        head.setResizeContentsPrecision(0)  # of the rows that are seen
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
        self._bars.colors, self.rows.warning = colors, colors.warning
        self.viewport().update()

    @property
    def is_typed_into(self) -> bool:
        """Whether a person is typing a name, which other rows would disturb."""
        return self.state() == QTableView.State.EditingState

    def name_first(self, title: str) -> None:
        """Give the first column another heading."""
        self.rows.columns[0] = replace(self.rows.columns[0], title=title)

    def show_frame(
        self,
        frame: pd.DataFrame,
        colors: Mapping[Any, QColor | QImage] | None = None,
        tips: Mapping[Any, str] | None = None,
    ) -> None:
        """Show other rows; the same ones again leave all as it is."""
        rows, looks = self.rows, {"colors": colors or {}, "tips": tips or {}}
        is_same = all(getattr(rows, name) == look for name, look in looks.items())
        if is_same and frame.equals(rows.frame):
            return
        before = rows.row_of.keys()
        self._is_following = True
        rows.set_frame(frame, **looks)
        self._is_following = False
        if before != rows.row_of.keys():
            self.scrollToTop()
            self.updateGeometry()

    def sizeHint(self) -> QSize:
        """Return room for every row, up to some."""
        if not self._most_rows:
            return super().sizeHint()
        n_rows = min(max(self.rows.rowCount(), 1), self._most_rows)
        return QSize(200, self._head + ROW * n_rows + 2)

    def minimumSizeHint(self) -> QSize:
        """Return the same where some rows are seen: what is around them is scrolled."""
        return self.sizeHint() if self._most_rows else super().minimumSizeHint()

    def choose(self, keys: Iterable[Any], *, scrolls: bool = True) -> None:
        """Mark the rows of these keys, and scroll to the first of them."""
        self._is_following = True
        found = self.rows.rows_of(keys)
        wanted = QItemSelection()
        for row in found:
            wanted.select(self.rows.index(row, 0), self.rows.index(row, 0))
        flags = QItemSelectionModel.SelectionFlag
        self.selectionModel().select(wanted, flags.ClearAndSelect | flags.Rows)
        if found and scrolls:
            first = self.rows.index(found[0], 0)
            self.selectionModel().setCurrentIndex(first, flags.NoUpdate)
            self.scrollTo(first)
        self._is_following = False

    def chosen(self) -> list[Any]:
        """Return the keys of the marked rows, in the order in which they stand."""
        rows = sorted(index.row() for index in self.selectionModel().selectedRows())
        return [self.rows.key(row) for row in rows]

    def type_into(self, key: Any) -> None:
        """Open the editor of a row's first cell."""
        for row in self.rows.rows_of([key]):
            index, flags = self.rows.index(row, 0), QItemSelectionModel.SelectionFlag
            self.selectionModel().setCurrentIndex(index, flags.NoUpdate)
            self.edit(index)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Copy the table with Ctrl+C; letters look for a row."""
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


def _padded(number: Any) -> str:
    return str(number[0]).zfill(9)


def _icon(color: QColor | QImage) -> QIcon | QImage:
    """Return a disc that keeps its colour in a selected row; a picture as it is."""
    if not isinstance(color, QColor):
        return color
    disc = QPixmap(SWATCH, SWATCH)
    disc.fill(Qt.GlobalColor.transparent)
    painter = QPainter(disc)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(color)
    painter.drawEllipse(0, 0, SWATCH, SWATCH)
    painter.end()
    icon = QIcon(disc)
    icon.addPixmap(disc, QIcon.Mode.Selected)
    return icon
