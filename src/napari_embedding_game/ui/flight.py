"""The wish to see one point of the map, from wherever it is uttered."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from psygnal import Signal

from napari_embedding_game.session.session import Session


class Flight:
    """``asked`` brings the row of the point that the camera is to go to."""

    asked = Signal(int)


_known: WeakKeyDictionary[Session, Flight] = WeakKeyDictionary()


def flight_of(session: Session) -> Flight:
    """Return the one of a session, which its docks share."""
    return _known.setdefault(session, Flight())
