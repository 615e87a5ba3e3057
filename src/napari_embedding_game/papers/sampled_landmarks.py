"""Approximate the repulsion by sampled points as landmarks (paper 1, Eq. 9).

The sum over all pairs is approximated by N/L sum_i sum_(j in L points) k(|y_i - y_j|).
For a logarithmic aggregate the pairs i = j are subtracted, as with all pairs.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from napari_embedding_game.core.energy.objective import Objective, RepulsionField, Sums


class SampledLandmarks(Objective):
    """The objective of Eq. 9, in which L points, sampled once, are the landmarks."""

    @cached_property
    def sampled_points(self) -> Tensor:
        """Numbers of the points that are landmarks (L,), ascending.

        They are drawn once, at random by the objective's seed; all points if L is
        larger.
        """
        n = self.forces.edges.n_points
        rng = np.random.default_rng(self.random_state)
        sampled = rng.choice(n, size=min(self.n_landmarks, n), replace=False)
        return torch.as_tensor(np.sort(sampled), device=self.forces.device)

    def compute_sums(self, points: Tensor, landmarks: Tensor) -> Sums:
        """Return the repulsive sum with its gradients, and the attraction's gradient.

        ``landmarks`` (L, d) are copies of the sampled ``points`` (N, d), which are read
        instead; so the gradient of the landmarks is 0.
        """
        total, repulsion, pull = self.forces.kernel_sum_and_gradients(
            points, points.detach()[self.sampled_points]
        )
        repulsion.index_add_(0, self.sampled_points, pull)
        if self.aggregate == "log":
            total = total - len(self.sampled_points) * self.kernel_at_zero
        weight = len(points) / len(self.sampled_points)
        attraction = self.forces.attraction_gradient(points)
        still = torch.zeros_like(landmarks)
        return Sums(attraction, weight * total, repulsion, weight, still)

    def update_landmarks(self, points: Tensor, landmarks: Tensor) -> None:
        """Move ``landmarks`` (L, d), in place, to the sampled points."""
        with torch.no_grad():
            landmarks.copy_(points[self.sampled_points])

    def repulsion_field(self, points: Tensor, landmarks: Tensor) -> RepulsionField:
        """Return the repulsion field of all ``points``, the mean over drawn samples."""
        return self._make_field(points, 1.0, points, landmarks, share=1.0)
