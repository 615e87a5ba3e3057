"""Find the layers of a restored map: open them again, or show what is missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import msgspec
import napari
from napari.layers import Image, Labels, Layer
from qtpy.QtCore import Signal
from qtpy.QtWidgets import QFileDialog

from napari_embedding_game.data.columns import share_text
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.images.experiment import ExperimentImages, open_images
from napari_embedding_game.data.images.measure import GROUPS, USUAL
from napari_embedding_game.data.label_objects import (
    Objects,
    compute_share_of_matching_objects,
)
from napari_embedding_game.data.network_paths import find_server
from napari_embedding_game.data.read_options import DEFAULT_OPTIONS, ReadOptions
from napari_embedding_game.data.read_result import ReadResult
from napari_embedding_game.session.file.saved_map import SavedMap
from napari_embedding_game.session.session import error_text
from napari_embedding_game.session.sources import (
    ExperimentSource,
    MeasuredSource,
    Source,
)
from napari_embedding_game.ui.compat import count_strokes
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.images.alignment import (
    misfit_reason,
    propose_measurement_images,
)
from napari_embedding_game.ui.images.experiment_layers import add_experiment_layers
from napari_embedding_game.ui.images.layer_panel import LayerPanel
from napari_embedding_game.ui.images.linked_layers import (
    LayerRecord,
    ObjectLayers,
    ObjectLayersRecord,
    add_labels_of_mask,
    finest_pixels,
    make_layer_record,
    selectable_image_layers,
)
from napari_embedding_game.ui.images.measure_panel import make_measured_source
from napari_embedding_game.ui.style.layouts import (
    escape_ampersands,
    push_button,
    wrap_button_text,
)
from napari_embedding_game.ui.tasks.errors import log_error
from napari_embedding_game.ui.tasks.reading import ReadingTask, ReadRequest
from napari_embedding_game.ui.tasks.worker import JobRunner

MOSTLY = 0.5
"""Share of matching objects from which on labels count as those of the map, edited."""
COMPARED = 1_000
"""Number of objects whose pixels are compared."""
OTHERS = "{} of the objects have changed in the labels '{}' since they were read."
EDITED = "The labels '{}' were edited since they were read."
OTHER_IMAGES = (
    "The images of {} are not those that were measured. Locate the measured folder, or "
    "measure these images with Open > Folder."
)
NO_LABELS = "The labels {}of these objects are not open: open them and their image."
NO_IMAGE = "The image {}of these objects is not open: open it."
NO_FOLDER = "The images of {} are not open: locate their folder."
LOCATE = "Locate folder…"
TIP = (
    "Names stay on the objects that are still there. The map stays while the numbers "
    "are the same."
)


class RelinkPanel(LayerPanel):
    """Shows which layer of the map is missing or was edited, with a button to solve it.

    A missing layer is linked as soon as it is open.
    """

    layer_missed = Signal()
    """A message on a missing layer appeared."""

    def __init__(self, reading: ReadingTask) -> None:
        super().__init__(reading)
        self._session = session = reading.workspace.session
        self._maps = reading.workspace.map_tree
        self._linked = linked_layers = reading.workspace.linked_layers
        self._folder_text = self._edit_text = ""
        """The messages on a folder of images, and on edited labels."""
        self._request: ReadRequest | None = None
        """The last request to read data."""
        self._is_read = False
        """Whether that request reads the linked labels in their present state."""
        self._watched: Labels | None = None
        """The linked labels whose edits are watched."""
        self._strokes: WeakKeyDictionary[Layer, Any] = WeakKeyDictionary()
        """The strokes of labels that were already noted."""
        self._of_labels = Connections(self)
        self.button = push_button("", TIP, lambda: self._find_problem()[2]())
        self.box.addWidget(self.text)
        self.box.addWidget(self.button)
        self._opening = JobRunner(self, self._on_folder_opened, self._on_opening_failed)
        self.update_on_layer_changes(self._viewer.layers.selection.events.changed)
        hear = self._connections.connect
        hear(self._on_linked_layers_changed, linked_layers.changed)
        hear(self._on_dataset_changed, session.dataset_changed)
        hear(self._on_map_restored, session.restored)
        hear(self._on_reading_changed, reading.changed)
        hear(self._on_data_loaded, reading.loaded)
        hear(self.open_missing_layers, reading.session_opened)
        self._on_linked_layers_changed(linked_layers.current)
        self._show_first_problem()

    def open_missing_layers(self) -> None:
        """Open the files of missing layers where they still exist.

        These are the folder of an experiment, or the files of labels and images, each
        opened once.  The labels' file is opened only while no labels are linked.  Paths
        on a server are not opened, since a session file may name any server.
        """
        missing, folder = self._linked.missing, self._find_missing_folder()
        if folder is not None:
            if not find_server(folder):
                self._open_folder(folder)
        elif missing is not None:
            present = selectable_image_layers(self._viewer)
            images = [
                x for x in missing.images if _find_recorded_layer(x, present) is None
            ]
            if self._linked.current is None:
                self._open_layer_file(missing.labels, is_labels=True)
            for image in {x.path: x for x in images[::-1]}.values():
                self._open_layer_file(
                    image
                )  # once, also where it became several layers

    def update_to_layers(self, event: object = None) -> None:
        """Change the links to layers: unlink layers that are gone, link fitting ones.

        Fitting layers are linked for missing ones.  The record of a layer that is gone
        is kept as missing.  Images whose labels are gone are unlinked, too.
        """
        linked_layers, dataset = self._linked, self._session.dataset
        linked, layers = linked_layers.current, self._viewer.layers
        if linked is not None and linked.labels not in layers:
            self._folder_text = ""
            linked_layers.set_layers(None, linked_layers.record)
        elif linked is not None and any(x not in layers for x in linked.images):
            open_images = tuple(x for x in linked.images if x in layers)
            linked_layers.set_layers(
                ObjectLayers(linked.labels, open_images), linked_layers.record
            )
        if (
            dataset is not None
            and dataset.objects is not None
            and linked_layers.missing
        ):
            fitting = find_object_layers(
                self._viewer, linked_layers.missing, dataset.objects
            )
            if fitting is not None:
                self._link_layers(fitting)
        self._show_first_problem()

    # Events

    def _on_reading_changed(self) -> None:
        """Note whether a new request reads the linked labels in their present state.

        The present strokes of all layers count as noted.
        """
        labels, last = self._watched, self._request
        self._request = request = self._reading.request
        if request is not None and request is not last:
            for layer in self._viewer.layers:
                self._strokes[layer] = count_strokes(layer)
            is_linked = labels is not None
            self._is_read = is_linked and request.source.pixels is finest_pixels(labels)

    def _on_data_loaded(self) -> None:
        """Drop the message on edits if the present labels were read; refresh texts."""
        if self._is_read:
            self._edit_text = ""
        self._show_first_problem()

    def _read_edited_labels(self) -> None:
        """Read the objects of edited labels again, with the same options.

        An experiment's source is read as it is.  Of other sources images that are gone
        are unlinked first, and the present labels replace those of the source.
        """
        linked, read = self._linked.current, self._maps.read_result
        if read is not None and isinstance(read.source, ExperimentSource):
            self._reading.read_open_map_again(read.source, read.options)
        elif linked is not None:
            images = [image for image in linked.images if image in self._viewer.layers]
            linked = ObjectLayers(linked.labels, tuple(images))
            self._linked.set_layers(linked, self._linked.missing)
            self._reading.read_open_map_again(
                *self._make_source_with_present_labels(read, linked)
            )

    def _make_source_with_present_labels(
        self, read: ReadResult | None, linked: ObjectLayers
    ) -> tuple[Source, ReadOptions]:
        """Return a source with the present labels, and the options to read it.

        A table or other source with labels is kept, and refers to the present ones.
        Else the objects are measured as the dataset records it; what it does not record
        has the usual value.
        """
        options = DEFAULT_OPTIONS
        if read is not None and isinstance(read.source, MeasuredSource):
            options = read.options  # other options are for a file or a sample
        elif read is not None and read.source.pixels is not None:
            return read.source.with_label_image(
                finest_pixels(linked.labels)
            ), read.options
        how = find_measurement_record(self._session.dataset)
        axis, groups = how.get("first_axis"), how.get("groups")
        groups = groups if isinstance(groups, list | tuple) else USUAL
        how = {
            "first_axis": axis if axis in ("time", "image") else "z",
            "groups": [group for group in GROUPS if group in groups],
            "with_border": how.get("with_border") is not False,
        }
        return make_measured_source(linked, how), options

    def _on_linked_layers_changed(self, linked: ObjectLayers | None) -> None:
        """Watch the linked labels for edits, and refresh soon.

        Other labels drop the message on edits.
        """
        labels = None if linked is None else linked.labels
        if labels is not self._watched:
            self._of_labels.close()
            self._watched, self._edit_text, self._is_read = labels, "", False
            if labels is not None:  # a change of the look emits none of these
                events = labels.events
                self._of_labels.connect(
                    self._on_labels_edited, events.paint, events.data
                )
                self._of_labels.connect(self._on_labels_data_set, events.set_data)
                self._on_labels_data_set()  # the labels may have been edited meanwhile
        self.update_to_layers_soon()

    def _on_labels_data_set(self, event: object = None) -> None:
        """Check by the number of strokes whether an edit was made or undone."""
        n_strokes = count_strokes(self._watched)
        if self._strokes.setdefault(self._watched, n_strokes) != n_strokes:
            self._on_labels_edited()

    def _on_labels_edited(self, event: object = None) -> None:
        """Show the message on edits, and note the present strokes."""
        self._is_read, self._edit_text = False, EDITED.format(self._watched.name)
        self._strokes[self._watched] = count_strokes(self._watched)
        self._show_first_problem()

    def _on_map_restored(self, saved: SavedMap) -> None:
        """Store which layers the session file records, and look for them.

        An invalid record counts as an empty one.  Nothing is done where layers are
        linked already, or the dataset has no objects.
        """
        dataset, linked_layers = self._session.dataset, self._linked
        if linked_layers.current is None and dataset is not None and dataset.objects:
            linked_layers.missing, self._folder_text = ObjectLayersRecord(), ""
            with suppress(msgspec.ValidationError):
                linked_layers.missing = msgspec.convert(
                    saved.view.get("layers"), ObjectLayersRecord
                )
            self.update_to_layers()

    def _on_dataset_changed(self, dataset: object) -> None:
        """Stop opening images, and forget the missing layers of the former data."""
        self._opening.stop()
        self._linked.missing = None
        self._show_first_problem()

    def _link_layers(self, new: ObjectLayers) -> None:
        """Link layers, and note edits of the labels; missing images stay missing.

        Newly linked labels are compared with the dataset's objects, at most
        ``COMPARED`` of them, and the share that has changed makes the message on edits.
        """
        linked_layers, previous = self._linked, self._linked.current
        self._strokes[new.labels] = count_strokes(new.labels)
        linked_layers.set_layers(new, linked_layers.missing)
        if self._missing_record is None:
            linked_layers.missing = None
        if previous is None or previous.labels is not new.labels:
            objects, pixels = (
                self._session.dataset.source_objects,
                finest_pixels(new.labels),
            )
            share = (
                compute_share_of_matching_objects(pixels, objects, COMPARED)
                if objects
                else 1.0
            )
            changed = OTHERS.format(share_text(1 - share), new.labels.name)
            self._edit_text = changed if share < 1 else ""

    # Texts

    def _show_first_problem(self) -> None:
        """Show the first problem and its button, or hide the panel.

        A new text while a layer is missing emits :attr:`layer_missed`.
        """
        text, words, _ = self._find_problem()
        is_new = text not in ("", self.text.text())
        self.text.show_text(text, "warning")
        self.button.setText(escape_ampersands(wrap_button_text(words)))
        self.button.setVisible(bool(words))
        self.setVisible(bool(text))
        if is_new and self._linked.missing is not None:
            self.layer_missed.emit()

    def _find_problem(self) -> tuple[str, str, Callable[[], object]]:
        """Return the first problem: its sentence, its button's text, and the action.

        A missing folder of images comes first, then missing labels or images, then
        edited labels.  Without a problem the sentence is "".  The button's text is ""
        where a button cannot help.
        """
        linked, layer = self._linked.current, self._missing_record
        folder = self._find_missing_folder()
        if folder is not None:
            text = self._folder_text or NO_FOLDER.format(folder)
            return text, LOCATE, self._ask_for_folder
        if layer is not None:
            path = f"(from {layer.path}) " if layer.path else ""
            which = f"'{layer.name}' {path}" if layer.name else ""
            text = (NO_LABELS if linked is None else NO_IMAGE).format(which)
            image = self._find_candidate_image()
            words = "" if image is None else f"This is the image: {image.name}"
            return text, words, lambda: self._use_as_missing_image(image)
        is_measured = bool(find_measurement_record(self._session.dataset))
        words = "Measure again" if is_measured else "Link again"
        can_read = is_measured or self._maps.read_result is not None
        return self._edit_text, words if can_read else "", self._read_edited_labels

    @property
    def _missing_record(self) -> LayerRecord | None:
        """The record of the first missing layer; None if no layer is missing.

        The labels come first, then the images.
        """
        missing, linked = self._linked.missing, self._linked.current
        if missing is None or linked is None:
            return None if missing is None else missing.labels
        gone = (
            x for x in missing.images if _find_recorded_layer(x, linked.images) is None
        )
        return next(gone, None)

    def _find_candidate_image(self) -> Image | None:
        """Return the active or else uppermost unlinked image that fits the labels.

        None where no image fits, or no labels are linked.
        """
        linked, active = self._linked.current, self._viewer.layers.selection.active
        if linked is None:
            return None
        images = [
            x for x in selectable_image_layers(self._viewer) if x not in linked.images
        ]
        fitting = [x for x in images if not misfit_reason(x, linked.labels)]
        return active if active in fitting else next(iter(fitting[::-1]), None)

    def _use_as_missing_image(self, image: Image) -> None:
        """Record an image in place of the first missing layer, and link it."""
        missing, unknown, given = (
            self._linked.missing,
            self._missing_record,
            make_layer_record(image),
        )
        images = tuple(given if x is unknown else x for x in missing.images)
        self._linked.missing = ObjectLayersRecord(missing.labels, images)
        self.update_to_layers()

    # Files

    def _find_missing_folder(self) -> Path | None:
        """Return the folder of measured images that are missing, or None.

        None also while labels are linked, or where no folder was measured or recorded.
        """
        dataset, missing = self._session.dataset, self._linked.missing
        is_open = missing is None or self._linked.current is not None
        if is_open or not _list_measured_image_names(dataset):
            return None
        path = missing.labels.path or str(
            find_measurement_record(dataset).get("folder", "")
        )
        return Path(path) if path else None

    def _ask_for_folder(self) -> None:
        """Ask a person for the folder of the images, and open it."""
        name = QFileDialog.getExistingDirectory(self, "Where the images are now")
        if name:
            self._open_folder(Path(name))

    def _open_folder(self, folder: Path) -> None:
        """Open the measured images of a folder in another thread, to be linked.

        Nothing is done without such a folder.
        """
        if not folder.is_dir():
            return
        self._folder_text = f"Opening the images of {folder} again …"
        names = _list_measured_image_names(self._session.dataset)
        self._opening.submit(partial(open_images, folder, names))
        self._show_first_problem()

    def _on_folder_opened(self, images: ExperimentImages) -> None:
        """Add and link the images as layers, or say that their names differ.

        The folder becomes the source of the open map.
        """
        dataset = self._session.dataset
        if images.names == _list_measured_image_names(dataset):
            read = self._maps.read_result or ReadResult(dataset)
            source = ExperimentSource(images.folder, images)
            self._maps.set_read_result(replace(read, source=source))
            self._link_layers(add_experiment_layers(self._viewer, images, dataset.name))
        else:
            self._folder_text = OTHER_IMAGES.format(images.folder.name)
        self._show_first_problem()

    def _on_opening_failed(self, error: BaseException) -> None:
        """Log the error, and show its text as the message on the folder."""
        log_error("Images could not be linked again", error)
        self._folder_text = error_text(error)
        self._show_first_problem()

    def _open_layer_file(self, layer: LayerRecord, *, is_labels: bool = False) -> None:
        """Open the file of a recorded layer, and restore its name and pixel size.

        ``is_labels``: the file is opened as a mask, and replaced by a Labels layer.
        Nothing happens without a local file; an error of the reader is logged.
        """
        path, name = layer.path, layer.name
        if not path or find_server(path) or not Path(path).is_file():
            return
        options = {"plugin": "napari", "layer_type": "image"}
        options |= {"name": name} if name else {}
        measured = find_measurement_record(self._session.dataset)
        try:
            opened = self._viewer.open(path, **options)
            if is_labels:  # the labels may have been made from a mask
                axis = measured.get("first_axis", "z")
                mask, labels = (
                    opened[0],
                    add_labels_of_mask(self._viewer, opened[0], axis),
                )
                self._viewer.layers.remove(mask)  # a person did not open the mask
                labels.name, opened = name or labels.name, [labels]
            for layer in opened:
                _restore_pixel_size(layer, measured.get("scale"))
        except Exception as error:  # a reader may raise anything; the layer is missing
            log_error(f"{path} could not be opened again", error)


def find_object_layers(
    viewer: napari.Viewer, record: ObjectLayersRecord, objects: Objects
) -> ObjectLayers | None:
    """Return the layers that show the objects of a record, or None.

    The Labels layer is the one with most matching objects, and of equals the one with
    the recorded name.  None where less than ``MOSTLY`` of the objects match.  Images
    that fit the labels are found by name or file; without recorded names they are those
    proposed for measuring.
    """
    layers = [x for x in viewer.layers if isinstance(x, Labels)]
    ranks = [
        (
            compute_share_of_matching_objects(finest_pixels(x), objects),
            x.name == record.labels.name,
        )
        for x in layers
    ]
    if not layers or max(ranks)[0] < MOSTLY:
        return None
    labels = layers[ranks.index(max(ranks))]
    images = [x for x in viewer.layers if isinstance(x, Image)]
    if not any(layer.name for layer in record.images):
        return ObjectLayers(labels, tuple(propose_measurement_images(labels, images)))
    fitting = [x for x in images if not misfit_reason(x, labels)]
    fitted = [_find_recorded_layer(layer, fitting) for layer in record.images]
    return ObjectLayers(
        labels, tuple(dict.fromkeys(x for x in fitted if x is not None))
    )


def _find_recorded_layer(
    recorded: LayerRecord, images: Sequence[Image]
) -> Image | None:
    """Return the image with the recorded name, else with the recorded file, or None.

    An image with both comes first.  While the recorded file exists, or is on a server,
    an image of another file does not count.
    """
    path, records = recorded.path, {image: make_layer_record(image) for image in images}
    named = [x for x, record in records.items() if record.name == recorded.name]
    if find_server(path) or Path(path).is_file():
        named = [image for image in named if records[image].path in ("", path)]
    of_file = [x for x, record in records.items() if record.path == path != ""]
    both = [image for image in named if image in of_file]
    return next(iter((*both, *named, *of_file)), None)


def find_measurement_record(dataset: Dataset | None) -> Mapping[str, Any]:
    """Return the record of how objects were measured; empty if missing or invalid."""
    values = None if dataset is None else dataset.provenance.get("measured")
    return values if isinstance(values, Mapping) else {}


def _list_measured_image_names(dataset: Dataset | None) -> tuple[str, ...]:
    """Return the names of the images in a measured folder; () if none was measured."""
    images = find_measurement_record(dataset).get("images")
    values = images if isinstance(images, list | tuple) else ()
    return tuple(str(x.get("name")) for x in values if isinstance(x, Mapping))


def _restore_pixel_size(layer: Layer, scale: Any) -> None:
    """Set the measured pixel size, along the last axes, of a layer whose scale is 1.

    A ``scale`` that is no list of lengths is ignored.
    """
    if isinstance(scale, list | tuple) and (layer.scale == 1).all():
        layer.scale = [*layer.scale[: layer.ndim - len(scale)], *scale]
