"""How far each stand-in for the sum is from it on the way (paper 1, Figure 6)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .frame import Check, Inputs, Parts, Result, Table
from .runs import MNIST_STRENGTH
from .sampling import N_ITERATIONS, N_POINTS, WAYS, Way, follow

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZE = 10
"""L of the paper."""
AT = (*range(0, 100, 20), *range(100, N_ITERATIONS + 1, 100))
NEARLY_ALL = 0.9
_COLORS = {
    "sampled_edges": "tab:blue",
    "sampled_landmarks": "tab:green",
    "landmarks": "tab:orange",
}
Found = dict[Way, dict[str, Any]]


def run(inputs: Inputs, parts: Parts) -> Result:
    n_points, at = (300, AT[:11:2]) if inputs.quick else (N_POINTS, AT)
    parts.expect(len(WAYS))
    found: Found = {
        way: parts(
            f"{WAYS[way]} L={SIZE}", partial(follow, inputs, n_points, way, SIZE, at)
        )
        for way in WAYS
    }
    rows = [_row(way, each) for way, each in found.items()]
    title = f"L = {SIZE}, {n_points:,} digits, K = 15, lambda N = {MNIST_STRENGTH:g}"
    return Result(
        tables=[Table(title, rows)],
        checks=_checks(found),
        draw=partial(_draw, found),
        notes=_notes(n_points),
        inches=(15.0, 4.6),
    )


def _notes(n_points: int) -> list[str]:
    return [
        f"The paper plays with 70,000 digits; here {n_points:,} random ones with the "
        "same lambda N. The true energy and its gradient are exact, over all pairs; "
        "the paper draws random pairs for them.",
        "The paper leaves sampled landmarks out of its Figure 6 as far worse.",
        "Gradient RMSE: root mean square, over points and coordinates, of the gradient "
        "that is played with less that of Eq. 1 at the same points. Relative: divided "
        "by the root mean square of the latter.",
    ]


def _row(way: Way, each: dict[str, Any]) -> dict[str, Any]:
    relative = np.divide(each["rmse"], each["size"])
    return {
        "repulsion": WAYS[way],
        "last approximate energy": round(each["approximate"][-1]),
        "last true energy": round(each["true"][-1]),
        "mean gradient RMSE": round(float(np.mean(each["rmse"])), 4),
        "last gradient RMSE": round(each["rmse"][-1], 4),
        "mean relative RMSE": round(float(np.mean(relative)), 3),
    }


def _checks(found: Found) -> list[Check]:
    edges, landmarks = found["sampled_edges"], found["landmarks"]
    gaps = {way: _gap(found[way]) for way in WAYS}
    better = float(np.mean(np.less(landmarks["rmse"], edges["rmse"])[1:]))
    return [
        Check(
            f"L = {SIZE}: both play with an energy below the true one at the end",
            f"{gaps['sampled_edges']:,.0f} and {gaps['landmarks']:,.0f} below",
            min(gaps["sampled_edges"], gaps["landmarks"]) > 0,
        ),
        Check(
            f"L = {SIZE}: farther below for optimised landmarks than sampled edges",
            f"{gaps['landmarks']:,.0f} against {gaps['sampled_edges']:,.0f}",
            gaps["landmarks"] > gaps["sampled_edges"],
        ),
        Check(
            f"L = {SIZE}: last true energy lower for sampled edges",
            f"{edges['true'][-1]:,.0f} against {landmarks['true'][-1]:,.0f}",
            edges["true"][-1] < landmarks["true"][-1],
        ),
        Check(
            f"L = {SIZE}: gradient RMSE lower for optimised landmarks at nearly all "
            f"times (at least {NEARLY_ALL:.0%})",
            f"at {better:.0%} of the times after the start",
            better >= NEARLY_ALL,
        ),
    ]


def _gap(each: dict[str, Any]) -> float:
    return float(each["true"][-1] - each["approximate"][-1])


def _draw(found: Found, figure: Figure) -> None:
    row = figure.subplots(1, 3)
    panels = {
        "approximate": "energy that is played with",
        "true": "true energy (Eq. 1)",
        "rmse": "gradient RMSE",
    }
    for axes, (what, title) in zip(row, panels.items(), strict=True):
        for way, name in WAYS.items():
            each = found[way]
            axes.plot(each["iteration"], each[what], color=_COLORS[way], label=name)
        axes.set_yscale("log")
        axes.set_title(f"L = {SIZE}: {title}", fontsize=10)
        axes.set_xlabel("iteration")
    row[0].legend(frameon=False)
