"""The game played, or layouts shown: one clock, and snapshots.

    playing = play(edges, layout, Settings())
    snapshot = next(playing)                          # the start layout
    while not snapshot.finished:
        snapshot = playing.send(changed or None)      # up to 40 ms of iterations
    snapshot = playing.send(changed)                  # plays on after the end

On finished layouts landmarks settle as in a game with fixed points.  A game ends
with its schedule (``game.Game._played``), not by its energy, as ``TOLERANCE`` of
``papers/minimizers.py`` has it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from napari_embedding_game.core.device import GPU_IS_FULL, resolve_device
from napari_embedding_game.core.dynamics.alarms import alarm
from napari_embedding_game.core.dynamics.game import Game
from napari_embedding_game.core.dynamics.hand import MAX_DISTANCE
from napari_embedding_game.core.dynamics.state import Layouts, Problem, State
from napari_embedding_game.core.energy.methods import get_method
from napari_embedding_game.core.energy.objective import as_array, find_nearest_landmarks
from napari_embedding_game.core.energy.pair_loops import padded_to_plane
from napari_embedding_game.core.energy.pressure import pressure
from napari_embedding_game.core.errors import InputError, make_runaway_error
from napari_embedding_game.core.graph.edges import Edges
from napari_embedding_game.core.graph.memory_order import memory_order
from napari_embedding_game.core.inspect.stretch import compute_stretch
from napari_embedding_game.core.settings import (
    NO_CHANGE,
    NO_HAND,
    Settings,
    is_game,
    validate_continuation,
)
from napari_embedding_game.core.snapshot import Alarm, Snapshot, Steer, WarmStart
from napari_embedding_game.core.threads import limit_threads, use_one_torch_thread

FrameIterations = int | Callable[[int], int] | None
Playing = Generator[Snapshot, Settings | Steer | None, None]

FRAME_SECONDS = 0.04
"""Longest stretch of iterations between two snapshots."""
SHARE_OF_TIME = 0.25
"""Share of the time that may be spent on diagnostics."""
SHARE_UNWATCHED, LONGEST_UNWATCHED = 0.02, 2.0
"""Share of the time that may be spent on snapshots at which nobody looks, and the most
seconds between two of them, for which Ctrl-C has to wait."""
ALWAYS_MEASURED = 50_000
"""Points up to which the energy is computed for each snapshot."""
FITTING = 100
"""Iterations in which landmarks are fitted to a finished map."""
_MAX_FLOAT = float(np.finfo(np.float32).max)


def play(
    edges: Edges,
    layout: NDArray[np.floating],
    settings: Settings,
    *,
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
    brings the forces of a hand as well, or asks for a closer look.

    ``layout`` (N, d): start positions, d = 1, 2 or 3.  ``settings``: their affinity is
    no "auto", see :func:`settings.fill_affinity`.  ``diagnose``: whether labels,
    pressure, stretch and energy are kept up to date while the points move, for a
    quarter of the time at most.  If not, only the last snapshot has them, or one that
    is asked for, and the energy of the others is NaN.  ``frame_iterations``: most
    iterations between two snapshots.  A function receives the iteration reached and
    returns how many may follow: so a replay stops exactly where the recorded run was
    steered.
    ``warm_start``: what ``layout`` is of, where it is a map to go on from: landmarks
    begin where they were, and what was left of the schedule is played, or its second
    half.

    InputError: a setting is out of range, the points are too many for the method, or
    they left every finite position.  Or forces or a warm start for what is no game, or
    a large picture where ``edges`` know no coordinates.
    """
    settings.validate()
    if warm_start is not None:
        validate_continuation(settings)
        landmarks = padded_to_plane(warm_start.landmarks)
        warm_start = replace(warm_start, landmarks=landmarks)
    layout = np.asarray(layout)
    problem = Problem(
        edges=edges,
        layout=padded_to_plane(layout),
        n_components=layout.shape[1],
        random_state=settings.random_state,
        device=resolve_device(settings.device, len(layout)),
        warm_start=warm_start,
        coordinates=edges.coordinates,
    )
    try:
        with limit_threads(settings.n_jobs):
            driver = _Driver(problem, settings, diagnose)
            snapshot = driver.snapshot(False)
        while True:
            sent = yield snapshot
            steer = sent if isinstance(sent, Steer) else Steer(settings=sent)
            with limit_threads(settings.n_jobs):
                driver.steer(steer)
                begun, most = driver.state.iteration, frame_iterations
                if not steer.look:
                    driver.move((most(begun) if callable(most) else most) or math.inf)
                    if driver.state.iteration == begun:
                        return
                snapshot = driver.snapshot(steer.look)
    except torch.OutOfMemoryError as error:
        raise InputError(GPU_IS_FULL, {"device": "cpu"}) from error


