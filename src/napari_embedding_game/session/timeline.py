"""The timeline of a map: marks of what it was like, and the ways between them.

A mark keeps a layout with all that is shown of it and the settings of that moment.
Marks are a tree: a run that goes on from an earlier mark is a branch, and what had
come after that mark stays beside it.  The arrays of a mark are those of its snapshot,
which nobody changes, so that marks share what they have in common.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from psygnal import Signal

from napari_embedding_game.core.energy.methods import get_method
from napari_embedding_game.core.settings import (
    STEERABLE,
    Settings,
    repulsion_of,
    steered,
)
from napari_embedding_game.core.snapshot import Snapshot, WarmStart
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.session.moment import Moment

Kind = Literal["change", "pause", "end", "hand"]
"""What a mark is of: changed settings, a pause, the end of a run, or a hand's move."""
MOST_BYTES = 2**30
"""Memory that the marks of a map may take."""
MOST_MARKS = 200
TOGETHER_SECONDS = 1.0
"""Changes of the same settings that follow each other faster are one mark."""

UNCHANGED = "Settings as before"


@dataclass(frozen=True, kw_only=True, eq=False)
class Mark(Moment):
    """A moment that is kept."""

    number: int
    """Counts from 1; a number is never given again."""
    label: str
    """What happened here, such as "Repulsion 300 to 1,000"."""
    kind: Kind
    snapshot: Snapshot
    """The layout at that moment, before what the label tells took effect."""
    parent: int | None = None
    """Number of the mark before this one; None at the beginning of a run."""
    branch: int = 0
    """Counts the runs and the branches, in the order in which they were begun."""
    made_at: float
    """Seconds since the epoch."""
    name: str = ""
    """What a person calls it; "" for none."""
    is_pinned: bool = False
    """Whether it stays when memory runs short."""
    quality: Any = None
    """The :class:`~.quality.MapQuality` that was measured; no file has it."""

    @property
    def title(self) -> str:
        """The name, or what happened here."""
        return self.name or self.label

    @property
    def origin(self) -> str:
        """What it was made by and when, such as "t-SNE, seed 3, 14:05"."""
        when = time.strftime("%H:%M", time.localtime(self.made_at))
        method = get_method(self.settings.method).title
        return f"{method}, seed {self.settings.random_state}, {when}"

    def warm_start(self) -> WarmStart:
        """Return the layout as one that a run can go on from."""
        return warm_start(self.snapshot)


def warm_start(snapshot: Snapshot) -> WarmStart:
    """Return the layout of a snapshot as one that a run can go on from."""
    return WarmStart(
        embedding=snapshot.embedding,
        landmarks=snapshot.landmarks,
        iterations_left=max(0, snapshot.n_iter - snapshot.iteration),
    )


@dataclass(frozen=True, slots=True)
class TimelineState:
    """All of a timeline, to be taken up later."""

    marks: tuple[Mark, ...] = ()
    head: int | None = None
    shown: int | None = None
    n_made: int = 0
    branch: int = 0
    n_thinned: int = 0


