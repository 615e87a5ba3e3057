"""Panel to choose which Labels layer the rows of a table are the objects of."""

from __future__ import annotations

from dataclasses import replace

import napari
from napari.layers import Labels
from qtpy.QtCore import Signal

from napari_embedding_game.data.images.join import Join, JoinRequest
from napari_embedding_game.session.sources import FileSource, Source
from napari_embedding_game.ui.images.alignment import proposed
from napari_embedding_game.ui.images.layer_panel import LayerPanel
from napari_embedding_game.ui.images.linked_layers import (
    Linked,
    finest,
    images_of,
    labels_of,
)
from napari_embedding_game.ui.style.form_widgets import Choice, add_row, form, show_text

NO_LAYER, CHOOSE = "No objects of a layer", "Choose …"
OFFER = "If the rows are the objects of a Labels layer, choose it here."
NO_JOIN = Join(JoinRequest("", None), (), ())
MAX_GUESS = 1 << 30
"""Bytes of labels that are looked through though nobody asked."""
FIELDS = (
    ("Objects of", "The Labels layer whose objects the rows are."),
    ("Matched by", "Column with the number of each object in the label image."),
    ("Picture", "Which of several images these labels are of."),
)  # fmt: skip


class JoinPanel(LayerPanel):
    """Appears when the rows of an open table may be the objects of a Labels layer.

    ``wanted`` brings the :class:`JoinRequest` that a person chose, or None: the rows
    are no objects.
    """

    requested = Signal(object)

    def __init__(self, viewer: napari.Viewer) -> None:
        super().__init__(viewer)
        self._is_table = False
        self._join = NO_JOIN
        self._form = form()
        boxes = [Choice(tip) for _, tip in FIELDS]
        self.layer, self.column, self.picture = boxes
        for box, (words, _) in zip(boxes, FIELDS, strict=True):
            add_row(self._form, words, box)
            box.changed.connect(self._on_layer if box is self.layer else self._ask)
        self.rows.addLayout(self._form)
        self.rows.addWidget(self.text)
        self.follow()
        self.refresh()

    @property
    def messages(self) -> tuple[str, ...]:
        """What this panel shows; the notes need not repeat it."""
        return (*self._join.sentences, self._join.refusal)

    def show_join(self, join: Join | None, *, is_table: bool) -> None:
        """Show how the rows of a table were joined; of another source, nothing.

        ``join`` is None where there was nothing to join with.
        """
        self._join, self._is_table = join or NO_JOIN, is_table
        self.refresh()

    def refresh(self, event: object = None) -> None:
        """Offer the layers that there are."""
        layers = labels_of(self._viewer) if self._is_table else []
        self.setVisible(bool(layers))
        if not layers:  # let them go
            self.layer.offer([(NO_LAYER, None)])
            return
        join, request = self._join, self._join.request
        is_about = bool(join.sentences or join.refusal)
        linked = layer_of(self._viewer, join) if is_about else None
        columns = [(name, name) for name in join.columns]
        pictures = [(" ".join(one), one) for one in join.pictures]
        named = [(x.name, x) for x in layers]
        self.layer.offer([(NO_LAYER, None), *named], linked)
        self.column.offer([(CHOOSE, None), *columns], join.column or request.column)
        self.picture.offer([(CHOOSE, None), *pictures], request.picture)
        self._form.setRowVisible(1, is_about and bool(columns))
        self._form.setRowVisible(2, is_about and bool(pictures))
        text = join.refusal or "\n".join(join.sentences) or OFFER
        show_text(self.text, text, "warning" if join.refusal else "note")

    def _on_layer(self, layer: Labels | None) -> None:
        """Join with another layer, by the column that fits best."""
        self.requested.emit(None if layer is None else request_of(layer))

    def _ask(self, chosen: object) -> None:
        """Join by another column or picture."""
        columns = {"column": self.column.value, "picture": self.picture.value}
        self.requested.emit(replace(self._join.request, **columns, is_guess=False))


def request_of(layer: Labels, *, is_guess: bool = False) -> JoinRequest:
    """Return the wish that rows are joined with the objects of a layer."""
    return JoinRequest(layer.name, finest(layer), is_guess=is_guess)


def layer_of(viewer: napari.Viewer, join: Join) -> Labels | None:
    """Return the Labels layer that was joined with; None if it is gone."""
    pixels = join.request.pixels
    return next((x for x in labels_of(viewer) if finest(x) is pixels), None)


def with_labels(source: Source, viewer: napari.Viewer) -> Source:
    """Return a file as a source whose rows may be the objects of a layer.

    That is the active layer, else the uppermost Labels.  A large image only if a person
    chooses it.
    """
    if not isinstance(source, FileSource) or source.request is not None:
        return source
    layers = labels_of(viewer)
    layers.sort(key=lambda layer: layer is viewer.layers.selection.active)
    if not layers or getattr(finest(layers[-1]), "nbytes", 0) > MAX_GUESS:
        return source
    return FileSource(source.path, request_of(layers[-1], is_guess=True))


def joined_layers(viewer: napari.Viewer, join: Join) -> Linked | None:
    """Return the layers that show the objects of a table's rows; None without any."""
    labels = layer_of(viewer, join)
    if join.objects is None or labels is None:
        return None
    images = proposed(labels, images_of(viewer), list(viewer.layers.selection))
    return Linked(labels, tuple(images))
