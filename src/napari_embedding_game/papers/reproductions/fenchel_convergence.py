"""Gradient descent and the game it is (paper 2, Theorem 6.20 and Lemma 6.22)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.papers.learners import (
    BestResponsePlus,
    MirrorDescent,
    convergence_bound,
    play,
)

from .frame import Check, Inputs, Parts, Result, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SHAPE = (60, 20)
_EQUAL = 1e-12
Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Problem:
    """A convex function with its least value, and how steep it is."""

    value: Callable[[Vector], float]
    gradient: Callable[[Vector], Vector]
    least: Vector
    slope: float
    """G, the largest norm of a gradient."""
    best_response: Callable[[Vector], Vector]
    """x -> the y that maximises <x, y> - f*(y)."""


def absolute(seed: int) -> Problem:
    """Mean |A w - b| with b = A w*: not smooth, least at w*."""
    A, least = _random(seed)

    def value(w: Vector) -> float:
        return float(np.abs(A @ (w - least)).mean())

    def gradient(w: Vector) -> Vector:
        slopes: Vector = A.T @ np.sign(A @ (w - least)) / len(A)
        return slopes

    slope = float(np.linalg.norm(A, axis=1).mean())
    return Problem(value, gradient, least, slope, best_response=gradient)


def quadratic(seed: int) -> Problem:
    """(w - w*) Q (w - w*) / 2, whose conjugate is y Q^-1 y / 2 + <w*, y>."""
    A, least = _random(seed)
    Q = A.T @ A / len(A)
    inverse = np.linalg.inv(Q)

    def value(w: Vector) -> float:
        return float((w - least) @ Q @ (w - least) / 2)

    def gradient(w: Vector) -> Vector:
        slopes: Vector = Q @ (w - least)
        return slopes

    def best_response(x: Vector) -> Vector:
        return np.linalg.solve(inverse, x - least)

    slope = float(np.linalg.norm(Q, 2) * np.linalg.norm(least))
    return Problem(value, gradient, least, slope, best_response)


PROBLEMS = {"absolute": absolute, "quadratic": quadratic}


def _random(seed: int) -> tuple[Vector, Vector]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=_SHAPE), rng.normal(size=_SHAPE[1])


def gradient_descent(problem: Problem, n_rounds: int) -> list[Vector]:
    """Return w_0 ... w_T of Alg. 6, written down as it stands there."""
    w = np.zeros(_SHAPE[1])
    step = np.linalg.norm(problem.least) / (problem.slope * np.sqrt(n_rounds))
    steps = [w]
    for _ in range(n_rounds):
        w = w - step * problem.gradient(w)
        steps.append(w)
    return steps


def fenchel_game(problem: Problem, n_rounds: int) -> list[Vector]:
    """Return x_0 ... x_T of the same as a game, OMD against BestResp+."""
    step = np.linalg.norm(problem.least) / (problem.slope * np.sqrt(n_rounds))
    x = MirrorDescent(np.zeros(_SHAPE[1]), float(step))
    y = BestResponsePlus(problem.best_response)
    return [each.x for each in play(x, y, np.ones(n_rounds + 1))]


def _measure(problem: Problem, n_rounds: int) -> dict[str, Any]:
    descent, game = gradient_descent(problem, n_rounds), fenchel_game(problem, n_rounds)
    mean = np.mean(descent[1:], axis=0)
    distance = float(np.linalg.norm(problem.least))
    return {
        "rounds": n_rounds,
        "difference": float(np.abs(np.subtract(descent, game)).max()),
        "gap": problem.value(mean) - problem.value(problem.least),
        "last gap": problem.value(descent[-1]) - problem.value(problem.least),
        "bound": convergence_bound(distance, problem.slope, n_rounds),
    }


def run(inputs: Inputs, parts: Parts) -> Result:
    rounds = [10, 30, 100] if inputs.quick else [10, 30, 100, 300, 1000, 3000, 10000]
    parts.expect(len(PROBLEMS) * len(rounds))
    rows = []
    for name, make in PROBLEMS.items():
        problem = make(inputs.random_state)
        for n in rounds:
            found = parts(f"{name} T={n}", partial(_measure, problem, n))
            rows.append({"function": name, **found})
    return Result(
        tables=[Table("f(mean of w_1 ... w_T) less its minimum, and the bound", rows)],
        checks=_checks(rows),
        draw=partial(_draw, rows),
        notes=[
            "The paper proves this and shows no figures. Remark 6.18 defines G as the "
            "largest squared norm of a gradient, but the proof needs the norm itself, "
            "which is taken here.",
            "For the quadratic function the game's best response is solved from the "
            "conjugate function f*, without the gradient of f; so it is not the same "
            "arithmetic as gradient descent.",
        ],
    )


def _checks(rows: list[dict[str, Any]]) -> list[Check]:
    difference = max(row["difference"] for row in rows)
    share = max(row["gap"] / row["bound"] for row in rows)
    return [
        Check(
            "gradient descent and the game equal to 1e-12 in every step",
            f"at most {difference:.1e} apart",
            difference <= _EQUAL,
            in_quick=True,
        ),
        Check(
            "below the bound 3 G R / (2 sqrt(T)) for every T",
            f"at most {share:.2f} of it",
            share <= 1,
            in_quick=True,
        ),
    ]


def _draw(rows: list[dict[str, Any]], figure: Figure) -> None:
    axes = figure.add_subplot()
    for color, name in zip(("tab:blue", "tab:orange"), PROBLEMS, strict=True):
        own = [row for row in rows if row["function"] == name]
        rounds = [row["rounds"] for row in own]
        axes.loglog(
            rounds, [r["gap"] for r in own], "o-", color=color, label=f"{name}, mean"
        )
        axes.loglog(
            rounds, [r["bound"] for r in own], "--", color=color, label=f"{name}, bound"
        )
    axes.set_xlabel("rounds T")
    axes.set_ylabel("f - min f")
    axes.set_title("Gradient descent as a Fenchel game stays below its bound")
    axes.legend(frameon=False)
