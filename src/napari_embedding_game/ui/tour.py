"""A tour of the window: a callout beside one widget after another, as they are seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from napari.settings import get_plugin_settings
from qtpy.QtCore import QEvent, QObject, QPoint, Qt, QTimer
from qtpy.QtGui import QKeySequence, QMouseEvent, QShortcut
from qtpy.QtWidgets import QLabel, QWidget

PLUGIN = "napari-embedding-game"
SOON_MS = 300
"""What has just come to be seen is laid out until then."""
WIDTH, GAP = 230, 10
SHEET = """
QLabel {
  background: #2f6fd6; color: white; border-radius: 6px; padding: 9px; font-size: 10pt;
}
"""
Stops = Sequence[tuple[QWidget, str, Callable[[], bool]]]


def never() -> bool:
    """Return False, for what is over once it was read."""
    return False


class Tour(QLabel):
    """Points at widgets, each when it is seen first; a click or Escape goes on.

    Parameters
    ----------
    dock : QWidget
        It goes with it.
    stops : sequence of (QWidget, str, callable)
        What it points at, in this order, what it says there, and whether that is
        over.
    """

    def __init__(self, dock: QWidget, stops: Stops) -> None:
        super().__init__(dock)
        self._stops, self._left = list(stops), list(stops)[:0]
        self.setStyleSheet(SHEET)
        self.setWordWrap(True)
        self.setFixedWidth(WIDTH)
        self.hide()
        self._soon = QTimer(self, singleShot=True, interval=SOON_MS)
        self._soon.timeout.connect(self._show)
        QShortcut(QKeySequence("Escape"), self, self.go_on)
        dock.destroyed.connect(self._end)  # once it stands in the window
        for widget, *_ in stops:
            widget.installEventFilter(self)

    def begin_once(self) -> None:
        """Begin, unless napari's preferences say that it has been seen."""
        settings = get_plugin_settings(PLUGIN).window
        if settings.shows_tour:
            settings.shows_tour = False
            self.begin()

    def begin(self) -> None:
        """Begin with what is seen now."""
        seen = [number for number, (w, *_) in enumerate(self._stops) if w.isVisible()]
        self._left = self._stops[seen[0] if seen else 0 :]
        self._soon.start()
        self.look()

    def go_on(self) -> None:
        """Leave a widget for the next one."""
        self._left = self._left[1:]
        self.hide()
        self._soon.start()

    def look(self, event: object = None) -> None:
        """Leave what is over."""
        n_left = len(self._left)
        while self._left and self._left[0][2]():
            self._left = self._left[1:]
        if len(self._left) < n_left:
            self.hide()
            self._soon.start()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Go on."""
        self.go_on()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Follow what is seen of the next widget."""
        if self._left and watched is self._left[0][0]:
            if event.type() == QEvent.Type.Show:
                self._soon.start()
            elif event.type() == QEvent.Type.Hide and self.isVisible():
                self.go_on()
        return False

    def _end(self) -> None:
        self._left = []
        self.deleteLater()

    def _show(self) -> None:
        """Stand to the left of the next widget, if it is seen."""
        if not self._left or not self._left[0][0].isVisible():
            return
        widget, text, _ = self._left[0]
        window, number = widget.window(), self._stops.index(self._left[0]) + 1
        self.setText(
            f"{text}  ▸<br><small>{number} of {len(self._stops)}: click, Esc</small>"
        )
        self.setParent(window)
        self.adjustSize()
        corner = widget.mapTo(window, QPoint(0, widget.height() // 2))
        beside = corner - QPoint(WIDTH + GAP, self.height() // 2)
        self.move(max(0, beside.x()), max(0, beside.y()))
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.raise_()
        self.show()
