"""A tour of the window: a callout beside one widget after another, as they are seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from napari.settings import get_plugin_settings
from qtpy.QtCore import QPoint, Qt, QTimer
from qtpy.QtGui import QKeySequence, QMouseEvent, QShortcut
from qtpy.QtWidgets import QLabel, QWidget

PLUGIN = "napari-embedding-game"
SOON_MS = 300
"""Between two looks at what is seen."""
WIDTH, GAP = 230, 10
SHEET = "background: #2f6fd6; color: white; border-radius: 6px; padding: 9px;"
Stops = Sequence[tuple[QWidget, str, Callable[[], bool]]]
never = bool
"""What is over once it was read."""


class Tour(QLabel):
    """Points at widgets, each when it is seen first; a click or Escape goes on.

    It stands at the left of ``dock``, and goes with it.  ``stops``: what it points at,
    in this order, what it says there, and whether that is over.
    """

    def __init__(self, dock: QWidget, stops: Stops) -> None:
        super().__init__(dock)
        self._dock, self._stops, self._left = dock, stops, list(stops)[:0]
        self.setStyleSheet(SHEET)
        self.setWordWrap(True)
        self.setFixedWidth(WIDTH)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.hide()
        self._looks = QTimer(self, interval=SOON_MS)
        self._looks.timeout.connect(self._look)
        QShortcut(QKeySequence("Escape"), self, self.next_stop)
        dock.destroyed.connect(self._end)  # once it stands in the window

    def begin_once(self) -> None:
        """Begin, unless napari's preferences say that it has been seen."""
        settings = get_plugin_settings(PLUGIN).window
        if settings.shows_tour:
            settings.shows_tour = False
            self.begin()

    def begin(self) -> None:
        """Begin with what is seen now."""
        seen = [number for number, (w, *_) in enumerate(self._stops) if w.isVisible()]
        self._left = list(self._stops)[seen[0] if seen else 0 :]
        self._looks.start()

    def next_stop(self) -> None:
        """Leave a widget for the next one."""
        self._left = self._left[1:]
        self.hide()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Go on."""
        self.next_stop()

    def _end(self) -> None:
        self._looks.stop()
        self.deleteLater()

    def _look(self) -> None:
        """Stand beside the dock, as high as the next widget, while that is seen."""
        if not self._left:
            self._looks.stop()
            return
        widget, text, is_over = self._left[0]
        if is_over() or (self.isVisible() and not widget.isVisible()):
            self.next_stop()
        elif widget.isVisible():
            window, number = widget.window(), len(self._stops) - len(self._left) + 1
            steps = f"<small>{number} of {len(self._stops)}: click, Esc</small>"
            self.setText(f"{text}&nbsp;▸<br>{steps}")
            if self.parent() is not window:
                self.setParent(window)
            self.adjustSize()
            left = self._dock.mapTo(window, QPoint()).x() - WIDTH - GAP
            middle = widget.mapTo(window, QPoint(0, widget.height() // 2)).y()
            self.move(max(0, left), max(0, middle - self.height() // 2))
            self.raise_()
            self.show()
