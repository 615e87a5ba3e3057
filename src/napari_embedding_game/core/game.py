"""The game itself: a generator that plays and hands out snapshots.

It reads like the paper's Alg. 1, with the driver outside: whoever iterates
decides what to show, and steers by sending new settings in.

    game = play(edges, layout, GameSettings())
    snapshot = next(game)                          # the start layout
    while not snapshot.finished:
        snapshot = game.send(changed or None)      # up to 40 ms of iterations
    snapshot = game.send(changed)                  # plays on after the end
    next(game)                                     # or ends it
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from napari_embedding_game.core.affinities import Edges
from napari_embedding_game.core.collapse import collapse_warning, far_warning
from napari_embedding_game.core.compatibility import NO_CHANGE, check_optimizer, choose
from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.family import Member, check_numbers, member, strength_of
from napari_embedding_game.core.forces import Forces, make_forces
from napari_embedding_game.core.frames import FRAME_SECONDS, Diagnosis
from napari_embedding_game.core.memory_order import inverse, memory_order
from napari_embedding_game.core.movers import play_moved
from napari_embedding_game.core.objective import Objective, make_objective
from napari_embedding_game.core.optimizer import PlayerRMS, Schedule, resolve_schedule
from napari_embedding_game.core.pressure import pressure
from napari_embedding_game.core.settling import in_the_plane
from napari_embedding_game.core.threads import one_torch_thread
from napari_embedding_game.core.types import GameSettings, Snapshot, undefined

_DEVICES = ("cpu", "cuda", "mps")
_SETTLED = 0.6
"""Share of the schedule after which points that lie close are a collapse."""
_FARTHEST = 1e6
"""Coordinate beyond which points feel nothing any more: maps are some tens to some
thousands wide."""


def resolve_device(device: str) -> torch.device:
    """Return the torch device for a name; "auto" is CUDA, then the CPU.

    Raises
    ------
    InputError
        This machine does not have the device.
    """
    has_cuda = torch.cuda.is_available()
    if device == "auto":
        return torch.device("cuda" if has_cuda else "cpu")
    try:
        found = torch.device(device)
    except RuntimeError:
        found = None
    if found is None or found.type not in _DEVICES:
        raise InputError(
            f"There is no device {device!r}: choose auto, {', '.join(_DEVICES)}."
        )
    n_there = {
        "cpu": 1,
        "cuda": torch.cuda.device_count() if has_cuda else 0,
        "mps": int(torch.backends.mps.is_available()),
    }
    if (found.index or 0) >= n_there[found.type]:
        raise InputError(
            f"This machine has no device {device} that torch can use: "
            "choose the device auto or cpu."
        )
    return found


def play(
    edges: Edges,
    layout: NDArray[np.floating],
    settings: GameSettings | None = None,
    *,
    random_state: int = 0,
    device: str = "auto",
    n_jobs: int | None = None,
    diagnose: bool = True,
    frame_iterations: int | Callable[[int], int] | None = None,
) -> Generator[Snapshot, GameSettings | None, None]:
    """Play the game from ``layout`` and yield snapshots of it.

    The first snapshot is the start; each further one comes after at most
    40 ms of iterations, or after one that takes longer.  Sending settings steers:
    all of them act at once, and the learning rates come back to half-way so that
    there is time to react.
    After the snapshot with ``finished=True``, ``send(settings)`` plays on and
    ``next()`` ends the game.

    Parameters
    ----------
    edges : Edges
        Who attracts whom.
    layout : (N, d) array
        Start positions, d = 1, 2 or 3.
    settings : GameSettings, optional
    random_state : int
        Seed of everything drawn at random.
    device : str
        "auto", "cpu", "cuda" or "mps".
    n_jobs : int, optional
        Threads for large data; see :mod:`threads`.
    diagnose : bool
        Whether energy, labels and pressure are kept up to date while the game
        runs, the last two at a fifth of the time at most: a snapshot of large
        data may carry those of one before.  If not, only the last snapshot has
        them, and the energy of the others is NaN.
    frame_iterations : int or callable, optional
        Most iterations between two snapshots.  A function receives the iteration
        reached and returns how many may follow: so a replay comes to stand
        exactly where the recorded game was steered.

    Raises
    ------
    InputError
        A setting is out of range, or the points left every finite position.
    """
    settings = settings or GameSettings()
    check_optimizer(member(settings.method), settings.optimizer)
    resolve_device(device)  # refuses one that is not there
    given = (edges, layout, settings)
    driving: dict[str, Any] = {
        "random_state": random_state,
        "device": device,
        "n_jobs": n_jobs,
        "diagnose": diagnose,
        "frame_iterations": frame_iterations,
    }
    if member(settings.method).moved_by:
        yield from play_moved(_play, *given, **driving)
    elif settings.optimizer != "game":
        # Here, as its linear algebra takes a while to load.
        from napari_embedding_game.core.descents import play_descent

        yield from play_descent(_play, *given, **(driving | {"device": "cpu"}))
    else:
        yield from _play(*given, **driving)


def _play(
    edges: Edges,
    layout: NDArray[np.floating],
    settings: GameSettings,
    *,
    random_state: int,
    device: str,
    n_jobs: int | None,
    diagnose: bool,
    frame_iterations: int | Callable[[int], int] | None = None,
) -> Generator[Snapshot, GameSettings | None, None]:
    """Play with our own forces."""
    game = _Game(edges, layout, settings, random_state, device, n_jobs)
    steer = yield game.snapshot(diagnose)
    while True:
        if steer is not None:
            game.steer(steer)
        elif game.finished:
            return
        most = frame_iterations
        game.advance(FRAME_SECONDS, most(game.iteration) if callable(most) else most)
        steer = yield game.snapshot(diagnose or game.finished)


def warm_up() -> None:
    """Compile the loops or read them from numba's cache, so that a run starts fast."""
    from napari_embedding_game.core._warm_up import compile_kernels

    compile_kernels()


