"""The list of clusters, which is their legend too: colour, name, size, misplaced."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import (
    QAbstractTableModel,
    QItemSelection,
    QItemSelectionModel,
    QModelIndex,
    QRectF,
    QSize,
    Qt,
)
from qtpy.QtGui import QColor, QFont, QIcon, QKeyEvent, QPainter
from qtpy.QtWidgets import (
    QHeaderView,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
    QWidget,
)

from napari_embedding_game.core.snapshot import FAR
from napari_embedding_game.session.clusters.clustering import Cluster
from napari_embedding_game.session.selection import Selection
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.inspector.table import heading
from napari_embedding_game.ui.style.cluster_colors import places
from napari_embedding_game.ui.style.colors import Colors
from napari_embedding_game.ui.style.copy_table import copy_table, is_copy
from napari_embedding_game.ui.style.legend import SWATCH, qcolor, swatch
from napari_embedding_game.ui.style.texts import STRETCH_MEANS, share_text

HEADINGS = ("Cluster", "Points", "Misplaced")
TIPS = (
    "Name of the cluster, or its number. Double-click to rename it.",
    "How many points it has.",
    f"Share of its points that lie far from similar points. By {STRETCH_MEANS}",
)
NAME, SIZE, MISPLACED = range(3)
ID_ROLE = int(Qt.ItemDataRole.UserRole)
BAR_ROLE = ID_ROLE + 1
"""Length of the bar behind a number, 0 to 1, and its colour."""
ROW, HEAD = 22, 26
"""Pixels of a row and of the heading."""
MOST_ROWS = 14
"""Rows that are seen without scrolling."""
MANY_MISPLACED = 0.02
"""Share from which on it is written in the colour of a warning."""
_TOP = QModelIndex()


@dataclass(frozen=True, kw_only=True, eq=False)
class ClusterRows:
    """What the list shows, a row for each cluster."""

    clusters: tuple[Cluster, ...] = ()
    colors: Colors
    """(C, 4)"""
    misplaced: NDArray[np.floating]
    """(C,) share of points far from their neighbours; NaN where it is not known."""
    is_colored: bool = True
    """Whether the map shows the colours of the clusters."""
    hidden: frozenset[str] = frozenset()
    """Ids of the clusters whose points are not drawn."""

    @property
    def sizes(self) -> NDArray[np.integer]:
        """(C,) number of points."""
        return np.array([cluster.size for cluster in self.clusters], dtype=np.int64)


NO_CLUSTERS = ClusterRows(colors=np.empty((0, 4)), misplaced=np.empty(0))


def misplaced_shares(
    clusters: tuple[Cluster, ...],
    labels: NDArray[np.integer],
    stretch: NDArray[np.floating] | None,
) -> NDArray[np.floating]:
    """Return the share of misplaced points of each cluster, (C,); NaN if not known.

    Parameters
    ----------
    clusters : tuple of Cluster
    labels : (n,) int
        Cluster id of each point.
    stretch : (n,) float, optional
    """
    if stretch is None:
        return np.full(len(clusters), np.nan)
    ids = np.array([cluster.id for cluster in clusters], np.int64)
    order = np.argsort(ids)
    found = places(ids[order].tolist(), labels[stretch > FAR])
    far = np.empty(len(ids))
    far[order] = np.bincount(found, minlength=len(ids))
    return far / np.maximum([cluster.size for cluster in clusters], 1)


class ClusterModel(QAbstractTableModel):
    """The clusters of one moment, in the order of any column.

    They are sorted here: a proxy of Qt's would compare them one by one in Python.

    Parameters
    ----------
    rename : callable
        Receives the id of a cluster and the name that was typed.
    """

    def __init__(self, rename: Callable[[int, str], None]) -> None:
        super().__init__()
        self._rename = rename
        self._rows = NO_CLUSTERS
        self._swatches: list[QIcon] = []
        self.warning = QColor("orange")
        """Of many misplaced points, as the theme has it."""
        self._column, self._descends = SIZE, True
        self._order: list[int] = []
        """Place among the clusters of what each row shows."""
        self.row_of: dict[int, int] = {}
        """Row of each cluster id."""

    @property
    def ids(self) -> list[int]:
        """Cluster id of each row."""
        return list(self.row_of)

    def set_rows(self, rows: ClusterRows) -> None:
        """Show these clusters."""
        if not np.array_equal(rows.colors, self._rows.colors):
            self._swatches = [_icon(color) for color in rows.colors]
        if {cluster.id for cluster in rows.clusters} == self.row_of.keys():
            self._take(rows)
        else:
            self.beginResetModel()
            self._rows = rows
            self._arrange()
            self.endResetModel()

    def sort(
        self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder
    ) -> None:
        """Put the rows in the order of a column; called by the view."""
        self._column = column
        self._descends = order == Qt.SortOrder.DescendingOrder
        self._take(self._rows)

    def _take(self, rows: ClusterRows) -> None:
        """Take over other figures of the same clusters."""
        before, held = self.ids, self.persistentIndexList()
        self.layoutAboutToBeChanged.emit()
        self._rows = rows
        self._arrange()
        moved = [self.index(self.row_of[before[i.row()]], i.column()) for i in held]
        self.changePersistentIndexList(held, moved)
        self.layoutChanged.emit()

    def _arrange(self) -> None:
        rows, column = self._rows, self._column
        values = (np.arange(len(rows.clusters)), rows.sizes, rows.misplaced)[column]
        values = np.nan_to_num(values, nan=-1)
        order = np.argsort(-values if self._descends else values, kind="stable")
        self._order = order.tolist()
        self.row_of = {rows.clusters[i].id: row for row, i in enumerate(self._order)}

    def rowCount(self, parent: QModelIndex = _TOP) -> int:
        """Return the number of clusters."""
        return 0 if parent.isValid() else len(self._rows.clusters)

    def columnCount(self, parent: QModelIndex = _TOP) -> int:
        """Return the number of columns."""
        return 0 if parent.isValid() else len(HEADINGS)

    def flags(self, index: QModelIndex) -> Qt.ItemFlag:
        """Return that names can be edited."""
        present = super().flags(index)
        is_name = index.column() == NAME
        return present | Qt.ItemFlag.ItemIsEditable if is_name else present

    def data(
        self, index: QModelIndex, role: int = Qt.ItemDataRole.DisplayRole
    ) -> object:
        """Return what Qt asks of a cell."""
        number, column = self._order[index.row()], index.column()
        cluster, roles = self._rows.clusters[number], Qt.ItemDataRole
        if role == ID_ROLE:
            return cluster.id
        if role == roles.TextAlignmentRole:
            side = Qt.AlignmentFlag.AlignRight
            side = Qt.AlignmentFlag.AlignLeft if column == NAME else side
            return side | Qt.AlignmentFlag.AlignVCenter
        if column == NAME:
            return self._of_name(number, role)
        if column == SIZE:
            if role == BAR_ROLE:
                largest = max(int(self._rows.sizes.max()), 1)
                return cluster.size / largest, qcolor(self._rows.colors[number])
            return f"{cluster.size:,}" if role == roles.DisplayRole else None
        share = float(self._rows.misplaced[number])
        if role == roles.ForegroundRole and share >= MANY_MISPLACED:
            return self.warning
        is_known = role == roles.DisplayRole and not np.isnan(share)
        return share_text(share) if is_known else None

    def _of_name(self, number: int, role: int) -> object:
        cluster, roles = self._rows.clusters[number], Qt.ItemDataRole
        if role == roles.FontRole:
            font = QFont()
            font.setStrikeOut(str(cluster.id) in self._rows.hidden)
            return font
        if role in (roles.DisplayRole, roles.EditRole):
            return cluster.name
        if role == roles.DecorationRole:
            return self._swatches[number] if self._rows.is_colored else None
        return (cluster.note or None) if role == roles.ToolTipRole else None

    def setData(
        self, index: QModelIndex, value: object, role: int = Qt.ItemDataRole.EditRole
    ) -> bool:
        """Rename a cluster."""
        if role != Qt.ItemDataRole.EditRole or index.column() != NAME:
            return False
        self._rename(self.ids[index.row()], str(value))
        return True

    def headerData(
        self,
        section: int,
        orientation: Qt.Orientation,
        role: int = Qt.ItemDataRole.DisplayRole,
    ) -> object:
        """Return what Qt asks of a heading."""
        if orientation != Qt.Orientation.Horizontal:
            return None
        return heading(HEADINGS[section], TIPS[section], role)


class SizeBar(QStyledItemDelegate):
    """Paints a bar behind a number."""

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex
    ) -> None:
        """Paint the bar, then the number."""
        length, color = index.data(BAR_ROLE)
        room = QRectF(option.rect).adjusted(4, 4, -4, -4)
        room.setWidth(max(length * room.width(), 2.0))
        super().paint(painter, option, index)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        color.setAlphaF(0.45)
        painter.setBrush(color)
        painter.drawRoundedRect(room, 2, 2)
        painter.restore()


class ClusterTable(QTableView):
    """Shows the clusters and keeps its selected rows equal to a selection.

    Parameters
    ----------
    selection : Selection
    rename : callable
        Receives the id of a cluster and the name that was typed.
    """

    def __init__(
        self,
        selection: Selection,
        rename: Callable[[int, str], None],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._selection = selection
        self._following = False
        self.clusters = ClusterModel(rename)
        self.setModel(self.clusters)
        self.setItemDelegateForColumn(SIZE, SizeBar(self))
        self.setSelectionBehavior(QTableView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QTableView.SelectionMode.ExtendedSelection)
        triggers = QTableView.EditTrigger
        self.setEditTriggers(triggers.DoubleClicked | triggers.EditKeyPressed)
        self.setSortingEnabled(True)
        self.sortByColumn(SIZE, Qt.SortOrder.DescendingOrder)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self._dress()
        self.selectionModel().selectionChanged.connect(self._on_rows)
        self._connections = Connections(self)
        self._connections.connect(selection.changed, self._on_selection)

    def set_rows(self, rows: ClusterRows) -> None:
        """Show these clusters; a name that is being typed is not disturbed."""
        if self.state() == QTableView.State.EditingState:
            return
        self._following = True
        n_before = self.clusters.rowCount()
        self.clusters.set_rows(rows)
        self._following = False
        self._follow()
        self.setColumnHidden(MISPLACED, bool(np.isnan(rows.misplaced).any()))
        if self.clusters.rowCount() != n_before:
            self.updateGeometry()

    def sizeHint(self) -> QSize:
        """Return room for every row, up to some."""
        n_rows = min(max(self.clusters.rowCount(), 3), MOST_ROWS)
        return QSize(250, HEAD + ROW * n_rows + 2)

    def minimumSizeHint(self) -> QSize:
        """Return the same: the tab is scrolled, not its list."""
        return self.sizeHint()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Copy the table with Ctrl+C; letters look for a cluster."""
        if is_copy(event):
            copy_table(self)
        else:
            super().keyPressEvent(event)

    def edit_name(self, cluster: int) -> None:
        """Open the editor for a cluster's name."""
        index = self._index(cluster)
        if index.isValid():
            flags = QItemSelectionModel.SelectionFlag
            self.selectionModel().setCurrentIndex(index, flags.NoUpdate)
            self.edit(index)

    def _dress(self) -> None:
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(ROW)
        self.setShowGrid(False)
        self.setWordWrap(False)
        header = self.horizontalHeader()
        # A width that follows the contents would look at all of them each time.
        header.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        header.setSectionResizeMode(NAME, QHeaderView.ResizeMode.Stretch)
        header.setFixedHeight(HEAD)
        header.setHighlightSections(False)
        header.resizeSection(SIZE, 88)
        header.resizeSection(MISPLACED, 78)
        self.setIconSize(QSize(SWATCH, SWATCH))

    def _index(self, cluster: int) -> QModelIndex:
        row = self.clusters.row_of.get(cluster)
        return QModelIndex() if row is None else self.clusters.index(row, NAME)

    def _on_rows(self) -> None:
        if not self._following:
            rows = self.selectionModel().selectedRows()
            self._selection.replace([row.data(ID_ROLE) for row in rows])

    def _on_selection(self) -> None:
        self._follow()
        # Not at each update of a running game: a person may be scrolling.
        for cluster in self._selection.clusters[:1]:
            self.scrollTo(self._index(cluster))

    def _follow(self) -> None:
        self._following = True
        wanted = QItemSelection()
        for cluster in self._selection.clusters:
            index = self._index(cluster)
            if index.isValid():
                wanted.select(index, index)
        flags = QItemSelectionModel.SelectionFlag
        self.selectionModel().select(wanted, flags.ClearAndSelect | flags.Rows)
        self._following = False


def _icon(rgba: NDArray[np.floating]) -> QIcon:
    """Return a disc that keeps its colour in a selected row."""
    disc = swatch(rgba)
    icon = QIcon(disc)
    icon.addPixmap(disc, QIcon.Mode.Selected)
    return icon
