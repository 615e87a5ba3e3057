"""Say that labels were edited after they were measured."""

from __future__ import annotations

from magicgui.widgets import PushButton
from napari.layers import Labels
from qtpy.QtCore import Signal
from qtpy.QtWidgets import QVBoxLayout, QWidget

from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.images.linked_layers import LinkedLayers
from napari_embedding_game.ui.style.form_widgets import show_text, text_label

EDITED = (
    "The labels '{}' were edited after they were {}: the map shows the objects as they "
    "were."
)
REST = "{:,} of {:,} images are measured."


class StaleLabels(QWidget):
    """A sentence and a button, once the map shows other objects than the labels.

    ``wanted`` is the click on the button.
    """

    wanted = Signal()

    def __init__(self, linked: LinkedLayers) -> None:
        super().__init__()
        self._linked = linked
        self._layer: Labels | None = None
        self._n_edits = self._n_asked = 0
        """Edits that were noticed, now and when the objects were last asked for."""
        self._is_measured = True
        self.text = text_label(role="warning")
        self.again = PushButton(
            text="",
            tooltip="Read the objects as they are now; what was named or edited is "
            "kept for those that remain.",
        )
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addWidget(self.text)
        column.addWidget(self.again.native)
        self.again.changed.connect(lambda: self.wanted.emit())
        self._connections = Connections(self)
        self._connections.connect(linked.changed, self._on_linked)
        self._of_layer = Connections(self)
        """To the layer that is watched."""
        self.hide()
        self._on_linked()

    @property
    def is_stale(self) -> bool:
        """Whether the labels were edited since they were read."""
        return not self.isHidden()

    def expect(self, layer: Labels) -> None:
        """Watch a layer from now on, as its objects are going to be read."""
        if layer is not self._layer:
            self._watch(layer)
        self._n_asked = self._n_edits

    def taken(self, *, is_measured: bool) -> None:
        """Note that the objects are those of the map now, measured or linked."""
        self._is_measured = is_measured
        self._on_linked()
        if self._n_edits == self._n_asked:
            self.hide()

    def tell(self, sentence: str, *, can_measure: bool = True) -> None:
        """Say how the labels differ from the objects of the map."""
        show_text(self.text, sentence, "warning")
        self.again.text = "Measure again" if self._is_measured else "Link again"
        self.again.native.setVisible(can_measure)
        self.show()

    def offer_rest(self, n_measured: int, n_images: int) -> None:
        """Offer to measure the other images of an experiment that was stopped."""
        show_text(self.text, REST.format(n_measured, n_images), "note")
        self.again.text = "Measure the others"
        self.again.native.show()
        self.show()

    def _on_linked(self, linked: object = None) -> None:
        current = self._linked.current
        layer = None if current is None else current.labels
        if layer is not self._layer:
            self._watch(layer)

    def _watch(self, layer: Labels | None) -> None:
        self.hide()
        self._of_layer.close()
        self._layer = layer
        if layer is not None:
            # Nothing but an edit of the pixels sets off these two.
            self._of_layer.connect(layer.events.paint, self._on_edit)
            self._of_layer.connect(layer.events.data, self._on_edit)

    def _on_edit(self, event: object = None) -> None:
        self._n_edits += 1
        if self._layer is not None:
            deed = "measured" if self._is_measured else "linked with their table"
            self.tell(EDITED.format(self._layer.name, deed))
