"""Offer a mask that was opened as an image for the labels of its objects."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from magicgui.widgets import PushButton
from napari.layers import Image, Labels
from qtpy.QtCore import QTimer, Signal
from qtpy.QtWidgets import QVBoxLayout, QWidget

from napari_embedding_game.data.images.masks import (
    as_labels,
    is_named_like_labels,
    looks_like_labels,
)
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.images.linked_layers import FILE, finest, record_of
from napari_embedding_game.ui.images.measure_panel import is_labels, is_of_fields
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
OFFER = "'{}' looks like the labels of objects, which can be measured."
NUMBERED = "All objects of '{}' had one value: parts that do not touch were numbered."


class MaskOffer(QWidget):
    """Appears when there is a mask among the images, or nothing to measure with them.

    ``changed`` tells that there is another offer, or none any more.

    Parameters
    ----------
    viewer : napari.Viewer
    session : Session
    """

    changed = Signal()

    def __init__(self, viewer: napari.Viewer, session: Session) -> None:
        super().__init__()
        self._viewer = viewer
        self._session = session
        self._mask: Image | None = None
        self._numbered: tuple[object, str] = (None, "")
        """Labels whose objects were numbered, and the sentence on it."""
        self.text = text_label()
        self.use = PushButton(
            text="",
            tooltip="Make a Labels layer of this image: each number is an object.",
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
        for event in (viewer.layers.events.inserted, viewer.layers.events.removed):
            self._connections.connect(event, lambda event=None: self._soon.start(0))
        self._connections.connect(session.dataset_changed, self.refresh)
        self.refresh()

    @property
    def has_mask(self) -> bool:
        """Whether a mask is offered."""
        return self._mask is not None

    def refresh(self, event: object = None) -> None:
        """Look for a mask among the images, and say how objects are measured."""
        layers = self._viewer.layers
        images = [x for x in layers if isinstance(x, Image)]
        images = [x for x in images if not is_of_fields(x)]
        self._mask = next((x for x in images[::-1] if _is_mask(x)), None)
        is_asked = self._session.dataset is None and not any(map(is_labels, layers))
        text = HOW if images and is_asked else ""
        if self._numbered[0] in layers:
            text = self._numbered[1]
        if self._mask is not None:
            text = OFFER.format(self._mask.name)
            self.use.text = f"Use '{self._mask.name}' as labels"
        show_text(self.text, text, "note")
        self.use.native.setVisible(self.has_mask)
        self.setVisible(bool(text))
        self.changed.emit()

    def _use(self) -> None:
        """Put a Labels layer in the place of the mask."""
        if self._mask is None or self._mask not in self._viewer.layers:
            return
        labels, is_numbered = use_as_labels(self._viewer, self._mask)
        if is_numbered:
            self._numbered = labels, NUMBERED.format(labels.name)
        self.refresh()


def use_as_labels(viewer: napari.Viewer, mask: Image) -> tuple[Labels, bool]:
    """Put a Labels layer in the place of an image that looks like labels.

    Returns
    -------
    labels : Labels
    is_numbered : bool
        Whether all objects had one value: then parts that do not touch were numbered.
    """
    pixels, is_numbered = as_labels(finest(mask), is_rgb=mask.rgb)
    viewer.layers.remove(mask)  # its name is free then
    labels = viewer.add_labels(
        pixels,
        name=mask.name,
        scale=mask.scale,
        translate=mask.translate,
        rotate=mask.rotate,
        shear=mask.shear,
        affine=mask.affine,
        metadata={**mask.metadata, FILE: record_of(mask)["path"]},
    )
    return labels, is_numbered


def _is_mask(image: Image) -> bool:
    path = record_of(image)["path"]
    folder = Path(path).parent.name if path else ""
    if not is_named_like_labels(image.name, folder):
        return False
    return looks_like_labels(finest(image), is_rgb=image.rgb)
