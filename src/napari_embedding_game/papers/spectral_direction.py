"""The spectral direction: downhill by the curvature of the attraction alone.

The attraction of EE and s-SNE is quadratic, with the Hessian 4 L+ in every
coordinate, L+ being the Laplacian of paper 4's affinities w+.  :class:`Edges`
hold W = 2 w+, so here it is 2 L.  It never changes: it is factored once, and a
direction costs two triangular solves (Vladymyrov & Carreira-Perpinan, ICML
2012).  For other attractions it is their Hessian where all points meet, from
which they only flatten.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.linalg import get_blas_funcs, lapack
from scipy.sparse.linalg import cg, splu

from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.graph.edges import Edges

Array = NDArray[np.float64]

_DENSE = 0.25
"""Share of entries from which the Laplacian is factored as a full matrix."""
_CROWDED = 30
"""Entries of a row from which the factor of a neighbour graph fills up so far that a
full one is found sooner: 2.7 s instead of 17 s for 5,000 digits of MNIST with
entropic edges."""
_MOST_FULL = 10_000
"""Largest full factor: 0.8 GB."""
_SMALLEST = 1e-4
"""What keeps the Laplacian invertible, in mean degrees.

Parts of the graph that no edge joins have no curvature of their own: the
smaller this is, the further they are thrown.
"""
_CG_STEPS = 15
_CG_TOLERANCE = 0.1


class SpectralDirection:
    """Directions for points, and for heights out of their map.

    Parameters
    ----------
    edges : Edges
        Those that attract.
    invert : bool, default: False
        Find the whole inverse, in the type of the weights, instead of a factor.
        For 5,000 points that takes 5 s instead of 1.5 s, and then 9 ms a direction
        instead of 34 ms: for many runs over the same edges.

    Attributes
    ----------
    degrees : (N,) float64
        Sum of the weights of each point's edges.

    Raises
    ------
    InputError
        Some edges push, so that the curvature is not positive.
    """

    def __init__(self, edges: Edges, invert: bool = False) -> None:
        weights = edges.matrix().astype(np.float64)
        if weights.nnz and weights.data.min() < 0:
            raise InputError(
                "The spectral direction needs edges that only pull, and some of "
                "these push: choose lbfgs."
            )
        self.degrees: Array = np.asarray(weights.sum(axis=1)).ravel()
        self._curvature = sparse.csr_matrix(2 * (sparse.diags(self.degrees) - weights))
        # Where there are no edges at all, the gradient itself is the direction.
        floor = 2 * _SMALLEST * float(self.degrees.mean()) or 1.0
        self._floor = floor
        matrix = self._curvature + floor * sparse.eye(len(self.degrees))
        self._solve: Callable[[Array], Array]
        if invert:
            self._solve = _inverted(matrix, edges.weights.dtype)
        else:
            self._solve = _factored(matrix)

    def __call__(self, gradient: NDArray[np.floating]) -> Array:
        """Return the (N, d) direction for an (N, d) gradient, which leads downhill."""
        return -self._solve(gradient.astype(np.float64))

    def of_heights(
        self, gradient: NDArray[np.floating], free: NDArray[np.bool_], mu: float
    ) -> Array:
        """Return the (N,) direction of heights of which only the ``free`` may move.

        Their Hessian, of the attraction and of the penalty mu h^2, changes with
        ``free``; so it is not factored but followed for a few conjugate
        gradients, which lead downhill however early they end.
        """
        direction = np.zeros(len(gradient))
        chosen = np.flatnonzero(free)
        if len(chosen):
            matrix = self._curvature[chosen][:, chosen]
            matrix = matrix + (2 * mu + self._floor) * sparse.eye(len(chosen))
            wanted = -gradient[chosen].astype(np.float64)
            scale = sparse.diags(1 / matrix.diagonal())
            solution, _ = cg(
                matrix, wanted, rtol=_CG_TOLERANCE, maxiter=_CG_STEPS, M=scale
            )
            direction[chosen] = solution
        return direction


def _factored(matrix: sparse.spmatrix) -> Callable[[Array], Array]:
    """Return what solves ``matrix`` x = b; symmetric and positive definite."""
    n = matrix.shape[0]
    if matrix.nnz > _DENSE * n * n:
        # One product is far quicker than two triangular solves of few columns.
        return partial(np.matmul, linalg.inv(matrix.toarray()))
    if n <= _MOST_FULL and matrix.nnz > _CROWDED * n:
        return partial(linalg.cho_solve, _cholesky(matrix), check_finite=False)
    factors = splu(
        sparse.csc_matrix(matrix),
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
    return factors.solve  # type: ignore[no-any-return]


def _cholesky(matrix: sparse.spmatrix) -> tuple[Array, bool]:
    """Return the full factor in the lower half, as ``cho_solve`` takes it."""
    factor: tuple[Array, bool] = linalg.cho_factor(
        matrix.toarray(), lower=True, overwrite_a=True, check_finite=False
    )
    return factor


def _inverted(
    matrix: sparse.spmatrix, dtype: np.dtype[np.floating]
) -> Callable[[Array], Array]:
    """Return what multiplies with the inverse of ``matrix``, of which half is read."""
    multiply = get_blas_funcs("symv", dtype=dtype)
    factor, _ = _cholesky(matrix)
    inverse = np.asfortranarray(lapack.dpotri(factor, lower=1, overwrite_c=1)[0], dtype)

    def solve(b: Array) -> Array:
        columns = [
            multiply(1.0, inverse, np.asarray(column, dtype), lower=1) for column in b.T
        ]
        return np.column_stack(columns).astype(np.float64)

    return solve
