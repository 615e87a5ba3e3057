"""One table for everything that has rows: sorted, copied, clicked, typed, with bars."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from qtpy.QtCore import (
    QAbstractItemModel,
    QItemSelection,
    QItemSelectionModel,
    QModelIndex,
    QRectF,
    QSignalBlocker,
    QSize,
    Qt,
    Signal,
)
from qtpy.QtGui import (
    QColor,
    QIcon,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPixmap,
    QResizeEvent,
)
from qtpy.QtWidgets import (
    QApplication,
    QHeaderView,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableWidget,
    QTableWidgetItem,
    QWidget,
)

from napari_embedding_game.ui.style.form_widgets import (
    activate_parent_layouts,
    icon_with_fixed_colors,
    is_adding_click,
)
from napari_embedding_game.ui.style.layouts import escape_tooltip
from napari_embedding_game.ui.style.theme import LOWER_COLOR, ThemeColors

GAP, SWATCH = 6, 11
"""Pixels around the text of a row, and of the disc in the colour of a row."""
MAX_NAME_SHARE = 0.64
"""Greatest share of a table for names next to bars."""
WIDEST_NUMBER, BAR_WIDTH = " 00,000", 36
"""A number that a bar leaves room for, and pixels of the bar."""
ENTER = Qt.Key.Key_Return, Qt.Key.Key_Enter
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_TEXT, BAR = Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.UserRole
COLOR = BAR + 1
"""Of its row, as "#rrggbb"; None without a swatch."""


class Bar(NamedTuple):
    """A bar in a cell of a table; its room goes from 0 to 1."""

    begin: float
    end: float
    mark: float = np.nan
    """Where a mark stands; NaN for none."""
    is_orange: bool = False
    """Whether it warns, or is of what is lower."""


@dataclass(frozen=True)
class TableColumn:
    """How a column of a frame is shown."""

    title: str
    tip: str = ""
    text: Callable[[Any], str] = str
    """How a value is written."""
    is_bar: bool = False
    """Whether values are a :class:`Bar` each; or numbers with a bar beside them."""
    is_edited: bool = False
    warns_from: float = np.inf
    """Value from which on it is written in the colour of a warning."""


class _BarDelegate(QStyledItemDelegate):
    """Paints the bars of a table."""

    colors: ThemeColors | None = None

    def setModelData(
        self, editor: QWidget, model: QAbstractItemModel, index: QModelIndex
    ) -> None:
        """Say what was typed, and leave it to others to be shown."""
        table = self.parent()
        table.edited.emit(table.keys[index.row()], editor.text())

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex
    ) -> None:
        """Paint a value: its text, a bar with ground and mark, or a text and a bar."""
        text, bar, color = (index.data(role) for role in (_TEXT, BAR, COLOR))
        if bar is None or self.colors is None:
            super().paint(painter, option, index)
            return
        begin, end, mark, is_orange = bar
        color = (
            QColor(color) if color else LOWER_COLOR if is_orange else self.colors.line
        )
        number = option.fontMetrics.horizontalAdvance(WIDEST_NUMBER if text else "")
        room = QRectF(option.rect).adjusted(4, 4, -4 - number, -4)
        bar = QRectF(room)
        bar.setLeft(room.left() + min(begin, end) * room.width())
        bar.setWidth(max(abs(end - begin) * room.width(), 2.0 * (end != begin)))
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        if text:
            super().paint(painter, option, index)
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


class Table(QTableWidget):
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
    max_rows : int
        So many rows are seen without scrolling, and no room is left below fewer; 0:
        it takes the room that there is.
    min_rows : int
        So many are seen however little room there is; 0: as many as above.
    """

    picked = Signal(object, bool)
    """Keys of the rows that a person chose, and whether these add to a selection."""
    edited = Signal(object, str)
    """Key of a row, and what was typed into it."""
    opened = Signal()
    """Enter was pressed; Qt's own signal comes with a click as well."""

    def __init__(
        self,
        *columns: TableColumn,
        is_many: bool = False,
        has_head: bool = True,
        wraps: bool = False,
        max_rows: int = 0,
        min_rows: int = 0,
    ) -> None:
        super().__init__(0, len(columns))
        self._is_following = self._adds = False
        self._pending: tuple[Any, ...] | None = None
        """What is to be shown when nobody types."""
        self._max_rows, self._min_rows = max_rows, min_rows or max_rows
        self._columns = columns
        self.frame = pd.DataFrame()
        """A column for each of the columns; its index has the keys."""
        self.source: Any = None
        """What the rows on show are of."""
        self.keys: list[Any] = []
        """Of the rows, in the order shown."""
        self.tips: Mapping[Any, str] = {}
        self._colors: Mapping[Any, str] = {}
        """Of the swatches of rows, by their keys, as "#rrggbb"."""
        self._warning = QColor("orange")
        self._cells = _BarDelegate(self)
        self.setItemDelegate(self._cells)
        modes, triggers = QTableWidget.SelectionMode, QTableWidget.EditTrigger
        self.setSelectionMode(
            modes.ExtendedSelection if is_many else modes.SingleSelection
        )
        self.setSelectionBehavior(QTableWidget.SelectionBehavior.SelectRows)
        self.setEditTriggers(triggers.DoubleClicked | triggers.EditKeyPressed)
        self.setVerticalScrollMode(QTableWidget.ScrollMode.ScrollPerPixel)
        self.setFrameShape(QTableWidget.Shape.NoFrame)
        self.setIconSize(QSize(SWATCH, SWATCH))
        self.setTabKeyNavigation(False)  # Tab leaves the table
        self.setAccessibleName(columns[0].title)
        self.setTextElideMode(Qt.TextElideMode.ElideMiddle)  # names differ at their end
        self.setShowGrid(wraps)  # texts of several lines would run together
        self.setWordWrap(wraps)
        side, sizes = self.verticalHeader(), QHeaderView.ResizeMode
        side.hide()
        if wraps:
            side.setSectionResizeMode(sizes.ResizeToContents)
        head = self.horizontalHeader()
        head.setSectionResizeMode(sizes.ResizeToContents)
        head.setResizeContentsPrecision(0)  # of the rows that are seen
        head.setMinimumSectionSize(36)
        head.setHighlightSections(False)
        for section, column in enumerate(columns):
            # Numbers are narrower than some headings; names need the room.
            title = column.title.replace(" ", "\n") if section else column.title
            heading = QTableWidgetItem(title)
            heading.setToolTip(column.tip)
            heading.setTextAlignment(_RIGHT if section else _LEFT)
            self.setHorizontalHeaderItem(section, heading)
            if column.is_bar and not column.title:
                head.setSectionResizeMode(0, sizes.ResizeToContents)
                head.setSectionResizeMode(section, sizes.Stretch)
            elif not section:
                head.setSectionResizeMode(section, sizes.Stretch)
            elif column.is_bar:
                head.setSectionResizeMode(section, sizes.Fixed)
        head.setVisible(has_head)
        head.setSectionsClickable(has_head)
        head.setSortIndicator(-1, Qt.SortOrder.AscendingOrder)
        head.setSortIndicatorClearable(True)  # a third click: their own order
        head.sortIndicatorChanged.connect(self._sort)
        self.itemSelectionChanged.connect(self._on_selected)

    def set_theme(self, colors: ThemeColors) -> None:
        """Take on the colours of napari's theme, and room for its letters."""
        self._cells.colors, self._warning = colors, colors.warning
        bar = BAR_WIDTH + self.fontMetrics().horizontalAdvance(WIDEST_NUMBER)
        for section in range(len(self._columns)):  # all but bars fit what they hold
            self.horizontalHeader().resizeSection(section, bar)
        self.verticalHeader().setDefaultSectionSize(self.fontMetrics().height() + GAP)
        self._fill()

    @property
    def is_typed_into(self) -> bool:
        """Whether a person is typing a name, which other rows would disturb."""
        return self.state() == QTableWidget.State.EditingState

    def name_first(self, title: str) -> None:
        """Give the first column another heading."""
        self.horizontalHeaderItem(0).setText(title)

    def rows_of(self, keys: Iterable[Any]) -> list[int]:
        """Return the rows of some keys."""
        requested = set(keys)
        return [row for row, key in enumerate(self.keys) if key in requested]

    def show_frame(
        self,
        frame: pd.DataFrame,
        colors: Mapping[Any, str] | None = None,
        tips: Mapping[Any, str] | None = None,
        source: Any = None,
    ) -> None:
        """Show other rows; the same ones again leave all as it is.

        While a name is typed its row stays where it is: they are shown after that.
        """
        if self.is_typed_into:
            self._pending = frame, colors, tips, source
            return
        self.source = source
        looks = colors or {}, tips or {}
        if looks == (self._colors, self.tips) and frame.equals(self.frame):
            return
        is_other = set(frame.index) != set(self.frame.index)
        self.frame, (self._colors, self.tips) = frame, looks
        self._fill()
        if is_other:
            self.scrollToTop()
            self.updateGeometry()
            activate_parent_layouts(self)

    def _sort(self, *event: object) -> None:
        """Stand by another heading; what is being typed counts for its own row."""
        self.end_edit(commits=True)
        self._fill()

    def _fill(self) -> None:
        """Write the rows in their order or that of a heading; keep what is marked.

        At once: each cell alone would have the widths of the columns found anew.
        """
        chosen, row = self.chosen(), self.currentRow()
        present = self.keys[row : row + 1]
        self._is_following, frame = True, self._sorted()
        self.keys = [*frame.index]
        self.setRowCount(len(frame))
        numbers = frame.select_dtypes("number").max()
        highest = [max(numbers.get(name, 1), 1) for name in frame.columns]
        with QSignalBlocker(self.model()):
            for row, values in enumerate(frame.itertuples(index=False, name=None)):
                for section, value in enumerate(values):
                    cell = self._cell(section, self.keys[row], value, highest[section])
                    self.setItem(row, section, cell)
        self.model().layoutChanged.emit()
        for row in self.rows_of(present):
            flags = QItemSelectionModel.SelectionFlag.NoUpdate
            self.selectionModel().setCurrentIndex(self.model().index(row, 0), flags)
        self.choose(chosen, scrolls=False)

    def _sorted(self) -> pd.DataFrame:
        """Return the rows in their order, or by the heading that was pressed."""
        head, frame = self.horizontalHeader(), self.frame
        section = head.sortIndicatorSection()
        if not 0 <= section < frame.shape[1]:
            return frame
        ranks = [_natural_sort_key(value) for value in frame.iloc[:, section]]
        falls = head.sortIndicatorOrder() == Qt.SortOrder.DescendingOrder
        order = sorted(range(len(ranks)), key=ranks.__getitem__, reverse=falls)
        return frame.iloc[order]

    def _cell(
        self, section: int, key: Any, value: Any, highest: float
    ) -> QTableWidgetItem:
        column, is_text = self._columns[section], not isinstance(value, Bar)
        text = column.text(value) if is_text and value == value else ""
        cell = QTableWidgetItem(text)
        cell.setTextAlignment(_RIGHT if section else _LEFT)
        tip = self.tips.get(key, "")
        cell.setToolTip(escape_tooltip(tip if section else f"{text}\n{tip}".strip()))
        color = self._colors.get(key)
        cell.setData(COLOR, color)
        if not column.is_edited:
            cell.setFlags(cell.flags() & ~Qt.ItemFlag.ItemIsEditable)
        if not section and color is not None:
            cell.setIcon(_disc_icon(QColor(color)))
        if column.is_bar:
            bar = Bar(0.0, float(value / highest)) if is_text else value
            cell.setData(BAR, bar)
        if is_text and column.warns_from < np.inf and value >= column.warns_from:
            cell.setForeground(self._warning)
        return cell

    def sizeHint(self) -> QSize:
        """Return room for every row, up to some."""
        return self._room(self._max_rows) or super().sizeHint()

    def minimumSizeHint(self) -> QSize:
        """Return room for the rows that are always seen."""
        return self._room(self._min_rows) or super().minimumSizeHint()

    def _room(self, max_rows: int) -> QSize | None:
        n_rows = min(max(self.rowCount(), 1), max_rows)
        head, row = self.horizontalHeader(), self.verticalHeader().defaultSectionSize()
        above = 2 if head.isHidden() else 2 + head.sizeHint().height()
        return QSize(200, above + row * n_rows) if max_rows else None

    def choose(self, keys: Iterable[Any], *, scrolls: bool = True) -> None:
        """Mark the rows of these keys, and scroll to the first of them."""
        self._is_following = True
        rows, model = self.rows_of(keys), self.model()
        selection = QItemSelection()
        for row in rows:
            selection.select(model.index(row, 0), model.index(row, 0))
        flags = QItemSelectionModel.SelectionFlag
        self.selectionModel().select(selection, flags.ClearAndSelect | flags.Rows)
        if rows and scrolls:
            first = model.index(rows[0], 0)
            self.selectionModel().setCurrentIndex(first, flags.NoUpdate)
            self.scrollTo(first)
        self._is_following = False

    def chosen(self) -> list[Any]:
        """Return the keys of the marked rows, in the order shown."""
        rows = sorted(index.row() for index in self.selectionModel().selectedRows())
        return [self.keys[row] for row in rows]

    def type_into(self, key: Any) -> None:
        """Open the editor of a row's first cell; what is typed elsewhere counts."""
        self.end_edit(commits=True)
        for row in self.rows_of([key]):
            index, flags = self.model().index(row, 0), QItemSelectionModel.SelectionFlag
            self.selectionModel().setCurrentIndex(index, flags.NoUpdate)
            self.edit(index)

    def end_edit(self, event: object = None, *, commits: bool = False) -> None:
        """Close the editor, if there is one; what was typed counts or is given up."""
        editor = self.indexWidget(self.currentIndex())
        if editor is not None:
            if commits:
                self.commitData(editor)
            self.closeEditor(editor, QStyledItemDelegate.EndEditHint.NoHint)

    def closeEditor(
        self, editor: QWidget, hint: QStyledItemDelegate.EndEditHint
    ) -> None:
        """Show the rows that have waited for it."""
        super().closeEditor(editor, hint)
        later, self._pending = self._pending, None
        if later is not None:
            self.show_frame(*later)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Leave room for bars beside long names."""
        widest = round(MAX_NAME_SHARE * event.size().width())
        self.horizontalHeader().setMaximumSectionSize(widest)
        super().resizeEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Copy the table with Ctrl+C; letters look for a row."""
        if event.matches(QKeySequence.StandardKey.Copy):
            self._copy()
        elif event.key() in ENTER and not self.is_typed_into:
            self.opened.emit()
        else:
            super().keyPressEvent(event)

    def _copy(self) -> None:
        """Copy headings and rows as shown, tab-separated, without hidden columns."""
        model, n_rows = self.model(), self.rowCount()
        seen = [c for c in range(self.columnCount()) if not self.isColumnHidden(c)]
        lines = [[model.headerData(c, Qt.Orientation.Horizontal) for c in seen]]
        lines += [[self.item(r, c).text() for c in seen] for r in range(n_rows)]
        cells = [[" ".join(text.split()) for text in line] for line in lines]
        QApplication.clipboard().setText("\n".join(map("\t".join, cells)))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Note whether a click adds to what is selected."""
        self._adds = is_adding_click(event)
        super().mousePressEvent(event)
        self._adds = False

    def _on_selected(self) -> None:
        if not self._is_following:
            self.picked.emit(self.chosen(), self._adds)


def _natural_sort_key(value: Any) -> Any:
    """Return the sort key of a value: numbers in names count as numbers."""
    if isinstance(value, str):
        return re.sub(r"\d+", lambda number: number[0].zfill(9), value.casefold())
    return value if value == value else -np.inf


def _disc_icon(color: QColor) -> QIcon:
    """Return a disc that keeps its colour in a selected row."""
    disc = QPixmap(SWATCH, SWATCH)
    disc.fill(Qt.GlobalColor.transparent)
    painter = QPainter(disc)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(color.darker(140))  # else a pale one is not seen on pale ground
    painter.setBrush(color)
    painter.drawEllipse(QRectF(0.5, 0.5, SWATCH - 1, SWATCH - 1))
    painter.end()
    return icon_with_fixed_colors(disc)
