"""A table of clusters and genes, drawn as dots, as squares or as stripes of cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import (
    QAbstractTableModel,
    QModelIndex,
    QPersistentModelIndex,
    QPointF,
    QRectF,
    QSize,
    Qt,
    Signal,
)
from qtpy.QtGui import QColor, QIcon, QImage, QPainter, QPen, QResizeEvent
from qtpy.QtWidgets import (
    QApplication,
    QHeaderView,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
    QWidget,
)

from napari_embedding_game.data.export.plots import (
    SIZE_EXPONENT,
    PlotKind,
)
from napari_embedding_game.session.cluster_expression import ClusterExpression
from napari_embedding_game.ui.style.cluster_colors import Colors
from napari_embedding_game.ui.style.colors import value_colors, value_limits
from napari_embedding_game.ui.style.legend import swatch
from napari_embedding_game.ui.style.theme import ThemeColors

NARROWEST, WIDEST = 15, 26
LOWEST, HIGHEST = 15, 24
"""Pixels of a column, and of a row."""
LOWEST_STRIPES = 26
"""Pixels of a row in which single cells can be seen."""
TALLEST_NAME = 110
WIDEST_NAME = 120
"""Pixels of a gene's name, turned upwards, and of a cluster's."""
_TOP = QModelIndex()
_Index = QModelIndex | QPersistentModelIndex


def radius_share(share: NDArray[np.floating] | float) -> NDArray[np.floating]:
    """Return the radius of a dot as a part of the largest one's."""
    return np.sqrt(np.power(share, SIZE_EXPONENT))


@dataclass(frozen=True, eq=False)
class Shades:
    """The values that are shown as colours, and the range of the colours."""

    means: NDArray[np.floating]
    """(C, G)"""
    cells: tuple[NDArray[np.floating], ...]
    """(m, G) of each cluster."""
    limits: tuple[float, float]

    @classmethod
    def of(cls, found: ClusterExpression, kind: PlotKind, *, is_scaled: bool) -> Shades:
        """Return the colours of a kind of plot; scaled, every gene from 0 to 1."""
        means, cells = found.summary.means, found.cells
        if not is_scaled:
            shown = np.concatenate(cells).ravel() if kind == "cells" else means.ravel()
            return cls(means, cells, value_limits(shown))
        low, high = _ranges(np.concatenate(cells))
        scaled = tuple((part - low) / (high - low) for part in cells)
        return cls(found.summary.scaled, scaled, (0.0, 1.0))


def _ranges(cells: NDArray[np.floating]) -> tuple[NDArray[np.floating], ...]:
    """Return the lowest and the highest value of each gene, never the same."""
    low = np.nanmin(cells, axis=0, initial=np.inf)
    high = np.nanmax(cells, axis=0, initial=-np.inf)
    return low, np.where(high > low, high, low + 1)


@dataclass(frozen=True, eq=False)
class Shown:
    """What a table shows, and how."""

    found: ClusterExpression
    kind: PlotKind
    shades: Shades
    title: str = ""
    """What the colours are."""
    names: tuple[str, ...] = ()
    """(C,) of the clusters."""
    colors: Colors = field(default_factory=lambda: np.empty((0, 4), np.float32))
    """(C, 4) of the clusters."""


