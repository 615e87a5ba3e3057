"""Does UMAP go the way of two-kernel LLE?  (paper 3, Conjecture 1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from napari_embedding_game.core.energy.methods import get_method
from napari_embedding_game.core.energy.objective import Objective, make_objective
from napari_embedding_game.core.energy.pair_sums import Forces, make_forces
from napari_embedding_game.core.graph.affinities import edges
from napari_embedding_game.core.graph.neighbors import knn_graph
from napari_embedding_game.core.graph.start import start_layout
from napari_embedding_game.core.settings import Settings

from .fenchel_roll import roll
from .frame import Check, Inputs, Parts, Result, Table
from .runs import Map, Placed, draw_rows, looks

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DATA = ("mnist", "cells", "words", "roll")
RUNS = {"umap": "UMAP", "two_kernel_lle": "two-kernel LLE"}
"""Methods whose maps the two gradients are compared on."""
N_POINTS = 2_000
N_NEIGHBORS = 15
N_ITERATIONS = 500
AT = (*range(0, 50, 5), *range(50, N_ITERATIONS + 1, 25))
_FULL = N_POINTS, DATA, AT
_QUICK = 300, ("mnist", "roll"), AT[:15]
NEGATIVE_SAMPLES = 5
"""umap-learn's default: partners that a point flees each time an edge pulls."""
_COLORS = dict(
    zip(DATA, ("tab:blue", "tab:orange", "tab:green", "tab:red"), strict=True)
)
_LINES = {"umap": "-", "two_kernel_lle": "--"}


def rows_of(inputs: Inputs, name: str, n_points: int) -> NDArray[np.float32]:
    """Return random rows of a data set."""
    if name == "roll":
        return roll(n_points, inputs.random_state)[0].astype(np.float32)
    X = inputs.load(name).X
    return np.asarray(X[draw_rows(X.shape[0], n_points, inputs.random_state)])


@dataclass(frozen=True, slots=True)
class Pair:
    """The two gradients at the same points."""

    umap: Forces
    degree: Tensor
    lle: Objective

    @classmethod
    def of(cls, fuzzy: Any, signed: Any, seed: int = 0) -> Pair:
        """Take UMAP's memberships and the signed weights of two-kernel LLE."""
        cpu = torch.device("cpu")
        weights = torch.from_numpy(np.asarray(fuzzy.matrix().sum(axis=1)))
        umap, lle = get_method("umap"), get_method("two_kernel_lle")
        forces = make_forces(signed, cpu, None, lle.attraction, lle.kernel)
        return cls(
            umap=make_forces(fuzzy, cpu, None, umap.attraction, umap.kernel),
            degree=weights.float(),
            lle=make_objective("exact", forces, lle.lambda_scale(signed), 1, seed),
        )

    def expected(self, y: Tensor) -> Tensor:
        """Return minus what an epoch of UMAP is expected to move the points by.

        Up to a factor.  Every directed edge is drawn with the chance w_ij and
        moves both of its ends; its head then flees 5 random points, which stay
        where they are:

            2 sum_j w_ij grad f_ij  +  5 deg_i / N  sum_k grad k_ik
        """
        _, repulsion = self.umap.all_pairs(y)  # 2 sum_k grad k_ik
        share = NEGATIVE_SAMPLES / (2 * len(y))
        return 2 * self.umap.attract(y) + share * self.degree * repulsion

    def cosine(self, layout: Map) -> tuple[float, float]:
        """Return the inner product of the gradients, plain and of unit lengths."""
        y = torch.from_numpy(layout)
        _, lle, _ = self.lle.evaluate(y, y[:1], False)
        umap = self.expected(y)
        product = float((umap * lle).sum())
        lengths = float(umap.norm() * lle.norm())
        return product, product / lengths if lengths > 0 else 0.0


