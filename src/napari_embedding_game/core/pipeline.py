"""What every run begins with, each step from the result of the one before.

settings = with_approximation(with_affinity(settings), len(X))
check(X, settings)                 # what would be refused later, at once
graph = neighbors(X, settings)
edges, layout = edges_and_start(graph, X, settings)
playing = play(edges, layout, settings)

The first line chooses the affinity by the method, and the approximation by the number
of rows: without it more than ``settings.MANY_POINTS`` have another map than the
estimator's.  The seed enters in the search, in the start, as ``random_state`` of
:class:`state.Problem`, and in :func:`transform.frozen_field`; clusters are found with
seed 0 whatever it is.
``EmbeddingGame._chosen`` draws one where ``random_state`` is no number.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.device import resolve_device
from napari_embedding_game.core.errors import GivenDistancesError
from napari_embedding_game.core.graph.choices import ROW_AFFINITIES, STARTS
from napari_embedding_game.core.graph.coordinates import Coordinates
from napari_embedding_game.core.graph.edges import Edges, edges
from napari_embedding_game.core.graph.neighbors import NeighborGraph, knn_graph
from napari_embedding_game.core.graph.precomputed import check_distances
from napari_embedding_game.core.graph.start import start_layout
from napari_embedding_game.core.inspect.isolation import isolation
from napari_embedding_game.core.settings import (
    NO_LARGE_PICTURE,
    Settings,
    check_size,
    n_searched,
)
from napari_embedding_game.core.threads import limited


def check(X: Any, settings: Settings) -> None:
    """Raise InputError for what can be refused before the neighbours are searched.

    Memory is not foreseen; of a full graphics card see ``device.GPU_IS_FULL``.
    """
    settings.validate()
    if settings.metric == "precomputed":
        check_distances(X)
        for of, name, offered, alternative in (
            ("affinity", settings.affinity, ROW_AFFINITIES, "affinity"),
            ("start", settings.init, STARTS, 'one, "spectral" or "random"'),
        ):
            if name in offered:
                raise GivenDistancesError(
                    f'The {of} "{name}" needs the rows of the data, which '
                    f'metric="precomputed" does not have: choose another {alternative}.'
                )
        if settings.large_picture:
            raise GivenDistancesError(NO_LARGE_PICTURE)
    resolve_device(settings.device)
    check_size(settings, X.shape[0])


def neighbors(X: Any, settings: Settings) -> NeighborGraph:
    """Find the nearest neighbours of the rows of ``X`` (N, D), see :mod:`neighbors`."""
    k, seed = n_searched(settings, X.shape[0]), settings.random_state
    with limited(settings.n_jobs):
        return knn_graph(_row_by_row(X), k, metric=settings.metric, random_state=seed)


def edges_and_start(
    graph: NeighborGraph,
    X: Any,
    settings: Settings,
    layout: NDArray[np.float32] | None = None,
) -> tuple[Edges, NDArray[np.float32]]:
    """Return the weighted edges and the start layout (N, d), ``layout`` if given."""
    X = _row_by_row(X)
    with limited(settings.n_jobs):
        result = edges(graph, settings.affinity, X=X, perplexity=settings.perplexity)
        result = replace(result, isolation=isolation(graph.indices, graph.distances))
        if settings.metric != "precomputed":
            rows = Coordinates(X, settings.metric, settings.random_state)
            result = replace(result, coordinates=rows)
        if layout is None:
            options = settings.n_components, settings.init, settings.random_state
            layout = start_layout(result, X, *options, graph.n_neighbors)
    return result, layout


def _row_by_row(X: Any) -> Any:
    """Return X, dense rows one after another: other sums make another map."""
    return np.ascontiguousarray(X) if isinstance(X, np.ndarray) else X
