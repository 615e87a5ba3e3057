"""Find the neighbours of cells in tissue, and the mean of the rows around each cell."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.loop_cache import njit
from napari_embedding_game.core.threads import LOOP, run_blocks

AROUND = 30
"""Number of cells around a cell whose mean describes the cell's surroundings."""


def find_tissue_neighbors(
    positions: NDArray[np.floating],
    sections: NDArray[np.integer] | None = None,
    k: int = AROUND,
    radius: float = np.inf,
) -> NDArray[np.int32]:
    """Return the ``k`` nearest rows of each row in its section, (N, k), nearest first.

    Places without a neighbour are -1 and last: of rows without a position, in sections
    of fewer than k + 1 rows, and where fewer are at most the ``radius`` away.  A row is
    not among its own neighbours; rows at the same position are neighbours.

    ``positions`` (N, 2 or 3): NaN for an unknown one, in units of ``radius``.
    ``sections`` (N,): a number of each row's section, negative for an unknown section,
    whose rows have no neighbours; None for one section.
    """
    if k < 1:
        raise InputError("Neighbours in tissue need a number k of at least 1.")
    if not radius > 0:
        raise InputError(f"Neighbours in tissue need a radius above 0, not {radius}.")
    codes = np.zeros(len(positions), int) if sections is None else sections
    is_known = np.isfinite(positions).all(axis=1) & (codes >= 0)
    neighbors = np.full((len(positions), k), -1, np.int32)
    bound = np.nextafter(radius, np.inf)  # the bound of a query is left out itself
    for section in np.unique(codes[is_known]):
        rows = np.flatnonzero(is_known & (codes == section))
        # Squares of float32 differences are exact in float64 on any processor.
        places = np.asarray(positions[rows], np.float64)
        found = (
            cKDTree(places)
            .query(
                places, min(k + 1, len(rows)), distance_upper_bound=bound, workers=-1
            )[1]
            .reshape(len(rows), -1)
        )
        is_other = (found != np.arange(len(rows))[:, None]) & (found < len(rows))
        # A row that is hidden by others at its position gives up its farthest one.
        order = np.argsort(~is_other, axis=1, kind="stable")[:, :k]
        is_other = np.take_along_axis(is_other, order, axis=1)
        found = np.take_along_axis(found, order, axis=1)
        found[is_other] = rows[found[is_other]]
        found[~is_other] = -1
        neighbors[rows, : found.shape[1]] = found
    return neighbors


def average_surroundings(
    rows: NDArray[np.float32],
    positions: NDArray[np.floating],
    sections: NDArray[np.integer] | None = None,
    k: int = AROUND,
) -> NDArray[np.float32]:
    """Return the mean of the ``k`` rows around each row in tissue, (N, D) float32.

    NaN for rows without a neighbour.  ``rows`` (N, D); ``positions`` and ``sections``
    as for :func:`find_tissue_neighbors`.
    """
    neighbors = find_tissue_neighbors(positions, sections, k)
    means = np.empty_like(rows)
    work = neighbors.size * rows.shape[1]
    run_blocks(_write_means, len(rows), work, rows, neighbors, means)
    return means


@njit(**LOOP)
def _write_means(begin, end, rows, neighbors, means):
    """Write the mean of each row's neighbours to ``means`` (N, D), rows begin to end.

    ``neighbors`` (N, k): -1 after the last neighbour.
    """
    total = np.empty(rows.shape[1])
    for i in range(begin, end):
        total[:] = 0
        count = 0
        while count < neighbors.shape[1] and neighbors[i, count] >= 0:
            total += rows[neighbors[i, count]]
            count += 1
        means[i] = total / count
