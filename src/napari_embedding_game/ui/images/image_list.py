"""Checkable list of the image layers in which objects are measured."""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakKeyDictionary, WeakSet

from napari.layers import Image, Labels, Layer
from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import QListWidget, QListWidgetItem

from napari_embedding_game.data.images.channels import planes
from napari_embedding_game.ui.images.alignment import Fit, fit_of, proposed
from napari_embedding_game.ui.images.linked_layers import finest

CHECKED, UNCHECKED = Qt.CheckState.Checked, Qt.CheckState.Unchecked
MOST_ROWS = 5
"""Rows that are seen at once."""


class ImageList(QListWidget):
    """Image layers that may be measured in; those that do not fit say why.

    ``ticked`` tells that a person set or took away a tick.
    """

    ticked = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setToolTip(
            "Images of these objects: brightness and texture are measured in each."
        )
        self.setSelectionMode(QListWidget.SelectionMode.NoSelection)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setWordWrap(True)
        self.setViewportMargins(0, 3, 0, 0)  # one row stands in the middle
        self._fits: dict[Image, Fit] = {}
        self._ticks: tuple[Image, ...] = ()
        self._chosen: WeakKeyDictionary[Labels, WeakSet[Image]] = WeakKeyDictionary()
        """What a person ticked, by the labels it was for."""
        self._labels: Labels | None = None
        self.itemChanged.connect(self._on_changed)
        self.itemClicked.connect(self._on_clicked)

    def offer(
        self, labels: Labels | None, images: Sequence[Image], selected: Sequence[Layer]
    ) -> None:
        """List these images for labels, with the person's ticks or the proposal."""
        self._labels = labels
        self._fits, wanted = {}, []
        if labels is not None:
            self._fits = {image: fit_of(image, labels) for image in images}
            wanted = proposed(labels, images, selected)
            if labels in self._chosen:
                wanted = [x for x in images if x in self._chosen[labels]]
        self.blockSignals(True)
        self.clear()
        for image, fit in self._fits.items():
            text = image.name + (f" ({fit.reason})" if fit.reason else "")
            if not fit.reason and not image.rgb and labels is not None:
                n = len(planes(finest(image), tuple(finest(labels).shape)))
                text += f" ({n} channels)" * (n > 1)
            item = QListWidgetItem(text, self)
            item.setToolTip(text)
            if fit.reason:
                item.setFlags(Qt.ItemFlag.NoItemFlags)
            else:
                item.setCheckState(CHECKED if image in wanted else UNCHECKED)
        self.blockSignals(False)
        self._ticks = self.images()
        self.setVisible(bool(self._fits))
        rows = min(MOST_ROWS, max(1, self.count()))
        self.setFixedHeight(rows * max(18, self.sizeHintForRow(0)) + 6)

    def images(self) -> tuple[Image, ...]:
        """Return the images with a tick."""
        return tuple(
            image
            for row, (image, fit) in enumerate(self._fits.items())
            if not fit.reason and self.item(row).checkState() == CHECKED
        )

    def n_usable(self) -> int:
        """Return how many of the images fit."""
        return sum(not fit.reason for fit in self._fits.values())

    def _on_clicked(self, item: QListWidgetItem) -> None:
        """Let a click on the name do what one on the box does."""
        if self.images() == self._ticks and item.flags() & Qt.ItemFlag.ItemIsEnabled:
            is_now = item.checkState() == CHECKED
            item.setCheckState(UNCHECKED if is_now else CHECKED)
        self._ticks = self.images()

    def _on_changed(self, item: QListWidgetItem) -> None:
        if self._labels is not None:
            self._chosen[self._labels] = WeakSet(self.images())
            self.ticked.emit()
