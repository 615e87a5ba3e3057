"""A button that gives the map the room of the other docks, and gives it back."""

from __future__ import annotations

from qtpy.compat import isalive
from qtpy.QtCore import QEvent, QObject
from qtpy.QtWidgets import QDockWidget, QToolButton, QWidget

from napari_embedding_game.ui.compat import main_window_of

TEXTS = {
    False: ("Larger map", "Hides all other panels of the window."),
    True: ("All panels", "Shows the other panels of the window again."),
}


class LargerMap(QToolButton):
    """While it is pressed, the docks of the window that lie beside the map are hidden.

    All but that of the widget ``keeps``, which it serves, and those that float.  They
    come back before the window is closed, as napari opens the next one as it was then.
    """

    def __init__(self, keeps: QWidget) -> None:
        super().__init__()
        self._keeps = keeps
        self._hidden: list[QDockWidget] = []
        self.setCheckable(True)
        self.setProperty("role", "edit")
        self.toggled.connect(self._on_toggled)
        self._on_toggled(False)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Show what was hidden when the window is asked to close; all goes through."""
        if event.type() == QEvent.Type.Close:
            self.setChecked(False)
        return False

    def _on_toggled(self, is_larger: bool) -> None:
        text, tip = TEXTS[is_larger]
        self.setText(text)
        self.setToolTip(tip)
        for dock in filter(isalive, self._hidden):  # one may be gone since
            dock.show()
        self._hidden = []
        if is_larger:
            window = main_window_of(self._keeps)
            window.installEventFilter(self)
            docks = [d for d in window.findChildren(QDockWidget) if d.isVisible()]
            docks = [d for d in docks if not d.isFloating()]
            self._hidden = [d for d in docks if not d.isAncestorOf(self._keeps)]
            for dock in self._hidden:
                dock.hide()
