"""Offers back, once and in a line, what a crash left behind."""

from __future__ import annotations

from magicgui.widgets import PushButton
from qtpy.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from napari_embedding_game.session.autosave import Orphan
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.controller import Controller
from napari_embedding_game.ui.keeper import told
from napari_embedding_game.ui.parts import show_text, text_label


class Rescue(QWidget):
    """Shown when the dock opens and the last program did not close its map."""

    def __init__(self, controller: Controller) -> None:
        super().__init__()
        self._controller = controller
        self._orphans: list[Orphan] = []
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
        self._connections = Connections()
        self._connections.connect(controller.session.dataset_changed, self._on_dataset)
        is_fresh = controller.session.dataset is None
        self._offer(controller.keeper.orphans() if is_fresh else [])

    def close(self) -> None:
        """Undo the connections to the session."""
        self._connections.close()

    def _offer(self, orphans: list[Orphan]) -> None:
        self._orphans = orphans
        show_text(self.text, told(orphans[0]) if orphans else "")
        self.setVisible(bool(orphans))

    def _on_dataset(self) -> None:
        """Offer nothing beside other data: the next start does again."""
        self._offer([])

    def _bring_back(self) -> None:
        self._controller.reading.bring_back(self._orphans[0])

    def _forget(self) -> None:
        self._orphans[0].discard()
        self._offer(self._orphans[1:])
