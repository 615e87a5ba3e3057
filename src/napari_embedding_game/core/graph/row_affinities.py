"""Affinities that are worked out from the rows themselves; what registers here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

AFFINITIES = ("mixed", "uniform", "fuzzy", "entropic")
"""Those that need the neighbours alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowAffinity:
    """An affinity that needs more of the rows than their neighbours."""

    title: str
    """What a window calls it."""
    edges: Callable[[Any, Any], Any]
    """(NeighborGraph, (N, D) rows) -> affinities.Edges."""
    new_weights: Callable[[Any, Any, Any], Any] | None = None
    """((Q, D) new rows, fitted rows, (Q, K) neighbours) -> (Q, K) weights.  None: of
    its methods alone, for which no new edges are needed."""


ROW_AFFINITIES: dict[str, RowAffinity] = {}


def affinity_names() -> tuple[str, ...]:
    """Return the names of all affinities."""
    return (*AFFINITIES, *ROW_AFFINITIES)
