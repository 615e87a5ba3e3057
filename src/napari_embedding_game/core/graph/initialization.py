"""Where the points stand when the game begins.

``spectral`` is the paper's start: a Laplacian eigenmap by power iterations,
each dimension scaled to unit variance.  A neighbour graph of real data often
falls into several components, on which the plain iteration would put every
component on one spot: here each component gets an eigenmap of its own, all of
them in the same products, and the components are set side by side.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.graph.affinities import Edges
from napari_embedding_game.core.graph.power_loops import components, power_step
from napari_embedding_game.core.graph.starts import classical_layout, start_names
from napari_embedding_game.core.threads import run_blocks

POWER_ITERATIONS = 100
"""As in the paper."""
_AT_ONCE = 1 << 14
"""Rows that are scaled together."""
_ORTHONORMALIZE_EVERY = 5
"""Iterations in between change no span, and cost half of the time with it."""
_LOWEST_ITERATIONS = 30
_MARGIN = 1.1
"""To find the lowest eigenvalue of edges that push, and not to fall short of it."""
_JITTER = 1e-3
"""Width of the noise that parts points which start on the same spot."""
_MOST_PRODUCTS = 1e9
"""Products of numbers up to which all singular vectors are worked out."""
_NO_WIDTH = 1e-12
"""Width, relative to the largest value, below which there is only rounding."""


def start_layout(
    edges: Edges,
    X: Any,
    n_components: int = 2,
    init: str = "spectral",
    random_state: int = 0,
    n_neighbors: int = 15,
    n_jobs: int | None = None,
) -> NDArray[np.float32]:
    """Return the start layout, (N, d) float32, every dimension of unit variance.

    Parameters
    ----------
    edges : Edges
        Neighbour edges, used by ``spectral``.
    X : (N, D) array or sparse matrix
        The input, used by all but ``random``; ``spectral`` sets components side by
        side with it.
    n_components : int
        d.
    init : str
        "spectral", "random" or a name of :data:`starts.STARTS`.
    random_state : int
        The same seed gives the same layout.
    n_neighbors : int
        Of the classical starts that have a neighbour graph of their own.
    n_jobs : int, optional
        Threads of ``spectral``, which change no bit.

    Raises
    ------
    InputError
        ``init`` is not a known start or not for these rows, or ``n_components``
        not 1, 2 or 3.
    """
    check_dimensions(n_components)
    rng = np.random.default_rng(random_state)
    if init == "spectral":
        layout = _spectral(edges, X, n_components, rng, n_jobs)
    elif init == "random":
        layout = rng.normal(size=(edges.n_points, n_components))
    elif init in start_names():
        layout = _classical(init, X, n_components, n_neighbors, random_state)
    else:
        raise InputError(
            f"The start must be one of {', '.join(start_names())}, not {init!r}."
        )
    layout = _unit_variance(layout)
    layout += _JITTER * rng.normal(size=layout.shape)
    return _unit_variance(layout).astype(np.float32)


def check_dimensions(n_components: int) -> None:
    """Raise InputError unless a map can have so many dimensions."""
    if n_components not in (1, 2, 3):
        raise InputError(f"A map has 1, 2 or 3 dimensions, not {n_components}.")


def _unit_variance(layout: NDArray[Any]) -> NDArray[np.float64]:
    least = _NO_WIDTH * np.abs(layout).max()
    layout = layout - layout.mean(axis=0)
    spread = layout.std(axis=0)
    scaled = np.zeros_like(layout)
    np.divide(layout, spread, out=scaled, where=spread > least)
    return scaled


def _classical(
    init: str, X: Any, n_components: int, n_neighbors: int, random_state: int
) -> NDArray[np.float64]:
    layout = classical_layout(
        init,
        X,
        n_components,
        n_neighbors=min(n_neighbors, X.shape[0] - 1),
        random_state=random_state,
    )
    return layout.astype(np.float64)


def _spectral(
    edges: Edges,
    X: Any,
    n_components: int,
    rng: np.random.Generator,
    n_jobs: int | None,
) -> NDArray[np.float64]:
    matrix = edges.matrix()
    n_parts, part = components(matrix.indptr, matrix.indices)
    layout = _eigenmaps(matrix, _Parts(part, n_parts), n_components, rng, n_jobs)
    if n_parts == 1:
        return layout
    return side_by_side(layout, part, n_parts, X, n_components)


class _Parts:
    """Sums over the points of each component, and back."""

    def __init__(self, part: NDArray[Any], n_parts: int) -> None:
        self.part = part
        self.n_parts = n_parts

    def sums(self, values: NDArray[Any]) -> NDArray[np.float64]:
        sums = np.bincount(self.part, values, self.n_parts)
        return np.asarray(sums, dtype=np.float64)

    def remove(self, vector: NDArray[Any], direction: NDArray[Any]) -> None:
        """Take from ``vector`` its share of ``direction``, in every component."""
        length = self.sums(direction * direction)
        share = self.sums(vector * direction) / np.maximum(length, 1e-300)
        vector -= share[self.part] * direction

    def normalize(self, vector: NDArray[Any]) -> None:
        """Scale ``vector`` to mean square 1 in every component; 0 stays 0."""
        size = np.bincount(self.part, minlength=self.n_parts)
        scale = np.sqrt(self.sums(vector * vector) / size)
        vector /= np.where(scale > 1e-12, scale, np.inf)[self.part]


def _eigenmaps(
    matrix: sparse.csr_matrix,
    parts: _Parts,
    n_components: int,
    rng: np.random.Generator,
    n_jobs: int | None = None,
) -> NDArray[np.float64]:
    """Iterate (s + M) / (s + 1) with M = D^-1/2 W D^-1/2, in every component at once.

    The shift s, mostly 1, makes the largest eigenvalues those of the smoothest vectors.
    """
    root = np.sqrt(np.asarray(matrix.sum(axis=1)).ravel())
    inverse = np.divide(1.0, root, out=np.zeros_like(root), where=root > 0)
    walk = _scaled(matrix, inverse.astype(np.float32))
    vectors = rng.normal(size=(len(root), n_components)).astype(np.float32)
    shift = _shift(walk, rng)
    own, of_others = np.float32(shift / (shift + 1)), np.float32(1 / (shift + 1))
    moved = np.empty_like(vectors)
    work = walk.nnz * n_components
    for iteration in range(1, POWER_ITERATIONS + 1):
        run_blocks(
            power_step, len(root), work, n_jobs, walk.indptr, walk.indices, walk.data,
            vectors, own, of_others, moved,
        )  # fmt: skip
        vectors, moved = moved, vectors
        if iteration % _ORTHONORMALIZE_EVERY == 0:
            _orthonormalize(vectors, root, parts)
    layout: NDArray[np.float64] = vectors * inverse[:, None]
    return layout


def _scaled(matrix: sparse.csr_matrix, scale: NDArray[np.float32]) -> sparse.csr_matrix:
    """Return D M D for a diagonal D (n,).

    scipy's product of sparse matrices keeps all other threads waiting: of a million
    rows for half a second and more.
    """
    indptr, indices = matrix.indptr, matrix.indices
    values = np.empty(len(indices), np.result_type(matrix.data, scale))
    for begin in range(0, len(scale), _AT_ONCE):
        rows = slice(begin, begin + _AT_ONCE)
        part = slice(indptr[begin], indptr[min(begin + _AT_ONCE, len(scale))])
        lengths = np.diff(indptr[begin : begin + _AT_ONCE + 1])
        np.multiply(np.repeat(scale[rows], lengths), matrix.data[part], values[part])
        values[part] *= scale.take(indices[part])
    return sparse.csr_matrix((values, indices, indptr), shape=matrix.shape)


def _shift(walk: sparse.csr_matrix, rng: np.random.Generator) -> float:
    """Return the shift after which no rough vector grows more than the smoothest.

    Eigenvalues are at most 1.  They are at least -1 where all edges pull; where some
    push, the lowest may be far below.  It is found by power iterations.
    """
    if walk.nnz == 0 or walk.data.min() >= 0:
        return 1.0
    vector = rng.normal(size=walk.shape[0]).astype(np.float32)
    size = 0.0
    for _ in range(_LOWEST_ITERATIONS):
        vector = walk @ (vector / np.linalg.norm(vector))
        size = float(np.linalg.norm(vector))
    return max(1.0, (_MARGIN * size - 1) / 2)


def _orthonormalize(
    vectors: NDArray[Any], trivial: NDArray[Any], parts: _Parts
) -> None:
    for k in range(vectors.shape[1]):
        column = vectors[:, k].astype(np.float64)
        parts.remove(column, trivial)
        for earlier in range(k):
            parts.remove(column, vectors[:, earlier].astype(np.float64))
        parts.normalize(column)
        vectors[:, k] = column


def _longest_directions(
    rows: NDArray[np.float64], n_components: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return left singular vectors and singular values, the largest first.

    All of them where that takes less than about a second, and of larger rows those of
    ``n_components`` directions, by random projection (Halko, Martinsson and Tropp,
    2011): 5,000 components in 2,000 dimensions take 1 s instead of 20 s.
    """
    if rows.size * min(rows.shape) <= _MOST_PRODUCTS:
        left, singular, _ = np.linalg.svd(rows, full_matrices=False)
    else:
        from sklearn.utils.extmath import randomized_svd

        left, singular, _ = randomized_svd(rows, n_components, random_state=0)
    return left, singular


