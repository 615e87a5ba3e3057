"""The driver: it plays the game, or shows layouts, and hands out snapshots.

It alone keeps the clock, makes the snapshots, looks for a collapse, and fits
landmarks to maps of layouts, which have none.  Whoever iterates decides what to show,
and steers by sending new settings in.

    playing = play(edges, layout, Settings())
    snapshot = next(playing)                          # the start layout
    while not snapshot.finished:
        snapshot = playing.send(changed or None)      # up to 40 ms of iterations
    snapshot = playing.send(changed)                  # plays on after the end
    next(playing)                                     # or ends it

Where layouts are shown, some of the points stand for them on the way.  On
the finished map landmarks settle as in a game whose points stand still, so that it
has clusters like every other.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from functools import partial
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from napari_embedding_game.core.dynamics.alarms import alarm, far_alarm
from napari_embedding_game.core.dynamics.game import Game
from napari_embedding_game.core.dynamics.optimizer import resolve_schedule
from napari_embedding_game.core.dynamics.state import Layouts, Problem, State
from napari_embedding_game.core.energy.methods import get_method
from napari_embedding_game.core.energy.objective import AllPairs, MeshSum
from napari_embedding_game.core.energy.pressure import nearest_landmark, pressure
from napari_embedding_game.core.errors import DivergenceError, InputError
from napari_embedding_game.core.graph.affinities import Edges
from napari_embedding_game.core.inspect.stretch import nearest_neighbors, stretch
from napari_embedding_game.core.settings import NO_CHANGE, NO_HAND, Settings, maker
from napari_embedding_game.core.snapshot import (
    Alarm,
    HandForces,
    Snapshot,
    Steer,
    WarmStart,
    undefined,
)
from napari_embedding_game.core.threads import one_torch_thread

FrameIterations = int | Callable[[int], int] | None
Playing = Generator[Snapshot, Settings | Steer | None, None]

_T = TypeVar("_T")

FRAME_SECONDS = 0.04
"""Longest stretch of iterations between two snapshots."""
SHARE_OF_TIME = 0.2
"""Share of the time that labels and pressure may take while the points move."""
STRETCH_SHARE = 0.1
"""And that their stretch may take."""
ALWAYS_MEASURED = 50_000
"""Points up to which each snapshot's energy is its own."""
FITTING = 100
"""Iterations in which landmarks are fitted to a finished map."""
_SETTLED = 0.6
"""Share of the schedule after which points that lie close are a collapse."""
_DEVICES = ("cpu", "cuda", "mps")
GPU_POINTS = 20_000
"""Points from which "auto" takes a GPU; a guess, as none was there to measure."""
GPU_IS_FULL = "The graphics card has too little memory: the processor goes on."


def play(
    edges: Edges,
    layout: NDArray[np.floating],
    settings: Settings | None = None,
    *,
    random_state: int = 0,
    device: str = "auto",
    n_jobs: int | None = None,
    diagnose: bool = True,
    frame_iterations: FrameIterations = None,
    warm_start: WarmStart | None = None,
    stop_at: int | None = None,
) -> Playing:
    """Move the points from ``layout`` as the settings say, and yield snapshots.

    The first snapshot is the start; each further one comes after at most
    40 ms of iterations, or after one that takes longer.  Sending settings steers:
    all of them act at once, and the learning rates of a game come back to half-way so
    that there is time to react.  After the snapshot with ``finished=True``,
    ``send(settings)`` plays on and ``next()`` ends the iterator.  A :class:`Steer`
    brings the forces of a hand, with settings or without: a game takes them up in the
    same way.  Layouts that something else makes are not steered: settings that are sent
    change nothing.

    Parameters
    ----------
    edges : Edges
        Who attracts whom.
    layout : (N, d) array
        Start positions, d = 1, 2 or 3.
    settings : Settings, optional
    random_state : int
        Seed of everything drawn at random.
    device : str
        "auto", "cpu", "cuda" or "mps".
    n_jobs : int, optional
        Threads for large data; see :mod:`threads`.
    diagnose : bool
        Whether energy, labels and pressure are kept up to date while the points
        move, above 50,000 points at a fifth of the time at most for the energy, and
        as much for the other two at any size: a snapshot of large data may carry those
        of one before.  If not, only the last snapshot has them, and the energy of the
        others is NaN.
    frame_iterations : int or callable, optional
        Most iterations between two snapshots.  A function receives the iteration
        reached and returns how many may follow: so a replay comes to stand
        exactly where the recorded run was steered.
    warm_start : WarmStart, optional
        What ``layout`` is of, where it is a map to go on from: landmarks begin where
        they were, and what was left of the schedule is played, or its second half.
    stop_at : int, optional
        Iteration whose snapshot is looked at like a last one: its energy, labels,
        pressure and stretch are its own.

    Raises
    ------
    InputError
        A setting is out of range, the points are too many for the optimiser, or they
        left every finite position.  Or forces were sent to what is no game.
    """
    settings = settings or Settings()
    problem = Problem(
        edges=edges,
        layout=layout,
        random_state=random_state,
        device=resolve_device(device, len(layout)),
        n_jobs=n_jobs,
        warm_start=warm_start,
    )
    driver = _Driver(problem, settings, diagnose, frame_iterations, stop_at)
    while True:
        steer = yield driver.do(driver.snapshot)
        if steer is not None:
            taken = steer if isinstance(steer, Steer) else Steer(game=steer)
            driver.do(partial(driver.steer, taken))
        if not driver.do(driver.advance):
            return


