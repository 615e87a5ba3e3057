"""Detect maps that have failed, with a sentence and the settings that solve it.

A map has failed if its points have collapsed onto a few spots (paper 1, Fig. 4), lie in
one heap, or have run far apart.  The remedy resets harmful settings to their defaults,
or raises the repulsion or the number of landmarks.  Positions that are not finite, or
beyond every map, end the game (``play._Driver._copy_positions``).  ``play._Driver``
looks for alarms, ``Snapshot.warning`` holds the sentence, and ``EmbeddingGame.fit``
warns of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from napari_embedding_game.core.dynamics.schedule import resolve_schedule
from napari_embedding_game.core.energy.mesh_repulsion import WIDER, required_spacing
from napari_embedding_game.core.energy.methods import get_method
from napari_embedding_game.core.settings import (
    MAX_EXACT,
    Settings,
    resolve_approximation,
    resolve_repulsion,
)
from napari_embedding_game.core.snapshot import Alarm

MIN_SPREAD = 0.15
"""Spread below which the map has collapsed: 12 collapses have at most 0.12, UMAPs of
six data sets 2.2 and more, other good maps more, and games of 5 iterations 0.21."""
_NEAREST, _MAX_ASKED = 10, 1_000
RUN_APART = 1e4
"""Largest coordinate of a good map; maps of a million points stay within hundreds."""
OUTSIDE, _MAX_OUTSIDE = 2.0, 0.15
"""Distance to its nearest point above which a landmark repels hardly any point, and the
largest share of such landmarks; good maps of six data sets have at most 0.09."""
_MAX_POINTS = 20_000
_HEAP = 2.5
"""Least width of a map: in a narrower map, where the kernel is nearly flat, groups do
not separate."""
_SETTLED = 0.6
"""Share of the schedule after which a narrow map counts as a collapse."""
_DEFAULT = Settings()
_WORDS = {
    "approximation": "the approximation",
    "learning_rate": "the points' learning rate",
    "landmark_learning_rate": "the landmarks' learning rate",
    "n_landmarks": "the number of landmarks",
    "repulsion": "the repulsion (lambda x N)",
}
Points = NDArray[np.floating]


def find_alarm(
    embedding: Points,
    settings: Settings,
    landmarks: Points | None = None,
    iterations_left: int = 0,
) -> Alarm:
    """Return the first problem of a map (N, d) as an alarm, a false one for no problem.

    Problems, in this order: points far apart, collapsed onto spots, in one heap, a grid
    too coarse ("mesh"), landmarks outside of the points ("landmarks").  In the first 60
    % of the schedule only the first is checked, and none under a method without a
    kernel.

    ``landmarks`` (L, d): those of a finished game; None leaves out their check.
    ``iterations_left``: iterations left of the schedule.
    """
    if not get_method(settings.method).kernel:
        return Alarm()  # inner products: the map is that of the data
    farthest = float(np.abs(embedding).max())
    if farthest > RUN_APART:
        return Alarm(
            f"The points have run far apart, up to {farthest:.0e} from the middle of "
            "the map: lower the learning rates or the repulsion.",
            {"learning_rate": None, "landmark_learning_rate": None, "repulsion": None},
        )
    if iterations_left > (1 - _SETTLED) * resolve_schedule(settings).n_iter:
        return Alarm()
    advice = f"raise {_WORDS['repulsion']}"
    stronger = {"repulsion": 3 * resolve_repulsion(settings)}
    low, high = np.percentile(_subsample_points(embedding), [2, 98], axis=0)
    width = float((high - low).max())
    if len(low) > 1 and measure_spread(embedding) < MIN_SPREAD:
        spots = "The points have collapsed onto a few spots"
        return _make_alarm_with_remedy(spots, settings, advice, stronger)
    if len(low) > 1 and width < _HEAP:
        heap = "The points lie in one heap, too close to be told apart"
        return _make_alarm_with_remedy(heap, settings, advice, stronger)
    approximation = resolve_approximation(settings)
    if approximation == "mesh":
        coarse = _find_coarse_grid_alarm(embedding, settings)
        if coarse:
            return coarse
    if landmarks is None or approximation != "landmarks":
        return Alarm()
    n = len(landmarks)
    n_outside = int((cKDTree(embedding).query(landmarks)[0] > OUTSIDE).sum())
    if n_outside <= _MAX_OUTSIDE * n:
        return Alarm()
    outside = (
        f"{n_outside:,} of {n:,} landmarks lie outside of the points and keep none of "
        "them apart"
    )
    if n == len(embedding):  # no more can be
        exact = {"approximation": "exact"}
        return _make_alarm_with_remedy(
            outside, settings, "choose the approximation exact", exact
        )
    more = {"n_landmarks": min(len(embedding), 4 * n)}
    return _make_alarm_with_remedy(
        outside, settings, "raise the number of landmarks", more
    )


def _find_coarse_grid_alarm(embedding: Points, settings: Settings) -> Alarm:
    """Return an alarm if the grid of the repulsion is too coarse for the kernel.

    The alarm is false for the method "given", whose points stay.  The remedy is the
    approximation "exact", or "landmarks" for more than ``MAX_EXACT`` points.
    """
    width, spacing = float(np.ptp(embedding, axis=0).max()), required_spacing(embedding)
    if spacing <= WIDER or settings.method == "given":
        return Alarm()
    instead = "exact" if len(embedding) <= MAX_EXACT else "landmarks"
    return Alarm(
        f"The map is {width:,.0f} wide, too wide for the grid: points closer than "
        f"{spacing:.1f} are hardly kept apart: choose the approximation {instead}.",
        {"approximation": instead},
    )


def measure_spread(embedding: Points) -> float:
    """Return the width that a map would have if all points lay at the median density.

    The width is the median distance of about 1,000 points to their 10th nearest, times
    the d-th root of N / 10, with N the number of (subsampled) points.  Unlike the
    extent, it does not depend on where islands lie.
    """
    points = _subsample_points(embedding)
    (n, d), k = points.shape, min(_NEAREST, len(points) - 1)
    asked = points[:: max(1, n // _MAX_ASKED)]
    distances = cKDTree(points).query(asked, [k + 1])[0]
    return float(np.median(distances) * (n / k) ** (1 / d))


def _subsample_points(embedding: Points) -> Points:
    """Return every n-th point, fewer than 40,000 in all; few points are all kept."""
    return embedding[:: max(1, len(embedding) // _MAX_POINTS)]


def _make_alarm_with_remedy(
    sentence: str, settings: Settings, advice: str, default_remedy: dict[str, Any]
) -> Alarm:
    """Return an alarm whose remedy resets harmful settings to their defaults.

    Harmful are the settings of ``_WORDS`` that differ from the default, unless they
    cannot cause a collapse, as more landmarks.  If there are none, the remedy is
    ``default_remedy``, in words ``advice``.  A method whose repulsion cannot be chosen
    has no remedy but another method.
    """
    if not get_method(settings.method).takes_repulsion:
        return Alarm(f"{sentence}: choose another method.")
    harmless = {
        "approximation": settings.approximation != "sampled_landmarks",
        "n_landmarks": settings.n_landmarks >= _DEFAULT.n_landmarks,
        "repulsion": resolve_repulsion(settings)
        >= get_method(settings.method).repulsion,
    }
    remedy = {
        name: usual
        for name in _WORDS
        if getattr(settings, name) != (usual := getattr(_DEFAULT, name))
        and not harmless.get(name, False)
    }
    if remedy:
        changed = " and ".join(_WORDS[name] for name in remedy)
        return Alarm(f"{sentence}: set {changed} back to default.", remedy)
    return Alarm(f"{sentence}: {advice}.", default_remedy)
