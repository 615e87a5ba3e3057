"""A moment of a map, and the record of its run, complete enough to replay it.

A game is determined by its data, its first settings, and which settings and forces of a
hand it took up at which iteration: pauses and the length of the frames
leave no trace in the layout.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

from napari_embedding_game.core.settings import Settings
from napari_embedding_game.core.snapshot import HandForces, Snapshot, WarmStart
from napari_embedding_game.session.clusters.landmark_merge import LandmarkMerge
from napari_embedding_game.session.run.run import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Steering:
    """New settings, and the iteration after which they were taken up."""

    iteration: int
    settings: Settings


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HandForcesChange:
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
    forced: tuple[HandForcesChange, ...] = ()
    """In the order of their iterations."""

    @property
    def last_settings(self) -> Settings:
        """Those in force at the end."""
        return self.steered[-1].settings if self.steered else self.settings

    @property
    def changes_by_iteration(self) -> list[tuple[int, dict[str, Any]]]:
        """What changed at which iteration: names of settings and their new values."""
        states = [asdict(self.settings), *(asdict(s.settings) for s in self.steered)]
        new = (
            {name: value for name, value in after.items() if value != before[name]}
            for before, after in pairwise(states)
        )
        return [(s.iteration, what) for s, what in zip(self.steered, new, strict=True)]


@dataclass(frozen=True, kw_only=True, eq=False)
class Moment:
    """A layout with what it was made by: a frame, a mark, a saved map."""

    settings: Settings
    """As they stood in the window."""
    snapshot: Snapshot | None
    """None before anything was played."""
    record: RunRecord | None = None
    """What was played up to here; None where nobody knows."""
    merging: LandmarkMerge | None = None
    """How the landmarks can be merged; None where nobody knows."""
    forces: HandForces | None = None
    """What a hand does from here on; None: what it did at the end of the record."""


def make_record(run: Run, snapshot: Snapshot) -> RunRecord:
    """Return what the run did up to this snapshot.

    What was taken up at its last iteration has not moved anything yet.
    """
    last, played = snapshot.iteration, run.played
    steered = [each for each in list(played.steered) if each[0] < last]
    forced = [each for each in list(played.forced) if each[0] < last]
    return RunRecord(
        settings=run.settings,
        steered=tuple(Steering(iteration=at, settings=one) for at, one in steered),
        n_iter=last,
        is_branch=run.warm_start is not None,
        warm_start=run.warm_start,
        forced=tuple(HandForcesChange(iteration=at, forces=one) for at, one in forced),
    )


def flat_parameters(
    played: RunRecord, snapshot: Snapshot, space: str
) -> dict[str, Any]:
    """Return every setting of a run, flat, by the names of the estimator's.

    ``steering`` is a JSON list of [iteration, {setting: value}], in the order of the
    changes; the other values are those in force at the end.
    """
    return {
        **asdict(played.last_settings),
        "steering": json.dumps(played.changes_by_iteration),
        "steered_by_hand": bool(played.forced),
        "n_iter": snapshot.iteration,
        "interrupted": not snapshot.finished,
        "space": space,
    }
