"""Reproduce paper 4: points found by pressure, and energies of pressured points."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from scipy import stats
from sklearn.metrics.pairwise import euclidean_distances

from napari_embedding_game.core.energy.forces import CompiledForces
from napari_embedding_game.core.energy.objective import AllPairs
from napari_embedding_game.core.energy.pressure import compute_labels_and_pressure
from napari_embedding_game.core.graph.edges import build_edges
from napari_embedding_game.core.graph.neighbors import knn_graph
from napari_embedding_game.core.settings import Settings, resolve_n_neighbors
from napari_embedding_game.papers.minimizers import (
    minimize_by_homotopy,
    minimize_by_spectral_direction,
)
from napari_embedding_game.papers.pressured_points import minimize_by_pressured_points
from napari_embedding_game.papers.spectral_direction import SpectralDirection

from .frame import CachedRunner, Check, Result
from .inputs import Inputs
from .runs import iterate_snapshots_at, load_digits, make_swiss_roll

Points = NDArray[Any]
Measured = dict[str, Any]
PERPLEXITY, COIL_PERPLEXITY = 20.0, 35.0
"""The latter gives the energies of the paper's spectral direction on COIL-20."""
EE_LAMBDA = 200.0
"""Lambda of EE in paper 4."""
_FAR = 1e6
"""Mean weight of EE's repelling pairs: large, so that in float32 the products of
weights and far kernels stay normal numbers, which are quicker."""


def build_entropic_edges(X: Points, perplexity: float) -> Any:
    """Return the edges of rows (N, D) with entropic affinities of a perplexity.

    The number of neighbours is the default for this perplexity.
    """
    settings = Settings(affinity="entropic", perplexity=perplexity)
    graph = knn_graph(X, resolve_n_neighbors(settings, len(X)))
    return build_edges(graph, "entropic", perplexity=perplexity)


def make_objective(
    X: Points,
    method: str,
    dtype: type = np.float32,
    perplexity: float = PERPLEXITY,
) -> AllPairs:
    """Return the objective of EE ("ee") or s-SNE ("ssne") in the unit of paper 4.

    ``X`` (N, D); ``dtype`` of all weights.  The attracting weights w+ are entropic
    affinities of the ``perplexity`` that sum to 1, so that :class:`Edges`, whose energy
    is half the sum, hold 2 w+.  EE's repelling weights w- are squared distances that
    sum to 1 too, with lambda = 200; s-SNE has none, and lambda = 1.
    """
    edges = build_entropic_edges(X, perplexity)
    weights = edges.weights.astype(np.float64)
    edges = replace(edges, weights=(2 * weights / weights.sum()).astype(dtype))
    forces = CompiledForces(edges, "quadratic", "gaussian")
    if method == "ssne":
        return AllPairs(forces, 1.0, aggregate="log")
    # In float64, because float32 loses small differences of long rows.
    repelling = euclidean_distances(np.asarray(X, np.float64), squared=True)
    repelling *= _FAR / repelling.mean()
    ee = AllPairs(forces, EE_LAMBDA / (_FAR * len(X) ** 2))
    ee.weights = repelling.astype(dtype)
    return ee


def sample_random_start(n_points: int, seed: int) -> Points:
    """Return a normally distributed start layout, (N, 2), of standard deviation 0.1."""
    return 0.1 * np.random.default_rng(seed).normal(size=(n_points, 2))


def load_ten_objects(inputs: Inputs, most: int) -> tuple[Points, Points]:
    """Return the pictures of the first ten objects of COIL-20, and their objects.

    Pictures (n, D), object numbers (n,).  ``most``: number of random pictures of a
    quick run; otherwise all are returned.
    """
    coil = inputs.load("coil20")
    numbers = np.asarray(coil.obs["y"])
    rows = np.flatnonzero(np.isin(numbers, np.unique(numbers)[:10]))
    if inputs.quick:
        rows = np.random.default_rng(inputs.random_state).permutation(rows)[:most]
    return coil.X[rows], numbers[rows]


