"""Run a game or another method for short frames, and yield snapshots.

    playing = play(edges, layout, Settings())
    snapshot = next(playing)                          # the start layout
    while not snapshot.finished:
        snapshot = playing.send(changed or None)      # up to 40 ms of iterations
    snapshot = playing.send(changed)                  # plays on after the end

After layouts of another method, landmarks are fitted by a game with fixed points.  A
game ends with its schedule (``game.Game._play_iterations``), unlike minimisers, which
end by their energy (``TOLERANCE`` of ``papers/minimizers.py``).
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
from napari_embedding_game.core.dynamics.alarms import find_alarm
from napari_embedding_game.core.dynamics.game import Game
from napari_embedding_game.core.dynamics.hand import MAX_DISTANCE
from napari_embedding_game.core.dynamics.state import Layouts, Problem, State
from napari_embedding_game.core.energy.methods import get_method
from napari_embedding_game.core.energy.objective import (
    find_nearest_landmarks,
    tensor_to_array,
)
from napari_embedding_game.core.energy.pair_loops import pad_to_plane
from napari_embedding_game.core.energy.pressure import compute_labels_and_pressure
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
"""Seconds of iterations between two snapshots."""
SHARE_OF_TIME = 0.25
"""Largest share of the time that is spent on diagnostics."""
SHARE_UNWATCHED, LONGEST_UNWATCHED = 0.02, 2.0
"""Largest share of the time that is spent on snapshots without diagnostics, and the
most seconds between two such snapshots, as Ctrl-C waits for the next snapshot."""
ALWAYS_MEASURED = 50_000
"""Most points for which the energy is computed for each snapshot."""
FITTING = 100
"""Iterations that fit landmarks to a finished map."""
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
    """Move the points from ``layout`` by the method of the settings; yield snapshots.

    The first snapshot is the start; each later snapshot comes after at most 40 ms of
    iterations (2 s without ``diagnose``), or one longer iteration.  ``send(settings)``
    steers: all settings act at once, and a game returns to the middle of its schedule,
    so that the points can react.  After the snapshot with ``finished=True``,
    ``send(settings)`` plays on and ``next()`` ends the generator.  ``send(Steer(...))``
    also sends forces of a hand, or requests a snapshot with complete diagnostics.

    Parameters
    ----------
    edges : Edges
        Weighted edges of the N points, with coordinates for a large picture.
    layout : (N, d) array
        Start positions, d = 1, 2 or 3.
    settings : Settings
        The affinity must not be "auto", see :func:`settings.fill_affinity`.
    diagnose : bool
        Whether labels, pressure, stretch and energy are updated while the points move,
        for at most a quarter of the time.  Otherwise only the last snapshot has these,
        or a requested one; the energy of other snapshots is NaN.
    frame_iterations : int or function, optional
        Most iterations between two snapshots.  A function receives the iteration
        reached and returns how many may follow, so that a replay stops exactly where
        the recorded run was steered.
    warm_start : WarmStart, optional
        The map that ``layout`` belongs to, if the run continues from a map: landmarks
        begin at their positions, and the rest of the schedule is played, at least its
        second half.

    Raises
    ------
    InputError
        A setting is out of range, the points are too many for the method, or their
        positions are no longer finite.  Forces or a warm start were given to a method
        that is no game, or a large picture with ``edges`` without coordinates.  Or the
        graphics card has too little memory.
    """
    settings.validate()
    if warm_start is not None:
        validate_continuation(settings)
        landmarks = pad_to_plane(warm_start.landmarks)
        warm_start = replace(warm_start, landmarks=landmarks)
    layout = np.asarray(layout)
    problem = Problem(
        edges=edges.mix_by_share(settings.second_share),
        layout=pad_to_plane(layout),
        n_components=layout.shape[1],
        random_state=settings.random_state,
        device=resolve_device(settings.device, len(layout)),
        warm_start=warm_start,
        coordinates=edges.coordinates,
    )
    try:
        with limit_threads(settings.n_jobs):
            driver = _Driver(problem, settings, diagnose)
            snapshot = driver.take_snapshot(False)
        while True:
            sent = yield snapshot
            steer = sent if isinstance(sent, Steer) else Steer(settings=sent)
            with limit_threads(settings.n_jobs):
                driver.steer(steer)
                begun, most = driver.state.iteration, frame_iterations
                if not steer.look:
                    max_iterations = most(begun) if callable(most) else most
                    driver.move_points(max_iterations or math.inf)
                    if driver.state.iteration == begun:
                        return
                snapshot = driver.take_snapshot(steer.look)
    except torch.OutOfMemoryError as error:
        raise InputError(GPU_IS_FULL, {"device": "cpu"}) from error


def make_mover(problem: Problem, settings: Settings) -> Game | Layouts:
    """Return the layouts of the settings' method, or a game if the method is a game."""
    make = get_method(settings.method).make_layouts
    mover: Game | Layouts = make(problem, settings) if make else Game(problem)
    return mover


