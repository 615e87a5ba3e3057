"""Reading and writing for a session, in the background: one thing of each at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from qtpy.QtCore import QObject, QTimer, Signal
from qtpy.QtWidgets import QWidget

from napari_embedding_game.core.errors import InputError
from napari_embedding_game.data.errors import DataError, MissingValuesError
from napari_embedding_game.data.figure import PointColors
from napari_embedding_game.data.stages import Stage, Stages
from napari_embedding_game.session import archive
from napari_embedding_game.session.autosave import Orphan
from napari_embedding_game.session.clustering import Edits
from napari_embedding_game.session.saved import SavedSession
from napari_embedding_game.session.session import sentence
from napari_embedding_game.session.sources import Loaded, Source, Wish
from napari_embedding_game.ui.aftermath import note, tell_of
from napari_embedding_game.ui.coloring import ByCluster, coloring, for_figure
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.keeper import Keeper, load_session
from napari_embedding_game.ui.linked import (
    Linked,
    Table,
    show_pictures,
    write_columns,
)
from napari_embedding_game.ui.relink import Relinker
from napari_embedding_game.ui.replacing import ask_to_replace
from napari_embedding_game.ui.save_dialog import ask_for_session
from napari_embedding_game.ui.worker import StageWorker, Worker

if TYPE_CHECKING:
    import napari

    from napari_embedding_game.ui.workspace import Workspace

FIGURES = (".png", ".svg")
NO_TABLE = (
    "There is no map of a layer's objects yet: take the table of a layer with From "
    "layer, or measure the objects of a Labels layer, and press Run."
)


class Errands(QObject):
    """Reads and writes for the session of a viewer, never in the window's thread.

    What is to be read takes the place of what is being read; what is to be written
    waits for its turn.

    Parameters
    ----------
    viewer : napari.Viewer
    workspace : Workspace
    """

    asked = Signal(object)
    """A source is going to be read."""
    loaded = Signal(object, object)
    """The source that was taken up, and the :class:`Loaded` that came of it."""
    cancelled = Signal()
    """Reading was given up; what was loaded before stays."""
    stage_changed = Signal(object)
    """The :class:`Stage` of reading, None when nothing is read."""
    busy_changed = Signal(str)
    """What is being read or written, "" when nothing is."""
    trouble = Signal(str)
    """A sentence about reading or writing that failed, "" when it is over."""
    failed = Signal()
    """Reading failed; what was loaded before stays."""
    incomplete = Signal()
    """Reading failed as rows have missing values, and may be done without them."""
    saved = Signal(str)

    def __init__(self, viewer: napari.Viewer, workspace: Workspace) -> None:
        super().__init__()
        self._viewer = viewer
        self.workspace = workspace
        self.session = session = workspace.session
        self.linked = workspace.linked
        self.keeper = Keeper(viewer, workspace)
        self.relink = Relinker(viewer, session, self.linked)
        self._ties = Connections()
        self._ties.connect(self.keeper.failed, self._on_not_kept)
        self._ties.connect(self.relink.changed, self.trouble)
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.timeout.connect(self._forget_removed)
        self._ties.connect(viewer.layers.events.removed, self._on_removed)
        self.parent_widget: QWidget | None = None
        """What questions are asked over."""
        self._kept_edits: list[tuple[str, Edits]] = []
        """What a person had made when a session file was written last."""
        self._asked_for: Source | Path | None = None
        self._given_up: list[tuple[str, Edits]] = []
        """What may take the place of what, as a person has said."""
        self._reading: StageWorker | None = None
        self._writing: Worker | None = None
        self._to_write: deque[tuple[str, Callable[[], None]]] = deque()
        self._read_text = self._write_text = ""

    # Reading

    def load(
        self,
        source: Source,
        wish: Wish | None = None,
        *,
        linked: Linked | None = None,
        table: Table | None = None,
        is_again: bool = False,
        then: Callable[[], None] | None = None,
    ) -> bool:
        """Read a source in the background and take it up; the newest wish wins.

        What is loaded stays when reading fails or is cancelled.  Where it would be
        lost with what a person made of it, they are asked first.

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
            Whether it is going to be read.
        """
        if not is_again and not self._may_replace(source):
            return False
        self.asked.emit(source)

        def read() -> Stages[Loaded]:
            return source.read(wish or Wish())

        def take_up(loaded: Loaded) -> None:
            keeps_maps = is_again and self.keeper.maps.fits(loaded.dataset)
            if not keeps_maps and not self._may_replace(source):
                self.cancelled.emit()
                return
            layers = linked
            if layers is None and loaded.labels is not None:
                layers = self._show_pictures(loaded)
            if keeps_maps:
                self.keeper.reload(loaded.dataset)
            else:
                self.keeper.begin_anew()
                self.session.load(loaded.dataset)
            has_objects = loaded.dataset.objects is not None
            self.linked.set(layers if has_objects else None, table)
            self.loaded.emit(source, loaded)
            if then is not None:
                then()

        self._read_in_stages(source.name, read, take_up)
        self.stage_changed.emit(Stage(f"Reading {source.name}"))
        return True

    def cancel(self) -> None:
        """Give up reading; what was loaded before stays."""
        if self._reading is not None:
            self._reading.abandon()
            self._end_reading()
            self.cancelled.emit()

    def open_session(self, path: Path, then: Callable[[], None] | None = None) -> None:
        """Take up a session file as it was saved; ``then`` is called afterwards."""
        if not self._may_replace(path):
            return

        def take_up(found: tuple[SavedSession, list[str]]) -> None:
            if not self._may_replace(path):
                return
            self.keeper.begin_anew()
            self.asked.emit(None)
            self.linked.set(None)
            self.keeper.maps.restore(found[0])
            troubles = [*found[1], self.relink.sentence]
            if any(troubles):
                self.trouble.emit(" ".join(filter(None, troubles)))
            if then is not None:
                then()

        self._read_in_stages(path.name, lambda: load_session(path), take_up)

    def bring_back(self, orphan: Orphan) -> None:
        """Take up what a crash left behind; its file goes once it is saved anew."""
        self.open_session(orphan.path, lambda: self.keeper.take_over(orphan))

    # Writing

    def save(self, path: Path) -> None:
        """Write the present map in the format that the ending of the path says."""
        dataset, result = self.session.dataset, self.session.result()
        if dataset is None or result is None:
            self.trouble.emit("There is no map to save yet: press Run first.")
            return
        result = replace(result, cluster_colors=self.workspace.palette.by_id())
        is_figure = path.suffix.lower() in FIGURES
        colors = colors_of(self.workspace) if is_figure else None

        def write() -> None:
            from napari_embedding_game.data import writers

            if is_figure:
                writers.write_figure(dataset, result, path, colors=colors)
            else:
                writers.write(dataset, result, path)

        self._write_in_turn(path.name, write)

    def write_features(self) -> None:
        """Write the clusters into the table of the layer, beside what it has.

        By label into that of a Labels layer, else row by row.
        """
        dataset, result = self.session.dataset, self.session.result()
        linked, table = self.linked.current, self.linked.table
        layer = linked.labels if linked else table.layer if table else None
        if dataset is None or result is None or layer is None:
            self.trouble.emit(NO_TABLE)
            return
        try:
            write_columns(layer, table, dataset, result)
        except DataError as error:
            self.trouble.emit(str(error))
        else:
            self.saved.emit(f"columns of {layer.name}")

    def save_session(self, path: Path) -> None:
        """Write a session file, to go on later."""
        saved = self.keeper.capture()
        if saved is None:
            self.trouble.emit("There is nothing to save yet: load some data first.")
            return
        edits = self.keeper.maps.decided()

        def save() -> None:
            archive.save(saved, path)
            self._kept_edits = edits

        self._write_in_turn(path.name, save)

    def abandon_errands(self, wait_seconds: float = 0.0) -> None:
        """Hear nothing any more of reading and writing; all is written even so.

        What cannot be written then is told by napari itself, and by the log.
        """
        reading, self._reading = self._reading, None
        writing, self._writing = self._writing, None
        jobs = [job for _, job in self._to_write]
        self._to_write.clear()
        if reading is not None:
            reading.abandon(wait_seconds)
        if writing is not None:
            writing.abandon(wait_seconds)
            rest = Worker(lambda: _write_after(writing, jobs))
            rest.returned.connect(_tell_all)
            rest.begin()

    def untie(self) -> None:
        """Let go of the viewer's layers and of the session."""
        self._soon.stop()
        self._ties.close()

    # Inside

    def _may_replace(self, by: Source | Path) -> bool:
        """Return whether something may take the place of the maps, or ask.

        Once for each, unless more has been made meanwhile.
        """
        maps, dataset = self.keeper.maps, self.session.dataset
        made, decided = maps.made, maps.decided()
        if not made or dataset is None or decided == self._kept_edits:
            return True
        if by is self._asked_for and decided == self._given_up:
            return True
        answer = ask_to_replace(self.parent_widget, dataset.name, made.told())
        if answer == "save":
            path = ask_for_session(self.parent_widget, dataset)
            if path is None:
                return False
            self.save_session(path)
        if answer != "cancel":
            self._asked_for, self._given_up = by, decided
        return answer != "cancel"

    def _on_not_kept(self, error: BaseException) -> None:
        self.trouble.emit(sentence(error))

    def _on_removed(self, event: object = None) -> None:
        self._soon.start(0)  # others may be removed in the same go

    def _forget_removed(self) -> None:
        """Unlink layers that are gone, until they are open again."""
        linked, table = self.linked.current, self.linked.table
        layers = self._viewer.layers
        if table is not None and table.layer not in layers:
            self.linked.table = table = None
        if linked is not None and linked.labels not in layers:
            described = self.linked.describe()
            self.linked.set(None, table)
            self.relink.look_for(described)

    def _read_in_stages(
        self, name: str, read: Callable[[], Stages[Any]], then: Callable[[Any], None]
    ) -> None:
        if self._reading is not None:
            self._reading.abandon()
        self._reading = worker = StageWorker(read)

        def tell(stage: Stage) -> None:
            if worker is self._reading:
                self._read_text = f"{stage.text} …"
                self._tell_busy()
                self.stage_changed.emit(stage)

        def done(result: Any) -> None:
            self._end_reading()
            try:
                then(result)
            except (DataError, InputError) as error:
                self.trouble.emit(sentence(error))

        def failed(error: BaseException) -> None:
            self._end_reading()
            self.trouble.emit(sentence(error))
            is_incomplete = isinstance(error, MissingValuesError)
            (self.incomplete if is_incomplete else self.failed).emit()

        worker.frame.connect(tell)
        worker.returned.connect(done)
        worker.failed.connect(failed)
        self.trouble.emit("")
        self._read_text = f"Reading {name} …"
        self._tell_busy()
        worker.begin()

    def _end_reading(self) -> None:
        self._reading, self._read_text = None, ""
        self.stage_changed.emit(None)
        self._tell_busy()

    def _write_in_turn(self, name: str, job: Callable[[], None]) -> None:
        self.trouble.emit("")
        self._to_write.append((name, job))
        if self._writing is None:
            self._write_next()

    def _write_next(self) -> None:
        self._writing, self._write_text = None, ""
        if self._to_write:
            name, job = self._to_write.popleft()
            self._write_text = f"Saving {name} …"
            self._writing = worker = Worker(job)
            worker.returned.connect(lambda _: self._end_writing(name, None))
            worker.failed.connect(lambda error: self._end_writing(name, error))
            worker.begin()
        self._tell_busy()

    def _end_writing(self, name: str, error: BaseException | None) -> None:
        self._write_next()
        if error is None:
            self.saved.emit(name)
        else:
            self.trouble.emit(sentence(error))

    def _tell_busy(self) -> None:
        self.busy_changed.emit(self._read_text or self._write_text)

    def _show_pictures(self, loaded: Loaded) -> Linked:
        present = self.linked.current
        is_shown = (
            present is not None
            and present.labels in self._viewer.layers
            and np.array_equal(present.labels.data, loaded.labels)
        )
        return present if is_shown else show_pictures(self._viewer, loaded)


def _write_after(
    writing: Worker, jobs: list[Callable[[], None]]
) -> list[BaseException]:
    """Write what is left when the dock is closed, and return what went wrong."""
    writing.wait()
    errors = [] if writing.error is None else [writing.error]
    for job in jobs:
        try:
            job()
        except Exception as error:  # the others are written all the same
            errors.append(error)
    for one in errors:
        note("A file could not be saved", one)
    return errors


def _tell_all(errors: list[BaseException]) -> None:
    for error in errors:
        tell_of(error)


def colors_of(workspace: Workspace) -> PointColors:
    """Return the colours that the map has on the screen."""
    session = workspace.session
    dataset, snapshot, look = session.dataset, session.snapshot, session.look
    assert dataset is not None
    assert snapshot is not None
    by_cluster = ByCluster(session.clusters, workspace.palette)
    present = coloring(look.color_by, dataset, by_cluster, look.limits)
    return for_figure(look.color_by, present, snapshot)
