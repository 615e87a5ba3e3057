"""Compare which groups lie beside each other in tissue with chance.

Pairs of a cell and a neighbour are counted by their groups, and again after the labels
of the cells are permuted within each section, many times:

    z = (count - mean) / standard deviation of the permutations
    p = (1 + permutations at least as far from the mean) / (1 + permutations)

with p of both sides, adjusted over all pairs of groups by Benjamini and Hochberg.  z is
that of squidpy's ``nhood_enrichment``, which permutes over all sections at once.

Permutations say whether labels are placed at random among the places of these cells.
They do not say that a pair of groups seeks each other: cells of one section are no
independent samples, and whatever shapes the tissue makes z large.  Whether conditions
differ is a question of samples, not of cells (:mod:`shares`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_embedding_game.core.errors import InputError, check_integer
from napari_embedding_game.core.inspect.sample_comparison import adjust_p_values
from napari_embedding_game.core.loop_cache import njit
from napari_embedding_game.core.threads import LOOP, run_blocks

PERMUTATIONS = 1_000


@dataclass(frozen=True, slots=True, eq=False)
class Neighborhoods:
    """Counts of pairs of groups in tissue, against permuted labels; arrays (F, G).

    Rows are the groups of the cells around which is counted, columns the groups of
    their neighbours.
    """

    counts: NDArray[np.int64]
    expected: NDArray[np.float64]
    """Mean count of the permutations."""
    z: NDArray[np.float64]
    """NaN where the count is the same in all permutations."""
    p: NDArray[np.float64]
    """Two-sided; NaN as z."""
    p_adjusted: NDArray[np.float64]
    n_permutations: int

    @property
    def ratio(self) -> NDArray[np.float64]:
        """Observed over expected count; NaN where none is expected."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(self.expected > 0, self.counts / self.expected, np.nan)

    def to_frame(self, sources: list[str], names: list[str]) -> pd.DataFrame:
        """Return a row for each pair of groups: both names and all figures.

        ``sources`` (F,) and ``names`` (G,): of the rows and the columns.
        """
        parts = ["counts", "expected", "ratio", "z", "p", "p_adjusted"]
        return pd.DataFrame(
            {
                "around": np.repeat(sources, len(names)),
                "neighbor": np.tile(names, len(sources)),
                **{part: getattr(self, part).ravel() for part in parts},
            }
        )


def compare_neighborhoods(
    neighbors: NDArray[np.integer],
    groups: NDArray[np.integer],
    sections: NDArray[np.integer] | None = None,
    *,
    around: NDArray[np.bool_] | None = None,
    n_permutations: int = PERMUTATIONS,
    random_state: int = 0,
) -> Neighborhoods:
    """Count the groups around each group in tissue, and compare the counts with chance.

    The result does not depend on the number of threads.

    Parameters
    ----------
    neighbors
        (N, k) neighbours of each cell, -1 for none: of
        :func:`~.tissue.find_tissue_neighbors`.
    groups
        (N,) group of each cell from 0, negative for none.  Cells without a group or
        without a neighbour take no part.
    sections
        (N,) number of each cell's section; None for one section.
    around
        (N,) True for cells around which is counted, in a single row (1, G).  They keep
        their labels and are not counted as neighbours.  None counts around each group.
    n_permutations
        Number of permutations; p is at least 1 / (1 + n_permutations).
    random_state
        Seed of the permutations.

    Raises
    ------
    InputError
        Fewer than 2 groups, no pair of neighbours, or a number out of range.
    """
    check_integer("n_permutations", n_permutations, 2)
    takes_part = (groups >= 0) & (neighbors[:, 0] >= 0)
    placed = takes_part if around is None else takes_part & ~around
    n_groups = len(np.unique(groups[placed]))
    if n_groups < 2:
        raise InputError(
            "Neighbourhoods need cells of two groups or more that have neighbours in "
            f"tissue: here are {n_groups}."
        )
    sources = np.flatnonzero(takes_part if around is None else takes_part & around)
    targets = neighbors[sources]
    is_pair = (targets >= 0) & placed[targets]
    pairs = np.column_stack([np.repeat(sources, is_pair.sum(axis=1)), targets[is_pair]])
    if not len(pairs):
        raise InputError("No other cells lie around these cells in tissue.")
    codes = np.zeros(len(groups), np.int64) if sections is None else sections
    order = np.flatnonzero(placed)
    order = order[np.argsort(codes[order], kind="stable")].astype(np.int64)
    bounds = np.flatnonzero(np.diff(codes[order], prepend=np.nan)).astype(np.int64)
    bounds = np.append(bounds, len(order))
    labels, size = groups.astype(np.int64), int(groups.max()) + 1
    shape = 1 if around is not None else size, size
    counts = np.zeros((n_permutations + 1, *shape), np.int64)
    seeds = np.random.SeedSequence(random_state).generate_state(len(counts))
    given = pairs.astype(np.int32), labels, order, bounds, seeds, counts
    run_blocks(_count_permuted_pairs, len(counts), len(counts) * len(pairs), *given)
    observed, permuted = counts[0], counts[1:]
    mean, spread = permuted.mean(axis=0), permuted.std(axis=0)
    far = np.abs(permuted - mean) >= np.abs(observed - mean)
    varies = spread > 0
    z = np.full(shape, np.nan)
    np.divide(observed - mean, spread, out=z, where=varies)
    p = np.where(varies, (1 + far.sum(axis=0)) / (1 + n_permutations), np.nan)
    adjusted = p.copy()
    if varies.any():
        adjusted[varies] = adjust_p_values(p[varies])
    return Neighborhoods(observed, mean, z, p, adjusted, n_permutations)


@njit(**LOOP)
def _count_permuted_pairs(begin, end, pairs, labels, order, bounds, seeds, counts):
    """Write the counts of permutations begin to end; number 0 is not permuted.

    ``pairs`` (M, 2): a cell and its neighbour.  ``order`` (n,): the cells whose labels
    are permuted, those of section s from ``bounds[s]`` to ``bounds[s + 1]``.
    ``counts`` (P + 1, F, G): of a single row F the cells' own groups do not matter.
    """
    is_single = counts.shape[1] == 1
    for number in range(begin, end):
        mixed = labels.copy()
        state = np.uint64(seeds[number]) | np.uint64(1) << np.uint64(32)
        for s in range(len(bounds) - 1 if number else 0):
            for at in range(bounds[s + 1] - 1, bounds[s], -1):
                # Marsaglia's xorshift, whose bits are the same on any machine.
                state ^= state << np.uint64(13)
                state ^= state >> np.uint64(7)
                state ^= state << np.uint64(17)
                span = np.uint64(at - bounds[s] + 1)
                other = bounds[s] + np.int64((state >> np.uint64(11)) % span)
                i, j = order[at], order[other]
                mixed[i], mixed[j] = mixed[j], mixed[i]
        for m in range(len(pairs)):
            row = 0 if is_single else mixed[pairs[m, 0]]
            counts[number, row, mixed[pairs[m, 1]]] += 1
