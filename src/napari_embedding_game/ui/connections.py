"""What is undone together when a view is closed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import Any, Protocol


class Closable(Protocol):
    """Something that releases what it holds when it is closed."""

    def close(self) -> Any:
        """Release it."""
        ...


class Connections:
    """What a view is connected to beyond its own widgets, and what it has to close.

    A session, a viewer and the objects that docks share outlive a dock: each
    connection to one of them goes through here, so that a closed dock hears of
    nothing any more and is freed.
    """

    def __init__(self) -> None:
        self._stack = ExitStack()

    def connect(self, signal: Any, slot: Callable[..., Any]) -> None:
        """Connect a signal of psygnal, Qt or napari with a slot."""
        signal.connect(slot)
        self._stack.callback(signal.disconnect, slot)

    def connect_all(self, signals: Iterable[Any], slot: Callable[..., Any]) -> None:
        """Connect several signals with one slot."""
        for signal in signals:
            self.connect(signal, slot)

    def add(self, *parts: Closable) -> None:
        """Close these parts, too."""
        for part in parts:
            self._stack.callback(part.close)

    def call(self, undo: Callable[[], Any]) -> None:
        """Call a function on closing, such as the ``stop`` of a timer."""
        self._stack.callback(undo)

    def close(self) -> None:
        """Undo everything, the last first; again, there is nothing left.

        Where one thing cannot be undone, the others are, before that is raised.
        """
        self._stack.close()
