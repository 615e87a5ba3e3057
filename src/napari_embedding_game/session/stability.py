"""The map of a session made again with other seeds, in another thread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from napari_embedding_game.core.settings import Settings
from napari_embedding_game.core.snapshot import Snapshot, WarmStart
from napari_embedding_game.core.threads import COMPUTING
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.stages import Stage, Stages
from napari_embedding_game.session.moment import Moment
from napari_embedding_game.session.quality import GIVEN
from napari_embedding_game.session.run.engine import CoreEngine
from napari_embedding_game.session.run.record import RunRecord

if TYPE_CHECKING:
    from napari_embedding_game.core.inspect.compare import Stability
    from napari_embedding_game.core.inspect.quality import MapQuality
    from napari_embedding_game.session.session import Session

COLUMN = "Stability"
"""What the result is called among the metadata."""
MOST_SEEDS = 2**32
ONLY_AT_REST = "Pause or stop the game first: the map on show is compared with others."


@dataclass(frozen=True, eq=False)
class StabilityFound:
    """A stability, and the map that it is of."""

    snapshot: Snapshot
    stability: Stability
    others: tuple[tuple[Moment, MapQuality | None], ...] = ()
    """The maps of the other seeds, laid on this one, and what was measured of them."""


def stability_job(
    session: Session, n_seeds: int = 5, engine: CoreEngine | None = None
) -> Callable[[], Stages[StabilityFound]]:
    """Return what plays the map of the session again with other seeds, in stages.

    It is played with the settings that were chosen last, without what was steered on
    the way or done by hand.  Neither the session nor its map is changed.

    Parameters
    ----------
    n_seeds : int
        How many other seeds, at least 1: those that follow the map's own.
    engine : CoreEngine, optional
        What computes; the real engine by default.

    Raises
    ------
    DataError
        There is no map, its points are moving, or its data are not there.
    """
    dataset, snapshot, played = session.dataset, session.snapshot, session.played
    if session.state in ("preparing", "running"):
        raise DataError(ONLY_AT_REST)
    if dataset is None or snapshot is None or played is None:
        raise DataError("There is no map yet: press Run.")
    if not dataset.X.shape[1]:
        raise DataError(dataset.missing_reason)
    if len(snapshot.embedding) < 8:
        raise DataError("Stability takes at least 8 rows: load more of them.")
    X, settings = dataset.X, played.last
    chosen = engine or CoreEngine()
    return lambda: _stages(chosen, X, settings, snapshot, n_seeds)


def _stages(
    engine: CoreEngine, X: Any, settings: Settings, snapshot: Snapshot, n_seeds: int
) -> Stages[StabilityFound]:
    from napari_embedding_game.core.inspect import compare
    from napari_embedding_game.core.inspect.quality import map_quality

    yield Stage(f"Map 1 of {n_seeds}", 0.0)
    with COMPUTING:
        graph = engine.neighbors(X, settings)
    kept, others = [], []
    for number in range(n_seeds):
        seed = (settings.random_state + 1 + number) % MOST_SEEDS
        seeded, text = replace(settings, random_state=seed), f"Map {number + 1}"
        with COMPUTING:
            edges, layout = engine.layout(graph, X, seeded)
            playing = engine.play(edges, layout, seeded)
        try:
            while True:
                with COMPUTING:
                    last: Snapshot = next(playing)
                if last.finished:
                    break
                share = last.iteration / last.n_iter if last.n_iter else 0.0
                yield Stage(f"{text} of {n_seeds}", (number + share) / n_seeds)
        finally:
            playing.close()
        kept.append(compare.neighbors_kept(snapshot.embedding, last.embedding))
        embedding, landmarks = compare.laid_on(
            snapshot.embedding, last.embedding, last.landmarks
        )
        # It is no moment of a run any more: a replay begins, and ends, as it lies.
        last = replace(
            last, embedding=embedding, landmarks=landmarks, iteration=0, n_iter=0
        )
        quality = None
        with COMPUTING:
            if settings.metric != GIVEN:
                quality = map_quality(X, embedding, metric=settings.metric)
            merging = engine.merging(edges, last.labels, len(landmarks), None)
        warm = WarmStart(embedding=embedding, landmarks=landmarks)
        ends = RunRecord(settings=seeded, n_iter=0, is_branch=True, warm_start=warm)
        moment = Moment(settings=seeded, snapshot=last, record=ends, merging=merging)
        others.append((moment, quality))
    stability = compare.Stability(np.stack(kept))
    return StabilityFound(snapshot, stability, tuple(others))


def take_stability(session: Session, found: StabilityFound) -> bool:
    """Make a stability a column of the metadata; return whether it is of the map."""
    is_of_map = session.dataset is not None and session.snapshot is found.snapshot
    if is_of_map:
        session.add(Dataset.add_column, COLUMN, found.stability.of_points)
    return is_of_map


def keep_others(session: Session, found: StabilityFound) -> bool:
    """Put the maps of the other seeds into the timeline; return whether they fit.

    They lie as the map on show, and are compared with it like any other mark.
    """
    is_of_map = session.dataset is not None and session.snapshot is found.snapshot
    for one, quality in found.others if is_of_map else ():
        name = f"Seed {one.settings.random_state}"
        mark = session.timeline.add(name, "end", one, is_beside=True)
        if quality is not None:
            session.timeline.tell_quality(mark.snapshot, quality)
    return is_of_map
