"""Repulsion by a sample of the points (paper 1, Eq. 9).

The sum over all pairs is N/L sum_i sum_(j in L points) k(|y_i - y_j|); a logarithm is
taken of it without the pairs i = j, as of all pairs.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from napari_embedding_game.core.energy.objective import Field, Objective, Sums


class SampledLandmarks(Objective):
    """Eq. 9: L points, drawn once, are the landmarks and stay points."""

    @cached_property
    def members(self) -> Tensor:
        """(L,): the points that are landmarks, ascending."""
        n = self.forces.edges.n_points
        rng = np.random.default_rng(self.random_state)
        drawn = rng.choice(n, size=min(self.n_landmarks, n), replace=False)
        return torch.as_tensor(np.sort(drawn), device=self.forces.device)

    def sums(self, y: Tensor, z: Tensor) -> Sums:
        """Return the sum with its gradients, and the attraction's."""
        total, repulsion, pull = self.forces.repel(y, y.detach()[self.members])
        repulsion.index_add_(0, self.members, pull)
        if self.aggregate == "log":
            total = total - len(self.members) * self.at_zero
        weight, still = len(y) / len(self.members), torch.zeros_like(z)
        return Sums(self.forces.attract(y), weight * total, repulsion, weight, still)

    def follow(self, y: Tensor, z: Tensor) -> None:
        """Put the landmarks onto their points."""
        with torch.no_grad():
            z.copy_(y[self.members])

    def field(self, y: Tensor, z: Tensor) -> Field:
        """Return what pushes a point that is no landmark, on average of the draws."""
        return self._field(y, 1.0, y, z, share=1.0)
