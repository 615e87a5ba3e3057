"""Find the layers that a map is about: open them again, or say what is missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from napari.layers import Image, Labels
from qtpy.QtCore import Signal
from qtpy.QtWidgets import QFileDialog

from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.images.experiment import Experiment
from napari_embedding_game.data.label_objects import Objects, share_shown
from napari_embedding_game.data.stages import Stages
from napari_embedding_game.session.file.saved_map import SavedMap
from napari_embedding_game.session.loading import Loading
from napari_embedding_game.session.session import Session, sentence
from napari_embedding_game.session.sources import ExperimentSource, Source
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.images.alignment import misfit, proposed
from napari_embedding_game.ui.images.fields import show_experiment
from napari_embedding_game.ui.images.layer_panel import LayerPanel
from napari_embedding_game.ui.images.linked_layers import (
    Linked,
    LinkedLayers,
    finest,
    images_of,
    labels_of,
    record_of,
    use_as_labels,
)
from napari_embedding_game.ui.style.form_widgets import show_text
from napari_embedding_game.ui.style.layouts import in_lines, push_button
from napari_embedding_game.ui.tasks.late_errors import log_error
from napari_embedding_game.ui.tasks.worker import Latest

if TYPE_CHECKING:
    import napari

Record = Mapping[str, str]
"""Name and path of a layer."""
MOSTLY = 0.5
"""Share of the objects from which on a label image is taken for an edited one."""
COMPARED = 1_000
"""Objects whose pixels are compared."""
OTHERS = "{:.1%} of the objects have changed in the labels '{}' since they were read."
EDITED = "The labels '{}' were edited since they were read."
OTHER_IMAGES = (
    "The images of {} are others than those that were measured: locate the folder that "
    "was, or measure these with Open > Images and labels."
)
NO_LABELS = "The labels {}of these objects are not open: open them and their image."
NO_IMAGE = "The image {}of these objects is not open: open it."
NO_FOLDER = "The images of {} are not open: locate their folder."
LOCATE = "Locate folder…"
TIP = "The map stays, with its names and edits."


class Relink(LayerPanel):
    """Says which layer of the map is missing, or differs from it, and offers a way.

    A layer is linked as soon as it is open.  ``wanted`` asks to read the objects of
    the linked labels again, ``missed`` tells that a layer is missing.
    """

    missed = Signal()
    wanted = Signal()

    def __init__(
        self,
        viewer: napari.Viewer,
        session: Session,
        loading: Loading,
        record: LinkedLayers,
    ) -> None:
        super().__init__(viewer)
        self._session, self._loading, self._record = session, loading, record
        self._of_folder = self._differs = ""
        """What is said of a folder of images, and of labels that were changed."""
        self._n_edits = self._n_read = 0
        """Edits of the linked labels: all, and those that are read."""
        self._watched: Labels | None = None
        self._of_labels = Connections(self)
        self._act: Callable[[], None] = self._locate
        self.rows.addWidget(self.text)
        self.button = push_button("", TIP, lambda: self._act())
        self.rows.addWidget(self.button)
        # What it brings is done in the window's thread.
        self._beside = Latest(self, lambda act: act(), self._on_failed)
        self.follow((viewer.layers.selection.events.changed,))
        self._connections.connect(record.changed, self._on_linked)
        self._connections.connect(session.dataset_changed, self._on_dataset)
        self._connections.connect(session.restored, self._on_restored)
        self._on_linked(record.current)
        self._tell()

    def open_again(self) -> None:
        """Open the files of layers that are missing, where they still exist."""
        described, folder = self._record.missed, self._folder()
        if described is None:
            return
        is_none_there = self._record.current is None
        if is_none_there and folder is not None:
            self._open_folder(folder)
            return
        present = images_of(self._viewer)
        lost = [x for x in described["images"] if _layer_of(x, present) is None]
        if is_none_there:
            self._open(described["labels"], is_labels=True)
        for image in {x.get("path", ""): x for x in lost[::-1]}.values():
            self._open(image)  # once, also where it became several layers

    def refresh(self, event: object = None) -> None:
        """Link layers that have come, and unlink those that are gone."""
        record = self._record
        linked, objects = record.current, self._objects()
        if linked is not None and linked.labels not in self._viewer.layers:
            described = record.describe()
            record.set(None)
            self._miss(described)
        if objects is not None and record.missed is not None:
            found = find(self._viewer, record.missed, objects)
            if found is not None:
                self._link(found)
        self._tell()

    def note_asked(self, source: Source | None) -> None:
        """Note that the objects of labels are going to be read as they are now."""
        if self._watched is not None and pixels_of(source) is finest(self._watched):
            self._n_read = self._n_edits

    def note_loaded(self) -> None:
        """Note that they were read, and edited no more meanwhile."""
        if self._n_read == self._n_edits:
            self._differs = ""
        self._tell()

    # What happens

    def _on_linked(self, linked: Linked | None) -> None:
        """Watch the labels that are linked now."""
        labels = None if linked is None else linked.labels
        if labels is not self._watched:
            self._of_labels.close()
            self._watched, self._differs = labels, ""
            if labels is not None:  # a look sets off none of these
                events = labels.events.paint, labels.events.data
                self._of_labels.connect_all(events, self._on_edit)
        self.refresh_soon()

    def _on_edit(self, event: object = None) -> None:
        self._n_edits += 1
        assert self._watched is not None
        self._differs = EDITED.format(self._watched.name)
        self._tell()

    def _on_restored(self, saved: SavedMap) -> None:
        if self._record.current is None and self._objects() is not None:
            self._miss(saved.view.get("layers"))
            self.refresh()

    def _on_dataset(self, dataset: object) -> None:
        self._record.missed = None
        self._tell()

    def _miss(self, described: object) -> None:
        """Look for layers; the file that tells of them may hold anything."""
        known = described if isinstance(described, Mapping) else {}
        images = known.get("images")
        images = images if isinstance(images, list | tuple) else ()
        self._record.missed = {
            "labels": _record_in(known.get("labels")),
            "images": [_record_in(x) for x in images if isinstance(x, Mapping)],
        }
        self._of_folder = ""

    def _link(self, found: Linked) -> None:
        """Link layers; what is still missing is looked for on."""
        record, dataset = self._record, self._session.dataset
        former, described = record.current, record.missed
        is_whole = described is None or _lost_image(described, found) is None
        record.set(found, None if is_whole else described)
        is_new = former is None or former.labels is not found.labels
        if is_new and dataset is not None and dataset.source_objects is not None:
            pixels = finest(found.labels)
            share = share_shown(pixels, dataset.source_objects, COMPARED)
            if share < 1:
                self._differs = OTHERS.format(1 - share, found.labels.name)

    # What is told

    def _tell(self) -> None:
        """Say the first thing that is wrong, and offer what mends it."""
        text, words, self._act = self._trouble()
        is_new = text not in ("", self.text.text())
        show_text(self.text, text, "warning")
        self.button.setText(in_lines(words))
        self.button.setVisible(bool(words))
        self.setVisible(bool(text))
        if is_new and self._record.missed is not None:
            self.missed.emit()

    def _trouble(self) -> tuple[str, str, Callable[[], None]]:
        """Return a sentence, the words of a button ("" for none), what it does."""
        described, linked = self._record.missed, self._record.current
        folder = self._folder() if linked is None else None
        if folder is not None:
            text = self._of_folder or NO_FOLDER.format(folder)
            return text, LOCATE, self._locate
        if described is not None and (text := missing(described, linked)):
            image = None if linked is None else self._candidate(linked)
            words = "" if image is None else f"This is the image: {image.name}"
            return text, words, self._take_image
        dataset = self._session.dataset
        is_measured = dataset is not None and "measured" in dataset.provenance
        words = "Measure again" if is_measured else "Link again"
        can_read = is_measured or self._loading.taken is not None
        return self._differs, words if can_read else "", self.wanted.emit

    def _candidate(self, linked: Linked) -> Image | None:
        """Return a layer that may be the missing image: the active, else the last."""
        images = [x for x in images_of(self._viewer) if x not in linked.images]
        fitting = [x for x in images if not misfit(x, linked.labels)]
        fitting.sort(key=lambda x: x is self._viewer.layers.selection.active)
        return fitting[-1] if fitting else None

    def _take_image(self) -> None:
        """Take the offered layer for the image that is missing."""
        described, linked = self._record.missed, self._record.current
        image = None if linked is None else self._candidate(linked)
        if described is not None and linked is not None and image is not None:
            lost, images = _lost_image(described, linked), described["images"]
            images = [record_of(image) if x is lost else x for x in images]
            self._record.missed = {**described, "images": images}
            self.refresh()

    def _objects(self) -> Objects | None:
        dataset = self._session.dataset
        return None if dataset is None else dataset.objects

    # Files

    def _folder(self) -> Path | None:
        """Return the folder of the images that were measured; None of other data."""
        dataset, described = self._session.dataset, self._record.missed
        if dataset is None or described is None or not _measured(dataset):
            return None
        path = described["labels"].get("path", "")
        path = path or str(dataset.provenance["measured"].get("folder", ""))
        return Path(path) if path else None

    def _locate(self) -> None:
        name = QFileDialog.getExistingDirectory(self, "Where the images are now")
        if name:
            self._open_folder(Path(name))

    def _open_folder(self, folder: Path) -> None:
        """Show the images of a folder that were measured before, and link them."""
        dataset, experiment = self._session.dataset, Experiment(folder)
        if dataset is None or not folder.is_dir():
            return
        names = _measured(dataset)

        def look() -> Stages[Callable[[], None]]:
            images = yield from experiment.look()

            def show() -> None:
                if dataset is not self._session.dataset:
                    return
                if images.names[: len(names)] != names:
                    self._of_folder = OTHER_IMAGES.format(folder.name)
                else:
                    self._loading.ask_again_as(ExperimentSource(experiment))
                    self._link(show_experiment(self._viewer, images, dataset.name))
                self._tell()

            return show

        self._of_folder = f"Opening the images of {folder} again …"
        self._beside.ask(look)
        self._tell()

    def _on_failed(self, error: BaseException) -> None:
        log_error("Images could not be linked again", error)
        self._of_folder = sentence(error)
        self._tell()

    def _open(self, layer: Record, *, is_labels: bool = False) -> None:
        """Open the file of a layer, where there is one."""
        path, name = layer.get("path", ""), layer.get("name", "")
        if not path or not Path(path).is_file():
            return
        how = {"plugin": "napari", "layer_type": "image"}
        try:
            opened = self._viewer.open(path, **how, **({"name": name} if name else {}))
            if is_labels:  # they may have been made of a mask
                use_as_labels(self._viewer, opened[0])
        except Exception as error:  # whatever the reader raises: it stays missing
            log_error(f"{path} could not be opened again", error)


def find(
    viewer: napari.Viewer, described: Mapping[str, Any], objects: Objects
) -> Linked | None:
    """Return the layers that show these objects, or None.

    The Labels layer is that in which most objects are as they were, of several the one
    of the same name; the images are known by name or file, or else as they are proposed
    for measuring.
    """
    name, known = described["labels"].get("name"), labels_of(viewer)
    shares = [(share_shown(finest(x), objects), x.name == name) for x in known]
    share, labels = max(
        zip(shares, known, strict=True), key=lambda one: one[0], default=((0.0,), None)
    )
    if labels is None or share[0] < MOSTLY:
        return None
    images = [x for x in viewer.layers if isinstance(x, Image)]
    if not any(one.get("name") for one in described["images"]):
        return Linked(labels, tuple(proposed(labels, images)))
    fitting = [x for x in images if not misfit(x, labels)]
    found = [_layer_of(one, fitting) for one in described["images"]]
    return Linked(labels, tuple(dict.fromkeys(x for x in found if x is not None)))


def missing(described: Mapping[str, Any], linked: Linked | None) -> str:
    """Return the sentence that says which layer is missing; "" where none is."""
    lost = described["labels"] if linked is None else _lost_image(described, linked)
    if lost is None:
        return ""
    name, path = lost.get("name"), lost.get("path")
    which = (f"'{name}' " + (f"(from {path}) " if path else "")) if name else ""
    return (NO_LABELS if linked is None else NO_IMAGE).format(which)


def pixels_of(source: Source | None) -> Any:
    """Return the labels that a source reads its objects from; None without any."""
    if isinstance(source, ExperimentSource):
        images = source.experiment.images
        return None if images is None else images.labels
    request = getattr(source, "request", None)
    return getattr(source, "labels", None) if request is None else request.pixels


def _record_in(layer: object) -> Record:
    known = layer.items() if isinstance(layer, Mapping) else ()
    return {str(key): value for key, value in known if isinstance(value, str)}


def _lost_image(described: Mapping[str, Any], linked: Linked) -> Record | None:
    """Return what is recorded of the first image that is not linked."""
    images = described["images"]
    return next((x for x in images if _layer_of(x, linked.images) is None), None)


def _layer_of(recorded: Record, images: Sequence[Image]) -> Image | None:
    """Return the layer of this name, else of this file."""
    name, path = recorded.get("name"), recorded.get("path")
    named = [x for x in images if x.name == name]
    of_file = [x for x in images if path and record_of(x)["path"] == path]
    return next(iter([*named, *of_file]), None)


def _measured(dataset: Dataset) -> tuple[str, ...]:
    """Return the names of the images of a folder that was measured."""
    measured = dataset.provenance.get("measured")
    images = measured.get("images") if isinstance(measured, Mapping) else None
    known = images if isinstance(images, list | tuple) else ()
    return tuple(str(x.get("name")) for x in known if isinstance(x, Mapping))
