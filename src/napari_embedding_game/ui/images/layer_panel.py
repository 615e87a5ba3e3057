"""The base of panels in the data section that depend on the viewer's layers."""

from __future__ import annotations

from typing import Any

from qtpy.QtWidgets import QWidget
from superqt.utils import qdebounced

from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.style.form_widgets import TextLabel
from napari_embedding_game.ui.style.layouts import vertical_box
from napari_embedding_game.ui.tasks.reading import ReadingTask


class LayerPanel(QWidget):
    """A panel with a sentence and a vertical box, refreshed when layers change."""

    def __init__(self, reading: ReadingTask) -> None:
        super().__init__()
        self._viewer, self._reading = reading.viewer, reading
        self.text = TextLabel()
        self.box = vertical_box()
        self.setLayout(self.box)
        self._connections = Connections(self)
        self._update_throttler = qdebounced(self.update_to_layers, 0, parent=self)

    def update_to_layers(self, event: object = None) -> None:
        """Update the panel to the present layers; subclasses override this."""

    def update_on_layer_changes(self, *signals: Any) -> None:
        """Refresh soon after layers were added or removed, and after the signals.

        The delay lets napari finish a layer, and add further layers.
        """
        hear, layers = self._connections.connect, self._viewer.layers.events
        hear(self.update_to_layers_soon, layers.inserted, layers.removed, *signals)

    def update_to_layers_soon(self, event: object = None) -> None:
        """Refresh once the present event is handled."""
        self._update_throttler.throttle()
