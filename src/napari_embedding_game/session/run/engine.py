"""What a run asks of the core: neighbours, start layout, iterations.

The engine's modules load torch and compiled kernels, which takes seconds, so they are
imported when they are first needed, in whatever thread needs them.
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
    """Search with the index that suits the data.

    Raises InputError for what the later steps would refuse, before the search.
    """
    from napari_embedding_game.core import pipeline

    pipeline.validate_inputs(X, settings)
    return pipeline.find_neighbors(X, settings)


def make_edges_and_layout(
    graph: Any, X: Any, settings: Settings, warm: WarmStart | None = None
) -> tuple[Any, NDArray[np.float32]]:
    """Weight the edges, then place the points, where ``warm`` has them."""
    from napari_embedding_game.core import pipeline

    embedding = None if warm is None else warm.embedding
    placed: tuple[Any, NDArray[np.float32]] = pipeline.make_edges_and_layout(
        graph, X, settings, embedding
    )
    return placed


def play_game(
    edges: Any, layout: Any, settings: Settings, warm: WarmStart | None = None
) -> Game:
    """Play with frames short enough to be seen, or go on from ``warm``."""
    from napari_embedding_game.core.dynamics import play

    frame = FRAME_ITERATIONS[settings.schedule]
    return play.play(edges, layout, settings, frame_iterations=frame, warm_start=warm)


merge_landmarks = LandmarkMerge.from_edges
"""Looks at the edges between the points of the landmarks."""


def warm_up(wait: Callable[[], bool] = lambda: True) -> None:
    """Load the engine and compile its kernels ahead of the first run.

    What moves the first frame comes first, and a run that is begun meanwhile need not
    wait for the rest.  ``wait``: called first; returns, once other processes have
    compiled what they can, whether to go on.
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