def make_mover(problem: Problem, settings: Settings) -> Game | Layouts:
    """Return what moves the points under these settings."""
    make = get_method(settings.method).moved_by
    mover: Game | Layouts = make(problem, settings) if make else Game(problem)
    return mover


class _Driver:
    """What moves the points, and their last diagnostics."""

    state: State
    states: Iterator[State]

    def __init__(self, problem: Problem, settings: Settings, diagnose: bool) -> None:
        n, self._edges, self._diagnose = len(problem.layout), problem.edges, diagnose
        if is_game(settings):
            order = memory_order(problem.layout)
            problem = replace(
                problem,
                edges=problem.edges.reorder_points(order),
                layout=problem.layout[order],
                memory_rows=np.argsort(order),
            )
        self._problem = problem
        labels, unknown = np.zeros(n, np.int32), np.full(n, np.nan, np.float32)
        self._diagnostics: dict[str, Any] = {"labels": labels, "pressure": unknown}
        self._alarm, self._next_look = Alarm(), 0.0
        self._frame_seconds = FRAME_SECONDS
        rng = np.random.default_rng(problem.random_state)
        self._members = rng.choice(n, min(settings.n_landmarks, n), replace=False)
        self.mover = make_mover(problem, settings)
        self._apply_settings(settings)

    def steer(self, steer: Steer) -> None:
        """Go on from the present points under other settings or forces."""
        settings = steer.settings or self._settings
        if isinstance(self.mover, Game):
            if not is_game(settings):
                raise InputError(NO_CHANGE)
            if steer.settings is not None or steer.forces is not None:
                self._apply_settings(settings)
            if steer.forces is not None:
                self.mover.set_forces(steer.forces)
        elif steer.forces is not None:
            raise InputError(NO_HAND)

    def _apply_settings(self, settings: Settings) -> None:
        self._settings, self._energy, mover = settings, math.nan, self.mover
        if isinstance(mover, Game):
            self.states = mover.steps(settings)
        else:
            self.states = _then_landmarks(mover, self._problem, settings.n_landmarks)
        self.state = next(self.states)

    def move(self, most: float) -> None:
        """Move the points ``most`` times, or for as long as a frame may take."""
        begun, end = self.state.iteration, time.perf_counter() + self._frame_seconds
        with use_one_torch_thread():
            for state in self.states:
                self.state = state
                is_full = state.iteration - begun >= most
                if is_full or time.perf_counter() >= end:
                    return

    def snapshot(self, look: bool) -> Snapshot:
        """Return a copy of everything there is to see."""
        begun = time.perf_counter()
        snapshot = self._make_snapshot(look)
        if not self._diagnose:
            taken = time.perf_counter() - begun
            seconds = min(taken / SHARE_UNWATCHED, LONGEST_UNWATCHED)
            self._frame_seconds = max(FRAME_SECONDS, seconds)
        return snapshot

    def _make_snapshot(self, look: bool) -> Snapshot:
        state, seen = self.state, self._diagnostics
        embedding = self._in_order(self._copy(state.y))
        landmarks = embedding[self._members] if state.z is None else self._copy(state.z)
        is_finished = state.z is not None and state.iteration == state.n_iter
        is_at_rest = is_finished or look
        is_diagnosed = is_at_rest or self._is_diagnosis_due(len(landmarks))
        if is_diagnosed:
            self._diagnose_now(embedding, landmarks, is_finished, is_at_rest)
        if is_diagnosed or self._measures_energy:
            self._energy = self.mover.energy(state)
        if isinstance(self.mover, Layouts):
            seen["labels"] = find_nearest_landmarks(embedding, landmarks)
        alarm, d = Alarm(state.warning) or self._alarm, self._problem.n_components
        return Snapshot(
            iteration=state.iteration,
            n_iter=state.n_iter,
            embedding=np.ascontiguousarray(embedding[:, :d]),
            landmarks=np.ascontiguousarray(landmarks[:, :d]),
            energy=self._energy,
            isolation=self._edges.isolation,
            warning=alarm.sentence,
            remedy=alarm.remedy,
            finished=is_finished,
            **seen,
        )

    def _is_diagnosis_due(self, n_landmarks: int) -> bool:
        """Return whether labels name landmarks that are gone, or a look is due."""
        are_outdated = int(self._diagnostics["labels"].max()) >= n_landmarks
        is_time = self._diagnose and time.perf_counter() >= self._next_look
        return are_outdated or is_time

    @property
    def _measures_energy(self) -> bool:
        """Whether a snapshot gets an energy of its own: few points, or none yet."""
        is_quick = len(self.state.y) <= ALWAYS_MEASURED
        return self._diagnose and (is_quick or math.isnan(self._energy))

    def _in_order(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return rows of the points in the order of the data."""
        order = self._problem.memory_rows
        return rows if order is None else rows[order]

    def _copy(self, tensor: Tensor) -> NDArray[np.float32]:
        copied = np.array(as_array(tensor), np.float32, order="C")
        is_game = isinstance(self.mover, Game)
        if not (np.abs(copied) <= (MAX_DISTANCE if is_game else _MAX_FLOAT)).all():
            raise make_runaway_error()
        return copied

    def _diagnose_now(
        self,
        embedding: NDArray[np.float32],
        landmarks: NDArray[np.float32],
        is_finished: bool,
        is_at_rest: bool,
    ) -> None:
        """Work out labels, pressure and stretch, and whether the points collapse."""
        begun, seen = time.perf_counter(), self._diagnostics
        state, mover, d = self.state, self.mover, self._problem.n_components
        if mover.objective is not None:
            z = state.y[self._members] if state.z is None else state.z
            device = mover.objective.forces.device  # layouts: the processor
            y, z = state.y.to(device), z.to(device)
            labels, heights = pressure(mover.objective, y, z, is_at_rest)
            seen["labels"], seen["pressure"] = map(self._in_order, (labels, heights))
        if (nearest := self._edges.nearest) is not None:
            seen["neighbors"] = nearest
            seen["stretch"] = compute_stretch(nearest, embedding)
        is_game = isinstance(mover, Game)
        if is_game or is_finished:
            held = landmarks[:, :d] if is_game and is_finished else None
            left = state.n_iter - state.iteration
            self._alarm = alarm(embedding[:, :d], self._settings, held, left)
        now = time.perf_counter()
        self._next_look = now + (now - begun) / SHARE_OF_TIME


def _then_landmarks(
    layouts: Layouts, problem: Problem, n_landmarks: int
) -> Iterator[State]:
    """Yield layouts, then a game of landmarks against fixed points."""
    for state in layouts.states:
        yield replace(state, n_iter=state.n_iter + FITTING if state.n_iter else 0)
    positions, energy = as_array(state.y), layouts.energy(state)
    still = Settings(n_landmarks=n_landmarks, learning_rate=0.0, max_iter=FITTING)
    game = Game(
        replace(problem, layout=positions, warm_start=None, iteration=state.iteration)
    )
    for fitted in islice(game.steps(still), 1, None):
        yield replace(fitted, energy=energy, warning=state.warning)
