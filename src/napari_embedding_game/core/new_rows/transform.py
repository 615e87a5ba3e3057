"""Place new rows on a finished map: the out-of-sample extension.

Each new row gets edges to the fitted rows (:mod:`edges`).  Its position minimises the
energy of a single point with the attraction of these edges and a fixed repulsion
(:meth:`objective.Objective.repulsion_field`), which is read from a grid or summed over
sources.  New rows do not affect one another: any batches, in any order, give positions
of the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse

from napari_embedding_game.core.energy import objective
from napari_embedding_game.core.energy.forces import CompiledForces
from napari_embedding_game.core.energy.mesh_repulsion import Mesh
from napari_embedding_game.core.energy.methods import Approximation, Method, get_method
from napari_embedding_game.core.energy.pair_functions import ATTRACTIONS, KERNELS
from napari_embedding_game.core.energy.pair_loops import pad_to_plane
from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.graph.choices import ROW_AFFINITIES
from napari_embedding_game.core.graph.edges import N_NEAREST, Edges
from napari_embedding_game.core.graph.neighbors import NeighborGraph
from napari_embedding_game.core.inspect.isolation import (
    compute_isolation_of_new_rows,
    compute_median_neighbor_distances,
)
from napari_embedding_game.core.inspect.stretch import (
    compute_median_squared_distance,
    compute_stretch_of_new_rows,
)
from napari_embedding_game.core.new_rows import place_loops
from napari_embedding_game.core.new_rows.edges import NewRowEdges
from napari_embedding_game.core.new_rows.likeness import DistanceScorer
from napari_embedding_game.core.new_rows.search import FittedSearch, validate_metric
from napari_embedding_game.core.settings import (
    Settings,
    resolve_method,
    resolve_repulsion,
)
from napari_embedding_game.core.threads import limit_threads, run_blocks

MAX_SOURCES = 2_000
"""Most points whose repulsion is summed; without a grid, so many are sampled."""
MARGIN = 4.0
"""Width around the points, in units of the map, beyond which no new row is placed."""
_ROWS_AT_ONCE = 16_384
_WORK = 100_000
"""Cost of placing a row, in pairs of points."""


@dataclass(frozen=True, eq=False)
class FittedMap:
    """A finished map of rows ``X``, on which new rows can be placed.

    ``scale``: the factor of the fitted edges, see :class:`edges.Edges`;
    ``lambda_scale``: the method's factor of the repulsion for these edges; ``points``
    (N, d) and ``landmarks`` (L, d): positions, float32.
    """

    X: Any
    graph: NeighborGraph
    settings: Settings
    scale: float
    lambda_scale: float
    points: NDArray[np.float32]
    landmarks: NDArray[np.float32]

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields without cached properties, which are computed again."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def place(self, X: Any) -> NDArray[np.float32]:
        """Return the positions, (Q, d) float32, of new rows ``X`` (Q, D).

        A row that equals fitted rows gets the position of the first of them.  Columns
        and missing values have been validated by the estimator.  InputError: the method
        or the metric cannot place new rows, or values are too large.
        """
        placed = self._make_empty_positions(X)
        for _ in self._place_blocks(X, placed):
            pass
        return placed[:, : self.points.shape[1]]

    def place_with_distance_ratios(
        self, X: Any
    ) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """Return positions (Q, d) and distance ratios (Q,) of new rows (Q, D).

        The ratios are of :attr:`distance_scorer`.  InputError: as in :meth:`place`.
        """
        placed = self._make_empty_positions(X)
        ratios = np.empty(len(placed))
        for block, indices, distances in self._place_blocks(X, placed):
            ratios[block] = self.distance_scorer.compute_ratios(indices, distances)
        return placed[:, : self.points.shape[1]], ratios

    def compute_distance_ratios(self, X: Any) -> NDArray[np.float64]:
        """Return the distance ratios, (Q,), of new rows ``X`` (Q, D), without placing.

        They are those of :meth:`place_with_distance_ratios`.  InputError: the metric
        cannot place new rows, or values are too large.
        """
        k = min(N_NEAREST, self.graph.n_neighbors)
        blocks = range(0, X.shape[0], _ROWS_AT_ONCE)
        with limit_threads(self.settings.n_jobs):
            parts = [
                self.distance_scorer.compute_ratios(
                    *self.search(X[begin : begin + _ROWS_AT_ONCE], k)
                )
                for begin in blocks
            ]
        return np.concatenate(parts) if parts else np.empty(0)

    def place_with_diagnostics(
        self, X: Any
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
        """Return positions (Q, d), stretch (Q,) and isolation (Q,) of new rows (Q, D).

        Stretch and isolation use the nearest fitted rows; for a row that equals a
        fitted row, that row is among its nearest.  InputError: as in :meth:`place`.
        """
        placed = self._make_empty_positions(X)
        stretch, isolation = np.empty((2, len(placed)), np.float32)
        graph, d = self.graph, self.points.shape[1]
        nearest = np.ascontiguousarray(graph.indices[:, :N_NEAREST])
        usual = compute_median_squared_distance(nearest, self.points)
        medians = compute_median_neighbor_distances(graph.indices, graph.distances)
        for block, indices, distances in self._place_blocks(X, placed):
            near = np.ascontiguousarray(indices[:, :N_NEAREST], np.int32)
            positions = np.ascontiguousarray(placed[block, :d])
            stretch[block] = compute_stretch_of_new_rows(
                near, positions, self.points, usual
            )
            isolation[block] = compute_isolation_of_new_rows(near, distances, medians)
        return placed[:, :d], stretch, isolation

    def _make_empty_positions(self, X: Any) -> NDArray[np.float32]:
        """Return an uninitialised array for the positions of rows, (Q, 2) or (Q, 3)."""
        width = pad_to_plane(self.points[:1]).shape[1]
        return np.empty((X.shape[0], width), np.float32)

    def _place_blocks(
        self, X: Any, placed: NDArray[np.float32]
    ) -> Iterator[tuple[slice, NDArray[Any], NDArray[Any]]]:
        """Write the positions of new rows ``X`` to ``placed`` in place, block by block.

        ``placed`` (Q, 2) or (Q, 3).  Yields the slice of each block in ``placed``, and
        the nearest fitted rows and their distances, (n, M) each.  A row that equals a
        fitted row gets its position.  InputError: the method or metric cannot place new
        rows.
        """
        validate_transform(self.settings.method, self.settings.metric)
        method = get_method(self.settings.method)
        pairs = ATTRACTIONS[method.attraction], KERNELS[method.kernel]
        points = pad_to_plane(self.points)
        for begin in range(0, len(placed), _ROWS_AT_ONCE):
            block = placed[begin : begin + _ROWS_AT_ONCE]
            rows = X[begin : begin + len(block)]
            with limit_threads(self.settings.n_jobs):
                indices, distances = self.search(rows, self._edges.n_nearest)
                weights = self._edges.compute_weights(indices, distances)
                placing = *pairs, indices, weights, points, self._field, block
                work = _WORK * len(block)
                run_blocks(place_loops.place_rows, len(block), work, *placing)
            is_fitted = distances[:, 0] == 0
            block[is_fitted] = points[indices[is_fitted, 0]]
            yield slice(begin, begin + len(block)), indices, distances

    @cached_property
    def distance_scorer(self) -> DistanceScorer:
        """Score of new rows by their distances to the nearest fitted rows."""
        indices, distances = self.graph.indices, self.graph.distances
        return DistanceScorer(indices[:, :N_NEAREST], distances[:, :N_NEAREST])

    @cached_property
    def search(self) -> FittedSearch:
        """Search among the fitted rows by the metric of the fit."""
        return FittedSearch(self.X, self.settings.metric)

    @cached_property
    def _edges(self) -> NewRowEdges:
        """Computes the edges of new rows to the fitted rows."""
        perplexity = min(self.settings.perplexity, self.graph.n_neighbors / 3)
        return NewRowEdges(self.graph, self.settings.affinity, self.scale, perplexity)

    @cached_property
    def _field(self) -> tuple[Any, ...]:
        """The fixed repulsion of the map, a tuple: see :func:`compute_frozen_field`."""
        settings = self.settings
        chosen = resolve_method(settings.method, settings.approximation)
        repulsion = self.lambda_scale * resolve_repulsion(settings)
        positions = self.points, self.landmarks
        return compute_frozen_field(
            *chosen, repulsion, *positions, settings.random_state
        )


def make_fitted_map(
    X: Any,
    graph: NeighborGraph,
    edges: Edges,
    settings: Settings,
    points: NDArray[np.float32],
    landmarks: NDArray[np.float32],
) -> FittedMap:
    """Return the finished map of ``X`` (N, D), with copies of points and landmarks.

    ``graph`` and ``edges`` are those that the game was played on.
    """
    lambda_scale = get_method(settings.method).lambda_scale(edges)
    # Copies, because callers may rotate or scale the arrays of the map in place.
    copies = points.copy(), landmarks.copy()
    return FittedMap(X, graph, settings, edges.scale, lambda_scale, *copies)


def compute_frozen_field(
    method: Method,
    approximation: Approximation,
    repulsion: float,
    points: NDArray[np.float32],
    landmarks: NDArray[np.float32],
    random_state: int = 0,
) -> tuple[Any, ...]:
    """Return the fixed repulsion of a finished map, as a tuple for the loops.

    The tuple is the ``field`` of :func:`place_loops.place_rows`.  ``points`` (N, d) and
    ``landmarks`` (L, d) are not changed.  Where all of more than ``MAX_SOURCES`` points
    repel, a grid is computed if the method has one; else ``MAX_SOURCES`` points are
    drawn at random, and the factor is raised accordingly.
    """
    y, z = (
        # A copy, because torch warns about read-only arrays, such as mapped files.
        torch.from_numpy(np.array(pad_to_plane(each), np.float32, order="C"))
        for each in (points, landmarks)
    )
    no_edges = Edges.from_symmetric_matrix(
        sparse.csr_matrix((len(y), len(y)), dtype=np.float32)
    )
    forces = CompiledForces(no_edges, kernel=method.kernel)
    law = repulsion, len(z), random_state, method.aggregate
    field = objective.make_objective(approximation, forces, *law).repulsion_field(y, z)
    strength, sources = field.strength / (field.base or 1.0), field.sources.numpy()
    double = y.numpy().astype(np.float64)
    low, high = double.min(axis=0), double.max(axis=0)
    margin = MARGIN * (low < high)  # no margin in a dimension without width
    potential, spacing = np.empty((0, 0, 0)), 1.0
    if field.sources is y and len(y) > MAX_SOURCES:
        if "mesh" in method.approximations:
            potential, spacing = Mesh(KERNELS[method.kernel]).compute_node_potential(
                double, MARGIN
            )
            sources = sources[:0]
        else:
            rng = np.random.default_rng(random_state)
            sampled = np.sort(rng.choice(len(y), MAX_SOURCES, replace=False))
            strength *= len(y) / MAX_SOURCES
            sources = sources[sampled]
    sources = np.ascontiguousarray(sources.T)
    return strength, sources, potential, low - margin, high + margin, spacing


def find_nearest_landmark_among(
    positions: NDArray[np.float32],
    landmarks: NDArray[np.float32],
    is_candidate: NDArray[np.bool_],
) -> NDArray[np.int32]:
    """Return the number of each position's nearest candidate landmark, (Q,) (Eq. 7).

    ``positions`` (Q, d); ``landmarks`` (L, d); ``is_candidate`` (L,): which landmarks
    may be chosen.  Numbers are those among all landmarks.
    """
    numbers = np.flatnonzero(is_candidate).astype(np.int32)
    return numbers[objective.find_nearest_landmarks(positions, landmarks[numbers])]


def validate_transform(method: str, metric: Any) -> None:
    """Raise InputError where the method or metric cannot place new rows.

    A method needs a kernel, and edges that come from distances alone.
    """
    spec = get_method(method)
    if not spec.kernel or spec.affinity in ROW_AFFINITIES:
        raise InputError(
            f"New rows cannot be placed on a map of {spec.title}: choose another "
            "method, such as game."
        )
    validate_metric(metric)
