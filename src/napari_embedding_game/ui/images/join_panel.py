"""Panel to choose which Labels layer the rows of a table are the objects of."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from magicgui.widgets import ComboBox
from napari.layers import Labels
from qtpy.QtCore import QTimer, Signal
from qtpy.QtWidgets import QVBoxLayout, QWidget

from napari_embedding_game.data.images.join import Join, JoinRequest
from napari_embedding_game.session.sources import FileSource, Source
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.images.alignment import proposed
from napari_embedding_game.ui.images.linked_layers import Linked, finest, images_of
from napari_embedding_game.ui.style.form_widgets import (
    add_row,
    form,
    show_text,
    text_label,
)

if TYPE_CHECKING:
    import napari

NO_LAYER, CHOOSE = "no objects of a layer", "Choose …"
OFFER = "If the rows are the objects of a Labels layer, choose it here."
LARGEST_GUESS = 1 << 30
"""Bytes of labels that are looked through though nobody asked."""


class JoinPanel(QWidget):
    """Appears when the rows of an open table may be the objects of a Labels layer.

    ``wanted`` brings the :class:`JoinRequest` that a person chose, or None: the rows
    are no objects.
    """

    wanted = Signal(object)

    def __init__(self, viewer: napari.Viewer) -> None:
        super().__init__()
        self._viewer = viewer
        self._is_table = False
        self._join: Join | None = None
        self.layer = ComboBox(
            choices=[NO_LAYER],
            tooltip="The Labels layer whose objects the rows are. Its image then shows "
            "their pictures, and a click finds them in the image.",
        )
        self.column = ComboBox(
            choices=[CHOOSE],
            tooltip="Which column holds the number that an object has in the label "
            "image.",
        )
        self.picture = ComboBox(
            choices=[CHOOSE],
            tooltip="There are rows of several images: which of them these labels are "
            "of.",
        )
        self.hint = text_label()
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.timeout.connect(self.refresh)
        self._form = form()
        add_row(self._form, "Rows are", self.layer)
        add_row(self._form, "Rows by", self.column)
        add_row(self._form, "Picture", self.picture)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addLayout(self._form)
        column.addWidget(self.hint)
        self.layer.changed.connect(self._on_layer)
        self.column.changed.connect(self._ask)
        self.picture.changed.connect(self._ask)
        self._connections = Connections(self)
        events = viewer.layers.events
        self._connections.connect_all(
            (events.inserted, events.removed), self._on_layers
        )
        self.refresh()

    @property
    def told(self) -> tuple[str, ...]:
        """What is told here, and need not be told among the notes."""
        join = self._join
        return () if join is None else (*join.sentences, join.refusal)

    def show_join(self, join: Join | None, *, is_table: bool) -> None:
        """Show how the rows of a table were joined; of another source, nothing.

        Parameters
        ----------
        join : Join, optional
            None where there was nothing to join with.
        is_table : bool
            Whether the rows may be joined.
        """
        self._join, self._is_table = join, is_table
        self.refresh()

    def refresh(self) -> None:
        """Offer the layers that there are."""
        join = self._join
        layers = [x for x in self._viewer.layers if isinstance(x, Labels)]
        self.setVisible(self._is_table and bool(layers))
        if not self._is_table:
            return
        found = join is not None and join.objects is not None
        refused = join is not None and bool(join.refusal)
        linked = None if join is None else layer_of(self._viewer, join)
        names: list[tuple[str, Any]] = [(NO_LAYER, NO_LAYER)]
        names += [(x.name, x) for x in layers]
        _offer(self.layer, names, linked if found or refused else NO_LAYER)
        columns = [] if join is None else join.columns
        choices = [(CHOOSE, CHOOSE), *((name, name) for name in columns)]
        chosen = CHOOSE if join is None else join.column or join.request.column
        _offer(self.column, choices, chosen or CHOOSE)
        pictures = [] if join is None else join.pictures
        choices = [(CHOOSE, CHOOSE), *((" ".join(one), one) for one in pictures)]
        picture = join.request.picture if join else None
        _offer(self.picture, choices, picture or CHOOSE)
        is_about = found or refused
        self._form.setRowVisible(1, is_about and bool(columns))
        self._form.setRowVisible(2, is_about and bool(pictures))
        if found:
            show_text(self.hint, "\n".join(join.sentences), "note")
        else:
            text = join.refusal if refused else OFFER
            show_text(self.hint, text, "warning" if refused else "note")

    def _on_layers(self, event: object = None) -> None:
        self._soon.start(0)

    def _on_layer(self) -> None:
        """Join with another layer, by the column that fits best."""
        layer = self.layer.value
        is_one = isinstance(layer, Labels)
        self.wanted.emit(request_of(layer) if is_one else None)

    def _ask(self) -> None:
        """Join by another column or picture."""
        if self._join is not None:
            column, picture = self.column.value, self.picture.value
            request = replace(
                self._join.request,
                column=None if column == CHOOSE else column,
                picture=None if picture == CHOOSE else picture,
                is_guess=False,
            )
            self.wanted.emit(request)


def request_of(layer: Labels, *, is_guess: bool = False) -> JoinRequest:
    """Return the wish that rows are joined with the objects of a layer."""
    return JoinRequest(layer.name, finest(layer), is_guess=is_guess)


def layer_of(viewer: napari.Viewer, join: Join) -> Labels | None:
    """Return the Labels layer that was joined with; None if it is gone."""
    layers = [x for x in viewer.layers if isinstance(x, Labels)]
    return next((x for x in layers if finest(x) is join.request.pixels), None)


def with_labels(source: Source, viewer: napari.Viewer) -> Source:
    """Return a file as a source whose rows may be the objects of a layer.

    That is the active layer, else the uppermost Labels.  A large image only if a person
    chooses it.
    """
    if not isinstance(source, FileSource) or source.request is not None:
        return source
    layers = [x for x in viewer.layers if isinstance(x, Labels)]
    layers.sort(key=lambda layer: layer is viewer.layers.selection.active)
    if not layers or getattr(finest(layers[-1]), "nbytes", 0) > LARGEST_GUESS:
        return source
    return FileSource(source.path, request_of(layers[-1], is_guess=True))


def joined_layers(viewer: napari.Viewer, join: Join) -> Linked | None:
    """Return the layers that show the objects of a table's rows; None without any."""
    labels = layer_of(viewer, join)
    if join.objects is None or labels is None:
        return None
    images = proposed(labels, images_of(viewer), list(viewer.layers.selection))
    return Linked(labels, tuple(images))


def _offer(combo: ComboBox, choices: list[tuple[str, Any]], chosen: Any) -> None:
    with combo.changed.blocked():
        combo.choices = choices
        if any(value is chosen or value == chosen for _, value in choices):
            combo.value = chosen
