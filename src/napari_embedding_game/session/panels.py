"""Panels: several maps, or the groups of a map, painted beside each other in rows.

Panels of maps in space lie in the plane of the canvas, wherever the camera is: each
map turns about its own middle, and no panel hides another.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_embedding_game.core.snapshot import FloatArray, Snapshot
from napari_embedding_game.data.columns import count_levels
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.session.cluster_report import to_levels

GAP, ABOVE = 0.12, 0.4
"""Gap beside a panel, and above it for its caption, as shares of a panel."""
STRAIGHT = np.eye(2, 3)
"""Right and up for a camera that looks along the z axis."""
MAX_PANELS = 20


@dataclass(frozen=True, eq=False)
class Panels:
    """Panels in rows; the first panel is upper left, at the map's own position."""

    captions: tuple[tuple[str, str], ...]
    """Name of each panel, and the text after the name."""
    positions: NDArray[np.float64]
    """(m, d) position of each caption, above the middle of the panel's upper edge."""
    width: float
    """Width of a panel, without the gap, in units of the map."""
    offsets: NDArray[np.float32]
    """(m, d) shift from the map to each panel."""
    corners: NDArray[np.float32]
    """(2, d) lower left and upper right corner of all panels with their captions."""
    box: NDArray[np.float32]
    """(2, d) corners of the box by which the view is scaled.

    For flat panels these are ``corners``.  In space the box is a cube around the middle
    of the first panel, as wide as all panels, so that they fit at every rotation."""
    facing: NDArray[np.floating]
    """(2, d) unit vectors that point right and up."""


@dataclass(frozen=True, eq=False)
class Layout:
    """The painted positions of a map, and its panels."""

    snapshot: Snapshot
    panels: Panels | None = None
    """None where the map is not painted in panels."""
    panel_of_points: NDArray[np.intp] | None = None
    """(N,) panel of each point, where the map is split by a column; else None."""
    other: NDArray[np.float32] | None = None
    """(N, d) painted positions of another map next to the first; None without one."""

    @cached_property
    def positions(self) -> NDArray[np.float32]:
        """(m N, d) positions of m maps side by side: entry i is of row ``i % N``."""
        base: NDArray[np.float32] = self.snapshot.embedding
        return base if self.other is None else np.concatenate([base, self.other])

    def is_arranged_as(self, previous: Layout | None) -> bool:
        """Return whether two layouts have the same points in panels of equal names.

        True where neither has panels.  Of maps side by side the other map has to be the
        same.
        """
        one, two = self.panels, None if previous is None else previous.panels
        if previous is None or one is None or two is None:
            return one is two
        names, old_names = ([name for name, _ in p.captions] for p in (one, two))
        points, old_points = self.panel_of_points, previous.panel_of_points
        if points is None or old_points is None:
            return self.other is previous.other
        return names == old_names and np.array_equal(points, old_points)


def arrange_panels(
    points: NDArray[np.floating],
    captions: Sequence[tuple[str, str]],
    facing: NDArray[np.floating] = STRAIGHT,
) -> Panels:
    """Return panels, one for each caption, arranged in rows beside each other.

    ``points`` (n, d) array: a panel has room for these points; in space for the ball
    around them, as they may be seen from any side. ``captions`` sequence of (str, str):
    name of each panel, and the text after it. ``facing`` (2, 3) array: unit vectors, in
    map coordinates, that point right and up on the canvas.
    """
    low, high = points.min(axis=0).astype(float), points.max(axis=0).astype(float)
    middle, size, n_axes = (low + high) / 2, high - low, len(low)
    if n_axes > 2:
        squares = np.zeros(len(points))
        for axis, at in zip(points.T, middle, strict=True):
            squares += (axis - at) ** 2
        size = np.full(2, 2.0 * math.sqrt(squares.max()))
    facing = np.asarray(facing if n_axes > 2 else STRAIGHT[:, :n_axes], np.float64)
    pitch = size * [1 + GAP, 1 + ABOVE] + np.finfo(np.float32).tiny
    n_columns = math.ceil(math.sqrt(len(captions)))
    numbers = np.arange(len(captions))
    # The first row is the upper one.
    steps = np.column_stack([numbers % n_columns, -(numbers // n_columns)]) * pitch
    offsets = (steps @ facing).astype(np.float32)
    upper = middle + (0.5 + ABOVE / 4) * size[1] * facing[1]
    below = steps.min(axis=0) - size / 2
    above = steps.max(axis=0) + size / 2 + [0, ABOVE * size[1]]
    corners = middle + np.array([below, above]) @ facing
    box = corners
    if n_axes > 2:
        box = middle + np.array([[-0.5], [0.5]]) * float((above - below).max())
    return Panels(
        captions=tuple(captions),
        positions=upper + offsets,
        width=float(size[0]),
        offsets=offsets,
        corners=corners.astype(np.float32),
        box=np.broadcast_to(box, (2, n_axes)).astype(np.float32),
        facing=facing,
    )


def split_columns(dataset: Dataset) -> list[str]:
    """Return the columns of 2 to ``MAX_PANELS`` groups, by which a map can be split.

    Points without a value count as one group.
    """
    obs = dataset.obs
    return [
        name
        for name in dataset.level_columns
        if 2 <= count_levels(obs[name], MAX_PANELS) + obs[name].hasnans <= MAX_PANELS
    ]


def find_panel_groups(column: pd.Series) -> tuple[list[str], NDArray[np.intp]]:
    """Return the names of the groups in a column, and the group of each row, (n,).

    Rows without a value are the last group.
    """
    levels = to_levels(column).cat.remove_unused_categories().cat
    return [*map(str, levels.categories)], levels.codes.to_numpy().astype(np.intp)


def make_captions(names: list[str], codes: NDArray[np.intp]) -> list[tuple[str, str]]:
    """Return each group's name with its number of points.

    ``codes`` (n,): the group of each point that counts.
    """
    counts = np.bincount(codes, minlength=len(names))
    return [(name, f"{n:,}") for name, n in zip(names, counts.tolist(), strict=True)]


def split_by_column(
    snapshot: Snapshot, column: pd.Series, facing: FloatArray = STRAIGHT
) -> Layout:
    """Return a layout in which each group of a column has a panel of its own.

    ``snapshot``: of two or three dimensions. ``column``: names, or few integers. Points
    without a group are in the last panel.
    ``facing`` (2, 3) array: as in :func:`arrange_panels`.
    """
    names, codes = find_panel_groups(column)
    captions = make_captions(names, codes)
    panels = arrange_panels(snapshot.embedding, captions, facing)
    moved = replace(snapshot, embedding=snapshot.embedding + panels.offsets[codes])
    return Layout(moved, panels, codes)
