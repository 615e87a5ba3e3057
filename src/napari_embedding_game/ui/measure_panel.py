"""Measures the objects of a Labels layer, or takes the table that it has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from magicgui.widgets import ComboBox, PushButton
from napari.layers import Image, Labels
from qtpy.QtCore import Signal
from qtpy.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from napari_embedding_game.session.sources import FeaturesSource, MeasuredSource
from napari_embedding_game.ui.linked import Linked, finest
from napari_embedding_game.ui.parts import add_row, form

if TYPE_CHECKING:
    import napari

ALL, FORM_ONLY = "All images that fit", "None: form only"
OWN = {"napari-embedding-game": "own"}
"""Metadata of layers that only mark something, and hold no objects."""


class MeasurePanel(QWidget):
    """Appears when there is a Labels layer.

    ``wanted`` brings a source and the :class:`Linked` layers that show its objects.
    """

    wanted = Signal(object, object)

    def __init__(self, viewer: napari.Viewer) -> None:
        super().__init__()
        self._viewer = viewer
        self._is_chosen = False
        """Whether a person chose the image."""
        self.labels = ComboBox(
            choices=[], tooltip="The segmented objects; each becomes a point."
        )
        self.image = ComboBox(
            choices=[], tooltip="What the objects' brightness and texture are read in."
        )
        self.axis = ComboBox(
            choices=[("Depth (z)", "z"), ("Time", "time")],
            tooltip="What the first axis of the labels is.",
        )
        self.measure = PushButton(
            text="Measure objects",
            tooltip="Measure shape, brightness and texture of every object.",
        )
        self.take = PushButton(
            text="Take its table",
            tooltip="Use the measurements that the Labels layer has already.",
        )
        self._build()
        self._connect()
        self.refresh()

    def close_ties(self) -> None:
        """Let go of the viewer."""
        self._viewer.layers.events.inserted.disconnect(self.refresh)
        self._viewer.layers.events.removed.disconnect(self.refresh)

    def refresh(self, event: object = None) -> None:
        """Offer the layers that there are."""
        labels = [x for x in self._viewer.layers if is_labels(x)]
        images = [x for x in self._viewer.layers if isinstance(x, Image)]
        self._offer(self.labels, [(x.name, x) for x in labels], keep=True)
        several = [(ALL, ALL)] if len(images) > 1 else []
        named = [(x.name, x) for x in images]
        choices = [*several, *named, (FORM_ONLY, FORM_ONLY)]
        self._offer(self.image, choices, keep=self._is_chosen)
        self.setVisible(bool(labels))
        self._on_labels()

    def linked(self) -> Linked | None:
        """Return the chosen layers; None without labels."""
        labels = self.labels.value
        return None if labels is None else Linked(labels, tuple(self._images(labels)))

    # Inside

    def _build(self) -> None:
        rows = self._form = form()
        add_row(rows, "Objects", self.labels)
        add_row(rows, "Measure in", self.image)
        add_row(rows, "First axis", self.axis)
        buttons = QHBoxLayout()
        buttons.addWidget(self.measure.native, 1)
        buttons.addWidget(self.take.native, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addLayout(rows)
        column.addLayout(buttons)

    def _connect(self) -> None:
        self.labels.changed.connect(self._on_labels)
        self.image.changed.connect(self._on_image)
        self.measure.changed.connect(self._on_measure)
        self.take.changed.connect(self._on_take)
        self._viewer.layers.events.inserted.connect(self.refresh)
        self._viewer.layers.events.removed.connect(self.refresh)

    @staticmethod
    def _offer(combo: ComboBox, choices: list[tuple[str, Any]], keep: bool) -> None:
        values = [value for _, value in choices]
        stays = keep and any(combo.value is value for value in values)
        chosen = combo.value if stays else (values[0] if values else None)
        with combo.changed.blocked():
            combo.choices = choices
            if values:
                combo.value = chosen

    def _on_labels(self) -> None:
        labels = self.labels.value
        self._form.setRowVisible(2, labels is not None and labels.data.ndim == 3)
        has_table = labels is not None and bool(set(labels.features) - {"index"})
        self.take.native.setVisible(has_table)

    def _on_image(self) -> None:
        self._is_chosen = True

    def _images(self, labels: Labels) -> list[Image]:
        chosen = self.image.value
        if isinstance(chosen, Image):
            return [chosen]
        images = [x for x in self._viewer.layers if isinstance(x, Image)]
        return [x for x in images if fits(x, labels)] if chosen == ALL else []

    def _on_measure(self) -> None:
        linked = self.linked()
        if linked is None:
            return
        labels = linked.labels
        scale = tuple(map(float, labels.scale[-labels.data.ndim :]))
        self.wanted.emit(
            MeasuredSource(
                _pixels(linked.images, labels),
                finest(labels),
                labels.name,
                scale,
                self.axis.value,
            ),
            linked,
        )

    def _on_take(self) -> None:
        linked = self.linked()
        if linked is not None:
            layer = linked.labels
            source = FeaturesSource(layer.features.copy(), layer.name, finest(layer))
            self.wanted.emit(source, linked)


def is_labels(layer: object) -> bool:
    """Return whether a layer holds segmented objects that are not our own marks."""
    return isinstance(layer, Labels) and layer.metadata != OWN


def fits(image: Image, labels: Labels) -> bool:
    """Return whether an image has the shape of the labels."""
    shape = image.data.shape[:-1] if image.rgb else image.data.shape
    return tuple(shape) == tuple(labels.data.shape)


def _pixels(images: tuple[Image, ...], labels: Labels) -> Any:
    """Return what ``measure_stages`` measures in: an array, or one by name."""
    if len(images) < 2:
        return finest(images[0]) if images else None
    channels = {}
    for image in images:
        if not image.rgb:
            channels[image.name] = finest(image)
            continue
        for number, color in enumerate(("red", "green", "blue")):
            channels[f"{image.name} {color}"] = finest(image)[..., number]
    return channels
