"""A tour of the dock: a note explains one control after another, which has a frame.

The stops and their words are in ``GameDock._make_tour_stops``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from napari.settings import get_plugin_settings
from qtpy.QtCore import Qt, QTimer
from qtpy.QtGui import QKeySequence, QMouseEvent, QShortcut
from qtpy.QtWidgets import QFrame, QLabel, QScrollArea, QWidget

PLUGIN = "napari-embedding-game"
SOON_MS = 300
"""Milliseconds between two checks which controls are visible."""
BLUE = "#2f6fd6"
SHEET = f"background: {BLUE}; color: white; border-radius: 6px; padding: 7px;"
FRAME_SHEET = f"border: 2px solid {BLUE}; border-radius: 4px; background: transparent;"
HINT = "click here or Esc for the next"


class TourStop(NamedTuple):
    """A control that the tour explains."""

    widget: QWidget
    text: Callable[[], str]
    """Returns the text of the note."""
    is_done: Callable[[], bool] = bool
    """Returns whether the requested action is done; by default never."""
    is_ready: Callable[[], bool] = lambda: True
    """Returns whether the control can be explained now; by default always."""


class Tour(QLabel):
    """A note that explains controls, each when it is first visible.

    A click or Escape goes to the next control.  The note has its own place in the dock,
    so that the note covers neither the map nor a control; the explained control has a
    frame.
    """

    def __init__(self, stops: Sequence[TourStop]) -> None:
        super().__init__()
        self._stops, self._remaining_stops = tuple(stops), tuple(stops)[:0]
        self.setStyleSheet(SHEET)
        self.setWordWrap(True)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.frame = QFrame(self)
        """The frame around the explained control."""
        self.frame.setStyleSheet(FRAME_SHEET)
        self.frame.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._show_stop(None)
        self.poll_timer = QTimer(self, interval=SOON_MS)
        self.poll_timer.timeout.connect(self._update_shown_stop)
        QShortcut(QKeySequence("Escape"), self, self.leave_stop)

    def begin_if_unseen(self) -> None:
        """Begin if the preferences ask for the tour, and switch the preference off."""
        settings = get_plugin_settings(PLUGIN).window
        if settings.shows_tour:
            settings.shows_tour = False
            self.begin()

    def begin(self) -> None:
        """Begin with the first stop whose control is visible, else with the first stop.

        The note appears at the next poll, once the control is visible and ready.
        """
        are_seen = [stop.widget.isVisible() for stop in self._stops]
        self._remaining_stops = self._stops[
            are_seen.index(True) if any(are_seen) else 0 :
        ]
        self.poll_timer.start()

    def leave_stop(self) -> None:
        """Hide the note and go on to the next stop."""
        self._remaining_stops = self._remaining_stops[1:]
        self._show_stop(None)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Go on to the next stop."""
        self.leave_stop()

    # Inside

    def _update_shown_stop(self) -> None:
        """Show the next stop once its control is visible and ready.

        A stop is left when it is done, or when its control is hidden while the note is
        shown. After the last stop polling ends.
        """
        if not self._remaining_stops:
            self.poll_timer.stop()
            return
        stop = self._remaining_stops[0]
        is_seen = stop.widget.isVisible()
        if stop.is_done() or (self.isVisible() and not is_seen):
            self.leave_stop()
        elif is_seen and stop.is_ready():
            self._show_stop(stop)

    def _show_stop(self, stop: TourStop | None) -> None:
        """Show the note and the frame of a stop, or hide both for None.

        When the frame moves to another control, the dock is scrolled to that control.
        """
        if stop is not None:
            number = len(self._stops) - len(self._remaining_stops) + 1
            self.setText(f"{stop.text()}\n{number} of {len(self._stops)}: {HINT}")
            if self.frame.parent() is not stop.widget:
                self.frame.setParent(stop.widget)
                _scroll_to_widget(stop.widget)
            self.frame.setGeometry(stop.widget.rect())
            self.frame.raise_()
        elif self.frame.parent() is not self:
            self.frame.setParent(self)
        self.frame.setVisible(stop is not None)
        self.setVisible(stop is not None)


def _scroll_to_widget(widget: QWidget) -> None:
    """Scroll the scroll area around a widget, if there is one, to the widget."""
    area = widget.parentWidget()
    while area is not None and not isinstance(area, QScrollArea):
        area = area.parentWidget()
    if area is not None:
        area.ensureWidgetVisible(widget)
