"""Correct the surroundings of chosen points on the map by their neighbours in the data.

A map tears some neighbours apart and lays strangers beside one another.  Around what is
chosen both can be put right for a look: who belongs there is drawn in, and who does not
steps out of it; all others stay.  After Jeon et al., "Distortion-aware brushing for
interactive cluster analysis in multidimensional projections" (2022), which moves points
while one paints; here the set is chosen already, so that it takes one step.
"""

from __future__ import annotations

from dataclasses import dataclass

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
"""Where strangers step to, in radii of that circle."""


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
    none = np.zeros(0, np.intp)
    if not chosen.any() or chosen.all():
        return Correction(embedding, none, none)
    share = shares(neighbors, chosen)
    is_inside = chosen | _lies_among(embedding, chosen)
    drawn_in = np.flatnonzero((share >= BELONGS) & ~is_inside)
    stepped_out = np.flatnonzero((share < STRANGE) & is_inside & _has_any(neighbors))
    kept = chosen.copy()
    kept[stepped_out] = False
    if not kept.any():  # strangers to one another: there is nothing to be right about
        return Correction(embedding, none, none)
    corrected = embedding.copy()
    corrected[drawn_in] = mean_places(embedding, neighbors, drawn_in, kept)
    home = mean_places(embedding, neighbors, stepped_out, ~chosen)
    middle = np.median(embedding[kept], axis=0)
    radius = float(np.quantile(_lengths(embedding[kept] - middle), RIM))
    way = home - middle
    length = np.maximum(_lengths(way), 1e-12)[:, None]
    # Who belongs nearer than the rim steps to the rim, and nobody farther than home.
    reach = np.maximum(GAP * radius, np.minimum(length, 2 * GAP * radius))
    corrected[stepped_out] = middle + way / length * reach
    return Correction(corrected, drawn_in, stepped_out)


def shares(
    neighbors: NDArray[np.integer], chosen: NDArray[np.bool_]
) -> NDArray[np.floating]:
    """Return the share of each point's neighbours in the data that are chosen."""
    is_there = neighbors >= 0
    hits = (chosen[neighbors] & is_there).sum(axis=1)
    share: NDArray[np.floating] = hits / np.maximum(is_there.sum(axis=1), 1)
    return share


def _lies_among(
    embedding: NDArray[np.float32], chosen: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Return whether most of each point's neighbours on the map are chosen."""
    low, high = embedding[chosen].min(axis=0), embedding[chosen].max(axis=0)
    is_within = np.all((embedding >= low) & (embedding <= high), axis=1)
    rows = np.flatnonzero(is_within & ~chosen)
    among = np.zeros(len(embedding), bool)
    if len(rows):
        k = min(AROUND + 1, len(embedding))
        from scipy.spatial import cKDTree  # not with the window

        near = cKDTree(embedding).query(embedding[rows], k)[1][:, 1:]
        among[rows] = chosen[near].mean(axis=1) > 0.5
    return among


def _has_any(neighbors: NDArray[np.integer]) -> NDArray[np.bool_]:
    return np.asarray((neighbors >= 0).any(axis=1))


def mean_places(
    embedding: NDArray[np.float32],
    neighbors: NDArray[np.integer],
    rows: NDArray[np.intp],
    counted: NDArray[np.bool_],
) -> NDArray[np.floating]:
    """Return the mean place of those neighbours that count: (m, d).

    A point without any stays where it is.
    """
    near = neighbors[rows]
    counts = (near >= 0) & counted[near]
    summed = (embedding[near] * counts[..., None]).sum(axis=1, dtype=float)
    n = counts.sum(axis=1)[:, None]
    means: NDArray[np.floating] = np.where(
        n > 0, summed / np.maximum(n, 1), embedding[rows]
    )
    return means


def _lengths(vectors: NDArray[np.floating]) -> NDArray[np.floating]:
    lengths: NDArray[np.floating] = np.linalg.norm(vectors, axis=1)
    return lengths
