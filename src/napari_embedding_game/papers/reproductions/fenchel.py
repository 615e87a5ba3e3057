"""Reproduce paper 2: linear maps of digits, eigenmaps of a roll, descent as a game."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import combinations, product
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse.csgraph import connected_components
from scipy.spatial import procrustes
from scipy.stats import spearmanr

from napari_embedding_game.core.graph.choices import STARTS
from napari_embedding_game.core.graph.neighbors import knn_graph
from napari_embedding_game.papers import eigenmaps
from napari_embedding_game.papers.learners import (
    best_response,
    convergence_bound,
    mirror_descent,
    play_rounds,
)

from .frame import CachedRunner, Check, Result
from .inputs import Inputs
from .metrics import neighbor_recall
from .runs import Map, Vector, make_swiss_roll

# --- Figures 1 and 2: linear maps -------------------------------------------------

NEIGHBORS = 10
"""Number of neighbours t of the t-similarity score."""
SIZES = (2, 3, 6, 12, 23, 43, 80, 149, 276, 512)
PAPER = {
    "pca": (
        0.0825, 0.14675, 0.36865, 0.55215, 0.6997, 0.8116, 0.8911, 0.9478, 0.98125,
        0.9991,
    ),
    "random_projection": (
        0.0246, 0.055, 0.1097, 0.23895, 0.3765, 0.5263, 0.63805, 0.72025, 0.7943, 0.847,
    ),
    "gradient_pca": (
        0.08315, 0.1451, 0.3672, 0.5395, 0.69245, 0.7848, 0.84355, 0.88335, 0.91955,
        0.9631,
    ),
}  # fmt: skip
"""Values of the table of Figure 2, by method, for ``SIZES``."""
TOLERANCE = {"pca": 0.015, "random_projection": 0.03, "gradient_pca": 0.03}


def compare_linear_maps(inputs: Inputs, run_cached: CachedRunner) -> Result:
    """Compare the neighbours that three linear maps keep with the paper's table.

    The paper does not say how its rows were sampled, so that each draw samples other
    rows. Random projection samples normal directions; orthonormal directions would keep
    0.91 at k = 512.
    """
    n_rows, n_draws, n_sizes = (300, 2, 4) if inputs.quick else (2000, 5, len(SIZES))
    digits = inputs.load("mnist").X

    def scores(draw: int, k: int) -> dict[str, float]:
        """Return the neighbours that each map keeps of a draw, for ``k`` dimensions."""
        seed = inputs.random_state + draw
        rng = np.random.default_rng(seed)
        X = digits[rng.choice(len(digits), min(n_rows, len(digits)), replace=False)]
        neighbors = knn_graph(X, NEIGHBORS).indices
        maps = {name: STARTS[name].compute(X, k, NEIGHBORS, seed) for name in PAPER}
        return {name: neighbor_recall(neighbors, y) for name, y in maps.items()}

    results = run_cached(scores, product(range(n_draws), SIZES[:n_sizes]))
    recalls = pd.DataFrame(results).T.groupby(level=1)
    mean, least, most = recalls.mean(), recalls.min(), recalls.max()
    paper = pd.DataFrame(PAPER, index=SIZES)[:n_sizes]
    gaps = (mean - paper).abs().max()
    ends = least.map("{:.4f}".format) + most.map(" to {:.4f}".format)
    columns: dict[str, Any] = {}
    for name in PAPER:
        columns |= {f"{name}, paper": paper[name], name: mean[name]}
        columns[f"{name}, range"] = ends[name]
    title = f"Share of the {NEIGHBORS} nearest neighbours kept"
    more = f"{n_rows:,} digits, mean of {n_draws} draws (least to most)"
    return Result(
        {f"{title}, {more}": pd.DataFrame(columns).rename_axis("k")},
        [
            Check(f"{name}: farthest from the paper, over all k", gaps[name], "<=", far)
            for name, far in TOLERANCE.items()
        ],
        {title: mean.join(paper.add_suffix(", paper"))},
    )


# --- Figures 3 to 6, Remark 4.2: eigenmaps of a roll ------------------------------

WEIGHTS = {
    "LE": eigenmaps.heat_weights,
    "ALE": eigenmaps.averaged_heat_weights,
    "VRLE": eigenmaps.variable_radius_weights,
}
TS = (5, 7, 10, 14, 20, 28, 40, 56, 80)


def unroll_and_measure(
    X: Vector, sheet: Vector, seed: int, name: str, t: int
) -> dict[str, Any]:
    """Compute the eigenmap ``name`` of a roll for ``t`` neighbours, and measure it.

    ``X`` (N, 3): the roll; ``sheet`` (N, 2): the positions on the unrolled sheet.

    Returns the number of the graph's components, the two measures of
    :func:`compare_roll_eigenmaps`, the layout (N, 2), and as labels (N,) the positions
    along the roll.
    """
    weights = WEIGHTS[name](X, t)
    layout = eigenmaps.eigenmap(weights, X, 2, seed)
    order = [abs(spearmanr(column, sheet[:, 0]).statistic) for column in layout.T]
    return {
        "parts of the graph": int(connected_components(weights)[0]),
        "neighbours kept": neighbor_recall(knn_graph(sheet, 15).indices, layout),
        "order along the roll": max(order),
        "layout": layout.astype(np.float32),
        "labels": sheet[:, 0],
    }


def mean_procrustes_distance(layouts: Sequence[Map]) -> float:
    """Return the mean Procrustes distance over all pairs of maps, 0 (same) to 1.

    It is 0 for fewer than two maps.
    """
    pairs = [procrustes(a, b)[2] for a, b in combinations(layouts, 2)]
    return float(np.mean(pairs)) if pairs else 0.0


def compare_roll_eigenmaps(inputs: Inputs, run_cached: CachedRunner) -> Result:
    """Compare eigenmaps of a roll by LE, ALE and VRLE for several t.

    Sensitivity: mean Procrustes distance between the maps for all pairs of t (0: the
    same up to size, rotation and reflection; 1: nothing in common). Neighbours kept:
    share of the 15 nearest on the unrolled sheet. Order along the roll: Spearman's
    correlation of the better of the two coordinates with the length along the roll.
    """
    n_points, ts = (300, TS[:5]) if inputs.quick else (2000, TS)
    seed = inputs.random_state
    unrolled = partial(unroll_and_measure, *make_swiss_roll(n_points, seed), seed)
    maps = pd.DataFrame(run_cached(unrolled, product(WEIGHTS, ts))).T
    maps = maps.rename_axis(["method", "t"])
    rows = {}
    for name in WEIGHTS:
        runs = maps.loc[name]
        whole = runs[runs["parts of the graph"] == 1]
        rows[name] = {
            "sensitivity to t": mean_procrustes_distance(runs["layout"]),
            "where the graph is whole": mean_procrustes_distance(whole["layout"]),
            "t with a whole graph": f"{len(whole)} of {len(ts)}",
            "most parts": runs["parts of the graph"].max(),
        }
    summary = pd.DataFrame.from_dict(rows, "index").rename_axis("method")
    sensitive = summary["sensitivity to t"]
    asked = "Remark 4.2: sensitivity to t of {}, against LE's"
    measures = ("neighbours kept", "order along the roll")
    return Result(
        {
            "Over all t": summary,
            "For each number of neighbours t": maps.drop(columns=["layout", "labels"]),
        },
        [
            Check(asked.format(name), sensitive[name], ">", sensitive["LE"])
            for name in ("ALE", "VRLE")
        ],
        {measure: maps[measure].unstack(level=0).astype(float) for measure in measures},
    )


# --- Theorem 6.20 and Lemma 6.22: descent as a game -------------------------------

_SHAPE = (60, 20)


def make_convex_problems(seed: int) -> dict[str, tuple[Any, ...]]:
    """Return two random convex functions f by name, with a random minimum w*.

    Each is a tuple of f, its gradient, the best response to x (the y that maximises
    <x, y> - f*(y)), w*, and G, the largest norm of a gradient.  "absolute", the mean of
    |A w - b| with b = A w*, is not smooth; "quadratic", (w - w*) Q (w - w*) / 2, has
    the conjugate y Q^-1 y / 2 + <w*, y>.
    """
    rng = np.random.default_rng(seed)
    A, least = rng.normal(size=_SHAPE), rng.normal(size=_SHAPE[1])
    Q = A.T @ A / len(A)
    inverse, steepest = np.linalg.inv(Q), np.linalg.norm(Q, 2) * np.linalg.norm(least)

    def slopes(w: Vector) -> Vector:
        return np.asarray(A.T @ np.sign(A @ (w - least)) / len(A))

    return {
        "absolute": (
            lambda w: float(np.abs(A @ (w - least)).mean()),
            *(slopes, slopes, least, float(np.linalg.norm(A, axis=1).mean())),
        ),
        "quadratic": (
            lambda w: float((w - least) @ Q @ (w - least) / 2),
            lambda w: Q @ (w - least),
            # Not computed as the gradient of f, so that the game's arithmetic differs.
            lambda x: np.linalg.solve(inverse, x - least),
            *(least, float(steepest)),
        ),
    }


def compare_descent_with_game(
    problem: tuple[Any, ...], n_rounds: int
) -> dict[str, float]:
    """Compare gradient descent with its game (Alg. 6) from 0, and with the bound.

    ``problem``: see :func:`make_convex_problems`.  Returns the largest difference
    between the iterates of both; "gap" and "last gap", f less its minimum at the mean
    and at the last iterate of the descent; and the bound.
    """
    f, gradient, answer, minimum, slope = problem
    distance, start = float(np.linalg.norm(minimum)), np.zeros(_SHAPE[1])
    step = distance / (slope * np.sqrt(n_rounds))
    descent = [start]
    for _ in range(n_rounds):
        descent.append(descent[-1] - step * gradient(descent[-1]))
    x, y = mirror_descent(start, step), best_response(answer)
    game = [action for action, _ in play_rounds(x, y, np.ones(n_rounds + 1), "y")]
    return {
        "difference": float(np.abs(np.subtract(descent, game)).max()),
        "gap": f(np.mean(descent[1:], axis=0)) - f(minimum),
        "last gap": f(descent[-1]) - f(minimum),
        "bound": convergence_bound(distance, slope, n_rounds),
    }


def check_convergence_bound(inputs: Inputs, run_cached: CachedRunner) -> Result:
    """Check that gradient descent equals its game and stays below the bound.

    Remark 6.18 defines G as the largest squared norm of a gradient; the proof needs the
    norm itself, which is used here.
    """
    rounds = (10, 30, 100, 300, 1000, 3000, 10000)[: 3 if inputs.quick else None]
    both = make_convex_problems(inputs.random_state)
    results = run_cached(
        lambda name, n: compare_descent_with_game(both[name], n), product(both, rounds)
    )
    rows = pd.DataFrame(results).T.rename_axis(["function", "rounds"])
    gap = rows["difference"].max(skipna=False)
    share = (rows["gap"] / rows["bound"]).max(skipna=False)
    return Result(
        {"f(mean of w_1 ... w_T) less its minimum, and the bound": rows},
        [
            Check("descent and game: largest difference", gap, "<=", 1e-12),
            Check("largest share of 3 G R / (2 sqrt(T))", share, "<=", 1),
        ],
        {measure: rows[measure].unstack(level=0) for measure in ("gap", "bound")},
    )
