"""Affinities and starts by their names.

Whoever adds one writes an entry into :data:`ROW_AFFINITIES` or :data:`STARTS`, as
``papers`` does.  Light: a window reads them before anything is computed.  Distances are
no entry here: ``rows.SEARCHED``, and what other libraries know.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

AFFINITIES = ("mixed", "uniform", "fuzzy", "entropic")
"""Those that need the neighbours alone."""


class OfRows(NamedTuple):
    """What is worked out of the rows; ``title``: what a window calls it."""

    title: str
    compute: Callable[..., Any]


def _pca(X: Any, n_components: int, _: int, seed: int) -> Any:
    from napari_embedding_game.core.graph.principal_components import pca

    return pca(X, n_components, seed)


ROW_AFFINITIES: dict[str, OfRows] = {}
"""Each of one method, and of no other: (NeighborGraph, (N, D) rows) -> edges.Edges."""
STARTS = {"pca": OfRows("PCA", _pca)}
"""(rows, dimensions, neighbours, seed) -> (N, d) float64."""
