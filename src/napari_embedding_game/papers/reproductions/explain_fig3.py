"""Two-kernel PCA, t-SNE, UMAP and two-kernel LLE side by side (paper 3, Figure 3)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from napari_embedding_game.core.dynamics.alarms import occupancy
from napari_embedding_game.core.energy.methods import Approximation, get_method
from napari_embedding_game.core.graph.neighbors import knn_graph
from napari_embedding_game.core.settings import Settings
from napari_embedding_game.papers.reproductions.metrics import (
    knn_accuracy,
    neighbor_recall,
)

from .frame import Check, Inputs, Parts, Result, Table
from .runs import draw_map, draw_rows, labels_of, looks, place

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Begin = Literal["random", "spectral"]
METHODS = ("two_kernel_pca", "tsne", "umap", "two_kernel_lle")
APPROXIMATIONS: dict[str, Approximation] = {
    "two_kernel_pca": "exact",
    "tsne": "landmarks",
    "umap": "sampled_edges",
    "two_kernel_lle": "landmarks",
}
"""In the order of the paper's figure."""
BEGINS: tuple[Begin, ...] = ("random", "spectral")
N_POINTS = 5_000
N_ITERATIONS = 500
N_NEIGHBORS = 15
NEAR = 0.03
CLEARLY = 2 * NEAR
"""How far below is clearly below."""
Found = dict[tuple[str, Begin], dict[str, Any]]


def embed(
    inputs: Inputs, n_points: int, n_iter: int, method: str, begin: Begin
) -> dict[str, Any]:
    """Play a method from a start and return its map and how good it is."""
    digits = inputs.load("mnist")
    rows = draw_rows(len(digits.X), n_points, inputs.random_state)
    X, labels = digits.X[rows], labels_of(digits)[rows]
    start = Settings(
        affinity=get_method(method).affinity,
        n_neighbors=N_NEIGHBORS,
        init=begin,
        random_state=inputs.random_state,
    )
    placed = place(X, labels, start)
    settings = Settings(
        method=method, approximation=APPROXIMATIONS[method], max_iter=n_iter
    )
    (end,) = looks(placed, settings, [n_iter], inputs.random_state)
    return {
        "accuracy": knn_accuracy(end.embedding, labels),
        "recall": neighbor_recall(knn_graph(X, N_NEIGHBORS).indices, end.embedding),
        "occupancy": occupancy(end.embedding),
        "layout": end.embedding,
        "labels": np.unique(labels, return_inverse=True)[1],
    }


def run(inputs: Inputs, parts: Parts) -> Result:
    n_points, n_iter = (300, 200) if inputs.quick else (N_POINTS, N_ITERATIONS)
    parts.expect(len(METHODS) * len(BEGINS))
    found: Found = {
        (method, begin): parts(
            f"{method} {begin}", partial(embed, inputs, n_points, n_iter, method, begin)
        )
        for begin in BEGINS
        for method in METHODS
    }
    rows = [_row(method, begin, each) for (method, begin), each in found.items()]
    title = f"{n_points:,} digits, {n_iter} iterations each"
    return Result(
        tables=[Table(title, rows)],
        checks=_checks(found),
        draw=partial(_draw, found),
        notes=_NOTES,
        inches=(14.0, 7.5),
    )


_NOTES = [
    "The paper shows pictures and no numbers; it begins at random and goes down the "
    "plain gradient, and takes t-SNE and UMAP from their libraries. Here all four are "
    "members of the family with the same optimiser and number of iterations, and each "
    "finds its repulsion in its own way (last column).",
    "Two-kernel PCA: K_X are UMAP's memberships along 15 neighbours, 0 for all other "
    "pairs, and the gradient runs over all pairs.",
    "What is clearly below, the paper leaves open; twice what two-kernel LLE may "
    "differ by was set when the figures were known.",
    f"kNN accuracy: {N_NEIGHBORS} neighbours on the map, 10-fold. Recall: share of the "
    f"{N_NEIGHBORS} nearest digits that are nearest on the map.",
]


def _row(method: str, begin: Begin, each: dict[str, Any]) -> dict[str, Any]:
    return {
        "start": begin,
        "method": get_method(method).title,
        "kNN accuracy": round(each["accuracy"], 4),
        "recall": round(each["recall"], 4),
        "occupancy": round(each["occupancy"], 3),
        "repulsion": APPROXIMATIONS[method].replace("_", " "),
    }


def _checks(found: Found) -> list[Check]:
    near = [
        Check(
            f"{begin} start: kNN accuracy of two-kernel LLE within {NEAR} of UMAP",
            f"{_accuracy(found, 'two_kernel_lle', begin):.4f} against "
            f"{_accuracy(found, 'umap', begin):.4f}",
            abs(
                _accuracy(found, "two_kernel_lle", begin)
                - _accuracy(found, "umap", begin)
            )
            <= NEAR,
        )
        for begin in BEGINS
    ]
    pca, umap = (
        _accuracy(found, each, "random") for each in ("two_kernel_pca", "umap")
    )
    below = Check(
        f"random start, as in the paper: two-kernel PCA at least {CLEARLY} below UMAP",
        f"{pca:.4f} against {umap:.4f}",
        pca <= umap - CLEARLY,
    )
    return [*near, below]


def _accuracy(found: Found, method: str, begin: Begin) -> float:
    return float(found[method, begin]["accuracy"])


def _draw(found: Found, figure: Figure) -> None:
    grid = figure.subplots(len(BEGINS), len(METHODS))
    for row, begin in zip(grid, BEGINS, strict=True):
        for axes, method in zip(row, METHODS, strict=True):
            each = found[method, begin]
            title = f"{get_method(method).title}, {begin}: {each['accuracy']:.3f}"
            draw_map(axes, each["layout"], each["labels"], title=title)
