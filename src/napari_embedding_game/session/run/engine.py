"""The steps of a run, by the core: neighbours, edges and start layout, iterations.

Modules of the core load torch and compiled kernels, which takes seconds, so they are
imported when they are first needed, in the thread that needs them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.settings import Settings
from napari_embedding_game.core.snapshot import Snapshot, Steer, WarmStart
from napari_embedding_game.core.threads import COMPUTING, limit_threads
from napari_embedding_game.session.clusters.landmark_merge import LandmarkMerge

Game = Generator[Snapshot, Settings | Steer | None, None]

FRAME_ITERATIONS = {"fast": 10, "paper": 100}
"""Most iterations in a frame, so that a small game too is seen to move."""


def find_neighbors(X: Any, settings: Settings) -> Any:
    """Return the graph of nearest neighbours of the rows of ``X`` (n, D).

    Raises InputError for data or settings that this or a later step refuses.
    """
    from napari_embedding_game.core import pipeline

    pipeline.validate_settings_for_data(X, settings)
    return pipeline.find_neighbors(X, settings)


def make_edges_and_layout(
    graph: Any,
    X: Any,
    settings: Settings,
    warm: WarmStart | None = None,
    second_X: Any = None,
) -> tuple[Any, NDArray[np.float32]]:
    """Return the weighted edges and the start layout, (n, d).

    ``graph``: of :func:`find_neighbors` for the rows of ``X``. ``warm``: layout from
    which the run continues; None for a new start layout. ``second_X``: rows of the
    second space, (n, E); None without one.
    """
    from napari_embedding_game.core import pipeline

    embedding = None if warm is None else warm.embedding
    placed: tuple[Any, NDArray[np.float32]] = pipeline.make_edges_and_layout(
        graph, X, settings, embedding, second_X
    )
    return placed


def play_game(
    edges: Any, layout: Any, settings: Settings, warm: WarmStart | None = None
) -> Game:
    """Return a generator of snapshots, in frames short enough to be seen.

    ``warm``: layout from which the game continues; None for the start ``layout``.
    """
    from napari_embedding_game.core.dynamics import play

    frame = FRAME_ITERATIONS[settings.schedule]
    return play.play(edges, layout, settings, frame_iterations=frame, warm_start=warm)


merge_landmarks = LandmarkMerge.from_edges
"""Builds the merge tree of the landmarks from edges and labels of points."""


def warm_up(wait: Callable[[], bool] = lambda: True) -> None:
    """Load the core's modules and compile their loops ahead of the first run.

    Loops of the first frames are compiled first; a run that is begun meanwhile waits
    for these only, not for clusters and markers.

    ``wait``: called first; blocks until other processes have compiled their parts, and
    returns whether to go on.
    """
    import dask.array  # noqa: F401 - SciPy breaks while another thread loads it

    from napari_embedding_game.session.run import first_game

    settings, X = first_game.make_few_settings(), first_game.make_few_rows()
    with COMPUTING:
        if not wait():
            return
        edges, start = make_edges_and_layout(find_neighbors(X, settings), X, settings)
        playing = play_game(edges, start, settings)
        next(playing)
        next(playing)
        playing.close()
    time.sleep(0.001)  # a run that waits comes first
    # What is needed once there is a map: clusters and markers.
    with COMPUTING, limit_threads(1):
        first_game.compile_merging()
        first_game.compile_markers()
