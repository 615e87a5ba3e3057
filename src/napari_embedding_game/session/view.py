"""Which points of a session's map are drawn, and where.

The map is drawn whole, split by a column, or next to another map of the timeline.
Snapshot, clusters, markers and files have all points where they are.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from psygnal import Signal

from napari_embedding_game.core.snapshot import Snapshot
from napari_embedding_game.session.panels import (
    STRAIGHT,
    Layout,
    Panels,
    split_by_column,
    split_columns,
)
from napari_embedding_game.session.timeline_comparison import TimelineComparison

if TYPE_CHECKING:
    from napari_embedding_game.session.session import Session


def are_same_objects(first: tuple[object, ...], second: tuple[object, ...]) -> bool:
    """Return whether both hold the same objects."""
    return len(first) == len(second) and all(map(operator.is_, first, second))


class View:
    """How the map of a session is drawn, by its look."""

    comparison_changed = Signal()
    """Another comparison, or none any more."""
    panels_changed = Signal()
    """The map is drawn in other panels, or whole."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.facing: NDArray[np.floating] = STRAIGHT
        """(2, 3) steps of length 1 that go right and up on the canvas, in units of the
        map: panels in space are laid out along these, and figures seen so."""
        self._comparison: TimelineComparison | None = None
        self._layout_of: tuple[object, ...] = ()
        self._layout: Layout | None = None
        self._last_layout: Layout | None = None
        """The layout that :attr:`panels_changed` was last emitted for."""
        self._columns: tuple[object, list[str]] = None, []
        look = session.look.events
        for signal in (
            look.split_by,
            session.columns_changed,
            session.state_changed,
            session.progressed,
            session.mark_shown,
            session.dataset_changed,
            session.restored,
        ):
            signal.connect(self._update_panels, max_args=0)

    @property
    def layout(self) -> Layout | None:
        """Where the points are drawn; None where there is no map."""
        session, comparison, column = self._session, self.comparison, self._split_by()
        snapshot, dataset = session.snapshot, session.dataset
        if snapshot is None:
            return None
        obs = dataset.obs if column and dataset is not None else None
        sources = snapshot, comparison, obs, column
        if not are_same_objects(sources, self._layout_of):
            self._layout_of = sources
            if comparison is not None and self.is_side_by_side:
                self._layout = comparison.side_by_side(self.facing)
            elif obs is not None:
                self._layout = split_by_column(snapshot, obs[column], self.facing)
            else:
                self._layout = Layout(snapshot)
        return self._layout

    @property
    def drawn(self) -> Snapshot | None:
        """The map where its points are drawn."""
        return None if self.layout is None else self.layout.snapshot

    @property
    def panels(self) -> Panels | None:
        """The panels that the map is drawn in; None where it is whole."""
        return None if self.layout is None else self.layout.panels

    @property
    def positions(self) -> NDArray[np.float32] | None:
        """The places where points are drawn, as in :attr:`Layout.positions`."""
        return None if self.layout is None else self.layout.positions

    def _split_by(self) -> str:
        """Return the column that the map is split by now; "" where it is whole."""
        session, column = self._session, self._session.look.split_by
        snapshot = session.snapshot
        if not column or snapshot is None or session.is_moving:
            return ""
        if self.is_side_by_side or snapshot.embedding.shape[1] not in (2, 3):
            return ""
        return column if column in self.split_columns else ""

    @property
    def split_columns(self) -> list[str]:
        """The columns of the metadata that the map can be split by."""
        dataset = self._session.dataset
        obs = None if dataset is None else dataset.obs
        if self._columns[0] is not obs:
            self._columns = obs, [] if dataset is None else split_columns(dataset)
        return self._columns[1]

    @property
    def comparison(self) -> TimelineComparison | None:
        """The comparison of the map on show; None without one."""
        result = self._comparison
        is_of_map = result is not None and result.base is self._session.snapshot
        return result if is_of_map else None

    def set_comparison(self, comparison: TimelineComparison | None) -> None:
        """Take up a comparison, unless another map is on show by now; None ends it."""
        is_of_map = comparison is None or comparison.base is self._session.snapshot
        if is_of_map and comparison is not self._comparison:
            self._comparison = comparison
            self.comparison_changed.emit()
            self._update_panels()

    @property
    def is_side_by_side(self) -> bool:
        """Whether another map is drawn next to this one, in a plane or in space."""
        result = self.comparison
        return result is not None and result.base.embedding.shape[1] in (2, 3)

    def _update_panels(self) -> None:
        """End the comparison where another map is shown, and signal other panels."""
        if self._session.is_moving or self.comparison is None:
            self.set_comparison(None)
        layout, previous = self.layout, self._last_layout
        self._last_layout = layout
        if all(one is None or one.panels is None for one in (layout, previous)):
            return
        if layout is None or not layout.is_arranged_as(previous):
            self.panels_changed.emit()
