"""Detect that labels were edited after they were measured."""

from __future__ import annotations

from magicgui.widgets import PushButton
from napari.layers import Labels
from qtpy.QtCore import Signal
from qtpy.QtGui import QGuiApplication
from qtpy.QtWidgets import QVBoxLayout, QWidget

from napari_embedding_game.data.columns import listed
from napari_embedding_game.data.images.field_stack import LabelStack
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.images.experiment_layers import FIELDS
from napari_embedding_game.ui.images.linked_layers import LinkedLayers, finest
from napari_embedding_game.ui.style.form_widgets import show_text, text_label
from napari_embedding_game.ui.tasks.throttle import debounced

EDITED = (
    "The labels {} were edited after they were {}: the map shows the objects as they "
    "were."
)
REST = "{} of {} images are measured."
REST_MS = 400
"""The layer has rested so long before its pixels are looked at."""


class StaleLabels(QWidget):
    """A sentence and a button, once the map shows other objects than the labels.

    ``wanted`` is the click on the button.

    Parameters
    ----------
    linked : LinkedLayers
    """

    wanted = Signal()

    def __init__(self, linked: LinkedLayers) -> None:
        super().__init__()
        self._linked = linked
        self._layer: Labels | None = None
        self._n_edits = self._n_asked = 0
        """Edits that were noticed, now and when the objects were last asked for."""
        self._deed, self._button = "measured", "Measure again"
        self.text = text_label(role="warning")
        self.again = PushButton(
            text=self._button,
            tooltip="Read the objects as they are now; what was named or edited is "
            "kept for those that remain.",
        )
        self._rest = debounced(REST_MS, self._look, self)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addWidget(self.text)
        column.addWidget(self.again.native)
        self.again.changed.connect(lambda: self.wanted.emit())
        self._connections = Connections(self)
        self._connections.connect(linked.changed, self._on_linked)
        app = QGuiApplication.instance()  # files may be edited in other programs
        self._connections.connect(app.applicationStateChanged, self._on_drawn)
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

    def taken(self, deed: str, button: str) -> None:
        """Note that the objects are those of the map now.

        Parameters
        ----------
        deed, button : str
            What was done to the labels, and what the button is called that does it
            again.
        """
        self._deed, self._button = deed, button
        self.again.text = button
        self._on_linked()
        if self._n_edits == self._n_asked or self._stack is not None:
            self._watch(self._layer)

    def tell(self, sentence: str, *, can_measure: bool) -> None:
        """Say how the labels differ from the objects of the map."""
        show_text(self.text, sentence, "warning")
        self.again.text = self._button
        self.again.native.setVisible(can_measure)
        self.show()

    def offer_rest(self, n_measured: int, n_images: int) -> None:
        """Offer to measure the other images of an experiment that was stopped."""
        self.again.text = "Measure the others"
        show_text(self.text, REST.format(f"{n_measured:,}", f"{n_images:,}"), "note")
        self.show()

    # Inside

    def _on_linked(self, linked: object = None) -> None:
        current = self._linked.current
        layer = None if current is None else current.labels
        if layer is not self._layer:
            self._watch(layer)

    def _watch(self, layer: Labels | None) -> None:
        self._rest.cancel()
        self.hide()
        self._of_layer.close()
        self._layer = layer
        if layer is None:
            return
        # Nothing but an edit of the pixels sets off the first two.
        self._of_layer.connect(layer.events.paint, self._on_edit)
        self._of_layer.connect(layer.events.data, self._on_edit)
        self._of_layer.connect(layer.events.set_data, self._on_drawn)
        self._look()

    def _on_edit(self, event: object = None) -> None:
        self._n_edits += 1
        self._tell()
        if self._stack is not None:
            self._rest.throttle()  # napari tells of a stroke before it is drawn

    @property
    def _stack(self) -> LabelStack | None:
        """The labels of an experiment, which know what of them was measured."""
        pixels = None if self._layer is None else finest(self._layer)
        return pixels if isinstance(pixels, LabelStack) else None

    def _tell(self) -> None:
        if self._layer is not None:
            text = EDITED.format(_edited(self._layer), self._deed)
            show_text(self.text, text, "warning")
            self.again.text = self._button
            self.again.native.show()
            self.show()

    def _on_drawn(self, event: object = None) -> None:
        """Look at the files of an experiment soon, which others may have edited."""
        if self._stack is not None:
            self._rest.throttle()

    def _look(self) -> None:
        if self._stack is not None and self._stack.changed():
            self._tell()


def _edited(layer: Labels) -> str:
    """Return which labels were edited, as a sentence names them."""
    pixels = finest(layer)
    names: list[str] = []
    if isinstance(pixels, LabelStack):
        fields = layer.metadata.get(FIELDS, ())
        names = [fields[i] for i in pixels.changed() if i < len(fields)]
    return f"of {listed(names, 3)}" if names else f"'{layer.name}'"
