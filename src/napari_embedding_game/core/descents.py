"""Minimisers in the place of the game: the points go downhill over all pairs.

==================  ==========================================================
spectral_direction  by the curvature of the attraction, see :mod:`minimizers`
lbfgs               by the steps of the past, see :mod:`minimizers`
homotopy            from a weak repulsion to the whole, see :mod:`homotopy`
pressured_points    the spectral direction to its end, then a way out for points
                    that are stuck there (paper 4's "PP from SD")
==================  ==========================================================

They know no landmarks: some of the points stand for them on the way, and on the
finished map landmarks settle, see :mod:`settling`.  All of it is computed by the
processor.  A step costs N^2, so there is a limit to N.

``pressured_points`` goes back to the end of the spectral direction where it has
found nothing lower, so that it never ends above it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property, partial
from itertools import islice
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from napari_embedding_game.core.affinities import Edges
from napari_embedding_game.core.collapse import collapse_warning, far_warning
from napari_embedding_game.core.compatibility import NO_CHANGE, choose
from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.family import check_numbers, strength_of
from napari_embedding_game.core.forces import CompiledForces
from napari_embedding_game.core.frames import FRAME_SECONDS, Diagnosis
from napari_embedding_game.core.homotopy import N_STEPS, WEAKEST, homotopy
from napari_embedding_game.core.minimizers import (
    MAX_ITER,
    Step,
    lbfgs,
    spectral_direction,
)
from napari_embedding_game.core.names import OptimizerName
from napari_embedding_game.core.objective import AllPairs, Objective
from napari_embedding_game.core.optimizer import resolve_schedule
from napari_embedding_game.core.pressure import pressure
from napari_embedding_game.core.pressured_points import pressured_points
from napari_embedding_game.core.settling import (
    Frame,
    FrameIterations,
    Game,
    Play,
    draw_members,
    in_the_plane,
    moving,
    settle,
)
from napari_embedding_game.core.spectral import SpectralDirection
from napari_embedding_game.core.threads import one_torch_thread
from napari_embedding_game.core.types import GameSettings, Snapshot, undefined

MOST_POINTS: dict[OptimizerName, int] = {
    "spectral_direction": 10_000,
    "lbfgs": 20_000,
    "homotopy": 10_000,
    "pressured_points": 10_000,
}
"""Largest maps.  With digits of MNIST a step takes 1 s on one slow core, and factoring
the Laplacian for the spectral direction 13 s, which cannot be stopped
(``python benchmarks/descents.py``)."""


def check_size(optimizer: OptimizerName, n_points: int, n_components: int) -> None:
    """Raise InputError for a map that is too large or too flat for the optimiser."""
    most = MOST_POINTS[optimizer]
    if n_points > most:
        raise InputError(
            f"The optimizer {optimizer} goes through all pairs of points, which "
            f"takes too long for {n_points:,} of them: choose the optimizer "
            f"game, the game's own steps, or embed at most {most:,} rows."
        )
    if optimizer == "homotopy" and n_components == 1:
        raise InputError(
            "The optimizer homotopy needs a map of 2 or 3 dimensions, as it "
            "shakes the points off a line: choose one of the others."
        )


def play_descent(
    play: Play,
    edges: Edges,
    layout: NDArray[np.floating],
    settings: GameSettings,
    *,
    diagnose: bool = True,
    frame_iterations: FrameIterations = None,
    **driving: Any,
) -> Game:
    """Let a minimiser move the points, then let landmarks settle; yield snapshots.

    Takes the place of :func:`~.game.play`, and takes what that does; ``play`` and
    ``driving`` play the landmarks.  Sent settings act from the present points on;
    a homotopy goes on from the lambda that it has reached.

    Raises
    ------
    InputError
        A setting is out of range, the points are too many for all pairs, the method
        does not take the optimiser, or settings are sent that ask for the game.
    """
    descent = _Descent(edges, layout, settings, driving)
    steer = yield descent.snapshot(diagnose)
    while True:
        if steer is not None:
            descent.take_up(steer)
            steer = None
        while steer is None and descent.advance(frame_iterations):
            steer = yield descent.snapshot(diagnose)
        settled = descent.settle(play, diagnose, frame_iterations)
        while steer is None:
            snapshot = next(settled, None)
            if snapshot is None:
                return
            steer = yield snapshot


class _Descent:
    """Points on their way down, under settings that may change."""

    def __init__(
        self,
        edges: Edges,
        layout: NDArray[np.floating],
        settings: GameSettings,
        driving: dict[str, Any],
    ) -> None:
        self._edges = edges
        self._driving = driving
        self._n_components = layout.shape[1]
        self._y = np.array(in_the_plane(layout), edges.weights.dtype, order="C")
        self._iteration = 0
        self._reached = 0.0
        self._settings = settings
        self._pressure = undefined(len(layout))
        self._diagnosis = Diagnosis()
        self.take_up(settings)

    # --- Settings

    def take_up(self, settings: GameSettings) -> None:
        """Go on from the present points under these settings."""
        self._check(settings)
        method, _ = choose(settings.method, settings.approximation, settings.optimizer)
        forces = CompiledForces(
            self._edges, self._driving["n_jobs"], method.attraction, method.kernel
        )
        repulsion = method.unit(self._edges) * strength_of(settings)
        self._objective = Objective(AllPairs(forces), repulsion, method.aggregate)
        self._members = draw_members(
            len(self._y), settings.n_landmarks, self._driving["random_state"]
        )
        former = self._settings.method, self._settings.optimizer
        if former != (settings.method, settings.optimizer):
            self._reached = 0.0
        self._settings = settings
        self._energy: float | None = None
        # The first step is where the points already are.
        self._steps = islice(_DESCENTS[settings.optimizer](self), 1, self._most + 1)

    def _check(self, settings: GameSettings) -> None:
        if settings.optimizer == "game":
            raise InputError(NO_CHANGE)
        self._schedule = resolve_schedule(settings)
        check_numbers(settings)
        check_size(settings.optimizer, len(self._y), self._n_components)

    @property
    def _most(self) -> int:
        """Most steps; each minimisation of a homotopy has its own limit."""
        most = self._settings.max_iter
        if most is None:
            return MAX_ITER * (N_STEPS if self._settings.optimizer == "homotopy" else 1)
        return most

    # --- The ways down

    @cached_property
    def _direct(self) -> SpectralDirection:
        """Factored once, also for what is steered."""
        return SpectralDirection(self._edges)

    def _spectral_direction(self) -> Iterator[Step]:
        yield from spectral_direction(
            self._objective, self._y, max_iter=self._most, direct=self._direct
        )

    def _lbfgs(self) -> Iterator[Step]:
        yield from lbfgs(self._objective, self._y, max_iter=self._most)

    def _homotopy(self) -> Iterator[Step]:
        whole = self._objective.repulsion
        weakest = min(1.0, max(WEAKEST, self._reached / whole))
        n_steps = max(1, round(N_STEPS * math.log(weakest) / math.log(WEAKEST)))
        # Another one, whose lambda grows: the energy that is told is the whole's.
        growing = Objective(self._objective.pairs, whole, self._objective.aggregate)
        steps = homotopy(
            growing,
            self._y,
            n_steps=n_steps,
            weakest=weakest,
            minimizer=partial(spectral_direction, direct=self._direct),
        )
        for step in steps:
            self._reached = step.repulsion
            is_whole = step.repulsion == whole
            yield Step(step.iteration, step.y, step.energy if is_whole else math.nan)

    def _pressured_points(self) -> Iterator[Step]:
        stuck = Step(0, self._y, math.inf)
        for stuck in self._spectral_direction():
            yield stuck
        # One step is left, to go back.
        left = self._most - stuck.iteration - 1
        found = pressured_points(
            self._objective, stuck.y, max_iter=left, direct=self._direct
        )
        energy = stuck.energy
        for step in islice(found, 1, None):
            energy = step.energy
            yield Step(step.iteration, step.y, energy)
        if energy > stuck.energy:
            yield stuck

    # --- Play

    def advance(self, most: FrameIterations) -> bool:
        """Take steps for a frame; return whether there was one to take."""
        end = time.perf_counter() + FRAME_SECONDS
        begun = self._iteration
        n_steps = most(begun) if callable(most) else most
        with one_torch_thread():
            for step in self._steps:
                self._y, self._energy = step.y, step.energy
                self._iteration += 1
                is_enough = self._iteration - begun == n_steps
                if is_enough or time.perf_counter() >= end:
                    break
        return self._iteration > begun

    def settle(
        self, play: Play, diagnose: bool, most: FrameIterations
    ) -> Iterator[Snapshot]:
        """Let landmarks settle on the points, under the game's own settings."""
        self._look()
        positions, energy = self._positions(), self._whole_energy()
        frame = Frame(self._iteration, self._iteration, positions)
        warning = far_warning(positions) or collapse_warning(
            positions,
            self._settings,
            self._schedule.learning_rate,
            self._schedule.landmark_learning_rate,
        )
        settled = settle(
            play,
            self._edges,
            frame,
            GameSettings(n_landmarks=self._settings.n_landmarks),
            diagnose=diagnose,
            frame_iterations=most,
            **self._driving,
        )
        for snapshot in settled:
            self._iteration = snapshot.iteration
            yield replace(
                snapshot, energy=energy, pressure=self._pressure, warning=warning
            )

    # --- What is seen of it

    def snapshot(self, diagnose: bool) -> Snapshot:
        """Return where the points are; nobody knows when they will arrive."""
        frame = Frame(self._iteration, 0, self._positions())
        if diagnose:
            self._diagnosis(self._look)
        energy = self._whole_energy() if diagnose else math.nan
        return moving(frame, self._members, energy, self._pressure)

    def _positions(self) -> NDArray[np.float32]:
        if not np.isfinite(self._y).all():
            raise InputError(
                "The points have run off the map: raise the repulsion, or choose "
                "another optimizer."
            )
        return np.array(self._y[:, : self._n_components], np.float32, order="C")

    def _whole_energy(self) -> float:
        """Return the energy under the whole repulsion, worked out if not known."""
        if self._energy is None or math.isnan(self._energy):
            y = torch.from_numpy(self._y)
            self._energy, _, _ = self._objective.evaluate(y, y[:1], True)
        return self._energy

    def _look(self) -> None:
        y = torch.from_numpy(self._y)
        _, self._pressure = pressure(self._objective, y, y[:1])


_DESCENTS: dict[OptimizerName, Callable[[_Descent], Iterator[Step]]] = {
    "spectral_direction": _Descent._spectral_direction,
    "lbfgs": _Descent._lbfgs,
    "homotopy": _Descent._homotopy,
    "pressured_points": _Descent._pressured_points,
}
