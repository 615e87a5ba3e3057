"""PCA by gradient descent from a random start (paper 3, Figure 2 and Lemma 3)."""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.papers.pca import (
    low_rank_rows,
    principal_gradient,
    principal_steps,
)

from .frame import Check, Inputs, Parts, Result, Table
from .runs import draw_map, draw_rows, labels_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

AT = (0, 10, 30, 100, 200, 300, 400, 500)
"""Epochs; the paper shows 0, 100 and 500."""
RANKS = (None, 100, 10, 3)
"""Of the approximated G_X; None is the full gradient."""
N_POINTS = 1_000
MOST_ERROR = 1e-4
Layout = NDArray[np.float64]


def components(X: Layout) -> Layout:
    """Return the first two principal components of each row, to the last digit."""
    left, singular, _ = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    first: Layout = left[:, :2] * singular[:2]
    return first


def distance(layout: Layout, wanted: Layout) -> float:
    """Return how far a layout is from the wanted one, up to an orthogonal map.

    Root mean square distance of the points, relative to that of the wanted ones
    from their mean, which is 0.
    """
    from scipy.linalg import orthogonal_procrustes

    turn, _ = orthogonal_procrustes(layout, wanted)
    return float(np.linalg.norm(layout @ turn - wanted) / np.linalg.norm(wanted))


def descend(X: Layout, rank: int | None, at: tuple[int, ...], seed: int) -> Any:
    """Return distances from PCA, layouts, and how the two gradients agree."""
    wanted = components(X)
    rows = None
    if rank is not None:
        rows = low_rank_rows(X, rank, np.random.default_rng(seed))
    steps = principal_steps(X, 2, low_rank=rank, random_state=seed)
    errors, layouts, agreement = [], [], []
    for epoch, y in enumerate(islice(steps, at[-1] + 1)):
        if epoch not in at:
            continue
        errors.append(distance(y, wanted))
        layouts.append(y.astype(np.float32))
        if rows is not None:
            agreement.append(_cosine(principal_gradient(X, y), rows, y))
    return {"errors": errors, "layouts": layouts, "agreement": agreement}


def _cosine(full: Layout, rows: Layout, y: Layout) -> float:
    approximate = principal_gradient(rows, y)
    lengths = np.linalg.norm(full) * np.linalg.norm(approximate)
    return float((full * approximate).sum() / lengths)


def run(inputs: Inputs, parts: Parts) -> Result:
    n_points, ranks = (200, (None, 10)) if inputs.quick else (N_POINTS, RANKS)
    digits = inputs.load("mnist")
    rows = draw_rows(len(digits.X), n_points, inputs.random_state)
    X = digits.X[rows].astype(np.float64)
    parts.expect(len(ranks))
    found = {
        rank: parts(_name(rank), partial(descend, X, rank, AT, inputs.random_state))
        for rank in ranks
    }
    table = [_row(epoch, place, found) for place, epoch in enumerate(AT)]
    agreements = [
        {
            "gradient": _name(rank),
            "cosine at the start": each["agreement"][0],
            "cosine at epoch 100": each["agreement"][AT.index(100)],
            "cosine at the end": each["agreement"][-1],
        }
        for rank, each in found.items()
        if rank is not None
    ]
    return Result(
        tables=[
            Table(
                f"Distance from PCA up to an orthogonal map, {n_points:,} digits", table
            ),
            Table("Lemma 3: the approximate gradient against the full one", agreements),
        ],
        checks=_checks(found),
        draw=partial(_draw, found[None], components(X), labels_of(digits)[rows]),
        notes=_NOTES,
        inches=(13.0, 7.0),
    )


_NOTES = [
    "The paper shows pictures and no numbers. Distance: root mean square over the "
    "points, relative to the size of the PCA map.",
    "Gradients are found as X(X^T Y) - Y(Y^T Y), so that no table of all pairs of "
    "points is needed. The step is three quarters of the longest "
    "that is stable.",
    "Low-rank gradients end at the principal components of the approximation, not of "
    "the data: Lemma 3 promises the right direction only while the map is a worse "
    "approximation than the one that pulls.",
]


def _name(rank: int | None) -> str:
    return "full gradient" if rank is None else f"rank {rank}"


def _row(epoch: int, place: int, found: dict[int | None, Any]) -> dict[str, Any]:
    errors = {_name(rank): each["errors"][place] for rank, each in found.items()}
    return {"epoch": epoch, **errors}


def _checks(found: dict[int | None, Any]) -> list[Check]:
    last = found[None]["errors"][-1]
    checks = [
        Check(
            f"equal to PCA up to an orthogonal map, distance below {MOST_ERROR:g}",
            f"{last:.2g} after {AT[-1]} epochs",
            last < MOST_ERROR,
        )
    ]
    starts = {
        rank: min(each["agreement"][: AT.index(30) + 1])
        for rank, each in found.items()
        if rank is not None
    }
    worst = min(starts, key=starts.__getitem__)
    checks.append(
        Check(
            "Lemma 3: low-rank gradients point along the full one while the map is "
            "far from PCA (first 30 epochs)",
            f"cosine at least {starts[worst]:.3f}, at rank {worst}",
            starts[worst] > 0,
            in_quick=True,
        )
    )
    return checks


def _draw(
    full: dict[str, Any], wanted: Layout, labels: NDArray[Any], figure: Figure
) -> None:
    axes = figure.subplots(2, 3).ravel()
    for place, epoch in zip(axes, (0, 10, 100, 500), strict=False):
        draw_map(
            place, full["layouts"][AT.index(epoch)], labels, title=f"epoch {epoch}"
        )
    draw_map(axes[4], wanted, labels, title="PCA")
    axes[5].semilogy(AT, full["errors"], "o-")
    axes[5].axhline(MOST_ERROR, color="grey", linestyle=":")
    axes[5].set_xlabel("epoch")
    axes[5].set_title("distance from PCA, up to an orthogonal map", fontsize=9)
