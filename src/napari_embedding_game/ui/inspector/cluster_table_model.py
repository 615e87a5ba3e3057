"""Qt table model of the clusters."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import QAbstractTableModel, QModelIndex, Qt
from qtpy.QtGui import QIcon

from napari_embedding_game.ui.inspector.cluster_statistics import (
    NO_CLUSTERS,
    ClusterStatistics,
)
from napari_embedding_game.ui.style.legend import swatch
from napari_embedding_game.ui.style.pressure_texts import PRESSURE_MEANS
from napari_embedding_game.ui.style.stretch_texts import STRETCH_MEANS, share_text

HEADINGS = ("Cluster", "Points", "Share", "Far", "Squeezed", "Purity")
TIPS = (
    "Name of the cluster, or its number. Double-click to rename it.",
    "How many points it has.",
    "Share of all points.",
    f"Share of its points that lie far from similar points. By {STRETCH_MEANS}",
    f"How squeezed its points are: mean {PRESSURE_MEANS}",
    "Share of its points that have its most frequent value of {}, the column chosen "
    "at the right.",
)
NAME, SIZE, SHARE, STRETCH, PRESSURE, PURITY = range(6)
ID_ROLE = int(Qt.ItemDataRole.UserRole)
_TOP = QModelIndex()


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
        self._column, self._descends = SIZE, True
        self._is_short = False
        """Whether the heading of the purity has no name of a column in it."""
        self._order: list[int] = []
        """Place among the clusters of what each row shows."""
        self.row_of: dict[int, int] = {}
        """Row of each cluster id."""

    @property
    def ids(self) -> list[int]:
        """Cluster id of each row."""
        return list(self.row_of)

    def set_rows(self, rows: ClusterStatistics) -> None:
        """Show these clusters."""
        is_other = rows.column != self._rows.column
        if not np.array_equal(rows.colors, self._rows.colors):
            self._swatches = [_icon(color) for color in rows.colors]
        same = {cluster.id for cluster in rows.clusters} == self.row_of.keys()
        if same:
            self._take(rows)
        else:
            self.beginResetModel()
            self._rows = rows
            self._arrange()
            self.endResetModel()
        if is_other:
            self._tell_heading()

    def shorten_heading(self, is_short: bool) -> None:
        """Leave the name of the column out of the heading; its tooltip has it."""
        if is_short != self._is_short:
            self._is_short = is_short
            self._tell_heading()

    def _tell_heading(self) -> None:
        self.headerDataChanged.emit(Qt.Orientation.Horizontal, PURITY, PURITY)

    def sort(
        self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder
    ) -> None:
        """Put the rows in the order of a column; called by the view."""
        self._column = column
        self._descends = order == Qt.SortOrder.DescendingOrder
        self._take(self._rows)

    @property
    def purity_of(self) -> str:
        """The metadata column that purity is of; "" for none."""
        return self._rows.column

    def _take(self, rows: ClusterStatistics) -> None:
        """Take over other figures of the same clusters."""
        before, held = self.ids, self.persistentIndexList()
        self.layoutAboutToBeChanged.emit()
        self._rows = rows
        self._arrange()
        moved = [self.index(self.row_of[before[i.row()]], i.column()) for i in held]
        self.changePersistentIndexList(held, moved)
        self.layoutChanged.emit()

    def _arrange(self) -> None:
        values = self._values(self._column)
        order = np.argsort(-values if self._descends else values, kind="stable")
        self._order = order.tolist()
        clusters = self._rows.clusters
        self.row_of = {clusters[i].id: row for row, i in enumerate(self._order)}

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
        row, column = self._order[index.row()], index.column()
        cluster = self._rows.clusters[row]
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
        if role == Qt.ItemDataRole.ToolTipRole and column == PURITY:
            return self._purity_tip(row)
        return self._name_data(row, role) if column == NAME else None

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
        column = self._rows.column
        if role == Qt.ItemDataRole.ToolTipRole:
            return TIPS[section].format(column)
        if role != Qt.ItemDataRole.DisplayRole:
            return None
        has_name = section == PURITY and column and not self._is_short
        return f"{HEADINGS[section]} ({column})" if has_name else HEADINGS[section]

    def _name_data(self, row: int, role: int) -> object:
        cluster = self._rows.clusters[row]
        if role == Qt.ItemDataRole.DecorationRole:
            return self._swatches[row] if self._rows.is_colored else None
        if role == Qt.ItemDataRole.ToolTipRole:
            return cluster.note or None
        return None

    def _purity_tip(self, row: int) -> str | None:
        rows = self._rows
        if not rows.most_frequent:
            return None
        return f"{rows.purity[row]:.0%} {rows.most_frequent[row]}"

    def _values(self, column: int) -> NDArray[np.number]:
        """Return what the rows are sorted by, for each cluster."""
        rows = self._rows
        if column == NAME:
            return np.arange(len(rows.clusters))
        if column == STRETCH:
            return np.nan_to_num(rows.stretched, nan=-1)
        if column == PRESSURE:
            return rows.pressure
        return np.nan_to_num(rows.purity, nan=-1) if column == PURITY else rows.sizes

    def _text(self, row: int, column: int) -> str:
        rows = self._rows
        if column == SIZE:
            return f"{rows.sizes[row]:,}"
        if column == SHARE:
            return f"{rows.sizes[row] / rows.sizes.sum():.1%}"
        if column == STRETCH:
            return share_text(rows.stretched[row]) if rows.has_stretch else ""
        if column == PRESSURE:
            return f"{rows.pressure[row]:.2f}" if rows.has_pressure else ""
        return "" if np.isnan(rows.purity[row]) else f"{rows.purity[row]:.0%}"


def _icon(rgba: NDArray[np.floating]) -> QIcon:
    """Return a disc that keeps its colour in a selected row."""
    disc = swatch(rgba)
    icon = QIcon(disc)
    icon.addPixmap(disc, QIcon.Mode.Selected)
    return icon