class Timeline:
    """Marks in the order in which they were made; ``changed`` tells of any change.

    Parameters
    ----------
    most_bytes : int
        Memory for the arrays of all marks.  Above it the oldest are forgotten: first
        those on the way, then the ends of branches; never one that is pinned, shown or
        the newest.
    clock : callable, optional
        Returns seconds since the epoch.
    """

    changed = Signal()

    def __init__(
        self, most_bytes: int = MOST_BYTES, clock: Callable[[], float] = time.time
    ) -> None:
        self._most_bytes = most_bytes
        self._clock = clock
        self._state = TimelineState()
        self._changed_at = 0.0

    @property
    def state(self) -> TimelineState:
        """All of it; immutable."""
        return self._state

    @property
    def marks(self) -> tuple[Mark, ...]:
        """All marks, the oldest first."""
        return self._state.marks

    @property
    def newest(self) -> Mark | None:
        """The mark that the map on show was at last."""
        return self.find(self._state.head)

    @property
    def shown(self) -> Mark | None:
        """The mark whose layout is on show; None while a run is."""
        return self.find(self._state.shown)

    @property
    def n_thinned(self) -> int:
        """How many marks were forgotten because memory ran short."""
        return self._state.n_thinned

    @property
    def n_bytes(self) -> int:
        """Memory that the arrays of the marks take; shared ones count once."""
        return _n_bytes(self.marks)

    @property
    def ends(self) -> tuple[Mark, ...]:
        """The marks that nothing came after, and those that are pinned or named."""
        parents = {mark.parent for mark in self.marks}
        return tuple(
            mark
            for mark in self.marks
            if mark.number not in parents or mark.is_pinned or mark.name
        )

    def find(self, number: int | None) -> Mark | None:
        """Return the mark of this number; None if there is none."""
        return next((m for m in self.marks if m.number == number), None)

    # The way back and forth

    @property
    def before(self) -> Mark | None:
        """Where a step back leads: to the mark before the one that is on show."""
        newest = self.newest
        if newest is None or self._state.shown is None:
            return newest
        return self.find(newest.parent)

    @property
    def after(self) -> Mark | None:
        """Where a step forward leads: the mark that came next, the last of several."""
        shown = self._state.shown
        following = [m for m in self.marks if shown is not None and m.parent == shown]
        return following[-1] if following else None

    # Changes

    def begin_branch(self, number: int | None) -> None:
        """Let what comes next follow a mark, or nothing: a new run."""
        last = max([self._state.branch, *(mark.branch for mark in self.marks)])
        self._set(head=number, shown=None, branch=last + 1)

    def add(
        self, label: str, kind: Kind, moment: Moment, *, is_beside: bool = False
    ) -> Mark:
        """Keep a moment, after the newest mark of the map on show.

        Parameters
        ----------
        label : str
            What happened here, in a person's words.
        kind : str
        moment : Moment
            With a layout.
        is_beside : bool
            Whether it is another map altogether, that nothing on show leads to.
        """
        assert moment.snapshot is not None
        state, self._changed_at = self._state, self._clock()
        mark = Mark(
            number=state.n_made + 1,
            label=label,
            kind=kind,
            snapshot=self._sharing(moment.snapshot),
            settings=moment.settings,
            record=moment.record,
            energies=moment.energies,
            merging=moment.merging,
            parent=None if is_beside else state.head,
            branch=state.branch + is_beside,
            made_at=self._changed_at,
        )
        if is_beside:
            self._set(marks=(*state.marks, mark), n_made=mark.number)
            return mark
        marks, head = (*state.marks, mark), mark.number
        shown = None if state.shown is None else head
        self._set(marks=marks, head=head, n_made=head, shown=shown)
        return mark

    def widen_change(self, snapshot: Snapshot, settings: Settings) -> bool:
        """Let the newest mark tell these settings too; return whether it is of them.

        It is where it is of a change a moment ago, or of a change of the same layout.
        """
        mark = self.newest
        if mark is None or mark.kind != "change" or self.shown is not None:
            return False
        now = self._clock()
        if mark.snapshot is not snapshot and now - self._changed_at > TOGETHER_SECONDS:
            return False
        self._changed_at = now
        now_is = steered(mark.settings, settings)
        label = told_change(mark.settings, now_is) or UNCHANGED
        self._replace(mark.number, label=label)
        return True

    def follow(self, moment: Moment) -> None:
        """Let the newest mark, if of a pause, be of a frame that was on its way."""
        newest = self.newest
        if newest is not None and newest.kind == "pause" and self.shown is None:
            assert moment.snapshot is not None
            self._replace(
                newest.number,
                snapshot=self._sharing(moment.snapshot),
                record=moment.record,
                energies=moment.energies,
                merging=moment.merging,
            )

    def show(self, number: int) -> Mark:
        """Note that the layout of a mark is on show, and return the mark.

        Raises
        ------
        DataError
            It was forgotten.
        """
        mark = self.find(number)
        if mark is None:
            raise DataError("This moment is no longer kept: choose another mark.")
        self._set(head=number, shown=number)
        return mark

    def rename(self, number: int, name: str) -> None:
        """Give a mark a name; "" takes it away."""
        self._replace(number, name=" ".join(name.split()))

    def pin(self, number: int, is_pinned: bool) -> None:
        """Keep a mark whatever memory it takes, or no longer."""
        self._replace(number, is_pinned=is_pinned)

    def tell_quality(self, snapshot: Snapshot, quality: Any) -> None:
        """Note what was measured of a layout, in all marks of it."""
        marks = tuple(
            replace(mark, quality=quality)
            if mark.snapshot.embedding is snapshot.embedding
            else mark
            for mark in self.marks
        )
        if any(one is not other for one, other in zip(marks, self.marks, strict=True)):
            self._set(marks=marks)

    def remove(self, number: int) -> None:
        """Forget a mark; those after it follow the one before.

        Raises
        ------
        DataError
            It is the one on show.
        """
        if number in (self._state.shown, self._state.head):
            raise DataError(
                "This layout is on show: choose another one before you delete it."
            )
        self._set(marks=_without(self.marks, number))

    def clear(self) -> None:
        """Forget everything: other data."""
        self.take_up(TimelineState())

    def take_up(self, state: TimelineState) -> None:
        """Go on with the timeline of another time."""
        self._state = state
        self.changed.emit()

    # Inside

    def _replace(self, number: int, **values: object) -> None:
        marks = tuple(
            replace(mark, **values) if mark.number == number else mark  # type: ignore[arg-type]
            for mark in self.marks
        )
        self._set(marks=marks)

    def _set(self, **values: object) -> None:
        state = replace(self._state, **values)  # type: ignore[arg-type]
        self._state = thinned(state, self._most_bytes)
        self.changed.emit()

    def _sharing(self, snapshot: Snapshot) -> Snapshot:
        """Return the snapshot with what an earlier one has of the same data, if equal.

        These are the neighbours of the points, and how isolated they are.
        """
        neighbors = self._known_as("neighbors", snapshot.neighbors)
        isolation = self._known_as("isolation", snapshot.isolation)
        if neighbors is snapshot.neighbors and isolation is snapshot.isolation:
            return snapshot
        return replace(snapshot, neighbors=neighbors, isolation=isolation)

    def _known_as(self, name: str, array: Any) -> Any:
        """Return the newest array of this name of a mark that is equal, or this one."""
        for mark in reversed(self.marks):
            known = getattr(mark.snapshot, name)
            if array is None or known is array:
                return array
            if known is not None and np.array_equal(known, array):
                return known
        return array


