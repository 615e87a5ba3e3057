"""Points that something else than the game moves, played like a game.

Two libraries, on our edges and from our start, and the principal steps of
:mod:`principal`.  A map of theirs then gets landmarks, which settle on it as in a
game whose points stand still, so that it has clusters like every other, and
pressure where the method has a kernel.  openTSNE and the principal steps are seen
to move and can be stopped at every few iterations.  umap-learn has no such hook:
it is seen when it is done, and stopping waits for that.  None can be steered.

The principal steps end when the layout has settled: when over ``_LOOK_EVERY``
iterations neither the energy nor the square of the length of any axis of the map
changes by more than ``SETTLED`` of itself.  The energy alone would not do: where
the second component is far shorter than the first, it hardly tells a saddle on the
way from the end.  Otherwise they end after the iterations of the schedule, with a
warning.  They are shown in the unit of a game's map instead of that of the data,
which may be any: the layout is multiplied by one number, such that the first
component has a standard deviation of ``SPREAD``.  The energy is that of the data.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse

from napari_embedding_game.core.affinities import Edges
from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.family import (
    Member,
    check_numbers,
    choose,
    is_installed,
    member,
    strength_of,
)
from napari_embedding_game.core.forces import make_forces
from napari_embedding_game.core.objective import Objective, make_objective
from napari_embedding_game.core.optimizer import resolve_schedule
from napari_embedding_game.core.principal import (
    START,
    low_rank_rows,
    principal_energy,
    principal_steps,
)
from napari_embedding_game.core.profiles import UMAP_A, UMAP_B
from napari_embedding_game.core.settling import (
    Frame,
    Game,
    Play,
    draw_members,
    in_the_plane,
    moving,
    settle,
)
from napari_embedding_game.core.types import GameSettings, Snapshot

SETTLED = 1e-9
"""Relative change below which a layout of principal steps has settled."""
SPREAD = 10.0
"""Standard deviation of the first principal component, in units of the map: that of
the digits in the embedding game and in t-SNE, by which landmarks tile well."""
LOW_RANK = 30
"""Of the inner products that pull in Lemma 3; that of the data where it is lower."""
_LOOK_EVERY = 5
_FORESEEN = 200
"""Iterations that are foreseen for the principal steps, until twice as many as there
have been are more: most data take fewer, and a small map is shown at that pace."""
_SHOWN_EVERY = 10
_EARLY, _LATE = 250, 500
_EXAGGERATION = 12
"""openTSNE's own numbers: iterations with exaggeration, and after it."""
_UMAP_SIDE = 10.0
_MANY_POINTS = 10_000
"""umap-learn's own: the span of its start, and where it halves its epochs."""


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
    check(found, settings)
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
        yield snapshot if energy is None else _without_kernel(snapshot, frame, energy)


def check(found: Member, settings: GameSettings) -> None:
    """Raise InputError unless the method is there and the settings are in range."""
    if not is_installed(found):
        raise InputError(
            f"{found.title} is not installed: install it with "
            f'pip install "napari-embedding-game[peers]", or choose another method.'
        )
    check_numbers(settings)
    resolve_schedule(settings)
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
    return replace(
        snapshot,
        energy=energy,
        pressure=np.zeros_like(snapshot.pressure),
        warning=frame.warning,
    )


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


# --- Our own steps -----------------------------------------------------------------


def _principal(
    edges: Edges,
    layout: NDArray[np.floating],
    settings: GameSettings,
    random_state: int,
    low_rank: int | None = None,
) -> Iterator[Frame]:
    """Yield the way to the principal components, or to those of a low rank."""
    rows = _rows_of(edges, settings)
    if low_rank is not None:
        rng = np.random.default_rng(random_state)
        rows = low_rank_rows(rows, min(low_rank, *rows.shape), rng)
    yield from _principal_frames(rows, layout, settings, random_state)


def _rows_of(edges: Edges, settings: GameSettings) -> Any:
    """Return the rows in double precision, so that no product copies them anew."""
    if edges.rows is None:
        raise InputError(
            f"{member(settings.method).title} needs the rows of the data: make the "
            "edges with the affinity inner_products."
        )
    rows = edges.rows
    return rows.astype(np.float64) if sparse.issparse(rows) else np.asarray(rows, float)