class _Driver:
    """A running game or other method, with its clock and its last diagnostics.

    The points of a game are reordered, so that near points are near in memory;
    snapshots are in the order of the data.
    """

    state: State
    states: Iterator[State]

    def __init__(self, problem: Problem, settings: Settings, diagnose: bool) -> None:
        n, self._edges, self._diagnose = len(problem.layout), problem.edges, diagnose
        if is_game(settings):
            self._order = memory_order(problem.layout)
            problem = replace(
                problem,
                edges=problem.edges.reorder_points(self._order),
                layout=problem.layout[self._order],
                memory_rows=np.argsort(self._order),
            )
        self._problem = problem
        labels, unknown = np.zeros(n, np.int32), np.full(n, np.nan, np.float32)
        self._diagnostics: dict[str, Any] = {"labels": labels, "pressure": unknown}
        self._alarm, self._next_look = Alarm(), 0.0
        self._frame_seconds = FRAME_SECONDS
        rng = np.random.default_rng(problem.random_state)
        self._member_rows = rng.choice(n, min(settings.n_landmarks, n), replace=False)
        self.mover = make_mover(problem, settings)
        self._restart_states(settings)

    def steer(self, steer: Steer) -> None:
        """Apply the settings and forces of ``steer`` to the running game.

        Both send a game back to the middle of its schedule.  A method that is no game
        ignores settings.  Raises InputError for forces on such a method, and for
        settings that the running game cannot use.
        """
        settings = steer.settings or self._settings
        if isinstance(self.mover, Game):
            if not is_game(settings):
                raise InputError(NO_CHANGE)
            is_mixed = self._edges.remix is not None
            if is_mixed and settings.second_share != self._settings.second_share:
                self._edges = self._edges.mix_by_share(settings.second_share)
                self.mover.replace_edges(self._edges.reorder_points(self._order))
            if steer.settings is not None or steer.forces is not None:
                self._restart_states(settings)
            if steer.forces is not None:
                self.mover.set_hand_forces(steer.forces)
        elif steer.forces is not None:
            raise InputError(NO_HAND)

    def _restart_states(self, settings: Settings) -> None:
        """Begin to yield states under these settings, from the present positions.

        ``state`` becomes the first state, and the energy unknown.  Layouts of a method
        that is no game are followed by a fit of landmarks.
        """
        self._settings, self._energy, mover = settings, math.nan, self.mover
        if isinstance(mover, Game):
            self.states = mover.apply_and_play(settings)
        else:
            self.states = _yield_with_landmark_fit(
                mover, self._problem, settings.n_landmarks
            )
        self.state = next(self.states)

    def move_points(self, max_iterations: float) -> None:
        """Move the points until the frame's time is over, ``max_iterations`` at most.

        At least one iteration is done, unless no states are left.
        """
        begun, end = self.state.iteration, time.perf_counter() + self._frame_seconds
        with use_one_torch_thread():
            for state in self.states:
                self.state = state
                is_full = state.iteration - begun >= max_iterations
                if is_full or time.perf_counter() >= end:
                    return

    def take_snapshot(self, is_complete: bool) -> Snapshot:
        """Return a snapshot of the present state, with copied arrays.

        ``is_complete``: whether its diagnostics must be complete.  If diagnostics are
        not computed while points move, the next frames become longer, up to 2 s, where
        snapshots take more than 2 % of the time.
        """
        begun = time.perf_counter()
        snapshot = self._make_snapshot(is_complete)
        if not self._diagnose:
            taken = time.perf_counter() - begun
            seconds = min(taken / SHARE_UNWATCHED, LONGEST_UNWATCHED)
            self._frame_seconds = max(FRAME_SECONDS, seconds)
        return snapshot

    def _make_snapshot(self, is_complete: bool) -> Snapshot:
        """Return a snapshot, after updating diagnostics and energy if these are due.

        They are due at the end, if ``is_complete``, and as :meth:`_is_diagnosis_due`
        and :attr:`_is_energy_due` say; else the last ones are repeated.  Raises
        InputError for positions beyond the largest coordinate.
        """
        state, seen = self.state, self._diagnostics
        embedding = self._to_data_order(self._copy_positions(state.y))
        landmarks = (
            embedding[self._member_rows]
            if state.z is None
            else self._copy_positions(state.z)
        )
        is_finished = state.z is not None and state.iteration == state.n_iter
        is_at_rest = is_finished or is_complete
        is_diagnosed = is_at_rest or self._is_diagnosis_due(len(landmarks))
        if is_diagnosed:
            self._update_diagnostics_and_alarm(
                embedding, landmarks, is_finished, is_at_rest
            )
        if is_diagnosed or self._is_energy_due:
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
        """Return whether labels name removed landmarks, or it is time for diagnostics.

        The time counts only if diagnostics are computed while points move.
        """
        are_outdated = int(self._diagnostics["labels"].max()) >= n_landmarks
        is_time = self._diagnose and time.perf_counter() >= self._next_look
        return are_outdated or is_time

    @property
    def _is_energy_due(self) -> bool:
        """Whether the next snapshot computes its energy.

        It does so if diagnostics are computed while points move, and there are at most
        50,000 points or no energy is known.
        """
        is_quick = len(self.state.y) <= ALWAYS_MEASURED
        return self._diagnose and (is_quick or math.isnan(self._energy))

    def _to_data_order(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return ``rows``, one for each of the mover's points, in the data's order."""
        order = self._problem.memory_rows
        return rows if order is None else rows[order]

    def _copy_positions(self, tensor: Tensor) -> NDArray[np.float32]:
        """Return positions as a float32 copy; raise InputError if they are too large.

        Too large are NaN, and coordinates beyond ``MAX_DISTANCE`` in a game or beyond
        float32 in other methods.
        """
        copied = np.array(tensor_to_array(tensor), np.float32, order="C")
        is_game = isinstance(self.mover, Game)
        if not (np.abs(copied) <= (MAX_DISTANCE if is_game else _MAX_FLOAT)).all():
            raise make_runaway_error()
        return copied

    def _update_diagnostics_and_alarm(
        self,
        embedding: NDArray[np.float32],
        landmarks: NDArray[np.float32],
        is_finished: bool,
        is_at_rest: bool,
    ) -> None:
        """Update labels, pressure, neighbours, stretch and the alarm of this state.

        Labels and pressure need an objective; neighbours and stretch need the data's
        nearest rows.  The alarm is of a game, or of a finished map.  The next update is
        set so late that updates take at most a quarter of the time.
        """
        begun, seen = time.perf_counter(), self._diagnostics
        state, mover, d = self.state, self.mover, self._problem.n_components
        if mover.objective is not None:
            z = state.y[self._member_rows] if state.z is None else state.z
            device = mover.objective.forces.device  # layouts: the processor
            y, z = state.y.to(device), z.to(device)
            labels, heights = compute_labels_and_pressure(
                mover.objective, y, z, is_at_rest
            )
            seen["labels"], seen["pressure"] = map(
                self._to_data_order, (labels, heights)
            )
        if (nearest := self._edges.nearest) is not None:
            seen["neighbors"] = nearest
            seen["stretch"] = compute_stretch(nearest, embedding)
        is_game = isinstance(mover, Game)
        if is_game or is_finished:
            held = landmarks[:, :d] if is_game and is_finished else None
            left = state.n_iter - state.iteration
            self._alarm = find_alarm(embedding[:, :d], self._settings, held, left)
        now = time.perf_counter()
        self._next_look = now + (now - begun) / SHARE_OF_TIME


def _yield_with_landmark_fit(
    layouts: Layouts, problem: Problem, n_landmarks: int
) -> Iterator[State]:
    """Yield the layouts, then states in which landmarks are fitted to fixed points.

    The fit takes 100 iterations, which are added to ``n_iter`` where it is known; its
    states have the energy and the warning of the last layout.
    """
    for state in layouts.states:
        yield replace(state, n_iter=state.n_iter + FITTING if state.n_iter else 0)
    positions, energy = tensor_to_array(state.y), layouts.energy(state)
    still = Settings(n_landmarks=n_landmarks, learning_rate=0.0, max_iter=FITTING)
    game = Game(
        replace(problem, layout=positions, warm_start=None, iteration=state.iteration)
    )
    for fitted in islice(game.apply_and_play(still), 1, None):
        yield replace(fitted, energy=energy, warning=state.warning)
