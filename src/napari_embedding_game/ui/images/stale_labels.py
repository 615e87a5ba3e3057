"""Say that labels were edited after they were measured."""

from __future__ import annotations

from napari.layers import Labels
from qtpy.QtCore import Signal

from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.images.layer_panel import LayerPanel
from napari_embedding_game.ui.images.linked_layers import LinkedLayers

EDITED = (
    "The labels '{}' were edited after they were {}: the map shows the objects as they "
    "were."
)
TIP = "Read the objects as they are now; names and edits of those that remain are kept."


class StaleLabels(LayerPanel):
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
        self.rows.addWidget(self.text)
        self.again = self.add_button(TIP, self.wanted.emit)
        self._connections.connect(linked.changed, self.refresh)
        self._of_layer = Connections(self)
        """To the layer that is watched."""
        self.hide()
        self.refresh()

    @property
    def is_stale(self) -> bool:
        """Whether the labels were edited since they were read."""
        return not self.isHidden()

    def expect(self, layer: Labels) -> None:
        """Watch a layer from now on, as its objects are going to be read."""
        self._watch(layer)
        self._n_asked = self._n_edits

    def taken(self, *, is_measured: bool) -> None:
        """Note that the objects are those of the map now, measured or linked."""
        self._is_measured = is_measured
        self.refresh()
        if self._n_edits == self._n_asked:
            self.hide()

    def tell(self, sentence: str, *, can_measure: bool = True) -> None:
        """Say how the labels differ from the objects of the map."""
        again = "Measure again" if self._is_measured else "Link again"
        self.say(sentence, "warning", **({"again": again} if can_measure else {}))

    def refresh(self, linked: object = None) -> None:
        """Watch the labels that belong to the map now."""
        current = self._linked.current
        self._watch(None if current is None else current.labels)

    def _watch(self, layer: Labels | None) -> None:
        if layer is self._layer:
            return
        self.hide()
        self._of_layer.close()
        self._layer = layer
        if layer is not None:  # nothing but an edit of the pixels sets off these two
            events = layer.events
            self._of_layer.connect_all((events.paint, events.data), self._on_edit)

    def _on_edit(self, event: object = None) -> None:
        self._n_edits += 1
        if self._layer is not None:
            deed = "measured" if self._is_measured else "linked with their table"
            self.tell(EDITED.format(self._layer.name, deed))
