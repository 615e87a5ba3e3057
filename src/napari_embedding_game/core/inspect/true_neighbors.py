"""Correct the surroundings of chosen points on the map by their neighbours in the data.

Who belongs there is drawn in, and who does not steps out; all others stay.  After Jeon
et al., "Distortion-aware brushing ..." (2022), in one step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

BELONGS = 0.5
"""Share of a point's neighbours in the data that are chosen, for it to be drawn in."""
STRANGE = 0.2
"""And below which it is a stranger among them."""
AROUND = 10
"""Neighbours on the map, most of which are chosen where a point lies inside."""
RIM = 0.95
"""Share of the chosen points that the circle around them holds."""
GAP = 1.25
"""Where strangers step to, in radii of that circle: to twice that at most."""


@dataclass(frozen=True, eq=False)
class Correction:
    """A layout with the surroundings of chosen points put right."""

    embedding: NDArray[np.float32]
    """(N, d) places; those of all other points are as they were, to the bit."""
    drawn_in: NDArray[np.intp]
    """Points whose neighbours in the data are chosen, and which lay elsewhere."""
    stepped_out: NDArray[np.intp]
    """Points whose neighbours in the data are not chosen, and which lay inside."""


def correct(
    embedding: NDArray[np.float32],
    neighbors: NDArray[np.integer],
    chosen: NDArray[np.bool_],
) -> Correction:
    """Draw in the true neighbours of chosen points, and let strangers step out.

    Parameters
    ----------
    embedding : (N, d) array
        The map; it is not changed.
    neighbors : (N, k) int array
        Nearest rows of each point in the data, -1 for none.
    chosen : (N,) bool array
    """
    is_there = neighbors >= 0
    n_there = is_there.sum(axis=1)
    n_chosen = (chosen[neighbors] & is_there).sum(axis=1)
    is_inside = chosen | _lies_among(embedding, chosen)
    is_missing = (n_chosen >= BELONGS * n_there) & ~is_inside & (n_there > 0)
    drawn_in = np.flatnonzero(is_missing)
    stepped_out = np.flatnonzero((n_chosen < STRANGE * n_there) & is_inside)
    kept = chosen.copy()
    kept[stepped_out] = False
    if chosen.all() or not kept.any():  # there is nothing to be right about
        none = np.zeros(0, np.intp)
        return Correction(embedding, none, none)

    def mean_places(rows: NDArray[np.intp], counted: NDArray[np.bool_]) -> Any:
        """Return the mean place of those neighbours that count, or the own one."""
        near, here = neighbors[rows], embedding[rows]
        counts = is_there[rows] & counted[near]
        summed = (embedding[near] * counts[..., None]).sum(axis=1, dtype=float)
        n = counts.sum(axis=1)[:, None]
        return np.where(n > 0, summed / np.maximum(n, 1), here)

    corrected = embedding.copy()
    corrected[drawn_in] = mean_places(drawn_in, kept)
    middle = np.median(embedding[kept], axis=0)
    radius = np.quantile(np.linalg.norm(embedding[kept] - middle, axis=1), RIM)
    way = mean_places(stepped_out, ~chosen) - middle
    length = np.maximum(np.linalg.norm(way, axis=1, keepdims=True), 1e-12)
    # Who belongs nearer than the rim steps to the rim, and nobody farther than home.
    reach = np.clip(length, GAP * radius, 2 * GAP * radius)
    corrected[stepped_out] = middle + way / length * reach
    return Correction(corrected, drawn_in, stepped_out)


def _lies_among(
    embedding: NDArray[np.float32], chosen: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Return whether most of each point's neighbours on the map are chosen."""
    among = np.zeros(len(embedding), bool)
    if not chosen.any():
        return among
    low, high = embedding[chosen].min(axis=0), embedding[chosen].max(axis=0)
    is_within = np.all((embedding >= low) & (embedding <= high), axis=1)
    rows = np.flatnonzero(is_within & ~chosen)
    if len(rows):
        from napari_embedding_game.core.inspect.compare import nearest_on_map

        near = nearest_on_map(embedding, rows, min(AROUND, len(embedding) - 1))
        among[rows] = chosen[near].mean(axis=1) > 0.5
    return among
