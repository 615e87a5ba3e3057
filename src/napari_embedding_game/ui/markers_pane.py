"""What sets the selected clusters apart: marker genes, or columns of any kind."""

from __future__ import annotations

from collections.abc import Callable, Generator

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from qtpy.QtCore import Qt
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

from napari_embedding_game.core.markers import MarkerTable, iter_markers
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.session.session import Session, sentence
from napari_embedding_game.ui.parts import show_text, text_label
from napari_embedding_game.ui.worker import StageWorker

HEADINGS = ("Name", "log2 fold", "p adjusted", "In", "Out")
TIPS = (
    "Click a row to colour the map by it.",
    "Log2 of how many times higher the mean is inside; of expression in logarithms "
    "the mean is taken back to counts first, as in scanpy.",
    "Chance to see such a difference where there is none, corrected for the number "
    "of names (Benjamini-Hochberg).",
    "Share of the selected points with a value above 0.",
    "Share of the compared points with a value above 0.",
)
REST = -1
LARGEST_LOG1P = 20.0
"""log1p of the largest count there is stays below this."""
SAMPLED = 100_000
"""Values that are enough to tell whether they were counted."""


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
        self.table = QTableWidget(0, len(HEADINGS))
        self._build()
        self.against.activated.connect(self.refresh)
        self.method.activated.connect(self.refresh)
        self.table.itemSelectionChanged.connect(self._on_row)

    def shut_down(self) -> None:
        """End the search."""
        self._cancel()

    def refresh(self) -> None:
        """Find the markers of what is selected, now or when it is next seen."""
        self._cancel()
        self._is_due = not self.isVisible()
        self._offer_clusters()
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
                dataset.profile,
                inside,
                outside,
                dataset.profile_names,
                method=method,
                log1p=is_log1p(dataset),
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
        table = self.table
        table.setHorizontalHeaderLabels(HEADINGS)
        for column, tip in enumerate(TIPS):
            table.horizontalHeaderItem(column).setToolTip(tip)
        table.verticalHeader().hide()
        table.verticalHeader().setDefaultSectionSize(20)
        table.setShowGrid(False)
        table.setSelectionBehavior(QTableWidget.SelectionBehavior.SelectRows)
        table.setSelectionMode(QTableWidget.SelectionMode.SingleSelection)
        table.setEditTriggers(QTableWidget.EditTrigger.NoEditTriggers)
        header = table.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        header.setMinimumSectionSize(40)
        header.setHighlightSections(False)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 4, 0, 0)
        layout.setSpacing(4)
        layout.addLayout(head)
        layout.addWidget(self.state)
        layout.addWidget(table, 1)

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

    def _show(self, found: MarkerTable) -> None:
        self._worker = None
        self.result = found
        show_text(self.state, "")
        self.table.blockSignals(True)
        self.table.clearSelection()
        self.table.setRowCount(len(found))
        for row in range(len(found)):
            for column, text in enumerate(_texts(found, row)):
                self.table.setItem(row, column, _item(text, is_name=column == 0))
        self.table.blockSignals(False)
        self.table.scrollToTop()

    def _on_row(self) -> None:
        rows = self.table.selectionModel().selectedRows()
        if rows:
            self._on_name(self.table.item(rows[0].row(), 0).text())


def is_log1p(dataset: Dataset) -> bool:
    """Return whether the profile is expression, and looks like log1p of counts.

    That is, from 0, never large, and no whole numbers.  The measures of a table may
    look the same without being any.
    """
    profile = dataset.profile
    values = profile.data if sp.issparse(profile) else profile.ravel()
    if not (dataset.has_expression and values.size):
        return False
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    has_zeros = sp.issparse(profile) or low == 0
    some = values[:: max(1, values.size // SAMPLED)]
    is_counted = np.array_equal(some, np.round(some))
    return has_zeros and low >= 0 and high < LARGEST_LOG1P and not is_counted


def _texts(found: MarkerTable, row: int) -> tuple[str, ...]:
    change = found.logfoldchanges[row]
    return (
        str(found.names[row]),
        f"{change:+.1f}" if np.isfinite(change) else "–",
        f"{found.pvals_adj[row]:.1e}",
        f"{found.pts[row]:.0%}",
        f"{found.pts_rest[row]:.0%}",
    )


def _item(text: str, *, is_name: bool) -> QTableWidgetItem:
    item = QTableWidgetItem(text)
    side = Qt.AlignmentFlag.AlignLeft if is_name else Qt.AlignmentFlag.AlignRight
    item.setTextAlignment(side | Qt.AlignmentFlag.AlignVCenter)
    return item
