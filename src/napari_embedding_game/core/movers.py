"""Points that something else than the game moves, played like a game.

Two libraries (:mod:`library_frames`) and the principal steps
(:mod:`principal_frames`), on our edges and from our start.  A map of theirs gets
landmarks, which settle on it as in a game whose points stand still, so that it has
clusters like every other.  Pressure is not defined on it, see
:attr:`family.Member.has_pressure`.  None of them can be steered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from napari_embedding_game.core.affinities import Edges
from napari_embedding_game.core.compatibility import choose
from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.family import (
    Member,
    check_numbers,
    is_installed,
    member,
    strength_of,
)
from napari_embedding_game.core.forces import make_forces
from napari_embedding_game.core.library_frames import opentsne_frames, umap_learn_frames
from napari_embedding_game.core.objective import Objective, make_objective
from napari_embedding_game.core.optimizer import resolve_schedule
from napari_embedding_game.core.principal_frames import LOW_RANK, principal_frames
from napari_embedding_game.core.settling import (
    Frame,
    Game,
    Play,
    draw_members,
    in_the_plane,
    moving,
    settle,
)
from napari_embedding_game.core.types import GameSettings, Snapshot, undefined

Mover = Callable[[Edges, NDArray[np.floating], GameSettings, int], Iterator[Frame]]
"""(edges, start, settings, random_state) -> the way of the points, frame by frame."""
MOVERS: dict[str, Mover] = {
    "opentsne": opentsne_frames,
    "umap_learn": umap_learn_frames,
    "principal": principal_frames,
    "low_rank_principal": partial(principal_frames, low_rank=LOW_RANK),
}
"""What moves the points, by the name in :attr:`family.Member.moved_by`."""


def play_moved(
    play: Play,
    edges: Edges,
    layout: NDArray[np.floating],
    settings: GameSettings,
    *,
    random_state: int,
    **driving: Any,
) -> Game:
    """Let the points be laid out, then let landmarks settle; yield snapshots.

    ``play`` and ``driving`` play the landmarks: see :func:`~.game.play`, of
    which this takes the place.  Settings that are sent are not used.

    Raises
    ------
    InputError
        The method's library is not installed or cannot make such a map, a setting
        is out of its range, or the edges have not what the method needs.
    """
    found = member(settings.method)
    check(found, settings, layout.shape[1])
    members = draw_members(len(layout), settings.n_landmarks, random_state)
    frame = Frame(0, 1, np.asarray(layout, np.float32))
    objective = None
    if found.kernel:
        objective = _objective(edges, settings, len(members), random_state)
    for frame in MOVERS[found.moved_by](edges, layout, settings, random_state):
        yield moving(frame, members, _energy(frame, members, objective))
    driving["random_state"] = random_state
    energy = frame.energy
    for snapshot in settle(play, edges, frame, _borrowed(settings, found), **driving):
        snapshot = replace(snapshot, pressure=undefined(len(layout)))
        yield snapshot if energy is None else _without_kernel(snapshot, frame, energy)


def check(found: Member, settings: GameSettings, n_components: int) -> None:
    """Raise InputError unless the method is there and the settings suit it."""
    if not is_installed(found):
        raise InputError(
            f"{found.title} is not installed: install it with "
            f'pip install "napari-embedding-game[peers]", or choose another method.'
        )
    choose(settings.method, settings.approximation)
    check_numbers(settings)
    resolve_schedule(settings)
    if n_components > found.most_components:
        raise InputError(
            f"{found.title} draws maps of at most {found.most_components} dimensions: "
            f"choose {found.most_components}."
        )
    if strength_of(settings) != found.strength:
        raise InputError(
            f"{found.title} cannot be steered: leave the repulsion at its own, "
            f"{found.strength:g}."
        )


def _borrowed(settings: GameSettings, found: Member) -> GameSettings:
    """Return what landmarks settle by: the game's kernel where there is none."""
    if found.kernel:
        return settings
    return replace(settings, method="game", approximation=None, strength=None)


def _without_kernel(snapshot: Snapshot, frame: Frame, energy: float) -> Snapshot:
    """Return a snapshot of landmarks that have settled by another method's kernel."""
    return replace(snapshot, energy=energy, warning=frame.warning)


def _objective(
    edges: Edges, settings: GameSettings, n_landmarks: int, random_state: int
) -> Objective:
    """Return the energy that the library lowers, as we work it out."""
    found, approximation = choose(settings.method, None)
    forces = make_forces(edges, torch.device("cpu"), 1, found.attraction, found.kernel)
    repulsion = found.unit(edges) * found.strength
    return make_objective(
        approximation, forces, repulsion, n_landmarks, random_state, found.aggregate
    )


def _energy(
    frame: Frame, members: NDArray[np.integer], objective: Objective | None
) -> float:
    if frame.energy is not None:
        return frame.energy
    assert objective is not None
    y = torch.from_numpy(in_the_plane(frame.positions))
    energy, _, _ = objective.evaluate(y, y[members], True)
    return energy
