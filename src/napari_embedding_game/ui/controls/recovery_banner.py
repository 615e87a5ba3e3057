"""Offer once to open the session that a crashed program autosaved."""

from __future__ import annotations

from magicgui.widgets import PushButton
from qtpy.QtCore import Signal
from qtpy.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from napari_embedding_game.session.file.autosave import RecoveryFile
from napari_embedding_game.session.session import Session
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.style.form_widgets import show_text, text_label
from napari_embedding_game.ui.tasks.session_store import describe_recovery_file


class RecoveryBanner(QWidget):
    """Shown when the dock opens and the last program did not close its map.

    Parameters
    ----------
    session : Session
    """

    recovery_requested = Signal(object)
    """The :class:`RecoveryFile` to go on with."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._recovery_files: list[RecoveryFile] = []
        self.text = text_label(role="warning")
        self.back = PushButton(
            text="Bring it back", tooltip="Go on where the map was saved last."
        )
        self.forget = PushButton(
            text="Forget it", tooltip="Delete this saved map for good."
        )
        buttons = QHBoxLayout()
        buttons.addWidget(self.back.native, 1)
        buttons.addWidget(self.forget.native, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 4)
        column.setSpacing(4)
        column.addWidget(self.text)
        column.addLayout(buttons)
        self.back.changed.connect(self._bring_back)
        self.forget.changed.connect(self._forget)
        self._connections = Connections(self)
        self._connections.connect(session.dataset_changed, self._on_dataset)
        self.offer([])

    def offer(self, recovery_files: list[RecoveryFile]) -> None:
        """Offer the first of these files, hidden where there is none."""
        self._recovery_files = recovery_files
        show_text(
            self.text,
            describe_recovery_file(recovery_files[0]) if recovery_files else "",
        )
        self.setVisible(bool(recovery_files))

    def _on_dataset(self) -> None:
        """Offer nothing beside other data: the next start does again."""
        self.offer([])

    def _bring_back(self) -> None:
        self.recovery_requested.emit(self._recovery_files[0])

    def _forget(self) -> None:
        self._recovery_files[0].discard()
        self.offer(self._recovery_files[1:])
