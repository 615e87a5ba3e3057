"""What is wrong with a map, in a sentence, and the settings that mend it.

The points fall onto a few spots (paper 1, Fig. 4) or into one heap, or run far apart.
What was changed goes back to its default; where nothing was, more of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.dynamics.schedule import resolve_schedule
from napari_embedding_game.core.energy.methods import get_method
from napari_embedding_game.core.inspect.cover import bound_share, outside_share
from napari_embedding_game.core.settings import (
    Settings,
    is_played,
    is_pushed_by,
    repulsion_of,
)
from napari_embedding_game.core.snapshot import Alarm

CELLS = 64
LEAST_OCCUPANCY = 0.08
"""Below this the map is called collapsed; maps of real data lie above 0.2."""
FAR = 1e4
"""Maps of a million points stay within some hundred; kernels reach 1, of which single
precision holds a thousandth here."""
_MOST_POINTS = 20_000
_REACH, _HEAP = 1.0, 2.5
"""The kernel 1 / (1 + u^2) is flat within 1: a map that small is one spot; within 2.5
there is no room for groups."""
_SETTLED = 0.6
"""Share of the schedule after which points that lie close are a collapse."""
_LEAST_TRAVEL = 5.0
"""Way from start to map, in its units: 75 by default, below 3 on unfinished maps."""
_MOST_OUTSIDE, _LEAST_BOUND = 0.15, 0.4
"""Share of landmarks outside of the points, at most 0.09 on good maps of six data sets;
the bound as a share of the sum over all pairs, there above 0.77."""
_DEFAULT = Settings()
_WORDS = {
    "optimizer": "the optimizer",
    "approximation": "the approximation",
    "learning_rate": "the points' learning rate",
    "landmark_learning_rate": "the landmarks' learning rate",
    "n_landmarks": "the number of landmarks",
    "repulsion": "the repulsion (lambda x N)",
}


def occupancy(embedding: NDArray[np.floating]) -> float:
    """Return how many of the cells that could hold a point do hold one, 0 to 1.

    The cells are a grid of 64 x 64 over the middle 96 % of the map, at least of side 1.
    """
    plane, low, high = _middle(embedding)
    if plane.shape[1] == 1:
        return 1.0  # a line fills no plane
    place = (plane - low) / np.maximum(high - low, _REACH)
    cell = np.clip(place * CELLS, 0, CELLS - 1).astype(np.int64)
    filled = np.bincount(cell[:, 0] * CELLS + cell[:, 1], minlength=CELLS**2) > 0
    return float(filled.sum() / min(len(plane), CELLS**2))


def _middle(embedding: NDArray[np.floating]) -> tuple[NDArray[Any], Any, Any]:
    """Return some points in the plane, and the corners of their middle 96 %."""
    plane = embedding[:: max(1, len(embedding) // _MOST_POINTS), :2]
    low, high = np.percentile(plane, [2, 98], axis=0)
    return plane, low, high


def alarm(
    embedding: NDArray[np.floating],
    settings: Settings,
    landmarks: NDArray[np.floating] | None = None,
    n_left: int = 0,
) -> Alarm:
    """Return what is wrong with a map (N, d); falsy if nothing.

    ``landmarks`` (L, d): those of a finished game.  ``n_left``: iterations left of the
    schedule, in the first 60 % of which the points lie close.
    """
    if not get_method(settings.method).kernel:
        return Alarm()  # inner products: the map is that of the data
    farthest = float(max(embedding.max(), -embedding.min()))
    if farthest > FAR:
        return Alarm(
            f"The points have run far apart, up to {farthest:.0e} from the middle of "
            "the map: lower the learning rates or the repulsion.",
            {"learning_rate": None, "landmark_learning_rate": None, "repulsion": None},
        )
    if n_left > (1 - _SETTLED) * resolve_schedule(settings).n_iter:
        return Alarm()
    if told := _crowding(embedding, settings):
        return _with_way_out(told, settings, {"repulsion": 3 * repulsion_of(settings)})
    if landmarks is None or not is_pushed_by(settings, "landmarks"):
        return Alarm()
    if told := _cover(embedding, landmarks, settings):
        more = min(len(embedding), 4 * len(landmarks))
        return _with_way_out(told, settings, {"n_landmarks": more})
    return Alarm()


def _crowding(embedding: NDArray[np.floating], settings: Settings) -> str:
    if _is_slow(settings):
        return "The points are too slow to get to their places"
    if occupancy(embedding) < LEAST_OCCUPANCY:
        return "The points have collapsed onto a few spots"
    plane, low, high = _middle(embedding)
    if plane.shape[1] > 1 and (high - low).max() < _HEAP:
        return "The points lie in one heap, too close to be told apart"
    return ""


def _is_slow(settings: Settings) -> bool:
    """Return whether the points cannot get far with the learning rate they were given.

    No step is longer than it, on the average over the points.
    """
    if settings.learning_rate is None or not is_played(settings):
        return False
    schedule = resolve_schedule(settings)
    usual = resolve_schedule(replace(settings, learning_rate=None)).learning_rate
    share = float(np.mean([schedule.rate(x) for x in np.linspace(0, 1, 101)]))
    travel = schedule.learning_rate * share * schedule.n_iter
    return schedule.learning_rate < usual / 3 and travel < _LEAST_TRAVEL


def _cover(
    embedding: NDArray[np.floating],
    landmarks: NDArray[np.floating],
    settings: Settings,
) -> str:
    """Return that landmarks do not stand for the points, or ""."""
    n, outside = len(landmarks), outside_share(embedding, landmarks)
    if outside > _MOST_OUTSIDE:
        return (
            f"{round(outside * n):,} of {n:,} landmarks lie outside of the points and "
            "keep none of them apart"
        )
    share = bound_share(embedding, landmarks, get_method(settings.method).kernel)
    if share >= _LEAST_BOUND:
        return ""
    return (
        f"The landmarks stand for {share:.0%} of the repulsion only (the bound is far "
        "below the sum over all pairs)"
    )


def _with_way_out(
    sentence: str, settings: Settings, last_resort: Mapping[str, Any]
) -> Alarm:
    """Return an alarm whose remedy is the default of what was changed for the worse."""
    is_strong = repulsion_of(settings) >= get_method(settings.method).repulsion
    not_blamed = {
        "approximation": settings.approximation != "sampled_landmarks",
        "n_landmarks": settings.n_landmarks > _DEFAULT.n_landmarks,
        "repulsion": is_strong,
    }
    remedy = {
        name: getattr(_DEFAULT, name)
        for name in _WORDS
        if getattr(settings, name) != getattr(_DEFAULT, name)
        and not not_blamed.get(name, False)
    }
    if remedy:
        names = " and ".join(_WORDS[name] for name in remedy)
        return Alarm(f"{sentence}: set {names} back to default.", remedy)
    (name,) = last_resort
    return Alarm(f"{sentence}: raise {_WORDS[name]}.", last_resort)
