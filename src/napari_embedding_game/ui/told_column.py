"""The metadata column that a person wants clusters and points told by."""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

from napari_embedding_game.session.session import Session


@dataclass
class ToldColumn:
    """The column that is chosen in the inspector; "" for none."""

    name: str = ""


_known: WeakKeyDictionary[Session, ToldColumn] = WeakKeyDictionary()


def told_column_of(session: Session) -> ToldColumn:
    """Return the one of a session, which its docks share."""
    return _known.setdefault(session, ToldColumn())
