"""Reproduce paper 1: tilings by landmarks, their learning rate, and approximations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy.spatial import cKDTree
from scipy.stats import entropy

from napari_embedding_game.core.dynamics.game import Game
from napari_embedding_game.core.dynamics.state import Problem, State
from napari_embedding_game.core.energy.methods import Approximation
from napari_embedding_game.core.energy.objective import AllPairs, Objective
from napari_embedding_game.core.settings import Settings
from napari_embedding_game.data.recipe import apply_recipe
from napari_embedding_game.data.stages import finish

from .frame import CachedRunner, Check, Result
from .inputs import Inputs
from .metrics import MIN_OCCUPANCY, all_pairs_energy, knn_accuracy, occupancy
from .runs import (
    Map,
    iterate_snapshots_at,
    load_digits,
    load_digits_game_input,
    make_game_input,
    sample_row_numbers,
)

LAMBDA_N = 70.0
"""lambda x N of paper 1 for MNIST: 0.001 x 70,000."""

# --- Figures 2 and 3: landmarks tile the data -------------------------------------

SETTINGS = {
    "mnist": ("MNIST", 50, 0.001, 70_000),
    "covid": ("cells, COVID-19 lung lavage", 150, 0.01, 40_000),
    "cells": ("cells, PBMC 3k", 150, 0.01, 40_000),
    "texts": ("texts, 20 newsgroups", 150, 0.01, 25_000),
}
"""Title, number of landmarks, lambda and number of rows in the paper."""
MAX_DIFFERENCE = 0.05
"""Largest share of empty landmarks, and of points far from their landmark."""
ENOUGH = 0.95
"""Least majority share, as read from paper 1's Figure 3."""
N_CLUSTERS = 4


@lru_cache(maxsize=1)
def load_rows(inputs: Inputs, name: str) -> Any:
    """Return a data set by its name in ``SETTINGS``; 400 random rows if quick.

    Only the raw counts of "covid" are prepared by the recipe.  The last one is cached.
    """
    dataset = inputs.load(name)
    if name == "covid":
        dataset = finish(apply_recipe(dataset))
    if inputs.quick:
        n = dataset.X.shape[0]
        few = np.isin(np.arange(n), sample_row_numbers(n, 400, inputs.random_state))
        dataset = dataset.subset(few)
    return dataset


def measure_tiling(layout: Map, landmarks: Map) -> dict[str, float]:
    """Return the measures of a tiling: "empty", "far" and "evenness", each 0 to 1.

    ``layout`` (N, d), ``landmarks`` (L, d); :func:`compare_tilings` explains them.
    """
    tree = cKDTree(landmarks)
    distances, nearest = tree.query(layout)
    sizes = np.bincount(nearest, minlength=len(landmarks))
    spacing = np.median(tree.query(landmarks, k=2)[0][:, 1])
    return {
        "empty": float((sizes == 0).mean()),
        "far": float((distances > 2 * spacing).mean()),
        "evenness": float(entropy(sizes, base=len(landmarks))),
    }


def fit_and_measure(inputs: Inputs, name: str, fixed: str) -> dict[str, Any]:
    """Play by the paper's schedule with its lambda or lambda N, and measure the map.

    ``fixed``: "lambda" to keep the paper's lambda, or "lambda N" to keep its product
    with the number of rows.  Returns the measures ("row"), layout, landmarks, the
    nearest landmark of each point, and labels: column "cell_type" or "label", else the
    first.
    """
    title, n_landmarks, repulsion, n_paper = SETTINGS[name]
    dataset, n_iter = load_rows(inputs, name), 6_000
    if inputs.quick:
        n_landmarks, n_iter = 20, 300
    obs = dataset.obs
    column = next((c for c in ("cell_type", "label") if c in obs), obs.columns[0])
    labels = obs[column].astype(str).to_numpy()
    n, seed = len(labels), inputs.random_state
    repulsion *= n_paper / n if fixed == "lambda N" else 1
    chosen = Settings(
        affinity="uniform",
        repulsion=repulsion * n,
        n_landmarks=n_landmarks,
        schedule="paper",
        max_iter=n_iter,
        random_state=seed,
    )
    (end,) = iterate_snapshots_at(make_game_input(dataset.X, chosen), chosen, [n_iter])
    some = sample_row_numbers(n, 10_000, seed)
    shares = pd.crosstab(end.labels, labels, normalize="index").max(axis=1)
    return {
        "row": {
            "data": title,
            "N": n,
            "L": n_landmarks,
            "lambda": repulsion,
            "lambda N": repulsion * n,
            **measure_tiling(end.embedding, end.landmarks),
            "landmarks with points": len(shares),
            "median majority": shares.median(),
            "a quarter below": shares.quantile(0.25),
            "of all": pd.Series(labels).value_counts(normalize=True).max(),
            "kNN accuracy": knn_accuracy(end.embedding[some], labels[some]),
        },
        "layout": end.embedding,
        "landmarks": end.landmarks,
        "nearest": end.labels,
        "labels": labels,
    }


