"""Where the points of a session's map are painted on the canvas.

The map is painted as it is, split into panels by a column, or next to another map of
the timeline.  The same points can be painted in tissue, beside the map or instead.
Only painting changes: snapshot, clusters, markers and files keep the points' positions.
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
from napari_embedding_game.session.tissue import TissueLayout, arrange_tissue

if TYPE_CHECKING:
    from napari_embedding_game.session.session import Session


def are_same_objects(first: tuple[object, ...], second: tuple[object, ...]) -> bool:
    """Return whether two tuples hold the same objects, by identity, in order."""
    return len(first) == len(second) and all(map(operator.is_, first, second))


class View:
    """The painted positions of a session's map, as its display settings choose."""

    comparison_changed = Signal()
    """Emitted when a comparison begins or ends."""
    panels_changed = Signal()
    """Emitted when the map is painted in other panels, or no longer in panels, and
    when another tissue is shown, or the map is shown or hidden."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.facing: NDArray[np.floating] = STRAIGHT
        """(2, 3) unit vectors, in map coordinates, that point right and up on the
        canvas: panels of a map in space lie in their plane."""
        self._comparison: TimelineComparison | None = None
        self._layout_of: tuple[object, ...] = ()
        self._layout: Layout | None = None
        self._last_layout: Layout | None = None
        """The layout that :attr:`panels_changed` was last emitted for."""
        self._tissue_of: tuple[object, ...] = ()
        self._tissue: TissueLayout | None = None
        self._last_shown: tuple[object, ...] = None, True
        """The tissue, and whether the map was shown, when that was last emitted."""
        self._columns: tuple[object, list[str]] = None, []
        look = session.look.events
        for signal in (
            look.split_by,
            look.show,
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
        """The painted positions and panels; None without a map.

        Another map side by side comes before panels by a column.  The layout is
        computed again only where snapshot, comparison, metadata or column have changed.
        """
        session, comparison, column = self._session, self.comparison, self._split_by()
        snapshot, dataset = session.snapshot, session.dataset
        if snapshot is None:
            return None
        obs = dataset.obs if column and dataset is not None else None
        sources = snapshot, comparison, obs, column
        if not are_same_objects(sources, self._layout_of):
            self._layout_of = sources
            if comparison is not None and self.is_side_by_side:
                self._layout = comparison.lay_out_side_by_side(self.facing)
            elif obs is not None:
                self._layout = split_by_column(snapshot, obs[column], self.facing)
            else:
                self._layout = Layout(snapshot)
        return self._layout

    @property
    def painted_snapshot(self) -> Snapshot | None:
        """The snapshot with its painted positions; None without a map."""
        return None if self.layout is None else self.layout.snapshot

    @property
    def panels(self) -> Panels | None:
        """The panels of the map; None where the map is not painted in panels."""
        return None if self.layout is None else self.layout.panels

    @property
    def positions(self) -> NDArray[np.float32] | None:
        """The painted positions of all maps, as in :attr:`Layout.positions`."""
        return None if self.layout is None else self.layout.positions

    @property
    def has_tissue(self) -> bool:
        """Whether the rows of the map have positions in tissue."""
        dataset = self._session.dataset
        tissue = None if dataset is None else dataset.tissue
        return tissue is not None and tissue.has_positions

    @property
    def is_map_shown(self) -> bool:
        """Whether the map is shown, rather than the tissue alone."""
        return self._session.look.show != "tissue" or not self.has_tissue

    @property
    def n_axes_shown(self) -> int:
        """Number of axes of what is shown: of the map, or of the tissue alone.

        Beside a flat map a tissue in space is seen from above.  2 without a map.
        """
        snapshot, tissue = self._session.snapshot, self.tissue
        if tissue is not None and not self.is_map_shown:
            return int(tissue.positions.shape[1])
        return 2 if snapshot is None else int(snapshot.embedding.shape[1])

    @property
    def tissue(self) -> TissueLayout | None:
        """The painted positions in tissue; None where the look shows the map alone.

        None without positions, too.  They are computed again only where dataset,
        metadata or column have changed.
        """
        dataset, is_wanted = self._session.dataset, self._session.look.show != "map"
        tissue = None if dataset is None else dataset.tissue
        if dataset is None or tissue is None or not (is_wanted and self.has_tissue):
            return None
        column = self._split_by()
        has_columns = bool(column or tissue.section_column)
        sources = tissue, dataset.obs if has_columns else None, column
        if not are_same_objects(sources, self._tissue_of):
            self._tissue_of = sources
            new = arrange_tissue(tissue, dataset.obs, column)
            # Another column of the metadata moves no cell.
            if not new.is_arranged_as(self._tissue):
                self._tissue = new
        return self._tissue

    def _split_by(self) -> str:
        """Return the column by which the map is split now; "" where it is not split.

        It is not while points move, next to another map, in other than 2 or 3
        dimensions, or where the chosen column has too many groups.
        """
        session, column = self._session, self._session.look.split_by
        snapshot = session.snapshot
        if not column or snapshot is None or session.is_moving:
            return ""
        if self.is_side_by_side or snapshot.embedding.shape[1] not in (2, 3):
            return ""
        return column if column in self.split_columns else ""

    @property
    def split_columns(self) -> list[str]:
        """The columns of the metadata by which the map can be split.

        [] without data.  They are found again only for another table.
        """
        dataset = self._session.dataset
        obs = None if dataset is None else dataset.obs
        if self._columns[0] is not obs:
            self._columns = obs, [] if dataset is None else split_columns(dataset)
        return self._columns[1]

    @property
    def comparison(self) -> TimelineComparison | None:
        """The comparison of the map on show with another; None without one."""
        result = self._comparison
        is_of_map = result is not None and result.base is self._session.snapshot
        return result if is_of_map else None

    def set_comparison(self, comparison: TimelineComparison | None) -> None:
        """Set the comparison, unless it is of another map; None ends the comparison.

        A change emits ``comparison_changed`` and updates the panels.
        """
        is_of_map = comparison is None or comparison.base is self._session.snapshot
        if is_of_map and comparison is not self._comparison:
            self._comparison = comparison
            self.comparison_changed.emit()
            self._update_panels()

    @property
    def is_side_by_side(self) -> bool:
        """Whether another map is painted next to the map on show, in 2 or 3 axes."""
        result = self.comparison
        return result is not None and result.base.embedding.shape[1] in (2, 3)

    def _update_panels(self) -> None:
        """End a comparison of a former map, and emit ``panels_changed`` if need be.

        It is emitted where panels begin, end, or have other points or names, and where
        other tissue is shown.  While points move any comparison ends.
        """
        if self._session.is_moving or self.comparison is None:
            self.set_comparison(None)
        layout, previous = self.layout, self._last_layout
        shown = self.tissue, self.is_map_shown
        is_same = are_same_objects(shown, self._last_shown)
        self._last_layout, self._last_shown = layout, shown
        has_panels = any(one is not None and one.panels for one in (layout, previous))
        if has_panels and (layout is None or not layout.is_arranged_as(previous)):
            is_same = False
        if not is_same:
            self.panels_changed.emit()
