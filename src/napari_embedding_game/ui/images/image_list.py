"""Checkable list of the image layers in which objects are measured."""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakKeyDictionary, WeakSet

from napari.layers import Image, Labels, Layer
from qtpy.QtCore import Qt, Signal
from qtpy.QtWidgets import QListWidget, QListWidgetItem

from napari_embedding_game.ui.images.alignment import Fit, fit_of, n_channels, proposed

CHECKED, UNCHECKED = Qt.CheckState.Checked, Qt.CheckState.Unchecked
MOST_ROWS = 5
"""Rows that are seen at once."""
_ROLE = int(Qt.ItemDataRole.UserRole)


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
        self._images: list[Image] = []
        self._fits: list[Fit] = []
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
        self._images = list(images) if labels is not None else []
        self._fits = [fit_of(image, labels) for image in self._images]
        wanted = self._wanted(labels, selected)
        self.blockSignals(True)
        self.clear()
        for image, fit in zip(self._images, self._fits, strict=True):
            self._add(image, fit, is_ticked=image in wanted)
        self.blockSignals(False)
        self.setVisible(bool(self._images))
        self._fit_height()

    def images(self) -> tuple[Image, ...]:
        """Return the images with a tick."""
        return tuple(
            image
            for row, image in enumerate(self._images)
            if self.item(row).checkState() == CHECKED
        )

    def n_usable(self) -> int:
        """Return how many of the images fit."""
        return sum(not fit.reason for fit in self._fits)

    def notes(self) -> list[str]:
        """Return how ticked images are read whose pixels are not the labels'."""
        return [
            f"'{image.name}' is {fit.note}."
            for row, (image, fit) in enumerate(
                zip(self._images, self._fits, strict=True)
            )
            if fit.note and self.item(row).checkState() == CHECKED
        ]

    # Inside

    def _wanted(
        self, labels: Labels | None, selected: Sequence[Layer]
    ) -> Sequence[Image]:
        if labels is None:
            return ()
        chosen = self._chosen.get(labels)
        if chosen is None:
            return proposed(labels, self._images, selected)
        return [
            image
            for image, fit in zip(self._images, self._fits, strict=True)
            if image in chosen and not fit.reason
        ]

    def _add(self, image: Image, fit: Fit, *, is_ticked: bool) -> None:
        assert self._labels is not None
        text = image.name
        if fit.reason:
            text += f" ({fit.reason})"
        elif (n := n_channels(image, self._labels)) > 1:
            text += f" ({n} channels)"
        item = QListWidgetItem(text, self)
        item.setToolTip(f"{image.name} {fit.reason}" if fit.reason else text)
        item.setData(_ROLE, is_ticked)
        if fit.reason:
            item.setFlags(Qt.ItemFlag.NoItemFlags)
        else:
            item.setFlags(Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsUserCheckable)
            item.setCheckState(CHECKED if is_ticked else UNCHECKED)

    def _on_clicked(self, item: QListWidgetItem) -> None:
        """Let a click on the name do what one on the box does."""
        if not item.flags() & Qt.ItemFlag.ItemIsEnabled:
            return
        was, is_now = item.data(_ROLE), item.checkState() == CHECKED
        if was == is_now:
            item.setCheckState(UNCHECKED if is_now else CHECKED)
        item.setData(_ROLE, item.checkState() == CHECKED)

    def _on_changed(self, item: QListWidgetItem) -> None:
        if self._labels is not None:
            self._chosen[self._labels] = WeakSet(self.images())
            self.ticked.emit()

    def _fit_height(self) -> None:
        rows = min(MOST_ROWS, max(1, self.count()))
        self.setFixedHeight(rows * max(18, self.sizeHintForRow(0)) + 6)
