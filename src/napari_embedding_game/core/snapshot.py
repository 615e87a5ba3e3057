"""What passes between the engine and whoever drives it, and the hash of a map."""

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

FAR = 5.0
"""Stretch above which a point is misplaced: far from its neighbours in the data."""

UNLIKE = 2.5
"""Isolation above which a row is called an outlier: unlike anything in the data."""


@dataclass(frozen=True, slots=True)
class Alarm:
    """What is wrong with a map; false where nothing is."""

    sentence: str = ""
    remedy: Mapping[str, Any] = field(default_factory=dict)
    """Fields of :class:`Settings` that mend it, for a new run."""

    def __bool__(self) -> bool:
        return bool(self.sentence)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WarmStart:
    """A layout that another run goes on from; the arrays stay as they are."""

    embedding: NDArray[np.float32]
    """(N, d) positions of the points."""
    landmarks: NDArray[np.float32]
    """(L, d) positions of the landmarks, if any are moved."""
    iterations_left: int = 0
    """Iterations left of the schedule: played, and at least its second half."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Spring:
    """A spring that draws the mean of some points to a position."""

    rows: IntArray
    """(m,) the points."""
    place: tuple[float, ...]
    """(d,) where their middle is drawn to, in units of the map."""
    is_pinned: bool = False
    """Whether a person wants it to stay there when the mouse has let go."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Hold:
    """Points that are held where they are."""

    rows: IntArray
    """(m,) the points."""
    places: FloatArray
    """(m, d) where, in units of the map."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LandmarkHold:
    """A landmark that is held at a position."""

    number: int
    """Its index among the landmarks of the game; one that is gone is ignored."""
    place: tuple[float, ...]
    """(d,) where, in units of the map."""
    is_pinned: bool = False
    """Whether a person wants it to stay there when the mouse has let go."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HandForces:
    """All that a person does to points of the map at one time, besides settings."""

    springs: tuple[Spring, ...] = ()
    holds: tuple[Hold, ...] = ()
    landmarks: tuple[LandmarkHold, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.springs or self.holds or self.landmarks)


NO_FORCES = HandForces()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Steer:
    """How a game is steered on its way; None: as before."""

    settings: Settings | None = None
    forces: HandForces | None = None
    look: bool = False
    """Whether nothing moves and the next snapshot has all of this moment."""

    def __bool__(self) -> bool:
        return self.look or self.settings is not None or self.forces is not None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Snapshot:
    """One state of the game; the arrays are copies and stay as they are.

    ``labels``, ``pressure``, ``stretch``, ``warning`` and, of more than 50,000 points,
    ``energy`` are of an earlier frame where working them out for each would take more
    than a quarter of the time.  They are of this very state where it is ``finished``,
    or was asked for by ``Steer(look=True)``.

    ``play._Driver.snapshot`` makes them.
    """

    iteration: int
    """Iterations done since the start layout (0 is the start layout itself)."""
    n_iter: int
    """Iterations at the end, as far as known now; 0 while nobody knows."""
    embedding: NDArray[np.float32]
    """(N, d) positions of the points."""
    landmarks: NDArray[np.float32]
    """(L, d) positions of the landmarks."""
    energy: float
    """What the method optimises; for the game the bound of Eq. 3."""
    labels: NDArray[np.int32]
    """(N,) index of each point's nearest landmark (Eq. 7)."""
    pressure: NDArray[np.float32]
    """(N,) pressure, in units of the map; all NaN where it is not known or defined."""
    stretch: NDArray[np.float32] | None = None
    """(N,) see :mod:`inspect.stretch`; None where nobody knows."""
    neighbors: NDArray[np.int32] | None = None
    """(N, k) nearest rows in the data, -1 for none; no copy.  None if not known."""
    isolation: NDArray[np.float32] | None = None
    """(N,) see :mod:`inspect.isolation`; no copy.  None where nobody knows."""
    warning: str = ""
    """A sentence when the picture cannot be trusted."""
    remedy: Mapping[str, Any] = field(default_factory=dict)
    """Fields of :class:`Settings` that remedy the ``warning``, if any do."""
    finished: bool = False
    """True on the last snapshot of a schedule."""

    @property
    def map_hash(self) -> str:
        """What this map is recognised by, see :func:`map_hash`."""
        return map_hash(self.embedding, self.labels)

    @property
    def has_pressure(self) -> bool:
        """Whether pressure is defined, and known."""
        return not math.isnan(self.pressured_share)

    @property
    def pressured_share(self) -> float:
        """Share of points under pressure, 0 to 1; NaN where there is none to know."""
        return share_above(self.pressure, 0)

    @property
    def stretched_share(self) -> float:
        """Share of points that lie far from their neighbours; NaN if not known."""
        return share_above(self.stretch, FAR)

    @property
    def unlike_share(self) -> float:
        """Share of points that are unlike anything in the data; NaN if not known."""
        return share_above(self.isolation, UNLIKE)


def map_hash(embedding: NDArray[np.floating], labels: NDArray[np.integer]) -> str:
    """Return 16 hexadecimal digits by which a map is recognised on another machine.

    The first of the SHA-256 of the positions, (N, d) float32, and of each point's
    nearest landmark, (N,) int32, all little-endian.
    """
    positions = np.ascontiguousarray(embedding, "<f4").tobytes()
    nearest = np.ascontiguousarray(labels, "<i4").tobytes()
    return hashlib.sha256(positions + nearest).hexdigest()[:16]


def share_above(values: NDArray[np.floating] | None, limit: float) -> float:
    """Return the share of points above a limit; NaN where values are not known."""
    if values is None or (len(values) and np.isnan(values[0])):
        return math.nan
    return float(np.count_nonzero(values > limit) / max(len(values), 1))
