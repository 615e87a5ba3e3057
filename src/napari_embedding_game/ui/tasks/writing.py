"""Writes maps, figures and session files in the background, one after another."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from qtpy.QtCore import QObject, Signal
from qtpy.QtWidgets import QApplication, QWidget

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.export.anndata_result import add_to_rows
from napari_embedding_game.data.export.plots import PointColors
from napari_embedding_game.session.file import archive
from napari_embedding_game.session.maps import Work
from napari_embedding_game.session.session import sentence
from napari_embedding_game.ui.canvas.names import names_for_figure
from napari_embedding_game.ui.images.layer_table import write_columns
from napari_embedding_game.ui.style.coloring import colored
from napari_embedding_game.ui.tasks.figure_panels import FigureChoice, collect
from napari_embedding_game.ui.tasks.late_errors import log_error, notify_error
from napari_embedding_game.ui.tasks.save_dialog import ask_figure, proposed
from napari_embedding_game.ui.tasks.session_store import SessionStore
from napari_embedding_game.ui.tasks.worker import Worker

if TYPE_CHECKING:
    from napari_embedding_game.ui.workspace import Workspace

FIGURES = (".png", ".svg", ".pdf")
FILM = ".gif"
CODE = (".ipynb", ".txt")
NO_FILM = (
    "The run of this map cannot be played again: its record or its data are not here. "
    "Press Run, then save the film."
)
NO_TABLE = (
    "There is no map of a layer's objects yet: take the table of a layer with From "
    "layer, or measure the objects of a Labels layer, and press Run."
)


@dataclass(frozen=True, slots=True)
class _Job:
    """One file to be written."""

    name: str
    write: Callable[[], None]
    then: Callable[[], None] | None
    """Is called in the window's thread if it went well."""


