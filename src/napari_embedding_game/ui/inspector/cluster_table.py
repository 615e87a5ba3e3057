"""All clusters in a table: colour and name, size, stretch, pressure, purity."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from qtpy.QtCore import QItemSelection, QItemSelectionModel, QModelIndex, QSize, Qt
from qtpy.QtGui import QKeyEvent, QResizeEvent
from qtpy.QtWidgets import QHeaderView, QTableView, QWidget

from napari_embedding_game.session.selection import Selection
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.inspector.cluster_statistics import ClusterStatistics
from napari_embedding_game.ui.inspector.cluster_table_model import (
    ID_ROLE,
    NAME,
    PRESSURE,
    PURITY,
    SHARE,
    SIZE,
    STRETCH,
    ClusterModel,
)
from napari_embedding_game.ui.style.copy_table import copy_table, is_copy
from napari_embedding_game.ui.style.legend import SWATCH

NARROW = 400
"""Pixels below which the share makes room: it follows from the points."""
WIDE = 540
"""Pixels from which there is room for the pressure as well."""
LONGEST_HEADING = 150
"""Pixels for the heading that has the name of a column in it; its tooltip has all."""
ALL, MARGIN = "100.0%", 14
"""The longest share, and the pixels around a number in its cell."""


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
        self._has_pressure = False
        self._total = ""
        """Number of all points, the longest of its column."""
        self.clusters = ClusterModel(rename)
        self.setModel(self.clusters)
        self.setSelectionBehavior(QTableView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QTableView.SelectionMode.ExtendedSelection)
        triggers = QTableView.EditTrigger
        self.setEditTriggers(triggers.DoubleClicked | triggers.EditKeyPressed)
        self.setSortingEnabled(True)
        self.sortByColumn(SIZE, Qt.SortOrder.DescendingOrder)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self._dress()
        self.selectionModel().selectionChanged.connect(self._on_rows)
        self._connections = Connections()
        self._connections.connect(selection.changed, self._on_selection)

    def close(self) -> None:
        """Undo the connection to the selection."""
        self._connections.close()

    def set_rows(self, rows: ClusterStatistics) -> None:
        """Show these clusters; a name that is being typed is not disturbed."""
        if self.state() == QTableView.State.EditingState:
            return
        self._following = True
        self.clusters.set_rows(rows)
        self._following = False
        self._follow()
        self.setColumnHidden(PURITY, bool(np.isnan(rows.purity).all()))
        self.setColumnHidden(STRETCH, not rows.has_stretch)
        self._has_pressure = rows.has_pressure
        self._hide_columns()
        self._total = f"{rows.sizes.sum():,}"
        self._fit_columns()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Leave a column out where there is no room for all."""
        super().resizeEvent(event)
        self._hide_columns()
        self._fit_columns()  # one that was hidden had no width

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
        self.verticalHeader().setDefaultSectionSize(22)
        self.setShowGrid(False)
        self.setWordWrap(False)
        header = self.horizontalHeader()
        # A width that follows the contents would look at all of them each time.
        header.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        header.setSectionResizeMode(NAME, QHeaderView.ResizeMode.Stretch)
        header.setMinimumSectionSize(44)
        header.setHighlightSections(False)
        header.setTextElideMode(Qt.TextElideMode.ElideRight)
        self.setIconSize(QSize(SWATCH, SWATCH))
        self.setMinimumWidth(250)

    def _hide_columns(self) -> None:
        """Leave out what there is no room for."""
        width = self.viewport().width()
        self.setColumnHidden(SHARE, width < NARROW)
        self.setColumnHidden(PRESSURE, width < WIDE or not self._has_pressure)

    def _fit_columns(self) -> None:
        """Give each column the width of its heading or of the longest number."""
        header, metrics = self.horizontalHeader(), self.fontMetrics()
        numbers = ((SIZE, self._total), (SHARE, ALL), (STRETCH, ALL), (PRESSURE, ALL))
        for column, longest in numbers:
            text = metrics.horizontalAdvance(longest) + MARGIN
            header.resizeSection(column, max(header.sectionSizeHint(column), text))
        self._fit_purity()

    def _fit_purity(self) -> None:
        """Name the column in the heading where there is room for it."""
        header = self.horizontalHeader()
        self.clusters.shorten_heading(self.width() < NARROW)
        width = header.sectionSizeHint(PURITY)
        header.resizeSection(PURITY, min(width, LONGEST_HEADING))

    def _index(self, cluster: int) -> QModelIndex:
        row = self.clusters.row_of.get(cluster)
        if row is None:
            return QModelIndex()
        return self.clusters.index(row, NAME)

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
