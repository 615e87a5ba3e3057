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
from napari_embedding_game.core.energy.methods import get_method
from napari_embedding_game.core.settings import Settings, approximation_of, repulsion_of
from napari_embedding_game.core.snapshot import Alarm

CELLS = 64
MIN_OCCUPANCY = 0.08
"""Below this the map is called collapsed; maps of real data lie above 0.2."""
RUN_APART = 1e4
"""Maps of a million points stay within some hundred."""
OUTSIDE, _MAX_OUTSIDE = 2.0, 0.15
"""Distance to its nearest point from which a landmark pushes hardly any, and the share
of such landmarks; good maps of six data sets have at most 0.09."""
_MAX_POINTS = 20_000
_REACH, _HEAP = 1.0, 2.5
"""A map within 1, where the kernel is flat, is one spot; 2.5 has no room for groups."""
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
    stronger = {"repulsion": 3 * repulsion_of(settings)}
    last = f"raise {_WORDS['repulsion']}", stronger
    low, high = np.percentile(_some_of(embedding), [2, 98], axis=0)
    if occupancy(embedding) < MIN_OCCUPANCY:
        spots = "The points have collapsed onto a few spots"
        return _mended(spots, settings, *last)
    if len(low) > 1 and (high - low).max() < _HEAP:
        heap = "The points lie in one heap, too close to be told apart"
        return _mended(heap, settings, *last)
    if landmarks is None or approximation_of(settings) != "landmarks":
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


def occupancy(embedding: Points) -> float:
    """Return how many of the cells that could hold a point do hold one, 0 to 1.

    The cells are a grid of 64 x 64 over the middle 96 % of the map, at least of side 1.
    """
    plane = _some_of(embedding)
    if plane.shape[1] == 1:
        return 1.0  # a line fills no plane
    low, high = np.percentile(plane, [2, 98], axis=0)
    scaled = (plane - low) / np.maximum(high - low, _REACH)
    cell = np.clip(scaled * CELLS, 0, CELLS - 1).astype(np.int64)
    return len(np.unique(cell @ [CELLS, 1])) / min(len(plane), CELLS**2)


def _some_of(embedding: Points) -> Points:
    return embedding[:: max(1, len(embedding) // _MAX_POINTS), :2]


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
        "repulsion": repulsion_of(settings) >= get_method(settings.method).repulsion,
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
