"""The compiled loops over pairs: nanoseconds a pair, for every kernel, on one core.

Points on a random walk; nothing depends on data.  *numpy* is a plain expression
for the same sum of 1 / (1 + s), in blocks that stay in the cache: what one would write
without compiled loops.  Pressure and attraction are in milliseconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from scipy import sparse

from napari_embedding_game.core.energy.forces import CompiledForces
from napari_embedding_game.core.energy.methods import METHODS
from napari_embedding_game.core.energy.objective import make_objective
from napari_embedding_game.core.energy.pressure import compute_labels_and_pressure
from napari_embedding_game.core.graph.edges import Edges
from shared import QUICK_ROWS, arguments, report

N_POINTS, N_LANDMARKS, N_ALL_PAIRS = 70_000, 200, 4_000
COMPARED = ("game", "ee", "two_kernel_pca", "umap", "umap_exact")


def problem(n_points: int) -> tuple[Edges, torch.Tensor]:
    """Return edges to 15 random points near by, and points on a random walk."""
    rng = np.random.default_rng(0)
    heads = np.repeat(np.arange(n_points), 15)
    tails = (heads + rng.integers(-50, 50, len(heads))) % n_points
    ones = np.ones(len(heads), np.float32)
    matrix = sparse.coo_matrix((ones, (heads, tails)), (n_points, n_points)).tocsr()
    steps = 0.1 * rng.normal(size=(n_points, 2))
    y = torch.tensor(np.cumsum(steps, axis=0).astype(np.float32))
    return Edges.from_symmetric_matrix(matrix + matrix.T), y


def quickest(work: Callable[[], Any], repeats: int) -> float:
    """Return the seconds of the quickest repeat; what is compiled does not count."""
    work()
    seconds = []
    for _ in range(repeats):
        begin = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - begin)
    return min(seconds)


def in_numpy(y: np.ndarray, z: np.ndarray) -> float:
    """Return the sum of 1 / (1 + |y - z|^2) over all pairs."""
    total = 0.0
    for block in np.array_split(y, max(1, len(y) // 500)):
        apart = block[:, None] - z
        total += float((1 / (1 + (apart * apart).sum(axis=2))).sum())
    return total


def row(
    name: str, edges: Edges, y: torch.Tensor, n_all: int, repeats: int
) -> dict[str, Any]:
    """Return the figures of one method."""
    member = METHODS[name]
    z = y[:: max(1, len(y) // N_LANDMARKS)][:N_LANDMARKS].clone()
    few = edges.to_csr_matrix()[:n_all][:, :n_all]
    functions = member.attraction, member.kernel
    forces = CompiledForces(edges, *functions)
    among_few = CompiledForces(Edges.from_symmetric_matrix(few), *functions)
    found: dict[str, Any] = {"method": name}
    attract = quickest(lambda: forces.attraction_gradient(y), repeats)
    found["attraction, ms"] = 1e3 * attract
    for approximation in ("landmarks", "sampled_edges"):
        if approximation not in member.approximations:
            found[f"{approximation}, ns"] = found[f"pressure, {approximation}"] = ""
            continue
        repulsion = member.lambda_scale(edges) * member.repulsion
        objective = make_objective(
            approximation, forces, repulsion, N_LANDMARKS, 0, member.aggregate
        )
        if approximation == "landmarks":
            taken = quickest(lambda: forces.kernel_sum_and_gradients(y, z), repeats)
        else:
            taken = quickest(lambda o=objective: o.approximate_repulsion(y), repeats)
        n_pairs = len(y) * N_LANDMARKS
        found[f"{approximation}, ns"] = 1e9 * taken / n_pairs
        pressed = quickest(
            lambda o=objective: compute_labels_and_pressure(o, y, z), repeats
        )
        found[f"pressure, {approximation}"] = 1e3 * pressed
    taken = quickest(
        lambda: among_few.repulsion_of_all_pairs(y[:n_all].contiguous()), repeats
    )
    found["all pairs, ns"] = 2e9 * taken / n_all**2
    return found


def main() -> None:
    """Print the table."""
    args = arguments(__doc__, repeats=5)
    n_points = QUICK_ROWS if args.quick else N_POINTS
    edges, y = problem(n_points)
    n_all = min(N_ALL_PAIRS, n_points)
    rows = [row(name, edges, y, n_all, args.repeats) for name in COMPARED]
    points = y.numpy()
    landmarks = points[:: max(1, n_points // N_LANDMARKS)][:N_LANDMARKS]
    taken = quickest(lambda: in_numpy(points, landmarks), args.repeats)
    rows.append({"method": "numpy", "landmarks, ns": 1e9 * taken / points.shape[0]})
    rows[-1]["landmarks, ns"] /= len(landmarks)
    rows[-1] = {key: rows[-1].get(key, "") for key in rows[0]}
    report(f"Pairs, {n_points:,} points, L = {N_LANDMARKS}, one core", rows, args)


if __name__ == "__main__":
    main()
