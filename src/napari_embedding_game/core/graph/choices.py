"""Registries of affinities and start layouts by name.

A further affinity or start is an entry of :data:`ROW_AFFINITIES` or :data:`STARTS`, as
``papers`` adds them.  This module imports nothing heavy, because the window reads it
before anything is computed.  Distances are listed in ``rows.SEARCHED`` and in the
libraries, not here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

AFFINITIES = ("mixed", "uniform", "fuzzy", "entropic")
"""Affinities that are computed from the neighbour graph alone."""


class RowBasedChoice(NamedTuple):
    """An affinity or start that ``compute`` returns from the rows.

    ``title``: its name in a window.
    """

    title: str
    compute: Callable[..., Any]


def _make_pca_start(X: Any, n_components: int, _n_neighbors: int, seed: int) -> Any:
    """Return the principal components of rows X (N, D), (N, n_components) float64.

    Missing components are 0.  ``seed``: of the power iterations.
    """
    from napari_embedding_game.core.graph.principal_components import pca

    return pca(X, n_components, seed)


ROW_AFFINITIES: dict[str, RowBasedChoice] = {}
"""Affinities that one method alone uses.

``compute(NeighborGraph, (N, D) rows)`` returns ``edges.Edges``.
"""
STARTS = {"pca": RowBasedChoice("PCA", _make_pca_start)}
"""``compute(rows, n_components, n_neighbors, seed)``: a layout (N, d) float64."""
