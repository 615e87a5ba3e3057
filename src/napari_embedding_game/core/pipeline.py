"""The steps that begin every run; each step uses the result of the step before.

settings = fill_approximation_by_size(fill_affinity(settings), len(X))
validate_settings_for_data(X, settings)       # raises early what would be raised later
graph = find_neighbors(X, settings)
edges, layout = make_edges_and_layout(graph, X, settings)
playing = play(edges, layout, settings)

The first line chooses the affinity by the method, and the approximation by the number
of rows: without that line maps of more than ``settings.MANY_POINTS`` rows differ from
the estimator's.  The seed enters in the search, in the start, as ``random_state`` of
:class:`state.Problem`, and in :func:`transform.compute_frozen_field`; clusters are
found with seed 0 whatever the seed is.  ``EmbeddingGame._resolve_settings`` samples a
seed where ``random_state`` is no number.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.device import resolve_device
from napari_embedding_game.core.errors import PrecomputedDistancesError
from napari_embedding_game.core.graph.choices import ROW_AFFINITIES, STARTS
from napari_embedding_game.core.graph.coordinates import Coordinates
from napari_embedding_game.core.graph.edges import Edges, build_edges
from napari_embedding_game.core.graph.neighbors import NeighborGraph, knn_graph
from napari_embedding_game.core.graph.precomputed import validate_distances
from napari_embedding_game.core.graph.start import make_start_layout
from napari_embedding_game.core.graph.two_spaces import find_candidates
from napari_embedding_game.core.inspect.isolation import compute_isolation
from napari_embedding_game.core.settings import (
    NO_LARGE_PICTURE,
    Settings,
    resolve_n_neighbors,
    validate_point_count,
)
from napari_embedding_game.core.threads import limit_threads


def validate_settings_for_data(X: Any, settings: Settings) -> None:
    """Check settings and data before the neighbour search; raise InputError if refused.

    Refused are invalid settings, distances that are not square or are below 0, a device
    that this machine does not have, and too many rows for the method.  The values of
    rows are not checked here.  Memory is not estimated; of a full graphics card see
    ``device.GPU_IS_FULL``.

    ``X``: (N, D) rows, or (N, N) distances with ``metric="precomputed"``, which has no
    row-based affinity or start and no large picture.
    """
    settings.validate()
    if settings.metric == "precomputed":
        validate_distances(X)
        for of, name, offered, alternative in (
            ("affinity", settings.affinity, ROW_AFFINITIES, "affinity"),
            ("start", settings.init, STARTS, 'one, "spectral" or "random"'),
        ):
            if name in offered:
                raise PrecomputedDistancesError(
                    f'The {of} "{name}" needs the rows of the data, which '
                    f'metric="precomputed" does not have: choose another {alternative}.'
                )
        if settings.large_picture:
            raise PrecomputedDistancesError(NO_LARGE_PICTURE)
    resolve_device(settings.device)
    validate_point_count(settings, X.shape[0])


def find_neighbors(X: Any, settings: Settings) -> NeighborGraph:
    """Return the nearest neighbours of each row of ``X`` (N, D).

    The settings give their number, the metric, the seed and the number of threads: see
    :mod:`neighbors`.
    """
    k, seed = resolve_n_neighbors(settings, X.shape[0]), settings.random_state
    with limit_threads(settings.n_jobs):
        return knn_graph(
            _to_contiguous_rows(X), k, metric=settings.metric, random_state=seed
        )


def make_edges_and_layout(
    graph: NeighborGraph,
    X: Any,
    settings: Settings,
    layout: NDArray[np.float32] | None = None,
    second_X: Any = None,
) -> tuple[Edges, NDArray[np.float32]]:
    """Return the weighted edges, with isolation and coordinates, and the start layout.

    ``X``: rows (N, D), or distances, which have no coordinates.  ``layout`` (N, d), if
    given, is returned as the start instead of a computed one.  ``second_X`` (N, E):
    rows of a second space, in which the neighbours are sought, too; its edges are of
    ``settings.second_share``, and :meth:`Edges.mix_by_share` returns those of another
    share.
    """
    X = _to_contiguous_rows(X)
    with limit_threads(settings.n_jobs):
        if second_X is None:
            result = _weigh_neighbors(graph, X, settings)
        else:
            found = graph, X, _to_contiguous_rows(second_X)
            spaces = find_candidates(*found, settings.metric, settings.random_state)

            @lru_cache(maxsize=1)  # the game, its clusters and its figures ask for it
            def remix(share: float) -> Edges:
                """Return the edges for a share of the second space."""
                edges = _weigh_neighbors(spaces.find_neighbors(share), X, settings)
                return replace(edges, remix=remix)

            result = remix(settings.second_share)
        if layout is None:
            layout = make_start_layout(
                result,
                X,
                settings.n_components,
                settings.init,
                settings.random_state,
                graph.n_neighbors,
            )
    return result, layout


def _weigh_neighbors(graph: NeighborGraph, X: Any, settings: Settings) -> Edges:
    """Return the weighted edges of a graph, with their isolation and coordinates."""
    result = build_edges(graph, settings.affinity, X=X, perplexity=settings.perplexity)
    isolation = compute_isolation(graph.indices, graph.distances)
    rows = None
    if settings.metric != "precomputed":
        rows = Coordinates(X, settings.metric, settings.random_state)
    return replace(result, isolation=isolation, coordinates=rows)


def _to_contiguous_rows(X: Any) -> Any:
    """Return ``X``, a dense array as C-contiguous: other orders give other last bits.

    Sparse matrices are returned as they are.
    """
    return np.ascontiguousarray(X) if isinstance(X, np.ndarray) else X
