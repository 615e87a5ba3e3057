"""Panel to measure the objects of a Labels layer, or to take its table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from magicgui.widgets import CheckBox, ComboBox, PushButton
from napari.layers import Labels, Layer
from qtpy.QtCore import QTimer, Signal
from qtpy.QtWidgets import QGridLayout, QHBoxLayout, QVBoxLayout, QWidget

from napari_embedding_game.data.columns import is_of_a_map
from napari_embedding_game.data.images.channels import COLORS, planes
from napari_embedding_game.data.images.join import JoinRequest
from napari_embedding_game.data.images.measure import GROUPS, USUAL, Group
from napari_embedding_game.session.sources import FeaturesSource, MeasuredSource
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.images.alignment import fit_of, pixel_size, pixels_on
from napari_embedding_game.ui.images.image_list import ImageList
from napari_embedding_game.ui.images.linked_layers import (
    FIELDS,
    Linked,
    Table,
    finest,
    images_of,
)
from napari_embedding_game.ui.style.form_widgets import (
    add_row,
    form,
    show_text,
    text_label,
)

if TYPE_CHECKING:
    import napari

CHOOSE = (
    "{} images have the pixels of '{}': tick those that show these objects. Several "
    "are measured as channels of one picture, so leave out other fields of view."
)
FORM_ONLY = "No image is ticked: only the form is measured."
AXES = (("Depth (z)", "z"), ("Time", "time"), ("Images", "image"))
GROUP_TIPS = {
    "shape": "Area, axes, eccentricity, solidity, perimeter and roundness: some 5 s of "
    "computing for 20,000 objects.",
    "intensity": "Mean, standard deviation, lowest and highest value in each channel: "
    "less than 1 s for 20,000 objects.",
    "texture": "Entropy and contrast in each channel: less than 1 s for 20,000 "
    "objects.",
    "neighbours": "Distance to the nearest object, and mean distance to the nearest "
    "five: less than 1 s for 20,000 objects.",
}
_LAID = ("scale", "translate", "rotate", "shear", "affine", "data", "name", "blending")
"""What decides how an image lies on the labels."""


class MeasurePanel(QWidget):
    """Appears when there is a Labels layer.

    ``wanted`` brings a source, the :class:`Linked` layers that show its objects, and
    the :class:`Table` whose rows it has, or None.
    """

    wanted = Signal(object, object, object)
    offered = Signal()
    """There are labels to measure, or none any more."""

    def __init__(self, viewer: napari.Viewer) -> None:
        super().__init__()
        self._viewer = viewer
        self._connections = Connections(self)
        self._of_layers = Connections(self)
        """To the layers that are on offer."""
        self.labels = ComboBox(
            choices=[], tooltip="The segmented objects; each becomes a point."
        )
        self.images = ImageList()
        self.axis = ComboBox(
            choices=AXES,
            tooltip="What the first axis of the labels is: depth, time, or images of "
            "their own, such as the fields of a plate.",
        )
        self.groups = {
            group: CheckBox(text=group, value=group in USUAL, tooltip=GROUP_TIPS[group])
            for group in GROUPS
        }
        self.whole = CheckBox(
            text="Leave out objects that touch the border",
            tooltip="Such an object is cut off: its shape and size are not its own.",
        )
        self.hint = text_label()
        self.measure = PushButton(
            text="Measure objects", tooltip="Measure what is ticked of every object."
        )
        self.take = PushButton(
            text="Take its table",
            tooltip="Use the measurements that the Labels layer has already.",
        )
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.timeout.connect(self.refresh)
        self._build()
        self.labels.changed.connect(self._on_labels)
        self.images.ticked.connect(self._tell)
        self.measure.changed.connect(self._on_measure)
        self.take.changed.connect(self._on_take)
        events = viewer.layers.events
        self._connections.connect_all((events.inserted, events.removed), self.refresh)
        selected = viewer.layers.selection.events.changed
        self._connections.connect(selected, self._on_selection)
        self.refresh()

    def refresh(self, event: object = None) -> None:
        """Offer the layers that there are."""
        layers = self._viewer.layers
        labels = [
            x for x in layers if isinstance(x, Labels) and FIELDS not in x.metadata
        ]
        chosen = [x for x in labels if x is self.labels.value]
        selected = [x for x in labels if x in layers.selection]
        first = next(iter([*chosen, *selected, *labels[::-1]]), None)
        _offer(self.labels, [(x.name, x) for x in labels], first)
        self._of_layers.close()
        for layer in [*images_of(self._viewer), *labels]:
            names = (*_LAID, "features") if layer in labels else _LAID
            events = [getattr(layer.events, name) for name in names]
            self._of_layers.connect_all(events, self._on_layer)
        self.setVisible(bool(labels))
        self.offered.emit()
        self._on_labels()

    def linked(self) -> Linked | None:
        """Return the chosen layers; None without labels."""
        labels = self.labels.value
        return None if labels is None else Linked(labels, self.images.images())

    def linked_to(self, labels: Labels) -> Linked:
        """Return a Labels layer with the images that are ticked for it."""
        images = self.images.images() if labels is self.labels.value else ()
        return Linked(labels, images)

    def table_of(self, labels: Labels) -> tuple[FeaturesSource, Linked, Table]:
        """Return the table of a Labels layer as a source, and its layers."""
        axis = self.axis.value if labels is self.labels.value else "z"
        request = JoinRequest(labels.name, finest(labels), axis)
        table = labels.features.copy()
        source = FeaturesSource(table, labels.name, request)
        return source, self.linked_to(labels), Table(labels, table)

    def measured(self, linked: Linked) -> MeasuredSource:
        """Return objects of layers as a source, measured where the images lie."""
        labels, images = linked.labels, linked.images
        notes = ["Only the form was measured: no image was ticked."]
        if images:
            names = ", ".join(f"'{image.name}'" for image in images)
            fits = [(image.name, fit_of(image, labels).note) for image in images]
            laid = [f"'{name}' is {note}." for name, note in fits if note]
            notes = [f"Measured in {names}.", *laid]
        groups: list[Group] = [key for key in GROUPS if self.groups[key].value]
        return MeasuredSource(
            _pixels(images, labels),
            finest(labels),
            labels.name,
            pixel_size(labels),
            self.axis.value,
            groups,
            not self.whole.value,
            tuple(notes),
        )

    # Inside

    def _build(self) -> None:
        rows = self._form = form()
        add_row(rows, "Objects", self.labels)
        add_row(rows, "Measure in", self.images)
        add_row(rows, "First axis", self.axis)
        measures = QWidget()
        grid = QGridLayout(measures)
        grid.setContentsMargins(0, 0, 0, 0)
        for i, box in enumerate(self.groups.values()):
            grid.addWidget(box.native, i // 2, i % 2)
        add_row(rows, "Measures", measures)
        buttons = QHBoxLayout()
        buttons.addWidget(self.measure.native, 1)
        buttons.addWidget(self.take.native, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addLayout(rows)
        column.addWidget(self.whole.native)
        column.addWidget(self.hint)
        column.addLayout(buttons)

    def _on_layer(self, event: object = None) -> None:
        self._soon.start(0)

    def _on_selection(self, event: object = None) -> None:
        selection = self._viewer.layers.selection
        selected = [x for x in self.labels.choices if x in selection]
        if len(selected) == 1:
            with self.labels.changed.blocked():
                self.labels.value = selected[0]
        self._on_labels()

    def _on_labels(self) -> None:
        labels, images = self.labels.value, images_of(self._viewer)
        self.images.offer(labels, images, list(self._viewer.layers.selection))
        self._form.setRowVisible(1, bool(images))
        n_axes = 0 if labels is None else finest(labels).ndim
        axes = AXES if n_axes < 4 else AXES[-1:]
        if tuple(value for _, value in axes) != tuple(self.axis.choices):
            _offer(self.axis, list(axes), axes[0][1])
        self._form.setRowVisible(2, n_axes >= 3)
        columns = () if labels is None else labels.features
        told = {c for c in columns if not is_of_a_map(c)} - {"index"}
        self.take.native.setVisible(bool(told))
        self._tell()

    def _tell(self) -> None:
        """Say what is going to be measured, and in what."""
        labels, images = self.labels.value, self.images.images()
        self.measure.text = "Measure objects" if images else "Measure form only"
        if labels is None or images:
            fits = [(image.name, fit_of(image, labels).note) for image in images]
            notes = [f"'{name}' is {note}." for name, note in fits if note]
            show_text(self.hint, "\n".join(notes), "note")
        elif (n := self.images.n_usable()) > 1:
            show_text(self.hint, CHOOSE.format(n, labels.name), "warning")
        else:
            show_text(self.hint, FORM_ONLY, "note")

    def _on_measure(self) -> None:
        linked = self.linked()
        if linked is not None:
            self.wanted.emit(self.measured(linked), linked, None)

    def _on_take(self) -> None:
        if self.labels.value is not None:
            self.wanted.emit(*self.table_of(self.labels.value))


def _offer(combo: ComboBox, choices: list[tuple[str, Any]], chosen: Any) -> None:
    with combo.changed.blocked():
        combo.choices = choices
        if choices:
            combo.value = chosen


def _pixels(images: tuple[Layer, ...], labels: Labels) -> Any:
    """Return what ``measure_stages`` measures in: an array, or one by name."""
    if len(images) < 2:
        return pixels_on(images[0], labels) if images else None
    channels: dict[str, Any] = {}
    for image in images:
        parts = planes(pixels_on(image, labels), tuple(finest(labels).shape))
        names = COLORS if image.rgb else [f"channel {i + 1}" for i in range(len(parts))]
        for name, part in zip(names, parts, strict=False):  # alpha has no name
            channels[image.name if len(parts) == 1 else f"{image.name} {name}"] = part
    return channels
