"""Table of the marker genes, or columns, of the selected clusters."""

from __future__ import annotations

from collections.abc import Callable, Generator

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import Qt
from qtpy.QtGui import QKeyEvent
from qtpy.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QHeaderView,
    QLabel,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from napari_embedding_game.core.inspect.markers import MarkerTable, iter_markers
from napari_embedding_game.session.session import Session, sentence
from napari_embedding_game.ui.style.coloring import value_word
from napari_embedding_game.ui.style.copy_table import copy_table, is_copy
from napari_embedding_game.ui.style.form_widgets import show_text, text_label
from napari_embedding_game.ui.tasks.worker import StageWorker

HEADINGS = ("Column", "log2 fold", "p adj.", "In", "Out")
TIPS = (
    "Click a row to colour the map by it, a heading to sort. Ctrl+C copies the table.",
    "Log2 of how many times higher the mean is inside; of expression in logarithms "
    "the mean is taken back to counts first, as in scanpy.",
    "Adjusted p-value: chance to see such a difference where there is none, corrected "
    "for the number of names (Benjamini-Hochberg).",
    "Share of the selected points with a value above 0.",
    "Share of the compared points with a value above 0.",
)
REST = -1


class MarkersPane(QWidget):
    """A table of 20 markers; they are found in the background while it is seen.

    Parameters
    ----------
    session : Session
    on_name : callable
        Receives the name that was clicked.
    """

    def __init__(self, session: Session, on_name: Callable[[str], None]) -> None:
        super().__init__()
        self._session = session
        self._on_name = on_name
        self._worker: StageWorker | None = None
        self._is_due = False
        self.result: MarkerTable | None = None
        self.against = QComboBox()
        self.method = QComboBox()
        self.state = text_label()
        self.table = MarkersView()
        self._build()
        self.against.activated.connect(self.refresh)
        self.method.activated.connect(self.refresh)
        self.table.itemSelectionChanged.connect(self._on_row)

    def close(self) -> None:
        """End the search."""
        self._cancel()

    def refresh(self) -> None:
        """Find the markers of what is selected, now or when it is next seen."""
        self._cancel()
        self._is_due = not self.isVisible()
        self._offer_clusters()
        self._head()
        dataset, selection = self._session.dataset, self._session.selection
        if self._is_due or dataset is None or selection.is_empty:
            return
        if len(selection.rows) < 2:
            self._show_none("Select two or more points to find their markers.")
            return
        inside, outside = selection.points, self._outside()
        method = self.method.currentData()

        def find() -> Generator[float, None, MarkerTable]:
            return iter_markers(
                dataset.expression.values,
                inside,
                outside,
                dataset.profile_names,
                method=method,
                log1p=dataset.expression.is_log1p,
            )

        show_text(self.state, "Comparing …", "note")
        self._worker = StageWorker(find)
        self._worker.frame.connect(self._on_share)
        self._worker.returned.connect(self._show)
        self._worker.failed.connect(self._on_failed)
        self._worker.begin()

    def showEvent(self, event: object) -> None:
        """Catch up."""
        super().showEvent(event)
        if self._is_due:
            self.refresh()

    def _build(self) -> None:
        self.against.setToolTip("What the selected clusters are compared with.")
        self.against.setSizeAdjustPolicy(
            QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
        )
        self.against.setMinimumContentsLength(4)
        self.method.addItem("Wilcoxon", "wilcoxon")
        self.method.addItem("t-test", "t-test")
        self.method.setToolTip(
            "Wilcoxon compares ranks, the t-test means; both as in scanpy."
        )
        head = QHBoxLayout()
        head.addWidget(QLabel("Against"))
        head.addWidget(self.against, 1)
        head.addWidget(self.method)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 4, 0, 0)
        layout.setSpacing(4)
        layout.addLayout(head)
        layout.addWidget(self.state)
        layout.addWidget(self.table, 1)

    def _head(self) -> None:
        """Call the first column what its rows are: genes, measures or columns."""
        dataset = self._session.dataset
        if dataset is not None:
            word = value_word(dataset).capitalize()
            self.table.horizontalHeaderItem(0).setText(word)

    def _offer_clusters(self) -> None:
        """Offer the rest, and every cluster that is not selected."""
        present = self.against.currentData()
        self.against.clear()
        self.against.addItem("all the rest", REST)
        for cluster in self._session.clusters.clusters:
            if cluster.id not in self._session.selection.clusters:
                name = cluster.name if cluster.is_named else f"cluster {cluster.name}"
                self.against.addItem(name, cluster.id)
        self.against.setCurrentIndex(max(0, self.against.findData(present)))

    def _outside(self) -> NDArray[np.bool_] | None:
        other = self.against.currentData()
        if other == REST:
            return None
        selected = self._session.selection.points
        return (self._session.clusters.labels == other) & ~selected

    def _cancel(self) -> None:
        if self._worker is not None:
            self._worker.abandon()
            self._worker = None

    def _on_share(self, share: float) -> None:
        show_text(self.state, f"Comparing … {share:.0%}")

    def _on_failed(self, error: BaseException) -> None:
        self._worker = None
        self._show_none(sentence(error))

    def _show_none(self, why: str) -> None:
        self.result = None
        self.table.setRowCount(0)
        show_text(self.state, why, "note")

    def _show(self, markers: MarkerTable) -> None:
        self._worker = None
        self.result = markers
        dataset = self._session.dataset
        told = "" if dataset is None else dataset.expression.told
        show_text(self.state, told, "note")
        self.table.show_markers(markers)

    def _on_row(self) -> None:
        rows = self.table.selectionModel().selectedRows()
        if rows:
            self._on_name(self.table.item(rows[0].row(), 0).text())


