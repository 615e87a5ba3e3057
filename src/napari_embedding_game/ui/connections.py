"""Who hears of a session: docks and their parts, while they are open."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from qtpy.QtCore import QObject, QTimer
from qtpy.QtWidgets import QWidget
from superqt.utils import qthrottled

from napari_embedding_game.session.session import Session

SOON_MS, RUNNING_MS = 30, 1_000
"""Edits that follow each other faster than this are shown together; and between two
looks at a running game, of which each has the whole window drawn anew."""
WORDS_MS = 500
"""The same between two texts."""


def in_step(
    owner: QObject, session: Session, job: Callable[[], object]
) -> Callable[..., None]:
    """Return what has a job done: at once, and in a running game now and then."""
    turn = qthrottled(job, WORDS_MS, parent=owner)

    def hear(*values: object) -> None:
        if session.state == "running":
            turn.throttle()
        else:
            turn.cancel()  # it would be of what was before
            job()

    return hear


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

    def connect(self, slot: Callable[..., Any], *signals: Any) -> None:
        """Connect a slot with signals of psygnal, Qt or napari."""
        for signal in signals:
            signal.connect(slot)
            self._stack.callback(signal.disconnect, slot)

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

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session, self._has_missed = session, True
        self._heard = Connections(self)
        self.visible_with: list[QWidget] = []
        """Other parts in which some of it is seen."""
        self._heard.connect(lambda *_: self.clear_data(), session.dataset_changed)

    def listen(self, slot: Callable[[], object], *signals: Any) -> None:
        """Have a slot called at each of these signals while this is open."""
        self._heard.connect(self._if_open(slot), *signals)

    def _if_open(self, slot: Callable[[], object]) -> Callable[..., None]:
        """Return what calls a slot, or notes while this is closed that it missed it."""

        def hear(*values: object) -> None:
            if not self.is_open():
                self._has_missed = True
            elif self._has_missed:
                self.catch_up_if_missed()
            else:
                slot()

        return hear

    def follow(self, job: Callable[[], object]) -> None:
        """Have a job done soon after the map has changed, in a game now and then."""
        session, when_open = self._session, self._if_open(job)  # closed by then?
        turn = qthrottled(when_open, SOON_MS, leading=False, parent=self)

        def submit_soon() -> None:
            turn.setTimeout(RUNNING_MS if session.state == "running" else SOON_MS)
            turn.throttle()

        changes = session.clusters.changed, session.state_changed
        self.listen(submit_soon, *changes)

    def clear_data(self) -> None:
        """Drop all data that are gone, also while this is closed."""

    def is_open(self) -> bool:
        """Whether it would be seen if its window were, or what also shows it."""
        seen = self, *self.visible_with
        return any(part.isVisibleTo(part.window()) for part in seen)

    def catch_up(self) -> None:
        """Show all as it is now."""

    def showEvent(self, event: object) -> None:
        """Catch up."""
        super().showEvent(event)
        self.catch_up_if_missed()

    def catch_up_if_missed(self) -> None:
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
