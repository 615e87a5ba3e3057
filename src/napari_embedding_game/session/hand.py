"""What a person's hand does to points of the map while the game runs.

Each action leaves a mark in the timeline, is told to the run, and stands in the run's
record.  Where nothing is played, a branch begins from the map on show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray
from psygnal import Signal

from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.settings import approximation_of, check_hand
from napari_embedding_game.core.snapshot import (
    NO_FORCES,
    HandForces,
    Hold,
    LandmarkEdit,
    LandmarkHold,
    Snapshot,
    Spring,
)
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.session.run.record import RunRecord
from napari_embedding_game.session.run.run import Run

if TYPE_CHECKING:
    from napari_embedding_game.session.session import Session

Rows = NDArray[np.integer]
HandAction = Literal["hold", "let go"]
FARTHEST = 1e5
"""Largest coordinate that a cluster is dragged to, well on the map of a game."""
NOTHING_HELD = "Nothing is held by hand."


@dataclass
class _Drag:
    """A cluster that the mouse has hold of."""

    run: Run
    rows: Rows
    middle: NDArray[np.floating]
    """(d,) middle of its points when the mouse took hold of it."""
    at: NDArray[np.floating]
    """(d,) where it is drawn to."""


class Hand:
    """The forces of a hand on a session's map.

    Parameters
    ----------
    session : Session
    """

    changed = Signal()

    def __init__(self, session: Session) -> None:
        self._session = session
        self.forces = NO_FORCES
        """What acts at present."""
        self._drag: _Drag | None = None
        self._landmark: tuple[Run, int] | None = None
        self._refusal = ""

    # A cluster at the mouse, while the game runs

    def begin_drag(self, cluster: int) -> None:
        """Take hold of a cluster while the game runs.

        Raises
        ------
        DataError, InputError
            It has no points any more, or there is no run that takes up forces.
        """
        session = self._session
        rows = session.clusters.clustering.rows(cluster)
        run, snapshot = self._running()
        if not len(rows):
            raise DataError("This cluster has no points any more: drag another one.")
        session.mark(f"{session.cluster_name(cluster)} dragged by hand")
        middle = snapshot.embedding[rows].mean(axis=0, dtype=float)
        self._drag = _Drag(run, rows, middle, middle)
        self.drag_by(np.zeros(len(middle)))

    def drag_by(self, by: NDArray[np.floating]) -> None:
        """Draw the cluster at the mouse to where it was, moved by ``by`` (d,).

        Nothing happens where its run is no longer played.
        """
        drag = self._drag
        if drag is not None and self._session.plays(drag.run):
            drag.at = np.clip(drag.middle + by, -FARTHEST, FARTHEST)
            self._tell(drag.run, self._with_spring(drag, is_pinned=False))

    def end_drag(self, *, is_pinned: bool = False) -> None:
        """Let go of the cluster, or pin it where it is drawn to."""
        drag, self._drag = self._drag, None
        if drag is None or not self._session.plays(drag.run):
            return
        forces = self._without_springs(drag.rows)
        if is_pinned:
            forces = self._with_spring(drag, is_pinned=True)
        self._tell(drag.run, forces)

    def pin(self, rows: Rows, embedding: NDArray[np.floating]) -> None:
        """Let a spring hold the middle of a cluster where it is in a layout (N, d)."""
        middle = embedding[rows].mean(axis=0, dtype=float)
        place = tuple(np.clip(middle, -FARTHEST, FARTHEST).tolist())
        forces = self._without_springs(rows)
        spring = Spring(rows=rows, place=place, is_pinned=True)
        self._set(replace(forces, springs=(*forces.springs, spring)))

    def carry(
        self, take: Callable[[NDArray[np.floating]], NDArray[np.floating]]
    ) -> None:
        """Take what is held along into a map of other dimensions.

        Parameters
        ----------
        take : callable
            Takes places (m, d) of the former map into the new one: (m, e).
        """

        def one(place: tuple[float, ...]) -> tuple[float, ...]:
            return tuple(take(np.array([place]))[0].tolist())

        self._drag = self._landmark = None
        forces = self.forces
        if forces:
            springs = (replace(s, place=one(s.place)) for s in forces.springs)
            holds = (replace(h, places=take(h.places)) for h in forces.holds)
            landmarks = (replace(h, place=one(h.place)) for h in forces.landmarks)
            self._set(
                replace(
                    forces,
                    springs=tuple(springs),
                    holds=tuple(holds),
                    landmarks=tuple(landmarks),
                )
            )

    # A landmark at the mouse

    def begin_landmark(self, number: int) -> None:
        """Take hold of a landmark while the game runs.

        Raises
        ------
        DataError, InputError
            There is none of this number, or no run in which landmarks push points.
        """
        session = self._session
        run, snapshot = self._running()
        if approximation_of(session.steered) != "landmarks":
            raise InputError(
                "Landmarks push no points in this game: choose Landmarks that move "
                "under Repelled by, to drag them."
            )
        if not 0 <= number < len(snapshot.landmarks):
            raise DataError("This landmark is gone: drag another one.")
        session.mark("Landmark dragged by hand")
        self._landmark = run, number
        self.drag_landmark_to(snapshot.landmarks[number])

    def drag_landmark_to(self, place: NDArray[np.floating]) -> None:
        """Bring the landmark at the mouse to a place (d,), unless its run is over."""
        if self._landmark is None or not self._session.plays(self._landmark[0]):
            return
        run, number = self._landmark
        at = np.clip(np.asarray(place, float), -FARTHEST, FARTHEST)
        hold = LandmarkHold(number=number, place=tuple(at.tolist()))
        self._tell(run, self._with_landmarks(number, hold))

    def end_landmark(self, *, is_pinned: bool = False) -> None:
        """Let go of the landmark, or pin it where it is."""
        held, self._landmark = self._landmark, None
        if held is None or not self._session.plays(held[0]):
            return
        run, number = held
        last = next((h for h in self.forces.landmarks if h.number == number), None)
        pins = (replace(last, is_pinned=True),) if is_pinned and last else ()
        self._tell(run, self._with_landmarks(number, *pins))

    def add_landmark(self, place: NDArray[np.floating]) -> None:
        """Add a landmark at a place (d,) of the map while the game runs.

        Raises
        ------
        DataError, InputError
            There is one for each point already, or no run that takes it up.
        """
        run, snapshot = self._running()
        n = self._n_landmarks(snapshot)
        if n >= len(snapshot.embedding):
            raise DataError("Every point has a landmark already: none can be added.")
        at = np.clip(np.asarray(place, float), -FARTHEST, FARTHEST)
        edit = LandmarkEdit(added=(tuple(at.tolist()),))
        self._edit(run, "Landmark added by hand", n + 1, edit, self.forces.landmarks)

    def remove_landmarks(self, *numbers: int) -> None:
        """Take landmarks away while the game runs; their points go to the others.

        Raises
        ------
        DataError, InputError
            One is gone, or none would be left, or there is no run that takes it up.
        """
        run, snapshot = self._running()
        n, gone = self._n_landmarks(snapshot), tuple(sorted(set(numbers)))
        if not gone or not (gone[0] >= 0 and gone[-1] < n):
            raise DataError("This landmark is gone: choose another one.")
        if n == len(gone):
            raise DataError("The last landmark stays: add another one first.")
        self._landmark = None
        holds = tuple(
            replace(hold, number=hold.number - sum(hold.number > x for x in gone))
            for hold in self.forces.landmarks
            if hold.number not in gone
        )
        what = "Landmark" if len(gone) == 1 else f"{len(gone)} landmarks"
        edit = LandmarkEdit(removed=gone)
        self._edit(run, f"{what} deleted by hand", n - len(gone), edit, holds)

    def _n_landmarks(self, snapshot: Snapshot) -> int:
        """Return how many landmarks there are; their numbers are those on show."""
        n = len(snapshot.landmarks)
        if n != min(self._session.settings.n_landmarks, len(snapshot.embedding)):
            raise DataError("The landmarks are just changing: try again in a moment.")
        return n

    def _edit(
        self,
        run: Run,
        label: str,
        n_landmarks: int,
        edit: LandmarkEdit,
        holds: tuple[LandmarkHold, ...],
    ) -> None:
        self._session.mark(label)
        self._set(replace(self.forces, landmarks=holds))
        settings = self._session.set_n_landmarks(n_landmarks)
        run.steer(settings, replace(self.forces, edits=(edit,)))

    def _with_landmarks(self, number: int, *holds: LandmarkHold) -> HandForces:
        others = (h for h in self.forces.landmarks if h.number != number)
        return replace(self.forces, landmarks=(*others, *holds))

    def forget_landmarks(self) -> None:
        """Hold no landmark any more: there are more or fewer, with other numbers."""
        self._landmark = None
        if self.forces.landmarks:
            forces, run = replace(self.forces, landmarks=()), self._session.run
            self._set(forces)
            if run is not None and self._session.plays(run):
                run.steer(forces=forces)

    # Chosen points

    def act(self, action: HandAction) -> Run | None:
        """Do to the selected points what a button says.

        Returns
        -------
        Run or None
            The branch that is to be played, where nothing was played.

        Raises
        ------
        DataError, InputError
            As the method of the action does.
        """
        rows = self._session.selection.rows
        if action == "let go":
            return self.let_go(rows if len(rows) else None)
        return self.hold(rows)

    def hold(self, rows: Rows) -> Run | None:
        """Hold points where they are.

        Returns
        -------
        Run or None
            The branch that is to be played, where nothing was played.

        Raises
        ------
        DataError, InputError
            There is no map, no point is chosen, or nothing takes up forces.
        """
        snapshot = self._check(rows)
        hold = Hold(rows=rows, places=snapshot.embedding[rows])
        holds = (*_without(self.forces.holds, rows), hold)
        return self._apply(f"{_points(rows)} held", replace(self.forces, holds=holds))

    def let_go(self, rows: Rows | None = None) -> Run | None:
        """Let go of points: what holds or draws them acts no more.

        Parameters
        ----------
        rows : (m,) int array, optional
            All points by default.

        Raises
        ------
        DataError, InputError
            Nothing acts on them, or there is no map.
        """
        is_all = rows is None
        if rows is None:
            rows = np.arange(len(self._snapshot().embedding))
        forces = replace(
            self._without_springs(rows),
            holds=_without(self.forces.holds, rows),
            landmarks=() if is_all else self.forces.landmarks,
        )
        if not (self.acts_on(rows) or (is_all and self.forces.landmarks)):
            is_any = bool(self.forces)
            raise DataError(
                "The chosen points are free already: choose those that are held."
                if is_any
                else NOTHING_HELD
            )
        return self._apply(f"{_points(rows)} let go", forces)

    def refuse(self, reason: str) -> None:
        """Tell why something was not done, until something is.

        The session's own message gives way to the next frame of a run.
        """
        self._session.say(reason)
        self._refusal = reason
        self.changed.emit()

    def told(self) -> str:
        """Return in a sentence what acts on the map, or why something was not done."""
        if self._refusal:
            return self._refusal
        forces = self.forces
        counts = (
            (sum(len(hold.rows) for hold in forces.holds), "point", "held"),
            (sum(s.is_pinned for s in forces.springs), "cluster", "pinned"),
            (sum(h.is_pinned for h in forces.landmarks), "landmark", "pinned"),
        )
        words = [
            f"{n:,} {noun if n == 1 else noun + 's'} {state}"
            for n, noun, state in counts
            if n
        ]
        return f"By hand: {', '.join(words)}." if words else ""

    def acts_on(self, rows: Rows) -> bool:
        """Return whether any of these points is held or drawn."""
        forces = self.forces
        sets = [*(s.rows for s in forces.springs), *(h.rows for h in forces.holds)]
        return any(bool(np.isin(one, rows).any()) for one in sets)

    # What the session says

    def clear(self) -> None:
        """Forget all: another map comes."""
        self._drag = self._landmark = None
        self._set(NO_FORCES)

    def restore(self, record: RunRecord | None) -> None:
        """Let act what acted at the end of a record."""
        self._drag = self._landmark = None
        forced = () if record is None else record.forced
        last = forced[-1].forces if forced else NO_FORCES
        pinned = tuple(spring for spring in last.springs if spring.is_pinned)
        landmarks = tuple(hold for hold in last.landmarks if hold.is_pinned)
        self._set(replace(last, springs=pinned, landmarks=landmarks, edits=()))

    def move(self, rows: Rows, by: NDArray[np.floating]) -> None:
        """Let what holds these points hold them at places moved by ``by`` (d,)."""
        holds = []
        for hold in self.forces.holds:
            places = hold.places.copy()
            places[np.isin(hold.rows, rows)] += np.asarray(by, places.dtype)
            holds.append(replace(hold, places=places))
        springs = tuple(
            replace(s, place=tuple((np.array(s.place) + by).tolist()))
            if np.isin(s.rows, rows).mean() > 0.5
            else s
            for s in self.forces.springs
        )
        self._set(replace(self.forces, holds=tuple(holds), springs=springs))

    # Inside

    def _with_spring(self, drag: _Drag, *, is_pinned: bool) -> HandForces:
        forces = self._without_springs(drag.rows)
        place = tuple(drag.at.tolist())
        spring = Spring(rows=drag.rows, place=place, is_pinned=is_pinned)
        return replace(forces, springs=(*forces.springs, spring))

    def _without_springs(self, rows: Rows) -> HandForces:
        kept = (s for s in self.forces.springs if not np.isin(s.rows, rows).any())
        return replace(self.forces, springs=tuple(kept))

    def _snapshot(self) -> Snapshot:
        snapshot = self._session.snapshot
        if snapshot is None:
            raise DataError("There is no map yet: press Run.")
        return snapshot

    def _check(self, rows: Rows) -> Snapshot:
        if not len(rows):
            raise DataError(
                "Choose some points first: click a cluster, or draw around."
            )
        return self._snapshot()

    def _running(self) -> tuple[Run, Snapshot]:
        """Return the run that is played and its newest snapshot."""
        session, snapshot = self._session, self._snapshot()
        run = session.run
        if run is None or not session.plays(run):
            raise DataError("Nothing moves: press Continue first.")
        if not session.has_played(run):
            raise DataError("The map is not there yet: wait until its points move.")
        check_hand(session.steered)
        return run, snapshot

    def _apply(self, label: str, forces: HandForces) -> Run | None:
        session = self._session
        if session.run is not None and session.plays(session.run):
            run, _ = self._running()
            session.mark(label)
            self._tell(run, forces)
            return None
        check_hand(session.settings.value)
        run = session.play_on(label)
        self._tell(run, forces)
        return run

    def _tell(self, run: Run, forces: HandForces) -> None:
        self._set(forces)
        run.steer(forces=forces)

    def _set(self, forces: HandForces) -> None:
        if forces is not self.forces or self._refusal:
            self.forces, self._refusal = forces, ""
            self.changed.emit()


def _without(holds: Iterable[Hold], rows: Rows) -> tuple[Hold, ...]:
    """Return what is held without these points."""
    left = []
    for hold in holds:
        stays = ~np.isin(hold.rows, rows)
        if stays.all():
            left.append(hold)
        elif stays.any():
            left.append(Hold(rows=hold.rows[stays], places=hold.places[stays]))
    return tuple(left)


def _points(rows: Rows) -> str:
    return f"{len(rows):,} {'point' if len(rows) == 1 else 'points'}"
