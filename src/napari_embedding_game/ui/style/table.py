"""The table of all panels: sorts, copies, edits, selects rows, and paints bars."""

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
    is_adding_click,
    make_icon_with_fixed_colors,
)
from napari_embedding_game.ui.style.layouts import escape_tooltip
from napari_embedding_game.ui.style.theme import LOWER_COLOR, ThemeColors

GAP, SWATCH = 6, 11
"""Pixels around the text of a row, and diameter of the disc in the row's colour."""
MAX_NAME_SHARE = 0.64
"""Greatest share of a table for names next to bars."""
WIDEST_NUMBER, BAR_WIDTH = " 00,000", 36
"""The widest number beside a bar, and the width of the bar in pixels."""
ENTER = Qt.Key.Key_Return, Qt.Key.Key_Enter
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_TEXT, BAR = Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.UserRole
COLOR = BAR + 1
"""Role of the colour of a cell's row, "#rrggbb"; None without a swatch."""


class Bar(NamedTuple):
    """A bar in a cell of a table, whose width is 1."""

    begin: float
    end: float
    mark: float = np.nan
    """Position of a mark; NaN without a mark."""
    is_orange: bool = False
    """Whether the bar warns, or stands for a lower value."""


@dataclass(frozen=True)
class TableColumn:
    """How one column of a frame is shown in a table."""

    title: str
    tip: str = ""
    format_value: Callable[[Any], str] = str
    """Returns the text of a value."""
    has_bar: bool = False
    """Whether each value is a :class:`Bar`, or a number with a bar beside it."""
    is_editable: bool = False
    """Whether a person can type into the cells."""
    is_text: bool = False
    """Whether values are texts that begin at the left, as those of the first column."""
    warns_from: float = np.inf
    """Values from this one on are written in the colour of a warning."""