def compare_tilings(inputs: Inputs, run_cached: CachedRunner) -> Result:
    """Play the games of Figure 2, and compare tilings and labels of landmarks.

    Empty: share of the landmarks that are nearest to no point. Far: share of the points
    farther from their landmark than twice the median distance of a landmark to the
    next. Evenness: entropy of the points over the landmarks. Majority: share of a
    landmark's points with their commonest label.
    """
    games = product(("covid", "cells", "texts"), ("lambda N", "lambda"))
    played = [("mnist", "lambda N"), *games][: 1 if inputs.quick else None]
    results = run_cached(partial(fit_and_measure, inputs), played)
    rows = [each["row"] for each in results.values()]
    asked = "{}, the paper's {}: share of {}"
    measures = {"empty": "landmarks without points", "far": "points far from theirs"}
    checks = [
        Check(
            asked.format(row["data"], fixed, words), row[measure], "<=", MAX_DIFFERENCE
        )
        for (_, fixed), row in zip(results, rows, strict=True)
        for measure, words in measures.items()
    ]
    most = "MNIST: median share of a landmark's majority digit"
    return Result(
        {
            "After the iterations of the paper's schedule, K = 15": rows,
            f"The first {N_CLUSTERS} landmarks with points": [
                row
                for each in results.values()
                for row in count_labels_of_landmarks(each)
            ],
        },
        [*checks, Check(most, rows[0]["median majority"], ">=", ENOUGH)],
    )