class ExpressionModel(QAbstractTableModel):
    """Clusters as rows, genes as columns."""

    def __init__(self) -> None:
        super().__init__()
        self.shown: Shown | None = None
        self.chosen: frozenset[int] = frozenset()
        """Ids of clusters."""
        self.gene = ""
        """The one that the map is coloured by."""
        self._icons: list[QIcon] = []
        self._rgba: NDArray[np.floating] = np.empty((0, 0, 4))

    def show_expression(self, shown: Shown | None) -> None:
        """Show these figures."""
        self.beginResetModel()
        self.shown = shown
        if shown is not None:
            shades = shown.shades
            flat = value_colors(shades.means.ravel(), shades.limits)
            self._rgba = flat.reshape(*shades.means.shape, 4)
            self._icons = [QIcon(swatch(color)) for color in shown.colors]
        self.endResetModel()

    def mark(self, chosen: Sequence[int], gene: str) -> None:
        """Mark chosen clusters, and the gene that the map is coloured by."""
        self.chosen, self.gene = frozenset(chosen), gene
        for side, n in (
            (Qt.Orientation.Vertical, self.rowCount()),
            (Qt.Orientation.Horizontal, self.columnCount()),
        ):
            if n:
                self.headerDataChanged.emit(side, 0, n - 1)

    def color(self, index: _Index) -> QColor:
        """Return the colour of a cluster's mean."""
        return QColor.fromRgbF(*map(float, self._rgba[index.row(), index.column()]))

    def rowCount(self, parent: _Index = _TOP) -> int:
        """Return the number of clusters."""
        is_none = parent.isValid() or self.shown is None
        return 0 if is_none else len(self.shown.found.clusters)

    def columnCount(self, parent: _Index = _TOP) -> int:
        """Return the number of genes."""
        is_none = parent.isValid() or self.shown is None
        return 0 if is_none else len(self.shown.found.genes)

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        """Return what Qt asks of a cell: its figures, as a tooltip."""
        if role != Qt.ItemDataRole.ToolTipRole or self.shown is None:
            return None
        shown, row, column = self.shown, index.row(), index.column()
        summary = shown.found.summary
        return (
            f"{shown.found.genes[column]} in {shown.names[row]}\n"
            f"mean {summary.means[row, column]:.3g}, "
            f"above 0 in {summary.shares[row, column]:.0%} of "
            f"{shown.found.sizes[row]:,}"
        )

    def headerData(
        self,
        section: int,
        orientation: Qt.Orientation,
        role: int = Qt.ItemDataRole.DisplayRole,
    ) -> object:
        """Return what Qt asks of a heading."""
        is_across = orientation == Qt.Orientation.Horizontal
        n_sections = self.columnCount() if is_across else self.rowCount()
        if self.shown is None or section >= n_sections:
            return None  # a heading may still have the sections of the former table
        if is_across:
            gene = self.shown.found.genes[section]
            tip = f"{gene}: click to colour the map by it."
            return self._heading(role, gene, tip, gene == self.gene)
        if role == Qt.ItemDataRole.DecorationRole and self._icons:
            return self._icons[section]
        name = self.shown.names[section]
        size = self.shown.found.sizes[section]
        tip = f"{name}: {size:,} points. Click to choose it, Ctrl-click to add it."
        is_chosen = self.shown.found.clusters[section] in self.chosen
        return self._heading(role, name, tip, is_chosen)

    def _heading(self, role: int, text: str, tip: str, is_marked: bool) -> object:
        if role == Qt.ItemDataRole.DisplayRole:
            return text
        if role == Qt.ItemDataRole.ToolTipRole:
            return tip
        if role == Qt.ItemDataRole.UserRole:
            return is_marked
        return None


