"""The timeline of a map: marks of what it was like, and the ways between them.

A mark keeps a layout with all that is shown of it and the settings of that moment.
Marks are a tree: a run that goes on from an earlier mark is a branch, and what had come
after that mark stays beside it.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

import numpy as np
from psygnal import Signal

from napari_embedding_game.core.energy.methods import get_method
from napari_embedding_game.core.settings import (
    STEERABLE,
    Settings,
    replace_steerable,
    resolve_repulsion,
)
from napari_embedding_game.core.snapshot import Snapshot, WarmStart
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.session.run.record import Moment

Kind = Literal["change", "pause", "end", "hand"]
"""What a mark is of: changed settings, a pause, the end of a run, or a hand's move."""
MAX_BYTES = 2**30
"""Memory that the marks of a map may take."""
MAX_MARKS = 200
TOGETHER_SECONDS = 1.0
"""Changes of the same settings that follow each other faster are one mark."""
GONE = "This moment is no longer kept: choose another mark."


@dataclass(frozen=True, kw_only=True, eq=False)
class Mark(Moment):
    """A moment that is kept."""

    number: int
    """Counts from 1; a number is never given again."""
    label: str
    """The change at this mark, such as "Repulsion 300 to 1,000"."""
    kind: Kind
    snapshot: Snapshot
    """The layout at that moment, before the change took effect."""
    parent: int | None = None
    """Number of the mark before this one; None at the beginning of a run."""
    made_at: float
    """Seconds since the epoch."""
    name: str = ""
    """What a person calls it, which stays when memory runs short; "" for none."""

    @property
    def title(self) -> str:
        """The name, or what happened here, or just after."""
        is_before = self.kind in ("change", "hand")
        return self.name or f"Before: {self.label}" * is_before or self.label

    @property
    def origin(self) -> str:
        """What it was made by and when, such as "t-SNE, seed 3, 14:05"."""
        when = time.strftime("%H:%M", time.localtime(self.made_at))
        method = get_method(self.settings.method).title
        return f"{method}, seed {self.settings.random_state}, {when}"


def warm_start(snapshot: Snapshot) -> WarmStart:
    """Return the layout of a snapshot as one that a run can go on from."""
    left = max(0, snapshot.n_iter - snapshot.iteration)
    return WarmStart(
        embedding=snapshot.embedding, landmarks=snapshot.landmarks, iterations_left=left
    )


@dataclass(frozen=True, slots=True)
class TimelineState:
    """All of a timeline, to be taken up later."""

    marks: tuple[Mark, ...] = ()
    """The oldest first."""
    head: int | None = None
    """Number of the mark that the map on show was at last."""
    shown: int | None = None
    """Number of the mark whose layout is on show; None while a run is."""
    n_made: int = 0


