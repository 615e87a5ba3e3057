"""Panel to measure the objects of a Labels layer, or to use its table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from magicgui.widgets import ComboBox, PushButton
from napari.layers import Image, Labels, Layer
from qtpy.QtCore import QTimer, Signal
from qtpy.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from napari_embedding_game.data.columns import is_of_a_map
from napari_embedding_game.data.images.crops import planes
from napari_embedding_game.data.images.field_stack import FieldStack
from napari_embedding_game.data.images.label_column import (
    id_columns,
    possible_id_columns,
)
from napari_embedding_game.data.images.measure import FirstAxis
from napari_embedding_game.session.sources import FeaturesSource, MeasuredSource
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.images.alignment import fit_of, pixel_size, pixels_on
from napari_embedding_game.ui.images.image_list import ImageList
from napari_embedding_game.ui.images.linked_layers import Linked, Table, finest
from napari_embedding_game.ui.style.form_widgets import (
    add_row,
    form,
    show_text,
    text_label,
)

if TYPE_CHECKING:
    import napari

BY_NAME, NOT_LINKED = "The known names", "None: do not link"
CHOOSE = (
    "{} images have the pixels of '{}': tick those that show these objects. Several "
    "are measured as channels of one picture, so leave out other fields of view."
)
FORM_ONLY = "No image is ticked: only the form is measured."
AXES = (("Depth (z)", "z"), ("Time", "time"), ("Images", "image"))
COLORS = ("red", "green", "blue")
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
        self._looked_at: tuple[object, tuple[object, ...]] = (self, ())
        """The table whose columns are on offer, and their names."""
        self.labels = ComboBox(
            choices=[], tooltip="The segmented objects; each becomes a point."
        )
        self.images = ImageList()
        self.axis = ComboBox(
            choices=AXES,
            tooltip="What the first axis of the labels is: depth, time, or images of "
            "their own, such as the fields of a plate.",
        )
        self.ids = ComboBox(
            choices=[BY_NAME],
            tooltip="Which column of the table says which object a row is: its number "
            "in the label image.",
        )
        self.hint = text_label()
        self.measure = PushButton(
            text="Measure objects",
            tooltip="Measure shape, brightness and texture of every object.",
        )
        self.take = PushButton(
            text="Take its table",
            tooltip="Use the measurements that the Labels layer has already.",
        )
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.timeout.connect(self.refresh)
        self._build()
        self._connect()
        self.refresh()

    def refresh(self, event: object = None) -> None:
        """Offer the layers that there are."""
        layers = self._viewer.layers
        labels = [x for x in layers if is_labels(x) and not is_of_fields(x)]
        self._offer(self.labels, [(x.name, x) for x in labels], self._preferred(labels))
        self._watch([x for x in layers if isinstance(x, Image) or x in labels])
        self.setVisible(bool(labels))
        self.offered.emit()
        self._on_labels()

    def linked(self) -> Linked | None:
        """Return the chosen layers; None without labels."""
        labels = self.labels.value
        return None if labels is None else Linked(labels, self.images.images())

    def table_of(self, labels: Labels) -> tuple[FeaturesSource, Linked, Table]:
        """Return the table of a Labels layer as a source, and its layers."""
        is_chosen = labels is self.labels.value
        choice = self.ids.value if is_chosen else BY_NAME
        source = FeaturesSource(
            labels.features.copy(),
            labels.name,
            None if choice == NOT_LINKED else finest(labels),
            None if choice in (BY_NAME, NOT_LINKED) else choice,
            self.axis.value if is_chosen else "z",
        )
        return source, self.linked_to(labels), Table(labels, source.features)

    def linked_to(self, labels: Labels) -> Linked:
        """Return a Labels layer with the images that are ticked for it."""
        linked = self.linked() if labels is self.labels.value else None
        return linked or Linked(labels)

    # Inside

    def _build(self) -> None:
        rows = self._form = form()
        add_row(rows, "Objects", self.labels)
        add_row(rows, "Measure in", self.images)
        add_row(rows, "First axis", self.axis)
        add_row(rows, "Rows by", self.ids)
        buttons = QHBoxLayout()
        buttons.addWidget(self.measure.native, 1)
        buttons.addWidget(self.take.native, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addLayout(rows)
        column.addWidget(self.hint)
        column.addLayout(buttons)

    def _connect(self) -> None:
        self.labels.changed.connect(self._on_labels)
        self.images.ticked.connect(self._tell)
        self.measure.changed.connect(self._on_measure)
        self.take.changed.connect(self._on_take)
        layers = self._viewer.layers
        connect = self._connections.connect
        connect(layers.events.inserted, self.refresh)
        connect(layers.events.removed, self.refresh)
        connect(layers.selection.events.changed, self._on_selection)

    def _watch(self, layers: list[Layer]) -> None:
        """Follow how these layers lie and are called, and no others any more."""
        self._of_layers.close()
        self._of_layers.connect_all(_events(layers), self._on_layer)

    def _on_layer(self, event: object = None) -> None:
        self._soon.start(0)

    def _on_selection(self, event: object = None) -> None:
        selected = [x for x in self.labels.choices if x in self._selected()]
        if len(selected) == 1:
            with self.labels.changed.blocked():
                self.labels.value = selected[0]
        self._on_labels()

    def _preferred(self, labels: list[Labels]) -> Labels | None:
        """Return the labels to begin with: the chosen ones, else the selected."""
        chosen = [x for x in labels if x is self.labels.value]
        selected = [x for x in labels if x in self._selected()]
        return next(iter([*chosen, *selected, *labels[::-1]]), None)

    def _selected(self) -> list[Layer]:
        return list(self._viewer.layers.selection)

    @staticmethod
    def _offer(combo: ComboBox, choices: list[tuple[str, Any]], chosen: Any) -> None:
        with combo.changed.blocked():
            combo.choices = choices
            if choices:
                combo.value = chosen

    def _on_labels(self) -> None:
        labels = self.labels.value
        layers = self._viewer.layers
        images = [x for x in layers if isinstance(x, Image) and not is_of_fields(x)]
        self.images.offer(labels, images, self._selected())
        self._form.setRowVisible(1, bool(images))
        n_axes = 0 if labels is None else finest(labels).ndim
        axes = AXES if n_axes < 4 else AXES[-1:]
        if tuple(value for _, value in axes) != tuple(self.axis.choices):
            self._offer(self.axis, list(axes), axes[0][1])
        self._form.setRowVisible(2, n_axes >= 3)
        self._offer_ids(labels)
        self._tell()

    def _offer_ids(self, labels: Labels | None) -> None:
        """Let a person choose the column of labels where it may be another one."""
        features = None if labels is None else labels.features
        names = () if features is None else tuple(features)
        if self._looked_at[0] is features and self._looked_at[1] == names:
            return  # that takes long for many rows
        self._looked_at = features, names
        told = [] if features is None else [c for c in features if not is_of_a_map(c)]
        self.take.native.setVisible(bool(set(told) - {"index"}))
        columns = [] if features is None else possible_id_columns(features)
        by_name = [] if features is None else id_columns(features)
        several = [*columns, NOT_LINKED]
        chosen = self.ids.value if self.ids.value in several else BY_NAME
        choices = [(name, name) for name in (BY_NAME, *several)]
        self._offer(self.ids, choices, chosen)
        is_choice = len(columns) > 1 or (bool(columns) and not by_name)
        self._form.setRowVisible(3, is_choice and bool(set(told) - {"index"}))

    def _tell(self) -> None:
        """Say what is going to be measured, and in what."""
        labels, images = self.labels.value, self.images.images()
        n_usable = self.images.n_usable()
        self.measure.text = "Measure objects" if images else "Measure form only"
        if labels is None or images:
            show_text(self.hint, "\n".join(self.images.notes()), "note")
        elif n_usable > 1:
            show_text(self.hint, CHOOSE.format(n_usable, labels.name), "warning")
        else:
            show_text(self.hint, FORM_ONLY, "note")

    def _on_measure(self) -> None:
        linked = self.linked()
        if linked is not None:
            self.wanted.emit(measured_source(linked, self.axis.value), linked, None)

    def _on_take(self) -> None:
        if self.labels.value is not None:
            self.wanted.emit(*self.table_of(self.labels.value))


def is_labels(layer: object) -> bool:
    """Return whether a layer holds segmented objects."""
    return isinstance(layer, Labels)


def is_of_fields(layer: Layer) -> bool:
    """Return whether a layer is of an experiment, whose files are measured."""
    return isinstance(finest(layer), FieldStack)


def measured_source(linked: Linked, first_axis: FirstAxis) -> MeasuredSource:
    """Return the objects of layers as a source, measured where the images lie."""
    labels = linked.labels
    return MeasuredSource(
        _pixels(linked.images, labels),
        finest(labels),
        labels.name,
        pixel_size(labels),
        first_axis,
        _notes(linked),
    )


def _notes(linked: Linked) -> tuple[str, ...]:
    """Return which images are measured in, and how those are read that are shifted."""
    if not linked.images:
        return ("Only the form was measured: no image was ticked.",)
    names = ", ".join(f"'{image.name}'" for image in linked.images)
    fits = [(image.name, fit_of(image, linked.labels)) for image in linked.images]
    laid = [f"'{name}' is {fit.note}." for name, fit in fits if fit.note]
    return (f"Measured in {names}.", *laid)


def _pixels(images: tuple[Image, ...], labels: Labels) -> Any:
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


def _events(layers: list[Layer]) -> Iterator[Any]:
    for layer in layers:
        more = ("features",) if isinstance(layer, Labels) else ()
        yield from (getattr(layer.events, name) for name in (*_LAID, *more))
