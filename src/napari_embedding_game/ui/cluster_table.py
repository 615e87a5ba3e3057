"""All clusters in a table: colour and name, size, pressure, purity."""

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
    QSize,
    QSortFilterProxyModel,
    Qt,
)
from qtpy.QtGui import QColor, QIcon
from qtpy.QtWidgets import QHeaderView, QTableView, QWidget

from napari_embedding_game.session.clustering import Cluster
from napari_embedding_game.session.selection import Selection
from napari_embedding_game.ui.cluster_colors import places
from napari_embedding_game.ui.colors import Colors
from napari_embedding_game.ui.legend import SWATCH, swatch

HEADINGS = ("Cluster", "Points", "Share", "Pressure", "Purity")
TIPS = (
    "Name of the cluster, or its number. Double-click to rename it.",
    "How many points it has.",
    "Share of all points.",
    "Mean pressure of its points: high where the plane is too tight for them.",
    "Share of its points that have its most frequent value of the column chosen "
    "at the right.",
)
NAME, SIZE, SHARE, PRESSURE, PURITY = range(5)
SORT_ROLE = int(Qt.ItemDataRole.UserRole)
ID_ROLE = SORT_ROLE + 1
_TOP = QModelIndex()


@dataclass(frozen=True, kw_only=True, eq=False)
class ClusterRows:
    """What the table shows, a row for each cluster."""

    clusters: tuple[Cluster, ...] = ()
    colors: Colors
    """(C, 4)"""
    pressure: NDArray[np.floating]
    """(C,) mean of its points."""
    purity: NDArray[np.floating]
    """(C,) share of its most frequent value; NaN where there is no column."""

    @classmethod
    def of(
        cls,
        clusters: tuple[Cluster, ...],
        colors: Colors,
        labels: NDArray[np.integer],
        pressure: NDArray[np.floating],
        levels: NDArray[np.integer] | None,
    ) -> ClusterRows:
        """Sum up the points of each cluster.

        Parameters
        ----------
        clusters : tuple of Cluster
        colors : array, shape (C, 4)
        labels : (n,) int
            Cluster id of each point.
        pressure : (n,) float
        levels : (n,) int, optional
            Number of each point's value of a metadata column, from 0.
        """
        ids = np.array([cluster.id for cluster in clusters], dtype=np.int64)
        order = np.argsort(ids)
        place = order[places(ids[order].tolist(), labels)]
        sizes = np.maximum(np.bincount(place, minlength=len(ids)), 1)
        return cls(
            clusters=clusters,
            colors=colors,
            pressure=np.bincount(place, pressure, len(ids)) / sizes,
            purity=_purity(place, levels, sizes),
        )


NO_ROWS = ClusterRows(colors=np.empty((0, 4)), pressure=np.empty(0), purity=np.empty(0))