# --- Figures 3 and 4: misplaced points --------------------------------------------

_NEIGHBORS = 10
LIKELY = 0.01
"""Probability below which a recall is called better than chance."""


def find_ten_nearest_on_map(y: Points) -> NDArray[np.intp]:
    """Return the 10 nearest other points of each point on the map, (N, 10)."""
    return knn_graph(np.asarray(y, np.float32), _NEIGHBORS).indices.astype(np.intp)


def are_misplaced(y: Points, labels: Points) -> Points:
    """Return whether most of a point's 10 nearest on the map have another label, (N,).

    ``y`` (N, 2): positions; ``labels`` (N,).
    """
    same = labels[find_ten_nearest_on_map(y)] == labels[:, None]
    return np.asarray(same.mean(axis=1) < 0.5)


def measure_recall_by_pressure(result: Measured) -> Measured:
    """Return how many misplaced points are among the points of highest pressure.

    As many points of highest "heights" (N,) are taken as are "wrong" (N,) bool; points
    without pressure are no hits.  The keys of the returned dict are column titles.
    """
    heights, wrong = result["heights"], result["wrong"]
    n, m, pressured = len(wrong), int(wrong.sum()), heights > 0
    order = np.argsort(-heights, kind="stable")[:m]
    hits = int((wrong[order] & pressured[order]).sum())
    return {
        "points": n,
        "in the wrong place": m,
        "recall by the highest pressure": hits / max(m, 1),
        "chance": m / n,
        "probability by chance": float(stats.hypergeom.sf(hits - 1, n, m, m)),
        "pressured among them": float(pressured[wrong].mean()) if m else 0.0,
        "pressured among the others": float(pressured[~wrong].mean()),
    }


def _check_recalls_against_chance(table: str, results: dict[str, Measured]) -> Result:
    """Return a table of recalls of maps by title, and checks that they beat chance.

    ``table``: title of the table; ``results``: maps with "heights" and "wrong".  Each
    map has two checks: recall above chance, and a probability below ``LIKELY``.
    """
    rows = [
        {"": title, **measure_recall_by_pressure(each)}
        for title, each in results.items()
    ]
    checks = []
    for row in rows:
        hits, chance = row["recall by the highest pressure"], row["chance"]
        likely = row["probability by chance"]
        which = row[""].removeprefix("2,000 ").removeprefix("300 ")
        checks += [
            Check(f"{which}: recall by pressure, against chance", hits, ">", chance),
            Check(f"{which}: probability of it by chance", likely, "<", LIKELY),
        ]
    return Result({table: rows}, checks)


def _minimise_and_measure(
    objective: AllPairs, start: Points, max_iter: int
) -> Measured:
    """Return the layout after minimisation, and the pressure ("heights") of its points.

    The minimiser is the spectral direction from ``start`` (N, 2).
    """
    *_, end = minimize_by_spectral_direction(objective, start, max_iter=max_iter)
    points = torch.from_numpy(end.y)
    return {
        "layout": end.y,
        "heights": compute_labels_and_pressure(objective, points, points[:1])[1],
    }


def _measure_twisted_roll(inputs: Inputs) -> Measured:
    """Return a minimised map of a twisted roll with pressure and wrong points.

    The map begins as the unrolled sheet with one half turned over.  Keys: "layout",
    "heights", "wrong" (the tenth of points defined in :func:`locate_misplaced_points`),
    and "labels", the positions along the roll.
    """
    n_points, max_iter = (200, 50) if inputs.quick else (1_000, 1_000)
    X, sheet = make_swiss_roll(n_points, inputs.random_state)
    start = (sheet - sheet.mean(axis=0)) / sheet[:, 0].std()
    start[start[:, 0] > 0, 1] *= -1  # the second half of the roll is turned over
    result = _minimise_and_measure(make_objective(X, "ssne"), start, max_iter)
    near = sheet[find_ten_nearest_on_map(result["layout"])]
    distances = np.linalg.norm(near - sheet[:, None], axis=2).mean(axis=1)
    strange = distances / knn_graph(sheet, _NEIGHBORS).distances.mean(axis=1)
    wrong = strange >= np.quantile(strange, 0.9)
    return {**result, "wrong": wrong, "labels": sheet[:, 0]}


