"""A part of the data section that follows the layers of a viewer."""

from __future__ import annotations

from typing import Any

from qtpy.QtWidgets import QWidget
from superqt.utils import qdebounced

from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.style.form_widgets import Text
from napari_embedding_game.ui.style.layouts import vertical_box
from napari_embedding_game.ui.tasks.reading import ReadingTask


class LayerPanel(QWidget):
    """A sentence and what belongs to it, in rows."""

    def __init__(self, reading: ReadingTask) -> None:
        super().__init__()
        self._viewer, self._reading = reading.viewer, reading
        self.text = Text()
        self.box = vertical_box()
        self.setLayout(self.box)
        self._connections = Connections(self)
        self._refresh_throttler = qdebounced(self.refresh, 0, parent=self)

    def refresh(self, event: object = None) -> None:
        """Show what there is now."""

    def refresh_on_layer_changes(self, *signals: Any) -> None:
        """Refresh when layers have come or gone, or at these signals.

        Later: by then a layer is whole, and others may have come with it.
        """
        hear, layers = self._connections.connect, self._viewer.layers.events
        hear(self.refresh_soon, layers.inserted, layers.removed, *signals)

    def refresh_soon(self, event: object = None) -> None:
        """Refresh when what happens now is over."""
        self._refresh_throttler.throttle()
