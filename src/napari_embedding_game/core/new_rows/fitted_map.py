"""New rows on a finished map: the out-of-sample extension of every method.

Each new row gets the edges that it would have to the fitted rows (:mod:`new_edges`),
and lowers the energy of one point against the fitted points and the frozen repulsion
(:mod:`frozen_field`).  Under PCA it is projected.  The map does not change, and no new
row sees another: every batch, in any order, gives the same places to the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from napari_embedding_game.core.energy import pair_loops
from napari_embedding_game.core.energy.methods import Approximation, get_method
from napari_embedding_game.core.energy.pair_functions import ATTRACTIONS
from napari_embedding_game.core.energy.pair_loops import in_the_plane
from napari_embedding_game.core.graph.neighbors import NeighborGraph
from napari_embedding_game.core.new_rows import placement_loops
from napari_embedding_game.core.new_rows.fitted_search import FittedSearch, check_metric
from napari_embedding_game.core.new_rows.frozen_field import FrozenField, frozen_field
from napari_embedding_game.core.new_rows.new_edges import NewEdges
from napari_embedding_game.core.settings import Settings
from napari_embedding_game.core.threads import resolve_n_jobs, run_blocks

_ROWS_AT_ONCE = 16_384


class _Remembering:
    """A frozen value whose cached properties are not pickled, but made anew."""

    def __getstate__(self) -> dict[str, Any]:
        return {name: vars(self)[name] for name in self.__dataclass_fields__}  # type: ignore[attr-defined]

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)


@dataclass(frozen=True, eq=False)
class FittedRows(_Remembering):
    """The rows of a fit and its neighbour graph, with which new rows are compared.

    Attributes
    ----------
    X : (N, D) array or csr matrix
    graph : NeighborGraph
    start : Settings
        Of the fit.
    scale : float
        Of the fitted edges, see :class:`affinities.Edges`.
    """

    X: Any
    graph: NeighborGraph
    start: Settings
    scale: float

    @cached_property
    def search(self) -> FittedSearch:
        """The search among the rows."""
        start = self.start
        n_threads = resolve_n_jobs(start.n_jobs)
        return FittedSearch(self.X, start.metric, n_threads, start.random_state)

    @cached_property
    def edges(self) -> NewEdges:
        """The edges of new rows."""
        perplexity = min(self.start.perplexity, self.graph.n_neighbors / 3)
        return NewEdges(self.graph, self.start.affinity, self.scale, perplexity)


@dataclass(frozen=True, eq=False)
class FittedMap(_Remembering):
    """A map that new rows can be placed on.

    Attributes
    ----------
    rows : FittedRows
    method : str
        A key of ``methods.METHODS``.
    approximation : str
        How the repulsion was found.
    repulsion : float
        The lambda of the energy.
    points : (N, d) float32
        Places of the rows.
    landmarks : (L, d) float32
    """

    rows: FittedRows
    method: str
    approximation: Approximation
    repulsion: float
    points: NDArray[np.float32]
    landmarks: NDArray[np.float32]

    def place(self, X: Any) -> NDArray[np.float32]:
        """Return the places of new rows ``X`` (Q, D), (Q, d) float32.

        A row that equals a fitted one has its place; of several the first one's.

        Raises
        ------
        InputError
            New rows have no place by this method or metric, or are too large.
        """
        check_transform(self.method, self.rows.start.metric)
        placed = np.empty((X.shape[0], self.points.shape[1]), np.float32)
        for begin in range(0, len(placed), _ROWS_AT_ONCE):
            block = slice(begin, begin + _ROWS_AT_ONCE)
            placed[block] = self._place(X[block])
        return placed

    def _place(self, X: Any) -> NDArray[np.float32]:
        if not get_method(self.method).kernel:
            return self._projected(X)
        rows, field = self.rows, self._field
        found, distances = rows.search(X, rows.edges.n_searched)
        weights = rows.edges.weights(X, rows.X, found, distances)
        attraction = ATTRACTIONS[get_method(self.method).attraction]
        points = in_the_plane(self.points)
        placed = np.empty((len(found), points.shape[1]), np.float32)
        work = placement_loops.MOST_STEPS * (
            found.size + len(found) * field.sources.size
        )
        run_blocks(
            placement_loops.place_rows, len(found), work, rows.start.n_jobs, attraction,
            field.kernel, found, weights, points, field.arrays, placed,
        )  # fmt: skip
        is_known = distances[:, 0] == 0
        placed[is_known] = points[found[is_known, 0]]
        return placed[:, : self.points.shape[1]]

    @cached_property
    def _field(self) -> FrozenField:
        return frozen_field(
            get_method(self.method),
            self.approximation,
            self.repulsion,
            in_the_plane(self.points),
            in_the_plane(self.landmarks),
            self.rows.start.random_state,
        )

    def _projected(self, X: Any) -> NDArray[np.float32]:
        mean, axes = self._axes
        places = _rows_times(X, axes) - mean @ axes
        return np.asarray(places + self.points.mean(axis=0), np.float32)

    @cached_property
    def _axes(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean of the rows, and what their differences from it are multiplied by.

        The points settle at Y = X_c X_c^T Y M for some M (:mod:`pca`): the axes are
        those combinations of the columns of X_c^T Y that come nearest to Y.
        """
        X, points = self.rows.X, self.points.astype(np.float64)
        points -= points.mean(axis=0)
        mean = np.asarray(X.mean(axis=0), np.float64).ravel()
        along = np.asarray(X.T @ points) - np.outer(mean, points.sum(axis=0))
        projected = np.asarray(X @ along) - mean @ along
        combined, *_ = np.linalg.lstsq(projected, points, rcond=None)
        return mean, along @ combined


def nearest_landmark(
    places: NDArray[np.float32],
    landmarks: NDArray[np.float32],
    among: NDArray[np.bool_],
) -> NDArray[np.int32]:
    """Return the nearest landmark (Eq. 7) of places (Q, d), (Q,) int32.

    ``among``: (L,), which landmarks are asked.
    """
    numbers = np.flatnonzero(among).astype(np.int32)
    columns = np.ascontiguousarray(landmarks[numbers].T)
    labels = np.empty(len(places), np.int32)
    pair_loops.nearest_landmark(0, len(places), places, columns, labels)
    return numbers[labels]


def check_transform(method: str, metric: Any) -> None:
    """Raise InputError where new rows have no place by the method or the metric."""
    if get_method(method).kernel:
        check_metric(metric)


def _rows_times(X: Any, axes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return X @ axes, each row rounded as if it were alone."""
    if sparse.issparse(X):
        return np.asarray(X @ axes)
    rows = np.ascontiguousarray(X, np.float64)
    columns = [(rows * axis).sum(axis=1) for axis in axes.T]
    return np.stack(columns, axis=1)
