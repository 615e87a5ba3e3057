"""Telling a map from a collapse (paper 1, Fig. 4), and from points that ran away.

With landmarks that are too slow or too fast for the points, with too few of
them, or with hardly any repulsion, the points fall onto a few spots.  With steps
that are far too long they run so far apart that no kernel reaches from one to
another.  The picture then says nothing about the data, and the user should be told
so and what to turn.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.dynamics.optimizer import resolve_schedule
from napari_embedding_game.core.energy.optimizer_needs import RULES
from napari_embedding_game.core.energy.valid_combinations import (
    approximation_of,
    is_played,
)
from napari_embedding_game.core.types import GameSettings

CELLS = 64
LEAST_OCCUPANCY = 0.08
"""Below this the map is called collapsed; maps of real data lie above 0.2."""
_MOST_POINTS = 20_000
_REACH = 1.0
"""The kernel 1 / (1 + u^2) is flat within this: a map that small is one spot."""
_MOST_RATE = 2.0
"""Landmarks that step further than the kernel reaches lose their points."""
_FEW_LANDMARKS = 30
FAR = 1e4
"""Coordinates beyond this are told.  Maps of a million points stay within some
hundred; kernels reach 1, of which single precision holds a thousandth here."""


def occupancy(embedding: NDArray[np.floating]) -> float:
    """Return how many of the cells that could hold a point do hold one, 0 to 1.

    The cells are a grid of 64 x 64 over the middle 96 % of the map in its
    first two dimensions, and over a square of side 1 where that is smaller;
    N points can fill at most N of them.
    """
    plane = embedding[:: max(1, len(embedding) // _MOST_POINTS), :2]
    if plane.shape[1] == 1:
        return 1.0  # a line fills no plane
    low, high = np.percentile(plane, [2, 98], axis=0)
    place = (plane - low) / np.maximum(high - low, _REACH)
    cell = np.clip(place * CELLS, 0, CELLS - 1).astype(np.int64)
    filled = np.bincount(cell[:, 0] * CELLS + cell[:, 1], minlength=CELLS**2) > 0
    return float(filled.sum() / min(len(plane), CELLS**2))


def far_warning(embedding: NDArray[np.floating]) -> str:
    """Return a sentence that says the points have run far off, or ""."""
    farthest = float(max(embedding.max(), -embedding.min()))
    if farthest <= FAR:
        return ""
    return (
        f"The points have run far apart, up to {farthest:.0e} from the middle of the "
        "map: lower the learning rates or the repulsion."
    )


def collapse_warning(embedding: NDArray[np.floating], settings: GameSettings) -> str:
    """Return a sentence that says the points collapse and what to do, or ""."""
    if occupancy(embedding) >= LEAST_OCCUPANCY:
        return ""
    return f"The points are collapsing onto a few spots: {_way_out(settings)}."


def _way_out(settings: GameSettings) -> str:
    if RULES[settings.optimizer].needs_pull:
        return "choose the optimizer lbfgs, or the game's own steps"
    approximation = approximation_of(settings)
    if approximation == "sampled_landmarks":
        return "sampled landmarks do this; choose landmarks that move"
    schedule = resolve_schedule(settings)
    learning_rate = schedule.learning_rate
    landmark_learning_rate = schedule.landmark_learning_rate
    raised = _raised_rate(settings, learning_rate, landmark_learning_rate)
    if raised:
        return raised
    if approximation == "landmarks" and is_played(settings):
        if landmark_learning_rate > _MOST_RATE:
            return f"lower the landmarks' learning rate below {_MOST_RATE:g}"
        if landmark_learning_rate < learning_rate <= _MOST_RATE:
            return f"raise the landmarks' learning rate above {learning_rate:g}"
        if landmark_learning_rate < learning_rate:
            return f"lower the points' learning rate below {landmark_learning_rate:g}"
    if approximation != "exact" and settings.n_landmarks < _FEW_LANDMARKS:
        return f"raise the number of landmarks above {_FEW_LANDMARKS}"
    return "raise the repulsion (lambda x N)"


def _raised_rate(
    settings: GameSettings, learning_rate: float, landmark_learning_rate: float
) -> str:
    """Return what to do about rates above those of the schedule, the higher first.

    Whoever raised a rate is told of that, and of nothing that was left as it is.
    """
    usual = resolve_schedule(
        replace(settings, learning_rate=None, landmark_learning_rate=None)
    )
    rates = [("points'", learning_rate, usual.learning_rate)]
    if approximation_of(settings) == "landmarks":
        landmarks = ("landmarks'", landmark_learning_rate, usual.landmark_learning_rate)
        rates.append(landmarks)
    who, rate, default = max(rates, key=lambda row: row[1] / row[2])
    if not is_played(settings) or rate <= default:
        return ""
    return f"lower the {who} learning rate, {rate:g}, to its default, {default:g}"
