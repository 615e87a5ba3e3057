"""A button that gives the map the room of the other docks, and gives it back."""

from __future__ import annotations

from weakref import ref

from qtpy.QtCore import QEvent, QObject
from qtpy.QtWidgets import QDockWidget, QToolButton, QWidget

from napari_embedding_game.ui.compat import main_window_of

TEXT, TIP = "Larger map", "Hides all other panels of the window."
TEXT_OF_LARGER = "All panels"
TIP_OF_LARGER = "Shows the other panels of the window again."


class LargerMap(QToolButton):
    """While it is pressed, the docks of the window that lie beside the map are hidden.

    All but that of the widget it serves, and those that float.  They come back before
    the window is closed, as napari opens the next one as it was then.

    Parameters
    ----------
    keeps : QWidget
        The docked widget that stays.
    """

    def __init__(self, keeps: QWidget) -> None:
        super().__init__()
        self._keeps = keeps
        self._window: ref[QWidget] | None = None
        """Where docks were hidden; weak, as a closed window is not to be kept alive."""
        self._hidden: frozenset[str] = frozenset()
        """Names of what was hidden: a dock may be gone when they come back."""
        self.setText(TEXT)
        self.setToolTip(TIP)
        self.setCheckable(True)
        self.setProperty("role", "edit")
        self.toggled.connect(self._on_toggled)

    def release(self) -> None:
        """Show again what was hidden."""
        self.setChecked(False)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Show what was hidden when the window is asked to close; all goes through."""
        if event.type() == QEvent.Type.Close:
            self.release()
        return False

    def _on_toggled(self, is_larger: bool) -> None:
        self.setText(TEXT_OF_LARGER if is_larger else TEXT)
        self.setToolTip(TIP_OF_LARGER if is_larger else TIP)
        if is_larger:
            self._hide(main_window_of(self._keeps))
        elif self._window is not None and (window := self._window()) is not None:
            self._show(window)

    def _hide(self, window: QWidget) -> None:
        beside = [
            dock
            for dock in window.findChildren(QDockWidget)
            if dock.isVisible()
            and not dock.isFloating()
            and not dock.isAncestorOf(self._keeps)
        ]
        self._hidden = frozenset(dock.objectName() for dock in beside)
        for dock in beside:
            dock.hide()
        self._window = ref(window)
        window.installEventFilter(self)

    def _show(self, window: QWidget) -> None:
        window.removeEventFilter(self)
        for dock in window.findChildren(QDockWidget):
            if dock.objectName() in self._hidden:
                dock.show()