class _Game:
    """Points, landmarks, and where in its schedule the game stands."""

    def __init__(
        self,
        edges: Edges,
        layout: NDArray[np.floating],
        settings: GameSettings,
        random_state: int,
        device: str,
        n_jobs: int | None,
    ) -> None:
        self._seed = random_state
        self._rng = np.random.default_rng(random_state)
        self._device = resolve_device(device)
        self._n_jobs = n_jobs
        self._forces: Forces | None = None
        self._n_components = layout.shape[1]
        layout = in_the_plane(np.asarray(layout, edges.weights.dtype))
        # Inside, the points have an order of their own; outside, that of the data.
        order = memory_order(layout)
        self._places = inverse(order)
        self._edges = edges.in_order(order)
        layout = layout[order]
        self._y = torch.nn.Parameter(torch.tensor(layout, device=self._device))
        self._z = torch.nn.Parameter(self._y.detach()[:0].clone())
        self._optimizer = PlayerRMS([{"params": [self._y]}])
        self._optimizer.add_param_group({"params": [self._z], "maximize": True})
        self._iteration = 0
        self._position = 0
        n = len(layout)
        self._labels: NDArray[np.int32] = np.zeros(n, np.int32)
        self._pressure: NDArray[np.float32] = undefined(n)
        self._warning = ""
        self._diagnosis = Diagnosis()
        self._drawn_for: tuple[str, str, int] | None = None
        self._settings = settings
        self._apply(settings)

    # --- Settings

    def steer(self, settings: GameSettings) -> None:
        """Take over new settings, and enough of the schedule to act on them."""
        self._apply(settings)
        self._position = min(self._position, self._schedule.n_iter // 2)

    def _apply(self, settings: GameSettings) -> None:
        if settings.optimizer != "game":
            raise InputError(NO_CHANGE)
        schedule = resolve_schedule(settings)
        check_numbers(settings)
        self._settings = settings
        self._schedule: Schedule = schedule
        self._set_landmarks(min(settings.n_landmarks, len(self._y)))
        self._choose_objective(len(self._z))
        self._objective.follow(self._y, self._z)

    def _choose_objective(self, n_landmarks: int) -> None:
        settings = self._settings
        method, approximation = choose(settings.method, settings.approximation)
        if not method.kernel:
            raise InputError(
                f"{method.title} cannot take over from a game: begin a new one with it."
            )
        self._repulsion = method.unit(self._edges) * strength_of(settings)
        # Drawing samples for large data takes half a second: not at every steer.
        if (settings.method, approximation, n_landmarks) != self._drawn_for:
            self._drawn_for = settings.method, approximation, n_landmarks
            self._objective: Objective = make_objective(
                approximation,
                self._forces_of(method),
                self._repulsion,
                n_landmarks,
                self._seed,
                method.aggregate,
            )

    def _forces_of(self, method: Member) -> Forces:
        wanted = method.attraction, method.kernel
        forces = self._forces
        if forces is None or (forces.attraction, forces.kernel) != wanted:
            forces = make_forces(self._edges, self._device, self._n_jobs, *wanted)
        self._forces = forces
        return forces

    def _set_landmarks(self, n_landmarks: int) -> None:
        """Drop landmarks at random, or add some on top of random points."""
        old = self._z.detach()
        n_old = len(old)
        kept = np.arange(n_old)
        if n_landmarks < n_old:
            kept = np.sort(self._rng.choice(n_old, n_landmarks, replace=False))
        n_new = max(0, n_landmarks - n_old)
        drawn = self._rng.choice(len(self._y), n_new, replace=False)
        keep = torch.as_tensor(kept, device=self._device)
        places = torch.as_tensor(self._places[drawn], device=self._device)
        new = self._y.detach()[places]
        velocity = self._optimizer.state.pop(self._z, {}).get("velocity")
        self._z = torch.nn.Parameter(torch.cat([old[keep], new]))
        self._optimizer.param_groups[1]["params"] = [self._z]
        if velocity is not None:
            still = torch.zeros_like(new)
            state = self._optimizer.state[self._z]
            state["velocity"] = torch.cat([velocity[keep], still])

    # --- Play

    @property
    def iteration(self) -> int:
        return self._iteration

    @property
    def finished(self) -> bool:
        return self._position >= self._schedule.n_iter

    def advance(self, seconds: float, iterations: int | None) -> None:
        """Play until the time, the iterations or the schedule is used up."""
        end = time.perf_counter() + seconds
        left = self._schedule.n_iter - self._position
        with one_torch_thread():
            for _ in range(min(left, iterations or left)):
                self._step()
                if time.perf_counter() >= end:
                    break

    def _step(self) -> None:
        done = self._position / self._schedule.n_iter
        self._set_rates(self._schedule.rate(done))
        self._objective.repulsion = self._repulsion * self._schedule.repulsion(done)
        self._optimizer.zero_grad()
        energy = self._objective(self._y, self._z)
        energy.backward()  # type: ignore[no-untyped-call]
        self._optimizer.step()
        self._objective.follow(self._y, self._z)
        self._position += 1
        self._iteration += 1

    def _set_rates(self, factor: float) -> None:
        points, landmarks = self._optimizer.param_groups
        points["lr"] = factor * self._schedule.learning_rate
        landmarks["lr"] = factor * self._schedule.landmark_learning_rate
        points["update"] = self._settings.update
        landmarks["update"] = self._settings.landmark_update
        for group in (points, landmarks):
            group["momentum"] = self._schedule.momentum

    # --- What is seen of it

    def snapshot(self, diagnose: bool) -> Snapshot:
        embedding = self._copy(self._y)[self._places]
        landmarks = self._copy(self._z)
        if not (_is_on_map(embedding) and _is_on_map(landmarks)):
            raise InputError(
                "The points have run off the map: lower the learning rates."
            )
        self._objective.repulsion = self._repulsion
        if diagnose or self._has_lost_landmarks:
            must = self.finished or self._has_lost_landmarks
            self._diagnosis(lambda: self._diagnose(embedding), must)
        return Snapshot(
            iteration=self._iteration,
            n_iter=self._iteration + self._schedule.n_iter - self._position,
            embedding=embedding,
            landmarks=landmarks,
            energy=self._energy() if diagnose else math.nan,
            labels=self._labels,
            pressure=self._pressure,
            warning=self._warning,
            finished=self.finished,
        )

    def _energy(self) -> float:
        with torch.no_grad():
            return float(self._objective(self._y, self._z, value=True))

    def _diagnose(self, embedding: NDArray[np.float32]) -> None:
        """Work out labels and pressure, and whether the points collapse."""
        labels, pressures = pressure(self._objective, self._y, self._z)
        self._labels, self._pressure = labels[self._places], pressures[self._places]
        self._warning = far_warning(embedding) or self._collapse(embedding)

    @property
    def _has_lost_landmarks(self) -> bool:
        """Whether labels name landmarks that have been taken away."""
        return int(self._labels.max(initial=0)) >= len(self._z)

    def _collapse(self, embedding: NDArray[np.float32]) -> str:
        # Before that the repulsion is still growing, and the points lie close.
        if self._position < _SETTLED * self._schedule.n_iter:
            return ""
        return collapse_warning(
            embedding,
            self._settings,
            self._schedule.learning_rate,
            self._schedule.landmark_learning_rate,
        )

    def _copy(self, tensor: torch.Tensor) -> NDArray[np.float32]:
        positions = tensor.detach().cpu().numpy()[:, : self._n_components]
        return np.array(positions, dtype=np.float32, order="C")


def _is_on_map(positions: NDArray[np.float32]) -> bool:
    """Return whether all coordinates are numbers, and none is out of reach."""
    return bool((np.abs(positions) <= _FARTHEST).all())
