"""The method "given": a map of another program, centred and scaled, whose points stay.

The map gets the scale at which the game's energy is lowest, so that a game can continue
from it.  Landmarks are fitted to the map as to any finished map, so that clusters and
stretch are defined.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from napari_embedding_game.core.dynamics.state import Layouts, Problem, State
from napari_embedding_game.core.energy.forces import CompiledForces
from napari_embedding_game.core.energy.methods import get_method
from napari_embedding_game.core.energy.objective import make_objective
from napari_embedding_game.core.settings import Settings

_SOURCES = 200
"""Random points that stand for all points in the repulsion."""
_ROOM = math.log(1e3)
"""Largest log factor between the scale and that of a map of unit area per point."""


def make_layouts(problem: Problem, settings: Settings) -> Layouts:
    """Return layouts with one state: the problem's layout, centred and scaled.

    The state has the energy of :func:`scale_to_lowest_energy`.
    """
    y, energy = scale_to_lowest_energy(problem)
    moved = torch.from_numpy(y).to(problem.device)
    return Layouts(iter([State(0, 0, moved, energy=energy)]))


def scale_to_lowest_energy(problem: Problem) -> tuple[NDArray[np.floating], float]:
    """Return the layout (N, d), centred, at the scale of the game's least energy.

    The second result is that energy. 200 random points stand for all in the repulsion;
    scales up to 1,000 times smaller or larger than one unit of area per point are
    searched.
    """
    method, edges = get_method("game"), problem.edges
    y = np.ascontiguousarray(problem.layout, edges.weights.dtype)
    y, n = y - y.mean(axis=0), len(y)
    forces = CompiledForces(edges, method.attraction, method.kernel)
    repulsion = method.repulsion * method.lambda_scale(edges)
    objective = make_objective("landmarks", forces, repulsion, min(_SOURCES, n))
    sampled = np.random.default_rng(problem.random_state).permutation(n)[:_SOURCES]

    def energy_at_scale(logarithm: float) -> float:
        points = torch.from_numpy(y * y.dtype.type(math.exp(logarithm)))
        return objective.energy(points, points[torch.from_numpy(sampled)])

    width = float(np.sqrt((y**2).sum(axis=1).mean()))
    middle, options = math.log(math.sqrt(n) / width), {"xatol": 0.01}
    bounds = middle - _ROOM, middle + _ROOM
    minimum = minimize_scalar(
        energy_at_scale, bounds=bounds, method="bounded", options=options
    )
    return y * y.dtype.type(math.exp(minimum.x)), float(minimum.fun)
