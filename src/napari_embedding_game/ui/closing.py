"""Learn that a docked widget is closed, whatever closes it."""

from __future__ import annotations

from collections.abc import Callable
from weakref import ref

from qtpy.QtCore import QEvent, QObject, QTimer
from qtpy.QtWidgets import QWidget

from napari_embedding_game.ui.compat import main_window_of

Kind = QEvent.Type


class Closing(QObject):
    """Calls back once when a docked widget is closed, whatever closed it.

    napari takes a closed dock's widget out of its parent without telling it,
    closing the window tells the window only, and a program that ends closes its
    windows when no further event is handed out.  Then the widget is deleted: what
    Qt holds for it, such as slots, Python cannot see and would never free.
    """

    def __init__(self, widget: QWidget, on_close: Callable[[], None]) -> None:
        super().__init__(widget)
        self._widget = widget
        self._window: Callable[[], QWidget | None] = lambda: None
        """Returns the window that the widget was seen in last, held weakly: who held a
        closed one would keep all of its viewer alive."""
        self._is_asked = False
        """Whether the window was asked to close, and has not refused."""
        self._on_close: Callable[[], None] | None = on_close
        widget.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Watch, and let every event through."""
        kind, window = event.type(), self._window()
        if watched is self._widget:
            is_alone = self._widget.parentWidget() is None and window is not None
            if kind == Kind.Close or (kind == Kind.ParentChange and is_alone):
                self.close()
            elif kind in (Kind.ParentChange, Kind.Show):  # a box may come in later
                self._watch_window()
        elif self._on_close is not None and watched is window:
            if kind == Kind.Close:
                # Whether the window agrees to close is known after this event.
                self._is_asked = True
                QTimer.singleShot(0, self._close_with_window)
            elif kind == Kind.Hide and self._is_asked:
                self.close()
            elif kind == Kind.DeferredDelete:
                # Whoever lets go of it last deletes it: not in one of its own events.
                QTimer.singleShot(0, lambda held=window: None)
                self.close()
        return False

    def close(self) -> None:
        """Call back, the first time."""
        if self._on_close is not None:
            on_close, self._on_close = self._on_close, None
            if (window := self._window()) is not None:
                window.removeEventFilter(self)
            self._widget.removeEventFilter(self)
            on_close()
            self._widget.deleteLater()

    def _watch_window(self) -> None:
        window, previous = main_window_of(self._widget), self._window()
        if self._widget.parentWidget() is None or self._on_close is None:
            return
        if window is not previous and window is not self._widget:
            if previous is not None:
                previous.removeEventFilter(self)
            self._window = ref(window)
            window.installEventFilter(self)

    def _close_with_window(self) -> None:
        self._is_asked, window = False, self._window()
        if window is None or not window.isVisible():
            self.close()
