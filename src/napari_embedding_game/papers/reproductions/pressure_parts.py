"""What the reproductions of paper 4 share: its objectives, runs and labels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import hypergeom

from napari_embedding_game.core.energy.objective import AllPairs, Objective
from napari_embedding_game.core.energy.pair_sums import make_forces
from napari_embedding_game.core.graph.affinities import edges
from napari_embedding_game.core.graph.neighbors import knn_graph
from napari_embedding_game.core.settings import n_searched
from napari_embedding_game.papers.homotopy import HomotopyStep
from napari_embedding_game.papers.minimizers import Step, spectral_direction
from napari_embedding_game.papers.pressured_points import (
    PressuredStep,
    pressured_points,
)
from napari_embedding_game.papers.spectral_direction import SpectralDirection

Points = NDArray[Any]
Mask = NDArray[np.bool_]

EE_LAMBDA = 200.0
"""Paper 4's."""
_FAR = 1e6
"""Mean weight of EE's repelling pairs: large, so that in float32 the products of
weights and far kernels stay normal numbers, which are quicker."""


def objective_of(
    X: Points, method: str, perplexity: float, dtype: type = np.float32
) -> Objective:
    """Return paper 4's EE or s-SNE, in its unit.

    The attracting weights w+ are entropic affinities that sum to 1, so that
    :class:`Edges`, whose energy is half the sum, hold 2 w+.  EE's w- are squared
    distances that sum to 1 too, with lambda = 200.
    """
    n = len(X)
    graph = knn_graph(X, n_searched("entropic", 0, perplexity, n))
    found = edges(graph, "entropic", perplexity=min(perplexity, graph.n_neighbors / 3))
    weights = found.weights.astype(np.float64)
    found = replace(found, weights=(2 * weights / weights.sum()).astype(dtype))
    forces = make_forces(found, torch.device("cpu"), None, "quadratic", "gaussian")
    if method == "ssne":
        return Objective(AllPairs(forces), 1.0, "log")
    far = squared_distances(X)
    far *= _FAR / far.mean()
    return Objective(AllPairs(forces, far.astype(dtype)), EE_LAMBDA / (_FAR * n * n))


def squared_distances(X: Points) -> Points:
    """Return all (N, N) squared distances, exactly 0 between a row and itself."""
    from sklearn.metrics.pairwise import euclidean_distances

    # Not float32 rows: their differences would be lost in their lengths.
    found: Points = euclidean_distances(np.asarray(X, np.float64), squared=True)
    return found


def random_start(n_points: int, seed: int) -> Points:
    """Return a small random map, (N, 2)."""
    return 0.1 * np.random.default_rng(seed).normal(size=(n_points, 2))


@dataclass(frozen=True, slots=True)
class Run:
    """A minimisation that has ended."""

    y: Points
    energies: Points
    """Of the map, after each iteration."""
    mu: Points
    """Of each iteration; empty where there are no heights."""
    pressured: Points
    """Share of points off the map, of each iteration; empty likewise."""

    @property
    def energy(self) -> float:
        """At the end."""
        return float(self.energies[-1])

    def plain(self) -> dict[str, Any]:
        """Return it as a part that can be kept."""
        return {
            "y": self.y.astype(np.float32),
            "energies": self.energies,
            "mu": self.mu,
            "pressured": self.pressured,
        }


def ended(steps: Iterable[Step | PressuredStep | HomotopyStep]) -> Run:
    """Follow a minimiser to its end."""
    energies, mu, pressured = [], [], []
    for step in steps:
        energies.append(step.energy)
        if isinstance(step, PressuredStep):
            mu.append(step.mu)
            pressured.append(np.count_nonzero(step.heights) / len(step.heights))
    return Run(step.y, *map(np.array, (energies, mu, pressured)))


def compare(
    objective: Objective,
    start: Points,
    max_iter: int,
    from_random: bool = True,
    direct: SpectralDirection | None = None,
) -> dict[str, Any]:
    """Run SD, PP from where SD ended and, if asked, PP from the start too.

    ``direct``: the spectral direction for the objective's edges, if it is known.
    """
    direct = direct or SpectralDirection(objective.forces.edges)
    minimize = partial(spectral_direction, max_iter=max_iter, direct=direct)
    by_pressure = partial(pressured_points, max_iter=max_iter, direct=direct)
    sd = ended(minimize(objective, start))
    after = ended(by_pressure(objective, sd.y))
    found = {"SD": sd.plain(), "PP from SD": after.plain()}
    if from_random:
        instead = ended(by_pressure(objective, start))
        found["PP from random"] = instead.plain()
    return found


def last(part: dict[str, Any], which: str) -> float:
    """Return the energy at the end of a run in a part of :func:`compare`."""
    return float(part[which]["energies"][-1])


# --- What lies in the wrong place -------------------------------------------------


def nearest_on_map(y: Points, n_neighbors: int) -> NDArray[np.intp]:
    """Return the (N, k) nearest other points on the map."""
    return knn_graph(np.asarray(y, np.float32), n_neighbors).indices.astype(np.intp)


def among_others(y: Points, labels: Points, n_neighbors: int = 10) -> Mask:
    """Say which points have another label than most of their neighbours."""
    around = labels[nearest_on_map(y, n_neighbors)]
    same = (around == labels[:, None]).mean(axis=1)
    wrong: Mask = same < 0.5
    return wrong


def recall(heights: Points, wrong: Mask) -> dict[str, Any]:
    """Say how well pressure finds the points that are ``wrong``.

    As many points as are wrong are taken, those of the highest pressure; their
    chance to be wrong is the share of wrong points among all.
    """
    n, m = len(wrong), int(wrong.sum())
    pressured = heights > 0
    order = np.argsort(-heights, kind="stable")[:m]
    hits = int((wrong[order] & pressured[order]).sum())
    return {
        "points": n,
        "in the wrong place": m,
        "recall by the highest pressure": hits / max(m, 1),
        "chance": m / n,
        "probability by chance": float(hypergeom.sf(hits - 1, n, m, m)),
        "pressured among them": float(pressured[wrong].mean()) if m else 0.0,
        "pressured among the others": float(pressured[~wrong].mean()),
    }