class MarkersView(QTableWidget):
    """Markers, a row each: the highest score first, or in the order of a column."""

    def __init__(self) -> None:
        super().__init__(0, len(HEADINGS))
        self.setHorizontalHeaderLabels(HEADINGS)
        for column, tip in enumerate(TIPS):
            self.horizontalHeaderItem(column).setToolTip(tip)
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(20)
        self.setShowGrid(False)
        self.setSelectionBehavior(QTableWidget.SelectionBehavior.SelectRows)
        self.setSelectionMode(QTableWidget.SelectionMode.SingleSelection)
        self.setEditTriggers(QTableWidget.EditTrigger.NoEditTriggers)
        header = self.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        header.setMinimumSectionSize(40)
        header.setHighlightSections(False)
        header.setSortIndicator(-1, Qt.SortOrder.AscendingOrder)  # by score
        header.setSortIndicatorClearable(True)  # a third click: by score again
        self.setSortingEnabled(True)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Copy the table with Ctrl+C."""
        if is_copy(event):
            copy_table(self)
        else:
            super().keyPressEvent(event)

    def show_markers(self, markers: MarkerTable) -> None:
        """Show these markers, in the order that was chosen."""
        self.blockSignals(True)
        self.setSortingEnabled(False)  # or rows would move while they are filled
        self.clearSelection()
        self.setRowCount(len(markers))
        for row in range(len(markers)):
            numbers = (row, *_numbers(markers, row))
            texts = _texts(markers, row)
            for column, (text, number) in enumerate(zip(texts, numbers, strict=True)):
                item = MarkerItem(text, number, row, is_name=column == 0)
                self.setItem(row, column, item)
        self.setSortingEnabled(True)
        self.blockSignals(False)
        self.scrollToTop()


class MarkerItem(QTableWidgetItem):
    """A cell that is sorted by its number, not by the text; a name by its letters."""

    def __init__(self, text: str, number: float, rank: int, *, is_name: bool) -> None:
        super().__init__(text)
        self.number, self.rank, self._is_name = number, rank, is_name
        if is_name:
            self.setToolTip(text)  # a long one is cut in a small window
        side = Qt.AlignmentFlag.AlignLeft if is_name else Qt.AlignmentFlag.AlignRight
        self.setTextAlignment(side | Qt.AlignmentFlag.AlignVCenter)

    def __lt__(self, other: QTableWidgetItem) -> bool:
        """Whether it comes before another of its column; equals by their score."""
        assert isinstance(other, MarkerItem)
        view = self.tableWidget()
        if view is not None and view.horizontalHeader().sortIndicatorSection() < 0:
            return self.rank < other.rank
        if self._is_name:
            return self.text().casefold() < other.text().casefold()
        return (self.number, self.rank) < (other.number, other.rank)


def _texts(markers: MarkerTable, row: int) -> tuple[str, ...]:
    change = markers.logfoldchanges[row]
    return (
        str(markers.names[row]),
        f"{change:+.1f}" if np.isfinite(change) else "–",
        f"{markers.pvals_adj[row]:.1e}",
        f"{markers.pts[row]:.0%}",
        f"{markers.pts_rest[row]:.0%}",
    )


def _numbers(markers: MarkerTable, row: int) -> tuple[float, ...]:
    """Return what the columns behind the name are sorted by."""
    change = float(markers.logfoldchanges[row])
    return (
        change if np.isfinite(change) else -np.inf,
        float(markers.pvals_adj[row]),
        float(markers.pts[row]),
        float(markers.pts_rest[row]),
    )
