"""Forces by which a person holds and drags points of the map while the game runs.

Each action makes a mark in the timeline, is sent to the run, and is kept in the run's
record.  Where nothing is played, a branch is begun from the map on show.
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
from napari_embedding_game.data.columns import count_text
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.session.run.record import Moment
from napari_embedding_game.session.run.run import GameRun

if TYPE_CHECKING:
    from napari_embedding_game.session.session import Session

RowIndices = NDArray[np.integer]
Position = NDArray[np.floating]
MAX_DISTANCE = 1e5
"""Largest coordinate to which points or a landmark can be dragged."""


@dataclass
class _Drag:
    """A cluster or a landmark that is being dragged with the mouse."""

    run: GameRun
    target: RowIndices | int
    """The points of the cluster, or the number of the landmark."""
    begin: Position
    """(d,) position at the beginning: of the landmark, or the mean of the points."""
    at: Position
    """(d,) position to which the target is pulled."""


class Hand:
    """The forces that a person applies to a session's map by hand.

    Methods raise DataError or InputError where there is no map, where no run can take
    up forces, or where the cluster or landmark no longer exists.
    """

    changed = Signal()

    def __init__(self, session: Session) -> None:
        self._session = session
        self.forces = NO_FORCES
        """The forces that act at present."""
        self._drag: _Drag | None = None
        self._refusal = ""

    # A cluster or a landmark at the mouse, while the game runs

    def begin_cluster_drag(self, cluster: int) -> None:
        """Start to drag a cluster by the mean of its points, while the game runs.

        A mark is added to the timeline.
        """
        session = self._session
        rows = session.clusters.clustering.rows_in_cluster(cluster)
        run, snapshot = self._require_moving_map()
        if not len(rows):
            raise DataError("This cluster has no points any more: drag another one.")
        title = session.clusters.clustering.by_id[cluster].title
        session.add_mark(f"{title} dragged by hand")
        middle = snapshot.embedding[rows].mean(axis=0, dtype=float)
        self._drag = _Drag(run, rows, middle, middle)
        self.drag_to(middle)

    def begin_landmark_drag(self, number: int) -> None:
        """Start to drag a landmark while the game runs; a mark is added.

        Raises InputError where the repulsion is not approximated by landmarks.
        """
        session = self._session
        run, snapshot = self._require_moving_map()
        if resolve_approximation(session.sent_settings) != "landmarks":
            raise InputError(
                "Landmarks push no points in this game: choose Landmarks under "
                "Repulsion by, to drag them."
            )
        if not 0 <= number < len(snapshot.landmarks):
            raise DataError("This landmark is gone: drag another one.")
        session.add_mark("Landmark dragged by hand")
        position = snapshot.landmarks[number].astype(float)
        self._drag = _Drag(run, number, position, position)
        self.drag_to(position)

    def drag_by(self, by: Position) -> None:
        """Pull the dragged target, if any, to its first position plus ``by`` (d,)."""
        if self._drag is not None:
            self.drag_to(self._drag.begin + by)

    def drag_to(self, position: Position) -> None:
        """Pull the dragged target to a position (d,), clamped to ``MAX_DISTANCE``.

        Nothing happens where nothing is dragged, or where its run has ended.
        """
        drag = self._drag
        if drag is not None and self._session.active_run is drag.run:
            drag.at = _clip_to_reach(position)
            self._send_forces(drag.run, _add_hold(self.forces, drag.target, drag.at))

    def end_drag(self, *, is_pinned: bool = False) -> None:
        """Release the dragged target, or pin it at the position it is pulled to.

        Where its run has ended, the drag is only forgotten.
        """
        drag, self._drag = self._drag, None
        if drag is not None and self._session.active_run is drag.run:
            forces = _drop_hold(self.forces, drag.target)
            if is_pinned:
                forces = _add_hold(forces, drag.target, drag.at, is_pinned=True)
            self._send_forces(drag.run, forces)

    def release_landmarks(self) -> None:
        """Drop all forces on landmarks, as the number of landmarks changes.

        The drag of a landmark ends, and an active run gets the remaining forces.
        """
        if self._drag is not None and isinstance(self._drag.target, int):
            self._drag = None
        if self.forces.landmarks:
            self._set_forces(replace(self.forces, landmarks=()))
            if (run := self._session.active_run) is not None:
                run.steer(forces=self.forces)

    # Chosen points

    def hold_points(self, rows: RowIndices | None = None) -> GameRun | None:
        """Hold points (m,) where they are; by default the selected points.

        A former hold of these points is replaced, and a mark is added.  Returns the
        branch to be played, or None if the active run takes up the forces.

        Raises DataError: there are no points.
        """
        rows = self._session.selection.rows if rows is None else rows
        if not len(rows):
            raise DataError(
                "Choose some points first: click a cluster, or draw around."
            )
        hold = Hold(rows=rows, places=self._require_snapshot().embedding[rows])
        holds = (*_drop_rows(self.forces.holds, rows), hold)
        label = f"{count_text(len(rows), 'point')} held"
        return self._apply_forces(label, replace(self.forces, holds=holds))

    def release_points(self, rows: RowIndices | None = None) -> GameRun | None:
        """Release points (m,); by default the selected points, or all if none are.

        A spring on a cluster with any of these points is dropped; holds of landmarks
        are dropped only where all points are released.  A mark is added.  Returns a run
        as :meth:`hold_points` does.

        Raises DataError: none of the points is held.
        """
        rows = self._session.selection.rows if rows is None else rows
        forces = self.forces
        if is_all := not len(rows):
            rows = np.arange(len(self._require_snapshot().embedding))
        held = [*(s.rows for s in forces.springs), *(h.rows for h in forces.holds)]
        acts = any(bool(np.isin(one, rows).any()) for one in held)
        if not (acts or (is_all and forces.landmarks)):
            free = "The chosen points are free already: choose those that are held."
            raise DataError(free if forces else "Nothing is held by hand.")
        holds = _drop_rows(forces.holds, rows)
        left = replace(_drop_hold(forces, rows), holds=holds)
        if is_all:
            left = replace(left, landmarks=())
        return self._apply_forces(f"{count_text(len(rows), 'point')} let go", left)

    def show_refusal(self, reason: str) -> None:
        """Show in the session's message why an action was refused; emit ``changed``.

        The reason is kept for :meth:`describe_forces_or_refusal` until the forces
        change.
        """
        self._session.show_message(reason)
        self._refusal = reason
        self.changed.emit()

    def describe_forces_or_refusal(self) -> str:
        """Return why an action was refused, else a sentence on the forces that act.

        The sentence counts held points and pinned clusters and landmarks; "" without
        any.
        """
        forces = self.forces
        counts = (
            (sum(len(hold.rows) for hold in forces.holds), "point", "held"),
            (sum(s.is_pinned for s in forces.springs), "cluster", "pinned"),
            (sum(h.is_pinned for h in forces.landmarks), "landmark", "pinned"),
        )
        words = [f"{count_text(n, noun)} {is_}" for n, noun, is_ in counts if n]
        return self._refusal or (f"By hand: {', '.join(words)}." if words else "")

    # Messages of the session

    def drop_forces(self) -> None:
        """Drop all forces and end the drag, as another map comes."""
        self._drag = None
        self._set_forces(NO_FORCES)

    def restore_forces(self, moment: Moment) -> None:
        """Restore the forces of a moment: its own, else the last ones of its record.

        The present drag ends.  Only pinned clusters and landmarks are restored, as
        other springs were of a drag.
        """
        self._drag, last = None, moment.forces
        if last is None:
            forced = () if moment.record is None else moment.record.forced
            last = forced[-1].forces if forced else NO_FORCES
        pinned = tuple(spring for spring in last.springs if spring.is_pinned)
        landmarks = tuple(hold for hold in last.landmarks if hold.is_pinned)
        self._set_forces(replace(last, springs=pinned, landmarks=landmarks))

    def pin_cluster(self, rows: RowIndices, embedding: Position) -> None:
        """Add a spring that holds the mean of points where it is in a layout (N, d).

        Springs on any of these points are replaced.
        """
        middle = _clip_to_reach(embedding[rows].mean(axis=0, dtype=float))
        self._set_forces(_add_hold(self.forces, rows, middle, is_pinned=True))

    def move_forces(self, rows: RowIndices, by: Position) -> None:
        """Move the positions at which points ``rows`` (m,) are held by ``by`` (d,).

        A spring moves along if more than half of its points are among ``rows``; holds
        of landmarks stay.
        """
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
        self._set_forces(replace(self.forces, holds=tuple(holds), springs=springs))

    def transform_forces(self, transform: Callable[[Position], Position]) -> None:
        """Transform the positions of all forces by a function of (m, d) to (m, e).

        The present drag ends.
        """

        def transform_position(position: tuple[float, ...]) -> tuple[float, ...]:
            """Return one transformed position (e,)."""
            return tuple(transform(np.array([position]))[0].tolist())

        self._drag, was = None, self.forces
        if was:
            forces = HandForces(
                springs=tuple(
                    replace(s, place=transform_position(s.place)) for s in was.springs
                ),
                holds=tuple(replace(h, places=transform(h.places)) for h in was.holds),
                landmarks=tuple(
                    replace(x, place=transform_position(x.place)) for x in was.landmarks
                ),
            )
            self._set_forces(forces)

    def _require_snapshot(self) -> Snapshot:
        """Return the snapshot on show; raise DataError if there is none."""
        snapshot = self._session.snapshot
        if snapshot is None:
            raise DataError("There is no map yet: press Run.")
        return snapshot

    def _require_moving_map(self) -> tuple[GameRun, Snapshot]:
        """Return the active run, and the snapshot on show, which this run has made.

        Raises DataError where no run is active or its first frame has not come,
        InputError where the settings take no forces of a hand.
        """
        session, snapshot = self._session, self._require_snapshot()
        if (run := session.active_run) is None:
            raise DataError("Nothing moves: press Continue first.")
        if not session.shows_map_of(run):
            raise DataError("The map is not there yet: wait until its points move.")
        validate_takes_hand_forces(session.sent_settings)
        return run, snapshot

    def _apply_forces(self, label: str, forces: HandForces) -> GameRun | None:
        """Make a mark, then send forces to the active run, or to a new branch.

        Returns the branch, which is not played yet; None where a run is active.
        """
        session = self._session
        if session.active_run is not None:
            run, _ = self._require_moving_map()
            session.add_mark(label)
            self._send_forces(run, forces)
            return None
        validate_takes_hand_forces(session.settings.value)
        run = session.continue_run(label)
        self._send_forces(run, forces)
        return run

    def _send_forces(self, run: GameRun, forces: HandForces) -> None:
        """Set the forces that act, and send them to a run."""
        self._set_forces(forces)
        run.steer(forces=forces)

    def _set_forces(self, forces: HandForces) -> None:
        """Set the forces, clear a refusal, and emit ``changed`` if either is new."""
        if forces is not self.forces or self._refusal:
            self.forces, self._refusal = forces, ""
            self.changed.emit()


def _drop_hold(forces: HandForces, target: RowIndices | int) -> HandForces:
    """Return forces without the hold of a landmark, or without springs on points.

    ``target``: number of the landmark, or points (m,): a spring on any of them is
    dropped.
    """
    if isinstance(target, int):
        holds = tuple(hold for hold in forces.landmarks if hold.number != target)
        return replace(forces, landmarks=holds)
    springs = tuple(s for s in forces.springs if not np.isin(s.rows, target).any())
    return replace(forces, springs=springs)


def _add_hold(
    forces: HandForces,
    target: RowIndices | int,
    at: Position,
    *,
    is_pinned: bool = False,
) -> HandForces:
    """Return forces with a landmark, or the mean of points, held at ``at`` (d,).

    It replaces the holds that :func:`_drop_hold` drops.
    """
    free, position = _drop_hold(forces, target), tuple(at.tolist())
    if isinstance(target, int):
        hold = LandmarkHold(number=target, place=position, is_pinned=is_pinned)
        return replace(free, landmarks=(*free.landmarks, hold))
    spring = Spring(rows=target, place=position, is_pinned=is_pinned)
    return replace(free, springs=(*free.springs, spring))


def _clip_to_reach(position: Position) -> Position:
    """Return a position with each coordinate clamped to +-``MAX_DISTANCE``."""
    reached: Position = np.clip(
        np.asarray(position, float), -MAX_DISTANCE, MAX_DISTANCE
    )
    return reached


def _drop_rows(holds: Iterable[Hold], rows: RowIndices) -> tuple[Hold, ...]:
    """Return the holds without these points; a hold without points is dropped."""
    free = ((hold, ~np.isin(hold.rows, rows)) for hold in holds)
    return tuple(
        replace(hold, rows=hold.rows[stays], places=hold.places[stays])
        for hold, stays in free
        if stays.any()
    )
