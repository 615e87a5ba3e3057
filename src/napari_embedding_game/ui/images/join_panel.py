"""Panel to choose which Labels layer the rows of a file are the objects of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from magicgui.widgets import ComboBox
from napari.layers import Image, Labels
from qtpy.QtCore import QTimer, Signal
from qtpy.QtWidgets import QVBoxLayout, QWidget

from napari_embedding_game.data.images.table_join import (
    Join,
    JoinRequest,
    LabelImage,
    Picture,
)
from napari_embedding_game.session.sources import FileSource
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.images.alignment import proposed
from napari_embedding_game.ui.images.linked_layers import Linked, finest
from napari_embedding_game.ui.images.measure_panel import is_labels
from napari_embedding_game.ui.style.form_widgets import (
    add_row,
    form,
    show_text,
    text_label,
)

if TYPE_CHECKING:
    import napari

NO_LAYER, CHOOSE = "no objects of a layer", "Choose …"
NONE_YET: tuple[str, Any] = (CHOOSE, CHOOSE)
"""A choice that stands for none: magicgui is silent about the value None."""
OFFER = "If the rows are the objects of a Labels layer, choose it here."
LARGEST_GUESS = 1 << 30
"""Bytes of labels that are looked through though nobody asked."""
_LAYER, _COLUMN, _PICTURE = range(3)
"""Rows of the form."""


class JoinPanel(QWidget):
    """Appears when the rows of an open file may be the objects of a Labels layer.

    ``wanted`` brings the :class:`JoinRequest` that a person chose, or None: the rows
    are no objects.

    Parameters
    ----------
    viewer : napari.Viewer
    """

    wanted = Signal(object)

    def __init__(self, viewer: napari.Viewer) -> None:
        super().__init__()
        self._viewer = viewer
        self._is_file = False
        self._join: Join | None = None
        self.layer = ComboBox(
            choices=[NO_LAYER],
            tooltip="The Labels layer whose objects the rows of this file are. Its "
            "image then shows their pictures, and a click finds them in the image.",
        )
        self.column = ComboBox(
            choices=[CHOOSE],
            tooltip="Which column of the file holds the number that an object has in "
            "the label image.",
        )
        self.picture = ComboBox(
            choices=[CHOOSE],
            tooltip="The file has rows of several images: which of them these labels "
            "are of.",
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
        for event in (viewer.layers.events.inserted, viewer.layers.events.removed):
            self._connections.connect(event, lambda event=None: self._soon.start(0))
        self.refresh()

    def show_join(self, join: Join | None, *, is_file: bool) -> None:
        """Show how the rows of a file were joined; of another source, nothing.

        Parameters
        ----------
        join : Join, optional
            None where there was nothing to join with.
        is_file : bool
            Whether the rows may be joined.
        """
        self._join, self._is_file = join, is_file
        self.refresh()

    def refresh(self) -> None:
        """Offer the layers that there are."""
        join = self._join or Join()
        layers = [x for x in self._viewer.layers if is_labels(x)]
        linked = None
        if join.match is not None and join.image is not None:
            linked = layer_of(self._viewer, join.image)
        objects = [(f"objects of {x.name}", x) for x in layers]
        _offer(self.layer, [(NO_LAYER, NO_LAYER), *objects], linked or NO_LAYER)
        told = None if join.match is None else join.match.column
        columns: list[tuple[str, Any]] = [(name, name) for name in join.columns]
        _offer(self.column, columns if told else [NONE_YET, *columns], told)
        pictures: list[tuple[str, Any]] = [(one.told, one) for one in join.pictures]
        chosen = join.picture
        offered = pictures if chosen else [NONE_YET, *pictures]
        _offer(self.picture, offered, chosen)
        is_tried = linked is not None or bool(join.refusal)
        is_choice = len(columns) > (1 if told else 0)
        self._form.setRowVisible(_COLUMN, is_tried and is_choice)
        has_choice = chosen is not None or bool(join.refusal)
        self._form.setRowVisible(_PICTURE, bool(pictures) and has_choice)
        self._tell(join, is_linked=linked is not None)
        self.setVisible(self._is_file and bool(layers))

    @property
    def told(self) -> tuple[str, ...]:
        """The sentences that are shown here, and need not be told elsewhere."""
        return tuple(self.hint.text().split("\n")) if not self.isHidden() else ()

    # Inside

    def _tell(self, join: Join, *, is_linked: bool) -> None:
        if is_linked and join.match is not None:
            show_text(self.hint, "\n".join(join.match.sentences), "note")
        elif join.refusal:
            show_text(self.hint, join.refusal, "warning")
        else:
            show_text(self.hint, OFFER, "note")

    def _on_layer(self) -> None:
        """Join with another layer, by the column and the picture that fit best."""
        layer = self._layer()
        self.wanted.emit(None if layer is None else JoinRequest((image_of(layer),)))

    def _ask(self) -> None:
        """Join by another column or picture, also where nothing was joined yet."""
        layer, join = self._layer(), self._join
        if layer is None and join is not None and join.image is not None:
            layer = layer_of(self._viewer, join.image)
        if layer is None:
            return
        column, picture = self.column.value, self.picture.value
        self.wanted.emit(
            JoinRequest(
                (image_of(layer),),
                None if column == CHOOSE else column,
                picture if isinstance(picture, Picture) else None,
            )
        )

    def _layer(self) -> Labels | None:
        layer = self.layer.value
        return layer if isinstance(layer, Labels) else None


def image_of(layer: Labels) -> LabelImage:
    """Return the pixels of a Labels layer as rows can be joined with."""
    return LabelImage(layer.name, finest(layer))


def layer_of(viewer: napari.Viewer, image: LabelImage) -> Labels | None:
    """Return the Labels layer that an image was taken from; None if it is gone."""
    layers = [x for x in viewer.layers if is_labels(x)]
    same = [x for x in layers if finest(x) is image.pixels]
    named = [x for x in layers if x.name == image.name]
    return next(iter([*same, *named]), None)


def with_labels(source: Any, viewer: napari.Viewer) -> Any:
    """Return a file as a source whose rows may be the objects of a layer.

    The active layer is looked at first, then the uppermost.  Large images, and those
    that are read or computed part by part, only if a person chooses them.
    """
    if not isinstance(source, FileSource) or source.request is not None:
        return source
    layers = [x for x in viewer.layers if is_labels(x)][::-1]
    active = viewer.layers.selection.active
    layers.sort(key=lambda layer: layer is not active)
    images = [image_of(x) for x in layers]
    images = [x for x in images if getattr(x.pixels, "nbytes", 0) <= LARGEST_GUESS]
    if not images:
        return source
    return FileSource(source.path, JoinRequest(tuple(images), is_guess=True))


def joined_layers(viewer: napari.Viewer, join: Join | None) -> Linked | None:
    """Return the layers that show the objects of a file's rows; None without any."""
    if join is None or join.match is None or join.image is None:
        return None
    labels = layer_of(viewer, join.image)
    if labels is None:
        return None
    images = [x for x in viewer.layers if isinstance(x, Image)]
    selected = list(viewer.layers.selection)
    return Linked(labels, tuple(proposed(labels, images, selected)))


def _offer(combo: ComboBox, choices: list[tuple[str, Any]], chosen: Any) -> None:
    with combo.changed.blocked():
        combo.choices = choices
        if any(value is chosen or value == chosen for _, value in choices):
            combo.value = chosen
