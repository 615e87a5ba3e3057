"""What is wrong with a map, in a sentence, and the settings that mend it.

A map is told from a collapse (paper 1, Fig. 4), from a heap, from points that ran away,
from points that are too slow to get anywhere, and from landmarks that do not stand for
the points: they have lost them, lie outside, or are too few.

With landmarks that are too slow or too fast for the points, with too few of
them, or with hardly any repulsion, the points fall onto a few spots.  With steps
that are far too long they run so far apart that no kernel reaches from one to
another.  The picture then says nothing about the data, and the user should be told
so and what to turn.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.dynamics.optimizer import resolve_schedule
from napari_embedding_game.core.energy.methods import get_method, strength_of
from napari_embedding_game.core.energy.valid_combinations import (
    approximation_of,
    is_played,
)
from napari_embedding_game.core.inspect.landmark_cover import (
    bound_share,
    outside_share,
)
from napari_embedding_game.core.types import Alarm, GameSettings

CELLS = 64
LEAST_OCCUPANCY = 0.08
"""Below this the map is called collapsed; maps of real data lie above 0.2."""
_MOST_POINTS = 20_000
_REACH = 1.0
"""The kernel 1 / (1 + u^2) is flat within this: a map that small is one spot."""
_MOST_RATE = 2.0
"""Landmarks that step further than the kernel reaches lose their points."""
_FEW_LANDMARKS = 30
_MORE = 4
"""Times as many landmarks, where these are too few."""
_STRONGER, _STRONGEST = 3.0, 10.0
"""Times the present repulsion, where that is what to raise; at most so many times the
method's own."""
_HEAP = 2.5
"""A map within this has no room for groups: the kernel reaches 1 from each point."""
_LEAST_HELD = 0.3
"""Share of the landmarks that hold points; above 0.7 on good maps, below 0.03 where
the landmarks have run away."""
_MOST_OUTSIDE = 0.15
"""Share of the landmarks that may lie outside of the points; at most 0.09 on good maps
of six data sets with the settings of the presets, 0.12 and more with eta_z = 3."""
_LEAST_BOUND = 0.4
"""The bound as a share of the sum over all pairs; above 0.77 on those maps, below 0.39
on four of them with 20 landmarks."""
_LEAST_TRAVEL = 5.0
"""Way that points need at least, in units of the map, from start layout to map.

With the default steps they have 75; those of the maps that are told had less than 3.
"""
FAR = 1e4
"""Coordinates beyond this are told.  Maps of a million points stay within some
hundred; kernels reach 1, of which single precision holds a thousandth here."""


_Way = tuple[str, Mapping[str, Any]]
"""What to do, in words and as settings."""


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


def alarm(
    embedding: NDArray[np.floating],
    settings: GameSettings,
    labels: NDArray[np.integer] | None = None,
    n_landmarks: int = 0,
    landmarks: NDArray[np.floating] | None = None,
) -> Alarm:
    """Return what is wrong with a map at the end of its schedule; falsy if nothing.

    Parameters
    ----------
    embedding : (N, d) float
    settings : GameSettings
        With which it was made.
    labels : (N,) int, optional
        The nearest landmark of each point.
    n_landmarks : int
        How many there are.
    landmarks : (L, d) float, optional
        Where they are, to tell whether they stand for the points.
    """
    told = far_alarm(embedding) or collapse_alarm(embedding, settings)
    if told or labels is None:
        return told
    told = _lost_alarm(labels, n_landmarks, settings)
    if told or landmarks is None:
        return told
    return cover_alarm(embedding, landmarks, settings)


def cover_alarm(
    embedding: NDArray[np.floating],
    landmarks: NDArray[np.floating],
    settings: GameSettings,
) -> Alarm:
    """Return that the landmarks do not stand for the points, if they do not.

    Only where landmarks push the points: elsewhere they just tile the map.
    """
    if approximation_of(settings) != "landmarks" or not is_played(settings):
        return Alarm()
    n = len(landmarks)
    outside = outside_share(embedding, landmarks)
    if outside > _MOST_OUTSIDE:
        way_out, remedy = _way_to_cover(settings, n, len(embedding))
        return Alarm(
            f"{round(outside * n):,} of {n:,} landmarks lie outside of the points and "
            f"keep none of them apart: {way_out}.",
            remedy,
        )
    share = bound_share(embedding, landmarks, get_method(settings.method).kernel)
    if share >= _LEAST_BOUND:
        return Alarm()
    way_out, remedy = _way_to_cover(settings, n, len(embedding))
    return Alarm(
        f"The landmarks stand for {share:.0%} of the repulsion only (the bound is far "
        f"below the sum over all pairs): {way_out}.",
        remedy,
    )


def _way_to_cover(settings: GameSettings, n_landmarks: int, n_points: int) -> _Way:
    """Return how landmarks come to stand for the points: slower, or more of them."""
    schedule = resolve_schedule(settings)
    rates = schedule.learning_rate, schedule.landmark_learning_rate
    raised = _raised_rate(settings, *rates)
    if raised is not None:
        return raised
    more = min(n_points, max(GameSettings().n_landmarks, _MORE * n_landmarks))
    if more <= n_landmarks:
        return "lower the repulsion (lambda x N)", {"strength": None}
    return f"raise the number of landmarks to {more:,}", {"n_landmarks": more}


