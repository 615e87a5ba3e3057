"""Expression of some genes in every cluster, for dot plots."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_embedding_game.core.inspect.group_sums import GroupSummary, summarize
from napari_embedding_game.core.inspect.markers import iter_leading
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.gene_names import find_names

MAX_GENES = 200
"""More columns can be neither read nor held."""
_AT_ONCE = 16
"""Columns that are in memory at a time, of all rows."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ClusterExpression:
    """What G genes, or other columns, are in C groups of points."""

    sizes: tuple[int, ...]
    """(C,) points of each."""
    genes: tuple[str, ...]
    """(G,) names."""
    summary: GroupSummary
    """(C, G) means and shares above 0."""
    note: str = ""
    """A note on the figures, such as names that are not in the data."""


def iter_cluster_expression(
    dataset: Dataset,
    groups: pd.Categorical,
    wanted: Sequence[str] = (),
    *,
    n_leading: int = 3,
) -> Generator[float, None, ClusterExpression]:
    """Yield the share done, 0 to 1, and return the expression in each group.

    ``groups`` (n,) are those of the points. ``wanted``: names of genes; if empty, the
    leading markers of every group against all other points (Wilcoxon), ``n_leading`` of
    each, a gene standing only under the first group it leads.

    Raises DataError: none of the names is in the data, they are too many, or nothing
    sets the groups apart.
    """
    note, codes = "", groups.codes.astype(np.intp)
    n_groups = len(groups.categories)
    if wanted:
        found = find_names(wanted, dataset.profile_names)
        places, note = found.places, found.note
    else:
        places = yield from _leading(dataset, codes, n_groups, n_leading)
    if not places:
        raise DataError(
            f"{note} Type names as the file has them, separated by commas."
            if wanted
            else f"No {dataset.word} leads in any row: choose other rows or another "
            f"number of clusters, or type names of {dataset.word}s."
        )
    if len(places) > MAX_GENES:
        raise DataError(
            f"These are {len(places):,} names, and {MAX_GENES} can be shown beside "
            "each other: leave some out."
        )
    summary = _summarized(dataset, places, codes, n_groups)
    return ClusterExpression(
        sizes=tuple(np.bincount(codes, minlength=n_groups).tolist()),
        genes=tuple(dataset.profile_names[place] for place in places),
        summary=summary,
        note=note,
    )


def _summarized(
    dataset: Dataset, places: Sequence[int], codes: NDArray[np.intp], n_clusters: int
) -> GroupSummary:
    """Return the figures of columns, a few columns at a time."""
    parts = [places[i : i + _AT_ONCE] for i in range(0, len(places), _AT_ONCE)]
    columns = map(dataset.expression.columns, parts)
    summaries = [summarize(values, codes, n_clusters) for values in columns]
    return GroupSummary(
        np.hstack([one.means for one in summaries]),
        np.hstack([one.shares for one in summaries]),
    )


def _leading(
    dataset: Dataset, codes: NDArray[np.intp], n_clusters: int, n_leading: int
) -> Generator[float, None, list[int]]:
    """Yield the share done, and return the columns of the leading markers."""
    expression = dataset.expression
    found = yield from iter_leading(
        expression.values, codes, n_clusters, log1p=expression.is_log1p
    )
    places: dict[int, None] = {}
    for columns in found:
        fresh = [column for column in columns.tolist() if column not in places]
        places.update(dict.fromkeys(fresh[:n_leading]))
    return list(places)
