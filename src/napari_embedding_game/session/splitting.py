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


def groups_of(column: pd.Series) -> pd.Series:
    """Return a column of names, or of few whole numbers, as categories that it has."""
    return column.astype("category").cat.remove_unused_categories()


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
    there = groups_of(column[shown]).cat.categories
    column = column.astype("category").cat.set_categories(there)
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
        """What :attr:`_split` is of: layout, metadata, column and hidden points."""
        self._split: Split | None = None
        self._known: tuple[object, frozenset[str]] = None, frozenset()
        """The metadata, and the columns that they can be split by."""
        self._told = False
        session.look.events.split_by.connect(self._tell)
        session.hiding.changed.connect(self._on_hidden)
        session.columns_changed.connect(self._on_columns)
        session.state_changed.connect(self.check, max_args=0)
        session.comparing.laid_out.connect(self.check, max_args=0)

    def check(self) -> None:
        """Tell where the map has become split, or whole."""
        if self.is_shown != self._told:
            self._tell()

    @property
    def is_shown(self) -> bool:
        """Whether the map is drawn split now."""
        session = self._session
        shot, by = session.snapshot, session.look.split_by
        is_wide = shot is not None and shot.embedding.shape[1] in (2, 3)
        is_at_rest = session.state not in ("preparing", "running")
        is_free = is_at_rest and not session.comparing.is_side_by_side
        return bool(by) and is_wide and is_free and self._has_column(by)

    def _has_column(self, by: str) -> bool:
        """Return whether the data can be split by a column; asked at each move."""
        dataset = self._session.dataset
        if dataset is not None and self._known[0] is not dataset.obs:
            self._known = dataset.obs, frozenset(split_columns(dataset))
        return dataset is not None and by in self._known[1]

    def of(self, snapshot: Snapshot) -> Split | None:
        """Return a layout of the session's map as it is drawn; None if it is whole."""
        if not self.is_shown:
            self._of, self._split = (), None
            return None
        assert self._session.dataset is not None
        by, hidden = self._session.look.split_by, self._session.hiding.mask
        obs = self._session.dataset.obs
        of = snapshot, obs, hidden, by
        is_known = (
            bool(self._of)
            and self._of[3] == by
            and all(map(operator.is_, of[:3], self._of))
        )
        if self._split is None or not is_known:
            self._split = split(snapshot, obs[by], hidden, self._session.facing)
            self._of = of
        return self._split

    @property
    def current(self) -> Split | None:
        """What is drawn now, if it is split."""
        session = self._session
        shown = session.comparing.drawn or session.snapshot
        return None if shown is None else self.of(shown)

    def _on_hidden(self) -> None:
        if self.is_shown:
            self._tell()

    def _on_columns(self) -> None:
        """Move the points whose group was written anew."""
        former, shown = self._split, self._session.comparing.drawn
        shown = shown or self._session.snapshot
        if former is None or shown is None or not self.is_shown:
            self.check()
            return
        now = self.of(shown)
        if now is None or not now.is_as(former):
            self._tell()

    def _tell(self, *event: object) -> None:
        self._told = self.is_shown
        self.moved.emit()