def far_alarm(embedding: NDArray[np.floating]) -> Alarm:
    """Return that the points have run far off, if they have."""
    farthest = float(max(embedding.max(), -embedding.min()))
    if farthest <= FAR:
        return Alarm()
    return Alarm(
        f"The points have run far apart, up to {farthest:.0e} from the middle of the "
        "map: lower the learning rates or the repulsion.",
        {"learning_rate": None, "landmark_learning_rate": None, "strength": None},
    )


def collapse_alarm(embedding: NDArray[np.floating], settings: GameSettings) -> Alarm:
    """Return that the points collapse, lie in one heap or hardly move, if they do."""
    slow = _slow_alarm(settings)
    if slow:
        return slow
    if occupancy(embedding) < LEAST_OCCUPANCY:
        said = "The points have collapsed onto a few spots"
    elif _span(embedding) < _HEAP:
        said = "The points lie in one heap, too close to be told apart"
    else:
        return Alarm()
    way_out, remedy = _way_out(settings)
    return Alarm(f"{said}: {way_out}.", remedy)


def _lost_alarm(
    labels: NDArray[np.integer], n_landmarks: int, settings: GameSettings
) -> Alarm:
    """Return that landmarks have no points left to push apart, if it is so for most."""
    held = len(np.unique(labels))
    if held >= _LEAST_HELD * min(n_landmarks, len(labels)):
        return Alarm()
    way_out, remedy = _way_out(settings)
    return Alarm(
        f"{n_landmarks - held:,} of {n_landmarks:,} landmarks have lost their points, "
        f"and nothing keeps these apart: {way_out}.",
        remedy,
    )


def _span(embedding: NDArray[np.floating]) -> float:
    """Return the larger side of the middle 96 % of a map; infinite for a line."""
    plane = embedding[:: max(1, len(embedding) // _MOST_POINTS), :2]
    if plane.shape[1] == 1:
        return math.inf
    low, high = np.percentile(plane, [2, 98], axis=0)
    return float((high - low).max())


def _slow_alarm(settings: GameSettings) -> Alarm:
    """Return that the points cannot get far with their learning rate, if so."""
    if settings.learning_rate is None or not is_played(settings):
        return Alarm()
    schedule = resolve_schedule(settings)
    usual = resolve_schedule(replace(settings, learning_rate=None)).learning_rate
    done = np.linspace(0, 1, 101)
    share = float(np.mean([schedule.rate(x) for x in done]))
    # No step is longer than the learning rate, on the average over the points.
    travel = schedule.learning_rate * share * schedule.n_iter
    if schedule.learning_rate >= usual / 3 or travel >= _LEAST_TRAVEL:
        return Alarm()
    return Alarm(
        "The points are too slow to get to their places: raise the points' learning "
        f"rate, {settings.learning_rate:g}, to its default, {usual:g}.",
        {"learning_rate": None},
    )


def _way_out(settings: GameSettings) -> _Way:
    if settings.optimizer != "game":
        return "choose the optimizer game", {"optimizer": "game"}
    approximation = approximation_of(settings)
    if approximation == "sampled_landmarks":
        remedy: dict[str, Any] = {"approximation": None}
        if settings.n_landmarks < _FEW_LANDMARKS:
            remedy["n_landmarks"] = GameSettings().n_landmarks
        return "sampled landmarks do this; choose landmarks that move", remedy
    schedule = resolve_schedule(settings)
    learning_rate = schedule.learning_rate
    landmark_learning_rate = schedule.landmark_learning_rate
    raised = _raised_rate(settings, learning_rate, landmark_learning_rate)
    if raised is not None:
        return raised
    if approximation == "landmarks" and is_played(settings):
        rates = {"learning_rate": None, "landmark_learning_rate": None}
        if landmark_learning_rate > _MOST_RATE:
            return f"lower the landmarks' learning rate below {_MOST_RATE:g}", rates
        if landmark_learning_rate < learning_rate <= _MOST_RATE:
            return f"raise the landmarks' learning rate above {learning_rate:g}", rates
        if landmark_learning_rate < learning_rate:
            way = f"lower the points' learning rate below {landmark_learning_rate:g}"
            return way, rates
    usual = get_method(settings.method).strength
    is_weak = strength_of(settings) < usual / _STRONGER
    are_few = approximation != "exact" and settings.n_landmarks < _FEW_LANDMARKS
    if are_few and not is_weak:
        return (
            f"raise the number of landmarks above {_FEW_LANDMARKS}",
            {"n_landmarks": GameSettings().n_landmarks},
        )
    stronger = min(max(usual, _STRONGER * strength_of(settings)), _STRONGEST * usual)
    stronger_alone = {"strength": stronger} if stronger > strength_of(settings) else {}
    return "raise the repulsion (lambda x N)", stronger_alone


def _raised_rate(
    settings: GameSettings, learning_rate: float, landmark_learning_rate: float
) -> _Way | None:
    """Return what to do about rates above those of the schedule, the higher first.

    Whoever raised a rate is told of that, and of nothing that was left as it is.
    """
    usual = resolve_schedule(
        replace(settings, learning_rate=None, landmark_learning_rate=None)
    )
    rates = [("points'", "learning_rate", learning_rate, usual.learning_rate)]
    if approximation_of(settings) == "landmarks":
        rates.append(
            (
                "landmarks'",
                "landmark_learning_rate",
                landmark_learning_rate,
                usual.landmark_learning_rate,
            )
        )
    who, _, rate, default = max(rates, key=lambda row: row[2] / row[3])
    if not is_played(settings) or rate <= default:
        return None
    way = f"lower the {who} learning rate, {rate:g}, to its default, {default:g}"
    raised = {name: None for _, name, rate, default in rates if rate > default}
    return way, raised