def thinned(state: TimelineState, most_bytes: int) -> TimelineState:
    """Return a timeline whose arrays take no more than this, if that can be.

    The oldest marks are forgotten: first those on the way, then the ends of branches;
    never one that is pinned, shown or the newest.
    """
    while _n_bytes(state.marks) > most_bytes or len(state.marks) > MOST_MARKS:
        spared = state.shown, state.head
        old = [m for m in state.marks if not m.is_pinned and m.number not in spared]
        parents = {mark.parent for mark in state.marks}
        on_the_way = [mark for mark in old if mark.number in parents]
        if not old:
            return state
        gone = (on_the_way or old)[0]
        state = replace(
            state,
            marks=_without(state.marks, gone.number),
            n_thinned=state.n_thinned + 1,
        )
    return state


def _n_bytes(marks: tuple[Mark, ...]) -> int:
    """Return the memory that the arrays of marks take; shared ones count once."""
    return sum(a.nbytes for a in _distinct(marks))


def _without(marks: tuple[Mark, ...], number: int) -> tuple[Mark, ...]:
    gone = next(mark for mark in marks if mark.number == number)
    return tuple(
        replace(mark, parent=gone.parent) if mark.parent == number else mark
        for mark in marks
        if mark is not gone
    )


def _distinct(marks: tuple[Mark, ...]) -> Iterator[NDArray[np.generic]]:
    arrays: dict[tuple[int, int], NDArray[np.generic]] = {}
    for mark in marks:
        parts: list[object] = [mark.snapshot]
        if mark.record is not None:
            parts += [mark.record.warm_start, *(f.forces for f in mark.record.forced)]
        if mark.merging is not None:
            parts += mark.merging.arrays
        for array in (a for part in parts for a in _arrays(part)):
            # not by their identity: a sparse matrix keeps views of what it is made of
            arrays[array.ctypes.data, array.nbytes] = array
    yield from arrays.values()


def _arrays(value: object) -> Iterator[NDArray[np.generic]]:
    """Yield all arrays in a value of dataclasses and tuples."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from _arrays(part)
    elif is_dataclass(value):
        for field in fields(value):
            yield from _arrays(getattr(value, field.name))


def told_change(before: Settings, after: Settings) -> str:
    """Return in words which settings differ; "" where none does.

    A method comes with settings of its own, so that of what may change on the way it is
    told alone.
    """
    names, words = changed_fields(before, after), []
    if "method" in names:
        words.append(f"Method {get_method(after.method).title}")
        names = tuple(n for n in names if n not in (*STEERABLE, "affinity"))
    titles = {each.name: each.metadata["title"] for each in fields(Settings)}
    for name in names:
        old, new = getattr(before, name), getattr(after, name)
        if name == "repulsion":
            old, new = repulsion_of(before), repulsion_of(after)
        words.append(f"{titles[name]} {_said(old)} to {_said(new)}")
    return ", ".join(words)


def changed_fields(before: Settings, after: Settings) -> tuple[str, ...]:
    """Return the names of the settings that differ."""
    names = (field.name for field in fields(Settings))
    return tuple(n for n in names if getattr(before, n) != getattr(after, n))


def _said(value: object) -> str:
    if value is None:
        return "automatic"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, int | float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return str(value).replace("_", " ")
