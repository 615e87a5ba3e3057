"""The timeline of a map: a tree of marks, each a layout that can be shown again.

A mark keeps a layout, its clusters' merge tree, and the settings of that moment.  A run
that continues from an earlier mark is a branch; the marks that followed the earlier
mark before are kept as another branch.
"""

from __future__ import annotations

import math
import pickle
import time
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property
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

MarkKind = Literal["change", "pause", "end", "hand"]
"""Why a mark was made: changed settings, a pause, the end of a run, or a change by
hand."""
MAX_BYTES = 2**30
"""Memory that the marks of a map may take."""
MAX_MARKS = 200
TOGETHER_SECONDS = 1.0
"""Changes of the same settings that follow each other faster are one mark."""
GONE = "This moment is no longer kept: choose another mark."


@dataclass(frozen=True, kw_only=True, eq=False)
class Mark(Moment):
    """A moment that the timeline keeps."""

    number: int
    """Counts from 1; a number is never given again."""
    label: str
    """The change at this mark, such as "Repulsion 300 to 1,000"."""
    kind: MarkKind
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
        """The given name, else the label: what happened here, or just after."""
        is_before = self.kind in ("change", "hand")
        return self.name or f"Before: {self.label}" * is_before or self.label

    @property
    def origin(self) -> str:
        """Method, seed and time of the layout, such as "t-SNE, seed 3, 14:05"."""
        when = time.strftime("%H:%M", time.localtime(self.made_at))
        method = get_method(self.settings.method).title
        return f"{method}, seed {self.settings.random_state}, {when}"

    @cached_property
    def byte_counts(self) -> tuple[int, frozenset[tuple[int, int]]]:
        """The memory of the mark: bytes without arrays, and each array by its address.

        Arrays are pairs (address, bytes), so that those which marks share count once.
        """
        arrays = list[Any]()
        parts = self.snapshot, self.record, self.merging
        rest = pickle.dumps(parts, protocol=5, buffer_callback=arrays.append)
        # By address and not by identity: a sparse matrix has views of its arrays.
        views = (np.asarray(each.raw()) for each in arrays)
        return len(rest), frozenset((view.ctypes.data, view.nbytes) for view in views)


def to_warm_start(snapshot: Snapshot) -> WarmStart:
    """Return the layout of a snapshot as a start from which a run can continue."""
    left = max(0, snapshot.n_iter - snapshot.iteration)
    return WarmStart(
        embedding=snapshot.embedding, landmarks=snapshot.landmarks, iterations_left=left
    )


@dataclass(frozen=True, slots=True)
class TimelineState:
    """The whole state of a timeline, from which it can be restored."""

    marks: tuple[Mark, ...] = ()
    """The oldest first."""
    head: int | None = None
    """Number of the latest mark of the map on show."""
    shown: int | None = None
    """Number of the mark whose layout is on show; None while a run is shown."""
    n_made: int = 0
    n_thinned: int = 0
    """Number of marks that :func:`thin_old_marks` has removed."""