def along(
    inputs: Inputs, name: str, n_points: int, at: Sequence[int], method: str
) -> dict[str, Any]:
    """Return the inner products at ``at`` along one run from a random start."""
    X = rows_of(inputs, name, n_points)
    graph = knn_graph(X, N_NEIGHBORS, random_state=inputs.random_state)
    weighted = {each: edges(graph, each, X=X) for each in ("fuzzy", "lle")}
    pair = Pair.of(weighted["fuzzy"], weighted["lle"], inputs.random_state)
    own = weighted[get_method(method).affinity]
    layout = start_layout(own, X, 2, "random", inputs.random_state)
    placed = Placed(X, np.zeros(len(X)), own, layout)
    settings = Settings(method=method, max_iter=at[-1])
    found = [
        pair.cosine(snapshot.embedding)
        for snapshot in looks(placed, settings, at, inputs.random_state)
    ]
    return {
        "product": [product for product, _ in found],
        "cosine": [cosine for _, cosine in found],
    }


def run(inputs: Inputs, parts: Parts) -> Result:
    n_points, names, at = _QUICK if inputs.quick else _FULL
    parts.expect(len(names) * len(RUNS))
    found = {
        (name, method): parts(
            f"{name} {method}", partial(along, inputs, name, n_points, at, method)
        )
        for name in names
        for method in RUNS
    }
    rows = [_row(name, method, each) for (name, method), each in found.items()]
    title = (
        f"Inner product of unit gradients along runs of {at[-1]} iterations, "
        f"{n_points:,} rows, random start"
    )
    return Result(
        tables=[Table(title, rows)],
        checks=_checks(found),
        draw=partial(_draw, found, at),
        notes=_notes(at),
        inches=(9.0, 5.5),
    )


def _notes(at: Sequence[int]) -> list[str]:
    thirds = round(3 * sum(iteration < 50 for iteration in at) / len(at))
    share = {1: "a third", 2: "two thirds"}[thirds]
    return [
        "The paper conjectures that the mean is above 0 and reports no number. Both "
        "gradients are scaled to length 1, so 1 is the same way, 0 across, -1 against.",
        "UMAP's expected gradient: 2 sum_j w_ij grad f_ij + 5 deg_i / N sum_k grad "
        "k_ik, as umap-learn draws edges and negative samples.",
        f"Means are over {len(at)} looks, {share} of them in the first 50 iterations, "
        "where the repulsion that is played with has only begun to grow; the gradients "
        "compared have it in full.",
        "The gradient of Lemma 4 takes the kernel 1 / (1 + d^2), UMAP its own with the "
        "a and b of min_dist = 0.1.",
    ]


def _row(name: str, method: str, each: dict[str, Any]) -> dict[str, Any]:
    cosine = np.array(each["cosine"])
    return {
        "data": name,
        "along a run of": RUNS[method],
        "mean": round(float(cosine.mean()), 3),
        "standard deviation": round(float(cosine.std()), 3),
        "least": round(float(cosine.min()), 3),
        "most": round(float(cosine.max()), 3),
        "last": round(float(cosine[-1]), 3),
        "share above 0": round(float((cosine > 0).mean()), 2),
    }


def _checks(found: dict[tuple[str, str], Any]) -> list[Check]:
    means = {key: float(np.mean(each["cosine"])) for key, each in found.items()}
    spread = float(np.std(list(means.values())))
    worst = min(means, key=means.__getitem__)
    total = float(np.mean(list(means.values())))
    return [
        Check(
            "Conjecture 1: the mean inner product over data and runs is above 0",
            f"{total:.3f} with a standard deviation of {spread:.3f} between runs",
            total > 0,
        ),
        Check(
            "it is above 0 along every run",
            f"least {means[worst]:.3f}, {worst[0]}, run of {RUNS[worst[1]]}",
            means[worst] > 0,
        ),
    ]


def _draw(found: dict[tuple[str, str], Any], at: Sequence[int], figure: Figure) -> None:
    axes = figure.add_subplot()
    for (name, method), each in found.items():
        axes.plot(
            at,
            each["cosine"],
            _LINES[method],
            color=_COLORS[name],
            label=f"{name}, {RUNS[method]}",
        )
    axes.axhline(0, color="grey", linewidth=0.8)
    axes.set_xlabel("iteration")
    axes.set_ylabel("inner product of unit gradients")
    axes.legend(frameon=False, ncols=2, fontsize=8)
