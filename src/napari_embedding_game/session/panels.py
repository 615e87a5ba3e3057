"""Panels: the same positions of the map drawn several times, in rows.

Those of maps in space stand in the plane of the canvas, whatever the camera sees: each
map is turned about its own middle, and none comes to lie in front of another.
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
"""Facing of a camera that looks straight at x and y."""
MAX_PANELS = 20


@dataclass(frozen=True, eq=False)
class Panels:
    """Panels in rows; the first is upper left, where the map itself lies."""

    captions: tuple[tuple[str, str], ...]
    """Name of each panel, and the text after it."""
    positions: NDArray[np.float64]
    """(m, d) position of these, above the middle of the upper edge."""
    width: float
    """Of a panel, without the gap, in units of the map."""
    offsets: NDArray[np.float32]
    """(m, d) from the map to each panel."""
    corners: NDArray[np.float32]
    """(2, d) lower left and upper right corner of all panels with their captions."""
    box: NDArray[np.float32]
    """(2, d) corners of what the scale of the map goes by.

    Of flat panels their corners.  In space a cube around the first one, as wide as
    all panels from whichever side they are seen: it is turned about its middle."""
    facing: NDArray[np.floating]
    """(2, d) steps of length 1 that go right and up."""


@dataclass(frozen=True, eq=False)
class Layout:
    """Where the points of a map are drawn."""

    snapshot: Snapshot
    panels: Panels | None = None
    """None where the map is whole."""
    panel_of_points: NDArray[np.intp] | None = None
    """(N,) panel of each point, where the groups of a column lie apart."""
    other: NDArray[np.float32] | None = None
    """(N, d) where the points of another map are drawn, next to the first."""

    @cached_property
    def positions(self) -> NDArray[np.float32]:
        """(m N, d) of m maps side by side: row ``i % N`` is drawn at place i."""
        base: NDArray[np.float32] = self.snapshot.embedding
        return base if self.other is None else np.concatenate([base, self.other])

    def is_arranged_as(self, previous: Layout | None) -> bool:
        """Return whether the same points lie in panels of the same names."""
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
    """Lay panels beside each other.

    ``points`` (n, d) array: what each of them has room for; in space, where they may be
    seen from any side, for the ball around these. ``captions`` sequence of (str, str):
    name of each panel, and what stands behind it. ``facing`` (2, 3) array: steps of
    length 1 that go right and up on the canvas, in units of the map.
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
    """Return the names of the columns that a map can be split by."""
    obs = dataset.obs
    return [
        name
        for name in dataset.level_columns
        if 2 <= count_levels(obs[name], MAX_PANELS) + obs[name].hasnans <= MAX_PANELS
    ]


def split_by_column(
    snapshot: Snapshot, column: pd.Series, facing: FloatArray = STRAIGHT
) -> Layout:
    """Move the groups of a column apart, each as it lies, in rows of panels.

    ``snapshot``: of two or three dimensions. ``column``: of names, or of few whole
    numbers. Points without a group have a panel of their own, the last one.
    ``facing`` (2, 3) array: as in :func:`arrange_panels`.
    """
    levels = to_levels(column).cat.remove_unused_categories().cat
    codes = levels.codes.to_numpy().astype(np.intp)
    pairs = zip(levels.categories, np.bincount(codes), strict=True)
    captions = [(str(name), f"{n:,}") for name, n in pairs]
    panels = arrange_panels(snapshot.embedding, captions, facing)
    moved = replace(snapshot, embedding=snapshot.embedding + panels.offsets[codes])
    return Layout(moved, panels, codes)