class Timeline:
    """The marks of a map, the oldest first; ``changed`` is emitted at any change.

    ``max_bytes``: memory for the arrays of all marks; beyond it :func:`thin_old_marks`
    removes marks. ``clock``: returns seconds since the epoch.
    """

    changed = Signal()

    def __init__(
        self, max_bytes: int = MAX_BYTES, clock: Callable[[], float] = time.time
    ) -> None:
        self._max_bytes, self._clock = max_bytes, clock
        self.state = TimelineState()
        """The whole state; immutable."""
        self._changed_at = 0.0

    @property
    def marks(self) -> tuple[Mark, ...]:
        """All marks, the oldest first."""
        return self.state.marks

    @property
    def newest(self) -> Mark | None:
        """The latest mark of the map on show; None before the first mark."""
        return self.find_mark(self.state.head)

    @property
    def current(self) -> Mark | None:
        """The mark whose layout is on show; None while a run is shown."""
        return self.find_mark(self.state.shown)

    def find_mark(self, number: int | None) -> Mark | None:
        """Return the mark of this number; None if there is no such mark."""
        return next((m for m in self.marks if m.number == number), None)

    # Changes

    def begin_branch(self, number: int | None) -> None:
        """Make the next marks children of a mark; None begins a tree of its own.

        No mark is on show from then on.
        """
        self._update_state(head=number, shown=None)

    def add_mark(self, label: str, kind: MarkKind, moment: Moment) -> Mark:
        """Store a moment as a child of the newest mark, and return the new mark.

        Old marks are thinned beyond the limits, see :func:`thin_old_marks`.

        ``label``: what happened here, in a person's words. ``moment``: its snapshot is
        not None.
        """
        state, now = self.state, self._clock()
        self._changed_at, number, of = (
            now,
            state.n_made + 1,
            self._share_fields(moment),
        )
        mark = Mark(
            number=number, label=label, kind=kind, parent=state.head, made_at=now, **of
        )
        shown, marks = state.shown and number, (*state.marks, mark)
        self._update_state(marks=marks, n_made=number, head=number, shown=shown)
        return mark

    def extend_change_label(self, snapshot: Snapshot, settings: Settings) -> bool:
        """Rewrite the newest mark's label to include these settings, if it is recent.

        Returns whether the label was rewritten: a run is shown, and the newest mark is
        of a change of settings, and either of the layout of ``snapshot`` or at most a
        second old.
        """
        mark, now = self.newest, self._clock()
        if mark is None or mark.kind != "change" or self.current is not None:
            return False
        if mark.snapshot is not snapshot and now - self._changed_at > TOGETHER_SECONDS:
            return False
        self._changed_at = now
        label = describe_changes(
            mark.settings, replace_steerable(mark.settings, settings)
        )
        self._replace_mark(mark.number, label=label or "Settings as before")
        return True

    def update_pause(self, moment: Moment) -> None:
        """Replace the moment of the newest mark if the mark is of a pause.

        Nothing happens while a mark is on show.  A frame may still arrive after Pause
        was pressed: the mark has to show it.
        """
        newest = self.newest
        if newest is not None and newest.kind == "pause" and self.current is None:
            self._replace_mark(newest.number, **self._share_fields(moment))

    def show_mark(self, number: int) -> Mark:
        """Set which mark's layout is on show, and return the mark.

        The next marks become its children.

        Raises DataError: the mark was removed.
        """
        mark = self.find_mark(number)
        if mark is None:
            raise DataError(GONE)
        self._update_state(head=number, shown=number)
        return mark

    def rename_mark(self, number: int, name: str) -> None:
        """Give a mark a name, on one line; "" removes the name."""
        self._replace_mark(number, name=" ".join(name.split()))

    def remove_mark(self, number: int) -> None:
        """Remove a mark; its children become children of its parent.

        Raises DataError: the mark is on show, is the newest of the map on show, or was
        removed.
        """
        if self.find_mark(number) is None:
            raise DataError(GONE)
        if number in (self.state.shown, self.state.head):
            raise DataError(
                "This layout is on show: choose another one before you delete it."
            )
        self._update_state(marks=_without_mark(self.marks, number))

    def restore(self, state: TimelineState) -> None:
        """Replace the whole timeline by a stored state."""
        self.state = state
        self.changed.emit()

    def _share_fields(self, moment: Moment) -> dict[str, Any]:
        """Return all fields of a moment by name; equal arrays are shared with a mark.

        To save memory the neighbours and the isolation of the points are those of the
        newest mark that has them, where they are equal.  The moment is not changed.
        """
        values = {part.name: getattr(moment, part.name) for part in fields(Moment)}
        for name in ("neighbors", "isolation"):
            array = getattr(values["snapshot"], name)
            arrays = (getattr(mark.snapshot, name) for mark in reversed(self.marks))
            last = next((one for one in arrays if one is not None), None)
            if array is not last and last is not None and np.array_equal(last, array):
                values["snapshot"] = replace(values["snapshot"], **{name: last})
        return values

    def _replace_mark(self, number: int, **values: Any) -> None:
        """Replace fields of the mark of this number, if there is one."""
        marks = (replace(m, **values) if m.number == number else m for m in self.marks)
        self._update_state(marks=tuple(marks))

    def _update_state(self, **values: Any) -> None:
        """Replace fields of the state, thin old marks and emit ``changed``."""
        self.restore(thin_old_marks(replace(self.state, **values), self._max_bytes))


def thin_old_marks(state: TimelineState, max_bytes: int) -> TimelineState:
    """Return a timeline of at most ``max_bytes`` and ``MAX_MARKS``, if possible.

    Old marks are thinned: of marks with children, then of ends of branches, that mark
    is removed whose neighbours lie nearest for its age, so that the first mark stays
    and recent marks are dense; never a mark that has a name, is on show or is the
    newest.
    """
    while count_bytes(state.marks) > max_bytes or len(state.marks) > MAX_MARKS:
        spared = state.shown, state.head
        old = [m for m in state.marks if not m.name and m.number not in spared]
        parents = {mark.parent for mark in state.marks}
        inner = [mark for mark in old if mark.number in parents]
        if not old:
            break
        closest = _find_closest_mark(state, inner or old)
        marks = _without_mark(state.marks, closest)
        state = replace(state, marks=marks, n_thinned=state.n_thinned + 1)
    return state


def _find_closest_mark(state: TimelineState, marks: list[Mark]) -> int:
    """Return which of ``marks`` has the nearest neighbours for its age: its number.

    Distances are in marks that were made. The first mark of all has no neighbour
    before, so it is found only if it is the only one of ``marks``.
    """
    numbers = [mark.number for mark in state.marks]
    end = max(numbers) + 1
    before_and_after = zip([0, *numbers], [*numbers[1:], end], strict=False)
    gaps = {
        number: (after - before) / (end - number)
        for number, (before, after) in zip(numbers, before_and_after, strict=True)
    }
    gaps[numbers[0]] = math.inf
    return min((mark.number for mark in marks), key=gaps.__getitem__)


def _without_mark(marks: tuple[Mark, ...], number: int) -> tuple[Mark, ...]:
    """Return marks without one of them, whose children go to its parent."""
    gone = next(mark for mark in marks if mark.number == number)
    kept, up = (mark for mark in marks if mark is not gone), gone.parent
    return tuple(replace(m, parent=up) if m.parent == number else m for m in kept)


def count_bytes(marks: tuple[Mark, ...]) -> int:
    """Return the memory that marks take in bytes; shared arrays count once."""
    counts = [mark.byte_counts for mark in marks]
    arrays = frozenset[tuple[int, int]]().union(*(own for _, own in counts))
    return sum(rest for rest, _ in counts) + sum(n_bytes for _, n_bytes in arrays)


def describe_changes(before: Settings, after: Settings) -> str:
    """Return in words which settings differ; "" where all are equal.

    Where the method differs, only the method is named of the settings that act during
    a game: the method brings its own defaults.
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
        words.append(
            f"{each.metadata['title']} {_format_setting(old)} to {_format_setting(new)}"
        )
    return ", ".join(words)


def _format_setting(value: object) -> str:
    """Return a value in words: "automatic" for None, "on", "off" or a number."""
    if value is None:
        return "automatic"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, int | float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return str(value).replace("_", " ")
