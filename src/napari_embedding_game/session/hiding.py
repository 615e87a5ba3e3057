"""Levels of a column, or clusters, that are hidden: their points are not drawn.

Only what is seen and pointed at changes.  Clusters, markers and files have all points.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from psygnal import Signal

from napari_embedding_game.session.cluster_report import as_levels, is_continuous
from napari_embedding_game.session.display import HiddenLevels

if TYPE_CHECKING:
    from napari_embedding_game.session.session import Session

NONE_HIDDEN = HiddenLevels()
CLUSTERS = ""
"""What :attr:`HiddenLevels.column` is where clusters are hidden, by their ids."""
COLUMN_GONE = "All points are shown again: these data have no levels of {} any more."
NONE_LEFT = "All points are shown again: nothing of this map would have been left."


class Hiding:
    """Says which points of a session are hidden, as its look has it.

    Parameters
    ----------
    session : Session
    """

    changed = Signal()
    """Other levels are hidden."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._known: tuple[object, HiddenLevels] = None, NONE_HIDDEN
        """The metadata or labels that the mask is of, and what is hidden."""
        self._mask: NDArray[np.bool_] | None = None
        session.look.events.hidden.connect(self._on_changed)
        session.dataset_changed.connect(self._check, max_args=0)
        session.columns_changed.connect(self._on_changed)

    @property
    def mask(self) -> NDArray[np.bool_] | None:
        """Whether each point is hidden, (N,), read-only; None where none is."""
        session, hidden = self._session, self._session.look.hidden
        if session.dataset is None or not hidden.levels:
            return None
        is_by_cluster = hidden.column == CLUSTERS
        of = session.clusters.labels if is_by_cluster else session.dataset.obs
        if self._known[0] is not of or self._known[1] != hidden:
            mask = self._find(hidden)
            mask.setflags(write=False)
            self._known, self._mask = (of, hidden), mask if mask.any() else None
        return self._mask

    @property
    def rows(self) -> NDArray[np.intp] | None:
        """The points that are not hidden, in their order; None where none is hidden."""
        return None if self.mask is None else np.flatnonzero(~self.mask)

    @property
    def column(self) -> str:
        """The column whose levels are hidden; "" for clusters."""
        return self._session.look.hidden.column

    @property
    def n_points(self) -> int:
        """How many points are hidden."""
        return 0 if self.mask is None else int(self.mask.sum())

    @property
    def n_levels(self) -> int:
        """How many levels that have points are hidden."""
        return len(self.hidden_of(self.column))

    @property
    def n_selected(self) -> int:
        """How many of the selected points are hidden."""
        mask = self.mask
        return 0 if mask is None else int((mask & self._session.selection.points).sum())

    def hidden_of(self, column: str) -> frozenset[str]:
        """Return which levels of a column, or ids of clusters for "", are hidden.

        Those that have points.
        """
        hidden = self._session.look.hidden
        if hidden.column != column or not hidden.levels:
            return frozenset()
        return frozenset(hidden.levels) & frozenset(self._levels(column))

    def is_hidden(self, column: str, level: str) -> bool:
        """Return whether a level of a column, or the cluster of an id, is hidden."""
        return level in self.hidden_of(column)

    def hide(self, column: str, level: str) -> None:
        """Hide a level beside those of the same column that are hidden.

        What was hidden of another column is shown again; the last level stays.
        """
        self._set(column, self.hidden_of(column) | {level})

    def show(self, column: str, level: str) -> None:
        """Show a level again."""
        self._set(column, self.hidden_of(column) - {level})

    def isolate(self, column: str, level: str) -> None:
        """Hide all other levels, and the points that have none."""
        self._set(column, set(self._levels(column)) - {level})

    def show_all(self) -> None:
        """Show all points again."""
        self._session.look.hidden = NONE_HIDDEN

    def of_places(self, n_maps: int = 1) -> NDArray[np.bool_] | None:
        """Return whether each place of ``n_maps`` maps side by side is hidden."""
        return None if self.mask is None else np.tile(self.mask, n_maps)

    def _set(self, column: str, levels: Iterable[str]) -> None:
        known, chosen = self._levels(column), set(levels)
        kept = tuple(level for level in known if level in chosen)
        if len(kept) < len(known):  # an empty map tells nothing
            hidden = HiddenLevels(column, kept) if kept else NONE_HIDDEN
            self._session.look.hidden = hidden

    def _levels(self, column: str) -> list[str]:
        """Return the levels that have points: ids of the clusters for ""."""
        session = self._session
        if column == CLUSTERS:
            return [str(cluster.id) for cluster in session.clusters.clusters]
        if session.dataset is None or column not in session.dataset.obs:
            return []
        levels = as_levels(session.dataset.obs[column]).cat.remove_unused_categories()
        return list(map(str, levels.cat.categories))

    def _find(self, hidden: HiddenLevels) -> NDArray[np.bool_]:
        session = self._session
        if hidden.column == CLUSTERS:
            ids = [int(level) for level in hidden.levels if level.isdecimal()]
            return np.isin(session.clusters.labels, ids)
        if not self._has_column(hidden.column):
            return np.zeros(len(session.clusters.labels), bool)
        assert session.dataset is not None
        levels = as_levels(session.dataset.obs[hidden.column])
        chosen = np.asarray(levels.cat.categories.isin(hidden.levels), bool)
        mask: NDArray[np.bool_] = chosen[levels.cat.codes.to_numpy()]
        return mask

    def _has_column(self, column: str) -> bool:
        assert self._session.dataset is not None
        obs = self._session.dataset.obs
        is_one = column in obs.columns[~obs.columns.duplicated(keep=False)]
        return is_one and not is_continuous(obs[column])

    def _on_changed(self, *event: object) -> None:
        self._check()
        self.changed.emit()

    def _check(self) -> None:
        """Show all where the column has gone, or no point would be left."""
        session, hidden = self._session, self._session.look.hidden
        if session.dataset is None or not hidden.levels or hidden.column == CLUSTERS:
            return
        is_gone = not self._has_column(hidden.column)
        if is_gone or not self.hidden_of(hidden.column):
            self.show_all()
            session.say(COLUMN_GONE.format(hidden.column))
        elif self.n_points == len(session.dataset.obs):
            self.show_all()
            session.say(NONE_LEFT)
