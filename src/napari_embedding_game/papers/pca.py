"""Compute principal components by attraction and repulsion (paper 3, section 4).

    gradient = -4 C (G_X - G_Y) C Y                          (Eq. 4)
             = -4 ( X_c (X_c^T Y) - Y_c (Y_c^T Y) )

is the gradient of |C (G_X - G_Y) C|^2, where G_X = X X^T and G_Y = Y Y^T, and C
subtracts the mean.  The first product pulls y_i towards points with similar rows, the
second pushes y_i away from points nearby.  Computed from right to left it takes N D d
steps.  Theorem 1: descent ends at the principal components, up to rotation and
reflection.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from napari_embedding_game.core.dynamics.schedule import resolve_schedule
from napari_embedding_game.core.dynamics.state import Layouts, Problem, State
from napari_embedding_game.core.energy.methods import get_method
from napari_embedding_game.core.energy.pair_loops import pad_to_plane
from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.graph.edges import Edges, build_edges
from napari_embedding_game.core.graph.neighbors import (
    NeighborGraph,
    validate_rows_differ,
)
from napari_embedding_game.core.settings import Settings

Layout = NDArray[np.float64]

STEP = 0.75
"""Step as a share of the longest stable step, 1 / (4 largest eigenvalue of G_X); at 1
the descent oscillates."""
START = 0.1
"""Length of the start, relative to the longest principal component."""
SETTLED = 1e-9
"""Relative change of an axis below which a layout has converged."""
SPREAD = 10.0
"""Standard deviation of the first principal component, in units of the map, as for
digits in the embedding game and in t-SNE; landmarks spread well over such a map."""
NO_LENGTH = 1e-6
"""Length, relative to the longest direction, below which a direction is empty."""
UNSETTLED = "The points were still moving after {:,} iterations: allow more iterations."
_LOOK_EVERY = 5
_POWERS = 6
_OVERSAMPLING = 10


def iterate_pca_descent(
    X: Any,
    n_components: int = 2,
    *,
    low_rank: int | None = None,
    start: NDArray[np.floating] | None = None,
    random_state: int = 0,
) -> Iterator[Layout]:
    """Yield layouts (N, d) float64 of a descent to the principal components, endlessly.

    The first layout is the start, with a standard deviation of ``START`` times that of
    the longest component.  Layouts have mean 0 and the unit of the data.

    Parameters
    ----------
    X
        (N, D) array or sparse matrix.
    n_components
        Number of dimensions d.
    low_rank
        Rank of an approximation of G_X that attracts (Lemma 3), in N low_rank d steps;
        by default G_X itself.
    start
        (N, d) start in any unit, by default random; projected to the directions of the
        data where these are fewer than d.
    random_state
        Seed of the start and of the approximation.

    Raises
    ------
    InputError
        The data have fewer dimensions than d, or all rows are the same.
    """
    validate_rows_differ(X)
    if n_components > (most := min(X.shape)):
        raise InputError(
            f"These data have at most {most} dimensions, not {n_components}: "
            "choose fewer, or another method."
        )
    rng = np.random.default_rng(random_state)
    rows = low_rank_rows(X, low_rank or n_components, rng)
    pulling = X if low_rank is None else rows
    if start is None:
        start = rng.normal(size=(X.shape[0], n_components))
    y = _centre_columns(start)
    lengths = np.linalg.norm(rows, axis=0)
    basis = rows[:, lengths > NO_LENGTH * lengths[0]]
    if basis.shape[1] < n_components:
        basis = basis / np.linalg.norm(basis, axis=0)
        y = basis @ (basis.T @ y)
    y *= START * lengths[0] / np.sqrt(len(y)) / y.std()
    while True:
        yield y.copy()
        y -= STEP / (4 * lengths[0] ** 2) * pca_gradient(pulling, y)


def pca_gradient(X: Any, y: Layout) -> Layout:
    """Return the gradient -4 C (G_X - G_Y) C Y at ``y`` (N, d), (N, d).

    ``X`` (N, D) need not be centred.  The time is linear in N.
    """
    y = _centre_columns(y)
    # The data need not be centred: as y has mean 0, X^T y is X_c^T y.
    return -4 * (_centre_columns(X @ (X.T @ y)) - y @ (y.T @ y))


def pca_energy(X: Any, y: Layout) -> float:
    """Return |C (G_X - G_Y) C|^2 - |C G_X C|^2, the part that depends on ``y`` (N, d).

    Its minimum is minus the sum of the squares of the d largest eigenvalues of C G_X C.
    """
    y = _centre_columns(y)
    return float(((y.T @ y) ** 2).sum() - 2 * ((X.T @ y) ** 2).sum())


def low_rank_rows(X: Any, rank: int, rng: np.random.Generator) -> Layout:
    """Return rows B (N, rank) such that B B^T approximates C G_X C (Lemma 3).

    B is computed by random projection and power iterations (Halko, Martinsson and
    Tropp, 2011).  It has fewer columns where ``X`` (N, D) has fewer rows or columns.
    Columns have mean 0, and are sorted by falling length.
    """
    width = min(rank + _OVERSAMPLING, *X.shape)
    basis = rng.normal(size=(X.shape[0], width))
    for _ in range(_POWERS):
        basis, _ = np.linalg.qr(_centre_columns(X @ (X.T @ _centre_columns(basis))))
    # Columns beyond the rank of the data are arbitrary and may not have mean 0.
    left, singular, _ = np.linalg.svd(
        (X.T @ _centre_columns(basis)).T, full_matrices=False
    )
    return np.asarray(basis @ (left[:, :rank] * singular[:rank]))


def _centre_columns(rows: Any) -> Layout:
    """Return the rows minus their mean, float64."""
    rows = np.asarray(rows, dtype=np.float64)
    return np.asarray(rows - rows.mean(axis=0))


# --- As a method of the engine


@dataclass(frozen=True, slots=True, eq=False)
class RowEdges(Edges):
    """Edges between neighbours, for merging landmarks, with the rows of the data."""

    rows: Any = None
    """(N, D) array or sparse matrix, whose inner products attract the points."""


def make_row_edges(graph: NeighborGraph, X: Any) -> RowEdges:
    """Return rows ``X`` (N, D), which attract each other, with edges of weight 1."""
    uniform = build_edges(graph, "uniform")
    return RowEdges(uniform.indptr, uniform.indices, uniform.weights, rows=X)


def compute_layouts(problem: Problem, settings: Settings) -> Layouts:
    """Return the layouts of a descent to the principal components, ``SPREAD`` wide.

    It begins at the problem's layout.  The layouts end when no axis changes by more
    than ``SETTLED``, or with a warning after the iterations of the settings.
    InputError: the edges are no :class:`RowEdges`.
    """
    if not isinstance(problem.edges, RowEdges):
        raise InputError(
            f"{get_method(settings.method).title} needs the rows of the data: make the "
            "edges with the affinity inner_products."
        )
    # Converted to double precision once, or every product would convert the rows.
    rows = problem.edges.rows.astype(np.float64)
    d, seed = problem.n_components, problem.random_state
    start = problem.layout[:, :d]
    steps = iterate_pca_descent(rows, d, start=start, random_state=seed)
    return Layouts(_iterate_states(rows, steps, resolve_schedule(settings).n_iter))


def _iterate_states(rows: Any, steps: Iterator[Layout], most: int) -> Iterator[State]:
    """Yield the state of each layout until the axes settle or after ``most`` steps.

    ``rows`` (N, D): the data, for the energy.  Layouts are scaled to ``SPREAD``.  Axes
    are compared every ``_LOOK_EVERY`` steps; empty axes count as settled.  The last
    state has a warning if the axes have not settled.
    """
    before: Any = np.nan
    unit, has_settled = 0.0, False
    for iteration, y in enumerate(steps):
        unit = unit or SPREAD * START / y.std()
        is_last = iteration == most
        if iteration % _LOOK_EVERY == 0 or is_last:
            lengths = np.linalg.eigvalsh(y.T @ y)
            is_near = np.abs(lengths - before) <= SETTLED * lengths
            has_settled = bool((is_near | (lengths < NO_LENGTH**2 * lengths[-1])).all())
            before = lengths
        done = is_last or has_settled
        yield State(
            iteration,
            iteration if done else most,
            torch.from_numpy(pad_to_plane((unit * y).astype(np.float32))),
            energy=partial(pca_energy, rows, y),
            warning=UNSETTLED.format(most) if is_last and not has_settled else "",
        )
        if done:
            return
