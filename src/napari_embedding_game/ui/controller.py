"""Controller of a viewer: plays the session, receives frames and has them rendered.

The docks only show and edit the session.  Threads, layers and the mouse are handled by
the controller and the objects that it is composed of.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

import napari
import numpy as np
from napari.layers import Points
from qtpy.QtCore import QObject

from napari_embedding_game.core.loop_cache import is_cached_on_disk
from napari_embedding_game.session.run import engine, first_game
from napari_embedding_game.session.run.compilers import Compilers
from napari_embedding_game.session.run.run import GameRun, Progress
from napari_embedding_game.session.session import error_text
from napari_embedding_game.ui import pixels
from napari_embedding_game.ui.canvas.pick import compile_pick_loop
from napari_embedding_game.ui.canvas.scene import MapScene
from napari_embedding_game.ui.tasks.errors import call_or_show_error
from napari_embedding_game.ui.tasks.reading import ReadingTask
from napari_embedding_game.ui.tasks.session_store import SessionStore
from napari_embedding_game.ui.tasks.worker import CLOSE_SECONDS, JobRunner, Worker
from napari_embedding_game.ui.tasks.writing import WritingTask
from napari_embedding_game.ui.workspace import Workspace

logger = logging.getLogger(__name__)


class Controller(QObject):
    """Plays the runs of a workspace in a viewer; there is one for each viewer.

    ``reading`` and ``writing`` are its background tasks, ``scene`` renders the map,
    ``session_store`` saves the session automatically.
    """

    def __init__(self, viewer: napari.Viewer, workspace: Workspace) -> None:
        super().__init__()
        self._viewer, self.workspace = viewer, workspace
        self.session = session = workspace.session
        self.session_store = SessionStore(workspace)
        self.writing = WritingTask(workspace)
        self.reading = ReadingTask(viewer, workspace, self.session_store)
        self.scene = MapScene(viewer, workspace)
        self._run: GameRun
        """The run that is played; not set before the first :meth:`play`."""
        self._run_jobs = JobRunner(
            self,
            lambda nothing: session.note_run_ended(self._run),
            lambda error: session.note_run_failed(self._run, error),
            lambda progress: self.receive_progress(self._run, progress),
            at_once=True,
        )
        self._compilers = Compilers()
        self._is_open = True

    def warm_up_engine(self) -> None:
        """Load and compile the engine in a background thread, before the first run.

        Errors are only logged.  Does nothing after :meth:`close`.
        """
        if not self._is_open:
            return
        # napari sets up its physical units with the first layer of a process.  That
        # takes half a second, and breaks where another thread makes a layer meanwhile.
        Points(np.zeros((1, 2)))
        # Errors are only logged: a run does the same again and reports its errors.
        warm_up = partial(_compile_and_warm_up, self._compilers)
        Worker(warm_up, "The engine could not be warmed up").start_thread()

    def play(
        self,
        make_run: Callable[[], GameRun | None] | None = None,
        show_refusal: Callable[[str], None] | None = None,
    ) -> None:
        """Make a run and play it in a thread instead of the present run.

        Where no run can be made, the present run goes on.

        Parameters
        ----------
        make_run : callable, optional
            Returns the run, or None to play none; by default ``session.begin``.
        show_refusal : callable, optional
            Receives the message where no run can be made; by default
            ``session.show_message``.
        """
        session = self.session
        run = call_or_show_error(
            show_refusal or session.show_message, make_run or session.begin
        )
        if run is not None:
            self._run = run
            self._run_jobs.submit(run.iter_progress)

    def receive_progress(self, run: GameRun, progress: Progress) -> None:
        """Pass a frame of a run to the session and render its map, if it has one.

        Frames of a run that is no longer the session's active run are dropped.
        """
        if run is not self.session.active_run:
            return
        if progress.snapshot is None:
            self.session.receive_frame(run, progress)
            return
        self.scene.prepare_layers(run, progress.snapshot)
        with (
            self.scene.hold_rendering()
        ):  # render once, though several signals are emitted
            self.session.receive_frame(run, progress)

    def close(self) -> None:
        """End the run, its thread and every connection to the viewer, once.

        The session is saved a last time.  An error in one part is logged and emitted as
        ``workspace.trouble``, and the other parts are closed.
        """
        if not self._is_open:
            return
        self._is_open = False
        for close in (
            self._compilers.end_processes,
            self.session.stop,
            self.session_store.close,
            self.scene.close,
            lambda: self._run_jobs.stop(CLOSE_SECONDS),
            self.reading.close,
            self.writing.close,
        ):
            try:
                close()
            except Exception as error:  # go on closing the other parts
                logger.error("A part could not be closed", exc_info=error)
                self.workspace.trouble.emit(error_text(error))

    def select_legend_level(self, index: int, is_added: bool) -> None:
        """Select the points of a level of the legend, or toggle them in the selection.

        Does nothing without a map, or where the legend has no levels.

        Parameters
        ----------
        index : int
            Position in the legend; a position after the last level selects the points
            without a level.
        is_added : bool
            Whether to add the points to the selection instead of replacing it; if all
            are selected already, they are removed.
        """
        levels = self.scene.coloring.find_levels()
        if self.session.snapshot is not None and levels is not None:
            code = (
                index if index < len(levels.categories) else -1
            )  # points without a level
            self.session.selection.toggle_points(
                levels.codes == code, is_added=is_added
            )

    def embed_selection(self) -> None:
        """Open a child map of the selected points and play it.

        The title names up to three selected clusters, else the number of points.  A
        refusal is emitted as ``workspace.trouble``.
        """
        selection, clusters = self.session.selection, self.session.clusters
        names = [
            cluster.title for cluster in clusters.find_clusters(selection.clusters)
        ]
        title = ", ".join(names[:3]) or f"{len(selection.rows):,} points"

        def embed() -> None:
            """Open the child map, then play it."""
            self.workspace.map_tree.open_child_map(selection.points, title)
            self.play()

        self.workspace.trouble.emit("")
        call_or_show_error(self.workspace.trouble.emit, embed)


def _compile_and_warm_up(compilers: Compilers) -> None:
    """Compile the loops of a first game in processes, then load the engine here.

    Loops in numba's disk cache are not compiled again.  Markers and the large picture
    are compiled after the needed loops; the loop that finds picked points is compiled
    here, at the end.
    """
    parts = {
        **first_game.list_compile_parts(),
        pixels.compile_loops: pixels.find_last_loop(),
    }
    needed = [
        compile_part
        for compile_part, loop in parts.items()
        if not is_cached_on_disk(loop)
    ]
    later = [first_game.compile_markers, first_game.compile_large_picture]
    compilers.start_processes(needed, later)

    def wait_for_compilation() -> bool:
        """Wait for the needed loops; if not ended meanwhile, load the window's."""
        goes_on = compilers.wait_for_needed()
        if goes_on:  # the window needs these loops, whatever else is compiled
            pixels.compile_loops()
        return goes_on

    engine.warm_up(wait_for_compilation)
    compile_pick_loop()
