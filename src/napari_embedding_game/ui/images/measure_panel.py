"""A panel to measure the objects of a Labels layer, or to use its table."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from napari.layers import Image, Labels, Layer
from qtpy.QtCore import Signal
from qtpy.QtWidgets import QCheckBox

from napari_embedding_game.data.images.channels import COLORS, split_into_channels
from napari_embedding_game.data.images.join import JoinRequest
from napari_embedding_game.data.images.measure import GROUPS, USUAL
from napari_embedding_game.data.label_objects import FirstAxis
from napari_embedding_game.session.sources import (
    AnnDataSource,
    FeaturesSource,
    FileSource,
    MeasuredSource,
)
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.images.alignment import (
    is_sheared,
    misfit_reason,
    pixel_size,
    propose_measurement_images,
)
from napari_embedding_game.ui.images.first_axis_clues import infer_first_axis
from napari_embedding_game.ui.images.layer_panel import LayerPanel
from napari_embedding_game.ui.images.linked_layers import (
    TRANSFORM_FIELDS,
    ObjectLayers,
    add_labels_of_mask,
    finest_pixels,
    list_selectable_labels_layers,
    selectable_image_layers,
)
from napari_embedding_game.ui.style.form_widgets import (
    ChoiceBox,
    TextLabel,
    check_box,
    form_layout,
)
from napari_embedding_game.ui.style.layouts import (
    clear_layout,
    equal_width_box,
    push_button,
    vertical_box,
    widget_with_layout,
)
from napari_embedding_game.ui.tasks.reading import ReadingTask

HOW = "To measure the objects of an image, open their segmentation, too."
CHOOSE = "{} images have the pixels of '{}': tick those that show these objects."
SHAPE_ONLY = "No image is ticked: only the shape is measured."
NO_IMAGE = "Only the shape was measured: no image was ticked."
SHEARED = "Sizes and shapes leave out the layer's shear: deskew it first."
TABLES = FileSource | FeaturesSource | AnnDataSource
AXES = (("Depth (z)", "z"), ("Time", "time"), ("Images", "image"))
NOT_CHOSEN = ("Time or depth?", None)
"""The choice on show until the first axis is inferred or chosen."""
CHOOSE_AXIS = (
    "Choose the first axis of '{}': Time measures each frame by itself, Depth measures "
    "whole volumes."
)
TIPS = {
    "labels": "The segmented objects: each becomes a point.",
    "images": "Images of these objects: brightness and texture are measured in each.",
    "axis": "What the first axis of the labels is. Of time and images each frame is "
    "measured by itself.",
    "whole": "The border cuts them off: their shape and size are wrong.",
    "measure": "Measure what is ticked of every object.",
}
GROUP_TIPS = {
    "shape": "Area, axes, eccentricity, solidity, perimeter, roundness: some 5 s for "
    "20,000 objects.",
    "intensity": "Mean, standard deviation, lowest and highest of each channel: 1 s.",
    "texture": "Entropy and contrast of each channel: 1 s.",
    "neighbours": "Distance to the nearest object, and to the nearest five: 1 s.",
}
_MASKS = re.compile(
    r"(?<![a-z])(label(l?ed|s)?|masks?|seg(mentation|mented)?)(?![a-z])"
)
"""Matches names of images that hold label numbers."""


class MeasurePanel(LayerPanel):
    """Lets a person choose objects, images and measures, and measures the objects.

    Objects come from a Labels layer, or from an image named like a mask.  Pictures of a
    table's rows are cut out of the ticked images.
    """

    objects_changed = Signal()
    """The layers that can be measured were updated; there may be none."""

    def __init__(self, reading: ReadingTask) -> None:
        super().__init__(reading)
        self._session, viewer = (session := reading.workspace.session), reading.viewer
        self._layer_connections = Connections(self)
        """Connections to the layers that can be chosen."""
        self.labels_choice = ChoiceBox(TIPS["labels"], self._update_choices)
        self.axis_choice = ChoiceBox(TIPS["axis"], self._on_axis_chosen)
        self._chosen_axes: WeakKeyDictionary[Layer, FirstAxis] = WeakKeyDictionary()
        """The first axes that a person chose, by layer."""
        self._inferred_axes: WeakKeyDictionary[Layer, tuple[Any, FirstAxis | None]]
        """The pixels that were examined, and their inferred first axis, by layer."""
        self._inferred_axes = WeakKeyDictionary()
        self.images_box = vertical_box(spacing=2)
        """A check box for each image that fits, and a reason for each that does not."""
        self._ticks: dict[Image, QCheckBox] = {}
        self._ticked_images: WeakKeyDictionary[Layer, WeakSet[Image]] = (
            WeakKeyDictionary()
        )
        """The images that a person ticked, by the labels."""
        self.groups = {
            group: check_box(group.capitalize(), tip, is_on=group in USUAL)
            for group, tip in GROUP_TIPS.items()
        }
        whole = "Leave out objects at the border"
        self.without_border = check_box(whole, TIPS["whole"])
        tip = TIPS["measure"]
        self.measure_button = push_button("Measure objects", tip, self.measure_objects)
        boxes = [*self.groups.values()]
        self._form = form_layout(
            ("Objects", self.labels_choice),
            ("Measure in", widget_with_layout(self.images_box), TIPS["images"]),
            ("First axis", self.axis_choice),
            (
                "Measures",
                widget_with_layout(
                    vertical_box(
                        equal_width_box(*boxes[:2]), equal_width_box(*boxes[2:])
                    )
                ),
            ),
            ("", self.without_border),
        )
        self._body = widget_with_layout(self._form)
        for part in (self._body, self.text, self.measure_button):
            self.box.addWidget(part)
        hear, layers = self._connections.connect, viewer.layers
        hear(self.update_to_layers, layers.events.inserted, layers.events.removed)
        hear(self.update_to_layers, layers.selection.events.changed)
        hear(self._update_choices, session.dataset_changed)
        self.update_to_layers()

    @property
    def can_measure(self) -> bool:
        """Whether a layer of objects is chosen."""
        return self.labels_choice.value is not None

    @property
    def first_axis(self) -> FirstAxis | None:
        """What the first axis of the labels is; None until it is inferred or chosen.

        It is "z" without labels, and for labels of two axes.
        """
        labels = self.labels_choice.value
        is_flat = labels is None or finest_pixels(labels).ndim < 3
        return "z" if is_flat else self.axis_choice.value

    def update_to_layers(self, event: object = None) -> None:
        """Offer Labels layers and masks as objects; choose, and follow their changes.

        The choice is the single selected layer, else the former one, else one of
        several selected layers, else the uppermost.  :attr:`objects_changed` is
        emitted.
        """
        images, labels = (
            selectable_image_layers(self._viewer),
            list_selectable_labels_layers(self._viewer),
        )
        objects = [*(x for x in images if _is_mask_image(x)), *labels]
        selected = [x for x in objects if x in self._viewer.layers.selection]
        present = [x for x in objects if x is self.labels_choice.value]
        first = selected if len(selected) == 1 else present or selected or objects[::-1]
        self.labels_choice.set_choices([(x.name, x) for x in objects], *first)
        self._layer_connections.close()
        for layer in (*images, *labels):
            for name in (*TRANSFORM_FIELDS, "data", "name", "blending"):
                event = getattr(layer.events, name)
                self._layer_connections.connect(self.update_to_layers_soon, event)
        self._update_choices()
        self.objects_changed.emit()

    def collect_ticked_images(self, labels: Labels) -> ObjectLayers:
        """Return a Labels layer with the ticked images.

        There are no images where the panel has other labels chosen.
        """
        chosen = [image for image, tick in self._ticks.items() if tick.isChecked()]
        return ObjectLayers(
            labels, tuple(chosen if labels is self.labels_choice.value else ())
        )

    def make_features_source_and_layers(
        self, labels: Labels
    ) -> tuple[FeaturesSource, ObjectLayers]:
        """Return a source that reads a Labels layer's feature table, and its layers.

        The layers are the labels with the ticked images.  The first axis counts as "z"
        until it is known, or where the panel has other labels chosen.
        """
        axis = self.first_axis if labels is self.labels_choice.value else None
        request = JoinRequest(labels.name, finest_pixels(labels), axis or "z")
        source = FeaturesSource(labels.features.copy(), labels.name, request)
        return source, self.collect_ticked_images(labels)

    def _update_choices(self, event: object = None) -> None:
        """Update images, first axis, texts and visible widgets to the chosen labels.

        The button to measure is shown only with data.  The panel is hidden without
        objects, unless there are images and no data yet.
        """
        labels, has_data = self.labels_choice.value, self._session.dataset is not None
        all_images = selectable_image_layers(self._viewer)
        images = [x for x in all_images if x is not labels]
        self.setVisible(self.can_measure or bool(all_images and not has_data))
        self._body.setVisible(self.can_measure)
        # Without data the Run button measures.
        self.measure_button.setVisible(self.can_measure and has_data)
        self._list_images(labels, images if self.can_measure else [])
        self._form.setRowVisible(1, bool(images))
        n_axes = 0 if labels is None else finest_pixels(labels).ndim
        if labels is not None and n_axes == 3:
            axis = self._chosen_axes.get(labels) or self._infer_first_axis(labels)
            self.axis_choice.set_choices(AXES if axis else (NOT_CHOSEN, *AXES), axis)
        else:
            self.axis_choice.set_choices(AXES[-1:])
        self._form.setRowVisible(2, n_axes >= 3)
        self._update_text()

    def _list_images(self, labels: Labels | None, images: Sequence[Image]) -> None:
        """List images with check boxes: ticked by a person before, else as proposed.

        An image that does not fit the labels is listed with the reason, without a check
        box.
        """
        clear_layout(self.images_box)
        self._ticks, ticked = {}, self._ticked_images.get(labels) if images else None
        if ticked is None and images:
            ticked = propose_measurement_images(
                labels, images, list(self._viewer.layers.selection)
            )
        for image in images:
            if reason := misfit_reason(image, labels):
                self.images_box.addWidget(TextLabel(f"{image.name} ({reason})"))
                continue
            n = (
                1
                if image.rgb
                else len(
                    split_into_channels(
                        finest_pixels(image), finest_pixels(labels).shape
                    )
                )
            )
            # With as many slices as channels the text must say which axis is used.
            along = " along its first axis" * (finest_pixels(image).shape[:2] == (n, n))
            many = f"{image.name} ({n} channels{along})"
            self._ticks[image] = tick = QCheckBox(many if n > 1 else image.name)
            tick.setChecked(image in ticked)
            tick.toggled.connect(self._on_image_ticked)
            self.images_box.addWidget(tick)

    def _update_text(self) -> None:
        """Say on button and label what will be measured, or what to choose first.

        The label is hidden where images are ticked and the first axis is known.
        """
        labels = self.labels_choice.value
        has_images = labels is not None and bool(
            self.collect_ticked_images(labels).images
        )
        target = "objects" if has_images else "shape only"
        self.measure_button.setText(f"Measure {target}")
        if labels is None:
            self.text.show_text(HOW)
        elif self.first_axis is None:
            self.text.show_text(CHOOSE_AXIS.format(labels.name), "warning")
        elif has_images:
            self.text.show_text()
        elif (n := len(self._ticks)) > 1:
            self.text.show_text(CHOOSE.format(n, labels.name), "warning")
        else:
            self.text.show_text(SHAPE_ONLY)

    def _infer_first_axis(self, labels: Layer) -> FirstAxis | None:
        """Return the inferred first axis of labels, or None.

        A result is kept until the labels have another array of pixels; without one the
        axis is inferred again.
        """
        pixels = finest_pixels(labels)
        known, axis = self._inferred_axes.get(labels, (None, None))
        if known is not pixels or axis is None:
            axis = infer_first_axis(self._viewer, labels)
            self._inferred_axes[labels] = pixels, axis
        return axis

    def _on_axis_chosen(self, axis: FirstAxis | None) -> None:
        """Note the first axis that a person chose for the labels; clear the trouble.

        Without labels, or for "Time or depth?", only the text is updated.
        """
        if self.labels_choice.value is not None and axis is not None:
            self._chosen_axes[self.labels_choice.value] = axis
            self._reading.workspace.trouble.emit("")
        self._update_text()

    def _on_image_ticked(self) -> None:
        """Note the ticked images, and link them to an open table with these labels.

        Pictures of the table's rows are then cut out of the ticked images.
        """
        labels = self.labels_choice.value
        self._ticked_images[labels] = WeakSet(self.collect_ticked_images(labels).images)
        self._update_text()
        read, layers = (
            self._reading.shown_read_result,
            self._reading.workspace.linked_layers,
        )
        linked, is_table = layers.current, read and isinstance(read.source, TABLES)
        if linked and is_table and linked.labels is labels:
            layers.set_layers(self.collect_ticked_images(labels))

    def measure_objects(self, then: Callable[[], None] | None = None) -> None:
        """Request a measurement of the chosen objects; ``then`` is called afterwards.

        A mask is first made into a Labels layer.  Without a known first axis a message
        asks for it instead.
        """
        labels, axis = self.labels_choice.value, self.first_axis
        if axis is None:
            self._reading.workspace.trouble.emit(CHOOSE_AXIS.format(labels.name))
            return
        linked = self.collect_ticked_images(labels)
        if isinstance(labels, Image):
            labels = add_labels_of_mask(self._viewer, labels, axis)
            linked = ObjectLayers(labels, linked.images)
        how = {
            "first_axis": axis,
            "groups": [group for group in GROUPS if self.groups[group].isChecked()],
            "with_border": not self.without_border.isChecked(),
        }
        self._reading.load(make_measured_source(linked, how), linked=linked, then=then)


def make_measured_source(
    layers: ObjectLayers, options: dict[str, Any]
) -> MeasuredSource:
    """Return a source that measures the objects of layers in the images that fit.

    ``options`` are those of the measurement; the pixel size is added unless they have
    a "scale".  Notes say which images are measured, and that a shear is ignored.
    """
    labels = layers.labels
    images = [image for image in layers.images if not misfit_reason(image, labels)]
    names = ", ".join(f"'{image.name}'" for image in images)
    note = f"Measured in {names}." if images else NO_IMAGE
    notes = (note, SHEARED) if is_sheared(labels) else (note,)
    channels = _collect_measurement_channels(images, labels)
    options = {"scale": pixel_size(labels), **options}
    pixels = finest_pixels(labels)
    return MeasuredSource(channels, pixels, labels.name, options, notes)


def _is_mask_image(image: Image) -> bool:
    """Return whether an image has integer pixels and is named like a mask."""
    is_integer = not image.rgb and finest_pixels(image).dtype.kind in "biu"
    return is_integer and _MASKS.search(image.name.lower()) is not None


def _collect_measurement_channels(images: Sequence[Image], labels: Labels) -> Any:
    """Return the pixels to measure objects in: an array, or a dict of channel arrays.

    The dict is by the names of images, followed by that of the channel where an image
    has several.  A single image is returned as one array, also with several channels;
    None without images.  Alpha is left out.
    """
    channels: dict[str, Any] = {}
    for image in images:
        pixels = (
            finest_pixels(image)[..., :3] if image.rgb else finest_pixels(image)
        )  # no alpha
        if len(images) == 1:
            return pixels
        parts = split_into_channels(pixels, tuple(finest_pixels(labels).shape))
        names = COLORS if image.rgb else [f"channel {i + 1}" for i in range(len(parts))]
        for name, part in zip(names, parts, strict=True):
            channels[image.name if len(parts) == 1 else f"{image.name} {name}"] = part
    return channels or None
