"""Connections that are undone together."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


class Connections:
    """What a part listens to beyond its own widgets, until it is closed.

    A session, a viewer and the objects that docks share outlive a dock: each
    connection to one of them goes through here, so that a closed dock hears of
    nothing any more and is freed.
    """

    def __init__(self) -> None:
        self._made: list[tuple[Any, Callable[..., Any]]] = []

    def connect(self, signal: Any, slot: Callable[..., Any]) -> None:
        """Connect a signal of psygnal, Qt or napari with a slot."""
        signal.connect(slot)
        self._made.append((signal, slot))

    def connect_all(self, signals: Iterable[Any], slot: Callable[..., Any]) -> None:
        """Connect several signals with one slot."""
        for signal in signals:
            self.connect(signal, slot)

    def close(self) -> None:
        """Undo every connection, the last one first; again, there is none left."""
        while self._made:
            signal, slot = self._made.pop()
            signal.disconnect(slot)
