"""Copy a table to the clipboard as tab-separated text."""

from __future__ import annotations

from qtpy.QtCore import Qt
from qtpy.QtGui import QKeyEvent, QKeySequence
from qtpy.QtWidgets import QApplication, QTableView


def is_copy(event: QKeyEvent) -> bool:
    """Return whether a key means Copy, as Ctrl+C does."""
    return event.matches(QKeySequence.StandardKey.Copy)


def copy_table(view: QTableView) -> None:
    """Put all rows of a table on the clipboard, in the order in which they stand."""
    clipboard = QApplication.clipboard()
    assert clipboard is not None
    clipboard.setText(as_text(view))


def as_text(view: QTableView) -> str:
    """Return headings and rows, a line each, with a tab between two cells.

    Columns that are hidden are left out.
    """
    model = view.model()
    assert model is not None
    columns = [c for c in range(model.columnCount()) if not view.isColumnHidden(c)]
    across = Qt.Orientation.Horizontal
    lines = [[model.headerData(column, across) for column in columns]]
    for row in range(model.rowCount()):
        lines.append([model.index(row, column).data() for column in columns])
    return "\n".join("\t".join(map(_cell, line)) for line in lines)


def _cell(value: object) -> str:
    return "" if value is None else " ".join(str(value).split())
