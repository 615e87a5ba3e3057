"""The map split by a column: its groups side by side, each in the same places.

Only what is drawn is moved: :attr:`Session.drawn`.  While points move, the map is
whole.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from psygnal import Signal

from napari_embedding_game.core.snapshot import Snapshot
from napari_embedding_game.session.cluster_report import is_continuous
from napari_embedding_game.session.panels import STRAIGHT, Panels, Room, lay_out

if TYPE_CHECKING:
    from napari_embedding_game.data.dataset import Dataset
    from napari_embedding_game.session.session import Session

MOST_PANELS = 20
NO_GROUP = "(none)"


@dataclass(frozen=True, eq=False)
class Split:
    """A layout whose groups were moved apart."""

    snapshot: Snapshot
    panels: Panels
    of_points: NDArray[np.intp]
    """(n,) panel of each point."""

    def is_as(self, other: Split) -> bool:
        """Return whether the same points are in panels of the same names."""
        names, others = ([p.name for p in s.panels.panels] for s in (self, other))
        return names == others and np.array_equal(self.of_points, other.of_points)


def split_columns(dataset: Dataset | None) -> list[str]:
    """Return the names of the columns that a map can be split by."""
    if dataset is None:
        return []
    obs = dataset.obs
    names = obs.columns[~obs.columns.duplicated(keep=False)]
    return [
        str(name)
        for name in names
        if not is_continuous(obs[name])
        and 2 <= obs[name].nunique() + obs[name].hasnans <= MOST_PANELS
    ]


def split(
    snapshot: Snapshot,
    column: pd.Series,
    hidden: NDArray[np.bool_] | None = None,
    facing: NDArray[np.floating] = STRAIGHT,
) -> Split:
    """Move the groups of a column apart, each as it lies, in rows of panels.

    Parameters
    ----------
    snapshot : Snapshot
        Of two or three dimensions.
    column : Series of length N
        Of names, or of few whole numbers.  Points without a group have a panel of
        their own, the last one.
    hidden : (N,) bool, optional
        Points that are not drawn: none of them is counted, and a group of these alone
        has no panel.  They lie in the first one.
    facing : (2, 3) array
        As in :func:`~.panels.lay_out`.
    """
    shown = slice(None) if hidden is None else ~hidden
    column = column.astype("category")
    there = column[shown].cat.remove_unused_categories().cat.categories
    column = column.cat.set_categories(there)
    names = [*map(str, column.cat.categories)]
    codes = column.cat.codes.to_numpy().astype(np.intp)
    if (codes[shown] < 0).any():
        codes = np.where(codes < 0, len(names), codes)
        names.append(NO_GROUP)
    if hidden is not None:
        codes = np.where(hidden, 0, codes)
    counts = np.bincount(codes[shown], minlength=len(names))
    captions = [(name, f"{n:,}") for name, n in zip(names, counts, strict=True)]
    room = Room.around(snapshot.embedding)
    panels = lay_out(room, captions, facing)
    moved = replace(snapshot, embedding=snapshot.embedding + panels.offsets[codes])
    return Split(moved, panels, codes)


class Splitting:
    """Splits the map of a session by the column that its look names.

    Parameters
    ----------
    session : Session
    """

    moved = Signal()
    """The map is drawn split, whole, or by another column."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._of: tuple[object, ...] = ()
        """What :attr:`_split` is of: layout, metadata, hidden points and column."""
        self._split: Split | None = None
        self._known: tuple[object, list[str]] = None, []
        """The metadata, and the columns that they can be split by."""
        self._is_told = False
        session.look.events.split_by.connect(self._tell)
        session.hiding.changed.connect(self._on_hidden)
        session.columns_changed.connect(self._on_columns)
        session.state_changed.connect(self.check, max_args=0)
        session.comparing.laid_out.connect(self.check, max_args=0)

    def check(self) -> None:
        """Tell where the map has become split, or whole."""
        if self.is_shown != self._is_told:
            self._tell()

    @property
    def is_shown(self) -> bool:
        """Whether the map is drawn split now; asked at each move."""
        session = self._session
        shot, by, dataset = session.snapshot, session.look.split_by, session.dataset
        is_moving = session.state in ("preparing", "running")
        if not by or shot is None or dataset is None or is_moving:
            return False
        if session.comparing.is_side_by_side or shot.embedding.shape[1] not in (2, 3):
            return False
        if self._known[0] is not dataset.obs:
            self._known = dataset.obs, split_columns(dataset)
        return by in self._known[1]

    def of(self, snapshot: Snapshot) -> Split | None:
        """Return a layout of the session's map as it is drawn; None if it is whole."""
        if not self.is_shown:
            self._of, self._split = (), None
            return None
        session = self._session
        assert session.dataset is not None
        obs, by, hidden = (
            session.dataset.obs,
            session.look.split_by,
            session.hiding.mask,
        )
        of = snapshot, obs, hidden, by
        if len(self._of) < len(of) or not all(map(operator.is_, of, self._of)):
            self._split = split(snapshot, obs[by], hidden, session.facing)
            self._of = of
        return self._split

    @property
    def current(self) -> Split | None:
        """What is drawn now, if it is split."""
        shown = self._session.comparing.drawn or self._session.snapshot
        return None if shown is None else self.of(shown)

    def _on_hidden(self) -> None:
        if self.is_shown:
            self._tell()

    def _on_columns(self) -> None:
        """Move the points whose group was written anew."""
        former, now = self._split, self.current
        if former is None or now is None:
            self.check()
        elif not now.is_as(former):
            self._tell()

    def _tell(self, *event: object) -> None:
        self._is_told = self.is_shown
        self.moved.emit()
