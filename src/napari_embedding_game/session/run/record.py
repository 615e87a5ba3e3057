"""A moment of a map, and the record of its run, from which the run can be replayed.

A game is determined by its data, its first settings, and the settings and forces of a
hand that were taken up at known iterations: pauses and the length of frames do not
change the layout.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

from napari_embedding_game.core.settings import Settings
from napari_embedding_game.core.snapshot import HandForces, Snapshot, WarmStart
from napari_embedding_game.session.clusters.landmark_merge import LandmarkMerge
from napari_embedding_game.session.run.run import GameRun


@dataclass(frozen=True, slots=True, kw_only=True)
class Steering:
    """New settings, and the iteration after which the game took them up."""

    iteration: int
    settings: Settings


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HandForcesChange:
    """New forces of a hand, and the iteration after which the game took them up."""

    iteration: int
    forces: HandForces


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """The record of a run up to one snapshot."""

    settings: Settings
    """Settings with which the game began."""
    steered: tuple[Steering, ...] = ()
    """In the order of their iterations."""
    n_iter: int
    """Number of iterations played."""
    is_branch: bool = False
    """Whether the run continued from a map, rather than from a start layout."""
    warm_start: WarmStart | None = None
    """The map from which a branch began; None where it was not kept, so that the branch
    cannot be replayed."""
    forced: tuple[HandForcesChange, ...] = ()
    """In the order of their iterations."""

    @property
    def last_settings(self) -> Settings:
        """The settings in force at the end."""
        return self.steered[-1].settings if self.steered else self.settings

    @property
    def changes_by_iteration(self) -> list[tuple[int, dict[str, Any]]]:
        """Pairs of an iteration and the settings that changed at it, by name.

        In the order of the iterations, each compared with the settings before.
        """
        states = [asdict(self.settings), *(asdict(s.settings) for s in self.steered)]
        new = (
            {name: value for name, value in after.items() if value != before[name]}
            for before, after in pairwise(states)
        )
        return [(s.iteration, what) for s, what in zip(self.steered, new, strict=True)]


@dataclass(frozen=True, kw_only=True, eq=False)
class Moment:
    """A layout with its settings and record: of a frame, a mark or a saved map."""

    settings: Settings
    """The settings chosen in the window at the moment."""
    snapshot: Snapshot | None
    """The layout; None before anything was played."""
    record: RunRecord | None = None
    """The record of the run up to the layout; None where unknown."""
    merging: LandmarkMerge | None = None
    """The merge tree of the landmarks; None where unknown."""
    forces: HandForces | None = None
    """Forces of a hand from here on; None for those at the end of the record."""


def make_record(run: GameRun, snapshot: Snapshot) -> RunRecord:
    """Return the record of a run up to a snapshot.

    Settings and forces taken up at the last iteration are left out: they have not moved
    any point yet.
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


def flatten_parameters(
    played: RunRecord, snapshot: Snapshot, space: str
) -> dict[str, Any]:
    """Return the settings at the end of a run, by name, with facts about the run.

    The facts are ``steering``, a JSON list of [iteration, {setting: value}] in the
    order of the changes, ``steered_by_hand``, ``n_iter``, ``interrupted`` and
    ``space``.
    """
    return {
        **asdict(played.last_settings),
        "steering": json.dumps(played.changes_by_iteration),
        "steered_by_hand": bool(played.forced),
        "n_iter": snapshot.iteration,
        "interrupted": not snapshot.finished,
        "space": space,
    }
