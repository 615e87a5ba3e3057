"""Writes maps, figures and session files in the background, one after another."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from qtpy.QtCore import QObject, Signal
from qtpy.QtWidgets import QApplication

from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.export.anndata_result import add_to_rows
from napari_embedding_game.data.export.plots import PointColors
from napari_embedding_game.data.export.result import EmbeddingResult
from napari_embedding_game.session.file import archive
from napari_embedding_game.session.maps import Work
from napari_embedding_game.session.session import sentence
from napari_embedding_game.ui.canvas.names import names_for_figure
from napari_embedding_game.ui.images.layer_table import write_columns
from napari_embedding_game.ui.style.coloring import colored
from napari_embedding_game.ui.tasks.late_errors import log_error, notify_error
from napari_embedding_game.ui.tasks.session_store import SessionStore
from napari_embedding_game.ui.tasks.worker import Worker

if TYPE_CHECKING:
    from napari_embedding_game.ui.workspace import Workspace

H5AD = ".h5ad"
N_FRAMES = 12
"""Of the run, in a web page."""
MOST_PLAYED = 100_000
"""Points of which a web page shows the run: it is played again to write it."""
NO_MAP = "There is no map to save yet: press Run first."
NO_DATA = "There is nothing to save yet: load some data first."
NO_FILM = (
    "The run of this map cannot be played again: its record or its data are not here. "
    "Press Run, then save the film."
)
NO_TABLE = (
    "There is no map of a layer's objects yet: take the table of a layer with From "
    "layer, or measure the objects of a Labels layer, and press Run."
)

Write = Callable[[], None]


class _Job(NamedTuple):
    """One file to be written."""

    name: str
    write: Write
    then: Callable[[], None] | None
    """Is called in the window's thread if it went well."""


class WritingTask(QObject):
    """Writes what is asked for in turn; closing it loses nothing."""

    saved = Signal(str)
    """The name of what was written."""
    copied = Signal(str)
    """What was copied to the clipboard."""
    busy_changed = Signal(str)
    """What is being written, "" when nothing is."""
    trouble = Signal(str)
    """A sentence about writing that failed, "" when it is over."""

    def __init__(self, workspace: Workspace, store: SessionStore) -> None:
        super().__init__()
        self._workspace, self._store = workspace, store
        self.saved_work: Work = ([], {})
        """What a person had made when a session file was written last."""
        self._worker: Worker | None = None
        self._waiting: deque[_Job] = deque()

    def save(self, path: Path) -> None:
        """Write the present map in the format that the ending of the path says."""
        prepare = WRITERS.get(path.suffix.lower(), _table)
        try:  # what is saved is what is seen
            write = prepare(self._workspace, self._store, path)
        except DataError as error:  # such as a gene of a file that is gone
            self.trouble.emit(str(error))
        else:
            self._write_in_turn(_Job(path.name, write, None))

    def save_session(self, path: Path, then: Callable[[], None] | None = None) -> None:
        """Write a session file, to go on later; call ``then`` if that went well."""
        saved, work = self._store.capture(), self._workspace.maps.work
        if saved is None:
            self.trouble.emit(NO_DATA)
            return

        def save() -> None:
            archive.save(saved, path)
            self.saved_work = work

        self._write_in_turn(_Job(path.name, save, then))

    def copy_methods(self) -> None:
        """Copy the paragraph on methods to the clipboard."""
        from napari_embedding_game.session.notebook.methods import methods_text

        saved = self._store.capture()
        try:
            if saved is None:
                raise DataError(NO_MAP)
            text = methods_text(saved[saved.current])
        except DataError as error:
            self.trouble.emit(str(error))
            return
        QApplication.clipboard().setText(text)
        self.trouble.emit("")
        self.copied.emit("the methods paragraph")

    def write_features(self) -> None:
        """Write the clusters into the table of the layer, beside what it has.

        By label into that of a Labels layer, else row by row; and into the AnnData of
        the layer where the rows are those of one.
        """
        record = self._workspace.linked
        linked, table, annotation = record.current, record.table, record.annotation
        layer = linked.labels if linked else table.layer if table else None
        try:
            if layer is None and annotation is None:
                raise DataError(NO_TABLE)
            dataset, result = _result(self._workspace, NO_TABLE)
            if annotation is not None:
                for adata, rows in annotation.places:
                    add_to_rows(adata, rows, dataset, result)
            if layer is not None:
                write_columns(layer, table, dataset, result)
        except DataError as error:
            self.trouble.emit(str(error))
        else:
            also = " and its AnnData" if annotation is not None else ""
            name = dataset.name if layer is None else layer.name
            self.saved.emit(f"columns of {name}{also}")

    def close(self) -> None:
        """Deliver nothing any more; all that waits is written even so.

        What cannot be written then is told by napari itself, and by the log.
        """
        worker, self._worker = self._worker, None
        jobs = [job.write for job in self._waiting]
        self._waiting.clear()
        if worker is not None:
            worker.abandon()
            rest = Worker(lambda: _write_after(worker, jobs))
            rest.returned.connect(_tell_all)
            rest.begin()

    # One after another

    def _write_in_turn(self, job: _Job) -> None:
        self.trouble.emit("")
        self._waiting.append(job)
        if self._worker is None:
            self._write_next()

    def _write_next(self) -> None:
        self._worker, text = None, ""
        if self._waiting:
            job = self._waiting.popleft()
            text = f"Saving {job.name} …"
            self._worker = worker = Worker(job.write)
            worker.returned.connect(lambda _: self._end(job, None))
            worker.failed.connect(lambda error: self._end(job, error))
            worker.begin()
        self.busy_changed.emit(text)

    def _end(self, job: _Job, error: BaseException | None) -> None:
        self._write_next()
        if error is not None:
            self.trouble.emit(sentence(error))
            return
        self.saved.emit(job.name)
        if job.then is not None:
            job.then()


