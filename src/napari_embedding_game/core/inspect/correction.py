"""Correct the surroundings of chosen points on the map by their neighbours in the data.

Neighbours in the data are drawn in, strangers step out; all other points stay.  After
Jeon et al., "Distortion-aware brushing ..." (2022), in one step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

BELONGS, STRANGE = 0.5, 0.2
"""Share of a point's neighbours in the data that are chosen, from which it is drawn in,
and below which it is a stranger among them."""
AROUND = 10
"""Neighbours on the map, most of which are chosen where a point lies inside."""
RIM, GAP = 0.95, 1.25
"""Share of the chosen points that the circle around them holds, and where strangers
step to, in its radii: to twice that at most."""


@dataclass(frozen=True, eq=False)
class Correction:
    """A layout with corrected surroundings of the chosen points."""

    embedding: NDArray[np.float32]
    """(N, d) positions; all other points are unchanged, to the bit."""
    drawn_in: NDArray[np.intp]
    """Points whose neighbours in the data are chosen, and which lay elsewhere."""
    stepped_out: NDArray[np.intp]
    """Points whose neighbours in the data are not chosen, and which lay inside."""


def correct(
    embedding: NDArray[np.float32],
    neighbors: NDArray[np.integer],
    chosen: NDArray[np.bool_],
) -> Correction:
    """Draw in the true neighbours of chosen points (N,), and let strangers step out.

    ``embedding`` (N, d): the map; it is not changed.  ``neighbors`` (N, k): the nearest
    rows of each point in the data, -1 for none.
    """
    is_there = neighbors >= 0
    n_there = is_there.sum(axis=1)
    n_chosen = (chosen[neighbors] & is_there).sum(axis=1)
    is_inside = chosen | _is_inside(embedding, chosen)
    is_missing = (n_chosen >= BELONGS * n_there) & ~is_inside & (n_there > 0)
    drawn_in = np.flatnonzero(is_missing)
    stepped_out = np.flatnonzero((n_chosen < STRANGE * n_there) & is_inside)
    kept = chosen.copy()
    kept[stepped_out] = False
    if chosen.all() or not kept.any():  # there is nothing to be right about
        return Correction(embedding, drawn_in[:0], stepped_out[:0])

    def neighbor_means(rows: NDArray[np.intp], counted: NDArray[np.bool_]) -> Any:
        """Return the mean position of the counted neighbours, else the row's."""
        near, here = neighbors[rows], embedding[rows]
        counts = is_there[rows] & counted[near]
        summed = (embedding[near] * counts[..., None]).sum(axis=1, dtype=float)
        n = counts.sum(axis=1)[:, None]
        return np.where(n > 0, summed / np.maximum(n, 1), here)

    corrected = embedding.copy()
    corrected[drawn_in] = neighbor_means(drawn_in, kept)
    middle = np.median(embedding[kept], axis=0)
    radius = np.quantile(np.linalg.norm(embedding[kept] - middle, axis=1), RIM)
    offset = neighbor_means(stepped_out, ~chosen) - middle
    length = np.maximum(np.linalg.norm(offset, axis=1, keepdims=True), 1e-12)
    # Who belongs nearer than the rim steps to the rim; where all are on one spot, home.
    reach = np.clip(length, GAP * radius, 2 * GAP * radius) if radius else length
    corrected[stepped_out] = middle + offset / length * reach
    return Correction(corrected, drawn_in, stepped_out)


def _is_inside(
    embedding: NDArray[np.float32], chosen: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Return whether most of each point's neighbours on the map are chosen."""
    from napari_embedding_game.core.inspect.compare import nearest_on_map

    among, ends = np.zeros(len(embedding), bool), embedding[chosen]
    low, high = ends.min(axis=0, initial=np.inf), ends.max(axis=0, initial=-np.inf)
    is_within = np.all((embedding >= low) & (embedding <= high), axis=1)
    rows = np.flatnonzero(is_within & ~chosen)
    if len(rows):
        near = nearest_on_map(embedding, rows, min(AROUND, len(embedding) - 1))
        among[rows] = chosen[near].mean(axis=1) > 0.5
    return among
