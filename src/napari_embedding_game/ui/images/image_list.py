"""Checkable list of the image layers in which objects are measured."""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakKeyDictionary, WeakSet

from napari.layers import Image, Labels, Layer
from qtpy.QtCore import QSignalBlocker, Qt, Signal
from qtpy.QtWidgets import QListWidget, QListWidgetItem

from napari_embedding_game.data.images.channels import planes
from napari_embedding_game.ui.images.alignment import misfit, proposed
from napari_embedding_game.ui.images.linked_layers import finest

CHECKED, UNCHECKED = Qt.CheckState.Checked, Qt.CheckState.Unchecked
MOST_ROWS = 5
"""Rows that are seen at once."""
TIP = "Images of these objects: brightness and texture are measured in each."


class ImageList(QListWidget):
    """Image layers that may be measured in; those that do not fit say why.

    ``ticked`` tells that a person set or took away a tick.
    """

    ticked = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setToolTip(TIP)
        self.setSelectionMode(QListWidget.SelectionMode.NoSelection)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setWordWrap(True)
        self.setViewportMargins(0, 3, 0, 0)  # one row stands in the middle
        self._misfits: dict[Image, str] = {}
        self._ticks: tuple[Image, ...] = ()
        self._chosen: WeakKeyDictionary[Layer, WeakSet[Image]] = WeakKeyDictionary()
        """What a person ticked, by the labels it was for."""
        self._labels: Labels | None = None
        self.itemChanged.connect(self._on_changed)
        self.itemClicked.connect(self._on_clicked)

    def offer(
        self, labels: Labels | None, images: Sequence[Image], selected: Sequence[Layer]
    ) -> None:
        """List these images for labels, with the person's ticks or the proposal."""
        self._labels, self._misfits, wanted = labels, {}, []
        if labels is not None:
            self._misfits = {image: misfit(image, labels) for image in images}
            kept = self._chosen.get(labels)
            wanted = proposed(labels, images, selected) if kept is None else kept
        with QSignalBlocker(self):
            self.clear()
            for image, reason in self._misfits.items():
                item = QListWidgetItem(self._words(image, reason), self)
                item.setToolTip(item.text())
                if reason:
                    item.setFlags(Qt.ItemFlag.NoItemFlags)
                else:
                    item.setCheckState(CHECKED if image in wanted else UNCHECKED)
        self._ticks = self.images()
        self.setVisible(bool(self._misfits))
        rows = min(MOST_ROWS, max(1, self.count()))
        self.setFixedHeight(rows * max(18, self.sizeHintForRow(0)) + 6)

    def images(self) -> tuple[Image, ...]:
        """Return the images with a tick."""
        states = (self.item(row).checkState() for row in range(self.count()))
        pairs = zip(self._misfits.items(), states, strict=True)
        return tuple(x for (x, reason), at in pairs if at == CHECKED and not reason)

    def n_usable(self) -> int:
        """Return how many of the images fit."""
        return sum(not reason for reason in self._misfits.values())

    def _words(self, image: Image, reason: str) -> str:
        if reason:
            return f"{image.name} ({reason})"
        n = 1
        if not image.rgb and self._labels is not None:
            n = len(planes(finest(image), tuple(finest(self._labels).shape)))
        return f"{image.name} ({n} channels)" if n > 1 else image.name

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
