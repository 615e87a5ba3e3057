"""Undo and redo, by keeping former immutable values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from psygnal import Signal

State = TypeVar("State")

DEPTH = 100
"""Edits that can be undone; older ones are forgotten."""


@dataclass(frozen=True, slots=True)
class Step(Generic[State]):
    """An edit: what a menu calls it, and the states on both of its sides."""

    label: str
    before: State
    after: State
    series: str = ""
    """Edits that follow each other in one series, such as the stops of a slider
    on its way, are one step; "" is in none."""


Trail = tuple[tuple[Step[State], ...], tuple[Step[State], ...]]
"""Edits that led here, and those taken back: a history at rest."""


class History(Generic[State]):
    """The edits that led to the present state, and those taken back.

    It keeps states and never looks into them: they have to be immutable.
    """

    changed = Signal()

    def __init__(self) -> None:
        self._done: list[Step[State]] = []
        self._undone: list[Step[State]] = []

    @property
    def undo_label(self) -> str:
        """Words for the menu, such as "Undo rename of T cells"; "" when nothing is."""
        return f"Undo {self._done[-1].label}" if self._done else ""

    @property
    def redo_label(self) -> str:
        """Words for the menu; "" when there is nothing to redo."""
        return f"Redo {self._undone[-1].label}" if self._undone else ""

    @property
    def trail(self) -> Trail[State]:
        """All of it, to be taken up later."""
        return tuple(self._done), tuple(self._undone)

    def take_up(self, trail: Trail[State]) -> None:
        """Go on with the history of another time."""
        self._done, self._undone = list(trail[0]), list(trail[1])
        self.changed.emit()

    def record(self, label: str, before: State, after: State, series: str = "") -> None:
        """Note an edit that was just made; what was undone cannot be redone now."""
        last = self._done[-1] if self._done else None
        if last and series and last.series == series and not self._undone:
            self._done[-1] = Step(label, last.before, after, series)
        else:
            self._done.append(Step(label, before, after, series))
            del self._done[:-DEPTH]
        self._undone.clear()
        self.changed.emit()

    def undo(self) -> State | None:
        """Take the last edit back and return the state before it; None: none left."""
        if not self._done:
            return None
        step = self._done.pop()
        self._undone.append(step)
        self.changed.emit()
        return step.before

    def redo(self) -> State | None:
        """Make the last undone edit again; return the state after it, or None."""
        if not self._undone:
            return None
        step = self._undone.pop()
        self._done.append(step)
        self.changed.emit()
        return step.after

    def clear(self) -> None:
        """Forget everything."""
        self._done.clear()
        self._undone.clear()
        self.changed.emit()
