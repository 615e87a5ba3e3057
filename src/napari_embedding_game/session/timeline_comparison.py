"""The comparison of the map on show with a mark of the timeline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.snapshot import Snapshot
from napari_embedding_game.data.columns import share_text
from napari_embedding_game.session.panels import Layout, arrange_panels
from napari_embedding_game.session.timeline import Mark

if TYPE_CHECKING:
    from napari_embedding_game.core.inspect.map_comparison import MapComparison
    from napari_embedding_game.core.inspect.quality import MapQuality

FAR_OFF = 0.4
"""Median shift, in radii of the map, from which islands may have changed places."""
THIS_MAP = "This map"
SHEET = " The other map has 2 dimensions: it lies in space as a sheet, turned to fit."
SHADOW = " The other map has 3 dimensions: you see it from the side that fits best."


@dataclass(frozen=True, eq=False)
class TimelineComparison:
    """The map on show, another map of the timeline, and how they differ."""

    base: Snapshot
    mark: Mark
    """The mark of the other map."""
    maps: MapComparison
    qualities: tuple[MapQuality, MapQuality] | None
    """Quality of the map on show and of the other; None where data are missing."""

    @property
    def n_dimensions(self) -> tuple[int, int]:
        """Number of dimensions of the map on show, and of the other map."""
        other = self.mark.snapshot.embedding
        return self.base.embedding.shape[1], other.shape[1]

    def describe_difference(self) -> str:
        """Return sentences on how the two maps differ.

        They tell the share of kept neighbours and the median shift of the points, and
        where dimensions differ how the other map is shown.
        """
        half = float(np.median(self.maps.movement))
        is_near, kept = half < FAR_OFF, share_text(self.maps.neighbors_kept)
        return (
            f"{kept} of a point's neighbours are the same on both maps. Half of the "
            f"points move by {'less' if is_near else 'more'} "
            f"than {half:.0%} of the map's radius"
            f"{'.' if is_near else ': whole islands may have changed places.'}"
            + {(3, 2): SHEET, (2, 3): SHADOW}.get(self.n_dimensions, "")
        )

    def lay_out_side_by_side(self, facing: NDArray[np.floating]) -> Layout:
        """Return a layout with both maps in panels, the other map aligned to the first.

        Captions tell the neighbours kept by each map, else the origin of the other map.

        ``facing`` (2, 3) array: as in :func:`~.panels.arrange_panels`.
        """
        laid, (n_axes, n_other) = self.maps.aligned, self.n_dimensions
        notes = ["", self.mark.origin]
        if self.qualities is not None:
            shares = (one.neighbors_kept for one in self.qualities)
            notes = [f"neighbours kept {share:.0%}" for share in shares]
        if n_axes != n_other:
            notes[1] += f", {n_other} dimensions"
        captions = [(THIS_MAP, notes[0]), (self.mark.title, notes[1])]
        positions = np.concatenate([self.base.embedding, laid])
        panels = arrange_panels(positions, captions, facing)
        return Layout(self.base, panels, other=laid + panels.offsets[1])