def side_by_side(
    layout: NDArray[np.float64],
    part: NDArray[Any],
    n_parts: int,
    X: Any,
    n_components: int,
) -> NDArray[np.float64]:
    """Give every component an area in proportion to its points, and a place.

    The places are the principal components of the components' mean inputs, so
    that what is alike in the data starts side by side.
    """
    size = np.bincount(part, minlength=n_parts)
    members = sparse.csr_matrix((1.0 / size[part], (part, np.arange(len(part)))))
    means = members @ X
    means = np.asarray(means.todense() if sparse.issparse(means) else means)
    centred = means - np.average(means, axis=0, weights=size)
    weighted = centred * np.sqrt(size)[:, None]
    left, singular = _longest_directions(weighted, n_components)
    rank = min(n_components, len(singular))
    places = np.zeros((n_parts, n_components))
    places[:, :rank] = left[:, :rank] * singular[:rank] / np.sqrt(size)[:, None]
    width = np.sqrt(np.average(places**2, weights=size, axis=0).max())
    least = _NO_WIDTH * np.abs(means).max()
    places *= 2.0 / max(width, least, np.finfo(float).tiny)
    radius = np.sqrt(size / size.sum())
    spread = np.array([layout[:, k] for k in range(n_components)]).T
    scale = np.sqrt(np.bincount(part, (spread**2).sum(axis=1), n_parts) / size)
    scale = np.where(scale > 1e-12, scale, 1.0)
    placed: NDArray[np.float64] = places[part] + spread * (radius / scale)[part, None]
    return placed


_ROUNDS = 20
"""Steps along edges within which a point without a place finds one."""


def among_neighbors(
    layout: NDArray[np.float32], unplaced: NDArray[np.integer], edges: Edges
) -> NDArray[np.float32]:
    """Return a layout whose unplaced points are in the middle of their neighbours.

    Those that no way leads from to a point with a place stay where they are.

    Parameters
    ----------
    layout : (N, d) float32
        Not changed.
    unplaced : (m,) int
        Points whose places in the layout tell nothing.
    edges : Edges
    """
    found = layout.copy()
    is_placed = np.ones(len(layout), bool)
    is_placed[unplaced] = False
    links = abs(edges.matrix()[unplaced])
    for _ in range(_ROUNDS):
        weight = np.asarray(links @ is_placed.astype(float)).ravel()
        is_near = ~is_placed[unplaced] & (weight > 0)
        if not is_near.any():
            break
        summed = links @ np.where(is_placed[:, None], found, 0.0)
        found[unplaced[is_near]] = summed[is_near] / weight[is_near, None]
        is_placed[unplaced[is_near]] = True
    return found