def count_labels_of_landmarks(result: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a row of label counts for each of the first landmarks (Figure 3).

    At most ``N_CLUSTERS`` landmarks with points, and the three commonest labels of
    each.  ``result``: of :func:`fit_and_measure`.
    """
    of_landmark = pd.Series(result["labels"]).groupby(result["nearest"])
    for landmark, labels in list(of_landmark)[:N_CLUSTERS]:
        first = labels.value_counts()[:3]
        yield {
            "data": result["row"]["data"],
            "lambda N": result["row"]["lambda N"],
            "landmark": landmark,
            "points": len(labels),
            "majority": first.iloc[0] / len(labels),
            "labels": ", ".join(f"{name} {n}" for name, n in first.items()),
        }


# --- Figure 4: how fast landmarks may be ------------------------------------------

RATES = (1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
"""Rates eta_z; with 0.01, says paper 1, points fall onto a few spots."""


def share_of_distinct_spots(layout: Map) -> float:
    """Return the number of occupied spots 0.01 wide per point of a layout, 0 to 1."""
    spots = np.unique(np.round(layout.astype(np.float64) / 0.01), axis=0)
    return len(spots) / len(layout)


def play_with_landmark_rate(
    inputs: Inputs, n_points: int, n_iter: int, rate: float
) -> dict[str, Any]:
    """Play digits with a learning rate of the landmarks, and measure the map.

    ``rate``: eta_z.  The game ends after ``n_iter`` iterations, half-way through its
    schedule.  Returns the measures ("row"), layout, labels and landmarks.
    """
    placed, (_, labels) = (
        load_digits_game_input(inputs, n_points),
        load_digits(inputs, n_points),
    )
    settings = Settings(
        repulsion=LAMBDA_N,
        n_landmarks=100,
        learning_rate=0.03,
        landmark_learning_rate=rate,
        schedule="paper",
        max_iter=2 * n_iter,  # the schedule lowers its rates half-way, where this ends
        random_state=inputs.random_state,
    )
    (end,) = iterate_snapshots_at(placed, settings, [n_iter])
    layout = end.embedding
    low, high = np.percentile(layout, [2, 98], axis=0)
    return {
        "row": {
            "eta_z": rate,
            "occupancy": occupancy(layout),
            "span": float((high - low).max()),
            "distinct": share_of_distinct_spots(layout),
            "kNN accuracy": knn_accuracy(layout, labels),
            "true energy (Eq. 1)": all_pairs_energy(
                placed[0], layout, LAMBDA_N / n_points
            ),
        },
        "layout": layout,
        "labels": labels,
        "landmarks": end.landmarks,
    }


def sweep_landmark_rates(inputs: Inputs, run_cached: CachedRunner) -> Result:
    """Play with several learning rates of the landmarks, and compare the maps.

    A landmark moves by eta_z in an iteration, so that with 0.01 it can cross the map in
    2,000 iterations: only with lower rates is it too slow. Occupancy: share of the bins
    of a grid over the map that have a point; below 0.08 the map has collapsed. Span:
    longer side of the middle 96 % of the points. Distinct: occupied spots 0.01 wide,
    per point.
    """
    swept = (0.01, 0.3, 30.0) if inputs.quick else RATES
    n_points, n_iter = (600, 500) if inputs.quick else (10_000, 2_000)
    results = run_cached(
        partial(play_with_landmark_rate, inputs, n_points, n_iter), swept
    )
    rows = pd.DataFrame([each["row"] for each in results.values()]).set_index("eta_z")
    share, least = rows["occupancy"], MIN_OCCUPANCY
    ends = {swept[0]: "", swept[-1]: "", 0.01: " already, as in the paper"}
    title = f"{n_points:,} digits, {n_iter:,} iterations, eta_y = 0.03, lambda N = 70"
    return Result(
        {f"{title}, L = 100, K = 15": rows},
        [
            *(
                Check(
                    f"collapse at eta_z = {at:g}{more}: occupancy",
                    share[at],
                    "<",
                    least,
                )
                for at, more in ends.items()
            ),
            Check("a window between: largest", share.iloc[1:-1].max(), ">=", least),
        ],
        {"occupancy and distinct spots": rows[["occupancy", "distinct"]]},
    )


# --- Figures 5 and 6: approximations of the sum over all pairs --------------------

TITLES: dict[Approximation, str] = {
    "sampled_edges": "sampled edges",
    "sampled_landmarks": "sampled landmarks",
    "landmarks": "optimised landmarks",
}
EDGES, SAMPLES, MOVING = TITLES.values()
LS = (1, 3, 10, 30, 100, 300)
FEW = LS[:3]
"""Numbers L of moving landmarks with which clusters in the paper fall onto a spot."""
AT = (*range(0, 100, 20), *range(100, 4_001, 100))
"""Iterations that are measured: 2,000 with eta_y = 0.03, then 2,000 with 0.003."""


def track_approximation(
    inputs: Inputs,
    n_points: int,
    iterations: Sequence[int],
    approximation: Approximation,
    n_landmarks: int = 10,
) -> dict[str, Any]:
    """Play with an approximation of the repulsion, and compare it with all pairs.

    Returns lists over the ascending ``iterations``, with the keys of
    :func:`compare_with_all_pairs`; and at the end the layout, landmarks, labels, and
    "distinct", "occupancy" and "accuracy" as in :func:`sweep_landmark_rates`.
    """
    edges, layout = load_digits_game_input(inputs, n_points)
    _, labels = load_digits(inputs, n_points)
    settings = Settings(
        approximation=approximation,
        repulsion=LAMBDA_N,
        n_landmarks=n_landmarks,
        schedule="paper",
        max_iter=iterations[-1],
    )
    seed, cpu = inputs.random_state, torch.device("cpu")
    game = Game(Problem(edges=edges, layout=layout, random_state=seed, device=cpu))
    states, played = game.apply_and_play(settings), game.objective
    every = AllPairs(played.forces, played.repulsion)
    rows = [
        compare_with_all_pairs(played, every, state)
        for state in states
        if state.iteration in iterations
    ]
    y = game.points.positions.numpy()
    return {
        **pd.DataFrame(rows).to_dict("list"),
        "layout": y,
        "landmarks": game.landmarks.positions.numpy(),
        "labels": labels,
        "distinct": share_of_distinct_spots(y),
        "occupancy": occupancy(y),
        "accuracy": knn_accuracy(y, labels),
    }


def compare_with_all_pairs(
    played: Objective, every: AllPairs, state: State
) -> dict[str, float]:
    """Compare an approximate energy and gradient with those over all pairs at a state.

    ``played``: the approximate objective; ``every``: that over all pairs.

    Returns "approximate" and "true", the energies; "rmse", the root mean square of the
    difference of the gradients of the points; "size", that of the true gradient.
    """
    assert state.z is not None
    approximate, gradient, _ = played.energy_and_gradients(state.y, state.z)
    true, true_gradient, _ = every.energy_and_gradients(state.y, state.z)
    return {
        "approximate": approximate,
        # Eq. 1 includes the pairs i = j, which the objectives leave out.
        "true": true + every.repulsion * len(state.y),
        "rmse": float((gradient - true_gradient).double().square().mean().sqrt()),
        "size": float(true_gradient.double().square().mean().sqrt()),
    }


def compare_sampled_maps(inputs: Inputs, run_cached: CachedRunner) -> Result:
    """Compare maps of each approximation of the sum over all pairs, for several L.

    True energy: Eq. 1, over all pairs, which all approximations are meant to lower.
    """
    n_points, n_iter = (300, 600) if inputs.quick else (5_000, 4_000)
    sizes = (3, 30) if inputs.quick else LS
    runs = run_cached(
        partial(track_approximation, inputs, n_points, [n_iter]), product(TITLES, sizes)
    )
    rows = pd.DataFrame(
        {
            "L": L,
            "repulsion": TITLES[kind],
            "approximate energy": each["approximate"][-1],
            "true energy": each["true"][-1],
            "gradient RMSE": each["rmse"][-1],
            **{key: each[key] for key in ("distinct", "occupancy", "accuracy")},
        }
        for (kind, L), each in runs.items()
    ).sort_values("L", kind="stable")
    true = rows.pivot(index="L", columns="repulsion", values="true energy")
    distinct = rows.pivot(index="L", columns="repulsion", values="distinct")
    is_few = true.index.isin(FEW)
    higher = true[[EDGES, MOVING]].max(axis=1, skipna=False)
    lower = (true[EDGES] / true[MOVING])[is_few].max(skipna=False)
    gap = (true[MOVING] / true[EDGES] - 1)[~is_few].abs().max(skipna=False)
    worst = (true[SAMPLES] / higher).min(skipna=False)
    fewer = (distinct[MOVING] / distinct[EDGES])[is_few].max(skipna=False)
    title = f"After {n_iter:,} iterations, {n_points:,} digits, K = 15, lambda N = 70"
    return Result(
        {title: rows},
        [
            Check("few L: energy of edges by that of landmarks", lower, "<", 1),
            Check("from L = 30 on: largest difference of both", gap, "<", 0.05),
            Check("every L: sampled landmarks by the higher of both", worst, ">", 1),
            Check("few L: distinct places, landmarks by edges", fewer, "<", 1),
        ],
    )


def track_sampled_energies(inputs: Inputs, run_cached: CachedRunner) -> Result:
    """Track energies and gradients of the three approximations for L = 10.

    Gradient RMSE: root mean square of the difference between the gradient that is
    played with and that of Eq. 1 at the same points. Relative RMSE: divided by the root
    mean square of the gradient of Eq. 1; by this measure optimised landmarks are worse.
    """
    n_points, at = (300, AT[:11:2]) if inputs.quick else (5_000, AT)
    runs = run_cached(partial(track_approximation, inputs, n_points, at), TITLES)
    approximate, true, rmse, size = (
        pd.DataFrame(
            {TITLES[kind]: runs[kind][key] for kind in TITLES},
            pd.Index(at, name="iteration"),
        )
        for key in ("approximate", "true", "rmse", "size")
    )
    last, below = true.iloc[-1], (true - approximate).iloc[-1]
    rows = pd.DataFrame(
        {
            "last approximate energy": approximate.iloc[-1],
            "last true energy": last,
            "below": below,
            "mean gradient RMSE": rmse.mean(),
            "last gradient RMSE": rmse.iloc[-1],
            "mean relative RMSE": (rmse / size).mean(),
        }
    ).rename_axis("repulsion")
    better = (rmse[MOVING] < rmse[EDGES])[1:].mean()
    more = "the same for optimised landmarks, against sampled edges"
    lower = "last true energy, sampled edges against optimised landmarks"
    return Result(
        {f"L = 10, {n_points:,} digits, K = 15, lambda N = 70": rows},
        [
            Check("energy below the true one, sampled edges", below[EDGES], ">", 0),
            Check(more, below[MOVING], ">", below[EDGES]),
            Check(lower, last[EDGES], "<", last[MOVING]),
            Check("share of times: landmarks' gradient the better", better, ">=", 0.9),
        ],
        {
            "energy that is played with": approximate,
            "true energy (Eq. 1)": true,
            "gradient RMSE": rmse,
        },
    )
