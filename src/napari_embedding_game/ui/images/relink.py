"""Find the image and Labels layers that a restored session refers to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from napari.layers import Image
from qtpy.QtCore import QObject, QTimer, Signal

from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.images.experiment import Experiment, ExperimentImages
from napari_embedding_game.data.images.label_column import share_shown
from napari_embedding_game.data.read_options import ReadOptions
from napari_embedding_game.data.stages import Stages
from napari_embedding_game.session.file.saved_map import SavedMap
from napari_embedding_game.session.session import sentence
from napari_embedding_game.session.sources import (
    ExperimentSource,
    LoadResult,
    SampleSource,
)
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.images.alignment import fit_of, proposed
from napari_embedding_game.ui.images.experiment_layers import show_experiment
from napari_embedding_game.ui.images.linked_layers import (
    Linked,
    finest,
    record_of,
    show_pictures,
)
from napari_embedding_game.ui.images.mask_offer import use_as_labels
from napari_embedding_game.ui.images.measure_panel import is_labels, is_of_fields
from napari_embedding_game.ui.tasks.late_errors import log_error
from napari_embedding_game.ui.tasks.worker import Worker

if TYPE_CHECKING:
    import napari

    from napari_embedding_game.data.label_objects import Objects
    from napari_embedding_game.ui.workspace import Workspace

MOSTLY = 0.5
"""Share of the objects from which on a label image is taken for an edited one."""
OTHER_IMAGES = (
    "The images of {} are others than those that were measured: locate the folder that "
    "was, or measure these with Open > Images and labels."
)


@dataclass(frozen=True)
class Missing:
    """What is not open that a session is about, and what can be done."""

    sentence: str = ""
    """"" when nothing is missing."""
    candidate: str = ""
    """Name of an image layer that may be the missing one."""
    is_folder: bool = False
    """Whether it is a folder of images."""


class Relinker(QObject):
    """Links the layers that a restored session was about as soon as they are there.

    ``changed`` brings the :class:`Missing`, ``differs`` a sentence on objects that are
    others in the layer than on the map, and whether they can be measured again.

    Parameters
    ----------
    viewer : napari.Viewer
    workspace : Workspace
    """

    changed = Signal(object)
    differs = Signal(str, bool)

    def __init__(self, viewer: napari.Viewer, workspace: Workspace) -> None:
        super().__init__()
        self._viewer = viewer
        self._session = workspace.session
        self._linked = workspace.linked
        self._loading = workspace.loading
        self._worker: Worker | None = None
        self.missing = Missing()
        self._of_folder = ""
        """That a folder is being opened, or why its images cannot be linked."""
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.timeout.connect(self._try)
        self._unlinking = QTimer(self)
        self._unlinking.setSingleShot(True)
        self._unlinking.timeout.connect(self._unlink_removed)
        self._connections = Connections()
        layers = viewer.layers
        for signal, slot in (
            (self._session.dataset_changed, self._on_dataset),
            (self._session.restored, self._on_restored),
            (self._linked.changed, self._on_linked),
            (layers.events.inserted, self._on_layers),
            (layers.selection.events.changed, self._on_layers),
            (layers.events.removed, self._on_removed),
        ):
            self._connections.connect(signal, slot)

    def close(self) -> None:
        """Undo the connections to viewer and session."""
        self._soon.stop()
        self._unlinking.stop()
        self._connections.close()
        if self._worker is not None:
            self._worker.close()
            self._worker = None

    def open_again(self) -> None:
        """Open the files of layers that are missing, where they still exist."""
        described, folder = self._linked.missed, self._folder()
        if described is None:
            return
        is_none_there = self._linked.current is None
        if is_none_there and folder is not None:
            self.open_folder(folder)
        elif is_none_there and recorded_text(described, "sample") == "nuclei":
            self._make_sample()
        else:
            self._open_files(described)

    def open_folder(self, folder: Path) -> None:
        """Show the images of a folder that were measured before, and link them."""
        dataset, experiment = self._session.dataset, Experiment(folder)
        if dataset is None or not folder.is_dir():
            return

        def show(images: ExperimentImages) -> None:
            if dataset is not self._session.dataset:
                return
            if images.names[: len(_measured(dataset))] != _measured(dataset):
                self._tell_of_folder(OTHER_IMAGES.format(folder.name))
                return
            self._loading.ask_again_as(ExperimentSource(experiment))
            self._link(show_experiment(self._viewer, images, dataset.name))

        def refuse(error: BaseException) -> None:
            if dataset is self._session.dataset:
                self._tell_of_folder(sentence(error))

        self._begin(Worker(experiment.look), show, refuse)
        self._tell_of_folder(f"Opening the images of {folder} again …")

    def take_image(self) -> None:
        """Take the offered layer for the image that is missing."""
        described, linked = self._linked.missed, self._linked.current
        image = None if linked is None else self._candidate(linked)
        if described is None or linked is None or image is None:
            return
        lost = _missing_image(described, linked)
        images = [record_of(image) if x is lost else x for x in _images(described)]
        self._linked.missed = {**described, "images": images}
        self._try()

    # Inside

    def _on_restored(self, saved: SavedMap) -> None:
        if self._linked.current is None and self._objects() is not None:
            described = saved.view.get("layers")
            self._look_for(described if isinstance(described, Mapping) else {})

    def _look_for(self, described: Mapping[str, Any]) -> None:
        """Link layers that are not there as soon as they are."""
        self._linked.missed, self._of_folder = described, ""
        self._try()

    def _on_layers(self, event: object = None) -> None:
        if self.missing.sentence:
            self._soon.start(0)  # the layer is whole by then

    def _on_removed(self, event: object = None) -> None:
        self._unlinking.start(0)  # others may be removed in the same go

    def _unlink_removed(self) -> None:
        """Unlink layers that are gone, until they are open again."""
        linked, table = self._linked.current, self._linked.table
        layers = self._viewer.layers
        if table is not None and table.layer not in layers:
            self._linked.table = table = None
        if linked is not None and linked.labels not in layers:
            described = self._linked.describe()
            self._linked.set(None, table)
            self._look_for(described)

    def _on_dataset(self, dataset: object) -> None:
        self._linked.missed = None
        self._tell()

    def _on_linked(self, linked: object) -> None:
        if self._linked.missed is None:  # somebody else has linked them
            self._tell()

    def _objects(self) -> Objects | None:
        dataset = self._session.dataset
        return None if dataset is None else dataset.objects

    def _try(self) -> None:
        objects, described = self._objects(), self._linked.missed
        if objects is None or described is None:
            return
        layers = find(self._viewer, described, objects)
        if layers is not None:
            self._link(layers)
        self._tell()

    def _link(self, layers: Linked) -> None:
        """Link layers; what is still missing is looked for on."""
        former, described = self._linked.current, self._linked.missed
        is_whole = not _missing_image(described or {}, layers)
        self._linked.set(
            layers,
            self._linked.table,
            self._linked.annotation,
            None if is_whole else described,
        )
        if former is None or former.labels is not layers.labels:
            self._compare(layers)
        self._tell()

    def _compare(self, layers: Linked) -> None:
        """Say which objects of the layer are others than on the map, once it is known.

        In a thread, as all pixels are looked at.
        """
        dataset, labels = self._session.dataset, finest(layers.labels)
        objects = None if dataset is None else dataset.source_objects
        if dataset is None or objects is None:
            return
        is_measured = "measured" in dataset.provenance

        n = int(objects.present.sum())

        def tell(share: float) -> None:
            if self._linked.current is not None and share < 1:
                where = f"The labels '{layers.labels.name}' are others than those that "
                told = (
                    f"were measured: {round((1 - share) * n):,} of {n:,} objects have "
                )
                told += "another shape or place, or are gone. The map shows the former."
                self.differs.emit(where + told, is_measured)

        def job() -> float:
            return share_shown(labels, objects, n_checked=n)

        self._begin(Worker(job), tell)

    def _tell(self) -> None:
        """Say what is missing, and offer what may be it."""
        described, linked = self._linked.missed, self._linked.current
        if described is None:
            self._say(Missing())
            return
        candidate = None if linked is None else self._candidate(linked)
        folder = self._folder() if linked is None else None
        if folder is None:
            text = missing(described, linked)
        else:
            text = f"The images of {folder} are not open: locate their folder."
            text = self._of_folder or text
        name = "" if candidate is None else candidate.name
        self._say(Missing(text, name if text else "", folder is not None))

    def _tell_of_folder(self, text: str) -> None:
        self._of_folder = text
        self._tell()

    def _say(self, what: Missing) -> None:
        if what != self.missing:
            self.missing = what
            self.changed.emit(what)

    def _candidate(self, linked: Linked) -> Image | None:
        """Return a layer that may be the missing image: the active, else the last."""
        active = self._viewer.layers.selection.active
        images = [
            x
            for x in self._viewer.layers
            if isinstance(x, Image)
            and x not in linked.images
            and not is_of_fields(x)
            and not fit_of(x, linked.labels).reason
        ]
        return next((x for x in images if x is active), images[-1] if images else None)

    def _folder(self) -> Path | None:
        """Return the folder of the images that were measured; None of other data."""
        dataset = self._session.dataset
        if dataset is None or not _measured(dataset):
            return None
        path = recorded_text(self._linked.missed, "path")
        path = path or str(dataset.provenance["measured"].get("folder", ""))
        return Path(path) if path else None

    def _open_files(self, described: Mapping[str, Any]) -> None:
        labels = described.get("labels")
        if self._linked.current is None and isinstance(labels, Mapping):
            self._open(labels, "labels")
        open_images = [x for x in self._viewer.layers if isinstance(x, Image)]
        lost = [x for x in _images(described) if _layer_of(x, open_images) is None]
        paths = [one.get("path") for one in lost]
        for one, path in zip(lost, paths, strict=True):
            if paths.count(path) == 1:
                self._open(one, "image")
            elif one is lost[paths.index(path)]:  # several layers of one file
                self._open({"path": path}, "image")

    def _open(self, layer: Mapping[str, Any], kind: str) -> None:
        """Open the file of a layer, where there is one."""
        path, name = layer.get("path"), layer.get("name")
        if not isinstance(path, str) or not path or not Path(path).is_file():
            return
        options = {"name": name} if isinstance(name, str) else {}
        try:
            opened = self._viewer.open(
                path, plugin="napari", layer_type="image", **options
            )
            if kind == "labels":  # they may have been made of a mask
                use_as_labels(self._viewer, opened[0])
        except Exception as error:  # whatever the reader raises: it stays missing
            log_error(f"{path} could not be opened again", error)

    def _make_sample(self) -> None:
        """Make the picture of the sample again; it is no file."""
        objects = self._objects()

        def read() -> Stages[LoadResult]:
            return SampleSource("nuclei").read(ReadOptions())

        def show(loaded: LoadResult) -> None:
            is_same = objects is not None and objects is self._objects()
            if is_same and share_shown(loaded.labels, objects) == 1:
                active = self._viewer.layers.selection.active
                show_pictures(self._viewer, loaded)
                self._viewer.layers.selection.active = active

        self._begin(Worker(read), show)

    def _begin(
        self,
        worker: Worker,
        then: Callable[[Any], None] | None = None,
        fail: Callable[[BaseException], None] | None = None,
    ) -> None:
        """Let a worker take the place of the former one."""
        if self._worker is not None:
            self._worker.abandon()
        self._worker = worker

        def done(result: Any) -> None:
            if worker is self._worker:
                self._worker = None
                if then is not None:
                    then(result)

        def failed(error: BaseException) -> None:
            self._worker = None
            log_error("Images could not be linked again", error)
            if fail is not None:
                fail(error)

        worker.returned.connect(done)
        worker.failed.connect(failed)
        worker.begin()


def find(
    viewer: napari.Viewer, described: Mapping[str, Any], objects: Objects
) -> Linked | None:
    """Return the layers that show these objects, or None.

    The Labels layer is known by its pixels, most of which are as they were, and of
    several by how many, then by its name; the images by their names or files, or else
    as they are proposed for measuring.
    """
    name = recorded_text(described, "name")
    ranked = [
        (share_shown(finest(x), objects), x.name == name, x)
        for x in viewer.layers
        if is_labels(x)
    ]
    share, _, labels = max(ranked, key=lambda one: one[:2], default=(0.0, False, None))
    if labels is None or share < MOSTLY:
        return None
    images = [x for x in viewer.layers if isinstance(x, Image)]
    if not any(one.get("name") for one in _images(described)):
        return Linked(labels, tuple(proposed(labels, images)))
    fitting = [x for x in images if not fit_of(x, labels).reason]
    known = [_layer_of(one, fitting) for one in _images(described)]
    return Linked(labels, tuple(dict.fromkeys(x for x in known if x is not None)))


def missing(described: Mapping[str, Any], layers: Linked | None) -> str:
    """Return the sentence that says which layer is missing, and what to do."""
    if layers is None:
        labels = described.get("labels")
        labels = labels if isinstance(labels, Mapping) else {}
        which = f"The labels {_which(labels)}of these objects are not open"
        return f"{which}: open them and their image, and they are linked by themselves."
    image = _missing_image(described, layers)
    if image is None:
        return ""
    return (
        f"The image {_which(image)}of these objects is not open: open it, or the layer "
        "that it has become."
    )


def _missing_image(
    described: Mapping[str, Any], layers: Linked
) -> Mapping[str, Any] | None:
    """Return what is recorded of the first image that is not linked."""
    lost = (x for x in _images(described) if _layer_of(x, layers.images) is None)
    return next(lost, None)


def _layer_of(recorded: Mapping[str, Any], images: Sequence[Image]) -> Image | None:
    """Return the layer of this name, else of this file."""
    name, path = recorded.get("name"), recorded.get("path")
    named = [x for x in images if x.name == name]
    of_file = [x for x in images if path and record_of(x)["path"] == path]
    return next(iter([*named, *of_file]), None)


def _measured(dataset: Dataset) -> tuple[str, ...]:
    """Return the names of the images of a folder that was measured."""
    measured = dataset.provenance.get("measured")
    images = measured.get("images") if isinstance(measured, Mapping) else None
    return tuple(
        str(image.get("name"))
        for image in (images if isinstance(images, list | tuple) else ())
        if isinstance(image, Mapping)
    )


def _which(layer: Mapping[str, Any]) -> str:
    name, path = layer.get("name"), layer.get("path")
    return f"'{name}' " + (f"(from {path}) " if path else "") if name else ""


def recorded_text(described: object, what: str) -> str:
    """Return a text that the session file has on its labels, or ""."""
    labels = described.get("labels") if isinstance(described, Mapping) else None
    value = labels.get(what) if isinstance(labels, Mapping) else None
    return value if isinstance(value, str) else ""


def _images(described: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    images = described.get("images")
    for image in images if isinstance(images, list | tuple) else ():
        if isinstance(image, Mapping):
            yield image
