"""Offer a mask that was opened as an image for the labels of its objects."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from magicgui.widgets import PushButton
from napari.layers import Image, Labels
from qtpy.QtCore import QTimer, Signal
from qtpy.QtWidgets import QVBoxLayout, QWidget

from napari_embedding_game.data.images.masks import as_labels
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.images.linked_layers import (
    FILE,
    finest,
    images_of,
    record_of,
)
from napari_embedding_game.ui.style.button_text import WrappedText
from napari_embedding_game.ui.style.form_widgets import show_text, text_label

if TYPE_CHECKING:
    import napari

    from napari_embedding_game.session.session import Session

HOW = (
    "To measure the objects of an image, open their segmentation too, in which each "
    "object has a number. Convert to Labels, in the menu of a right-click on a layer, "
    "makes labels of an image."
)
OFFER = "'{}' is named like the labels of objects, which can be measured."
_NAMES = re.compile(
    r"(?<![a-z])(label(l?ed|s)?|masks?|seg(mentation|mented)?)(?![a-z])"
)


class MaskOffer(QWidget):
    """Appears when there is a mask among the images, or nothing to measure with them.

    ``changed`` tells that there is another offer, or none any more.
    """

    changed = Signal()

    def __init__(self, viewer: napari.Viewer, session: Session) -> None:
        super().__init__()
        self._viewer = viewer
        self._session = session
        self._mask: Image | None = None
        self.text = text_label()
        self.use = PushButton(
            text="",
            tooltip="Make a Labels layer of this image: each number is an object. "
            "Where all have one number, parts that do not touch are numbered.",
        )
        WrappedText(self.use.native)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addWidget(self.text)
        column.addWidget(self.use.native)
        self.use.changed.connect(self._use)
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.timeout.connect(self.refresh)
        self._connections = Connections(self)
        events = (viewer.layers.events.inserted, viewer.layers.events.removed)
        self._connections.connect_all(events, self._on_layers)
        self._connections.connect(session.dataset_changed, self.refresh)
        self.refresh()

    @property
    def has_mask(self) -> bool:
        """Whether a mask is offered."""
        return self._mask is not None

    def refresh(self, event: object = None) -> None:
        """Look for a mask among the images, and say how objects are measured."""
        images = images_of(self._viewer)
        self._mask = next((x for x in images[::-1] if _is_mask(x)), None)
        has_labels = any(isinstance(x, Labels) for x in self._viewer.layers)
        text = ""
        if self._mask is not None:
            text = OFFER.format(self._mask.name)
            self.use.text = f"Use '{self._mask.name}' as labels"
        elif images and self._session.dataset is None and not has_labels:
            text = HOW
        show_text(self.text, text, "note")
        self.use.native.setVisible(self.has_mask)
        self.setVisible(bool(text))
        self.changed.emit()

    def _on_layers(self, event: object = None) -> None:
        self._soon.start(0)  # a layer is whole by then

    def _use(self) -> None:
        if self._mask is not None and self._mask in self._viewer.layers:
            use_as_labels(self._viewer, self._mask)
            self.refresh()


def use_as_labels(viewer: napari.Viewer, mask: Image) -> None:
    """Put a Labels layer in the place of an image of whole numbers."""
    viewer.layers.remove(mask)  # its name is free then
    viewer.add_labels(
        as_labels(finest(mask)),
        name=mask.name,
        scale=mask.scale,
        translate=mask.translate,
        rotate=mask.rotate,
        shear=mask.shear,
        affine=mask.affine,
        metadata={**mask.metadata, FILE: record_of(mask)["path"]},
    )


def _is_mask(image: Image) -> bool:
    is_whole = not image.rgb and finest(image).dtype.kind in "biu"
    return is_whole and _NAMES.search(image.name.lower()) is not None
