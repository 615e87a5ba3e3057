"""The classical methods by name: starts for a game, and maps for reproductions.

To add one: a function in a module beside this one, and a line in :data:`CLASSICAL`.
The table is light: a window reads it before anything is computed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from napari_embedding_game.core.errors import InputError

Compute = Callable[[Any, int, int, int], NDArray[np.float64]]
"""Takes rows, dimensions, neighbours and seed, and returns the layout."""


@dataclass(frozen=True, slots=True)
class Classical:
    """A method that needs no game."""

    title: str
    """What a window calls it."""
    source: str
    """Where it is described."""
    compute: Compute
    most_rows: int | None = None
    """More than these would take hours or fill the memory."""
    takes_sparse: bool = True


def _later(place: str) -> Compute:
    """Return a function of a module beside this one, imported when it is called."""
    module, name = place.split(".")

    def compute(
        X: Any, n_components: int, n_neighbors: int, random_state: int
    ) -> NDArray[np.float64]:
        function: Compute = getattr(import_module(f"{__name__}.{module}"), name)
        return function(X, n_components, n_neighbors, random_state)

    return compute


CLASSICAL: dict[str, Classical] = {
    "pca": Classical(
        "Principal components", "paper 2, Theorem 1.5", _later("linear.pca")
    ),
    "gradient_pca": Classical(
        "Principal components by a game",
        "paper 2, Theorem 1.7 and Remark 6.23",
        _later("linear.gradient_pca"),
    ),
    "random_projection": Classical(
        "Random directions", "paper 2, Section 2", _later("linear.random_projection")
    ),
    "le": Classical(
        "Laplacian eigenmap (LE)", "paper 2, Alg. 1", _later("eigenmaps.le")
    ),
    "ale": Classical(
        "Averaged eigenmap (ALE)", "paper 2, Def. 3.5", _later("eigenmaps.ale")
    ),
    "vrle": Classical(
        "Variable-radius eigenmap (VRLE)", "paper 2, Def. 3.6", _later("eigenmaps.vrle")
    ),
    "isomap": Classical(
        "Isomap", "paper 2, Alg. 2", _later("unfolding.isomap"), most_rows=5_000
    ),
    "lle": Classical(
        "Locally linear (LLE)",
        "Roweis and Saul, 2000",
        _later("unfolding.lle"),
        most_rows=5_000,
        takes_sparse=False,
    ),
}


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
        One of :data:`CLASSICAL`.
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

    if name not in CLASSICAL:
        raise InputError(
            f"The method must be one of {', '.join(CLASSICAL)}, not {name!r}."
        )
    if n_components < 1:
        raise InputError(f"A map has at least 1 dimension, not {n_components}.")
    check_rows(X.shape[0], n_neighbors)
    check_varied(X)
    check_fits(name, X)
    layout = CLASSICAL[name].compute(X, n_components, n_neighbors, random_state)
    return np.ascontiguousarray(layout, dtype=np.float32)


def check_fits(name: str, X: Any) -> None:
    """Raise InputError for rows that the method of :data:`CLASSICAL` does not take."""
    method = CLASSICAL[name]
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