class WritingTask(QObject):
    """Writes what is asked for in turn; closing it loses nothing.

    Parameters
    ----------
    workspace : Workspace
    session_store : SessionStore
    """

    saved = Signal(str)
    """The name of what was written."""
    copied = Signal(str)
    """What was copied to the clipboard."""
    busy_changed = Signal()
    trouble = Signal(str)
    """A sentence about writing that failed, "" when it is over."""

    def __init__(self, workspace: Workspace, session_store: SessionStore) -> None:
        super().__init__()
        self._workspace = workspace
        self._keeper = session_store
        self.saved_work: Work = ([], {})
        """What a person had made when a session file was written last."""
        self.text = ""
        """What is being written, "" when nothing is."""
        self._worker: Worker | None = None
        self._waiting: deque[_Job] = deque()

    def save(self, path: Path) -> None:
        """Write the present map in the format that the ending of the path says."""
        session = self._workspace.session
        dataset, result = session.dataset, session.result()
        if dataset is None or result is None:
            self.trouble.emit("There is no map to save yet: press Run first.")
            return
        dataset = dataset.frozen()
        result = replace(result, cluster_colors=self._workspace.palette.by_id())
        if path.suffix.lower() in CODE:
            self._save_code(path)
            return
        is_film = path.suffix.lower() == FILM
        is_figure = path.suffix.lower() in FIGURES
        try:
            colors = colors_of(self._workspace) if is_film or is_figure else None
        except DataError as error:  # a gene of a file that is gone
            self.trouble.emit(str(error))
            return
        if is_film:
            assert colors is not None
            self._save_film(path, colors)
            return

        # What is saved is what is seen.
        facing, names = session.facing, names_for_figure(session)

        def write() -> None:
            from napari_embedding_game.data.export import writers

            if is_figure:
                writers.write_figure(
                    dataset,
                    result,
                    path,
                    colors=colors,
                    facing=facing,
                    names=names,
                )
            else:
                writers.write(dataset, result, path)

        self._write_in_turn(path.name, write)

    def ask_for_panels(self, parent: QWidget | None = None) -> None:
        """Ask which panels a figure is to have, and where it is to be saved.

        Parameters
        ----------
        parent : QWidget, optional
            What the question is asked over.
        """
        from napari_embedding_game.ui.tasks.figure_dialog import FigureDialog

        session = self._workspace.session
        if session.dataset is None or session.snapshot is None:
            self.trouble.emit("There is no map to save yet: press Run first.")
            return
        dialog = FigureDialog(self._workspace, parent)
        is_chosen = dialog.exec()
        choice = dialog.choice
        dialog.deleteLater()
        if not is_chosen or session.snapshot is None:
            return
        path = ask_figure(parent, proposed(session.dataset, "figure"))
        if path is not None:
            self.save_panels(choice, path)

    def save_panels(self, choice: FigureChoice, path: Path) -> None:
        """Write a figure of several panels."""
        from napari_embedding_game.data.export.page import write_panels

        try:
            make = collect(self._workspace, choice)
        except DataError as error:  # a gene of a file that is gone
            self.trouble.emit(str(error))
            return
        self._write_in_turn(path.name, lambda: write_panels(*make(), path))

    def _save_film(self, path: Path, colors: PointColors) -> None:
        """Play the run of the map once more, in its present colours."""
        session = self._workspace.session
        dataset, played = session.dataset, session.played
        if dataset is None or played is None or not dataset.X.shape[1]:
            self.trouble.emit(NO_FILM)
            return
        rgba = colors.rgba
        if colors.shown is not None:
            rgba = rgba.copy()
            rgba[~colors.shown, 3] = 0  # not to be seen

        def write() -> None:
            from napari_embedding_game.ui.tasks.film import write_film

            write_film(dataset.X, played, rgba, path)

        self._write_in_turn(path.name, write)

    def _save_code(self, path: Path) -> None:
        """Write what led to the map as code, or in words."""
        workspace = self._workspace
        saved = self._keeper.capture()
        assert saved is not None
        comparisons = list(workspace.session.comparisons)
        names = workspace.session.clusters.clustering.by_id
        palette = workspace.palette.by_id()
        colors = {names[cluster].name: color for cluster, color in palette.items()}

        def write() -> None:
            from napari_embedding_game.session.notebook.export import write_code

            write_code(saved, path, comparisons=comparisons, colors=colors)

        self._write_in_turn(path.name, write)

    def copy_methods(self) -> None:
        """Copy the paragraph on methods to the clipboard."""
        from napari_embedding_game.session.notebook.methods import methods_text

        saved = self._keeper.capture()
        if saved is None:
            self.trouble.emit("There is no map to tell of yet: press Run first.")
            return
        comparisons = self._workspace.session.comparisons
        try:
            text = methods_text(saved[saved.current], comparisons)
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
        session, record = self._workspace.session, self._workspace.linked
        dataset, result = session.dataset, session.result()
        linked, table, annotation = record.current, record.table, record.annotation
        layer = linked.labels if linked else table.layer if table else None
        is_nowhere = layer is None and annotation is None
        if dataset is None or result is None or is_nowhere:
            self.trouble.emit(NO_TABLE)
            return
        result = replace(result, cluster_colors=self._workspace.palette.by_id())
        try:
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

    def save_session(self, path: Path, then: Callable[[], None] | None = None) -> None:
        """Write a session file, to go on later; call ``then`` if that went well."""
        saved = self._keeper.capture()
        if saved is None:
            self.trouble.emit("There is nothing to save yet: load some data first.")
            return
        work = self._workspace.maps.work

        def save() -> None:
            archive.save(saved, path)
            self.saved_work = work

        self._write_in_turn(path.name, save, then)

    def close(self) -> None:
        """Deliver nothing any more; all that waits is written even so.

        What cannot be written then is told by napari itself, and by the log.
        """
        worker, self._worker = self._worker, None
        jobs = [job.write for job in self._waiting]
        self._waiting.clear()
        if worker is not None:
            worker.close()
            rest = Worker(lambda: _write_after(worker, jobs))
            rest.returned.connect(_tell_all)
            rest.begin()

    # Inside

    def _write_in_turn(
        self,
        name: str,
        write: Callable[[], None],
        then: Callable[[], None] | None = None,
    ) -> None:
        self.trouble.emit("")
        self._waiting.append(_Job(name, write, then))
        if self._worker is None:
            self._write_next()

    def _write_next(self) -> None:
        self._worker, self.text = None, ""
        if self._waiting:
            job = self._waiting.popleft()
            self.text = f"Saving {job.name} …"
            self._worker = worker = Worker(job.write)
            worker.returned.connect(lambda _: self._end(job, None))
            worker.failed.connect(lambda error: self._end(job, error))
            worker.begin()
        self.busy_changed.emit()

    def _end(self, job: _Job, error: BaseException | None) -> None:
        self._write_next()
        if error is not None:
            self.trouble.emit(sentence(error))
            return
        self.saved.emit(job.name)
        if job.then is not None:
            job.then()


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
        log_error("A file could not be saved", one)
    return errors


def _tell_all(errors: list[BaseException]) -> None:
    for error in errors:
        notify_error(error)


def colors_of(workspace: Workspace) -> PointColors:
    """Return the colours that the map has on the screen."""
    session = workspace.session
    snapshot, look = session.snapshot, session.look
    assert snapshot is not None
    palette = workspace.palette
    present = colored(look.color_by, session, palette, snapshot, look.limits)
    colors, hidden = present.for_figure(look.color_by), session.hiding.mask
    return colors if hidden is None else replace(colors, shown=~hidden)
