"""Paper 1: landmarks tile the data, how fast they may be, and what samples do."""

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

from napari_embedding_game.core.dynamics.alarms import LEAST_OCCUPANCY, occupancy
from napari_embedding_game.core.dynamics.memory_order import memory_order
from napari_embedding_game.core.energy.forces import make_forces
from napari_embedding_game.core.energy.methods import Approximation, get_method
from napari_embedding_game.core.energy.objective import make_objective
from napari_embedding_game.core.settings import Settings, approximation_of
from napari_embedding_game.core.snapshot import Snapshot
from napari_embedding_game.data.recipe import apply_recipe
from napari_embedding_game.data.stages import finish

from .frame import Check, Parts, Result
from .inputs import Inputs
from .metrics import knn_accuracy, true_energy
from .runs import Map, Placed, draw_rows, looks, place, placed_digits

LAMBDA_N = 70.0
"""lambda x N of paper 1 for MNIST: 0.001 x 70,000."""

# --- Figures 2 and 3: landmarks tile the data -------------------------------------


SETTINGS = {
    "mnist": ("MNIST", "y", 50, 0.001, 70_000),
    "covid": ("cells, COVID-19 lung lavage", "cell_type", 150, 0.01, 40_000),
    "cells": ("cells, PBMC 3k", "cell_type", 150, 0.01, 40_000),
    "texts": ("texts, 20 newsgroups", "label", 150, 0.01, 25_000),
}
"""Title, column that points of one landmark should share, and the paper's number of
landmarks, lambda and number of rows."""
N_ITER = 6_000
FAR = 2.0
"""Of the median distance of a landmark to the next."""
MOST = 0.05
"""Largest share of empty landmarks, and of far points."""
ENOUGH = 0.95
"""Majority share that paper 1's Figure 3 is to be read as."""
N_CLUSTERS = 4
"""Counted in Figure 3, as in the paper: the first ones."""


@lru_cache(maxsize=1)
def load(inputs: Inputs, name: str) -> Any:
    """Return the rows that are played with; raw counts go through the recipe."""
    dataset = inputs.load(name)
    if name == "covid":
        dataset = finish(apply_recipe(dataset))
    if inputs.quick:
        n_rows = dataset.X.shape[0]
        chosen = draw_rows(n_rows, 400, inputs.random_state)
        dataset = dataset.subset(np.isin(np.arange(n_rows), chosen))
    return dataset


def tiling(layout: Map, landmarks: Map) -> dict[str, float]:
    """Measure how landmarks tile the points, in the words of :func:`tilings`."""
    tree = cKDTree(landmarks)
    distances, nearest = tree.query(layout)
    sizes = np.bincount(nearest, minlength=len(landmarks))
    spacing = np.median(tree.query(landmarks, k=2)[0][:, 1])
    return {
        "empty": float((sizes == 0).mean()),
        "far": float((distances > FAR * spacing).mean()),
        "evenness": float(entropy(sizes, base=len(landmarks))),
    }