def _measure_objects(inputs: Inputs) -> Measured:
    """Return a map of COIL-20 midway with pressure and wrong points.

    Midway is after 100 iterations, or 10 if quick.  Keys: "layout", "heights", "wrong",
    and "labels", the objects.
    """
    X, numbers = load_ten_objects(inputs, 150)
    start = sample_random_start(len(X), inputs.random_state)
    result = _minimise_and_measure(
        make_objective(X, "ee"), start, 10 if inputs.quick else 100
    )
    wrong = are_misplaced(result["layout"], numbers)
    return {**result, "wrong": wrong, "labels": numbers}


def locate_misplaced_points(inputs: Inputs, run_cached: CachedRunner) -> Result:
    """Locate misplaced points by pressure, on a twisted roll and on COIL-20 midway.

    Wrong place: on the roll, the tenth of the points whose neighbours on the map are
    the farthest on the sheet, relative to the nearest there; for COIL-20, all points
    most of whose neighbours on the map show another object. 10 neighbours each. Recall:
    as many points as are in the wrong place are taken, those of the highest pressure.
    Chance: the share of points in the wrong place.
    """
    maps = {
        "twisted roll, s-SNE": _measure_twisted_roll,
        "COIL-20 midway, EE": _measure_objects,
    }
    results = run_cached(lambda title: maps[title](inputs), maps)
    return _check_recalls_against_chance(
        "Points in the wrong place, and their pressure", results
    )


def locate_misplaced_digits(inputs: Inputs, run_cached: CachedRunner) -> Result:
    """Locate misplaced digits by pressure, after 200 iterations of t-SNE.

    In the wrong place are digits most of whose 10 neighbours on the map are other
    digits.  Recall and chance: see :func:`locate_misplaced_points`.
    """
    X, labels = load_digits(inputs, 300 if inputs.quick else 2_000)
    seed = inputs.random_state
    chosen: Any = {"approximation": "exact", "n_landmarks": 1, "max_iter": 200}
    settings = Settings(method="tsne", random_state=seed, **chosen)

    def tsne(_: str) -> Measured:
        """Return the map of t-SNE with the pressure of its points, and wrong points."""
        start = sample_random_start(len(X), seed).astype(np.float32)
        (end,) = iterate_snapshots_at(
            (build_entropic_edges(X, 30.0), start), settings, [200]
        )
        wrong, layout = are_misplaced(end.embedding, labels), end.embedding
        heights = end.pressure
        return {"layout": layout, "heights": heights, "labels": labels, "wrong": wrong}

    results = run_cached(tsne, [f"{len(X):,} digits, t-SNE"])
    return _check_recalls_against_chance(
        "Digits among other digits, and their pressure", results
    )


# --- Figures 5 and 7: spectral direction and pressured points ---------------------

SD, PP, PP_FROM_SD = "SD", "PP from random", "PP from SD"
PAPER = {
    ("EE, COIL-20", SD): (3.84, 0.18),
    ("EE, COIL-20", PP): (3.6, 0.14),
    ("EE, COIL-20", PP_FROM_SD): (3.61, 0.19),
    ("s-SNE, COIL-20", SD): (11.07, 0.03),
    ("s-SNE, COIL-20", PP): (11.03, 0.02),
    ("s-SNE, COIL-20", PP_FROM_SD): (11.05, 0.03),
}
"""Mean and standard deviation of the paper's last energies."""
PAPER_HOMOTOPY = 3.28


