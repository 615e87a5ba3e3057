"""Reads sources and session files in the background and takes them up."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from qtpy.QtCore import QObject, Signal

from napari_embedding_game.core.errors import InputError
from napari_embedding_game.data.errors import DataError, MissingValuesError
from napari_embedding_game.data.read_options import ReadOptions
from napari_embedding_game.data.reading_process import begin_process
from napari_embedding_game.data.stages import Stage, Stages
from napari_embedding_game.session.file import archive
from napari_embedding_game.session.file.autosave import RecoveryFile
from napari_embedding_game.session.file.saved_map import SavedSession
from napari_embedding_game.session.session import sentence
from napari_embedding_game.session.sources import ExperimentSource, LoadResult, Source
from napari_embedding_game.ui.images.fields import show_experiment
from napari_embedding_game.ui.images.join_panel import joined_layers, with_labels
from napari_embedding_game.ui.images.linked_layers import Linked, Table, show_pictures
from napari_embedding_game.ui.tasks.session_store import SessionStore
from napari_embedding_game.ui.tasks.worker import Worker

if TYPE_CHECKING:
    import napari

    from napari_embedding_game.ui.workspace import Workspace


class ReadingTask(QObject):
    """Reads one thing at a time: what is asked for last takes the place of the former.

    Parameters
    ----------
    viewer : napari.Viewer
    workspace : Workspace
    session_store : SessionStore
    may_replace : callable
        Return whether a source or file may take the place of the open maps, and call
        what it is given if it may later.
    """

    asked = Signal(object, bool, object, object)
    """A source is going to be read; None: a session file was taken up.

    Whether it is another one than before, the layers that show its objects, and the
    one whose table it is.
    """
    loaded = Signal(object, object)
    """The source that was taken up, and the :class:`LoadResult` that came of it."""
    session_opened = Signal()
    """A session file was taken up, whose layers may not be open."""
    cancelled = Signal()
    """Reading was given up; what was loaded before stays."""
    failed = Signal()
    """Reading failed; what was loaded before stays."""
    incomplete = Signal()
    """Reading failed as rows have missing values, and may be done without them."""
    stage_changed = Signal(object)
    """The :class:`Stage` of reading, None when nothing is read."""
    busy_changed = Signal()
    trouble = Signal(str)
    """A sentence about reading that failed, "" when it is over."""

    def __init__(
        self,
        viewer: napari.Viewer,
        workspace: Workspace,
        session_store: SessionStore,
        may_replace: Callable[[Source | Path, Callable[[], None]], bool],
    ) -> None:
        super().__init__()
        self._viewer = viewer
        self._workspace = workspace
        self._loading = workspace.loading
        self._keeper = session_store
        self._may_replace = may_replace
        self._worker: Worker | None = None
        self._source: Source | None = None
        self.text = ""
        """What is being read, "" when nothing is."""
        begin_process()

    def load(
        self,
        source: Source,
        options: ReadOptions | None = None,
        *,
        linked: Linked | None = None,
        table: Table | None = None,
        is_again: bool = False,
        then: Callable[[], None] | None = None,
    ) -> bool:
        """Read a source in the background and take it up.

        What is loaded stays when reading fails or is cancelled.  Where it would be
        lost with what a person made of it, they are asked first.  The rows of a file
        are joined with the objects of an open Labels layer where they clearly fit.

        Parameters
        ----------
        linked, table
            The layers that show its objects, and the one whose table it is.
        is_again : bool
            Whether it is the source of the open map, read in another way: then the
            map stays beside the new one.
        then : callable, optional
            Is called afterwards if all went well.

        Returns
        -------
        bool
            Whether it is going to be read now; where the maps are saved first, it is
            read once they are.
        """

        def again() -> None:
            self.load(source, options, linked=linked, table=table, then=then)

        if not is_again:
            source = with_labels(source, self._viewer)
        if not is_again and not self._may_replace(source, again):
            return False
        self.asked.emit(source, self._loading.ask(source), linked, table)
        if options is not None:
            self._loading.options = options

        def take_up(loaded: LoadResult) -> None:
            is_reading = is_again and self._workspace.maps.fits(loaded.dataset)
            if not is_reading and not self._may_replace(source, again):
                self._give_up()
                return
            self._take_up(loaded, linked, table, is_reading=is_reading)
            self._loading.take_up(source, loaded)
            self.loaded.emit(source, loaded)
            if then is not None:
                then()

        self.read(source.name, lambda: source.read(options or ReadOptions()), take_up)
        self._source = source
        return True

    def reload(
        self, options: ReadOptions, linked: Linked | None, table: Table | None
    ) -> None:
        """Read what was asked for last in another way, with these layers."""
        loading = self._loading
        if loading.source is not None:
            self.load(
                loading.source,
                options,
                linked=linked,
                table=table,
                is_again=loading.is_again,
            )

    def open_session(self, path: Path, then: Callable[[], None] | None = None) -> None:
        """Take up a session file as it was saved; ``then`` is called afterwards."""

        def again() -> None:
            self.open_session(path, then)

        if not self._may_replace(path, again):
            return

        def take_up(result: tuple[SavedSession, list[str]]) -> None:
            if not self._may_replace(path, again):
                return
            saved, troubles = result
            self._keeper.begin_anew()
            self.asked.emit(None, self._loading.ask(None), None, None)
            self._workspace.linked.set(None)
            self._workspace.maps.restore(saved)
            read = self._loading.take_back(saved)
            if read is not None:
                self.loaded.emit(read.source, read.loaded)
            self.session_opened.emit()
            if troubles:
                self.trouble.emit(" ".join(troubles))
            if then is not None:
                then()

        self.read(path.name, lambda: archive.open_stages(path), take_up)

    def bring_back(self, recovery_file: RecoveryFile) -> None:
        """Take up what a crash left behind; its file goes once it is saved anew."""
        self.open_session(
            recovery_file.path, lambda: self._keeper.take_over(recovery_file)
        )

    def read(
        self, name: str, read: Callable[[], Stages[Any]], then: Callable[[Any], None]
    ) -> None:
        """Read in stages in the background, and call ``then`` with the result.

        Parameters
        ----------
        name : str
            What a person calls it.
        """
        if self._worker is not None:
            self._worker.abandon()
        self._worker = worker = Worker(read)

        def tell(stage: Stage) -> None:
            if worker is self._worker:
                self._say(f"{stage.text} …")
                self.stage_changed.emit(stage)

        def done(result: Any) -> None:
            self._end()
            try:
                then(result)
            except (DataError, InputError) as error:
                self.trouble.emit(sentence(error))

        def failed(error: BaseException) -> None:
            self._end()
            self.trouble.emit(sentence(error))
            if isinstance(error, MissingValuesError):
                self.incomplete.emit()
            else:
                self._loading.go_back()
                self.failed.emit()

        worker.frame.connect(tell)
        worker.returned.connect(done)
        worker.failed.connect(failed)
        self.trouble.emit("")
        self._say(f"Reading {name} …")
        self.stage_changed.emit(Stage(f"Reading {name}"))
        worker.begin()

    def stop(self) -> None:
        """End reading a source of many parts; the parts that are read are taken up."""
        if isinstance(self._source, ExperimentSource):
            self._source.stop()

    def cancel(self) -> None:
        """Give up reading; what was loaded before stays."""
        if self._worker is not None:
            self._worker.abandon()
            self._end()
            self._give_up()

    def close(self) -> None:
        """Deliver nothing any more."""
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.close()
            self._loading.go_back()

    # Inside

    def _take_up(
        self,
        loaded: LoadResult,
        linked: Linked | None,
        table: Table | None,
        *,
        is_reading: bool,
    ) -> None:
        """Show what was read: another reading of the open map, or other data."""
        if linked is None and loaded.labels is not None:
            linked = self._show_pictures(loaded)
        if loaded.join is not None:
            joined = joined_layers(self._viewer, loaded.join)
            if linked is None or joined is None or joined.labels is not linked.labels:
                linked = joined
        if loaded.images is not None:
            linked = show_experiment(
                self._viewer, loaded.images, loaded.dataset.name, linked
            )
        if is_reading:
            self._keeper.reload(loaded.dataset)
        else:
            self._keeper.begin_anew()
            self._workspace.session.load(loaded.dataset)
        has_objects = loaded.dataset.objects is not None
        shown = linked if has_objects else None
        self._workspace.linked.set(shown, table, loaded.table)

    def _show_pictures(self, loaded: LoadResult) -> Linked:
        present = self._workspace.linked.current
        is_shown = (
            present is not None
            and present.labels in self._viewer.layers
            and np.array_equal(present.labels.data, loaded.labels)
        )
        return present if is_shown else show_pictures(self._viewer, loaded)

    def _give_up(self) -> None:
        self._loading.go_back()
        self.cancelled.emit()

    def _end(self) -> None:
        self._worker = self._source = None
        self.stage_changed.emit(None)
        self._say("")

    def _say(self, text: str) -> None:
        self.text = text
        self.busy_changed.emit()
