"""Copy a table to the clipboard as tab-separated text."""

from __future__ import annotations

from qtpy.QtCore import Qt
from qtpy.QtGui import QKeyEvent, QKeySequence
from qtpy.QtWidgets import QApplication, QTableView


def is_copy(event: QKeyEvent) -> bool:
    """Return whether a key means Copy, as Ctrl+C does."""
    return event.matches(QKeySequence.StandardKey.Copy)


def copy_table(view: QTableView) -> None:
    """Put headings and all rows on the clipboard as they stand, hidden columns not."""
    model = view.model()
    columns = [c for c in range(model.columnCount()) if not view.isColumnHidden(c)]
    lines = [[model.headerData(c, Qt.Orientation.Horizontal) for c in columns]]
    for row in range(model.rowCount()):
        lines.append([model.index(row, column).data() for column in columns])
    cells = [["" if x is None else " ".join(str(x).split()) for x in y] for y in lines]
    QApplication.clipboard().setText("\n".join(map("\t".join, cells)))
