"""Watch a docked widget and call back when it is closed, whatever closes it.

The dock then disconnects its :class:`Connections`, and these close the controller with
its thread.
"""

from __future__ import annotations

from collections.abc import Callable
from weakref import ref

from qtpy.QtCore import QEvent, QObject, QTimer
from qtpy.QtWidgets import QWidget

from napari_embedding_game.ui.compat import find_main_window

Kind = QEvent.Type


class CloseWatcher(QObject):
    """Calls ``on_close`` once when a docked widget is closed, then deletes the widget.

    Three ways to close send the widget no close event: napari takes a closed dock's
    widget out of its parent, closing the window sends an event to the window only, and
    a program that ends closes its windows when no further event is handed out.  The
    widget is deleted since Python would never free what Qt holds for the widget, such
    as slots.
    """

    def __init__(self, widget: QWidget, on_close: Callable[[], None]) -> None:
        super().__init__(widget)
        self._widget = widget
        self._window: Callable[[], QWidget | None] = lambda: None
        """Returns the last window of the widget, or None.

        The reference is weak: a strong one would keep a closed viewer alive.
        """
        self._is_close_requested = False
        """Whether a close event of the window came, which the window may refuse."""
        self._on_close: Callable[[], None] | None = on_close
        widget.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Call :meth:`close` when the widget or its window closes; return False always.

        A docked widget counts as closed when it loses its parent.  A window's close
        event counts only if the window is hidden afterwards: the window may refuse the
        event.
        """
        kind, window = event.type(), self._window()
        if watched is self._widget:
            is_alone = self._widget.parentWidget() is None and window is not None
            if kind == Kind.Close or (kind == Kind.ParentChange and is_alone):
                self.close()
            elif kind in (Kind.ParentChange, Kind.Show):  # docked, maybe elsewhere
                self._watch_window()
        elif self._on_close is not None and watched is window:
            if kind == Kind.Close:
                # Whether the window agrees to close is known after this event.
                self._is_close_requested = True
                QTimer.singleShot(0, self._close_if_window_closed)
            elif kind == Kind.Hide and self._is_close_requested:
                self.close()
            elif kind == Kind.DeferredDelete:
                # Hold the window until its own event is over, which it must survive.
                QTimer.singleShot(0, lambda held=window: None)
                self.close()
        return False

    def close(self) -> None:
        """Stop watching, call ``on_close`` and delete the widget, once."""
        if self._on_close is not None:
            on_close, self._on_close = self._on_close, None
            if (window := self._window()) is not None:
                window.removeEventFilter(self)
            self._widget.removeEventFilter(self)
            on_close()
            self._widget.deleteLater()

    def _watch_window(self) -> None:
        """Watch the events of the widget's present window instead of its former window.

        Without a parent, or after :meth:`close`, the watched window stays the same.
        """
        window, previous = find_main_window(self._widget), self._window()
        if self._widget.parentWidget() is None or self._on_close is None:
            return
        if window is not previous and window is not self._widget:
            if previous is not None:
                previous.removeEventFilter(self)
            self._window = ref(window)
            window.installEventFilter(self)

    def _close_if_window_closed(self) -> None:
        """Call :meth:`close` if the window is gone or hidden, hence closed."""
        self._is_close_requested, window = False, self._window()
        if window is None or not window.isVisible():
            self.close()
