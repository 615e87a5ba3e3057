"""Approximate the repulsion by sampled points as landmarks (paper 1, Eq. 9).

The sum over all pairs is approximated by N/L sum_i sum_(j in L points) k(|y_i - y_j|).
For a logarithmic aggregate the pairs i = j are subtracted, as with all pairs.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from napari_embedding_game.core.energy.objective import Field, Objective, Sums


class SampledLandmarks(Objective):
    """The objective of Eq. 9, in which L points, sampled once, are the landmarks."""

    @cached_property
    def sampled_points(self) -> Tensor:
        """Numbers of the points that are landmarks (L,), ascending."""
        n = self.forces.edges.n_points
        rng = np.random.default_rng(self.random_state)
        sampled = rng.choice(n, size=min(self.n_landmarks, n), replace=False)
        return torch.as_tensor(np.sort(sampled), device=self.forces.device)

    def sums(self, y: Tensor, z: Tensor) -> Sums:
        """Return the repulsive sum with its gradients, and the attraction's gradient.

        ``y`` (N, d): points; ``z`` (L, d): landmarks, which copy their points.
        """
        total, repulsion, pull = self.forces.repel(y, y.detach()[self.sampled_points])
        repulsion.index_add_(0, self.sampled_points, pull)
        if self.aggregate == "log":
            total = total - len(self.sampled_points) * self.at_zero
        weight, still = len(y) / len(self.sampled_points), torch.zeros_like(z)
        return Sums(self.forces.attract(y), weight * total, repulsion, weight, still)

    def follow(self, y: Tensor, z: Tensor) -> None:
        """Move the landmarks ``z`` (L, d), in place, to their points."""
        with torch.no_grad():
            z.copy_(y[self.sampled_points])

    def field(self, y: Tensor, z: Tensor) -> Field:
        """Return the repulsion of a point that is no landmark, as a mean of samples."""
        return self._field(y, 1.0, y, z, share=1.0)