def run_minimiser(steps: Iterable[Any]) -> tuple[list[float], Points]:
    """Run a minimiser to its end; return each step's energy and the last layout."""
    energies = []
    for step in steps:
        energies.append(step.energy)
    return energies, step.y


def compare_minimisers(
    objective: AllPairs,
    start: Points,
    max_iter: int,
    spectral_direction: SpectralDirection | None = None,
    names: Sequence[str] = (PP_FROM_SD, PP),
) -> dict[str, list[float]]:
    """Return the energies of the spectral direction and of pressured points, by step.

    The keys are "SD", which is always run, and ``names``: the variants of pressured
    points, PP, to be run from the end of SD and from ``start``.  ``start`` (N, 2);
    ``max_iter``: limit of each run; ``spectral_direction``: computed by default.
    """
    spectral_direction = spectral_direction or SpectralDirection(objective.forces.edges)
    options: Any = {"max_iter": max_iter, "spectral_direction": spectral_direction}
    energies, end = run_minimiser(
        minimize_by_spectral_direction(objective, start, **options)
    )
    starts = {PP_FROM_SD: end, PP: start}
    runs = {
        n: minimize_by_pressured_points(objective, starts[n], **options) for n in names
    }
    return {SD: energies} | {n: run_minimiser(steps)[0] for n, steps in runs.items()}


def summarise_energies(energies: pd.DataFrame) -> pd.DataFrame:
    """Return a row of statistics of last energies for each optimiser.

    ``energies`` (runs x optimisers), of which ``SD`` must be one: "lower than SD"
    counts the runs that end lower, gains are relative to SD in the same run.
    """
    gains = 1 - energies.div(energies[SD], axis=0)
    rows = energies.agg(["mean", "std", "min", "median", "max"]).T
    rows["lower than SD"] = (energies.lt(energies[SD], axis=0)).sum()
    return rows.assign(**{"mean gain": gains.mean(), "least gain": gains.min()})