def _write_after(writing: Worker, jobs: list[Write]) -> list[BaseException]:
    """Write what is left when the dock is closed, and return what went wrong."""
    writing.wait()
    errors = [] if writing.error is None else [writing.error]
    for job in jobs:
        try:
            job()
        except Exception as error:  # the others are written all the same
            errors.append(error)
    for one in errors:
        log_error("A file could not be saved", one)
    return errors


def _tell_all(errors: list[BaseException]) -> None:
    for error in errors:
        notify_error(error)


# What writes each kind of file, in any thread, as the map is seen now


def _result(
    workspace: Workspace, refusal: str = NO_MAP
) -> tuple[Dataset, EmbeddingResult]:
    """Return the data and the map, in the colours of its clusters."""
    dataset, result = workspace.session.dataset, workspace.session.result()
    if dataset is None or result is None:
        raise DataError(refusal)
    return dataset, replace(result, cluster_colors=workspace.palette.by_id())


def _table(workspace: Workspace, store: SessionStore, path: Path) -> Write:
    from napari_embedding_game.data.export.writers import write

    dataset, result = _result(workspace)
    rows, saved = dataset.frozen(), store.capture()

    def save() -> None:
        is_whole = path.suffix.lower() == H5AD and saved is not None
        session = archive.packed(saved) if is_whole else None
        write(rows, replace(result, session=session) if is_whole else result, path)

    return save


def _figure(workspace: Workspace, store: SessionStore, path: Path) -> Write:
    from napari_embedding_game.data.export.writers import write_figure

    (dataset, result), session = _result(workspace), workspace.session
    rows, how = dataset.frozen(), {
        "colors": colors_of(workspace),
        "facing": session.view.facing,
        "names": names_for_figure(session),
    }  # fmt: skip
    return lambda: write_figure(rows, result, path, **how)


def _film(workspace: Workspace, store: SessionStore, path: Path) -> Write:
    """Play the run of the map once more, in its present colours."""
    from napari_embedding_game.ui.tasks.film import write_film

    (dataset, _), session = _result(workspace), workspace.session
    played, colors = session.played, colors_of(workspace)
    if played is None or not dataset.X.shape[1]:
        raise DataError(NO_FILM)
    X, rgba, facing = dataset.X, colors.rgba.copy(), session.view.facing
    if colors.shown is not None:
        rgba[~colors.shown, 3] = 0  # not to be seen
    return lambda: write_film(X, played, rgba, path, facing)


def _page(workspace: Workspace, store: SessionStore, path: Path) -> Write:
    """Write a web page, with the run where it can be played again."""
    (dataset, result), played = _result(workspace), workspace.session.played
    rows = dataset.frozen()
    is_short = rows.X.shape[1] > 0 and rows.X.shape[0] <= MOST_PLAYED

    def write() -> None:
        from napari_embedding_game.data.export.anndata_result import new_anndata
        from napari_embedding_game.session.run.replay import replay_frames
        from napari_embedding_game.session.web_page import write_web_page

        frames = []
        if played is not None and is_short:
            every = max(1, played.n_iter // N_FRAMES)
            with suppress(DataError):  # begun from a map that is not here
                for shot in replay_frames(rows.X, played, every=every):
                    frames.append(rows.expand(shot.embedding, np.nan))
        write_web_page(new_anndata(rows, result), path, frames=frames, title=rows.name)

    return write


def _code(workspace: Workspace, store: SessionStore, path: Path) -> Write:
    """Write what led to the map as code, or in words."""
    from napari_embedding_game.session.notebook.export import write_code

    _result(workspace)
    saved, session = store.capture(), workspace.session
    names, palette = session.clusters.clustering.by_id, workspace.palette.by_id()
    colors = {names[cluster].name: color for cluster, color in palette.items()}
    return lambda: write_code(saved, path, colors=colors)


WRITERS = {
    **dict.fromkeys((".png", ".svg", ".pdf"), _figure),
    **dict.fromkeys((".ipynb", ".txt"), _code),
    ".gif": _film,
    ".html": _page,
}
"""By the ending of the file; of all others a table is written."""


def colors_of(workspace: Workspace, color_by: str | None = None) -> PointColors:
    """Return the colours of the map by a choice, that on show by default.

    Points that are hidden are not ``shown``.
    """
    session, look = workspace.session, workspace.session.look
    assert session.snapshot is not None
    by = look.color_by if color_by is None else color_by
    limits = look.limits if by == look.color_by else None
    found = colored(by, session, workspace.palette, session.snapshot, limits)
    colors, hidden = found.for_figure(by), session.view.hidden
    return colors if hidden is None else replace(colors, shown=~hidden)
