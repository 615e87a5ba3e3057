"""Record of a run that is complete enough to replay it.

A game is determined by its data, its first settings, and which settings and forces
of a hand it took up at which iteration: pauses, single steps and the length of the
frames leave no trace in the layout.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import msgspec

from napari_embedding_game.core.settings import Settings
from napari_embedding_game.core.snapshot import HandForces, Snapshot, WarmStart
from napari_embedding_game.session.run.run import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Steering:
    """New settings, and the iteration after which they were taken up."""

    iteration: int
    settings: Settings


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Forced:
    """New forces of a hand, and the iteration after which they were taken up."""

    iteration: int
    forces: HandForces


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """What was played up to one snapshot."""

    settings: Settings
    """Those that the game began with."""
    steered: tuple[Steering, ...] = ()
    """In the order of their iterations."""
    n_iter: int
    """Iterations played."""
    is_branch: bool = False
    """Whether the run went on from a map, and not from the start layout."""
    warm_start: WarmStart | None = None
    """That map; None of a branch where it was not kept, which cannot be replayed."""
    forced: tuple[Forced, ...] = ()
    """In the order of their iterations."""

    @property
    def last(self) -> Settings:
        """Those in force at the end."""
        return self.steered[-1].settings if self.steered else self.settings

    def as_json(self) -> str:
        """Return the record as JSON, without arrays."""
        plain = replace(self, warm_start=None, forced=())
        return msgspec.json.encode(plain).decode()


def record(run: Run, snapshot: Snapshot) -> RunRecord:
    """Return what the run did up to this snapshot."""
    return RunRecord(
        settings=run.settings,
        steered=tuple(
            Steering(iteration=iteration, settings=settings)
            for iteration, settings in list(run.played.steered)
            # What was taken up at the last iteration has not moved anything yet.
            if iteration < snapshot.iteration
        ),
        n_iter=snapshot.iteration,
        is_branch=run.warm_start is not None,
        warm_start=run.warm_start,
        forced=tuple(
            Forced(iteration=iteration, forces=forces)
            for iteration, forces in list(run.played.forced)
            if iteration < snapshot.iteration
        ),
    )
