"""What a person's hand does to points of the map while the game runs.

Each action leaves a mark in the timeline, is told to the run, and stands in the run's
record.  Where nothing is played, a branch begins from the map on show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from psygnal import Signal

from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.settings import (
    resolve_approximation,
    validate_takes_hand_forces,
)
from napari_embedding_game.core.snapshot import (
    NO_FORCES,
    HandForces,
    Hold,
    LandmarkHold,
    Snapshot,
    Spring,
)
from napari_embedding_game.data.columns import counted
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.session.run.record import Moment
from napari_embedding_game.session.run.run import Run

if TYPE_CHECKING:
    from napari_embedding_game.session.session import Session

Rows = NDArray[np.integer]
Place = NDArray[np.floating]
MAX_DISTANCE = 1e5
"""Largest coordinate that something is dragged to, well on the map of a game."""


@dataclass
class _Drag:
    """A cluster or a landmark that the mouse drags."""

    run: Run
    target: Rows | int
    """The points, or the number of the landmark."""
    begin: Place
    """(d,) where it was, of a cluster the middle of its points."""
    at: Place
    """(d,) where it is drawn to."""


class Hand:
    """The forces of a hand on a session's map.

    What cannot be done raises DataError or InputError: there is no map, no run that
    takes up forces, or what was to be held is gone.
    """

    changed = Signal()

    def __init__(self, session: Session) -> None:
        self._session = session
        self.forces = NO_FORCES
        """What acts at present."""
        self._drag: _Drag | None = None
        self._refusal = ""

    # A cluster or a landmark at the mouse, while the game runs

    def begin_drag(self, cluster: int) -> None:
        """Take hold of a cluster while the game runs."""
        session = self._session
        rows = session.clusters.clustering.rows(cluster)
        run, snapshot = self._running()
        if not len(rows):
            raise DataError("This cluster has no points any more: drag another one.")
        title = session.clusters.clustering.by_id[cluster].title
        session.mark(f"{title} dragged by hand")
        middle = snapshot.embedding[rows].mean(axis=0, dtype=float)
        self._drag = _Drag(run, rows, middle, middle)
        self.drag_to(middle)

    def begin_landmark(self, number: int) -> None:
        """Take hold of a landmark while the game runs."""
        session = self._session
        run, snapshot = self._running()
        if resolve_approximation(session.steered) != "landmarks":
            raise InputError(
                "Landmarks push no points in this game: choose Landmarks under "
                "Repulsion by, to drag them."
            )
        if not 0 <= number < len(snapshot.landmarks):
            raise DataError("This landmark is gone: drag another one.")
        session.mark("Landmark dragged by hand")
        position = snapshot.landmarks[number].astype(float)
        self._drag = _Drag(run, number, position, position)
        self.drag_to(position)

    def drag_by(self, by: Place) -> None:
        """Draw what the mouse has hold of to where it was, moved by ``by`` (d,)."""
        if self._drag is not None:
            self.drag_to(self._drag.begin + by)

    def drag_to(self, position: Place) -> None:
        """Draw what the mouse holds to a position (d,), unless its run is over."""
        drag = self._drag
        if drag is not None and self._session.playing is drag.run:
            drag.at = _within_reach(position)
            self._send(drag.run, _with_hold(self.forces, drag.target, drag.at))

    def end_drag(self, *, is_pinned: bool = False) -> None:
        """Let go of what the mouse has hold of, or pin it where it is drawn to."""
        drag, self._drag = self._drag, None
        if drag is not None and self._session.playing is drag.run:
            forces = _without_hold(self.forces, drag.target)
            if is_pinned:
                forces = _with_hold(forces, drag.target, drag.at, is_pinned=True)
            self._send(drag.run, forces)

    def forget_landmarks(self) -> None:
        """Hold no landmark any more: there are more or fewer, with other numbers."""
        if self._drag is not None and isinstance(self._drag.target, int):
            self._drag = None
        if self.forces.landmarks:
            self._set(replace(self.forces, landmarks=()))
            if (run := self._session.playing) is not None:
                run.steer(forces=self.forces)

    # Chosen points

    def hold(self, rows: Rows | None = None) -> Run | None:
        """Hold points (m,), or those selected; return what is to be played, if any."""
        rows = self._session.selection.rows if rows is None else rows
        if not len(rows):
            raise DataError(
                "Choose some points first: click a cluster, or draw around."
            )
        hold = Hold(rows=rows, places=self._snapshot().embedding[rows])
        holds = (*_without(self.forces.holds, rows), hold)
        label = f"{counted(len(rows), 'point')} held"
        return self._apply(label, replace(self.forces, holds=holds))

    def release(self, rows: Rows | None = None) -> Run | None:
        """Let go of points as :meth:`hold`, or of all where none are selected."""
        rows = self._session.selection.rows if rows is None else rows
        forces = self.forces
        if is_all := not len(rows):
            rows = np.arange(len(self._snapshot().embedding))
        held = [*(s.rows for s in forces.springs), *(h.rows for h in forces.holds)]
        acts = any(bool(np.isin(one, rows).any()) for one in held)
        if not (acts or (is_all and forces.landmarks)):
            free = "The chosen points are free already: choose those that are held."
            raise DataError(free if forces else "Nothing is held by hand.")
        holds = _without(forces.holds, rows)
        left = replace(_without_hold(forces, rows), holds=holds)
        if is_all:
            left = replace(left, landmarks=())
        return self._apply(f"{counted(len(rows), 'point')} let go", left)

    def refuse(self, reason: str) -> None:
        """Show why something was not done, until something is."""
        self._session.show_message(reason)
        self._refusal = reason
        self.changed.emit()

    def summary(self) -> str:
        """Return in a sentence what acts on the map, or why something was not done."""
        forces = self.forces
        counts = (
            (sum(len(hold.rows) for hold in forces.holds), "point", "held"),
            (sum(s.is_pinned for s in forces.springs), "cluster", "pinned"),
            (sum(h.is_pinned for h in forces.landmarks), "landmark", "pinned"),
        )
        words = [f"{counted(n, noun)} {is_}" for n, noun, is_ in counts if n]
        return self._refusal or (f"By hand: {', '.join(words)}." if words else "")

    # Messages of the session

    def clear(self) -> None:
        """Forget all: another map comes."""
        self._drag = None
        self._set(NO_FORCES)

    def restore(self, moment: Moment) -> None:
        """Let act what acted at a moment, but for what the mouse had hold of."""
        self._drag, last = None, moment.forces
        if last is None:
            forced = () if moment.record is None else moment.record.forced
            last = forced[-1].forces if forced else NO_FORCES
        pinned = tuple(spring for spring in last.springs if spring.is_pinned)
        landmarks = tuple(hold for hold in last.landmarks if hold.is_pinned)
        self._set(replace(last, springs=pinned, landmarks=landmarks))

    def pin(self, rows: Rows, embedding: Place) -> None:
        """Let a spring hold the middle of a cluster where it is in a layout (N, d)."""
        middle = _within_reach(embedding[rows].mean(axis=0, dtype=float))
        self._set(_with_hold(self.forces, rows, middle, is_pinned=True))

    def move(self, rows: Rows, by: Place) -> None:
        """Move the held positions of these points by ``by`` (d,)."""
        holds = []
        for hold in self.forces.holds:
            moved = hold.places + np.outer(np.isin(hold.rows, rows), by)
            holds.append(replace(hold, places=moved.astype(hold.places.dtype)))
        springs = tuple(
            replace(s, place=tuple((np.array(s.place) + by).tolist()))
            if np.isin(s.rows, rows).mean() > 0.5
            else s
            for s in self.forces.springs
        )
        self._set(replace(self.forces, holds=tuple(holds), springs=springs))

    def carry(self, transform: Callable[[Place], Place]) -> None:
        """Move the forces into another map by ``transform``, from (m, d) to (m, e)."""

        def moved(position: tuple[float, ...]) -> tuple[float, ...]:
            return tuple(transform(np.array([position]))[0].tolist())

        self._drag, was = None, self.forces
        if was:
            forces = HandForces(
                springs=tuple(replace(s, place=moved(s.place)) for s in was.springs),
                holds=tuple(replace(h, places=transform(h.places)) for h in was.holds),
                landmarks=tuple(
                    replace(x, place=moved(x.place)) for x in was.landmarks
                ),
            )
            self._set(forces)

    def _snapshot(self) -> Snapshot:
        snapshot = self._session.snapshot
        if snapshot is None:
            raise DataError("There is no map yet: press Run.")
        return snapshot

    def _running(self) -> tuple[Run, Snapshot]:
        """Return the run that is played and its newest snapshot."""
        session, snapshot = self._session, self._snapshot()
        if (run := session.playing) is None:
            raise DataError("Nothing moves: press Continue first.")
        if not session.is_map_of(run):
            raise DataError("The map is not there yet: wait until its points move.")
        validate_takes_hand_forces(session.steered)
        return run, snapshot

    def _apply(self, label: str, forces: HandForces) -> Run | None:
        session = self._session
        if session.playing is not None:
            run, _ = self._running()
            session.mark(label)
            self._send(run, forces)
            return None
        validate_takes_hand_forces(session.settings.value)
        run = session.play_on(label)
        self._send(run, forces)
        return run

    def _send(self, run: Run, forces: HandForces) -> None:
        self._set(forces)
        run.steer(forces=forces)

    def _set(self, forces: HandForces) -> None:
        if forces is not self.forces or self._refusal:
            self.forces, self._refusal = forces, ""
            self.changed.emit()


def _without_hold(forces: HandForces, target: Rows | int) -> HandForces:
    """Return forces without a landmark's hold, or the springs of points."""
    if isinstance(target, int):
        holds = tuple(hold for hold in forces.landmarks if hold.number != target)
        return replace(forces, landmarks=holds)
    springs = tuple(s for s in forces.springs if not np.isin(s.rows, target).any())
    return replace(forces, springs=springs)


def _with_hold(
    forces: HandForces, target: Rows | int, at: Place, *, is_pinned: bool = False
) -> HandForces:
    """Return forces that hold a landmark, or the mean of points, at a position."""
    free, position = _without_hold(forces, target), tuple(at.tolist())
    if isinstance(target, int):
        hold = LandmarkHold(number=target, place=position, is_pinned=is_pinned)
        return replace(free, landmarks=(*free.landmarks, hold))
    spring = Spring(rows=target, place=position, is_pinned=is_pinned)
    return replace(free, springs=(*free.springs, spring))


def _within_reach(position: Place) -> Place:
    reached: Place = np.clip(np.asarray(position, float), -MAX_DISTANCE, MAX_DISTANCE)
    return reached


def _without(holds: Iterable[Hold], rows: Rows) -> tuple[Hold, ...]:
    """Return what is held without these points."""
    free = ((hold, ~np.isin(hold.rows, rows)) for hold in holds)
    return tuple(
        replace(hold, rows=hold.rows[stays], places=hold.places[stays])
        for hold, stays in free
        if stays.any()
    )
