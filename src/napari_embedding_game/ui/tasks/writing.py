"""Write maps, figures and session files in the background."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from qtpy.QtCore import QObject, Signal

from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.export.plots import PointColors
from napari_embedding_game.data.export.result import EmbeddingResult
from napari_embedding_game.data.palette import cluster_colors, to_hex_colors
from napari_embedding_game.session.file import archive
from napari_embedding_game.session.second_space import make_second_rows
from napari_embedding_game.session.session import error_text
from napari_embedding_game.ui.canvas.names import list_names_for_figure
from napari_embedding_game.ui.style.coloring import LONG_NAMES, color_points
from napari_embedding_game.ui.tasks.errors import call_or_show_error, notify_error
from napari_embedding_game.ui.tasks.worker import Worker
from napari_embedding_game.ui.workspace import Workspace

H5AD = ".h5ad"
N_FRAMES = 12
"""Frames of the run in a web page."""
MAX_PLAYED = 100_000
"""Points up to which a web page shows the run, which is played again for that."""
NO_MAP = "There is no map to save yet: press Run first."
NO_FILM = (
    "The run of this map cannot be played again: its record or its data are not here. "
    "Press Run, then save the film."
)
BUSY = "Another file is still being written: save again when it is there."
NOT_SAVED = "A file could not be saved"
Write = Callable[[], object]
"""Writes a file; may return a sentence on data that the file lacks."""


class WritingTask(QObject):
    """Writes one file at a time; a file is finished even after :meth:`close`."""

    saved = Signal(str, str)
    """Carries a written file's name and a sentence on data that it lacks, or ""."""
    busy_changed = Signal()
    """Emitted when :attr:`busy_text` has changed."""

    def __init__(self, workspace: Workspace) -> None:
        super().__init__()
        self._workspace = workspace
        self._worker: Worker | None = None
        self.busy_text = ""
        """Text on the file that is being written; "" when none is."""

    def save(self, path: Path, *, is_shared: bool = False) -> None:
        """Write the present map in a thread, in the format of the path's ending.

        ``is_shared``: whether file names are written without their folders; only for
        formats that name files.  While another file is written, nothing is written and
        ``busy_text`` says so.  A refusal or an error is emitted as
        ``workspace.trouble``.
        """
        if self._worker is not None:
            self.busy_text = BUSY
            self.busy_changed.emit()
            return
        prepare, name = WRITERS.get(path.suffix.lower(), prepare_table), path.name
        if prepare in NAMING_FILES:
            prepare = partial(prepare, is_shared=is_shared)
        self._workspace.trouble.emit("")
        # Prepared now, as the map is seen; a gene's file may have been deleted.
        write = call_or_show_error(
            self._workspace.trouble.emit, prepare, self._workspace, path
        )
        if write is None:
            return
        self.busy_text = f"Saving {name} …"
        self.busy_changed.emit()
        self._worker = worker = Worker(write, NOT_SAVED)
        worker.returned.connect(partial(self._on_file_written, name))
        worker.failed.connect(self._on_writing_failed)
        worker.start_thread()

    def close(self) -> None:
        """Disconnect the signals only; a file that is being written is finished.

        Its error is reported by a notification of napari and in the log.
        """
        if self._worker is not None:
            self._worker.returned.disconnect()
            self._worker.failed.disconnect()
            self._worker.failed.connect(notify_error)

    def _on_file_written(self, name: str, left_out: object) -> None:
        """Emit ``saved`` with the file's name and a sentence on data that it lacks."""
        self._end_writing()
        self.saved.emit(name, left_out if isinstance(left_out, str) else "")

    def _on_writing_failed(self, error: BaseException) -> None:
        """End the writing and emit the error as ``workspace.trouble``."""
        self._end_writing()
        self._workspace.trouble.emit(error_text(error))

    def _end_writing(self) -> None:
        """Forget the worker, clear ``busy_text`` and emit ``busy_changed``."""
        self._worker, self.busy_text = None, ""
        self.busy_changed.emit()


# Each function collects the map as it is now and returns a function that writes.


def _collect_result(workspace: Workspace) -> tuple[Dataset, EmbeddingResult]:
    """Return the dataset and the result, whose clusters have their present colours.

    Raises DataError: there are no data, or there is no map.
    """
    dataset, result = workspace.session.dataset, workspace.session.to_result()
    if dataset is None or result is None:
        raise DataError(NO_MAP)
    groups = result.groups
    pairs = zip(
        groups.clusters, to_hex_colors(cluster_colors(groups.clusters)), strict=True
    )
    clusters = tuple(replace(cluster, color=color) for cluster, color in pairs)
    return dataset, replace(result, clustering=replace(groups, clusters=clusters))


