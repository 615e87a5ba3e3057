"""Sampled edges, sampled landmarks, moving landmarks: the maps (paper 1, Figure 5)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from .frame import Check, Inputs, Parts, Result, Table
from .runs import MNIST_STRENGTH, draw_map
from .sampling import N_ITERATIONS, N_POINTS, WAYS, Way, follow

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZES = (1, 3, 10, 30, 100, 300)
"""L of the paper."""
FEW = (1, 3, 10)
"""L for which the paper sees moving landmarks let clusters fall onto one spot."""
ALIKE = 0.05
"""Two energies are called the same that differ by less than this share."""
_FULL = N_POINTS, SIZES, N_ITERATIONS
_QUICK = 300, (3, 30), 600
Found = dict[tuple[Way, int], dict[str, Any]]


def run(inputs: Inputs, parts: Parts) -> Result:
    n_points, sizes, n_iter = _FULL if not inputs.quick else _QUICK
    parts.expect(len(WAYS) * len(sizes))
    found: Found = {
        (way, size): parts(
            f"{WAYS[way]} L={size}",
            partial(follow, inputs, n_points, way, size, [n_iter]),
        )
        for size in sizes
        for way in WAYS
    }
    rows = [_row(way, size, each) for (way, size), each in found.items()]
    return Result(
        tables=[
            Table(
                f"After {n_iter:,} iterations, {n_points:,} digits, K = 15, "
                f"lambda N = {MNIST_STRENGTH:g}",
                rows,
            )
        ],
        checks=_checks(found, sizes),
        draw=partial(_draw, found, sizes),
        notes=_notes(n_points),
        inches=(3.0 * len(sizes), 9.5),
    )


def _notes(n_points: int) -> list[str]:
    return [
        f"The paper plays with 70,000 digits; here {n_points:,} random ones with the "
        "same lambda N (which alone decides how repulsion compares with attraction), "
        "as L sampled edges a point for L = 300 take 42 million pairs an iteration.",
        "The paper shows pictures and no numbers. True energy: Eq. 1, over all pairs; "
        "this is what all three are meant to lower. Distinct: spots 0.01 wide that are "
        "taken, per point.",
    ]


def _row(way: Way, size: int, each: dict[str, Any]) -> dict[str, Any]:
    return {
        "L": size,
        "repulsion": WAYS[way],
        "approximate energy": round(each["approximate"][-1]),
        "true energy": round(each["true"][-1]),
        "gradient RMSE": round(each["rmse"][-1], 4),
        "distinct": round(each["distinct"], 3),
        "occupancy": round(each["occupancy"], 3),
        "kNN accuracy": round(each["accuracy"], 3),
    }


def _checks(found: Found, sizes: tuple[int, ...]) -> list[Check]:
    def true(way: Way, size: int) -> float:
        return float(found[way, size]["true"][-1])

    few = [size for size in sizes if size in FEW]
    many = [size for size in sizes if size not in FEW]
    return [
        _all(
            "true energy of sampled edges below that of optimised landmarks for few L",
            {L: true("sampled_edges", L) < true("landmarks", L) for L in few},
        ),
        _all(
            f"both within {ALIKE:.0%} of each other from L = 30 on",
            {
                L: abs(true("landmarks", L) / true("sampled_edges", L) - 1) < ALIKE
                for L in many
            },
        ),
        _all(
            "true energy of sampled landmarks above both for every L",
            {
                L: true("sampled_landmarks", L)
                > max(true("sampled_edges", L), true("landmarks", L))
                for L in sizes
            },
        ),
        _all(
            "fewer distinct places with optimised landmarks than with sampled edges "
            "for few L",
            {
                L: found["landmarks", L]["distinct"]
                < found["sampled_edges", L]["distinct"]
                for L in few
            },
        ),
    ]


def _all(asked: str, holds: dict[int, bool]) -> Check:
    """Judge what must hold for each L, and name those for which it does not."""
    not_for = ", ".join(str(size) for size, each in holds.items() if not each)
    found = f"not for L = {not_for}" if not_for else f"for all {len(holds)}"
    return Check(asked, found, not not_for)


def _draw(found: Found, sizes: tuple[int, ...], figure: Figure) -> None:
    grid = figure.subplots(len(WAYS), len(sizes))
    for row, way in zip(grid, WAYS, strict=True):
        for axes, size in zip(row, sizes, strict=True):
            each = found[way, size]
            draw_map(
                axes,
                each["layout"],
                each["labels"],
                None if way == "sampled_edges" else each["landmarks"],
                f"L = {size}: energy {each['true'][-1]:,.0f}",
            )
        row[0].set_ylabel(WAYS[way])