def make_dynamic(problem: Problem, settings: Settings) -> Game | Layouts:
    """Return what moves the points under these settings.

    Raises
    ------
    InputError
        The method does not take the optimiser.
    """
    make = maker(settings)
    if make is None:
        return Game(problem)
    moved: Game | Layouts = make(problem, settings)
    return moved


def resolve_device(device: str, n_points: int = GPU_POINTS) -> torch.device:
    """Return the torch device for a name.

    "auto" is CUDA for maps of at least :data:`GPU_POINTS` points, where there is such
    a device, else the CPU.

    Raises
    ------
    InputError
        This machine does not have the device.
    """
    has_cuda = torch.cuda.is_available()
    if device == "auto":
        return torch.device("cuda" if has_cuda and n_points >= GPU_POINTS else "cpu")
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


class Throttle:
    """Work that is done now and then, for a small share of the time."""

    def __init__(self, share: float | None = None) -> None:
        self._share = SHARE_OF_TIME if share is None else share
        self._next = 0.0

    def __call__(self, work: Callable[[], None], must: bool = False) -> None:
        """Do the work, unless its share of the time is used up; ``must`` does it."""
        begin = time.perf_counter()
        if begin >= self._next or must:
            work()
            now = time.perf_counter()
            self._next = now + (now - begin) / self._share


