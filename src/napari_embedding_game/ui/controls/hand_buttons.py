"""Buttons that do something to the selected points while the map moves."""

from __future__ import annotations

from functools import partial

from magicgui.widgets import PushButton
from qtpy.QtCore import Signal
from qtpy.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from napari_embedding_game.core.settings import NO_HAND, is_played
from napari_embedding_game.session.hand import HandAction
from napari_embedding_game.session.session import Session
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.style.form_widgets import show_text, text_label

TOOLTIPS: dict[HandAction, tuple[str, str]] = {
    "hold": (
        "Hold",
        "Hold the selected points in place: the others find their places around them.",
    ),
    "let go": (
        "Let go",
        "Free the selected points of all that holds or pins them; with nothing "
        "selected, all points.",
    ),
}


class HandButtons(QWidget):
    """A row of buttons, and a line that tells what acts on the map.

    Parameters
    ----------
    session : Session
    """

    requested = Signal(str)
    """The :data:`HandAction` that is asked for."""
    correction_toggled = Signal(bool)
    """Whether true neighbours are to be shown, while the button is pressed."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self.buttons: dict[HandAction, PushButton] = {}
        row = QHBoxLayout()
        row.setSpacing(4)
        for action, (text, tooltip) in TOOLTIPS.items():
            button = PushButton(text=text, tooltip=tooltip)
            button.changed.connect(partial(self._ask, action))
            self.buttons[action] = button
            row.addWidget(button.native)
        self.neighbors = PushButton(
            text="True neighbours (press and hold)",
            tooltip="While you press: points that are like the selection in the data "
            "but lie elsewhere come to it, and those within it that are not move out. "
            "Let go, and the map is as before.",
        )
        self.neighbors.native.pressed.connect(
            lambda: self.correction_toggled.emit(True)
        )
        self.neighbors.native.released.connect(
            lambda: self.correction_toggled.emit(False)
        )
        self.told = text_label()
        self._correction = ""
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addLayout(row)
        column.addWidget(self.neighbors.native)
        column.addWidget(self.told)
        self._connections = Connections(self)
        changes = (
            session.hand.changed,
            session.selection.changed,
            session.state_changed,
            session.settings.changed,
        )
        self._connections.connect_all(changes, self.refresh)
        self.refresh()

    def refresh(self, event: object = None) -> None:
        """Follow the selection and the hand."""
        session, hand = self._session, self._session.hand
        is_some = session.snapshot is not None and not session.selection.is_empty
        is_game = is_played(session.settings.value)
        for action, button in self.buttons.items():
            is_free = action == "let go" and bool(hand.forces)
            button.enabled = is_game and (is_some or is_free)
        snapshot = session.snapshot
        is_known = snapshot is not None and snapshot.neighbors is not None
        is_at_rest = session.state in ("paused", "finished", "stopped", "failed")
        # Disabled while it is down, it would never be let go.
        if not self.neighbors.native.isDown():
            self.neighbors.enabled = is_some and is_known and is_at_rest
        text = self._correction or hand.told()
        if not is_game and is_some:
            text = text or NO_HAND
        show_text(self.told, text)
        self.told.setVisible(bool(text))

    def tell(self, correction: str) -> None:
        """Tell which true neighbours are shown; "": what acts on the map."""
        self._correction = correction
        self.refresh()

    def _ask(self, action: HandAction) -> None:
        self.requested.emit(action)