class _BarDelegate(QStyledItemDelegate):
    """Paints the bars of a table, and reports typed texts."""

    colors: ThemeColors | None = None

    def setModelData(
        self, editor: QWidget, model: QAbstractItemModel, index: QModelIndex
    ) -> None:
        """Emit the table's ``cell_edited`` with the row's key and the typed text.

        The cell stays as it is: the receiver of the signal shows the new text.
        """
        table = self.parent()
        table.cell_edited.emit(table.keys[index.row()], editor.text())

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex
    ) -> None:
        """Paint a cell: its text, a text with a bar, or a bar on its ground.

        A bar has the colour of its row, else orange if it says so, else that of the
        theme's lines.  Its mark is a line across the bar.
        """
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
    """Shows frames with the given columns; the first column takes the spare width.

    Parameters
    ----------
    *columns : TableColumn
        How the frame's columns are shown, in the frame's order.
    selects_many : bool
        Whether several rows can be chosen.
    has_headings : bool
        Whether headings are seen, by which rows are sorted.
    wraps_text : bool
        Whether long texts take several lines.
    max_rows : int
        Up to this many rows are seen without scrolling, and fewer rows make the table
        lower; 0 lets the table fill its layout.
    min_rows : int
        This many rows are always seen; 0 stands for ``max_rows``.
    """

    rows_picked = Signal(object, bool)
    """Keys of the rows that a person chose, and whether they add to a selection."""
    cell_edited = Signal(object, str)
    """Key of a row, and the text typed into it."""
    enter_pressed = Signal()
    """Enter was pressed; Qt's own signal is emitted by a click as well."""

    def __init__(
        self,
        *columns: TableColumn,
        selects_many: bool = False,
        has_headings: bool = True,
        wraps_text: bool = False,
        max_rows: int = 0,
        min_rows: int = 0,
    ) -> None:
        super().__init__(0, len(columns))
        self._is_selecting_in_code = self._is_adding = False
        self._pending: tuple[Any, ...] | None = None
        """Arguments of :meth:`show_frame` to be shown once the editor is closed."""
        self._max_rows, self._min_rows = max_rows, min_rows or max_rows
        self._columns = columns
        self.frame = pd.DataFrame()
        """The values on show, a column for each table column; its index has the keys.
        """
        self.source: Any = None
        """The object that the frame was made from, as the caller gave it."""
        self.keys: list[Any] = []
        """The keys of the rows, in the order shown."""
        self.tips: Mapping[Any, str] = {}
        """The tooltips of rows, by their keys."""
        self._colors: Mapping[Any, str] = {}
        """The colours of the rows' swatches, by their keys, as "#rrggbb"."""
        self._warning = QColor("orange")
        self._bar_delegate = _BarDelegate(self)
        self.setItemDelegate(self._bar_delegate)
        modes, triggers = QTableWidget.SelectionMode, QTableWidget.EditTrigger
        self.setSelectionMode(
            modes.ExtendedSelection if selects_many else modes.SingleSelection
        )
        self.setSelectionBehavior(QTableWidget.SelectionBehavior.SelectRows)
        self.setEditTriggers(triggers.DoubleClicked | triggers.EditKeyPressed)
        self.setVerticalScrollMode(QTableWidget.ScrollMode.ScrollPerPixel)
        self.setFrameShape(QTableWidget.Shape.NoFrame)
        self.setIconSize(QSize(SWATCH, SWATCH))
        self.setTabKeyNavigation(False)  # Tab leaves the table
        self.setAccessibleName(columns[0].title)
        self.setTextElideMode(Qt.TextElideMode.ElideMiddle)  # names differ at their end
        self.setShowGrid(wraps_text)  # texts of several lines would run together
        self.setWordWrap(wraps_text)
        side, sizes = self.verticalHeader(), QHeaderView.ResizeMode
        side.hide()
        if wraps_text:
            side.setSectionResizeMode(sizes.ResizeToContents)
        head = self.horizontalHeader()
        head.setSectionResizeMode(sizes.ResizeToContents)
        head.setResizeContentsPrecision(0)  # fits the visible rows only, which is fast
        head.setMinimumSectionSize(36)
        head.setHighlightSections(False)
        # Numbers are narrower than some headings; names need the room.
        first, *others = (column.title for column in columns)
        self._titles = [first, *(title.replace(" ", "\n") for title in others)]
        for section, column in enumerate(columns):
            heading = QTableWidgetItem(self._titles[section])
            heading.setToolTip(column.tip)
            heading.setTextAlignment(self._find_alignment(section))
            self.setHorizontalHeaderItem(section, heading)
            if column.has_bar and not column.title:
                head.setSectionResizeMode(0, sizes.ResizeToContents)
                head.setSectionResizeMode(section, sizes.Stretch)
            elif not section:
                head.setSectionResizeMode(section, sizes.Stretch)
            elif column.has_bar:
                head.setSectionResizeMode(section, sizes.Fixed)
        head.setVisible(has_headings)
        head.setSectionsClickable(has_headings)
        head.setSortIndicator(-1, Qt.SortOrder.AscendingOrder)
        head.setSortIndicatorClearable(True)  # a third click restores the frame's order
        head.sortIndicatorChanged.connect(self._on_sort_indicator_changed)
        self._mark_sorted_heading()
        self.itemSelectionChanged.connect(self._on_selection_changed)

    def set_theme(self, colors: ThemeColors) -> None:
        """Apply the colours of napari's theme, and fit rows and bars to its font.

        All cells are written again.
        """
        self._bar_delegate.colors, self._warning = colors, colors.warning
        bar = BAR_WIDTH + self.fontMetrics().horizontalAdvance(WIDEST_NUMBER)
        for section in range(len(self._columns)):  # only bars keep this width
            self.horizontalHeader().resizeSection(section, bar)
        self.verticalHeader().setDefaultSectionSize(self.fontMetrics().height() + GAP)
        self._refill_rows()

    @property
    def is_editing(self) -> bool:
        """Whether a cell's editor is open, so that new rows must wait."""
        return self.state() == QTableWidget.State.EditingState

    def set_heading(self, section: int, title: str) -> None:
        """Replace the heading of a column, by its number."""
        self._titles[section] = title
        self._mark_sorted_heading()

    def find_rows_with_keys(self, keys: Iterable[Any]) -> list[int]:
        """Return the row numbers that have these keys, from top to bottom.

        Keys that are not in the table are ignored.
        """
        requested = set(keys)
        return [row for row, key in enumerate(self.keys) if key in requested]

    def show_frame(
        self,
        frame: pd.DataFrame,
        colors: Mapping[Any, str] | None = None,
        tips: Mapping[Any, str] | None = None,
        source: Any = None,
    ) -> None:
        """Replace the rows; an equal frame with equal colours changes nothing.

        ``colors`` ("#rrggbb") and ``tips`` are by the keys, the index of ``frame``;
        ``source`` is kept as :attr:`source`.  Selection and current row stay on their
        keys; with other keys the table scrolls to the top and gets its new height.
        While a cell is edited the last call waits until the editor is closed.
        """
        if self.is_editing:
            self._pending = frame, colors, tips, source
            return
        self.source = source
        looks = colors or {}, tips or {}
        if looks == (self._colors, self.tips) and frame.equals(self.frame):
            return
        is_other = set(frame.index) != set(self.frame.index)
        self.frame, (self._colors, self.tips) = frame, looks
        self._refill_rows()
        if is_other:
            self.scrollToTop()
            self.updateGeometry()
            activate_parent_layouts(self)

    def _on_sort_indicator_changed(self, *event: object) -> None:
        """Commit what is being typed to its row, then sort by the new heading."""
        self.close_open_editor(commits=True)
        self._mark_sorted_heading()
        self._refill_rows()

    def _mark_sorted_heading(self) -> None:
        """Add an arrow to the heading that rows are sorted by, down where they fall.

        Qt's own arrow would take room from every column.
        """
        head = self.horizontalHeader()
        falls = head.sortIndicatorOrder() == Qt.SortOrder.DescendingOrder
        for section, title in enumerate(self._titles):
            is_sorted = section == head.sortIndicatorSection()
            arrow = ("\u2009▼" if falls else "\u2009▲") if is_sorted else ""
            self.horizontalHeaderItem(section).setText(title + arrow)

    def _refill_rows(self) -> None:
        """Write all rows in the order on show, and restore selection and current row.

        The model's signals are blocked: each cell would resize the columns again.
        """
        chosen, row = self.list_selected_keys(), self.currentRow()
        present = self.keys[row : row + 1]
        self._is_selecting_in_code, frame = True, self._sort_frame()
        self.keys = [*frame.index]
        self.setRowCount(len(frame))
        numbers = frame.select_dtypes("number").max()
        highest = [max(numbers.get(name, 1), 1) for name in frame.columns]
        with QSignalBlocker(self.model()):
            for row, values in enumerate(frame.itertuples(index=False, name=None)):
                for section, value in enumerate(values):
                    cell = self._make_item(
                        section, self.keys[row], value, highest[section]
                    )
                    self.setItem(row, section, cell)
        self.model().layoutChanged.emit()
        for row in self.find_rows_with_keys(present):
            flags = QItemSelectionModel.SelectionFlag.NoUpdate
            self.selectionModel().setCurrentIndex(self.model().index(row, 0), flags)
        self.select_keys(chosen, scrolls=False)

    def _sort_frame(self) -> pd.DataFrame:
        """Return the frame sorted by the pressed heading, or in its own order.

        Equal values stay in the frame's order.
        """
        head, frame = self.horizontalHeader(), self.frame
        section = head.sortIndicatorSection()
        if not 0 <= section < frame.shape[1]:
            return frame
        ranks = [_make_natural_sort_key(value) for value in frame.iloc[:, section]]
        falls = head.sortIndicatorOrder() == Qt.SortOrder.DescendingOrder
        order = sorted(range(len(ranks)), key=ranks.__getitem__, reverse=falls)
        return frame.iloc[order]

    def _find_alignment(self, section: int) -> Qt.AlignmentFlag:
        """Return how a column is aligned: names and texts left, numbers right."""
        is_left = section == 0 or self._columns[section].is_text
        return _LEFT if is_left else _RIGHT

    def _make_item(
        self, section: int, key: Any, value: Any, highest: float
    ) -> QTableWidgetItem:
        """Return the item for a value: its text, tooltip, swatch, bar and warning.

        ``section`` is the index of the column, and ``key`` the key of the row;
        ``highest`` is the value with a full bar.  The text is "" for NaN and for a
        :class:`Bar`.  Only the first column has swatches, and its tooltips begin with
        the text.
        """
        column, is_text = self._columns[section], not isinstance(value, Bar)
        text = column.format_value(value) if is_text and value == value else ""
        cell = QTableWidgetItem(text)
        cell.setTextAlignment(self._find_alignment(section))
        tip = self.tips.get(key, "")
        cell.setToolTip(escape_tooltip(tip if section else f"{text}\n{tip}".strip()))
        color = self._colors.get(key)
        cell.setData(COLOR, color)
        if not column.is_editable:
            cell.setFlags(cell.flags() & ~Qt.ItemFlag.ItemIsEditable)
        if not section and color is not None:
            cell.setIcon(_make_disc_icon(QColor(color)))
        if column.has_bar:
            bar = Bar(0.0, float(value / highest)) if is_text else value
            cell.setData(BAR, bar)
        if is_text and column.warns_from < np.inf and value >= column.warns_from:
            cell.setForeground(self._warning)
        return cell

    def sizeHint(self) -> QSize:
        """Return a size for all rows, up to ``max_rows``; Qt's own if that is 0."""
        return self._compute_size_for_rows(self._max_rows) or super().sizeHint()

    def minimumSizeHint(self) -> QSize:
        """Return a size for all rows, up to ``min_rows``; Qt's own if that is 0."""
        return self._compute_size_for_rows(self._min_rows) or super().minimumSizeHint()

    def _compute_size_for_rows(self, max_rows: int) -> QSize | None:
        """Return a size for at least one and at most so many rows; None for 0."""
        n_rows = min(max(self.rowCount(), 1), max_rows)
        head, row = self.horizontalHeader(), self.verticalHeader().defaultSectionSize()
        above = 2 if head.isHidden() else 2 + head.sizeHint().height()
        return QSize(200, above + row * n_rows) if max_rows else None

    def select_keys(self, keys: Iterable[Any], *, scrolls: bool = True) -> None:
        """Select only the rows with these keys, without :attr:`rows_picked`.

        With ``scrolls`` the first of them becomes the current row, and is scrolled to.
        """
        self._is_selecting_in_code = True
        rows, model = self.find_rows_with_keys(keys), self.model()
        selection = QItemSelection()
        for row in rows:
            selection.select(model.index(row, 0), model.index(row, 0))
        flags = QItemSelectionModel.SelectionFlag
        self.selectionModel().select(selection, flags.ClearAndSelect | flags.Rows)
        if rows and scrolls:
            first = model.index(rows[0], 0)
            self.selectionModel().setCurrentIndex(first, flags.NoUpdate)
            self.scrollTo(first)
        self._is_selecting_in_code = False

    def list_selected_keys(self) -> list[Any]:
        """Return the keys of the selected rows, in the order shown."""
        rows = sorted(index.row() for index in self.selectionModel().selectedRows())
        return [self.keys[row] for row in rows]

    def edit_first_cell(self, key: Any) -> None:
        """Open the editor of a row's first cell, after committing an open editor.

        The row becomes the current row; nothing is opened for an unknown key.
        """
        self.close_open_editor(commits=True)
        for row in self.find_rows_with_keys([key]):
            index, flags = self.model().index(row, 0), QItemSelectionModel.SelectionFlag
            self.selectionModel().setCurrentIndex(index, flags.NoUpdate)
            self.edit(index)

    def close_open_editor(self, event: object = None, *, commits: bool = False) -> None:
        """Close an open editor; commit the typed text if asked to, else discard it."""
        editor = self.indexWidget(self.currentIndex())
        if editor is not None:
            if commits:
                self.commitData(editor)
            self.closeEditor(editor, QStyledItemDelegate.EndEditHint.NoHint)

    def closeEditor(
        self, editor: QWidget, hint: QStyledItemDelegate.EndEditHint
    ) -> None:
        """Close the editor, then show the frame that waited for that."""
        super().closeEditor(editor, hint)
        pending, self._pending = self._pending, None
        if pending is not None:
            self.show_frame(*pending)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Limit the width of each column, so that long names leave room for bars."""
        widest = round(MAX_NAME_SHARE * event.size().width())
        self.horizontalHeader().setMaximumSectionSize(widest)
        super().resizeEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Copy the table at Ctrl+C, and emit :attr:`enter_pressed` at Enter.

        Qt handles all other keys, and Enter while a cell is edited.
        """
        if event.matches(QKeySequence.StandardKey.Copy):
            self._copy_to_clipboard()
        elif event.key() in ENTER and not self.is_editing:
            self.enter_pressed.emit()
        else:
            super().keyPressEvent(event)

    def _copy_to_clipboard(self) -> None:
        """Copy the visible columns with headings to the clipboard, tab-separated.

        Rows are in the order shown; line breaks and tabs in a cell become spaces.
        """
        n_rows = self.rowCount()
        seen = [c for c in range(self.columnCount()) if not self.isColumnHidden(c)]
        lines = [[self._titles[c] for c in seen]]
        lines += [[self.item(r, c).text() for c in seen] for r in range(n_rows)]
        cells = [[" ".join(text.split()) for text in line] for line in lines]
        QApplication.clipboard().setText("\n".join(map("\t".join, cells)))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Note for :attr:`rows_picked` whether a click adds to the selection."""
        self._is_adding = is_adding_click(event)
        super().mousePressEvent(event)
        self._is_adding = False

    def _on_selection_changed(self) -> None:
        """Emit :attr:`rows_picked` unless the rows were selected in code."""
        if not self._is_selecting_in_code:
            self.rows_picked.emit(self.list_selected_keys(), self._is_adding)


def _make_natural_sort_key(value: Any) -> Any:
    """Return the sort key of a value: NaN comes first.

    In a text numbers are padded, so that "B2" comes before "B10", and case is ignored.
    """
    if isinstance(value, str):
        return re.sub(r"\d+", lambda number: number[0].zfill(9), value.casefold())
    return value if value == value else -np.inf


def _make_disc_icon(color: QColor) -> QIcon:
    """Return an icon of a disc that keeps its colour in a selected row."""
    disc = QPixmap(SWATCH, SWATCH)
    disc.fill(Qt.GlobalColor.transparent)
    painter = QPainter(disc)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(color.darker(140))  # a pale disc needs an edge on pale ground
    painter.setBrush(color)
    painter.drawEllipse(QRectF(0.5, 0.5, SWATCH - 1, SWATCH - 1))
    painter.end()
    return make_icon_with_fixed_colors(disc)