def compare_optimisers(inputs: Inputs, run_cached: CachedRunner) -> Result:
    """Compare spectral direction, pressured points and homotopy.

    The paper leaves open how w+ were computed, how large the pictures were and how
    random starts were sampled. Here pictures have 32 x 32 pixels, the standard
    deviation of starts is 0.1, and the perplexity is ``COIL_PERPLEXITY`` over three
    times as many neighbours. For MNIST digits the sum is over all pairs; the paper uses
    more digits, by the fast multipole method.
    """
    n_runs, n_digits, max_iter = (2, 200, 60) if inputs.quick else (20, 5_000, 2_000)
    n_lambdas, seed = 5 if inputs.quick else 50, inputs.random_state
    X, _ = load_ten_objects(inputs, 120)
    tasks = {
        "EE, COIL-20": (X, "ee", n_runs, COIL_PERPLEXITY),
        "s-SNE, COIL-20": (X, "ssne", n_runs, COIL_PERPLEXITY),
        "EE, MNIST": (load_digits(inputs, n_digits)[0], "ee", 1, PERPLEXITY),
    }

    def compute(title: str, run: int) -> dict[str, list[float]]:
        """Return the energies of a run of a task, see :func:`compare_minimisers`."""
        rows, method, _, perplexity = tasks[title]
        start = sample_random_start(len(rows), seed + run)
        objective = make_objective(rows, method, perplexity=perplexity)
        return compare_minimisers(objective, start, max_iter)

    def by_homotopy(_: str) -> float:
        """Return the last energy of the homotopy for EE of COIL-20."""
        objective = make_objective(X, "ee", perplexity=COIL_PERPLEXITY)
        start = sample_random_start(len(X), seed)
        steps = minimize_by_homotopy(objective, start, n_steps=n_lambdas)
        return run_minimiser(steps)[0][-1]

    keys = [(title, run) for title, task in tasks.items() for run in range(task[2])]
    results = run_cached(compute, keys)
    least = run_cached(by_homotopy, ["homotopy"])["homotopy"]
    runs = pd.DataFrame(results).T.rename_axis(["", "run"])[[SD, PP, PP_FROM_SD]]
    energies, n_iter = runs.map(lambda run: run[-1]), runs.map(len) - 1
    more = {"iterations of SD": n_iter[SD], "of PP after it": n_iter[PP_FROM_SD]}
    ends = pd.concat(
        {title: summarise_energies(energies.loc[title]) for title in tasks}
    )
    paper = ["{} ± {}".format(*PAPER[x]) if x in PAPER else "-" for x in ends.index]
    ends.insert(0, "paper", paper)
    checks = [
        Check(
            f"{title}: {name}, mean, from the paper's in its standard deviations",
            abs(ends.loc[(title, name), "mean"] - mean) / deviation,
            "<=",
            1,
        )
        for (title, name), (mean, deviation) in PAPER.items()
    ]
    for title in ("EE, COIL-20", "s-SNE, COIL-20"):
        gains = 1 - energies.loc[title, PP_FROM_SD] / energies.loc[title, SD]
        asked = f"{title}: gain of PP from SD, lower end of the mean's 95 % interval"
        low = stats.t.interval(0.95, len(gains) - 1, gains.mean(), stats.sem(gains))[0]
        checks.append(Check(asked, float(low), ">", 0))
    asked = "EE, COIL-20: homotopy, relative distance from the paper's energy"
    checks.append(Check(asked, abs(least / PAPER_HOMOTOPY - 1), "<=", 0.03))
    return Result(
        {
            "Energy at the end": ends.rename_axis(["", "optimiser"]),
            "Each run": energies.assign(**more),
            "Homotopy": [
                {"": "EE, COIL-20", "paper": str(PAPER_HOMOTOPY), "least": least}
            ],
        },
        checks,
        {
            f"{title}: energies": pd.DataFrame(
                {name: pd.Series(values) for name, values in results[title, 0].items()}
            ).rename_axis("iteration")
            for title in tasks
        },
    )


def compare_random_starts(inputs: Inputs, run_cached: CachedRunner) -> Result:
    """Compare spectral direction and pressured points from many random starts.

    The paper uses 5,000 word2vec vectors, this reproduction GloVe vectors of 100
    dimensions.
    """
    n_starts, n_words, max_iter = (4, 150, 60) if inputs.quick else (100, 5_000, 3_000)
    X = inputs.load("words").X[:n_words]
    objective = cache(lambda: make_objective(X, "ee"))
    spectral_direction = cache(lambda: SpectralDirection(objective().forces.edges))

    def compute(seed: int) -> dict[str, list[float]]:
        """Return the energies of SD, and of PP from SD, from the start of a seed."""
        start = sample_random_start(len(X), seed)
        return compare_minimisers(
            objective(), start, max_iter, spectral_direction(), [PP_FROM_SD]
        )

    first = inputs.random_state
    runs = pd.DataFrame(run_cached(compute, range(first, first + n_starts))).T
    energies, n_iter = runs.map(lambda run: run[-1]), runs.map(len) - 1
    rows = summarise_energies(energies).assign(iterations=n_iter.mean())
    # The ranges were read off the histogram in Figure 7.
    rows.insert(0, "paper, range", ["6.60 to 6.77", "6.57 to 6.68"])
    title = f"Energies of {n_starts} starts, {n_words:,} words"
    asked = (
        "starts from which PP ends higher than the SD it began from (by more "
        "than 1e-5, where minimisers stop)"
    )
    higher = int((energies[PP_FROM_SD] > energies[SD] + 1e-5).sum())
    return Result(
        {title: rows.rename_axis("optimiser")},
        [Check(asked, higher, "=", 0)],
        {title: energies.sort_values(SD).reset_index(drop=True).rename_axis("start")},
    )
