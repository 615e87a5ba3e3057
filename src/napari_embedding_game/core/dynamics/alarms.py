"""What is wrong with a map, in a sentence, and the settings that mend it.

The points fall onto a few spots (paper 1, Fig. 4) or into one heap, or run far apart.
What was changed goes back to its default; where nothing was, more of it.  Points that
are no numbers, or run off the map, end the game (``play._Driver._copy``).
``play._Driver`` checks for them, ``Snapshot.warning`` holds the sentence, and
``EmbeddingGame.fit`` raises the warning.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from napari_embedding_game.core.dynamics.schedule import resolve_schedule
from napari_embedding_game.core.energy.mesh_repulsion import WIDER, widest_spacing
from napari_embedding_game.core.energy.methods import get_method
from napari_embedding_game.core.settings import (
    MAX_EXACT,
    Settings,
    resolve_approximation,
    resolve_repulsion,
)
from napari_embedding_game.core.snapshot import Alarm

MIN_SPREAD = 0.15
"""Below this the map has collapsed: 12 collapses have at most 0.12, UMAPs of six data
sets 2.2 and more, other good maps more than these, and games of 5 iterations 0.21."""
_NEAREST, _MAX_ASKED = 10, 1_000
RUN_APART = 1e4
"""Maps of a million points stay within some hundred."""
OUTSIDE, _MAX_OUTSIDE = 2.0, 0.15
"""Distance to its nearest point from which a landmark pushes hardly any, and the share
of such landmarks; good maps of six data sets have at most 0.09."""
_MAX_POINTS = 20_000
_HEAP = 2.5
"""A map within this, where the kernel is nearly flat, has no room for groups."""
_SETTLED = 0.6
"""Share of the schedule after which points that lie close are a collapse."""
_DEFAULT = Settings()
_WORDS = {
    "approximation": "the approximation",
    "learning_rate": "the points' learning rate",
    "landmark_learning_rate": "the landmarks' learning rate",
    "n_landmarks": "the number of landmarks",
    "repulsion": "the repulsion (lambda x N)",
}
Points = NDArray[np.floating]


def alarm(
    embedding: Points,
    settings: Settings,
    landmarks: Points | None = None,
    n_left: int = 0,
) -> Alarm:
    """Return what is wrong with a map (N, d); falsy if nothing.

    ``landmarks`` (L, d): those of a finished game.  ``n_left``: iterations left of the
    schedule, in the first 60 % of which the points lie close.
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
    if n_left > (1 - _SETTLED) * resolve_schedule(settings).n_iter:
        return Alarm()
    stronger = {"repulsion": 3 * resolve_repulsion(settings)}
    last = f"raise {_WORDS['repulsion']}", stronger
    low, high = np.percentile(_some_of(embedding), [2, 98], axis=0)
    width = float((high - low).max())
    if len(low) > 1 and spread(embedding) < MIN_SPREAD:
        spots = "The points have collapsed onto a few spots"
        return _mended(spots, settings, *last)
    if len(low) > 1 and width < _HEAP:
        heap = "The points lie in one heap, too close to be told apart"
        return _mended(heap, settings, *last)
    approximation = resolve_approximation(settings)
    if approximation == "mesh" and (coarse := _coarse_grid(embedding, settings)):
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
        return _mended(outside, settings, "choose the approximation exact", exact)
    more = {"n_landmarks": min(len(embedding), 4 * n)}
    return _mended(outside, settings, "raise the number of landmarks", more)


def _coarse_grid(embedding: Points, settings: Settings) -> Alarm:
    """Return an alarm where the grid's nodes lie further apart than points feel."""
    width, spacing = float(np.ptp(embedding, axis=0).max()), widest_spacing(embedding)
    if spacing <= WIDER or settings.method == "given":
        return Alarm()
    instead = "exact" if len(embedding) <= MAX_EXACT else "landmarks"
    return Alarm(
        f"The map is {width:,.0f} wide, too wide for the grid: points closer than "
        f"{spacing:.1f} are hardly kept apart: choose the approximation {instead}.",
        {"approximation": instead},
    )


def spread(embedding: Points) -> float:
    """Return the width of the map if all points lay as close as most do.

    That is the median distance of points (N, d) to their 10th nearest, times the d-th
    root of N / 10.  Islands count alike wherever they lie, unlike in the extent.
    """
    points = _some_of(embedding)
    (n, d), k = points.shape, min(_NEAREST, len(points) - 1)
    asked = points[:: max(1, n // _MAX_ASKED)]
    distances = cKDTree(points).query(asked, [k + 1])[0]
    return float(np.median(distances) * (n / k) ** (1 / d))


def _some_of(embedding: Points) -> Points:
    return embedding[:: max(1, len(embedding) // _MAX_POINTS)]


def _mended(
    sentence: str, settings: Settings, advice: str, last: dict[str, Any]
) -> Alarm:
    """Return an alarm that resets a harmful setting to its default.

    Without such a setting the remedy is ``last``, described by ``advice``.
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
    return Alarm(f"{sentence}: {advice}.", last)
