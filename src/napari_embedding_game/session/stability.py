"""The map of a session made again with other seeds, in another thread."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from napari_embedding_game.core.settings import Settings
from napari_embedding_game.core.snapshot import Snapshot, WarmStart
from napari_embedding_game.core.threads import COMPUTING
from napari_embedding_game.data.errors import DataError
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


@dataclass(frozen=True, slots=True)
class SeedProgress:
    """How far the maps of other seeds have come."""

    n_done: int
    n_seeds: int
    share: float = 0.0
    """Of the map that is played now."""

    @property
    def done(self) -> float:
        """Share of all that is done, 0 to 1."""
        return (self.n_done + self.share) / self.n_seeds


@dataclass(frozen=True, eq=False)
class StabilityFound:
    """A stability, and the map that it is of."""

    snapshot: Snapshot
    stability: Stability
    others: tuple[tuple[Moment, MapQuality | None], ...] = ()
    """The maps of the other seeds, laid on this one, and what was measured of them."""


Stages = Generator[SeedProgress, None, StabilityFound]


def stability_job(
    session: Session, n_seeds: int = 5, engine: CoreEngine | None = None
) -> Callable[[], Stages]:
    """Return what plays the map of the session again with other seeds.

    It is played with the settings that were chosen last, without what was steered on
    the way or done by hand.  Neither the session nor its map is changed.

    Parameters
    ----------
    session : Session
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
    engine: CoreEngine,
    X: Any,
    settings: Settings,
    snapshot: Snapshot,
    n_seeds: int,
) -> Stages:
    from napari_embedding_game.core.inspect.compare import (
        Stability,
        laid_on,
        neighbors_kept,
    )
    from napari_embedding_game.core.inspect.quality import map_quality

    yield SeedProgress(0, n_seeds)
    with COMPUTING:
        graph = engine.neighbors(X, settings)
    kept, others = [], []
    for number in range(n_seeds):
        seed = (settings.random_state + 1 + number) % MOST_SEEDS
        seeded = replace(settings, random_state=seed)
        yield SeedProgress(number, n_seeds)
        with COMPUTING:
            edges, layout = engine.layout(graph, X, seeded)
            playing = engine.play(edges, layout, seeded)
        try:
            last = yield from _play(playing, number, n_seeds)
        finally:
            playing.close()
        kept.append(neighbors_kept(snapshot.embedding, last.embedding))
        embedding, landmarks = laid_on(
            snapshot.embedding, last.embedding, last.landmarks
        )
        # It is no moment of a run any more: a replay gives it as it lies.
        last = replace(
            last, embedding=embedding, landmarks=landmarks, iteration=0, n_iter=0
        )
        quality = None
        with COMPUTING:
            if settings.metric != GIVEN:
                quality = map_quality(X, embedding, metric=settings.metric)
            merging = engine.merging(edges, last.labels, len(landmarks), None)
        warm = WarmStart(embedding=embedding, landmarks=landmarks)
        # A replay begins, and ends, where the map was laid.
        ends = RunRecord(settings=seeded, n_iter=0, is_branch=True, warm_start=warm)
        moment = Moment(settings=seeded, snapshot=last, record=ends, merging=merging)
        others.append((moment, quality))
    return StabilityFound(snapshot, Stability(np.stack(kept)), tuple(others))


def _play(
    playing: Any, number: int, n_seeds: int
) -> Generator[SeedProgress, None, Snapshot]:
    """Play one game to its end, and tell how far it is."""
    while True:
        with COMPUTING:
            snapshot: Snapshot = next(playing)
        if snapshot.finished:
            return snapshot
        share = snapshot.iteration / snapshot.n_iter if snapshot.n_iter else 0.0
        yield SeedProgress(number, n_seeds, share)


def take_stability(session: Session, found: StabilityFound) -> bool:
    """Make a stability a column of the metadata; return whether it is of the map.

    Nothing happens where another map is on show by now.
    """
    if session.dataset is None or session.snapshot is not found.snapshot:
        return False
    session.add_column(COLUMN, found.stability.of_points)
    return True


def keep_others(session: Session, found: StabilityFound) -> bool:
    """Put the maps of the other seeds into the timeline; return whether they fit.

    They lie as the map on show, and are compared with it like any other mark.  Nothing
    happens where another map is on show by now.
    """
    if session.dataset is None or session.snapshot is not found.snapshot:
        return False
    timeline = session.timeline
    for one, quality in found.others:
        name = f"Seed {one.settings.random_state}"
        mark = timeline.add(name, "end", one, is_beside=True)
        if quality is not None:
            timeline.tell_quality(mark.snapshot, quality)
    return True
