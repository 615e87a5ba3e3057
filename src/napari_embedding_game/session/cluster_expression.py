"""Expression of genes in clusters, in levels of a column, or in both combined."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter1d

from napari_embedding_game.core.inspect.group_sums import GroupSummary, summarize_groups
from napari_embedding_game.core.inspect.markers import iter_leading_markers
from napari_embedding_game.data.clustering import Clustering
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.expression import to_dense
from napari_embedding_game.session.cluster_report import is_continuous, to_levels

MAX_GENES = 200
"""Most genes of a figure, for reading and for memory."""
MAX_ROWS = 60
"""Most levels of a column that are rows of a figure."""
N_LEADING = 3
"""Number of markers of each group where no genes are named."""
MAX_PARTS = 12
"""Most levels by which each cluster is divided."""
BINS = 48
"""Number of bins of a violin."""
_SMOOTH = 1.5
"""Standard deviation, in bins, by which violins are smoothed."""
_AT_ONCE = 16
"""Number of genes whose values are in memory at a time."""


@dataclass(frozen=True, slots=True)
class RowChoice:
    """The rows of a figure: clusters, levels of ``column``, or pairs of both."""

    column: str = ""
    splits_clusters: bool = False
    """Whether each cluster has a row for each level in it."""

    @property
    def text(self) -> str:
        """The name of the choice in a menu, such as "Clusters by sample"."""
        if not self.column:
            return "Clusters"
        return f"Clusters by {self.column}" if self.splits_clusters else self.column


CLUSTERS = RowChoice()


def list_row_choices(dataset: Dataset, columns: Sequence[str]) -> list[RowChoice]:
    """Return the choices of figure rows: clusters, columns of few levels, and both.

    A column of at most ``MAX_ROWS`` levels is a choice by itself, and one of at most
    ``MAX_PARTS`` levels also a choice to divide each cluster by.  Measurements are left
    out.

    ``columns``: the informative metadata columns.
    """
    named = [column for column in columns if not is_continuous(dataset.obs[column])]
    n_levels = {column: dataset.obs[column].nunique(dropna=False) for column in named}
    alone = [RowChoice(c) for c, n in n_levels.items() if n <= MAX_ROWS]
    pairs = [RowChoice(c, True) for c, n in n_levels.items() if n <= MAX_PARTS]
    return [CLUSTERS, *alone, *pairs]


def assign_figure_rows(
    choice: RowChoice, dataset: Dataset, clustering: Clustering
) -> pd.Categorical:
    """Return the figure row of each point, (n,); rows of a cluster are consecutive.

    A row is named after a cluster, a level, or, as "cluster · level", a pair of both.
    Missing values are a level; levels and pairs without points have no row.
    """
    clusters = clustering.names_by_point
    if not choice.column:
        return clusters
    levels = to_levels(dataset.obs[choice.column]).cat.remove_unused_categories().array
    if not choice.splits_clusters:
        return levels
    # A pair is a number: those of the first cluster, of the second, ...
    n_levels = len(levels.categories)
    pairs = clusters.codes.astype(np.intp) * n_levels + levels.codes
    present, rows = np.unique(pairs, return_inverse=True)
    parts = (divmod(int(pair), n_levels) for pair in present)
    names = [f"{clusters.categories[i]} · {levels.categories[j]}" for i, j in parts]
    return pd.Categorical.from_codes(rows, names)


@dataclass(frozen=True, eq=False, kw_only=True)
class ClusterExpression:
    """Expression of G genes, or values of other features, in C groups of points."""

    sizes: tuple[int, ...]
    """(C,) number of points of each group."""
    genes: tuple[str, ...]
    """(G,) names."""
    summary: GroupSummary
    """(C, G) means and shares above 0."""
    densities: NDArray[np.floating]
    """(C, G, BINS) share of a group's points in each bin between the gene's range."""
    ranges: NDArray[np.floating]
    """(G, 2) lowest and highest value of each gene."""
    note: str = ""
    """A note on the figures, such as names that are not in the data."""

    def find_value_spans(self, *, is_each_whole: bool) -> NDArray[np.floating]:
        """Return where each gene's range begins and ends on the axis: (G, 2), 0 to 1.

        ``is_each_whole``: True if each gene has an axis of its own, so that its range
        is 0 to 1; False if all genes share an axis from the lowest to the highest value
        of all.
        """
        if is_each_whole:
            return np.tile([0.0, 1.0], (len(self.genes), 1))
        low, high = self.ranges.min(), self.ranges.max()
        spans: NDArray[np.floating] = self.ranges - low
        return spans / (high - low if high > low else 1.0)


def iter_cluster_expression(
    dataset: Dataset,
    groups: pd.Categorical,
    gene_names: Sequence[str] = (),
) -> Generator[float, None, ClusterExpression]:
    """Return the expression of genes in each group, after yielding the share done.

    The share, 0 to 1, is of the search for markers: with names of genes nothing is
    yielded.

    ``groups`` (n,): group of each point. ``gene_names``: names of genes; if empty, the
    leading markers of every group against all other points (t-test), three of each, a
    gene standing only under the first group it leads.

    Raises DataError: none of the names is in the data, the genes are more than
    ``MAX_GENES``, or no gene leads in any group.
    """
    note, codes = "", groups.codes.astype(np.intp)
    n_groups = len(groups.categories)
    if gene_names:
        match = dataset.find_profile_columns(gene_names)
        indices, note = match.indices, match.note
    else:
        indices = yield from _iter_marker_columns(dataset, codes, n_groups)
    if not indices:
        raise DataError(
            f"{note} Type names as the file has them, separated by commas."
            if gene_names
            else f"No {dataset.column_noun} leads in any row: choose other rows or "
            f"another number of clusters, or type names of {dataset.column_noun}s."
        )
    if len(indices) > MAX_GENES:
        raise DataError(
            f"These are {len(indices):,} names, and {MAX_GENES} can be shown beside "
            "each other: leave some out."
        )
    parts = [indices[i : i + _AT_ONCE] for i in range(0, len(indices), _AT_ONCE)]
    columns = map(dataset.expression.take_columns, parts)
    found = [
        (
            summarize_groups(values, codes, n_groups),
            *_estimate_densities(values, codes, n_groups),
        )
        for values in columns
    ]
    means = np.hstack([summary.means for summary, *_ in found])
    shares = np.hstack([summary.shares for summary, *_ in found])
    return ClusterExpression(
        sizes=tuple(np.bincount(codes, minlength=n_groups).tolist()),
        genes=tuple(dataset.profile_names[index] for index in indices),
        summary=GroupSummary(means, shares),
        densities=np.concatenate([one for _, one, _ in found], axis=1),
        ranges=np.concatenate([one for *_, one in found]),
        note=note,
    )


def _estimate_densities(
    values: Any, codes: NDArray[np.intp], n_groups: int
) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """Return smoothed histograms of each gene in each group, and ranges of the genes.

    ``values`` (n, G) array or sparse matrix, NaN where missing; ``codes`` (n,) group,
    -1 for none. Points without a value or group are left out.

    Returns (C, G, BINS) shares of a group's values in bins from a gene's lowest to its
    highest value, and (G, 2) lowest and highest values; both 0 for a gene without
    values.
    """
    densities = np.zeros((n_groups, values.shape[1], BINS))
    ranges = np.zeros((values.shape[1], 2))
    for gene, column in enumerate(to_dense(values).T):
        is_value = np.isfinite(column) & (codes >= 0)
        known, groups = column[is_value], codes[is_value]
        if len(known):
            low, high = ranges[gene] = known.min(), known.max()
            shares = (known - low) / (high - low if high > low else 1.0)
            bins = np.minimum((shares * BINS).astype(np.intp), BINS - 1)
            counts = np.bincount(groups * BINS + bins, minlength=n_groups * BINS)
            sizes = np.maximum(np.bincount(groups, minlength=n_groups), 1)
            densities[:, gene] = counts.reshape(n_groups, BINS) / sizes[:, None]
    return gaussian_filter1d(densities, _SMOOTH, axis=-1), ranges


def _iter_marker_columns(
    dataset: Dataset, codes: NDArray[np.intp], n_clusters: int
) -> Generator[float, None, list[int]]:
    """Yield the share done, and return the column indices of the leading markers.

    They are the first ``N_LEADING`` markers of each group, or fewer, that do not stand
    under a group before.
    """
    expression = dataset.expression
    ranked = yield from iter_leading_markers(
        expression.values, codes, n_clusters, log1p=expression.is_log1p
    )
    indices: dict[int, None] = {}
    for columns in ranked:
        fresh = [column for column in columns.tolist() if column not in indices]
        indices.update(dict.fromkeys(fresh[:N_LEADING]))
    return list(indices)