def prepare_table(workspace: Workspace, path: Path, is_shared: bool = False) -> Write:
    """Return a function that writes the source's rows with the map as AnnData or table.

    The format follows from the path's ending.  An AnnData also holds the session, if it
    can be saved; the function returns a sentence on data that the session lacks, else
    "".

    Raises
    ------
    DataError
        There is no map.
    """
    from napari_embedding_game.data.export.writers import write_result

    dataset, result = _collect_result(workspace)
    saved = workspace.map_tree.to_saved_session()
    packed = partial(archive.pack_shown_map_for_h5ad, saved, path, is_shared=is_shared)

    def save() -> str:
        """Write the file; return a sentence on what its session lacks, or ""."""
        if path.suffix.lower() != H5AD or saved is None:
            write_result(dataset, result, path)
            return ""
        session, left_out = packed()
        write_result(dataset, replace(result, session=session), path)
        return left_out

    return save


def _prepare_figure(workspace: Workspace, path: Path) -> Write:
    """Return a function that writes the map as a figure, in its present colours.

    A 3-D map is written as it is turned now.  Raises DataError: there is no map.
    """
    from napari_embedding_game.data.export.writers import write_map_figure

    (dataset, result), session = _collect_result(workspace), workspace.session
    options = {
        "colors": find_map_colors(workspace),
        "facing": session.view.facing,
        "names": list_names_for_figure(session),
    }
    return lambda: write_map_figure(dataset, result, path, **options)


def _prepare_film(workspace: Workspace, path: Path) -> Write:
    """Return a function that plays the run again and writes a film of it.

    Raises DataError: there is no map, or its run has no record or no rows of data.
    """
    from napari_embedding_game.ui.tasks.film import write_film

    (dataset, _), session = _collect_result(workspace), workspace.session
    played, colors = session.run_record, find_map_colors(workspace)
    if played is None or not dataset.var_names:
        raise DataError(NO_FILM)
    rgba, facing = colors.rgba.copy(), session.view.facing

    def write() -> None:
        """Play the run again, in its two spaces if it has, and write the film."""
        second_X = make_second_rows(dataset, played.settings)
        write_film(dataset.X, played, rgba, path, facing, second_X)

    return write


def _prepare_web_page(workspace: Workspace, path: Path) -> Write:
    """Return a function that writes a web page of the map and, if possible, its run.

    The run is left out if it has no record or more than ``MAX_PLAYED`` points, or began
    from a map that is not here.  Raises DataError: there is no map.
    """
    (dataset, result), played = _collect_result(workspace), workspace.session.run_record
    is_short = bool(dataset.var_names) and len(dataset.obs) <= MAX_PLAYED

    def write() -> None:
        """Play the run again, where that is possible, and write the web page."""
        from napari_embedding_game.data.export.anndata_result import (
            build_result_anndata,
        )
        from napari_embedding_game.session.run.replay import replay_frames
        from napari_embedding_game.session.web_page import write_web_page

        frames = []
        if played is not None and is_short:
            second_X = make_second_rows(dataset, played.settings)
            with suppress(DataError):  # the run began from a map that is not here
                for snapshot in replay_frames(dataset.X, played, N_FRAMES, second_X):
                    frames.append(
                        dataset.expand_to_source_rows(snapshot.embedding, np.nan)
                    )
        adata = build_result_anndata(dataset, result)
        if dataset.projection is not None:  # the genes of *Prepare* come first
            genes = dataset.projection.genes
            adata.var["highly_variable"] = adata.var_names.isin(genes)
        data = dataset.expand_to_source_rows(dataset.X)
        more = {"gene_kind": dataset.gene_kind, "data": data}
        write_web_page(adata, path, frames=frames, title=dataset.name, **more)

    return write


def _prepare_session(
    workspace: Workspace, path: Path, is_shared: bool = False
) -> Write:
    """Return a function that writes a session, a notebook or a methods paragraph.

    Which one follows from the path's ending.  Raises DataError: there is no map.
    """
    from napari_embedding_game.session.notebook.export import write_code

    saved = workspace.map_tree.to_saved_session()
    if saved is None:
        raise DataError(NO_MAP)
    is_session = path.suffix.lower() == archive.ENDING
    write = archive.save_session if is_session else write_code
    return partial(write, saved, path, is_shared=is_shared)


WRITERS = {
    **dict.fromkeys((".png", ".svg", ".pdf"), _prepare_figure),
    **dict.fromkeys((archive.ENDING, ".ipynb", ".txt"), _prepare_session),
    ".gif": _prepare_film,
    ".html": _prepare_web_page,
}
"""Prepares a file, by its ending; for other endings :func:`prepare_table` does."""
NAMING_FILES = (prepare_table, _prepare_session)
"""Functions whose files name the data files, so that ``is_shared`` applies."""


def find_map_colors(workspace: Workspace) -> PointColors:
    """Return the colours of the present map's points, with a figure's legend.

    Colour variable and limits are those of the session's look.
    """
    session, look = workspace.session, workspace.session.look
    choice = look.color_by
    colors = color_points(choice, session, session.snapshot, look.limits)
    return colors.to_figure_colors(LONG_NAMES.get(choice, choice))
