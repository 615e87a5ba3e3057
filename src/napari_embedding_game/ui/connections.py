"""Who hears of a session: docks and their parts, while they are open."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import Any

from qtpy.QtCore import QObject, QTimer
from qtpy.QtWidgets import QWidget
from superqt.utils import qthrottled

from napari_embedding_game.session.session import Session

SOON_MS, RUNNING_MS = 30, 1_000
"""Edits that follow each other faster than this are shown together; and between two
looks at a running game, of which each has the whole window drawn anew."""


class Connections(QObject):
    """What a view is connected to beyond its own widgets.

    A session, a viewer and the objects that docks share outlive a dock: each
    connection to one of them goes through here, so that a closed dock hears of
    nothing any more and is freed.

    ``owner``: whoever listens; with the dock that it is in they are undone by
    :func:`release`.
    """

    def __init__(self, owner: QObject | None = None) -> None:
        super().__init__(owner)
        self._stack = ExitStack()

    def connect(self, signal: Any, slot: Callable[..., Any]) -> None:
        """Connect a signal of psygnal, Qt or napari with a slot."""
        signal.connect(slot)
        self._stack.callback(signal.disconnect, slot)

    def connect_all(self, signals: Iterable[Any], slot: Callable[..., Any]) -> None:
        """Connect several signals with one slot."""
        for signal in signals:
            self.connect(signal, slot)

    def call(self, undo: Callable[[], Any]) -> None:
        """Call a function when the rest is undone."""
        self._stack.callback(undo)

    def hook(self, callbacks: list[Any], callback: Callable[..., Any]) -> None:
        """Put a callback into one of napari's lists."""
        callbacks.append(callback)
        self.call(lambda: callback in callbacks and callbacks.remove(callback))

    def close(self) -> None:
        """Undo everything, the last first; again, there is nothing left.

        Where one thing cannot be undone, the others are, before that is raised.
        """
        self._stack.close()


class Listener(QWidget):
    """A part of a dock that hears of others only while it is open.

    What it missed it catches up with once it is shown.
    """

    def __init__(self) -> None:
        super().__init__()
        self._has_missed = True
        self._heard = Connections(self)
        self.shown_by: list[QWidget] = []
        """Other parts in which some of it is seen."""

    def listen(self, signals: Iterable[Any], slot: Callable[[], object]) -> None:
        """Have a slot called at each of these signals while this is open."""
        self._heard.connect_all(signals, self._heeded(slot))

    def _heeded(self, slot: Callable[[], object]) -> Callable[..., None]:
        """Return what calls a slot, or notes while this is closed that it missed it."""

        def hear(*values: object) -> None:
            if not self.is_open():
                self._has_missed = True
            elif self._has_missed:
                self.meet()
            else:
                slot()

        return hear

    def follow(
        self, session: Session, signals: Iterable[Any], job: Callable[[], object]
    ) -> Callable[[], None]:
        """Have a job done soon after these signals, and in a game now and then.

        Returns what has it done after anything else.
        """
        heeded = self._heeded(job)  # closed by then?
        turn = qthrottled(heeded, SOON_MS, leading=False, parent=self)

        def soon() -> None:
            turn.setTimeout(RUNNING_MS if session.state == "running" else SOON_MS)
            turn.throttle()

        self.listen(signals, soon)
        return soon

    def keep_until(self, signal: Any) -> None:
        """Have what is shown let go at a signal, also while nobody looks."""
        self._heard.connect(signal, lambda *_: self.let_go())

    def let_go(self) -> None:
        """Keep nothing of data that are gone."""

    def is_open(self) -> bool:
        """Whether it would be seen if its window were, or what also shows it."""
        seen = self, *self.shown_by
        return any(part.isVisibleTo(part.window()) for part in seen)

    def catch_up(self) -> None:
        """Show all as it is now."""
        raise NotImplementedError

    def showEvent(self, event: object) -> None:
        """Catch up."""
        super().showEvent(event)
        self.meet()

    def meet(self) -> None:
        """Catch up, if anything was missed."""
        if self._has_missed:
            self._has_missed = False
            self.catch_up()


def release(dock: QObject) -> None:
    """Undo the connections of all that a dock holds, and stop its timers."""
    with ExitStack() as all_parts:  # each is undone, whatever another raises
        for part in dock.findChildren(Connections):
            all_parts.callback(part.close)
        for timer in dock.findChildren(QTimer):
            all_parts.callback(timer.stop)
