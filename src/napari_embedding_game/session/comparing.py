"""Two layouts of a map compared: the one on show, and one of the timeline.

While they are, the map can be shown anywhere on the way from one to the other, or both
side by side.  The session's own snapshot stays what it is; :attr:`Session.drawn` is
what is seen in its place, :attr:`Session.seen` all of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from psygnal import Signal

from napari_embedding_game.core.snapshot import Snapshot
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.session.panels import (
    GAP_OF_FIGURES,
    Panels,
    Room,
    lay_out,
)
from napari_embedding_game.session.quality import is_comparable

if TYPE_CHECKING:
    from napari_embedding_game.core.inspect.compare import MapComparison
    from napari_embedding_game.core.inspect.quality import MapQuality
    from napari_embedding_game.session.session import Session
    from napari_embedding_game.session.timeline import Mark

ONLY_AT_REST = "Pause or stop the game to compare two maps."
FAR_OFF = 0.4
"""Radii of the map that half of the points move where islands change places."""
THIS_MAP = "This map"
GONE = "This moment is no longer kept: choose another mark."
SHEET = (
    " The other map has 2 dimensions: it lies in space as a sheet, turned so that it "
    "fits this one best."
)
SHADOW = (
    " The other map has 3 dimensions: you see it from the side from which it fits this "
    "one best, and its depth not at all."
)


@dataclass(frozen=True, eq=False)
class Compared:
    """The map on show and another one."""

    base: Snapshot
    mark: Mark
    """The other layout."""
    maps: MapComparison
    qualities: tuple[MapQuality, MapQuality] | None
    """Of the map on show and of the other; None where the data cannot tell."""

    def told(self) -> str:
        """Return in words what differs."""
        half = float(np.median(self.maps.moved))
        is_near = half < FAR_OFF
        text = (
            f"{self.maps.kept:.0%} of a point's neighbours are the same on both maps. "
            f"Half of the points move by {'less' if is_near else 'more'} than "
            f"{half:.0%} of the map's radius"
            f"{'.' if is_near else ': whole islands may have changed places.'}"
        )
        if self.qualities is not None:
            here, there = self.qualities
            text += (
                f" Neighbours kept: {here.neighbors_kept:.0%} on this map, "
                f"{there.neighbors_kept:.0%} on the other; large picture: "
                f"{here.triplets:.0%} and {there.triplets:.0%}."
            )
        return text + {(3, 2): SHEET, (2, 3): SHADOW}.get(self.n_dimensions, "")

    @property
    def n_dimensions(self) -> tuple[int, int]:
        """Dimensions of the map on show and of the other."""
        other = self.mark.snapshot.embedding
        return self.base.embedding.shape[1], other.shape[1]

    def beside(self, facing: NDArray[np.floating]) -> SideBySide:
        """Return both maps in panels, the other laid on the one on show.

        Parameters
        ----------
        facing : (2, 3) array
            As in :func:`~.panels.lay_out`.
        """
        laid = self.maps.second
        room = Room.around(np.concatenate([self.base.embedding, laid]))
        told = ["", self.mark.origin]
        if self.qualities is not None:
            told = [
                f"neighbours {one.neighbors_kept:.0%}, large picture {one.triplets:.0%}"
                for one in self.qualities
            ]
        here, there = self.n_dimensions
        if here != there:
            told[1] += f", {there} dimensions"
        captions = [(THIS_MAP, told[0]), (self.mark.title, told[1])]
        panels = lay_out(room, captions, facing, GAP_OF_FIGURES)
        return SideBySide(panels, laid[None] + panels.offsets[1:, None])


@dataclass(frozen=True, eq=False)
class SideBySide:
    """The other map, laid on the map on show, in a panel beside it."""

    panels: Panels
    """The first is of the map on show."""
    places: NDArray[np.float32]
    """(1, N, d) of the points on the other, as they are drawn."""


class Comparing:
    """The comparison of a session's map with another of its timeline."""

    changed = Signal()
    """Another comparison, or none any more."""
    moved = Signal()
    """Another place on the way between the two."""
    laid_out = Signal()
    """The maps lie side by side, or no longer."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._compared: Compared | None = None
        self.is_side_by_side = False
        """Whether the maps lie side by side."""
        self._beside: SideBySide | None = None
        self.share = 0.0
        """Where on the way the map is shown: 0 is the session's own."""
        self._drawn: Snapshot | None = None

    @property
    def current(self) -> Compared | None:
        """The comparison of the map on show; None without one."""
        compared = self._compared
        is_of_map = compared is not None and compared.base is self._session.snapshot
        return compared if is_of_map else None

    def job(self, number: int) -> Callable[[], Compared]:
        """Return what compares the map on show with a mark, for another thread.

        Raises
        ------
        DataError
            The points are moving, there is no map, or the mark was forgotten.
        """
        session, mark = self._session, self._session.timeline.find(number)
        base = session.snapshot
        if base is None or session.state in ("preparing", "running"):
            raise DataError(ONLY_AT_REST)
        if mark is None or len(mark.snapshot.embedding) != len(base.embedding):
            raise DataError(GONE)
        dataset, played = session.dataset, session.played
        X, metric = None, ""
        if dataset is not None and played is not None and is_comparable(session):
            X, metric = dataset.X, played.settings.metric

        def work_out() -> Compared:
            from napari_embedding_game.core.inspect.compare import compare_maps
            from napari_embedding_game.core.inspect.quality import map_quality

            maps = compare_maps(base.embedding, mark.snapshot.embedding)
            qualities = None
            if X is not None:
                one = map_quality(X, base.embedding, None, metric=metric)
                other = map_quality(X, mark.snapshot.embedding, None, metric=metric)
                qualities = None if one is None or other is None else (one, other)
            return Compared(base, mark, maps, qualities)

        return work_out

    def take(self, compared: Compared) -> None:
        """Begin with what :meth:`job` found, unless another map is on show by now."""
        if compared.base is self._session.snapshot:
            self._set(compared)

    @property
    def can_lie_side_by_side(self) -> bool:
        """Whether they can: a comparison is there, of a map in a plane or in space."""
        current = self.current
        return current is not None and current.base.embedding.shape[1] in (2, 3)

    def lay_side_by_side(self, is_wanted: bool) -> None:
        """Draw the other map beside the one on show, or no longer."""
        is_wanted = is_wanted and self.can_lie_side_by_side
        if is_wanted != self.is_side_by_side:
            self.show(0.0)
            self.is_side_by_side, self._beside = is_wanted, None
            self.laid_out.emit()

    @property
    def beside(self) -> SideBySide | None:
        """The other map as it is drawn beside the one on show; None for none."""
        current = self.current
        if not self.is_side_by_side or current is None:
            return None
        if self._beside is None:
            self._beside = current.beside(self._session.facing)
        return self._beside

    def show(self, share: float) -> None:
        """Show the map at this place on the way, from 0 to 1, not side by side."""
        current = self.current
        if self.is_side_by_side or current is None or share == self.share:
            return
        self.share, self._drawn = share, _between(current, share)
        self.moved.emit()

    def end(self) -> None:
        """Show the map as it is, and compare no more."""
        if self._compared is not None:
            self._set(None)

    def check(self) -> None:
        """End where another map has come on show, or the points move."""
        is_moving = self._session.state in ("preparing", "running")
        if is_moving or self.current is None:
            self.end()

    @property
    def drawn(self) -> Snapshot | None:
        """What is to be drawn in place of the session's snapshot; None for that."""
        return None if self.current is None else self._drawn

    def _set(self, compared: Compared | None) -> None:
        was_elsewhere, was_beside = self._drawn is not None, self.is_side_by_side
        self._compared, self.share = compared, 0.0
        self._drawn = self._beside = None
        self.is_side_by_side = was_beside and compared is not None
        self.changed.emit()
        if was_elsewhere:
            self.moved.emit()
        if was_beside:
            self.laid_out.emit()


def _between(current: Compared, share: float) -> Snapshot | None:
    if share <= 0:
        return None
    base = current.base
    places = current.maps.between(share)
    # Landmarks have no place on the other map but among their points.
    n = len(base.landmarks)
    count = np.bincount(base.labels, minlength=n)[:, None]
    sums = [np.bincount(base.labels, axis, minlength=n) for axis in places.T]
    middles = np.column_stack(sums) / np.maximum(count, 1)
    landmarks = np.where(count > 0, middles, base.landmarks).astype(np.float32)
    return replace(base, embedding=places, landmarks=landmarks)
