"""Read sources and session files in the background and open them in the session.

:mod:`~..controls.start` asks for the file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import napari
import numpy as np
from qtpy.QtCore import QObject, Signal

from napari_embedding_game.core.errors import InputError
from napari_embedding_game.data.errors import DataError, MissingValuesError
from napari_embedding_game.data.identity import Identity
from napari_embedding_game.data.images.join import Join, JoinRequest
from napari_embedding_game.data.read_options import DEFAULT_OPTIONS, ReadOptions
from napari_embedding_game.data.read_result import ReadResult
from napari_embedding_game.data.reading_process import start_reading_process
from napari_embedding_game.data.stages import Stage, Stages
from napari_embedding_game.session.file import archive
from napari_embedding_game.session.file.saved_map import SavedSession
from napari_embedding_game.session.session import error_text
from napari_embedding_game.session.sources import FileSource, Source, make_source
from napari_embedding_game.ui.images.alignment import propose_measurement_images
from napari_embedding_game.ui.images.experiment_layers import add_experiment_layers
from napari_embedding_game.ui.images.linked_layers import (
    LayerRecord,
    ObjectLayers,
    ObjectLayersRecord,
    add_source_layers,
    find_joined_labels_layer,
    finest_pixels,
    list_selectable_labels_layers,
    selectable_image_layers,
)
from napari_embedding_game.ui.tasks.session_store import SessionStore
from napari_embedding_game.ui.tasks.worker import CLOSE_SECONDS, JobRunner
from napari_embedding_game.ui.workspace import Workspace

MAP_KEPT = "The map of {} is kept: Data > Open other data > Recent maps."
MAX_GUESS = 1 << 30
"""Bytes of a label image up to which a table is joined with the image unasked."""


@dataclass(frozen=True, eq=False)
class ReadRequest:
    """A source to read and the options to read it with."""

    source: Source
    options: ReadOptions
    linked: ObjectLayers | None
    """The layers that show the objects of the source."""
    is_again: bool = False
    """Whether the source is that of the open map, so that the map stays open."""


class ReadingTask(QObject):
    """Reads one source at a time; a new request replaces the former request."""

    changed = Signal()
    """Emitted when the request, the stage of reading or the read result has changed."""
    loaded = Signal()
    """Emitted when the data of a source are in the session."""
    session_opened = Signal()
    """Emitted when a session file is opened, whose layers may not be open."""

    def __init__(
        self, viewer: napari.Viewer, workspace: Workspace, store: SessionStore
    ) -> None:
        super().__init__()
        self.viewer, self.workspace, self.store = viewer, workspace, store
        self._maps = workspace.map_tree
        self.request: ReadRequest | None = None
        """The request that is being read; None for a session file or for nothing."""
        self.refused_request: ReadRequest | None = None
        """The request that failed because rows have missing values, or None."""
        self.stage: Stage | None = None
        """The stage of reading; None when nothing is read."""
        self.jobs = JobRunner(
            self,
            self._on_source_read,
            self._on_reading_failed,
            self._set_stage,
            at_once=True,
        )
        """Runs the reading; busy while something is read."""
        self._then: Callable[[Any], None] = lambda result: None
        start_reading_process()

    @property
    def latest_request(self) -> ReadRequest | None:
        """The request that is being read, else that of the shown data.

        None where the source of the shown data is not known, as without data.
        """
        read = self._maps.read_result
        if self.request is not None or read is None:
            return self.request
        return ReadRequest(
            read.source, read.options, self.workspace.linked_layers.current, True
        )

    @property
    def shown_read_result(self) -> ReadResult | None:
        """The read result of the shown data, or None.

        It is None while another source is read, and where the source of the data is not
        known.
        """
        request, read = self.request, self._maps.read_result
        if request is None or request.is_again or read is None:
            return read
        return read if request.source is read.source else None

    def load(
        self,
        source: Source,
        options: ReadOptions = DEFAULT_OPTIONS,
        *,
        linked: ObjectLayers | None = None,
        then: Callable[[], None] | None = None,
    ) -> None:
        """Read a source in the background and load the data into the session.

        The present data stay if reading fails or is cancelled; a replaced map is found
        under Data > Recent maps.  The rows of a file are joined with the objects of an
        open Labels layer if they clearly match.

        Parameters
        ----------
        source : Source
            The data to read.
        options : ReadOptions
            The options to read the data with.
        linked : ObjectLayers, optional
            The layers that show the objects of the source; by default layers are found
            or made where the data have images or a join.
        then : callable, optional
            Called once the data are loaded; not called after an error.
        """
        self._load_request(ReadRequest(source, options, linked), then)

    def reload_with_options(
        self, then: Callable[[], None] | None = None, **changes: Any
    ) -> None:
        """Read the latest request again with changed options and the same layers.

        ``changes``: fields of :class:`ReadOptions`.  ``then``: called once the data are
        loaded.  Does nothing where nothing was read or requested.
        """
        if (latest := self.latest_request) is not None:
            options = replace(latest.options, **changes)
            self._load_request(replace(latest, options=options), then)

    def read_complete_rows(self) -> None:
        """Read the refused request again without the rows that have missing values.

        Does nothing where no request was refused.
        """
        if (refused := self.refused_request) is not None:
            options = replace(refused.options, missing="drop")
            self._load_request(replace(refused, options=options))

    def read_open_map_again(self, source: Source, options: ReadOptions) -> None:
        """Read a changed source, such as edited labels; the open map stays open."""
        linked = self.workspace.linked_layers.current
        self._load_request(ReadRequest(source, options, linked, is_again=True))

    def open_file(self, path: Path, then: Callable[[], None] | None = None) -> None:
        """Open a session file, or read a file of data and then call ``then``.

        After a session ``then`` is not called.  Replaces what is being read.
        """

        def find_source() -> Stages[Source | None]:
            """Return the source of the file; None if the file is a session."""
            is_session = yield from archive.is_session(path)
            return None if is_session else make_source(path)

        def open_source(source: Source | None) -> None:
            """Load the source with ``then``; for None open the file as a session."""
            if source is None:
                self.open_session(path)
            else:
                self.load(source, then=then)

        self._start_reading(path.name, find_source, open_source)

    def open_session(self, path: Path, then: Callable[[], None] | None = None) -> None:
        """Read a session file in the background, restore its maps and call ``then``.

        The open session is saved a last time, and its linked layers are unlinked.
        Problems that did not prevent opening are emitted as ``workspace.trouble``.
        """

        def restore_session(result: tuple[SavedSession, list[str]]) -> None:
            """Replace the open maps by a saved session, and report its troubles.

            ``result``: (session, messages on parts that could not be restored).
            """
            saved, troubles = result
            self.store.start_last_autosave()
            self.workspace.linked_layers.set_layers(None)
            self._maps.restore(saved)
            self.changed.emit()
            if self._maps.read_result is not None:
                self.loaded.emit()
            self.session_opened.emit()
            if troubles:
                self.workspace.trouble.emit(" ".join(troubles))
            if then is not None:
                then()

        self._start_reading(
            path.name, lambda: archive.open_session_stages(path), restore_session
        )

    def cancel(self) -> None:
        """Stop reading and drop the request; the present data stay."""
        if self.jobs.is_busy:
            self.jobs.stop()
            self._end_request()

    def close(self) -> None:
        """Stop reading, so that no result is delivered any more, and drop the request.

        Waits at most ``CLOSE_SECONDS`` for the thread.
        """
        self.jobs.stop(CLOSE_SECONDS)
        self.request = None

    # Inside

    def _load_request(
        self, request: ReadRequest, then: Callable[[], None] | None = None
    ) -> None:
        """Read a request in the background, load the result and call ``then``.

        A file's source gets a request to join its rows with a Labels layer, unless the
        source is that of the open map.
        """
        if not request.is_again:
            source = request_labels_join(request.source, self.viewer)
            request = replace(request, source=source)
        source, options = request.source, request.options
        shown = self.workspace.session.dataset

        def read() -> Stages[ReadResult]:
            """Read the source; a source read again finds the shown rows in it."""
            if request.is_again and shown is not None:
                known = Identity.from_dataset(shown)
                return (
                    yield from source.read_again(options, known)
                ).with_counts_and_batches()
            return (yield from source.read(options)).with_counts_and_batches()

        def take_up_result(loaded: ReadResult) -> None:
            """Load the data, keep the read result, emit signals, call ``then``."""
            self._load_data_and_link_layers(loaded, request)
            self.request = None
            self._maps.set_read_result(replace(loaded, source=source, options=options))
            self.changed.emit()
            self.loaded.emit()
            if then is not None:
                then()

        self._start_reading(source.name, read, take_up_result, request)

    def _start_reading(
        self,
        name: str,
        read: Callable[[], Stages[Any]],
        then: Callable[[Any], None],
        request: ReadRequest | None = None,
    ) -> None:
        """Run ``read`` in a thread; pass its result to ``then`` in the window's thread.

        Replaces what is being read, drops a refused request and clears the shown error.
        ``name`` is shown as what is being read.
        """
        self._then, self.request, self.refused_request = then, request, None
        self.jobs.submit(read)
        self.workspace.trouble.emit("")
        self._set_stage(Stage(f"Reading {name}"))

    def _set_stage(self, stage: Stage | None) -> None:
        """Store the stage of reading and emit ``changed``."""
        self.stage = stage
        self.changed.emit()

    def _on_source_read(self, result: Any) -> None:
        """Pass a result to the function that loads it; its errors are a failed reading.

        Only DataError and InputError count as such; other errors are raised.
        """
        self._set_stage(None)
        try:
            self._then(result)
        except (DataError, InputError) as error:
            self._on_reading_failed(error)

    def _on_reading_failed(self, error: BaseException) -> None:
        """Show the error and drop the request.

        A request that failed for missing values is kept as ``refused_request``.
        """
        self.workspace.trouble.emit(error_text(error))
        if isinstance(error, MissingValuesError):
            self.refused_request = self.request
        self._end_request()

    def _end_request(self) -> None:
        """Drop request and stage, and emit ``changed``; the present data stay."""
        self.request = None
        self._set_stage(None)

    def _load_data_and_link_layers(
        self, loaded: ReadResult, request: ReadRequest
    ) -> None:
        """Load the read data into the session, then link the layers of their objects.

        If the source of the open map was read again and has the same rows, its maps
        stay. Otherwise the session is saved a last time and the data replace the former
        data; clusters are kept if the source or the linked labels are the same, and a
        message tells where a replaced map is found.

        The linked layers are those of the request, else layers of the read label
        image.  The layers of a join replace other layers; then layers of an
        experiment's images are added. Data without objects are linked with no layers.
        """
        viewer, name = self.viewer, loaded.dataset.name
        linked, is_again = request.linked, request.is_again
        if linked is None and loaded.labels is not None:
            linked = self._show_image_layers(loaded)
        layers = self.workspace.linked_layers
        missing = layers.missing if is_again else None
        if loaded.join is not None:
            joined = find_joined_layers(viewer, loaded.join)
            if linked is None or joined is None or joined.labels is not linked.labels:
                linked = joined
            if joined is None:  # the layer was changed or removed
                missing = ObjectLayersRecord(LayerRecord(loaded.join.request.name))
        if loaded.images is not None:
            linked = add_experiment_layers(viewer, loaded.images, name, linked)
        maps, session = self._maps, self.workspace.session
        if not (is_again and maps.open_new_reading(loaded.dataset)):
            previous, had_map = session.dataset, session.snapshot is not None
            shown = None if layers.current is None else layers.current.labels
            is_same = is_again or (linked is not None and linked.labels is shown)
            names = maps.transfer_clusters(loaded.dataset) if is_same else None
            self.store.start_last_autosave()
            session.load(loaded.dataset)
            if names is not None:
                session.clusters.restore(names)
            if had_map and previous is not None:
                session.show_message(MAP_KEPT.format(previous.name))
        has_objects = loaded.dataset.objects is not None
        layers.set_layers(*((linked, missing) if has_objects else (None,)))

    def _show_image_layers(self, loaded: ReadResult) -> ObjectLayers:
        """Return the linked layers if they show the read labels, else new layers."""
        present = self.workspace.linked_layers.current
        if present is None or present.labels not in self.viewer.layers:
            return add_source_layers(self.viewer, loaded)
        is_same = np.array_equal(present.labels.data, loaded.labels)
        return present if is_same else add_source_layers(self.viewer, loaded)


def request_labels_join(source: Source, viewer: napari.Viewer) -> Source:
    """Return a file's source with a guessed request to join its rows with labels.

    The layer is the active Labels layer, else the uppermost.  The source is returned as
    it is if it is no file or has a request, and if no Labels layer can be selected or
    its finest image has more than ``MAX_GUESS`` bytes.
    """
    if not isinstance(source, FileSource) or source.request is not None:
        return source
    layers = list_selectable_labels_layers(viewer)
    layers.sort(key=lambda layer: layer is viewer.layers.selection.active)
    if not layers or getattr(finest_pixels(layers[-1]), "nbytes", 0) > MAX_GUESS:
        return source
    name, pixels = layers[-1].name, finest_pixels(layers[-1])
    return FileSource(source.path, JoinRequest(name, pixels, is_guess=True))


def find_joined_layers(viewer: napari.Viewer, join: Join) -> ObjectLayers | None:
    """Return the labels and images that show the objects of a joined table.

    Returns None if the join found no objects, or its Labels layer is gone.  Images are
    proposed from the layers of the viewer.
    """
    labels = find_joined_labels_layer(viewer, join)
    if join.objects is None or labels is None:
        return None
    images = propose_measurement_images(
        labels, selectable_image_layers(viewer), list(viewer.layers.selection)
    )
    return ObjectLayers(labels, tuple(images))
