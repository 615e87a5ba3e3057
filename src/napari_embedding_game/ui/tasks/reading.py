"""Reads sources and session files in the background and takes them up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import napari
import numpy as np
from qtpy.QtCore import QObject, Signal

from napari_embedding_game.core.errors import InputError
from napari_embedding_game.data.errors import DataError, MissingValuesError
from napari_embedding_game.data.read_options import DEFAULT_OPTIONS, ReadOptions
from napari_embedding_game.data.read_result import ReadResult
from napari_embedding_game.data.reading_process import begin_process
from napari_embedding_game.data.stages import Stage, Stages
from napari_embedding_game.session.file import archive
from napari_embedding_game.session.file.saved_map import SavedSession
from napari_embedding_game.session.session import error_text
from napari_embedding_game.session.sources import Source, source_of
from napari_embedding_game.ui.images.fields import show_experiment
from napari_embedding_game.ui.images.join_panel import joined_layers, with_labels
from napari_embedding_game.ui.images.linked_layers import (
    LayerRecord,
    LayersRecord,
    Linked,
    show_pictures,
)
from napari_embedding_game.ui.tasks.session_store import SessionStore
from napari_embedding_game.ui.tasks.worker import CLOSE_SECONDS, Latest
from napari_embedding_game.ui.workspace import Workspace

MAP_KEPT = "The map of {} is kept: Data > Open other data > Recent maps."


@dataclass(frozen=True, eq=False)
class Request:
    """A source that is being read, and how.

    ``linked``: the layers that show its objects. ``is_again``: whether it is the source
    of the open map: then that map stays.
    """

    source: Source
    options: ReadOptions
    linked: Linked | None
    is_again: bool = False


class ReadingTask(QObject):
    """Reads one source at a time: the newest request replaces the former."""

    started = Signal(bool)
    """Something is going to be read, or a session file was taken up, and whether that
    is another source than before."""
    loaded = Signal()
    """A source was taken up."""
    session_opened = Signal()
    """A session file was taken up, whose layers may not be open."""
    cancelled = Signal(object)
    """Reading failed or was cancelled, and what was loaded before stays.

    A function that reads the same without the rows that have missing values, where
    these were in the way; None otherwise.
    """
    stage_changed = Signal(object)
    """The :class:`Stage` of reading, None when nothing is read."""

    def __init__(
        self, viewer: napari.Viewer, workspace: Workspace, store: SessionStore
    ) -> None:
        super().__init__()
        self._viewer, self._workspace = viewer, workspace
        self._store = store
        self._maps = workspace.maps
        self.request: Request | None = None
        """What is being read, if that is no session file."""
        self.jobs = Latest(
            self, self._on_read, self._on_failed, self.stage_changed.emit, at_once=True
        )
        """Busy while something is read."""
        self._then: Callable[[Any], None] = lambda result: None
        begin_process()

    @property
    def latest(self) -> Request | None:
        """What is being read, or else how what is on show was; None without either."""
        read = self._maps.read
        if self.request is not None or read is None:
            return self.request
        return Request(read.source, read.options, self._workspace.linked.current, True)

    def load(
        self,
        source: Source,
        options: ReadOptions = DEFAULT_OPTIONS,
        *,
        linked: Linked | None = None,
        then: Callable[[], None] | None = None,
    ) -> None:
        """Read a source in the background and take it up.

        What is loaded stays when reading fails or is cancelled; a map that is replaced
        is found under Data > Recent maps.  The rows of a file are joined with the
        objects of an open Labels layer where they clearly fit.

        ``linked``: the layers that show its objects. ``then``: called if all went well.
        """
        self._load(Request(source, options, linked), then)

    def reload(
        self, options: ReadOptions, then: Callable[[], None] | None = None
    ) -> None:
        """Read the latest request in another way, with the same layers."""
        if self.latest is not None:
            self._load(replace(self.latest, options=options), then)

    def read_again(self, source: Source, options: ReadOptions) -> None:
        """Read what the source of the open map has become, as its edited labels."""
        linked = self._workspace.linked.current
        self._load(Request(source, options, linked, is_again=True))

    def open_file(self, path: Path, then: Callable[[], None] | None = None) -> None:
        """Go on with a map that was saved, or read data and call ``then``."""

        def find_source() -> Stages[Source | None]:
            is_session = yield from archive.is_session(path)
            return None if is_session else source_of(path)

        def open_source(source: Source | None) -> None:
            if source is None:
                self.open_session(path)
            else:
                self.load(source, then=then)

        self._read(path.name, find_source, open_source)

    def open_session(self, path: Path, then: Callable[[], None] | None = None) -> None:
        """Take up a session file as it was saved; ``then`` is called afterwards."""

        def finish(result: tuple[SavedSession, list[str]]) -> None:
            saved, troubles = result
            self._store.start_new()
            self.started.emit(True)
            self._workspace.linked.set(None)
            self._maps.restore(saved)
            if self._maps.read is not None:
                self.loaded.emit()
            self.session_opened.emit()
            if troubles:
                self._workspace.trouble.emit(" ".join(troubles))
            if then is not None:
                then()

        self._read(path.name, lambda: archive.open_stages(path), finish)

    def cancel(self) -> None:
        """Give up reading; what was loaded before stays."""
        if self.jobs.is_busy:
            self.jobs.stop()
            self.stage_changed.emit(None)
            self._cancel()

    def close(self) -> None:
        """Deliver nothing any more."""
        if self.jobs.is_busy:
            self.jobs.stop(CLOSE_SECONDS)
            self.request = None

    # Inside

    def _load(self, request: Request, then: Callable[[], None] | None = None) -> None:
        if not request.is_again:
            source = with_labels(request.source, self._viewer)
            request = replace(request, source=source)
        source, options, latest = request.source, request.options, self.latest
        is_same = latest is not None and source is latest.source

        def read() -> Stages[ReadResult]:
            return (yield from source.read(options)).looked_at()

        def finish(loaded: ReadResult) -> None:
            self._show_result(loaded, request)
            self.request = None
            self._maps.note_read(replace(loaded, source=source, options=options))
            self.loaded.emit()
            if then is not None:
                then()

        self._read(source.name, read, finish, request)
        self.started.emit(not (request.is_again or is_same))

    def _read(
        self,
        name: str,
        read: Callable[[], Stages[Any]],
        then: Callable[[Any], None],
        request: Request | None = None,
    ) -> None:
        self._then, self.request = then, request
        self.jobs.submit(read)
        self._workspace.trouble.emit("")
        self.stage_changed.emit(Stage(f"Reading {name}"))

    def _on_read(self, result: Any) -> None:
        self.stage_changed.emit(None)
        try:
            self._then(result)
        except (DataError, InputError) as error:
            self._on_failed(error)

    def _on_failed(self, error: BaseException) -> None:
        self.stage_changed.emit(None)
        self._workspace.trouble.emit(error_text(error))
        read_complete = None
        if self.request is not None and isinstance(error, MissingValuesError):
            options = replace(self.request.options, missing="drop")
            complete = replace(self.request, options=options)
            read_complete = partial(self._load, complete)
        self._cancel(read_complete)

    def _show_result(self, loaded: ReadResult, request: Request) -> None:
        """Show what was read: another reading of the open map, or other data."""
        viewer, name = self._viewer, loaded.dataset.name
        linked, is_again = request.linked, request.is_again
        if linked is None and loaded.labels is not None:
            linked = self._show_pictures(loaded)
        layers = self._workspace.linked
        missing = layers.missed if is_again else None
        if loaded.join is not None:
            joined = joined_layers(viewer, loaded.join)
            if linked is None or joined is None or joined.labels is not linked.labels:
                linked = joined
            if joined is None:  # they are other layers by now, or gone
                missing = LayersRecord(LayerRecord(loaded.join.request.name))
        if loaded.images is not None:
            linked = show_experiment(viewer, loaded.images, name, linked)
        maps, session = self._maps, self._workspace.session
        if not (is_again and maps.reload(loaded.dataset)):
            previous, had_map = session.dataset, session.snapshot is not None
            shown = None if layers.current is None else layers.current.labels
            is_same = is_again or (linked is not None and linked.labels is shown)
            names = maps.carried(loaded.dataset) if is_same else None
            self._store.start_new()
            session.load(loaded.dataset)
            if names is not None:
                session.clusters.restore(names)
            if had_map and previous is not None:
                session.show_message(MAP_KEPT.format(previous.name))
        has_objects = loaded.dataset.objects is not None
        layers.set(*((linked, missing) if has_objects else (None,)))

    def _show_pictures(self, loaded: ReadResult) -> Linked:
        present = self._workspace.linked.current
        if present is None or present.labels not in self._viewer.layers:
            return show_pictures(self._viewer, loaded)
        is_same = np.array_equal(present.labels.data, loaded.labels)
        return present if is_same else show_pictures(self._viewer, loaded)

    def _cancel(self, read_complete: Callable[[], None] | None = None) -> None:
        self.request = None
        self.cancelled.emit(read_complete)
