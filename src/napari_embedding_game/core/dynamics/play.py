"""The game played, or layouts shown: one clock, and snapshots.

Whoever iterates decides what to show, and steers by sending new settings in.

    playing = play(edges, layout, Settings())
    snapshot = next(playing)                          # the start layout
    while not snapshot.finished:
        snapshot = playing.send(changed or None)      # up to 40 ms of iterations
    snapshot = playing.send(changed)                  # plays on after the end
    next(playing)                                     # or ends it

Where layouts are shown, some of the points stand for landmarks on the way.  On the
finished map landmarks settle as in a game whose points stand still, so that it has
clusters like every other.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from napari_embedding_game.core.dynamics.alarms import alarm, far_alarm
from napari_embedding_game.core.dynamics.game import Game
from napari_embedding_game.core.dynamics.memory_order import inverse, memory_order
from napari_embedding_game.core.dynamics.schedule import resolve_schedule
from napari_embedding_game.core.dynamics.state import (
    ANYWHERE,
    Layouts,
    Problem,
    State,
)
from napari_embedding_game.core.energy.methods import get_method
from napari_embedding_game.core.energy.objective import nearest_landmark
from napari_embedding_game.core.energy.pair_loops import in_the_plane
from napari_embedding_game.core.energy.pressure import pressure
from napari_embedding_game.core.errors import DivergenceError, InputError
from napari_embedding_game.core.graph.edges import Edges
from napari_embedding_game.core.inspect.stretch import nearest_neighbors, stretch
from napari_embedding_game.core.settings import NO_CHANGE, NO_HAND, Settings, maker
from napari_embedding_game.core.snapshot import (
    Alarm,
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
SHARE_OF_TIME = 0.25
"""Share of the time that may be spent on what is told of the points."""
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
) -> Playing:
    """Move the points from ``layout`` as the settings say, and yield snapshots.

    The first snapshot is the start; each further one comes after at most
    40 ms of iterations, or after one that takes longer.  Sending settings steers:
    all of them act at once, and the learning rates of a game come back to half-way so
    that there is time to react.  After the snapshot with ``finished=True``,
    ``send(settings)`` plays on and ``next()`` ends the iterator.  A :class:`Steer`
    brings the forces of a hand as well, or asks for a closer look.  Layouts that
    something else makes are not steered: settings that are sent change nothing.

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
        Whether labels, pressure, stretch and energy are kept up to date while the
        points move, for a quarter of the time at most: a snapshot may carry those of
        one before, up to 50,000 points with an energy of its own.  If not, only the
        last snapshot has them, or one that is asked for, and the energy of the others
        is NaN.
    frame_iterations : int or callable, optional
        Most iterations between two snapshots.  A function receives the iteration
        reached and returns how many may follow: so a replay comes to stand
        exactly where the recorded run was steered.
    warm_start : WarmStart, optional
        What ``layout`` is of, where it is a map to go on from: landmarks begin where
        they were, and what was left of the schedule is played, or its second half.

    Raises
    ------
    InputError
        A setting is out of range, the points are too many for the optimiser, or they
        left every finite position.  Or forces were sent to what is no game.
    """
    settings = settings or Settings()
    layout = np.asarray(layout)
    warm = warm_start and replace(
        warm_start, landmarks=in_the_plane(warm_start.landmarks)
    )
    problem = Problem(
        edges=edges,
        layout=in_the_plane(layout),
        n_components=layout.shape[1],
        random_state=random_state,
        device=resolve_device(device, len(layout)),
        n_jobs=n_jobs,
        warm_start=warm,
    )
    playing = _Playing(problem, settings, diagnose, frame_iterations)
    look = False
    while True:
        sent = yield playing.do(partial(playing.snapshot, look))
        steer = sent if isinstance(sent, Steer) else Steer(settings=sent)
        playing.do(partial(playing.steer, steer))
        look = steer.look
        if not look and not playing.do(playing.advance):
            return


def make_mover(problem: Problem, settings: Settings) -> Game | Layouts:
    """Return what moves the points under these settings.

    Raises
    ------
    InputError
        The method does not take the optimiser.
    """
    make = maker(settings) or (lambda problem, _: Game(problem))
    mover: Game | Layouts = make(problem, settings)
    return mover


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


class _Playing:
    """What moves the points, and what was last told of them."""

    def __init__(
        self,
        problem: Problem,
        settings: Settings,
        diagnose: bool,
        frame_iterations: FrameIterations,
    ) -> None:
        self._edges = problem.edges
        self._diagnose = diagnose
        self._frame_iterations = frame_iterations
        n = len(problem.layout)
        self._told: dict[str, Any] = {
            "labels": np.zeros(n, np.int32),
            "pressure": undefined(n),
        }
        self._alarm = Alarm()
        self._note = ""
        self._next_look = 0.0
        self._problem = problem
        if maker(settings) is None:
            order = memory_order(problem.layout)
            self._problem = replace(
                problem,
                edges=problem.edges.in_order(order),
                layout=problem.layout[order],
                places=inverse(order),
            )
        self._mover: Game | Layouts | None = None
        self.do(partial(self._take_up, settings))
        rng = np.random.default_rng(problem.random_state)
        self._members = rng.choice(n, min(settings.n_landmarks, n), replace=False)

    def do(self, work: Callable[[], _T]) -> _T:
        """Do it, on the processor from now on where a GPU has no memory for it."""
        try:
            return work()
        except torch.OutOfMemoryError:
            if self._problem.device.type == "cpu":
                raise
        self._note = GPU_IS_FULL
        self._problem = replace(self._problem, device=torch.device("cpu"))
        if self._mover is not None:
            state, points = self._state, self._copy(self._state.y)
            here = WarmStart(
                embedding=points,
                landmarks=points[:0] if state.z is None else self._copy(state.z),
                iterations_left=state.n_iter - state.iteration,
            )
            self._problem = replace(
                self._problem,
                layout=points,
                warm_start=here,
                iteration=state.iteration,
            )
            self._mover = None
            self._take_up(self._settings)
        return work()

    # --- Settings and time

    def steer(self, steer: Steer) -> None:
        """Go on from the present points under other settings or forces."""
        if isinstance(self._mover, Game):
            settings = steer.settings or self._settings
            if maker(settings) is not maker(self._settings):
                raise InputError(NO_CHANGE)
            if steer.forces is not None:
                self._mover.take_forces(steer.forces)
            if steer.settings is not None or steer.forces is not None:
                self._take_up(settings)
        elif steer.forces is not None:
            raise InputError(NO_HAND)

    def _take_up(self, settings: Settings) -> None:
        self._settings = settings
        self._energy = math.nan
        mover = self._mover or make_mover(self._problem, settings)
        self._states: Iterator[State] = (
            mover.steps(settings)
            if isinstance(mover, Game)
            else _then_landmarks(mover, self._problem, settings.n_landmarks)
        )
        self._mover = mover
        self._state = next(self._states)

    def advance(self) -> bool:
        """Take the steps of one frame; return whether there was one to take."""
        end = time.perf_counter() + FRAME_SECONDS
        begun, most = self._state.iteration, self._frame_iterations
        bound = (most(begun) if callable(most) else most) or math.inf
        is_shown = isinstance(self._mover, Layouts) and self._mover.shows_every_step
        with one_torch_thread():
            for state in self._states:
                self._state = state
                is_enough = is_shown or state.iteration - begun >= bound
                if is_enough or time.perf_counter() >= end:
                    break
        return self._state.iteration > begun

    # --- What is seen of it

    def snapshot(self, look: bool = False) -> Snapshot:
        """Return a copy of everything there is to see."""
        state = self._state
        embedding = self._in_order(self._copy(state.y))
        landmarks = embedding[self._members] if state.z is None else self._copy(state.z)
        is_finished = state.z is not None and state.iteration == state.n_iter
        is_lost = int(self._told["labels"].max()) >= len(landmarks)
        must = is_finished or look or is_lost
        is_due = must or (self._diagnose and time.perf_counter() >= self._next_look)
        if is_due:
            self._look(embedding, landmarks, is_finished, is_finished or look)
        is_small = len(embedding) <= ALWAYS_MEASURED
        if is_due or (self._diagnose and (is_small or math.isnan(self._energy))):
            self._energy = self._measured()
        alarm = self._alarm
        if isinstance(self._mover, Layouts):
            alarm = Alarm(state.warning) or alarm
            z = torch.from_numpy(landmarks)
            labels = nearest_landmark(
                torch.from_numpy(embedding), z, self._problem.n_jobs
            )
            self._told["labels"] = labels
        d = self._problem.n_components
        return Snapshot(
            iteration=state.iteration,
            n_iter=state.n_iter,
            embedding=np.ascontiguousarray(embedding[:, :d]),
            landmarks=np.ascontiguousarray(landmarks[:, :d]),
            energy=self._energy,
            isolation=self._edges.isolation,
            warning=alarm.sentence or self._note,
            remedy=alarm.remedy,
            finished=is_finished,
            **self._told,
        )

    def _in_order(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return rows of the points in the order of the data."""
        places = self._problem.places
        return rows if places is None else rows[places]

    def _copy(self, tensor: Tensor) -> NDArray[np.float32]:
        mover = self._mover
        assert mover is not None
        copied = np.array(tensor.detach().cpu().numpy(), np.float32, order="C")
        farthest = mover.farthest if isinstance(mover, Game) else ANYWHERE
        if not (np.abs(copied) <= farthest).all():
            raise DivergenceError(
                f"The points have run off the map: {mover.way_back}.",
                {"learning_rate": None, "landmark_learning_rate": None},
            )
        return copied

    def _measured(self) -> float:
        """Return the energy of what is seen."""
        state, mover = self._state, self._mover
        if isinstance(mover, Game):
            return mover.energy()
        assert mover is not None
        return _energy_of(mover, state)

    def _look(
        self,
        embedding: NDArray[np.float32],
        landmarks: NDArray[np.float32],
        is_finished: bool,
        is_at_rest: bool,
    ) -> None:
        """Work out labels, pressure and stretch, and whether the points collapse."""
        begun = time.perf_counter()
        state, mover, told = self._state, self._mover, self._told
        assert mover is not None
        if mover.objective is not None:
            z = state.y[self._members] if state.z is None else state.z
            labels, heights = pressure(mover.objective, state.y, z, is_at_rest)
            told["labels"], told["pressure"] = map(self._in_order, (labels, heights))
        if "neighbors" not in told:
            told["neighbors"] = nearest_neighbors(self._edges)
        told["stretch"] = stretch(told["neighbors"], embedding, self._problem.n_jobs)
        if isinstance(mover, Game) or is_finished:
            self._alarm = self._alarm_of(embedding, landmarks, is_finished)
        now = time.perf_counter()
        self._next_look = now + (now - begun) / SHARE_OF_TIME

    def _alarm_of(
        self,
        embedding: NDArray[np.float32],
        landmarks: NDArray[np.float32],
        is_finished: bool,
    ) -> Alarm:
        """Return why the map cannot be trusted, and what mends it."""
        settings, state = self._settings, self._state
        if not get_method(settings.method).kernel:
            return Alarm()  # inner products: the map is that of the data
        n_iter = resolve_schedule(settings).n_iter
        left = state.n_iter - state.iteration
        # Before that the repulsion is still growing, and the points lie close.
        if left > (1 - _SETTLED) * n_iter:
            return far_alarm(embedding)
        is_game = isinstance(self._mover, Game)
        d = self._problem.n_components
        played = landmarks[:, :d] if is_game and is_finished else None
        return alarm(embedding[:, :d], settings, played)


def _energy_of(layouts: Layouts, state: State) -> float:
    if state.energy is not None:
        return state.energy
    assert layouts.objective is not None
    return layouts.objective.energy(state.y, state.y[:1])


def _then_landmarks(
    layouts: Layouts, problem: Problem, n_landmarks: int
) -> Iterator[State]:
    """Yield layouts, then a game of landmarks against points that stand still."""
    for state in layouts.states:
        yield replace(state, n_iter=state.n_iter + FITTING if state.n_iter else 0)
    positions = state.y.detach().cpu().numpy()
    energy = _energy_of(layouts, state)
    still = Settings(n_landmarks=n_landmarks, learning_rate=0.0, max_iter=FITTING)
    game = Game(
        replace(problem, layout=positions, warm_start=None, iteration=state.iteration)
    )
    fitting = game.steps(still)
    next(fitting)
    for fitted in fitting:
        yield replace(fitted, energy=energy, warning=state.warning)
