"""Random pairs of points, L partners for each, in a handful of numbers (Eq. 8).

The points are put in a random order, and L random shifts are drawn: the partners of
the point at place p are those at p + shift and p - shift, for every shift, round the
end.  So each point has 2 L partners, drawn by it or by the other, all different; to
store them takes a number a point and one a shift, and to go through them reads the
points in order.  For two points any distance round the order is as likely as any
other, and sums over such pairs are unbiased for the sum over all pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse


@dataclass(frozen=True, eq=False)
class SampledPairs:
    """Pairs of points that were drawn once.

    Attributes
    ----------
    order : (N,) int64
        The point at each place.
    shifts : (L,) int64
        Different numbers, 1 to N - 1.
    """

    order: NDArray[np.int64]
    shifts: NDArray[np.int64]

    @classmethod
    def draw(cls, n_points: int, n_partners: int, random_state: int) -> SampledPairs:
        """Draw ``n_partners`` partners for each point, at most all others."""
        rng = np.random.default_rng(random_state)
        order = rng.permutation(n_points)
        n_partners = min(n_partners, n_points - 1)
        shifts = 1 + rng.choice(n_points - 1, n_partners, replace=False)
        return cls(order, shifts)

    @cached_property
    def places(self) -> NDArray[np.int64]:
        """(N,): the place of each point."""
        places = np.empty_like(self.order)
        places[self.order] = np.arange(len(self.order))
        return places

    def partners(self, i: int) -> NDArray[np.int64]:
        """Return the (2 L,) partners of a point, one that is so twice there twice."""
        here = self.places[i]
        both = np.concatenate([here + self.shifts, here - self.shifts])
        partners: NDArray[np.int64] = self.order[both % len(self.order)]
        return partners

    def matrix(self) -> sparse.csr_matrix:
        """Return how often each pair was drawn, symmetric, (N, N)."""
        n = len(self.order)
        indices = np.concatenate([self.partners(i) for i in range(n)])
        indptr = np.arange(0, len(indices) + 1, 2 * len(self.shifts))
        ones = np.ones(len(indices))
        return sparse.csr_matrix((ones, indices, indptr), shape=(n, n))
