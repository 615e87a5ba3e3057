"""A tick for each image layer in which objects may be measured."""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakKeyDictionary, WeakSet

from napari.layers import Image, Labels, Layer
from qtpy.QtCore import Signal
from qtpy.QtWidgets import QCheckBox, QWidget

from napari_embedding_game.data.images.channels import planes
from napari_embedding_game.ui.images.alignment import misfit, proposed
from napari_embedding_game.ui.images.linked_layers import finest
from napari_embedding_game.ui.style.form_widgets import text_label
from napari_embedding_game.ui.style.layouts import column, empty

TIP = "Images of these objects: brightness and texture are measured in each."


class ImageList(QWidget):
    """Image layers that may be measured in; those that do not fit say why.

    ``ticked`` tells that a person set or took away a tick.
    """

    ticked = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setToolTip(TIP)
        self.rows = column(spacing=2)
        self.setLayout(self.rows)
        self.boxes: dict[Image, QCheckBox] = {}
        """Of the images that fit."""
        self._chosen: WeakKeyDictionary[Layer, WeakSet[Image]] = WeakKeyDictionary()
        """What a person ticked, by the labels it was for."""
        self._labels: Labels | None = None

    def offer(
        self, labels: Labels | None, images: Sequence[Image], selected: Sequence[Layer]
    ) -> None:
        """List these images for labels, with the person's ticks or the proposal."""
        self._labels, self.boxes = labels, {}
        empty(self.rows)
        if labels is None:
            return
        kept = self._chosen.get(labels)
        wanted = proposed(labels, images, selected) if kept is None else kept
        for image in images:
            if reason := misfit(image, labels):
                self.rows.addWidget(text_label(f"{image.name} ({reason})"))
                continue
            n = 1 if image.rgb else len(planes(finest(image), finest(labels).shape))
            # Of as many slices as channels nothing else tells which axis is taken.
            along = " along its first axis" * (finest(image).shape[:2] == (n, n))
            many = f"{image.name} ({n} channels{along})"
            box = QCheckBox(many if n > 1 else image.name)
            box.setChecked(image in wanted)
            box.toggled.connect(self._on_ticked)
            self.boxes[image] = box
            self.rows.addWidget(box)

    def images(self) -> tuple[Image, ...]:
        """Return the images with a tick."""
        return tuple(image for image, box in self.boxes.items() if box.isChecked())

    def _on_ticked(self) -> None:
        if self._labels is not None:
            self._chosen[self._labels] = WeakSet(self.images())
            self.ticked.emit()
