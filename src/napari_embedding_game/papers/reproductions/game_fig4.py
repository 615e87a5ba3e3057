"""How fast landmarks may be: a sweep of their learning rate (paper 1, Figure 4)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from napari_embedding_game.core.dynamics.alarms import LEAST_OCCUPANCY, occupancy
from napari_embedding_game.core.settings import Settings
from napari_embedding_game.papers.reproductions.metrics import knn_accuracy, true_energy

from .frame import Check, Inputs, Parts, Result, Table
from .runs import MNIST_STRENGTH, Map, draw_map, draw_rows, looks, placed_digits

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RATES = (1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
"""eta_z; paper 1 names 0.01 and shows larger ones."""
PAPER_LOW = 0.01
"""The rate for which the paper says that points fall onto a few spots."""
POINT_RATE = 0.03
N_LANDMARKS = 100
N_ITERATIONS = 2_000
N_POINTS = 10_000
_FULL = N_POINTS, N_ITERATIONS, RATES
_QUICK = 600, 500, (0.01, 0.3, 30.0)
_ENERGY_ROWS = 2_000
_KEPT_ROWS = 10_000
GRAIN = 0.01
"""Points that stand nearer than this, in units of the map, count as one spot."""


def distinct_share(layout: Map) -> float:
    """Return how many spots 0.01 wide are taken, as a share of the points, 0 to 1.

    The kernels are flat within a distance of 1: points that are a hundredth of
    it apart do not feel that they are two.
    """
    spots = np.unique(np.round(layout.astype(np.float64) / GRAIN), axis=0)
    return len(spots) / len(layout)


def span(layout: Map) -> float:
    """Return the width of the middle 96 % of the points, the longer side."""
    low, high = np.percentile(layout, [2, 98], axis=0)
    return float((high - low).max())


def sweep(inputs: Inputs, wanted: int, n_iter: int, rate: float) -> dict[str, Any]:
    """Play with one landmark learning rate and return the map and its measures."""
    placed = placed_digits(inputs, wanted)
    settings = Settings(
        repulsion=MNIST_STRENGTH,
        n_landmarks=N_LANDMARKS,
        learning_rate=POINT_RATE,
        landmark_learning_rate=rate,
        schedule="paper",
        # The schedule lowers its rates half-way, where this ends.
        max_iter=2 * n_iter,
    )
    (end,) = looks(placed, settings, [n_iter], inputs.random_state)
    layout = end.embedding
    repulsion = MNIST_STRENGTH / len(layout)
    kept = draw_rows(len(layout), _KEPT_ROWS, 0)
    return {
        "occupancy": occupancy(layout),
        "span": span(layout),
        "distinct": distinct_share(layout),
        "accuracy": knn_accuracy(layout[kept], placed.labels[kept]),
        "energy": true_energy(placed.edges, layout, repulsion, _ENERGY_ROWS),
        "layout": layout[kept],
        "labels": np.unique(placed.labels[kept], return_inverse=True)[1],
        "landmarks": end.landmarks,
    }


def run(inputs: Inputs, parts: Parts) -> Result:
    wanted, n_iter, rates = _QUICK if inputs.quick else _FULL
    parts.expect(len(rates))
    found = {
        rate: parts(f"eta_z={rate:g}", partial(sweep, inputs, wanted, n_iter, rate))
        for rate in rates
    }
    return Result(
        tables=[
            Table(
                _title(wanted, n_iter),
                [_row(rate, each) for rate, each in found.items()],
            )
        ],
        checks=_checks({rate: each["occupancy"] for rate, each in found.items()}),
        draw=partial(_draw, found),
        notes=_notes(wanted, min(rates)),
        inches=(16.0, 5.6),
    )


def _title(n_points: int, n_iter: int) -> str:
    return (
        f"{n_points:,} digits after {n_iter:,} iterations with eta_y = {POINT_RATE:g}, "
        f"L = {N_LANDMARKS}, K = 15, lambda N = {MNIST_STRENGTH:g}"
    )


_SHOWN = {0.01: "collapse to a few points", 30.0: "begins to collapse"}


def _notes(n_points: int, lowest: float) -> list[str]:
    lower = (
        " The sweep goes a hundred times lower than 0.01, because no collapse was "
        "found there."
    )
    return [
        f"The paper plays with 70,000 digits; here {n_points:,} random ones with the "
        "same lambda N, so that the sweep takes minutes.",
        "The paper shows pictures and no numbers. Occupancy is the share of the cells "
        "of a grid over the map that hold a point: the program warns of a collapse "
        f"below {LEAST_OCCUPANCY:g}. Span: longer side of the middle 96 % of the "
        f"points. Distinct: spots {GRAIN:g} wide that are taken, per point.",
        "The paper names one rate, 0.01, and starts from its own 0.3."
        + (lower if lowest < PAPER_LOW else ""),
        "A landmark moves by eta_z an iteration, so in 2,000 iterations with 0.01 it "
        "can cross the whole map: landmarks are too slow only where they cannot.",
    ]


def _row(rate: float, each: dict[str, Any]) -> dict[str, Any]:
    return {
        "eta_z": rate,
        "paper": _SHOWN.get(rate, ""),
        "occupancy": round(each["occupancy"], 4),
        "span": round(each["span"], 2),
        "distinct": round(each["distinct"], 4),
        "kNN accuracy": round(each["accuracy"], 4),
        "true energy (Eq. 1)": round(each["energy"]),
    }


def window(occupancies: dict[float, float]) -> list[float]:
    """Return the rates at which the points do not collapse."""
    return [rate for rate, share in occupancies.items() if share >= LEAST_OCCUPANCY]


def _checks(occupancies: dict[float, float]) -> list[Check]:
    low, high = min(occupancies), max(occupancies)
    inner = [rate for rate in window(occupancies) if low < rate < high]
    found = f"eta_z from {inner[0]:g} to {inner[-1]:g}" if inner else "none"
    ends = [
        _collapse(f"collapse at eta_z = {end:g}", occupancies[end])
        for end in (low, high)
    ]
    named = _collapse(
        f"collapse at eta_z = {PAPER_LOW:g} already, as in the paper",
        occupancies[PAPER_LOW],
    )
    return [
        *ends,
        Check("a window without collapse between them", found, bool(inner)),
        named,
    ]


def _collapse(asked: str, share: float) -> Check:
    return Check(
        f"{asked} (occupancy below {LEAST_OCCUPANCY:g})",
        f"occupancy {share:.4f}",
        share < LEAST_OCCUPANCY,
    )


def _draw(found: dict[float, Any], figure: Figure) -> None:
    axes = figure.subplots(2, (len(found) + 2) // 2).ravel()
    for place, (rate, each) in zip(axes, found.items(), strict=False):
        draw_map(
            place,
            each["layout"],
            each["labels"],
            each["landmarks"],
            f"eta_z = {rate:g}, occupancy {each['occupancy']:.3f}",
        )
    last = axes[len(found)]
    for what in ("occupancy", "distinct"):
        last.plot(
            list(found), [each[what] for each in found.values()], "o-", label=what
        )
    last.axhline(LEAST_OCCUPANCY, color="grey", linestyle=":")
    last.set_xscale("log")
    last.set_xlabel("eta_z")
    last.legend(frameon=False)
    for unused in axes[len(found) + 1 :]:
        unused.set_axis_off()
