"""Find the image and Labels layers that a restored session refers to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from napari.layers import Image
from qtpy.QtCore import QObject, QTimer, Signal

from napari_embedding_game.data.images.label_column import shows
from napari_embedding_game.session.file.saved_map import SavedMap
from napari_embedding_game.session.session import Session
from napari_embedding_game.session.sources import LoadResult, ReadOptions, SampleSource
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.images.alignment import fit_of, proposed
from napari_embedding_game.ui.images.linked_layers import (
    Linked,
    LinkedLayers,
    finest,
    show_pictures,
)
from napari_embedding_game.ui.images.measure_panel import is_labels
from napari_embedding_game.ui.tasks.worker import StageWorker

if TYPE_CHECKING:
    import napari

    from napari_embedding_game.data.label_objects import Objects


class Relinker(QObject):
    """Links the layers that a restored session was about as soon as they are there.

    ``changed`` brings the sentence that says what is still missing, "" when nothing
    is.

    Parameters
    ----------
    viewer : napari.Viewer
    session : Session
    linked : LinkedLayers
    """

    changed = Signal(str)

    def __init__(
        self, viewer: napari.Viewer, session: Session, linked: LinkedLayers
    ) -> None:
        super().__init__()
        self._viewer = viewer
        self._session = session
        self._linked = linked
        self._worker: StageWorker | None = None
        self._described: Mapping[str, Any] = {}
        self.sentence = ""
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.timeout.connect(self._try)
        self._unlinking = QTimer(self)
        self._unlinking.setSingleShot(True)
        self._unlinking.timeout.connect(self._unlink_removed)
        self._connections = Connections()
        for signal, slot in (
            (session.dataset_changed, self._on_dataset),
            (session.restored, self._on_restored),
            (viewer.layers.events.inserted, self._on_inserted),
            (viewer.layers.events.removed, self._on_removed),
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

    def look_for(self, described: Mapping[str, Any]) -> None:
        """Link layers that are not there as soon as they are."""
        self._described = self._linked.missed = described
        self._try()

    # Inside

    def _on_restored(self, saved: SavedMap) -> None:
        if self._linked.current is not None or self._objects() is None:
            return
        described = saved.view.get("layers")
        self.look_for(described if isinstance(described, Mapping) else {})
        if (
            self._linked.current is None
            and recorded_text(described, "sample") == "nuclei"
        ):
            self._make_sample()

    def _on_inserted(self, event: object = None) -> None:
        if self.sentence:
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
            self.look_for(described)

    def _on_dataset(self, dataset: object) -> None:
        self._say("")

    def _objects(self) -> Objects | None:
        dataset = self._session.dataset
        return None if dataset is None else dataset.objects

    def _try(self) -> None:
        objects = self._objects()
        if objects is None:
            return
        layers = find(self._viewer, self._described, objects)
        if layers is not None:
            self._linked.set(layers)
        self._say(missing(self._described, layers))

    def _say(self, sentence: str) -> None:
        if sentence != self.sentence:
            self.sentence = sentence
            self.changed.emit(sentence)

    def _make_sample(self) -> None:
        """Make the picture of the sample again; it is no file."""
        objects = self._objects()
        self._worker = StageWorker(lambda: SampleSource("nuclei").read(ReadOptions()))

        def show(loaded: LoadResult) -> None:
            self._worker = None
            is_same = objects is not None and objects is self._objects()
            if is_same and shows(loaded.labels, objects):
                active = self._viewer.layers.selection.active
                show_pictures(self._viewer, loaded)
                self._viewer.layers.selection.active = active

        self._worker.returned.connect(show)
        self._worker.begin()


def find(
    viewer: napari.Viewer, described: Mapping[str, Any], objects: Objects
) -> Linked | None:
    """Return the layers that show these objects, or None.

    The Labels layer is known by its pixels, and of several by its name; the images
    by their names, or else as they are proposed for measuring.
    """
    labels = [x for x in viewer.layers if is_labels(x) and shows(finest(x), objects)]
    if not labels:
        return None
    labels.sort(key=lambda layer: layer.name != recorded_text(described, "name"))
    images = [x for x in viewer.layers if isinstance(x, Image)]
    wanted = {one.get("name") for one in _images(described)}
    if not wanted:
        return Linked(labels[0], tuple(proposed(labels[0], images)))
    named = [x for x in images if x.name in wanted and not fit_of(x, labels[0]).reason]
    return Linked(labels[0], tuple(named))


def missing(described: Mapping[str, Any], layers: Linked | None) -> str:
    """Return the sentence that says which layer is missing, and what to do."""
    if layers is None:
        labels = described.get("labels")
        labels = labels if isinstance(labels, Mapping) else {}
        which = f"The labels {_which(labels)}of these objects are not open"
        return f"{which}: open them and their image, and they are linked by themselves."
    present = {image.name for image in layers.images}
    images = [x for x in _images(described) if x.get("name") not in present]
    if not images:
        return ""
    return (
        f"The image {_which(images[0])}of these objects is not open: open it, and it "
        "is linked by itself."
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