class ExpressionTable(QTableView):
    """Draws an :class:`ExpressionModel`; names stay in view when it is scrolled."""

    cluster_picked = Signal(int, bool)
    """Id of a cluster, and whether it is added to the chosen ones."""
    gene_picked = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.expression = ExpressionModel()
        self.setModel(self.expression)
        self.painter = _Painter(self)
        self.setItemDelegate(self.painter)
        self.genes = _TurnedHeader(self)
        self.setHorizontalHeader(self.genes)
        self.names = _NameHeader(self)
        self.setVerticalHeader(self.names)
        self.setAccessibleName("Expression of genes in clusters")
        self.setShowGrid(False)
        self.setSelectionMode(QTableView.SelectionMode.NoSelection)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setHorizontalScrollMode(QTableView.ScrollMode.ScrollPerPixel)
        self.setCornerButtonEnabled(False)
        self.setFrameShape(QTableView.Shape.NoFrame)
        self.setMinimumSize(160, 110)
        self.clicked.connect(lambda index: self._pick_row(index.row()))
        self.names.sectionClicked.connect(self._pick_row)
        self.genes.sectionClicked.connect(self._pick_column)
        self.expression.modelReset.connect(self._arrange)

    def set_theme(self, colors: ThemeColors) -> None:
        """Take on the colours of napari's theme."""
        for part in (self.painter, self.genes, self.names):
            part.colors = colors
        ground = colors.background.name()
        self.setStyleSheet(
            f"QTableView, QTableCornerButton::section {{ background: {ground}; "
            "border: none; }"
        )
        self.viewport().update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Give rows and columns the room there is."""
        super().resizeEvent(event)
        self._arrange()

    def _arrange(self) -> None:
        n_rows, n_columns = self.expression.rowCount(), self.expression.columnCount()
        if not n_rows or not n_columns:
            return
        size = self.viewport().size()
        width = int(np.clip(size.width() // n_columns, NARROWEST, WIDEST))
        shown = self.expression.shown
        is_striped = shown is not None and shown.kind == "cells"
        lowest = LOWEST_STRIPES if is_striped else LOWEST
        height = max(lowest, min(size.height() // n_rows, HIGHEST))
        self.genes.setDefaultSectionSize(width)
        self.names.setDefaultSectionSize(height)

    def _pick_row(self, row: int) -> None:
        if self.expression.shown is None:
            return
        pressed = QApplication.keyboardModifiers()
        is_added = bool(pressed & Qt.KeyboardModifier.ControlModifier)
        self.cluster_picked.emit(self.expression.shown.found.clusters[row], is_added)

    def _pick_column(self, column: int) -> None:
        if self.expression.shown is not None:
            self.gene_picked.emit(self.expression.shown.found.genes[column])


class _Painter(QStyledItemDelegate):
    """Draws what one gene is in one cluster."""

    colors: ThemeColors | None = None

    def __init__(self, table: ExpressionTable) -> None:
        super().__init__(table)
        self._model = table.expression

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: _Index
    ) -> None:
        """Draw a cell of the table."""
        shown = self._model.shown
        if shown is None or self.colors is None:
            return
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        box = QRectF(option.rect)
        is_chosen = shown.found.clusters[index.row()] in self._model.chosen
        painter.fillRect(box, self._ground(is_chosen))
        if shown.kind == "dots":
            self._paint_dot(painter, box, shown, index)
        elif shown.kind == "matrix":
            inner = box.adjusted(0, 0, -1, -1)
            painter.fillRect(inner, self._model.color(index))
        else:
            painter.drawImage(box.adjusted(0, 0, -1, -2), self._stripes(shown, index))
        painter.restore()

    def _ground(self, is_chosen: bool) -> QColor:
        assert self.colors is not None
        return self.colors.foreground if is_chosen else self.colors.background

    def _paint_dot(
        self, painter: QPainter, box: QRectF, shown: Shown, index: _Index
    ) -> None:
        assert self.colors is not None
        share = shown.found.summary.shares[index.row(), index.column()]
        largest = min(box.width(), box.height()) / 2 - 1
        radius = largest * float(radius_share(np.nan_to_num(share)))
        if radius <= 0:
            return
        painter.setPen(QPen(self.colors.dim, 0.5))
        painter.setBrush(self._model.color(index))
        painter.drawEllipse(box.center() + QPointF(0.5, 0.5), radius, radius)

    def _stripes(self, shown: Shown, index: _Index) -> QImage:
        """Return a picture of one pixel for each cell, one above the other."""
        values = shown.shades.cells[index.row()][:, index.column()]
        rgba = value_colors(values, shown.shades.limits)
        pixels = np.ascontiguousarray((255 * rgba).round().astype(np.uint8))
        image = QImage(
            pixels.tobytes(), 1, len(pixels), 4, QImage.Format.Format_RGBA8888
        )
        return image.copy()  # the bytes end with this call


class _Header(QHeaderView):
    """Names that can be clicked; marked ones stand out."""

    colors: ThemeColors | None = None

    def __init__(self, orientation: Qt.Orientation, parent: QWidget) -> None:
        super().__init__(orientation, parent)
        self.setSectionsClickable(True)
        self.setHighlightSections(False)
        self.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.setMinimumSectionSize(8)

    def paintSection(self, painter: QPainter, rect: object, section: int) -> None:
        """Draw a name on the ground of the table."""
        if self.colors is None:
            return
        marked = self._asked(section, Qt.ItemDataRole.UserRole)
        painter.save()
        box = QRectF(rect)
        ground = self.colors.foreground if marked else self.colors.background
        painter.fillRect(box, ground)
        font = painter.font()
        font.setBold(bool(marked))
        painter.setFont(font)
        painter.setPen(self.colors.text)
        text = self._asked(section, Qt.ItemDataRole.DisplayRole)
        self._paint_name(painter, box, section, str(text or ""))
        painter.restore()

    def _asked(self, section: int, role: int) -> object:
        model = self.model()
        if model is None:
            return None  # the table is being deleted
        return model.headerData(section, self.orientation(), role)

    def _longest(self) -> int:
        role, n = Qt.ItemDataRole.DisplayRole, self.count()
        names = (str(self._asked(section, role) or "") for section in range(n))
        font = self.font()
        font.setBold(True)
        return max(map(self.fontMetrics().horizontalAdvance, names), default=0)

    def _paint_name(
        self, painter: QPainter, box: QRectF, section: int, name: str
    ) -> None:
        raise NotImplementedError

    def _cut(self, painter: QPainter, name: str, width: float) -> str:
        elided = Qt.TextElideMode.ElideRight
        return painter.fontMetrics().elidedText(name, elided, int(width))


class _TurnedHeader(_Header):
    """Names of genes, read from the bottom up."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(Qt.Orientation.Horizontal, parent)

    def sizeHint(self) -> QSize:
        """Return a height in which the longest name has room."""
        return QSize(0, min(TALLEST_NAME, self._longest() + 12))

    def _paint_name(
        self, painter: QPainter, box: QRectF, section: int, name: str
    ) -> None:
        painter.translate(box.center().x(), box.bottom() - 4)
        painter.rotate(-90)
        room = QRectF(0, -box.width() / 2, box.height() - 6, box.width())
        left = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
        painter.drawText(room, left, self._cut(painter, name, room.width()))


class _NameHeader(_Header):
    """Names of clusters, with their colours."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(Qt.Orientation.Vertical, parent)

    def sizeHint(self) -> QSize:
        """Return a width in which the longest name has room."""
        return QSize(min(WIDEST_NAME, self._longest() + 30), 0)

    def _paint_name(
        self, painter: QPainter, box: QRectF, section: int, name: str
    ) -> None:
        icon = self._asked(section, Qt.ItemDataRole.DecorationRole)
        if isinstance(icon, QIcon):
            side = 10
            corner = box.center().toPoint().y() - side // 2
            icon.paint(painter, int(box.left()) + 4, corner, side, side)
        room = box.adjusted(18, 0, -6, 0)
        left = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
        painter.drawText(room, left, self._cut(painter, name, room.width()))
