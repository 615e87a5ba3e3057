"""The engine's interface for a run: neighbours, start layout, iterations.

The engine's modules load torch and compiled kernels, which takes seconds, so they are
imported when they are first needed, in whatever thread needs them.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.settings import Settings, resolve
from napari_embedding_game.core.snapshot import Snapshot, Steer, WarmStart
from napari_embedding_game.core.threads import COMPUTING
from napari_embedding_game.session.clusters.merging import Merging

Game = Generator[Snapshot, Settings | Steer | None, None]

FRAME_ITERATIONS = {"fast": 10, "paper": 100}
"""Most iterations in a frame, so that a small game too is seen to move."""


class CoreEngine:
    """The core in steps, each from the result of the one before."""

    def check(self, X: Any, settings: Settings) -> None:
        """Raise InputError for what the later steps would refuse."""
        _pipeline().check(X, settings)

    def neighbors(self, X: Any, settings: Settings) -> Any:
        """Search with the index that suits the data."""
        return _pipeline().neighbors(X, settings)

    def layout(
        self, graph: Any, X: Any, settings: Settings, warm: WarmStart | None = None
    ) -> tuple[Any, NDArray[np.float32]]:
        """Weight the edges, then place the points, where ``warm`` has them."""
        former = () if warm is None else (warm.embedding,)
        placed: tuple[Any, NDArray[np.float32]] = _pipeline().place(
            graph, X, settings, *former
        )
        return placed

    def play(
        self, edges: Any, layout: Any, settings: Settings, warm: WarmStart | None = None
    ) -> Game:
        """Play with frames short enough to be seen, or go on from ``warm``."""
        from napari_embedding_game.core.dynamics.play import play

        frame = FRAME_ITERATIONS[settings.schedule]
        return play(edges, layout, settings, frame_iterations=frame, warm_start=warm)

    def merging(
        self,
        edges: Any,
        labels: NDArray[np.int32],
        n_landmarks: int,
        previous: Merging | None,
    ) -> Merging | None:
        """Look at the edges between the points of the landmarks."""
        return Merging.of(edges, labels, n_landmarks, previous)


def _pipeline() -> Any:
    from napari_embedding_game.core import pipeline

    return pipeline


def warm_up() -> None:
    """Load the engine and compile its kernels ahead of the first run.

    What moves the first frame comes first, and a run that is begun meanwhile need not
    wait for the rest.
    """
    from napari_embedding_game.core.warm_up import compile_inspection

    engine, settings = CoreEngine(), resolve(Settings(n_landmarks=8))
    X = np.random.default_rng(0).normal(size=(64, 8)).astype(np.float32)
    with COMPUTING:
        graph = engine.neighbors(X, settings)
        playing = engine.play(*engine.layout(graph, X, settings), settings)
        next(playing)
        next(playing)
        playing.close()
    with COMPUTING:
        compile_inspection()
