"""Layouts of a map compared: the one on show, and others of the timeline.

While they are, the map can be shown anywhere on the way from one to the other, or the
others side by side with it.  The session's own snapshot stays what it is;
:attr:`Session.drawn` is what is seen in its place, :attr:`Session.seen` all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from psygnal import Signal

from napari_embedding_game.core.snapshot import Snapshot
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.session.panels import (
    GAP_OF_FIGURES,
    STRAIGHT,
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
MOST_BESIDE = 5
"""Other maps that are seen side by side with the one on show; the newest stay."""
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
        )
        text += "." if is_near else ": whole islands may have changed places."
        if self.qualities is not None:
            here, there = self.qualities
            text += (
                f" Neighbours kept: {here.neighbors_kept:.0%} on this map, "
                f"{there.neighbors_kept:.0%} on the other; large picture: "
                f"{here.triplets:.0%} and {there.triplets:.0%}."
            )
        return text + self._told_dimensions()

    @property
    def n_dimensions(self) -> tuple[int, int]:
        """Dimensions of the map on show and of the other."""
        other = self.mark.snapshot.embedding
        return self.base.embedding.shape[1], other.shape[1]

    def _told_dimensions(self) -> str:
        """Return what is to be known where a flat map is laid on one in space."""
        return {(3, 2): SHEET, (2, 3): SHADOW}.get(self.n_dimensions, "")


@dataclass(frozen=True, eq=False)
class SideBySide:
    """Other maps, each laid on the map on show, in panels beside it."""

    panels: Panels
    """The first is of the map on show."""
    places: NDArray[np.float32]
    """(m, N, d) of the points on the others, as they are drawn."""


class Comparing:
    """The comparison of a session's map with another of its timeline.

    Parameters
    ----------
    session : Session
    """

    changed = Signal()
    """Another comparison, or none any more."""
    moved = Signal()
    """Another place on the way between the two."""
    laid_out = Signal()
    """Maps lie side by side, others than before, or none any more."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.current: Compared | None = None
        """The newest comparison."""
        self.others: tuple[Compared, ...] = ()
        """All that have been compared with the map on show, :attr:`current` last."""
        self._is_side_by_side = False
        self._beside: SideBySide | None = None
        self.share = 0.0
        """Where on the way the map is shown: 0 is the session's own."""
        self._drawn: Snapshot | None = None

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
        """Begin with what :meth:`job` found, unless another map is on show by now.

        Where maps lie side by side, it joins them.
        """
        if compared.base is not self._session.snapshot:
            return
        number = compared.mark.number
        others = [o for o in self.others if o.mark.number != number]
        kept = others[1 - MOST_BESIDE :] if self._is_side_by_side else []
        self._set(compared, (*kept, compared))

    @property
    def is_side_by_side(self) -> bool:
        """Whether maps lie side by side."""
        return self._is_side_by_side

    @property
    def can_lie_side_by_side(self) -> bool:
        """Whether they can: a comparison is there, of a map in a plane or in space."""
        current = self.current
        return current is not None and current.base.embedding.shape[1] in (2, 3)

    def lay_side_by_side(self, is_wanted: bool) -> None:
        """Draw the other maps beside the one on show, or no longer."""
        is_wanted = is_wanted and self.can_lie_side_by_side
        if is_wanted != self._is_side_by_side:
            self.show(0.0)
            self._is_side_by_side, self._beside = is_wanted, None
            self.laid_out.emit()

    @property
    def beside(self) -> SideBySide | None:
        """The other maps as they are drawn beside the one on show; None for none."""
        if not self._is_side_by_side or self.current is None:
            return None
        if self.current.base is not self._session.snapshot:
            return None
        if self._beside is None:
            self._beside = side_by_side(self.others, self._session.facing)
        return self._beside

    def show(self, share: float) -> None:
        """Show the map at this place on the way, from 0 to 1, not side by side."""
        if self._is_side_by_side or self.current is None or share == self.share:
            return
        self.share, self._drawn = share, self._between(self.current, share)
        self.moved.emit()

    def end(self) -> None:
        """Show the map as it is, and compare no more."""
        if self.current is not None:
            self._set(None, ())

    def check(self) -> None:
        """End where another map has come on show, or the points move."""
        session, current = self._session, self.current
        if current is None:
            return
        is_moving = session.state in ("preparing", "running")
        if is_moving or session.snapshot is not current.base:
            self.end()

    @property
    def drawn(self) -> Snapshot | None:
        """What is to be drawn in place of the session's snapshot; None for that."""
        current = self.current
        if current is None or current.base is not self._session.snapshot:
            return None
        return self._drawn

    def _set(self, compared: Compared | None, others: tuple[Compared, ...]) -> None:
        was_elsewhere, was_beside = self._drawn is not None, self._is_side_by_side
        self.current, self.share, self._drawn = compared, 0.0, None
        self.others, self._beside = others, None
        self._is_side_by_side = was_beside and compared is not None
        self.changed.emit()
        if was_elsewhere:
            self.moved.emit()
        if was_beside:
            self.laid_out.emit()

    @staticmethod
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


def side_by_side(
    others: Sequence[Compared], facing: NDArray[np.floating] = STRAIGHT
) -> SideBySide:
    """Lay maps beside the one that they were compared with, in the same places.

    Parameters
    ----------
    others : sequence of Compared
        At least one; all of the same map, of two or three dimensions.
    facing : (2, 3) array
        As in :func:`~.panels.lay_out`.
    """
    base = others[0].base.embedding
    laid = np.stack([other.maps.second for other in others])
    room = Room.around(np.concatenate([base, *laid]))
    first = others[-1].qualities
    captions = [(THIS_MAP, "" if first is None else _figures(first[0]))]
    for other, name in zip(others, _names(others), strict=True):
        found = other.qualities
        told = other.mark.origin if found is None else _figures(found[1])
        here, there = other.n_dimensions
        if here != there:
            told = f"{told}, {there} dimensions"
        captions.append((name, told))
    panels = lay_out(room, captions, facing, GAP_OF_FIGURES)
    return SideBySide(panels, laid + panels.offsets[1:, None])


def _names(others: Sequence[Compared]) -> list[str]:
    """Return the names of maps; of those that are called alike with what differs."""
    names = []
    for other in others:
        name = other.mark.title
        alike = [o for o in others if o is not other and o.mark.title == name]
        for part in _made_by(other):
            fewer = [o for o in alike if part in _made_by(o)]
            if len(fewer) < len(alike):
                name, alike = f"{name}, {part}", fewer
        names.append(name)
    return names


def _made_by(other: Compared) -> list[str]:
    return other.mark.origin.split(", ")


def _figures(quality: MapQuality) -> str:
    return (
        f"neighbours {quality.neighbors_kept:.0%}, large picture {quality.triplets:.0%}"
    )
