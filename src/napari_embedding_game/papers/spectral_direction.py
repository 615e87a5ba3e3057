"""Compute the spectral direction: descent by the Hessian of the attraction alone.

The attraction of EE and s-SNE is quadratic, with the Hessian 4 L+ in every coordinate,
where L+ is the Laplacian of paper 4's affinities w+.  :class:`Edges` hold W = 2 w+, so
that the Hessian is 2 L here.  The Hessian is constant: it is factored once, and a
direction costs two triangular solves (Vladymyrov & Carreira-Perpinan, ICML 2012).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.sparse.linalg import cg

from napari_embedding_game.core.graph.edges import Edges

Array = NDArray[np.float64]

_MIN_DEGREE = 1e-4
"""Added to the diagonal of the Laplacian, in mean degrees, to keep it invertible: the
smaller, the farther components of the graph are moved apart."""
_CG_STEPS = 15
_CG_TOLERANCE = 0.1


class SpectralDirection:
    """Descent directions for points, and for heights above the map.

    All weights of ``edges`` must be at least 0, or the Hessian is not positive.  The
    Hessian, a dense (N, N) matrix, is factored when the object is made.
    """

    def __init__(self, edges: Edges) -> None:
        weights = edges.to_csr_matrix().astype(np.float64)
        self.degrees: Array = np.asarray(weights.sum(axis=1)).ravel()
        """Sum of the weights of each point's edges, (N,)."""
        self._curvature = sparse.csr_matrix(2 * (sparse.diags(self.degrees) - weights))
        # Without any edges the direction is minus the gradient.
        self._floor = 2 * _MIN_DEGREE * float(self.degrees.mean()) or 1.0
        matrix = self._curvature + self._floor * sparse.eye(len(self.degrees))
        self._factor = linalg.cho_factor(
            matrix.toarray(), overwrite_a=True, check_finite=False
        )

    def __call__(self, gradient: NDArray[np.floating]) -> Array:
        """Return the descent direction (N, d) for a gradient (N, d)."""
        downhill = -gradient.astype(np.float64)
        solved = linalg.cho_solve(self._factor, downhill, check_finite=False)
        return np.asarray(solved)

    def solve_heights(
        self, gradient: NDArray[np.floating], free: NDArray[np.bool_], mu: float
    ) -> Array:
        """Return the descent direction of heights (N,), 0 for points that are not free.

        ``gradient`` (N,): of the heights; ``free`` (N,): pressured points.  The Hessian
        of attraction and penalty mu h^2 changes with ``free``, so that at most
        ``_CG_STEPS`` conjugate gradient steps are used, which give a descent direction
        however early they end.
        """
        direction = np.zeros(len(gradient))
        chosen = np.flatnonzero(free)
        if len(chosen):
            matrix = self._curvature[chosen][:, chosen]
            matrix = matrix + (2 * mu + self._floor) * sparse.eye(len(chosen))
            downhill = -gradient[chosen].astype(np.float64)
            scale = sparse.diags(1 / matrix.diagonal())
            direction[chosen], _ = cg(
                matrix, downhill, rtol=_CG_TOLERANCE, maxiter=_CG_STEPS, M=scale
            )
        return direction
