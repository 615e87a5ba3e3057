"""A panel to choose the Labels layer whose objects are the rows of a table."""

from __future__ import annotations

from dataclasses import replace

from napari.layers import Labels

from napari_embedding_game.data.images.join import Join, JoinRequest
from napari_embedding_game.session.sources import FeaturesSource, FileSource
from napari_embedding_game.ui.images.layer_panel import LayerPanel
from napari_embedding_game.ui.images.linked_layers import (
    find_joined_labels_layer,
    finest_pixels,
    list_selectable_labels_layers,
)
from napari_embedding_game.ui.style.form_widgets import ChoiceBox, form_layout
from napari_embedding_game.ui.tasks.reading import ReadingTask

NO_LAYER, CHOOSE = "No objects of a layer", "Choose …"
OFFER = "If the rows are the objects of a Labels layer, choose it here."
NO_JOIN = Join(JoinRequest("", None), (), ())
TABLES = FileSource | FeaturesSource
FIELDS = (
    ("Objects of", "The Labels layer whose objects the rows are."),
    ("Matched by", "Column with the number of each object in the label image."),
    ("Picture", "Which of several images these labels are of."),
)  # fmt: skip


class JoinPanel(LayerPanel):
    """Lets a person join the rows of an open table with the objects of a Labels layer.

    Every choice reads the table again.  The panel is hidden without a table or Labels
    layers.
    """

    def __init__(self, reading: ReadingTask) -> None:
        super().__init__(reading)
        fields = [(words, ChoiceBox(tip)) for words, tip in FIELDS]
        self._form = form_layout(*fields)
        self.layer_choice, self.column_choice, self.picture_choice = (
            box for _, box in fields
        )
        self.layer_choice.changed.connect(self._on_layer_chosen)
        for box in (self.column_choice, self.picture_choice):
            box.changed.connect(self._on_column_or_picture_chosen)
        self.box.addLayout(self._form)
        self.box.addWidget(self.text)
        self.update_on_layer_changes()
        self.update_to_layers()

    @property
    def messages(self) -> tuple[str, ...]:
        """Sentences and refusal of the join, which notes on the data need not repeat.

        The refusal comes last, and may be "".
        """
        return (*self._join.sentences, self._join.refusal)

    @property
    def _join(self) -> Join:
        """The join of the dataset's rows; an empty join where there is none."""
        read = self._reading.shown_read_result
        return NO_JOIN if read is None or read.join is None else read.join

    def update_to_layers(self, event: object = None) -> None:
        """Offer the present layers, columns and pictures, and show the join.

        The panel is hidden without a table or Labels layers.  Columns and pictures are
        shown only where the join says or refuses something, and has any.
        """
        read = self._reading.shown_read_result
        is_table = read is not None and isinstance(read.source, TABLES)
        layers = list_selectable_labels_layers(self._viewer) if is_table else []
        self.setVisible(bool(layers))
        if not layers:  # keep no reference to a layer
            self.layer_choice.set_choices([(NO_LAYER, None)])
            return
        join, request = self._join, self._join.request
        is_about = bool(join.sentences or join.refusal)
        linked = find_joined_labels_layer(self._viewer, join) if is_about else None
        columns = [(name, name) for name in join.columns]
        pictures = [(" ".join(one), one) for one in join.pictures]
        named = [(x.name, x) for x in layers]
        self.layer_choice.set_choices([(NO_LAYER, None), *named], linked)
        self.column_choice.set_choices(
            [(CHOOSE, None), *columns], join.column or request.column
        )
        self.picture_choice.set_choices([(CHOOSE, None), *pictures], request.picture)
        self._form.setRowVisible(1, is_about and bool(columns))
        self._form.setRowVisible(2, is_about and bool(pictures))
        text = join.refusal or "\n".join(join.sentences) or OFFER
        self.text.show_text(text, "warning" if join.refusal else "")

    def _on_layer_chosen(self, layer: Labels | None) -> None:
        """Join with a layer by the column that fits best; None ends the join."""
        chosen = (
            None if layer is None else JoinRequest(layer.name, finest_pixels(layer))
        )
        self._join_with(chosen)

    def _on_column_or_picture_chosen(self, chosen: object) -> None:
        """Join again by the chosen column and picture."""
        columns = {
            "column": self.column_choice.value,
            "picture": self.picture_choice.value,
        }
        self._join_with(replace(self._join.request, **columns, is_guess=False))

    def _join_with(self, request: JoinRequest | None) -> None:
        """Read the open table again with another request to join; None for no join."""
        read = self._reading.shown_read_result
        if read is not None and isinstance(read.source, TABLES):
            source = replace(read.source, request=request)
            self._reading.read_open_map_again(source, read.options)
