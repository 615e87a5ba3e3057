"""LE, ALE and VRLE on a roll (paper 2, Figures 3 to 6 and Remark 4.2)."""

from __future__ import annotations

from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from napari_embedding_game.core.graph.neighbors import knn_graph
from napari_embedding_game.papers import eigenmaps
from napari_embedding_game.papers.reproductions.metrics import neighbor_recall

from .frame import Check, Inputs, Parts, Result, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WEIGHTS = {
    "LE": eigenmaps.heat_weights,
    "ALE": eigenmaps.averaged_weights,
    "VRLE": eigenmaps.variable_weights,
}
_FIGURES = {"LE": "Figure 4", "ALE": "Figure 5", "VRLE": "Figure 6"}
_COLORS = {"LE": "tab:blue", "ALE": "tab:orange", "VRLE": "tab:green"}
SIZES = (5, 7, 10, 14, 20, 28, 40, 56, 80)
DRAWN = (5, 10, 20, 40, 80)
_RECALL_NEIGHBORS = 15
Points = NDArray[np.float64]


def roll(n_points: int, random_state: int) -> tuple[Points, Points]:
    """Return the rolled sheet, (N, 3), and where each point is on it, (N, 2).

    The first coordinate on the sheet is the length along the roll from its inner
    edge, the second the height.
    """
    rng = np.random.default_rng(random_state)
    angle = rng.uniform(1.5 * np.pi, 4.5 * np.pi, n_points)
    height = rng.uniform(0, 10, n_points)
    X = np.column_stack([angle * np.cos(angle), angle * np.sin(angle), height])
    along = (angle * np.sqrt(1 + angle**2) + np.arcsinh(angle)) / 2
    return X, np.column_stack([along - along.min(), height])


def unroll(X: Points, sheet: Points, name: str, t: int, seed: int) -> dict[str, Any]:
    """Return the map for ``t`` neighbours, and how good it is."""
    from scipy.stats import spearmanr

    weights = WEIGHTS[name](X, t)
    layout = eigenmaps.eigenmap(weights, X, 2, seed)
    wanted = knn_graph(sheet, _RECALL_NEIGHBORS).indices
    orders = [abs(spearmanr(column, sheet[:, 0]).statistic) for column in layout.T]
    return {
        "layout": layout.astype(np.float32),
        "parts of the graph": int(connected_components(weights)[0]),
        "neighbours kept": neighbor_recall(wanted, layout),
        "order along the roll": float(max(orders)),
    }


def sensitivity(layouts: list[Points]) -> float:
    """Return the mean Procrustes distance of all pairs of maps, 0 (same) to 1."""
    from scipy.spatial import procrustes

    pairs = [procrustes(a, b)[2] for a, b in combinations(layouts, 2)]
    return float(np.mean(pairs)) if pairs else 0.0


def run(inputs: Inputs, parts: Parts) -> Result:
    n_points, sizes = (300, SIZES[:5]) if inputs.quick else (2000, SIZES)
    X, sheet = roll(n_points, inputs.random_state)
    parts.expect(len(WEIGHTS) * len(sizes))
    found = {
        name: {
            t: parts(
                f"{name} t={t}", partial(unroll, X, sheet, name, t, inputs.random_state)
            )
            for t in sizes
        }
        for name in WEIGHTS
    }
    summary = [_summary(name, each) for name, each in found.items()]
    rows = [
        {
            "t": t,
            "method": name,
            **{key: value for key, value in found[name][t].items() if key != "layout"},
        }
        for t in sizes
        for name in WEIGHTS
    ]
    return Result(
        tables=[
            Table("Over all t", summary),
            Table("For each number of neighbours t", rows),
        ],
        checks=_checks(summary),
        draw=partial(_draw, X, sheet, found),
        notes=_NOTES,
        inches=(16.0, 9.0),
    )


_NOTES = [
    "The paper shows pictures and no numbers. Sensitivity is the mean Procrustes "
    "distance between the maps for all pairs of t (0: the same but for size, turning "
    "and mirroring; 1: nothing in common).",
    f"Neighbours kept: of the {_RECALL_NEIGHBORS} nearest on the unrolled sheet. Order "
    "along the roll: Spearman's correlation of the better of the two coordinates with "
    "the length along the roll, 1 is best.",
    "Where the graph falls into parts, each part has a map of its own and the parts "
    "are set side by side. Nearly all of the sensitivity of ALE and VRLE comes from "
    "that: mutual neighbours, and one neighbour in sparse places, leave parts "
    "unconnected when t is small.",
    "The paper does not say what sigma is (LE); here it is the root mean square of the "
    "distances to the t neighbours, so it grows with t.",
]


def _summary(name: str, found: dict[int, dict[str, Any]]) -> dict[str, Any]:
    kept = [each["neighbours kept"] for each in found.values()]
    order = [each["order along the roll"] for each in found.values()]
    whole = [each for each in found.values() if each["parts of the graph"] == 1]
    return {
        "method": name,
        "paper": _FIGURES[name],
        "sensitivity to t": sensitivity([each["layout"] for each in found.values()]),
        "where the graph is whole": sensitivity([each["layout"] for each in whole]),
        "t with a whole graph": f"{len(whole)} of {len(found)}",
        "neighbours kept": f"{min(kept):.3f} to {max(kept):.3f}",
        "order along the roll": f"{min(order):.3f} to {max(order):.3f}",
        "most parts": max(each["parts of the graph"] for each in found.values()),
    }


def _checks(summary: list[dict[str, Any]]) -> list[Check]:
    value = {row["method"]: row["sensitivity to t"] for row in summary}
    return [
        Check(
            f"Remark 4.2: {name} is more sensitive to t than LE",
            f"{value[name]:.3f} against {value['LE']:.3f}",
            value[name] > value["LE"],
        )
        for name in ("ALE", "VRLE")
    ]


def _draw(
    X: Points, sheet: Points, found: dict[str, dict[int, Any]], figure: Figure
) -> None:
    drawn = [t for t in DRAWN if t in found["LE"]]
    grid = figure.add_gridspec(len(WEIGHTS), len(drawn) + 1)
    start = figure.add_subplot(grid[0, 0], projection="3d")
    start.scatter(*X.T, c=sheet[:, 0], s=2, cmap="Spectral")
    start.view_init(elev=60)
    start.set_title("Figure 3: the roll")
    start.set_axis_off()
    _curves(figure.add_subplot(grid[1, 0]), found, "neighbours kept")
    _curves(figure.add_subplot(grid[2, 0]), found, "order along the roll")
    for row, name in enumerate(WEIGHTS):
        for column, t in enumerate(drawn, start=1):
            axes = figure.add_subplot(grid[row, column])
            x, y = found[name][t]["layout"].T
            axes.scatter(x, y, c=sheet[:, 0], s=2, cmap="Spectral")
            axes.set_title(f"{_FIGURES[name]}: {name}, t = {t}")
            axes.set_xticks([])
            axes.set_yticks([])


def _curves(axes: Any, found: dict[str, dict[int, Any]], what: str) -> None:
    for name, each in found.items():
        values = [one[what] for one in each.values()]
        axes.plot(list(each), values, "o-", color=_COLORS[name], label=name)
    axes.set_xscale("log")
    axes.set_xticks(list(found["LE"]), map(str, found["LE"]), minor=False)
    axes.minorticks_off()
    axes.set_xlabel("neighbours t")
    axes.set_title(what)
    axes.legend(frameon=False)
