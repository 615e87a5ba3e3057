"""Affinities and starts by their names.

Whoever adds one writes an entry into :data:`ROW_AFFINITIES` or :data:`STARTS`, as
``papers`` does.  The tables are light: a window reads them before anything is computed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

AFFINITIES = ("mixed", "uniform", "fuzzy", "entropic")
"""Those that need the neighbours alone."""


@dataclass(frozen=True, slots=True)
class RowAffinity:
    """An affinity that needs the rows: that of one method, and of no other."""

    title: str
    """What a window calls it."""
    edges: Callable[[Any, Any], Any]
    """(NeighborGraph, (N, D) rows) -> edges.Edges."""


ROW_AFFINITIES: dict[str, RowAffinity] = {}


@dataclass(frozen=True, slots=True)
class Start:
    """A start that is worked out of the rows."""

    title: str
    """What a window calls it."""
    compute: Callable[[Any, int, int, int], NDArray[np.float64]]
    """(rows, dimensions, neighbours, seed) -> (N, d)."""


def _pca(X: Any, n_components: int, _: int, seed: int) -> NDArray[np.float64]:
    from napari_embedding_game.core.graph.start import pca  # loads numba

    return pca(X, n_components, seed)


STARTS: dict[str, Start] = {"pca": Start("PCA", _pca)}


def start_names() -> tuple[str, ...]:
    """Return the names of all starts, those that need no rows first."""
    return ("spectral", "random", *STARTS)
