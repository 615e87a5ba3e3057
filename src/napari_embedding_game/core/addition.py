"""Add rows to a finished map whose points hardly move.

1. New rows are added to the neighbour graph, in both directions (:mod:`joined_graph`).
2. They begin where :meth:`transform.FittedMap.place` puts each of them alone.
3. All points play a short game, with steps that are small beside the width of the map.

The figures are in ``docs/methods.md``, by ``python benchmarks/added_rows.py``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from napari_embedding_game.core import pipeline
from napari_embedding_game.core.dynamics.play import play
from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.graph.edges import Edges
from napari_embedding_game.core.new_rows.joined_graph import (
    add_rows_to_graph,
    stack_rows,
)
from napari_embedding_game.core.new_rows.likeness import (
    describe_apart_rows,
    measure_apartness,
)
from napari_embedding_game.core.new_rows.transform import FittedMap, make_fitted_map
from napari_embedding_game.core.settings import (
    Settings,
    fill_approximation_by_size,
    is_game,
)
from napari_embedding_game.core.snapshot import Snapshot, WarmStart
from napari_embedding_game.core.threads import limit_threads

ITERATIONS = 30
"""Iterations of the game in which new rows find their places among the others."""
STEP = 0.003
"""Length of the first steps, as a share of the width of the map."""
_LARGE = 0.1
"""Share of new rows, of fitted ones, from which steps have that length: for fewer rows
shorter steps reach the same energy, and old points move less."""


@dataclass(frozen=True, slots=True, eq=False)
class AddedRows:
    """A map of N fitted rows to which Q new rows were added."""

    fitted: FittedMap
    """The map of all rows, new rows last."""
    edges: Edges
    """The edges of all rows."""
    snapshot: Snapshot
    """The last snapshot of the game that all rows played."""
    warning: str
    """A sentence on new rows that are unlike the fitted rows, or ""."""


def add_rows(fitted: FittedMap, X: Any) -> AddedRows:
    """Return the map of the fitted rows and new rows ``X`` (Q, D), Q at least 1.

    ``fitted`` does not change.  Raises InputError for a method that is no game, a
    metric that takes no new rows, and values that are too large.
    """
    validate_takes_rows(fitted.settings)
    placed, ratios = fitted.place_with_distance_ratios(X)
    n, n_new = len(fitted.points), len(placed)
    layout = np.concatenate([fitted.points, placed])
    X = stack_rows(fitted.X, X)
    settings = fill_approximation_by_size(fitted.settings, X.shape[0])
    with limit_threads(settings.n_jobs):
        graph = add_rows_to_graph(fitted.graph, X, settings.metric)
    edges, layout = pipeline.make_edges_and_layout(graph, X, settings, layout)
    # A continued game plays the second half of its schedule.
    short = replace(
        settings,
        schedule="fast",
        max_iter=2 * ITERATIONS,
        learning_rate=_find_step_length(fitted, n_new),
    )
    warm = WarmStart(
        embedding=layout, landmarks=fitted.landmarks, iterations_left=ITERATIONS
    )
    playing = play(edges, layout, short, diagnose=False, warm_start=warm)
    snapshot = next(frame for frame in playing if frame.finished)
    positions = snapshot.embedding, snapshot.landmarks
    warning = describe_apart_rows(measure_apartness(graph.indices[n:], n), n_new)
    return AddedRows(
        make_fitted_map(X, graph, edges, settings, *positions),
        edges,
        snapshot,
        warning or fitted.distance_scorer.describe_unlike_rows(ratios),
    )


def validate_takes_rows(settings: Settings) -> None:
    """Raise InputError where the method is no game, which alone takes rows later."""
    if not is_game(settings):
        raise InputError(
            "Rows are added to a map that is played as a game: fit all rows together, "
            "or choose another method, such as game."
        )


def _find_step_length(fitted: FittedMap, n_new: int) -> float:
    """Return the learning rate of the points, in units of the map."""
    width = float(np.ptp(fitted.points, axis=0).max())
    share = min(1.0, n_new / (_LARGE * len(fitted.points)))
    return STEP * width * math.sqrt(share)
