"""Where the points of a map lie in tissue, as the canvas shows them beside the map.

Positions keep the tissue's own unit, so that a scale bar and pictures of the tissue
hold.  As on a map y goes up, so that names, captions and picking know one direction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_embedding_game.data.tissue import Tissue
from napari_embedding_game.session.panels import (
    Panels,
    arrange_panels,
    find_panel_groups,
    make_captions,
)

CELLS_PER_BIN = 16
"""Mean number of cells in a bin by which the spacing of cells is estimated."""
MAX_BINS = 4_096
"""Most such bins along an axis."""
OVERLAP = 0.1
"""Share of the smaller of two sections from which on the sections overlap."""


@dataclass(frozen=True, eq=False)
class TissueLayout:
    """The painted positions of N points in tissue, with pictures of the tissue."""

    tissue: Tissue
    positions: NDArray[np.float32]
    """(N, 2) x and y, or (N, 3) x, y and z, in the tissue's unit; y goes up.  A point
    without a position is NaN."""
    spacing: float
    """Usual distance between neighbouring cells, in the tissue's unit."""
    panels: Panels | None
    """Panels of the sections, or of the groups of a column; None without panels."""
    panel_of_points: NDArray[np.intp] | None
    """(N,) panel of each point; None without panels."""
    image_shifts: Mapping[str, NDArray[np.float64]]
    """(2,) shift along x and y, which goes up, of each picture to be shown, by the key
    of the picture in ``tissue.images``."""

    def is_arranged_as(self, other: TissueLayout | None) -> bool:
        """Return whether another layout has the same pictures, panels and positions."""
        if other is None or self.tissue.images is not other.tissue.images:
            return False
        names = [one.panels and one.panels.captions for one in (self, other)]
        return names[0] == names[1] and np.array_equal(
            self.positions, other.positions, equal_nan=True
        )


def arrange_tissue(
    tissue: Tissue, obs: pd.DataFrame, split_by: str = ""
) -> TissueLayout:
    """Return the painted positions of N rows in tissue, with the panels they are in.

    Sections that overlap lie in panels beside each other, all in one scale; sections
    that lie apart stay where they are, unless ``split_by`` names their column.  If it
    names another column of ``obs`` (N rows), each of its groups has a panel with all
    sections, and no picture is shown.  At least one position must be known.
    """
    flip = np.array([1, -1, 1], np.float32)[: tissue.positions.shape[1]]
    places, panels, panel_of_points = tissue.positions * flip, None, None
    is_known, shifts = tissue.is_known, dict.fromkeys(tissue.images, np.zeros(2))
    column = tissue.section_column
    if column in obs:
        # The numbers of many sections are no measurements to be binned.
        names, codes = find_panel_groups(obs[column].astype("category"))
        boxes = _find_section_boxes(tissue, places, names, codes)
        if split_by == column or _do_overlap(boxes):
            # The upper left corners of all sections, at that of the first section.
            corners = np.stack([boxes[:, 0, 0], boxes[:, 1, 1]], axis=1)
            moves = corners[0] - corners
            room = (boxes + moves[:, None]).reshape(-1, 2)
            panels = arrange_panels(room, make_captions(names, codes[is_known]))
            panel_of_points, moves = codes, moves + panels.offsets
            places[:, :2] += moves[codes].astype(np.float32)
            moves_by_name = dict(zip(names, moves, strict=True))
            shifts = {k: moves_by_name[k] for k in tissue.images if k in moves_by_name}
    spacing = estimate_spacing(places)
    if split_by not in ("", column):
        names, codes = find_panel_groups(obs[split_by])
        captions = make_captions(names, codes[is_known])
        panels = arrange_panels(places[is_known, :2], captions)
        panel_of_points, shifts = codes, {}
        places[:, :2] += panels.offsets[codes]
    return TissueLayout(tissue, places, spacing, panels, panel_of_points, shifts)


def estimate_spacing(positions: NDArray[np.floating]) -> float:
    """Return the usual distance between neighbouring cells, by their median density.

    ``positions`` (N, d) may have NaN.  Without any extent the distance is 1.
    """
    known = positions[np.isfinite(positions[:, 0])]
    extent = np.ptp(known, axis=0).astype(float)
    known, extent = known[:, extent > 0], extent[extent > 0]
    if not len(extent):
        return 1.0
    n_axes = len(extent)
    side = (float(extent.prod()) * CELLS_PER_BIN / len(known)) ** (1 / n_axes)
    side = max(side, float(extent.max()) / MAX_BINS)
    bins = np.zeros(len(known), np.intp)
    for axis, low in zip(known.T, known.min(axis=0), strict=True):
        bins = bins * MAX_BINS * 2 + ((axis - low) / side).astype(np.intp)
    _, bin_of_cells, counts = np.unique(bins, return_inverse=True, return_counts=True)
    return float(side / np.median(counts[bin_of_cells]) ** (1 / n_axes))


def _find_section_boxes(
    tissue: Tissue,
    places: NDArray[np.floating],
    names: list[str],
    codes: NDArray[np.intp],
) -> NDArray[np.float64]:
    """Return the lowest and highest x and y of m sections with their pictures.

    Shape (m, 2, 2).  They are 0 for a section without positions and without a picture.
    """
    rows = pd.DataFrame(places[:, :2].astype(float)).groupby(codes)
    numbers = range(len(names))
    ends = [end.reindex(numbers).to_numpy() for end in (rows.min(), rows.max())]
    boxes = np.stack(ends, axis=1)
    for box, name in zip(boxes, names, strict=True):
        if (image := tissue.images.get(name)) is not None:
            sides = image.step * image.pixels.shape[1::-1]
            left, top = image.origin - image.step / 2
            box[0] = np.fmin(box[0], [left, -top - sides[1]])
            box[1] = np.fmax(box[1], [left + sides[0], -top])
    result: NDArray[np.float64] = np.nan_to_num(boxes)
    return result


def _do_overlap(boxes: NDArray[np.floating]) -> bool:
    """Return whether any two of m boxes (m, 2, 2) overlap, by more than ``OVERLAP``."""
    low, high = boxes[:, 0], boxes[:, 1]
    sides = np.minimum(high[:, None], high) - np.maximum(low[:, None], low)
    shared, areas = sides.clip(0).prod(axis=2), (high - low).prod(axis=1)
    is_overlap = shared > OVERLAP * np.minimum(areas[:, None], areas)
    return bool(is_overlap[~np.eye(len(boxes), dtype=bool)].any())
