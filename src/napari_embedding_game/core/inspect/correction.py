"""Correct the surroundings of chosen points on the map by their neighbours in the data.

Neighbours in the data are moved in, strangers are moved out, all other points stay.
After Jeon et al., "Distortion-aware brushing ..." (2022), in a single step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

BELONGS, STRANGE = 0.5, 0.2
"""Share of chosen points among a point's neighbours in the data: from ``BELONGS`` on
the point is moved in, below ``STRANGE`` it is a stranger."""
AROUND = 10
"""Number of neighbours on the map by which a point lies inside: most are chosen."""
RIM, GAP = 0.95, 1.25
"""Share of the chosen points inside the circle around them, and the distance from its
centre that strangers are moved to, in its radii: ``GAP`` to twice ``GAP``."""


@dataclass(frozen=True, eq=False)
class Correction:
    """A layout with corrected surroundings of the chosen points."""

    embedding: NDArray[np.float32]
    """(N, d) positions; points that are not moved have the same bits as before."""
    moved_in: NDArray[np.intp]
    """Points that lay elsewhere and whose neighbours in the data are chosen."""
    moved_out: NDArray[np.intp]
    """Points that lay inside and whose neighbours in the data are not chosen."""


def correct_layout(
    embedding: NDArray[np.float32],
    neighbors: NDArray[np.integer],
    chosen: NDArray[np.bool_],
) -> Correction:
    """Return a layout with true neighbours moved in and strangers moved out.

    1. Points outside, at least half of whose neighbours in the data are chosen, move to
       the mean position of these chosen neighbours (less those that step 2 moves out).
    2. Points inside, less than a fifth of whose neighbours are chosen, move towards the
       mean of their neighbours that are not chosen, at least to beyond the rim of the
       chosen points and at most twice as far.

    Inside are the chosen points, and points most of whose nearest points on the map are
    chosen.  Points without neighbours stay.  Nothing moves where all points are chosen,
    or where all chosen points would move out.

    ``embedding`` (N, d): the map, not changed; ``neighbors`` (N, k): the nearest rows
    of each point in the data, -1 for no row; ``chosen`` (N,): the chosen points.
    """
    is_there = neighbors >= 0
    n_there = is_there.sum(axis=1)
    n_chosen = (chosen[neighbors] & is_there).sum(axis=1)
    is_inside = chosen | _find_points_inside(embedding, chosen)
    is_missing = (n_chosen >= BELONGS * n_there) & ~is_inside & (n_there > 0)
    moved_in = np.flatnonzero(is_missing)
    moved_out = np.flatnonzero((n_chosen < STRANGE * n_there) & is_inside)
    kept = chosen.copy()
    kept[moved_out] = False
    if chosen.all() or not kept.any():  # there is no inside or no outside
        return Correction(embedding, moved_in[:0], moved_out[:0])

    def neighbor_means(rows: NDArray[np.intp], counted: NDArray[np.bool_]) -> Any:
        """Return the mean position of each row's counted neighbours, (n, d).

        ``rows`` (n,): point numbers; ``counted`` (N,): points that count.  A row
        without counted neighbours gets its own position.
        """
        near, here = neighbors[rows], embedding[rows]
        counts = is_there[rows] & counted[near]
        sums = (embedding[near] * counts[..., None]).sum(axis=1, dtype=float)
        n = counts.sum(axis=1)[:, None]
        return np.where(n > 0, sums / np.maximum(n, 1), here)

    corrected = embedding.copy()
    corrected[moved_in] = neighbor_means(moved_in, kept)
    middle = np.median(embedding[kept], axis=0)
    radius = np.quantile(np.linalg.norm(embedding[kept] - middle, axis=1), RIM)
    offset = neighbor_means(moved_out, ~chosen) - middle
    length = np.maximum(np.linalg.norm(offset, axis=1, keepdims=True), 1e-12)
    # A point whose neighbours are nearer than the rim moves to the rim; where the
    # chosen points are on a single spot, it moves to its neighbours' mean.
    reach = np.clip(length, GAP * radius, 2 * GAP * radius) if radius else length
    corrected[moved_out] = middle + offset / length * reach
    return Correction(corrected, moved_in, moved_out)


def _find_points_inside(
    embedding: NDArray[np.float32], chosen: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Return whether most of the ``AROUND`` nearest points are chosen, (N,) bool.

    False for points that are chosen themselves, and for points outside the bounding box
    of the chosen points.
    """
    from napari_embedding_game.core.inspect.map_comparison import find_nearest_on_map

    among, ends = np.zeros(len(embedding), bool), embedding[chosen]
    low, high = ends.min(axis=0, initial=np.inf), ends.max(axis=0, initial=-np.inf)
    is_within = np.all((embedding >= low) & (embedding <= high), axis=1)
    rows = np.flatnonzero(is_within & ~chosen)
    if len(rows):
        near = find_nearest_on_map(embedding, rows, min(AROUND, len(embedding) - 1))
        among[rows] = chosen[near].mean(axis=1) > 0.5
    return among
