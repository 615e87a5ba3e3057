"""A button that hides the other docks beside the map, and shows them again."""

from __future__ import annotations

from qtpy.compat import isalive
from qtpy.QtCore import QEvent, QObject
from qtpy.QtWidgets import QDockWidget, QToolButton, QWidget

from napari_embedding_game.ui.compat import find_main_window

TEXTS = {
    False: (
        "\N{NORTH EAST AND SOUTH WEST ARROW}",
        "Larger map",
        "Hides all other panels.",
    ),
    True: (
        "\N{NORTH WEST AND SOUTH EAST ARROW}",
        "All panels",
        "Shows the others again.",
    ),
}
"""Sign, name and help by whether the map is larger; a strip on the map is narrow."""


class LargerMap(QToolButton):
    """Button that hides the other docks of the window while it is pressed.

    The dock of ``kept_widget`` and floating docks stay.  The hidden docks are shown
    again before the window is closed, since napari restores the docks of the last
    window in the next one.
    """

    def __init__(self, kept_widget: QWidget) -> None:
        super().__init__()
        self._kept_widget = kept_widget
        self._hidden: list[QDockWidget] = []
        self.setCheckable(True)
        self.setProperty("role", "edit")
        self.toggled.connect(self._on_button_toggled)
        self._on_button_toggled(False)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Show the hidden docks when the window is asked to close; stop no event."""
        if event.type() == QEvent.Type.Close:
            self.setChecked(False)
        return False

    def _on_button_toggled(self, is_larger: bool) -> None:
        """Show the docks hidden before; for ``is_larger`` hide the other visible docks.

        Floating docks and the dock of the kept widget stay.  Also set sign and tooltip.
        """
        sign, name, tip = TEXTS[is_larger]
        self.setText(sign)
        self.setAccessibleName(name)
        self.setToolTip(f"{name}. {tip}")
        for dock in filter(isalive, self._hidden):  # skip docks that are deleted
            dock.show()
        self._hidden = []
        if is_larger:
            window = find_main_window(self._kept_widget)
            window.installEventFilter(self)
            docks = [d for d in window.findChildren(QDockWidget) if d.isVisible()]
            docks = [d for d in docks if not d.isFloating()]
            self._hidden = [d for d in docks if not d.isAncestorOf(self._kept_widget)]
            for dock in self._hidden:
                dock.hide()