class Timeline:
    """Marks in the order in which they were made; ``changed`` tells of any change.

    ``max_bytes``: memory for the arrays of all marks, above which :func:`thin_marks`
    takes some. ``clock``: returns seconds since the epoch.
    """

    changed = Signal()

    def __init__(
        self, max_bytes: int = MAX_BYTES, clock: Callable[[], float] = time.time
    ) -> None:
        self._max_bytes, self._clock = max_bytes, clock
        self.state = TimelineState()
        """All of it; immutable."""
        self._changed_at = 0.0

    @property
    def marks(self) -> tuple[Mark, ...]:
        """All marks, the oldest first."""
        return self.state.marks

    @property
    def newest(self) -> Mark | None:
        """The mark that the map on show was at last."""
        return self.find(self.state.head)

    @property
    def current(self) -> Mark | None:
        """The mark whose layout is on show; None while a run is."""
        return self.find(self.state.shown)

    def find(self, number: int | None) -> Mark | None:
        """Return the mark of this number; None if there is none."""
        return next((m for m in self.marks if m.number == number), None)

    # Changes

    def begin_branch(self, number: int | None) -> None:
        """Let what comes next follow a mark, or nothing: a new run."""
        self._set(head=number, shown=None)

    def add(self, label: str, kind: Kind, moment: Moment) -> Mark:
        """Keep a moment, after the newest mark of the map on show.

        ``label``: what happened here, in a person's words. ``moment``: with a layout.
        """
        state, now = self.state, self._clock()
        self._changed_at, number, of = now, state.n_made + 1, self._of(moment)
        mark = Mark(
            number=number, label=label, kind=kind, parent=state.head, made_at=now, **of
        )
        shown, marks = state.shown and number, (*state.marks, mark)
        self._set(marks=marks, n_made=number, head=number, shown=shown)
        return mark

    def widen_change(self, snapshot: Snapshot, settings: Settings) -> bool:
        """Add these settings to the label of the newest mark, if that is recent.

        Returns whether it is: of a change a moment ago, or of the same layout.
        """
        mark, now = self.newest, self._clock()
        if mark is None or mark.kind != "change" or self.current is not None:
            return False
        if mark.snapshot is not snapshot and now - self._changed_at > TOGETHER_SECONDS:
            return False
        self._changed_at = now
        label = change_text(mark.settings, replace_steerable(mark.settings, settings))
        self._replace(mark.number, label=label or "Settings as before")
        return True

    def follow(self, moment: Moment) -> None:
        """Let the newest mark, if of a pause, be of a frame that was on its way."""
        newest = self.newest
        if newest is not None and newest.kind == "pause" and self.current is None:
            self._replace(newest.number, **self._of(moment))

    def show(self, number: int) -> Mark:
        """Note that the layout of a mark is on show, and return the mark.

        Raises DataError: it was forgotten.
        """
        mark = self.find(number)
        if mark is None:
            raise DataError(GONE)
        self._set(head=number, shown=number)
        return mark

    def rename(self, number: int, name: str) -> None:
        """Give a mark a name; "" takes it away."""
        self._replace(number, name=" ".join(name.split()))

    def remove(self, number: int) -> None:
        """Forget a mark; those after it follow the one before.

        Raises DataError: it is the one on show.
        """
        if number in (self.state.shown, self.state.head):
            raise DataError(
                "This layout is on show: choose another one before you delete it."
            )
        self._set(marks=_without(self.marks, number))

    def restore(self, state: TimelineState) -> None:
        """Go on with the timeline of another time."""
        self.state = state
        self.changed.emit()

    def _of(self, moment: Moment) -> dict[str, Any]:
        """Return the parts of a moment, with the arrays of an earlier one if equal.

        These are the neighbours of the points, and how isolated they are.
        """
        values = {part.name: getattr(moment, part.name) for part in fields(Moment)}
        for name in ("neighbors", "isolation"):
            array = getattr(values["snapshot"], name)
            arrays = (getattr(mark.snapshot, name) for mark in reversed(self.marks))
            last = next((one for one in arrays if one is not None), None)
            if array is not last and last is not None and np.array_equal(last, array):
                values["snapshot"] = replace(values["snapshot"], **{name: last})
        return values

    def _replace(self, number: int, **values: Any) -> None:
        marks = (replace(m, **values) if m.number == number else m for m in self.marks)
        self._set(marks=tuple(marks))

    def _set(self, **values: Any) -> None:
        self.restore(thin_marks(replace(self.state, **values), self._max_bytes))


def thin_marks(state: TimelineState, max_bytes: int) -> TimelineState:
    """Return a timeline whose arrays take at most ``max_bytes``, if possible.

    The oldest marks are removed: first those within branches, then the ends of them;
    never a mark that has a name, is shown or is the newest.
    """
    while n_bytes(state.marks) > max_bytes or len(state.marks) > MAX_MARKS:
        spared = state.shown, state.head
        old = [m for m in state.marks if not m.name and m.number not in spared]
        parents = {mark.parent for mark in state.marks}
        inner = [mark for mark in old if mark.number in parents]
        if not old:
            break
        marks = _without(state.marks, (inner or old)[0].number)
        state = replace(state, marks=marks)
    return state


def _without(marks: tuple[Mark, ...], number: int) -> tuple[Mark, ...]:
    gone = next(mark for mark in marks if mark.number == number)
    kept, up = (mark for mark in marks if mark is not gone), gone.parent
    return tuple(replace(m, parent=up) if m.parent == number else m for m in kept)


def n_bytes(marks: tuple[Mark, ...]) -> int:
    """Return the memory that marks take; arrays that they share count once."""
    parts, arrays = [(m.snapshot, m.record, m.merging) for m in marks], list[Any]()
    pickled = pickle.dumps(parts, protocol=5, buffer_callback=arrays.append)
    # Not by their identity: a sparse matrix keeps views of what it is made of.
    views = (np.asarray(each.raw()) for each in arrays)
    return len(pickled) + sum(n for _, n in {(v.ctypes.data, v.nbytes) for v in views})


def change_text(before: Settings, after: Settings) -> str:
    """Return in words which settings differ; "" where none does.

    A method brings its default settings, so it alone is named, without these.
    """
    words, passed = [], {"method"}
    if before.method != after.method:
        words.append(f"Method {get_method(after.method).title}")
        passed |= {*STEERABLE, "affinity"}
    for each in fields(Settings):
        old, new = getattr(before, each.name), getattr(after, each.name)
        if each.name == "repulsion":
            old, new = resolve_repulsion(before), resolve_repulsion(after)
        if old == new or each.name in passed:
            continue
        words.append(f"{each.metadata['title']} {_text(old)} to {_text(new)}")
    return ", ".join(words)


def _text(value: object) -> str:
    if value is None:
        return "automatic"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, int | float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return str(value).replace("_", " ")
