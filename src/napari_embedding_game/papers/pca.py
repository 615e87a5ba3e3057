"""Principal components by attractions and repulsions (paper 3, section 4).

    gradient = -4 C (G_X - G_Y) C Y                          (Eq. 4)
             = -4 ( X_c (X_c^T Y) - Y_c (Y_c^T Y) )

of |C (G_X - G_Y) C|^2, where G_X = X X^T and G_Y = Y Y^T, and C takes the mean away.
The first product pulls y_i towards what is like it in the data, the second pushes it
away from what is near.  From right to left it takes N D d steps.  Theorem 1: it ends at
the principal components, turned or mirrored.
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
from napari_embedding_game.core.energy.pair_loops import padded_to_plane
from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.graph.edges import Edges, build_edges
from napari_embedding_game.core.graph.neighbors import (
    NeighborGraph,
    validate_rows_differ,
)
from napari_embedding_game.core.settings import Settings

Layout = NDArray[np.float64]

STEP = 0.75
"""Of the longest stable step, 1 / (4 largest eigenvalue of G_X); at 1 it swings."""
START = 0.1
"""Length of the start, relative to the longest principal component."""
SETTLED = 1e-9
"""Relative change below which a layout of principal steps has settled."""
SPREAD = 10.0
"""Standard deviation of the first principal component, in units of the map: that of
the digits in the embedding game and in t-SNE, by which landmarks tile well."""
NO_LENGTH = 1e-6
"""Length relative to the longest direction below which the data do not extend."""
UNSETTLED = "The points were still moving after {:,} iterations: allow more iterations."
_LOOK_EVERY = 5
_POWERS = 6
_OVERSAMPLING = 10


def principal_steps(
    X: Any,
    n_components: int = 2,
    *,
    low_rank: int | None = None,
    start: NDArray[np.floating] | None = None,
    random_state: int = 0,
) -> Iterator[Layout]:
    """Yield the layout at the start and after each step, (N, d) float64, without end.

    ``low_rank``: pull by an approximation of G_X of this rank (Lemma 3), in N low_rank
    d steps.  ``start`` (N, d): in any unit, at random if not given; where the data have
    fewer directions than d, it is laid into these.  Layouts have mean 0 and the unit of
    the data; the first has a standard deviation of ``START`` times the longest
    component's.  InputError: fewer dimensions in the data, or all rows are the same.
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
    y = _centred(start)
    lengths = np.linalg.norm(rows, axis=0)
    basis = rows[:, lengths > NO_LENGTH * lengths[0]]
    if basis.shape[1] < n_components:
        basis = basis / np.linalg.norm(basis, axis=0)
        y = basis @ (basis.T @ y)
    y *= START * lengths[0] / np.sqrt(len(y)) / y.std()
    while True:
        yield y.copy()
        y -= STEP / (4 * lengths[0] ** 2) * principal_gradient(pulling, y)


def principal_gradient(X: Any, y: Layout) -> Layout:
    """Return -4 C (G_X - G_Y) C Y, (N, d), in a time that is linear in N."""
    y = _centred(y)
    # As y has mean 0, X^T y is X_c^T y: the data need not be centred.
    return -4 * (_centred(X @ (X.T @ y)) - y @ (y.T @ y))


def principal_energy(X: Any, y: Layout) -> float:
    """Return |C (G_X - G_Y) C|^2 - |C G_X C|^2, of which y changes nothing but this.

    Its minimum is minus the sum of the squares of the d largest eigenvalues of C G_X C.
    """
    y = _centred(y)
    return float(((y.T @ y) ** 2).sum() - 2 * ((X.T @ y) ** 2).sum())


def low_rank_rows(X: Any, rank: int, rng: np.random.Generator) -> Layout:
    """Return rows B, (N, rank), such that B B^T approximates C G_X C (Lemma 3).

    By random projection and powers (Halko, Martinsson and Tropp, 2011).
    """
    width = min(rank + _OVERSAMPLING, *X.shape)
    basis = rng.normal(size=(X.shape[0], width))
    for _ in range(_POWERS):
        basis, _ = np.linalg.qr(_centred(X @ (X.T @ _centred(basis))))
    # Columns beyond the rank of the data are any, and need not have mean 0.
    left, singular, _ = np.linalg.svd((X.T @ _centred(basis)).T, full_matrices=False)
    return np.asarray(basis @ (left[:, :rank] * singular[:rank]))


def _centred(rows: Any) -> Layout:
    rows = np.asarray(rows, dtype=np.float64)
    return np.asarray(rows - rows.mean(axis=0))


# --- As layouts that are shown


@dataclass(frozen=True, slots=True, eq=False)
class RowEdges(Edges):
    """Edges between neighbours, by which landmarks are merged, and the rows."""

    rows: Any = None
    """(N, D) array or sparse matrix, whose inner products attract."""


def inner_products(graph: NeighborGraph, X: Any) -> RowEdges:
    """Let every row pull every other: the rows, and edges of weight 1."""
    uniform = build_edges(graph, "uniform")
    return RowEdges(uniform.indptr, uniform.indices, uniform.weights, rows=X)


def layouts(problem: Problem, settings: Settings) -> Layouts:
    """Let the points go to their principal components, shown ``SPREAD`` wide.

    They end when no axis changes by more than ``SETTLED``, or with a warning.
    """
    if not isinstance(problem.edges, RowEdges):
        raise InputError(
            f"{get_method(settings.method).title} needs the rows of the data: make the "
            "edges with the affinity inner_products."
        )
    # In double precision, so that no product copies them anew.
    rows = problem.edges.rows.astype(np.float64)
    d, seed = problem.n_components, problem.random_state
    start = problem.layout[:, :d]
    steps = principal_steps(rows, d, start=start, random_state=seed)
    return Layouts(_states(rows, steps, resolve_schedule(settings).n_iter))


def _states(rows: Any, steps: Iterator[Layout], most: int) -> Iterator[State]:
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
            torch.from_numpy(padded_to_plane((unit * y).astype(np.float32))),
            energy=partial(principal_energy, rows, y),
            warning=UNSETTLED.format(most) if is_last and not has_settled else "",
        )
        if done:
            return
