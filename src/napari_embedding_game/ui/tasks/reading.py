"""Reads sources and session files in the background and takes them up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
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


class ReadingTask(QObject):
    """Reads one source at a time: the newest request replaces the former."""

    started = Signal(bool)
    """Something is going to be read, or a session file was taken up, and whether that
    is another source than before."""
    loaded = Signal(object)
    """The :class:`ReadResult` that came of the source that was taken up."""
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
        self._loading = workspace.loading
        self.jobs = Latest(
            self, self._on_read, self._on_failed, self.stage_changed.emit, at_once=True
        )
        """Busy while something is read."""
        self._then: Callable[[Any], None] = lambda result: None
        self._linked: Linked | None = None
        """The layers that show the objects of the requested data."""
        self._read_complete: Callable[[], None] | None = None
        """Reads the requested data without the rows that have missing values."""
        begin_process()

    def load(
        self,
        source: Source,
        options: ReadOptions | None = None,
        *,
        linked: Linked | None = None,
        is_again: bool = False,
        then: Callable[[], None] | None = None,
    ) -> None:
        """Read a source in the background and take it up.

        What is loaded stays when reading fails or is cancelled; a map that is replaced
        is found under Data > Recent maps.  The rows of a file are joined with the
        objects of an open Labels layer where they clearly fit.

        ``linked``: the layers that show its objects. ``is_again``: whether it is the
        source of the open map: then that map stays. ``then``: called if all went well.
        """
        if not is_again:
            source = with_labels(source, self._viewer)
        self._linked = linked

        def read_complete() -> None:
            complete = replace(options or DEFAULT_OPTIONS, missing="drop")
            self.load(source, complete, linked=linked, is_again=is_again)

        self._read_complete = read_complete
        self.started.emit(self._loading.request(source))
        if options is not None:
            self._loading.options = options

        def finish(loaded: ReadResult) -> None:
            self._show_result(loaded, linked, is_again=is_again)
            self._loading.finish(source, loaded)
            self.loaded.emit(loaded)
            if then is not None:
                then()

        def read() -> Stages[ReadResult]:
            return (yield from source.read(options or DEFAULT_OPTIONS)).looked_at()

        self._read(source.name, read, finish)

    def reload(
        self, options: ReadOptions, then: Callable[[], None] | None = None
    ) -> None:
        """Read the latest request in another way, with the same layers."""
        source, linked = self._loading.source, self._workspace.linked.current
        is_again = source is self._loading.current_source
        if self._loading.is_reading:
            linked = self._linked
        self.load(source, options, linked=linked, is_again=is_again, then=then)

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
            self.started.emit(self._loading.request(None))
            self._workspace.linked.set(None)
            self._workspace.maps.restore(saved)
            read = self._loading.restore()
            if read is not None:
                self.loaded.emit(read)
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
            self._loading.cancel()

    # Inside

    def _read(
        self, name: str, read: Callable[[], Stages[Any]], then: Callable[[Any], None]
    ) -> None:
        self._then = then
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
        is_incomplete = isinstance(error, MissingValuesError)
        self._cancel(self._read_complete if is_incomplete else None)

    def _show_result(
        self, loaded: ReadResult, linked: Linked | None, *, is_again: bool
    ) -> None:
        """Show what was read: another reading of the open map, or other data."""
        viewer, name = self._viewer, loaded.dataset.name
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
        maps, session = self._workspace.maps, self._workspace.session
        if not (is_again and maps.reload(loaded.dataset)):
            previous, had_map = session.dataset, session.snapshot is not None
            names = maps.carried(loaded.dataset) if is_again else None
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
        self._loading.cancel()
        self.cancelled.emit(read_complete)
