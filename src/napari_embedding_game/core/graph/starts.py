"""Layouts that a run can begin with, and the classical methods that make some.

Whoever adds a start writes an entry into :data:`STARTS`.  The table is light: a window
reads it before anything is computed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from napari_embedding_game.core.errors import InputError

_POWERS = 20
"""Of the principal components."""
Compute = Callable[[Any, int, int, int], NDArray[np.float64]]
"""Takes rows, dimensions, neighbours and seed, and returns the layout."""


@dataclass(frozen=True, slots=True)
class Start:
    """A classical method, by which points are placed."""

    title: str
    """What a window calls it."""
    compute: Compute
    most_rows: int | None = None
    """More than these would take hours or fill the memory."""
    takes_sparse: bool = True


def pca(
    X: Any, n_components: int, n_neighbors: int, random_state: int
) -> NDArray[np.float64]:
    """Project (N, D) rows on about the directions of largest variance, (N, d).

    Columns beyond the smaller of N and D are 0.
    """
    from napari_embedding_game.core.graph.components import principal_components
    from napari_embedding_game.core.graph.exact import shared
    from napari_embedding_game.core.graph.rows import Rows

    def dense(rows: Any) -> NDArray[np.float32]:
        return np.asarray(X[rows].toarray() / largest, np.float32)

    if sparse.issparse(X):
        X, largest = X.tocsr(), abs(X).max()
        take = dense
    else:
        take = Rows(X, "euclidean").take
    n = min(n_components, *X.shape)
    scores = principal_components(take, X.shape, n, random_state, shared(None), _POWERS)
    return filled(scores.astype(np.float64), n_components)


def filled(scores: NDArray[np.float64], n_components: int) -> NDArray[np.float64]:
    """Add columns of zeros where the rows have fewer dimensions than were asked."""
    missing = n_components - scores.shape[1]
    return np.pad(scores, ((0, 0), (0, missing)))


STARTS: dict[str, Start] = {"pca": Start("Principal components", pca)}


def start_names() -> tuple[str, ...]:
    """Return the names of all starts, those that need no rows first."""
    return ("spectral", "random", *STARTS)


def classical_layout(
    name: str,
    X: Any,
    n_components: int = 2,
    *,
    n_neighbors: int = 15,
    random_state: int = 0,
) -> NDArray[np.float32]:
    """Return the map of ``X`` by a classical method, (N, d) float32.

    Parameters
    ----------
    name : str
        One of :data:`STARTS`.
    X : (N, D) array or sparse matrix
        Finite numbers; distances are euclidean.
    n_components : int
        d, at least 1; columns beyond what the data allow are 0.
    n_neighbors : int
        K, for the methods with a neighbour graph.
    random_state : int
        The same seed gives the same layout.

    Raises
    ------
    InputError
        Another name, too many or too few rows, rows that are all the same, or
        sparse rows where the method needs dense ones.
    """
    from napari_embedding_game.core.graph.neighbors import check_rows, check_varied

    if name not in STARTS:
        raise InputError(
            f"The method must be one of {', '.join(STARTS)}, not {name!r}."
        )
    if n_components < 1:
        raise InputError(f"A map has at least 1 dimension, not {n_components}.")
    check_rows(X.shape[0], n_neighbors)
    check_varied(X)
    check_fits(name, X)
    layout = STARTS[name].compute(X, n_components, n_neighbors, random_state)
    return np.ascontiguousarray(layout, dtype=np.float32)


def check_fits(name: str, X: Any) -> None:
    """Raise InputError for rows that the method of :data:`STARTS` does not take."""
    method = STARTS[name]
    if method.most_rows is not None and X.shape[0] > method.most_rows:
        raise InputError(
            f"The method {method.title!r} is for at most {method.most_rows:,} rows, "
            f"and these are {X.shape[0]:,}: choose another method, or fewer rows."
        )
    if sparse.issparse(X) and not method.takes_sparse:
        raise InputError(
            f"The method {method.title!r} cannot read a sparse table: choose another "
            "method, or reduce the table to principal components first."
        )
