"""A map made by another program, shown as it is, at the scale of the game.

Its points do not move.  Landmarks are fitted to it as to any finished map, so clusters
and stretch are defined, and a game can continue from it: it is centred, and scaled to
where the game's energy is lowest.
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
"""Random points that represent all in the repulsion."""
_ROOM = math.log(1e3)
"""How far the scale may be from that of a map in which each point has unit area."""


def layouts(problem: Problem, settings: Settings) -> Layouts:
    """Return the layout of the problem as the only one, scaled and centred."""
    y, energy = scaled(problem)
    moved = torch.from_numpy(y).to(problem.device)
    return Layouts(iter([State(0, 0, moved, energy=energy)]))


def scaled(problem: Problem) -> tuple[NDArray[np.floating], float]:
    """Return the layout (N, d) at the scale of the least energy of the game, and it."""
    method, edges = get_method("game"), problem.edges
    y = np.ascontiguousarray(problem.layout, edges.weights.dtype)
    y, n = y - y.mean(axis=0), len(y)
    forces = CompiledForces(edges, method.attraction, method.kernel)
    repulsion = method.repulsion * method.lambda_scale(edges)
    objective = make_objective("landmarks", forces, repulsion, min(_SOURCES, n))
    drawn = np.random.default_rng(problem.random_state).permutation(n)[:_SOURCES]

    def energy(logarithm: float) -> float:
        points = torch.from_numpy(y * y.dtype.type(math.exp(logarithm)))
        return objective.energy(points, points[torch.from_numpy(drawn)])

    width = float(np.sqrt((y**2).sum(axis=1).mean()))
    middle, options = math.log(math.sqrt(n) / width), {"xatol": 0.01}
    bounds = middle - _ROOM, middle + _ROOM
    minimum = minimize_scalar(energy, bounds=bounds, method="bounded", options=options)
    return y * y.dtype.type(math.exp(minimum.x)), float(minimum.fun)