class ClusterModel(QAbstractTableModel):
    """The clusters of one moment.

    Parameters
    ----------
    rename : callable
        Receives the id of a cluster and the name that was typed.
    """

    def __init__(self, rename: Callable[[int, str], None]) -> None:
        super().__init__()
        self._rename = rename
        self._rows = NO_ROWS
        self._swatches: list[QIcon] = []
        self.row_of: dict[int, int] = {}
        """Row of each cluster id."""

    def set_rows(self, rows: ClusterRows) -> None:
        """Show these clusters."""
        ids = [cluster.id for cluster in rows.clusters]
        same = ids == list(self.row_of)
        recolored = not np.array_equal(rows.colors, self._rows.colors)
        if not same:
            self.beginResetModel()
        self._rows = rows
        if recolored:
            self._swatches = [_icon(color) for color in rows.colors]
        if not same:
            self.row_of = {cluster: row for row, cluster in enumerate(ids)}
            self.endResetModel()
        elif ids:
            last = self.index(len(ids) - 1, len(HEADINGS) - 1)
            self.dataChanged.emit(self.index(0, 0), last)

    def rowCount(self, parent: QModelIndex = _TOP) -> int:
        """Return the number of clusters."""
        return 0 if parent.isValid() else len(self._rows.clusters)

    def columnCount(self, parent: QModelIndex = _TOP) -> int:
        """Return the number of columns."""
        return 0 if parent.isValid() else len(HEADINGS)

    def flags(self, index: QModelIndex) -> Qt.ItemFlag:
        """Return that names can be edited."""
        editable = Qt.ItemFlag.ItemIsEditable
        present = super().flags(index)
        return present | editable if index.column() == NAME else present

    def data(
        self, index: QModelIndex, role: int = Qt.ItemDataRole.DisplayRole
    ) -> object:
        """Return what Qt asks of a cell."""
        row, column = index.row(), index.column()
        cluster = self._rows.clusters[row]
        if role == SORT_ROLE:
            return row if column == NAME else float(self._value(row, column))
        if role == ID_ROLE:
            return cluster.id
        if role == Qt.ItemDataRole.DisplayRole:
            return cluster.name if column == NAME else self._text(row, column)
        if role == Qt.ItemDataRole.EditRole:
            return cluster.name
        if role == Qt.ItemDataRole.TextAlignmentRole:
            side = Qt.AlignmentFlag.AlignRight
            side = Qt.AlignmentFlag.AlignLeft if column == NAME else side
            return side | Qt.AlignmentFlag.AlignVCenter
        return self._name_data(row, role) if column == NAME else None

    def setData(
        self, index: QModelIndex, value: object, role: int = Qt.ItemDataRole.EditRole
    ) -> bool:
        """Rename a cluster."""
        if role != Qt.ItemDataRole.EditRole or index.column() != NAME:
            return False
        self._rename(self._rows.clusters[index.row()].id, str(value))
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
        texts = {
            Qt.ItemDataRole.DisplayRole: HEADINGS,
            Qt.ItemDataRole.ToolTipRole: TIPS,
        }
        return texts[role][section] if role in texts else None

    def _name_data(self, row: int, role: int) -> object:
        cluster = self._rows.clusters[row]
        if role == Qt.ItemDataRole.DecorationRole:
            return self._swatches[row]
        if role == Qt.ItemDataRole.ToolTipRole:
            return cluster.note or None
        return None

    def _value(self, row: int, column: int) -> float:
        rows = self._rows
        if column in (SIZE, SHARE):
            return rows.clusters[row].size
        value = rows.pressure[row] if column == PRESSURE else rows.purity[row]
        return -1.0 if np.isnan(value) else value

    def _text(self, row: int, column: int) -> str:
        value = self._value(row, column)
        if column == SIZE:
            return f"{value:,.0f}"
        if column == SHARE:
            return f"{value / sum(c.size for c in self._rows.clusters):.1%}"
        if column == PRESSURE:
            return f"{value:.2f}"
        return "" if value < 0 else f"{value:.0%}"


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
        self._sorted = QSortFilterProxyModel(self)
        self._sorted.setSortRole(SORT_ROLE)
        self._sorted.setSourceModel(self.clusters)
        self.setModel(self._sorted)
        self.setSelectionBehavior(QTableView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QTableView.SelectionMode.ExtendedSelection)
        triggers = QTableView.EditTrigger
        self.setEditTriggers(triggers.DoubleClicked | triggers.EditKeyPressed)
        self.setSortingEnabled(True)
        self.sortByColumn(SIZE, Qt.SortOrder.DescendingOrder)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self._dress()
        self.selectionModel().selectionChanged.connect(self._on_rows)
        selection.changed.connect(self._on_selection)

    def close_table(self) -> None:
        """Let go of the selection."""
        self._selection.changed.disconnect(self._on_selection)

    def set_rows(self, rows: ClusterRows) -> None:
        """Show these clusters; a name that is being typed is not disturbed."""
        if self.state() == QTableView.State.EditingState:
            return
        self._following = True
        self.clusters.set_rows(rows)
        self._following = False
        self._follow()

    def edit_name(self, cluster: int) -> None:
        """Open the editor for a cluster's name."""
        index = self._index(cluster)
        if index.isValid():
            flags = QItemSelectionModel.SelectionFlag
            self.selectionModel().setCurrentIndex(index, flags.NoUpdate)
            self.edit(index)

    def _dress(self) -> None:
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(22)
        self.setShowGrid(False)
        self.setWordWrap(False)
        header = self.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(NAME, QHeaderView.ResizeMode.Stretch)
        header.setMinimumSectionSize(44)
        header.setHighlightSections(False)
        self.setIconSize(QSize(SWATCH, SWATCH))
        self.setMinimumWidth(250)

    def _index(self, cluster: int) -> QModelIndex:
        row = self.clusters.row_of.get(cluster)
        if row is None:
            return QModelIndex()
        return self._sorted.mapFromSource(self.clusters.index(row, NAME))

    def _on_rows(self) -> None:
        if self._following:
            return
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


def _purity(
    place: NDArray[np.integer],
    levels: NDArray[np.integer] | None,
    sizes: NDArray[np.integer],
) -> NDArray[np.floating]:
    if levels is None or not len(levels):
        return np.full(len(sizes), np.nan)
    n_levels = int(levels.max()) + 1
    counts = np.bincount(place * n_levels + levels, minlength=len(sizes) * n_levels)
    return counts.reshape(-1, n_levels).max(axis=1) / sizes


def _icon(rgba: NDArray[np.floating]) -> QIcon:
    """Return a disc that keeps its colour in a selected row."""
    disc = swatch(rgba)
    icon = QIcon(disc)
    icon.addPixmap(disc, QIcon.Mode.Selected)
    return icon


def color_name(rgba: NDArray[np.floating]) -> str:
    """Return a colour as "#rrggbb"."""
    return QColor.fromRgbF(*(float(part) for part in rgba[:3])).name()
