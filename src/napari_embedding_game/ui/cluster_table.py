"""All clusters in a table: number, size, pressure; a click selects."""

from __future__ import annotations

import numpy as np
from qtpy.QtCore import (
    QAbstractTableModel,
    QItemSelection,
    QItemSelectionModel,
    QModelIndex,
    QSortFilterProxyModel,
    Qt,
)
from qtpy.QtWidgets import QHeaderView, QTableView, QWidget

from napari_embedding_game.core.types import Snapshot
from napari_embedding_game.session.selection import Selection

HEADINGS = ("Cluster", "Points", "Share", "Pressure")
TIPS = (
    "Number of the landmark.",
    "How many points are nearest to this landmark.",
    "Share of all points.",
    "Mean pressure of its points: high where the plane is too tight for them.",
)
SORT_ROLE = int(Qt.ItemDataRole.UserRole)
_TOP = QModelIndex()


class ClusterModel(QAbstractTableModel):
    """The clusters of one snapshot; row number is landmark number."""

    def __init__(self) -> None:
        super().__init__()
        self._columns = np.empty((4, 0))

    def set_snapshot(self, snapshot: Snapshot | None) -> None:
        """Count the points of every cluster."""
        columns = _columns(snapshot)
        if columns.shape != self._columns.shape:
            self.beginResetModel()
            self._columns = columns
            self.endResetModel()
        elif not np.array_equal(columns, self._columns):
            self._columns = columns
            last = self.index(self.rowCount() - 1, len(HEADINGS) - 1)
            self.dataChanged.emit(self.index(0, 0), last)

    def rowCount(self, parent: QModelIndex = _TOP) -> int:
        """Return the number of clusters."""
        return 0 if parent.isValid() else self._columns.shape[1]

    def columnCount(self, parent: QModelIndex = _TOP) -> int:
        """Return the number of columns."""
        return 0 if parent.isValid() else len(HEADINGS)

    def data(
        self, index: QModelIndex, role: int = Qt.ItemDataRole.DisplayRole
    ) -> object:
        """Return what Qt asks of a cell."""
        value = self._columns[index.column(), index.row()]
        if role == SORT_ROLE:
            return float(value)
        if role == Qt.ItemDataRole.DisplayRole:
            return _text(index.column(), float(value))
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        return None

    def headerData(
        self,
        section: int,
        orientation: Qt.Orientation,
        role: int = Qt.ItemDataRole.DisplayRole,
    ) -> object:
        """Return what Qt asks of a heading."""
        if orientation != Qt.Orientation.Horizontal:
            return None
        texts = {
            Qt.ItemDataRole.DisplayRole: HEADINGS,
            Qt.ItemDataRole.ToolTipRole: TIPS,
        }
        return texts[role][section] if role in texts else None


class ClusterTable(QTableView):
    """Shows the clusters and keeps its selected rows equal to a selection."""

    def __init__(self, selection: Selection, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._selection = selection
        self._following = False
        self.clusters = ClusterModel()
        self._sorted = QSortFilterProxyModel(self)
        self._sorted.setSortRole(SORT_ROLE)
        self._sorted.setSourceModel(self.clusters)
        self.setModel(self._sorted)
        self.setSelectionBehavior(QTableView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QTableView.SelectionMode.ExtendedSelection)
        self.setSortingEnabled(True)
        self.sortByColumn(1, Qt.SortOrder.DescendingOrder)
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(22)
        self.setShowGrid(False)
        self.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Stretch)
        self.setMinimumWidth(220)
        self.selectionModel().selectionChanged.connect(self._on_rows)
        selection.changed.connect(self._follow)

    def show_snapshot(self, snapshot: Snapshot | None) -> None:
        """Show the clusters of a snapshot, None for none."""
        self._following = True
        self.clusters.set_snapshot(snapshot)
        self._following = False
        self._follow()

    def _on_rows(self) -> None:
        if self._following:
            return
        rows = self.selectionModel().selectedRows()
        numbers = [self._sorted.mapToSource(row).row() for row in rows]
        self._selection.replace(numbers)

    def _follow(self) -> None:
        self._following = True
        wanted = QItemSelection()
        for cluster in self._selection.clusters:
            index = self._sorted.mapFromSource(self.clusters.index(cluster, 0))
            if index.isValid():
                wanted.select(index, index)
        flags = QItemSelectionModel.SelectionFlag
        self.selectionModel().select(wanted, flags.ClearAndSelect | flags.Rows)
        if wanted.indexes():
            self.scrollTo(wanted.indexes()[0])
        self._following = False


def _columns(snapshot: Snapshot | None) -> np.ndarray:
    """Return number, size, share and mean pressure of each cluster: (4, L)."""
    if snapshot is None:
        return np.empty((4, 0))
    labels, n_landmarks = snapshot.labels, len(snapshot.landmarks)
    sizes = np.bincount(labels, minlength=n_landmarks)[:n_landmarks]
    sums = np.bincount(labels, snapshot.pressure, n_landmarks)[:n_landmarks]
    means = sums / np.maximum(sizes, 1)
    return np.array([np.arange(n_landmarks), sizes, sizes / len(labels), means])


def _text(column: int, value: float) -> str:
    return (f"{value:.0f}", f"{value:,.0f}", f"{value:.1%}", f"{value:.2f}")[column]
