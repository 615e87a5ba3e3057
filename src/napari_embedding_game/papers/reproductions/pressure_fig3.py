"""Points in the wrong place, found by their pressure (paper 4, Figure 3)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.energy.objective import Objective
from napari_embedding_game.core.energy.pressure import pressure
from napari_embedding_game.core.graph.neighbors import knn_graph
from napari_embedding_game.papers.minimizers import spectral_direction

from .fenchel_roll import roll
from .frame import Check, Inputs, Parts, Result, Table
from .pressure_fig5 import ten_objects
from .pressure_parts import (
    among_others,
    nearest_on_map,
    objective_of,
    random_start,
    recall,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

N_ROLL = 1000
PERPLEXITY = 20.0
MIDWAY = 100
"""Iterations of EE in the paper."""
MAX_ITER = 1000
LIKELY = 0.01
"""Probability under which a recall is called better than chance."""
_NEIGHBORS = 10
_MISPLACED = 0.1
"""Share of a roll's points that are called misplaced: the worst tenth."""
Points = NDArray[Any]


def twisted(sheet: Points) -> Points:
    """Return a start with the second half of the sheet turned over, (N, 2)."""
    start: Points = (sheet - sheet.mean(axis=0)) / sheet[:, 0].std()
    start[start[:, 0] > 0, 1] *= -1
    return start


def strangeness(y: Points, sheet: Points) -> Points:
    """Return how far a point's neighbours on the map are from it on the sheet, (N,)."""
    near = nearest_on_map(y, _NEIGHBORS)
    apart = np.linalg.norm(sheet[near] - sheet[:, None], axis=2).mean(axis=1)
    least = knn_graph(sheet, _NEIGHBORS).distances.mean(axis=1)
    ratios: Points = apart / least
    return ratios


def _heights(objective: Objective, y: Points) -> Points:
    import torch

    points = torch.from_numpy(np.ascontiguousarray(y))
    return pressure(objective, points, points[:1])[1]


def _minimised(objective: Objective, start: Points, max_iter: int) -> dict[str, Any]:
    *_, end = spectral_direction(objective, start, max_iter=max_iter)
    heights = _heights(objective, end.y)
    return {"y": end.y, "heights": heights, "iterations": end.iteration}


def _roll(n_points: int, max_iter: int, seed: int) -> dict[str, Any]:
    X, sheet = roll(n_points, seed)
    found = _minimised(objective_of(X, "ssne", PERPLEXITY), twisted(sheet), max_iter)
    strange = strangeness(found["y"], sheet)
    wrong = strange >= np.quantile(strange, 1 - _MISPLACED)
    return {**found, "wrong": wrong, "color": sheet[:, 0]}


def _objects(inputs: Inputs) -> dict[str, Any]:
    X, numbers = ten_objects(inputs)
    if inputs.quick:
        chosen = np.random.default_rng(inputs.random_state).permutation(len(X))[:150]
        X, numbers = X[chosen], numbers[chosen]
    start = random_start(len(X), inputs.random_state)
    max_iter = 10 if inputs.quick else MIDWAY
    found = _minimised(objective_of(X, "ee", PERPLEXITY), start, max_iter)
    wrong = among_others(found["y"], numbers)
    return {**found, "wrong": wrong, "color": numbers.astype(float)}


def run(inputs: Inputs, parts: Parts) -> Result:
    n_points, max_iter = (200, 50) if inputs.quick else (N_ROLL, MAX_ITER)
    parts.expect(2)
    found = {
        "twisted roll, s-SNE": parts(
            "roll", partial(_roll, n_points, max_iter, inputs.random_state)
        ),
        "COIL-20 midway, EE": parts("objects", partial(_objects, inputs)),
    }
    rows = [
        {
            "": title,
            "iterations": each["iterations"],
            **recall(each["heights"], each["wrong"]),
        }
        for title, each in found.items()
    ]
    return Result(
        tables=[Table("Points in the wrong place, and their pressure", rows)],
        checks=[_check(row) for row in rows],
        draw=partial(_draw, found),
        notes=_NOTES,
        inches=(13.0, 6.0),
    )


_NOTES = [
    "The paper shows two pictures and no numbers.",
    "Wrong place: on the roll the tenth of the points whose neighbours on the map are "
    "the farthest on the sheet, for how far the nearest there are; of COIL-20 all "
    "points of which most neighbours on the map are of another object. "
    f"{_NEIGHBORS} neighbours each.",
    "Recall: as many points as are in the wrong place are taken, those of the highest "
    "pressure. Chance: the share of points in the wrong place, which is what points "
    "taken at random would find.",
    "The start of the roll is the flat sheet with one half turned over.",
]


def _check(row: dict[str, Any]) -> Check:
    return better_than_chance(row[""], row)


def better_than_chance(title: str, row: dict[str, Any]) -> Check:
    """Ask whether pressure finds what is in the wrong place."""
    found, chance = row["recall by the highest pressure"], row["chance"]
    return Check(
        f"{title}: recall by pressure above chance (probability below {LIKELY})",
        f"{found:.3f} against {chance:.3f}, p = {row['probability by chance']:.1g}",
        found > chance and row["probability by chance"] < LIKELY,
    )


def draw_pressure(axes: Axes, each: dict[str, Any], color_map: str) -> None:
    """Draw a map with points as large as their pressure."""
    heights = np.asarray(each["heights"])
    size = 4 + 60 * np.minimum(heights / max(np.quantile(heights, 0.99), 1e-9), 1)
    x, y = np.asarray(each["y"]).T
    axes.scatter(x, y, s=size, c=each["color"], cmap=color_map)
    wrong = each["wrong"]
    axes.plot(x[wrong], y[wrong], "kx", markersize=3, label="in the wrong place")
    axes.set_aspect("equal")
    axes.set_xticks([])
    axes.set_yticks([])
    axes.legend(frameon=False, loc="upper left")


def _draw(found: dict[str, dict[str, Any]], figure: Figure) -> None:
    both = figure.subplots(1, 2)
    for axes, (title, each), colors in zip(
        both, found.items(), ("Spectral", "tab10"), strict=True
    ):
        draw_pressure(axes, each, colors)
        axes.set_title(f"{title}; larger: more pressure")
