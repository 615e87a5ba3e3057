"""Digits among other digits, found by their pressure (paper 4, Figure 4)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.dynamics.play import play
from napari_embedding_game.core.graph.affinities import edges
from napari_embedding_game.core.graph.neighbors import knn_graph
from napari_embedding_game.core.settings import Settings, n_searched

from .frame import Inputs, Parts, Result, Table
from .pressure_fig3 import better_than_chance
from .pressure_parts import among_others, random_start, recall

if TYPE_CHECKING:
    from matplotlib.figure import Figure

N_DIGITS = 2000
N_ITER = 200
PERPLEXITY = 30.0
_SHOWN = 16


def tsne(X: NDArray[Any], seed: int) -> dict[str, Any]:
    """Return the map of t-SNE after 200 iterations, and the pressure on it."""
    graph = knn_graph(X, n_searched("entropic", 0, PERPLEXITY, len(X)))
    perplexity = min(PERPLEXITY, graph.n_neighbors / 3)
    found = edges(graph, "entropic", perplexity=perplexity)
    settings = Settings(
        method="tsne", approximation="exact", n_landmarks=1, max_iter=N_ITER
    )
    start = random_start(len(X), seed)
    *_, end = play(found, start, settings, device="cpu", diagnose=False)
    return {"y": end.embedding, "heights": end.pressure}


def run(inputs: Inputs, parts: Parts) -> Result:
    digits = inputs.load("mnist")
    n = min(300 if inputs.quick else N_DIGITS, len(digits.X))
    rng = np.random.default_rng(inputs.random_state)
    chosen = rng.choice(len(digits.X), n, replace=False)
    labels = np.asarray(digits.obs["digit"]).astype(int)[chosen]
    X = digits.X[chosen]
    parts.expect(1)
    found = parts("t-SNE", partial(tsne, X, inputs.random_state))
    wrong = among_others(found["y"], labels)
    row = {"": f"{n:,} digits, t-SNE", **recall(found["heights"], wrong)}
    return Result(
        tables=[Table("Digits among other digits, and their pressure", [row])],
        checks=[better_than_chance("digits, t-SNE", row)],
        draw=partial(_draw, found, wrong, labels, X),
        notes=_NOTES,
        inches=(15.0, 8.0),
    )


_NOTES = [
    "The paper shows a picture and no numbers, and does not say how many digits.",
    "Among others: most of a digit's 10 neighbours on the map have another label. "
    "Recall and chance: as for pressure-fig3.",
    "Shown at the side are digits among others: above those of the highest pressure, "
    "framed in red, below those of none, framed in green.",
]


def _draw(
    found: dict[str, Any],
    wrong: NDArray[np.bool_],
    labels: NDArray[Any],
    X: NDArray[Any],
    figure: Figure,
) -> None:
    y, heights = found["y"], found["heights"]
    sides: Any = figure.subfigures(1, 2, width_ratios=(3, 2))
    left, right = sides
    axes = left.subplots()
    axes.scatter(*y.T, s=4, c=labels, cmap="tab10")
    order = np.flatnonzero(wrong)[np.argsort(-heights[wrong], kind="stable")]
    shown = {
        "tab:red": order[heights[order] > 0][:_SHOWN],
        "tab:green": order[heights[order] == 0][:_SHOWN],
    }
    for color, rows in shown.items():
        axes.plot(*y[rows].T, "s", markerfacecolor="none", color=color, markersize=7)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_title("Digits among others: red pressured, green not")
    grid = right.subplots(2 * _SHOWN // 4, 4, squeeze=False)
    side = round(float(np.sqrt(X.shape[1])))
    for half, (color, rows) in enumerate(shown.items()):
        for place in range(_SHOWN):
            cell = grid[half * _SHOWN // 4 + place // 4, place % 4]
            cell.set_xticks([])
            cell.set_yticks([])
            cell.set_visible(place < len(rows))
            if place < len(rows):
                cell.imshow(X[rows[place]].reshape(side, side), cmap="gray_r")
                for edge in cell.spines.values():
                    edge.set(color=color, linewidth=2)