class _Driver:
    """A dynamic under way, then the landmarks that are fitted to its map."""

    def __init__(
        self,
        problem: Problem,
        settings: Settings,
        diagnose: bool,
        frame_iterations: FrameIterations,
        stop_at: int | None,
    ) -> None:
        self._problem = problem
        self._stop_at = stop_at
        self._diagnose = diagnose
        self._frame_iterations = frame_iterations
        self._n_components = problem.layout.shape[1]
        n = len(problem.layout)
        self._labels: NDArray[np.int32] = np.zeros(n, np.int32)
        self._pressure = undefined(n)
        self._neighbors: NDArray[np.int32] | None = None
        self._stretch: NDArray[np.float32] | None = None
        self._alarm = Alarm()
        self._throttle = Throttle()
        self._stretch_throttle = Throttle(STRETCH_SHARE)
        self._measuring = Throttle()
        self._note = ""
        try:
            self._dynamic = make_dynamic(problem, settings)
            self._take_up(settings, 0)
        except torch.OutOfMemoryError:
            if problem.device.type == "cpu":
                raise
            self._begin_on_cpu(problem, settings, 0)

    def do(self, work: Callable[[], _T]) -> _T:
        """Do it, on the processor from now on where a GPU has no memory for it."""
        try:
            return work()
        except torch.OutOfMemoryError:
            if self._problem.device.type == "cpu":
                raise
            embedding = self._positions()
            left = self._state.n_iter - self._state.iteration
            here = WarmStart(
                embedding=embedding,
                landmarks=self._landmarks(embedding),
                iterations_left=left,
            )
            problem = replace(self._problem, layout=embedding, warm_start=here)
            self._begin_on_cpu(problem, self._settings, self.iteration)
            return work()

    def _begin_on_cpu(
        self, problem: Problem, settings: Settings, iteration: int
    ) -> None:
        self._note = GPU_IS_FULL
        self._problem = replace(problem, device=torch.device("cpu"))
        self._dynamic = make_dynamic(self._problem, settings)
        self._take_up(settings, iteration)

    # --- Settings and time

    @property
    def iteration(self) -> int:
        """Iterations done since the start layout."""
        return self._before + self._state.iteration

    @property
    def finished(self) -> bool:
        """Whether nothing is left to do under these settings."""
        state = self._state
        is_game = isinstance(self._moving, Game)
        return is_game and state.iteration == state.n_iter

    def steer(self, steer: Steer) -> None:
        """Go on from the present points under other settings or forces."""
        if steer.forces is not None:
            self._take_forces(steer.forces)
        settings = steer.game or self._settings
        if isinstance(self._dynamic, Layouts):
            return
        if maker(settings) is not maker(self._settings):
            raise InputError(NO_CHANGE)
        self._take_up(settings, self.iteration)

    def advance(self) -> bool:
        """Take the steps of one frame; return whether there was one to take."""
        if self._walk():
            return True
        if isinstance(self._moving, Game):
            return False
        self._fit_landmarks()
        return self._walk()

    def _take_up(self, settings: Settings, iteration: int) -> None:
        self._settings = settings
        self._method = get_method(settings.method)
        self._begin(self._dynamic, settings, iteration)
        self._fixed_energy: float | None = None
        self._measured = math.nan
        if isinstance(self._dynamic, Layouts):
            self._members = self._draw_members(settings.n_landmarks)

    def _take_forces(self, forces: HandForces) -> None:
        if not isinstance(self._dynamic, Game):
            raise InputError(NO_HAND)
        self._dynamic.take_forces(forces)

    def _begin(
        self, dynamic: Game | Layouts, settings: Settings, iteration: int
    ) -> None:
        """Let a dynamic move the points from this iteration on."""
        self._moving = dynamic
        self._states: Iterator[State] = dynamic.steps(settings)
        self._state = next(self._states)
        self._before = iteration - self._state.iteration

    def _draw_members(self, n_landmarks: int) -> NDArray[np.integer]:
        """Return the points that stand for landmarks: those a game begins with."""
        rng = np.random.default_rng(self._problem.random_state)
        n = len(self._problem.layout)
        return rng.choice(n, min(n_landmarks, n), replace=False)

    def _walk(self) -> bool:
        """Let the present dynamic move for a frame; return whether it did."""
        end = time.perf_counter() + FRAME_SECONDS
        begun = self.iteration
        most = self._frame_iterations
        bound = (most(begun) if callable(most) else most) or math.inf
        is_shown = self._moving.shows_every_step
        with one_torch_thread():
            for state in self._states:
                self._state = state
                is_enough = is_shown or self.iteration - begun >= bound
                if is_enough or time.perf_counter() >= end:
                    break
        return self.iteration > begun

    def _fit_landmarks(self) -> None:
        """Begin a game of landmarks against points that stand still."""
        positions = self._positions()
        if self._method.has_pressure:
            self._look(positions)
        self._alarm = Alarm(self._state.warning) or self._map_alarm(positions)
        self._fixed_energy = self._energy_without_landmarks()
        self._throttle = Throttle()
        self._measured = math.nan
        game = Game(replace(self._problem, layout=positions, warm_start=None))
        # By the game's own settings, whatever the method.
        still = Settings(
            n_landmarks=self._settings.n_landmarks, learning_rate=0.0, max_iter=FITTING
        )
        self._begin(game, still, self.iteration)

    # --- What is seen of it

    def snapshot(self) -> Snapshot:
        """Return a copy of everything there is to see."""
        embedding = self._positions()
        landmarks = self._landmarks(embedding)
        is_looked_at = True
        if self._state.z is None:
            places = torch.from_numpy(embedding), torch.from_numpy(landmarks)
            self._labels = nearest_landmark(*places, self._problem.n_jobs)
            self._alarm = Alarm(self._state.warning)
            is_looked_at = self._method.has_pressure
        is_last = self.finished or self.iteration == self._stop_at
        must = is_last or self._has_lost_landmarks(landmarks)
        if is_looked_at and (must or self._diagnose):
            self._throttle(lambda: self._look(embedding), must)
        if self._diagnose or is_last:
            self._stretch_throttle(lambda: self._measure_stretch(embedding), must)
        return Snapshot(
            iteration=self.iteration,
            n_iter=self._n_iter,
            embedding=embedding,
            landmarks=landmarks,
            energy=self._shown_energy(must, is_last),
            labels=self._labels,
            pressure=self._pressure,
            stretch=self._stretch,
            neighbors=self._neighbors,
            isolation=self._problem.edges.isolation,
            warning=self._alarm.sentence or self._note,
            remedy=self._alarm.remedy,
            finished=self.finished,
        )

    @property
    def _n_iter(self) -> int:
        n_iter = self._state.n_iter
        if isinstance(self._moving, Game):
            return self._before + n_iter
        return self._before + n_iter + FITTING if n_iter else 0

    def _positions(self) -> NDArray[np.float32]:
        """Return a copy of the points, (N, d), in the order of the data."""
        positions = self._copy(self._state.y)
        places = self._moving.places
        return positions if places is None else positions[places]

    def _landmarks(self, embedding: NDArray[np.float32]) -> NDArray[np.float32]:
        z = self._state.z
        return embedding[self._members] if z is None else self._copy(z)

    def _copy(self, tensor: Tensor) -> NDArray[np.float32]:
        rows = tensor.detach().cpu().numpy()[:, : self._n_components]
        copied = np.array(rows, dtype=np.float32, order="C")
        if not (np.abs(copied) <= self._moving.farthest).all():
            raise DivergenceError(
                f"The points have run off the map: {self._moving.way_back}.",
                {"learning_rate": None, "landmark_learning_rate": None},
            )
        return copied

    def _has_lost_landmarks(self, landmarks: NDArray[np.float32]) -> bool:
        """Whether labels name landmarks that have been taken away."""
        return int(self._labels.max(initial=0)) >= len(landmarks)

    # --- Energy

    def _shown_energy(self, must: bool, is_last: bool) -> float:
        """Return the energy of what is seen, or was seen a moment ago."""
        if not (self._diagnose or is_last):
            return math.nan
        is_quick = len(self._problem.layout) <= ALWAYS_MEASURED
        must = must or is_quick or math.isnan(self._measured)
        self._measuring(self._measure, must)
        return self._measured

    def _measure(self) -> None:
        self._measured = self._energy()

    def _energy(self) -> float:
        """Return the energy of what is seen."""
        if self._fixed_energy is not None:
            return self._fixed_energy
        if isinstance(self._moving, Game):
            return self._moving.energy()
        return self._energy_of_points()

    def _energy_of_points(self) -> float:
        """Return the energy where some points stand for landmarks."""
        state, objective = self._state, self._moving.objective
        if state.energy is not None:
            return state.energy
        assert objective is not None
        return objective.energy(state.y, state.y[self._members])

    def _energy_without_landmarks(self) -> float | None:
        """Return the energy of the map; None if landmarks have a say in it."""
        objective = self._moving.objective
        if objective is None or isinstance(objective.pairs, AllPairs | MeshSum):
            return self._energy_of_points()
        return None

    # --- Diagnosis

    def _look(self, positions: NDArray[np.float32]) -> None:
        """Work out labels and pressure, and whether the points collapse.

        While landmarks are fitted only the labels change.
        """
        state, objective = self._state, self._moving.objective
        assert objective is not None
        z = state.y[self._members] if state.z is None else state.z
        labels, pressures = pressure(objective, state.y, z)
        places = self._moving.places
        self._labels = labels if places is None else labels[places]
        if self._moving is not self._dynamic:
            return
        self._pressure = pressures if places is None else pressures[places]
        if state.z is not None:
            self._alarm = self._map_alarm(positions)

    def _measure_stretch(self, positions: NDArray[np.float32]) -> None:
        if self._neighbors is None:
            self._neighbors = nearest_neighbors(self._problem.edges)
        self._stretch = stretch(self._neighbors, positions, self._problem.n_jobs)

    def _map_alarm(self, positions: NDArray[np.float32]) -> Alarm:
        """Return why the map cannot be trusted, and what mends it."""
        state, settings = self._state, self._settings
        if not self._method.kernel:
            return Alarm()  # inner products: the map is that of the data
        schedule = resolve_schedule(settings)
        position = schedule.n_iter - (state.n_iter - state.iteration)
        # Before that the repulsion is still growing, and the points lie close.
        is_early = state.z is not None and position < _SETTLED * schedule.n_iter
        if is_early:
            return far_alarm(positions)
        has_landmarks = state.z is not None and position == schedule.n_iter
        landmarks = self._landmarks(positions) if has_landmarks else None
        return alarm(positions, settings, landmarks)
