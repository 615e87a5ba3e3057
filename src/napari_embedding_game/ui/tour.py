"""A tour of the dock: a note that explains one framed control after another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from napari.settings import get_plugin_settings
from qtpy.QtCore import Qt, QTimer
from qtpy.QtGui import QKeySequence, QMouseEvent, QShortcut
from qtpy.QtWidgets import QFrame, QLabel, QScrollArea, QWidget

PLUGIN = "napari-embedding-game"
SOON_MS = 300
"""Between two looks at what is seen."""
BLUE = "#2f6fd6"
SHEET = f"background: {BLUE}; color: white; border-radius: 6px; padding: 7px;"
FRAME_SHEET = f"border: 2px solid {BLUE}; border-radius: 4px; background: transparent;"
HINT = "click here or Esc for the next"


class Stop(NamedTuple):
    """A control that the tour explains."""

    widget: QWidget
    text: Callable[[], str]
    """Returns what is said of it."""
    is_over: Callable[[], bool] = bool
    """Returns whether what it asks for is done; without, a click goes on."""
    is_due: Callable[[], bool] = lambda: True
    """Returns whether it can be explained by now."""


class Tour(QLabel):
    """Explains controls, each when it is seen first; a click or Escape goes on.

    The note has a place of its own in the dock, so that it covers neither the map nor
    a control; what it speaks of has a frame.
    """

    def __init__(self, stops: Sequence[Stop]) -> None:
        super().__init__()
        self._stops, self._left = tuple(stops), tuple(stops)[:0]
        self.setStyleSheet(SHEET)
        self.setWordWrap(True)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.frame = QFrame(self)
        """Around the control that is explained."""
        self.frame.setStyleSheet(FRAME_SHEET)
        self.frame.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._show_stop(None)
        self.looks = QTimer(self, interval=SOON_MS)
        self.looks.timeout.connect(self._explain_next)
        QShortcut(QKeySequence("Escape"), self, self.next_stop)

    def begin_once(self) -> None:
        """Begin, unless napari's preferences say that it has been seen."""
        settings = get_plugin_settings(PLUGIN).window
        if settings.shows_tour:
            settings.shows_tour = False
            self.begin()

    def begin(self) -> None:
        """Begin with what is seen now."""
        are_seen = [stop.widget.isVisible() for stop in self._stops]
        self._left = self._stops[are_seen.index(True) if any(are_seen) else 0 :]
        self.looks.start()

    def next_stop(self) -> None:
        """Leave a control for the next one."""
        self._left = self._left[1:]
        self._show_stop(None)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Go on."""
        self.next_stop()

    # Inside

    def _explain_next(self) -> None:
        """Explain the next control once it is seen, and leave one that hides."""
        if not self._left:
            self.looks.stop()
            return
        stop, is_seen = self._left[0], self._left[0].widget.isVisible()
        if stop.is_over() or (self.isVisible() and not is_seen):
            self.next_stop()
        elif is_seen and stop.is_due():
            self._show_stop(stop)

    def _show_stop(self, stop: Stop | None) -> None:
        """Show the note and the frame of a control; None: neither."""
        if stop is not None:
            number = len(self._stops) - len(self._left) + 1
            self.setText(f"{stop.text()}\n{number} of {len(self._stops)}: {HINT}")
            if self.frame.parent() is not stop.widget:
                self.frame.setParent(stop.widget)
                _scroll_to(stop.widget)
            self.frame.setGeometry(stop.widget.rect())
            self.frame.raise_()
        elif self.frame.parent() is not self:
            self.frame.setParent(self)
        self.frame.setVisible(stop is not None)
        self.setVisible(stop is not None)


def _scroll_to(widget: QWidget) -> None:
    """Scroll the area that a widget is in, if it is in one, until it is seen."""
    area = widget.parentWidget()
    while area is not None and not isinstance(area, QScrollArea):
        area = area.parentWidget()
    if area is not None:
        area.ensureWidgetVisible(widget)
