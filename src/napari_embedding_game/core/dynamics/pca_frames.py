"""The points on their way to their principal components, as something that is played.

The principal steps of :mod:`pca` end when the layout has settled: when over
``_LOOK_EVERY`` iterations neither the energy nor the square of the length of any axis
of the map changes by more than ``SETTLED`` of itself.  The energy alone would not do:
where the second component is far shorter than the first, it hardly tells a saddle on
the way from the end.  Otherwise they end after the iterations of the schedule, with a
warning.  They are shown in the unit of a game's map instead of that of the data,
which may be any: the layout is multiplied by one number, such that the first
component has a standard deviation of ``SPREAD``.  The energy is that of the data.

An axis along which the data do not extend would shrink only like 1 / t.  So where the
data have fewer directions than the map has axes, the start is laid into these alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from napari_embedding_game.core.dynamics.optimizer import resolve_schedule
from napari_embedding_game.core.dynamics.pca import (
    START,
    Layout,
    low_rank_rows,
    principal_energy,
    principal_steps,
)
from napari_embedding_game.core.dynamics.state import State, as_points
from napari_embedding_game.core.energy.methods import get_method
from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.graph.affinities import Edges
from napari_embedding_game.core.types import GameSettings

SETTLED = 1e-9
"""Relative change below which a layout of principal steps has settled."""
SPREAD = 10.0
"""Standard deviation of the first principal component, in units of the map: that of
the digits in the embedding game and in t-SNE, by which landmarks tile well."""
LOW_RANK = 30
"""Of the inner products that pull in Lemma 3; that of the data where it is lower."""
NO_LENGTH = 1e-6
"""Length relative to the longest direction below which the data do not extend."""
_LOOK_EVERY = 5
_FORESEEN = 200
"""Iterations that are foreseen for the principal steps, until twice as many as there
have been are more: most data take fewer, and a small map is shown at that pace."""


def principal_states(
    edges: Edges,
    layout: NDArray[np.floating],
    settings: GameSettings,
    random_state: int,
    low_rank: int | None = None,
) -> Iterator[State]:
    """Yield the way to the principal components, or to those of a low rank."""
    rows = _rows_of(edges, settings)
    if low_rank is not None:
        rng = np.random.default_rng(random_state)
        rows = low_rank_rows(rows, min(low_rank, *rows.shape), rng)
    yield from _states(rows, layout, settings, random_state)


def _rows_of(edges: Edges, settings: GameSettings) -> Any:
    """Return the rows in double precision, so that no product copies them anew."""
    if edges.rows is None:
        raise InputError(
            f"{get_method(settings.method).title} needs the rows of the data: make the "
            "edges with the affinity inner_products."
        )
    rows = edges.rows
    return rows.astype(np.float64) if sparse.issparse(rows) else np.asarray(rows, float)


def _states(
    rows: Any, layout: NDArray[np.floating], settings: GameSettings, random_state: int
) -> Iterator[State]:
    n_components = layout.shape[1]
    start = _within(rows, np.asarray(layout, float), random_state)
    steps = principal_steps(rows, n_components, start=start, random_state=random_state)
    most = resolve_schedule(settings).n_iter
    before, unit = None, 0.0
    for iteration, y in enumerate(steps):
        if iteration == 0:
            unit = SPREAD * START / y.std()
        is_last = iteration == most
        if iteration % _LOOK_EVERY and not is_last:
            continue
        energy = principal_energy(rows, y)
        now = np.array([energy, *np.linalg.eigvalsh(y.T @ y)])
        has_settled = before is not None and _is_near(now, before)
        before = now
        done = is_last or has_settled
        yield State(
            iteration,
            iteration if done else min(most, max(_FORESEEN, 2 * iteration)),
            as_points((unit * y).astype(np.float32)),
            energy=energy,
            warning="" if has_settled or not is_last else _unsettled(most),
        )
        if done:
            return


def _within(rows: Any, layout: Layout, random_state: int) -> Layout:
    """Return the start in the directions that the data have, if these are too few."""
    n_components = layout.shape[1]
    if n_components > min(rows.shape):
        return layout  # refused by the steps
    rng = np.random.default_rng(random_state)
    directions = low_rank_rows(rows, n_components, rng)
    lengths = np.linalg.norm(directions, axis=0)
    has_length = lengths > NO_LENGTH * lengths.max()
    if has_length.all():
        return layout
    basis = directions[:, has_length] / lengths[has_length]
    return np.asarray(basis @ (basis.T @ (layout - layout.mean(axis=0))))


def _is_near(now: NDArray[np.float64], before: NDArray[np.float64]) -> bool:
    """Return whether energy and squared lengths of the axes, in this order, agree."""
    nothing = np.zeros_like(now)
    nothing[1:] = NO_LENGTH**2 * now[1:].max()
    change = np.abs(now - before)
    return bool(((change <= SETTLED * np.abs(now)) | (now < nothing)).all())


def _unsettled(n_iter: int) -> str:
    return (
        f"The points were still moving after {n_iter:,} iterations: "
        "allow more iterations."
    )
