"""The map of a session made again with other seeds, in another thread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from napari_embedding_game.core.settings import Settings
from napari_embedding_game.core.snapshot import Snapshot
from napari_embedding_game.core.threads import COMPUTING
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.stages import Stage, Stages
from napari_embedding_game.session.run import engine as core_engine

if TYPE_CHECKING:
    from napari_embedding_game.core.inspect.compare import Stability
    from napari_embedding_game.session.session import Session

COLUMN = "Stability"
"""What the result is called among the metadata."""
MOST_SEEDS = 2**32
ONLY_AT_REST = "Pause or stop the game first: the map on show is compared with others."


def stability_job(
    session: Session, n_seeds: int = 5, engine: Any = core_engine
) -> Callable[[], Stages[tuple[Snapshot, Stability]]]:
    """Return what plays the map of the session again with other seeds, in stages.

    It is played with the settings that were chosen last, without what was steered on
    the way or done by hand.  Neither the session nor its map is changed; the map that
    the stability is of is returned with it.

    Parameters
    ----------
    n_seeds : int
        How many other seeds, at least 1: those that follow the map's own.
    engine : optional
        What computes, as in :class:`~.session.Session`.

    Raises
    ------
    DataError
        There is no map, its points are moving, or its data are not there.
    """
    dataset, snapshot, played = session.dataset, session.snapshot, session.played
    if session.is_moving:
        raise DataError(ONLY_AT_REST)
    if dataset is None or snapshot is None or played is None:
        raise DataError("There is no map yet: press Run.")
    if not dataset.X.shape[1]:
        raise DataError(dataset.missing_reason)
    if len(snapshot.embedding) < 8:
        raise DataError("Stability takes at least 8 rows: load more of them.")
    X, settings = dataset.X, played.last
    return lambda: _stages(engine, X, settings, snapshot, n_seeds)


def _stages(
    engine: Any, X: Any, settings: Settings, snapshot: Snapshot, n_seeds: int
) -> Stages[tuple[Snapshot, Stability]]:
    from napari_embedding_game.core.inspect.compare import Stability, neighbors_kept

    yield Stage(f"Map 1 of {n_seeds}", 0.0)
    with COMPUTING:
        graph, kept = engine.neighbors(X, settings), []
    for number in range(n_seeds):
        seed = (settings.random_state + 1 + number) % MOST_SEEDS
        seeded = replace(settings, random_state=seed)
        with COMPUTING:
            playing = engine.play(*engine.layout(graph, X, seeded), seeded)
        try:
            while True:
                with COMPUTING:
                    last: Snapshot = next(playing)
                if last.finished:
                    break
                share = last.iteration / last.n_iter if last.n_iter else 0.0
                text = f"Map {number + 1} of {n_seeds}"
                yield Stage(text, (number + share) / n_seeds)
        finally:
            playing.close()
        kept.append(neighbors_kept(snapshot.embedding, last.embedding))
    return snapshot, Stability(np.stack(kept))


def take_stability(session: Session, snapshot: Snapshot, found: Stability) -> bool:
    """Make a stability a column of the metadata; return whether it is of the map."""
    is_of_map = session.dataset is not None and session.snapshot is snapshot
    if is_of_map:
        session.add(Dataset.add_column, COLUMN, found.of_points)
    return is_of_map
