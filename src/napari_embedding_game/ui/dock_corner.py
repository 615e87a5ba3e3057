"""Give the lower right corner of the main window to the docks at the right."""

from __future__ import annotations

from weakref import ref

from qtpy.QtCore import Qt
from qtpy.QtWidgets import QMainWindow, QWidget

CORNER = Qt.Corner.BottomRightCorner
RIGHT = Qt.DockWidgetArea.RightDockWidgetArea


class DockCorner:
    """Lets the docks at the right reach down to the bottom, and gives that back.

    The main dock is long, while the inspector has room enough beside it.
    """

    def __init__(self) -> None:
        self._window: ref[QMainWindow] | None = None
        self._former = RIGHT

    def take(self, window: QWidget) -> None:
        """Take the corner of a main window; again, nothing happens."""
        if self._window is None and isinstance(window, QMainWindow):
            self._window, self._former = ref(window), window.corner(CORNER)
            window.setCorner(CORNER, RIGHT)

    def close(self) -> None:
        """Give the corner back as it was."""
        window = None if self._window is None else self._window()
        self._window = None
        if window is not None:
            window.setCorner(CORNER, self._former)
