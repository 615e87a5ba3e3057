"""Values exchanged with a running game: snapshots, settings, hand forces, alarms."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from napari_embedding_game.core.settings import Settings

FloatArray = NDArray[np.floating]
IntArray = NDArray[np.integer]

MISPLACED_STRETCH = 5.0
"""Stretch above which a point is called misplaced: far from its neighbours."""

OUTLIER_ISOLATION = 2.5
"""Isolation above which a row is called an outlier: unlike all rows of the data."""


@dataclass(frozen=True, slots=True)
class Alarm:
    """A problem of a map and its remedy; false where the map has no problem."""

    sentence: str = ""
    remedy: Mapping[str, Any] = field(default_factory=dict)
    """Fields of :class:`Settings`, with the values that solve the problem."""

    def __bool__(self) -> bool:
        return bool(self.sentence)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WarmStart:
    """A layout from which a new run continues; the arrays are not changed."""

    embedding: NDArray[np.float32]
    """(N, d) positions of the points."""
    landmarks: NDArray[np.float32]
    """(L, d) positions of the landmarks; L may be 0."""
    iterations_left: int = 0
    """Iterations left of the schedule; at least its second half is played."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Spring:
    """A spring that pulls the mean of some points to a position."""

    rows: IntArray
    """(m,) rows of the points."""
    place: tuple[float, ...]
    """(d,) target position of the points' mean, in units of the map."""
    is_pinned: bool = False
    """Whether the spring stays after the mouse button is released."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Hold:
    """Points that are held at positions."""

    rows: IntArray
    """(m,) rows of the points."""
    places: FloatArray
    """(m, d) position of each point, in units of the map."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LandmarkHold:
    """A landmark that is held at a position."""

    number: int
    """Index of the landmark in the game; ignored where the game has fewer landmarks."""
    place: tuple[float, ...]
    """(d,) position, in units of the map."""
    is_pinned: bool = False
    """Whether the landmark is held after the mouse button is released."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HandForces:
    """All springs and holds that a person applies to the map at one time."""

    springs: tuple[Spring, ...] = ()
    holds: tuple[Hold, ...] = ()
    landmarks: tuple[LandmarkHold, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.springs or self.holds or self.landmarks)


NO_FORCES = HandForces()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Steer:
    """A change that is sent to a running game; None leaves settings or forces."""

    settings: Settings | None = None
    forces: HandForces | None = None
    look: bool = False
    """Whether no point moves and the next snapshot has complete diagnostics."""

    def __bool__(self) -> bool:
        return self.look or self.settings is not None or self.forces is not None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Snapshot:
    """One state of the game; the arrays are copies that no later step changes.

    ``labels``, ``pressure``, ``stretch``, ``warning`` and, of more than 50,000 points,
    ``energy`` belong to an earlier state where computing them for each snapshot would
    take more than a quarter of the time.  They belong to this state where it is
    ``finished``, or was requested by ``Steer(look=True)``.

    ``play._Driver.take_snapshot`` makes snapshots.
    """

    iteration: int
    """Iterations done since the start layout (0 is the start layout itself)."""
    n_iter: int
    """Iterations at the end of the run; 0 while their number is unknown."""
    embedding: NDArray[np.float32]
    """(N, d) positions of the points."""
    landmarks: NDArray[np.float32]
    """(L, d) positions of the landmarks."""
    energy: float
    """The energy that the method minimises; for the game the bound of Eq. 3."""
    labels: NDArray[np.int32]
    """(N,) index of each point's nearest landmark (Eq. 7)."""
    pressure: NDArray[np.float32]
    """(N,) pressure, in units of the map; all NaN where unknown or not defined."""
    stretch: NDArray[np.float32] | None = None
    """(N,) see :mod:`inspect.stretch`; None where unknown."""
    neighbors: NDArray[np.int32] | None = None
    """(N, k) nearest rows in the data, filled up with -1; no copy.  None if unknown."""
    isolation: NDArray[np.float32] | None = None
    """(N,) see :mod:`inspect.isolation`; no copy.  None where unknown."""
    warning: str = ""
    """A sentence on why the map cannot be trusted, or ""."""
    remedy: Mapping[str, Any] = field(default_factory=dict)
    """Fields of :class:`Settings`, with the values that solve the ``warning``."""
    finished: bool = False
    """Whether this is the last snapshot of a schedule."""

    @property
    def map_hash(self) -> str:
        """The hash by which this map is recognised, see :func:`compute_map_hash`."""
        return compute_map_hash(self.embedding, self.labels)

    @property
    def has_pressure(self) -> bool:
        """Whether pressure is defined and was computed."""
        return not math.isnan(self.pressured_share)

    @property
    def pressured_share(self) -> float:
        """Share of points under pressure, 0 to 1; NaN where pressure is unknown."""
        return compute_share_above(self.pressure, 0)

    @property
    def stretched_share(self) -> float:
        """Share of points far from their neighbours, 0 to 1; NaN if unknown."""
        return compute_share_above(self.stretch, MISPLACED_STRETCH)

    @property
    def unlike_share(self) -> float:
        """Share of points that are outliers in the data, 0 to 1; NaN if unknown."""
        return compute_share_above(self.isolation, OUTLIER_ISOLATION)


def compute_map_hash(
    embedding: NDArray[np.floating], labels: NDArray[np.integer]
) -> str:
    """Return 16 hexadecimal digits by which a map is recognised on another machine.

    They are the first digits of the SHA-256 of the positions (N, d) as float32,
    followed by the labels (N,), each point's nearest landmark, as int32, little-endian.
    """
    positions = np.ascontiguousarray(embedding, "<f4").tobytes()
    nearest = np.ascontiguousarray(labels, "<i4").tobytes()
    return hashlib.sha256(positions + nearest).hexdigest()[:16]


def compute_share_above(values: NDArray[np.floating] | None, limit: float) -> float:
    """Return the share of ``values`` (N,) above ``limit``, 0 to 1.

    NaN where ``values`` is None or begins with NaN, that is unknown.
    """
    if values is None or (len(values) and np.isnan(values[0])):
        return math.nan
    return float(np.count_nonzero(values > limit) / max(len(values), 1))