def fit(inputs: Inputs, name: str, kept: str) -> dict[str, Any]:
    """Play by the paper's schedule with its lambda or lambda N; measures and map."""
    title, column, n_landmarks, repulsion, n_paper = SETTINGS[name]
    dataset, n_iter = load(inputs, name), N_ITER
    if inputs.quick:
        n_landmarks, n_iter = 20, 300
    obs = dataset.obs
    labels = obs[column if column in obs else obs.columns[0]].astype(str).to_numpy()
    n, seed = len(labels), inputs.random_state
    repulsion *= n_paper / n if kept == "lambda N" else 1
    chosen = Settings(
        affinity="uniform",
        repulsion=repulsion * n,
        n_landmarks=n_landmarks,
        schedule="paper",
        max_iter=n_iter,
        random_state=seed,
    )
    (end,) = looks(place(dataset.X, labels, chosen), chosen, [n_iter])
    some = draw_rows(n, 10_000, seed)
    shares = pd.crosstab(end.labels, labels, normalize="index").max(axis=1)
    return {
        "row": {
            "data": title,
            "N": n,
            "L": n_landmarks,
            "lambda": repulsion,
            "lambda N": repulsion * n,
            **tiling(end.embedding, end.landmarks),
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


def fits(inputs: Inputs, parts: Parts, played: Sequence[tuple[str, str]]) -> Any:
    """Return the parts that are asked for, the table of all, and MNIST's criterion."""
    # Quick: of digits alone.
    found = parts(partial(fit, inputs), played[:1] if inputs.quick else played)
    rows = [each["row"] for each in found.values()]
    asked = "MNIST: median share of a landmark's majority digit"
    return found, rows, Check(asked, rows[0]["median majority"], ">=", ENOUGH)


def tilings(inputs: Inputs, parts: Parts) -> Result:
    """Play the games of Figure 2 and measure how landmarks tile the points.

    The paper shows pictures and no numbers. Empty: share of the landmarks that are
    nearest to no point. Far: share of the points farther from their landmark than twice
    the median distance of a landmark to the next. Evenness: entropy of the points over
    the landmarks. Majority: share of a landmark's points with their commonest label.

    Other cells and texts stand in for the paper's 40,000 cells and 25,000 posts. lambda
    is not scale-free, so these are played with the paper's lambda = 0.01 and with its
    lambda N.
    """
    others = product(("covid", "cells", "texts"), ("lambda N", "lambda"))
    found, rows, majority = fits(inputs, parts, [("mnist", "lambda N"), *others])
    asked = "{}, the paper's {}: share of {}"
    what = {"empty": "landmarks without points", "far": "points far from theirs"}
    checks = [
        Check(asked.format(row["data"], kept, words), row[measure], "<=", MOST)
        for (_, kept), row in zip(found, rows, strict=True)
        for measure, words in what.items()
    ]
    title = "After the iterations of the paper's schedule, K = 15"
    return Result({title: rows}, [*checks, majority])


def members(inputs: Inputs, parts: Parts) -> Result:
    """Play them again and count who the members of the first clusters are.

    The paper shows pictures of four clusters of MNIST and of the posts, and no numbers.

    Settings and data are those of game-fig2, with the paper's lambda N.
    """
    wanted = [(name, "lambda N") for name in ("mnist", "covid", "texts")]
    found, overall, majority = fits(inputs, parts, wanted)
    rows = []
    for each in found.values():
        of_landmark = pd.Series(each["labels"]).groupby(each["nearest"])
        for landmark, own in list(of_landmark)[:N_CLUSTERS]:
            counts = own.value_counts()
            row = {
                "data": each["row"]["data"],
                "landmark": landmark,
                "points": len(own),
                "majority": counts.max() / len(own),
                "labels": ", ".join(f"{name} {n}" for name, n in counts[:3].items()),
            }
            rows.append(row)
    title = f"The first {N_CLUSTERS} landmarks with points"
    return Result({"Over all landmarks": overall, title: rows}, [majority])


# --- Figure 4: how fast landmarks may be ------------------------------------------

RATES = (1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
"""eta_z; paper 1 names 0.01, for which it says that points fall onto a few spots."""
GRAIN = 0.01
"""Points that stand nearer than this, in units of the map, count as one spot."""


def distinct_share(layout: Map) -> float:
    """Return how many spots 0.01 wide are taken, as a share of the points, 0 to 1."""
    spots = np.unique(np.round(layout.astype(np.float64) / GRAIN), axis=0)
    return len(spots) / len(layout)


def sweep(inputs: Inputs, n_points: int, n_iter: int, rate: float) -> dict[str, Any]:
    """Play with one landmark learning rate; the measures and the map."""
    placed = placed_digits(inputs, n_points)
    settings = Settings(
        repulsion=LAMBDA_N,
        n_landmarks=100,
        learning_rate=0.03,
        landmark_learning_rate=rate,
        schedule="paper",
        max_iter=2 * n_iter,  # the schedule lowers its rates half-way, where this ends
        random_state=inputs.random_state,
    )
    (end,) = looks(placed, settings, [n_iter])
    layout, labels = end.embedding, placed.labels
    low, high = np.percentile(layout, [2, 98], axis=0)
    return {
        "row": {
            "eta_z": rate,
            "occupancy": occupancy(layout),
            "span": float((high - low).max()),
            "distinct": distinct_share(layout),
            "kNN accuracy": knn_accuracy(layout, labels),
            "true energy (Eq. 1)": true_energy(
                placed.edges, layout, LAMBDA_N / n_points
            ),
        },
        "layout": layout,
        "labels": labels,
        "landmarks": end.landmarks,
    }


def rates(inputs: Inputs, parts: Parts) -> Result:
    """Sweep the learning rate of the landmarks.

    The paper plays with 70,000 digits; here 10,000 random ones with the same lambda N.
    It shows pictures and no numbers, names one rate, 0.01 (collapse to a few points),
    and sees 30 begin to collapse.

    Occupancy: share of the cells of a grid over the map that hold a point; the program
    warns of a collapse below 0.08. Span: longer side of the middle 96 % of the points.
    Distinct: spots 0.01 wide that are taken, per point.

    A landmark moves by eta_z an iteration, so in 2,000 iterations with 0.01 it can
    cross the whole map: landmarks are too slow only where they cannot.
    """
    swept = (0.01, 0.3, 30.0) if inputs.quick else RATES
    n_points, n_iter = (600, 500) if inputs.quick else (10_000, 2_000)
    found = parts(partial(sweep, inputs, n_points, n_iter), swept)
    rows = pd.DataFrame([each["row"] for each in found.values()]).set_index("eta_z")
    share = rows["occupancy"]
    ends = {swept[0]: "", swept[-1]: "", 0.01: " already, as in the paper"}
    asked, least = "collapse at eta_z = {:g}{}: occupancy", LEAST_OCCUPANCY
    checks = [
        Check(asked.format(rate, more), share[rate], "<", least)
        for rate, more in ends.items()
    ]
    widest = share.iloc[1:-1].max()
    window = Check("a window between: largest", widest, ">=", least)
    title = (
        f"{n_points:,} digits after {n_iter:,} iterations with eta_y = 0.03, L = 100, "
        f"K = 15, lambda N = {LAMBDA_N:g}"
    )
    curves = {"occupancy and distinct spots": rows[["occupancy", "distinct"]]}
    return Result({title: rows}, [*checks, window], curves)


# --- Figures 5 and 6: what stands for the sum over all pairs ----------------------

WAYS: dict[Approximation, str] = {
    "sampled_edges": "sampled edges",
    "sampled_landmarks": "sampled landmarks",
    "landmarks": "optimised landmarks",
}
EDGES, SAMPLES, MOVING = WAYS.values()
LS = (1, 3, 10, 30, 100, 300)
FEW = (1, 3, 10)
"""L for which the paper sees moving landmarks let clusters fall onto one spot."""
AT = (*range(0, 100, 20), *range(100, 4_001, 100))
"""2,000 iterations with eta_y = 0.03, then 2,000 with a tenth of it."""


def follow(
    inputs: Inputs, n_points: int, at: Sequence[int], way: Approximation, L: int = 10
) -> dict[str, Any]:
    """Play in one way, and compare it with the sum over all pairs at ``at``.

    Lists ``approximate`` and ``true`` (energies), ``rmse`` of the gradient in the
    points against that of Eq. 1, ``size`` (root mean square of that); and the end.
    """
    placed = placed_digits(inputs, n_points)
    settings = Settings(
        approximation=way,
        repulsion=LAMBDA_N,
        n_landmarks=L,
        schedule="paper",
        max_iter=at[-1],
        random_state=inputs.random_state,
    )
    found = pd.DataFrame(metered(placed, settings, looks(placed, settings, at)))
    last = found.pop("snapshot").iloc[-1]
    return {
        **found.to_dict("list"),
        "layout": last.embedding,
        "landmarks": last.landmarks,
        "labels": placed.labels,
        "distinct": distinct_share(last.embedding),
        "occupancy": occupancy(last.embedding),
        "accuracy": knn_accuracy(last.embedding, placed.labels),
    }


def metered(
    placed: Placed, settings: Settings, snapshots: Iterator[Snapshot]
) -> Iterator[dict[str, Any]]:
    """Yield the energy that is played on and the true one, and their gradients.

    Samples are drawn by the places of points in memory, so the points are kept in the
    order in which the game keeps them.
    """
    repulsion = get_method("game").lambda_scale(placed.edges) * LAMBDA_N
    order = memory_order(np.asarray(placed.layout, placed.edges.weights.dtype))
    forces = make_forces(placed.edges.in_order(order), torch.device("cpu"))
    drawn = repulsion, settings.n_landmarks, settings.random_state
    played = make_objective(approximation_of(settings), forces, *drawn)
    every = make_objective("exact", forces, *drawn)
    for each in snapshots:
        y, z = torch.from_numpy(each.embedding[order]), torch.from_numpy(each.landmarks)
        approximate, gradient, _ = played.evaluate(y, z)
        true, wanted, _ = every.evaluate(y, z)
        yield {
            "snapshot": each,
            "approximate": approximate,
            # Eq. 1 counts the pairs i = j, which all pairs of the family leave out.
            "true": true + repulsion * len(y),
            "rmse": float((gradient - wanted).double().square().mean().sqrt()),
            "size": float(wanted.double().square().mean().sqrt()),
        }


def sampled_maps(inputs: Inputs, parts: Parts) -> Result:
    """Play with each stand-in for the sum over all pairs, for several L.

    The paper plays with 70,000 digits; here 5,000 random ones with the same lambda N.
    It shows pictures and no numbers. True energy: Eq. 1, over all pairs, which all
    three are meant to lower.

    Distinct: spots 0.01 wide, per point.
    """
    n_points, sizes, n_iter = (
        (300, (3, 30), 600) if inputs.quick else (5_000, LS, 4_000)
    )
    found = parts(partial(follow, inputs, n_points, [n_iter]), product(WAYS, sizes))
    rows = pd.DataFrame(
        {
            "L": L,
            "repulsion": WAYS[way],
            "approximate energy": each["approximate"][-1],
            "true energy": each["true"][-1],
            "gradient RMSE": each["rmse"][-1],
            **{what: each[what] for what in ("distinct", "occupancy", "accuracy")},
        }
        for (way, L), each in found.items()
    ).sort_values("L", kind="stable")
    true = rows.pivot(index="L", columns="repulsion", values="true energy")
    distinct = rows.pivot(index="L", columns="repulsion", values="distinct")
    is_few = true.index.isin(FEW)
    higher = true[[EDGES, MOVING]].max(axis=1, skipna=False)
    lower = (true[EDGES] / true[MOVING])[is_few].max(skipna=False)
    apart = (true[MOVING] / true[EDGES] - 1)[~is_few].abs().max(skipna=False)
    worst = (true[SAMPLES] / higher).min(skipna=False)
    fewer = (distinct[MOVING] / distinct[EDGES])[is_few].max(skipna=False)
    title = (
        f"After {n_iter:,} iterations, {n_points:,} digits, K = 15, lambda N = "
        f"{LAMBDA_N:g}"
    )
    return Result(
        {title: rows},
        [
            Check("few L: energy of edges by that of landmarks", lower, "<", 1),
            Check("from L = 30 on: largest difference of both", apart, "<", 0.05),
            Check("every L: sampled landmarks by the higher of both", worst, ">", 1),
            Check("few L: distinct places, landmarks by edges", fewer, "<", 1),
        ],
    )


def sampled_energies(inputs: Inputs, parts: Parts) -> Result:
    """Follow energies and gradients of the three stand-ins for L = 10.

    The paper plays with 70,000 digits; here 5,000 random ones with the same lambda N.
    It shows pictures and no numbers. True energy: Eq. 1, over all pairs, which all
    three are meant to lower.

    Gradient RMSE: of the gradient that is played with, less that of Eq. 1 at the same
    points. Relative: divided by the root mean square of the latter; so measured,
    optimised landmarks are the worse.
    """
    n_points, at = (300, AT[:11:2]) if inputs.quick else (5_000, AT)
    found = parts(partial(follow, inputs, n_points, at), WAYS)
    figures, index = (
        ("approximate", "true", "rmse", "size"),
        pd.Index(at, name="iteration"),
    )
    approximate, true, rmse, size = (
        pd.DataFrame({WAYS[way]: found[way][what] for way in WAYS}, index)
        for what in figures
    )
    last = true.iloc[-1]
    below = last - approximate.iloc[-1]
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