def _principal_frames(
    rows: Any, layout: NDArray[np.floating], settings: GameSettings, random_state: int
) -> Iterator[Frame]:
    n_components = layout.shape[1]
    steps = principal_steps(rows, n_components, start=layout, random_state=random_state)
    most = resolve_schedule(settings).n_iter
    before, unit = None, 0.0
    for iteration, y in enumerate(steps):
        if iteration == 0:
            unit = SPREAD * START / y.std()
        is_last = iteration == most
        if iteration % _LOOK_EVERY and not is_last:
            continue
        energy = principal_energy(rows, y)
        now = np.array([energy, *np.linalg.eigvalsh(y.T @ y)])
        has_settled = before is not None and _is_near(now, before)
        before = now
        done = is_last or has_settled
        yield Frame(
            iteration,
            iteration if done else min(most, max(_FORESEEN, 2 * iteration)),
            (unit * y).astype(np.float32),
            energy,
            "" if has_settled or not is_last else _unsettled(most),
        )
        if done:
            return


def _is_near(now: NDArray[np.float64], before: NDArray[np.float64]) -> bool:
    return bool((np.abs(now - before) <= SETTLED * np.abs(now)).all())


def _unsettled(n_iter: int) -> str:
    return (
        f"The points were still moving after {n_iter:,} iterations: "
        "allow more iterations."
    )


# --- Libraries ---------------------------------------------------------------------


def _opentsne(
    edges: Edges,
    layout: NDArray[np.floating],
    settings: GameSettings,
    random_state: int,
) -> Iterator[Frame]:
    """Yield openTSNE's layout every few iterations."""
    from openTSNE import TSNEEmbedding
    from openTSNE.affinity import PrecomputedAffinities

    if layout.shape[1] > 2:
        raise InputError("openTSNE draws maps of 2 dimensions: choose 2.")
    affinities = PrecomputedAffinities(edges.matrix().astype(np.float64))
    start = layout / layout.std(axis=0)[0] * 1e-4
    embedding = TSNEEmbedding(start.astype(np.float64), affinities, n_jobs=1)
    embedding.random_state = random_state
    n_iter = _EARLY + _LATE
    for iteration in range(0, n_iter, _SHOWN_EVERY):
        early = iteration < _EARLY
        yield Frame(iteration, n_iter, np.array(embedding, np.float32))
        embedding.optimize(
            _SHOWN_EVERY,
            inplace=True,
            exaggeration=_EXAGGERATION if early else None,
            momentum=0.5 if early else 0.8,
        )
    yield Frame(n_iter, n_iter, np.array(embedding, np.float32))


def _umap_learn(
    edges: Edges,
    layout: NDArray[np.floating],
    settings: GameSettings,
    random_state: int,
) -> Iterator[Frame]:
    """Yield the start and, when it is done, umap-learn's layout."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Tensorflow not installed", ImportWarning)
        from umap.umap_ import simplicial_set_embedding

    n_epochs = 200 if len(layout) > _MANY_POINTS else 500
    start = layout - layout.min(axis=0)
    start = (start * _UMAP_SIDE / start.max()).astype(np.float32)
    yield Frame(0, n_epochs, start)
    found, _ = simplicial_set_embedding(
        None,
        (edges.matrix() / edges.scale).tocoo(),
        layout.shape[1],
        1.0,
        UMAP_A,
        UMAP_B,
        1.0,
        5,
        n_epochs,
        start,
        np.random.RandomState(random_state),
        "euclidean",
        {},
        False,
        {},
        False,
    )
    yield Frame(n_epochs, n_epochs, np.asarray(found, np.float32))


MOVERS: dict[str, Callable[..., Iterator[Frame]]] = {
    "opentsne": _opentsne,
    "umap_learn": _umap_learn,
    "principal": _principal,
    "low_rank_principal": partial(_principal, low_rank=LOW_RANK),
}
"""What moves the points, by the name in :attr:`family.Member.moved_by`."""
