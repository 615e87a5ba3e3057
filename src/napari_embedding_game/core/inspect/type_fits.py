"""Score how well the marker genes of known types fit groups of rows.

A type fits a group if its genes are higher there than in other groups, in enough rows,
and more clearly than random genes of the same expression would be.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.inspect.group_sums import (
    FloatArray,
    iter_group_figures,
)

IntArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]

HIGH_CHANGE, HIGH_SHARE = 1.0, 0.1
"""Log2 fold change, and share of a group's rows above 0, of a gene that is high."""
MIN_HIGH_SHARE, MIN_HIGH, ENOUGH_HIGH = 1 / 3, 2, 5
"""Least share of a type's genes that are high where it fits, but two genes at least;
five are enough for a long list."""
MIN_TOP_SHARE = 0.2
"""Share of the group's rows that have a high gene of the type, for one gene at least:
below it the type is a small part of the group."""
MAX_P = 0.01
"""Share of random tables that may fit a group as well as the best type."""
N_RANDOM = 300
"""Number of random tables."""
CLEAR = 0.8
"""Most of the best kind's score that another kind of the same parent may have."""
_PRIOR_ROWS = 10
"""Rows of the overall mean that are added to a group, so that few rows say little."""
_FLOOR = 0.1
"""Added to means before a ratio is taken: 1 in 100,000 counts."""
_MAX_CHANGE = 3.0
"""Log2 fold change from which on a gene counts no more: single genes decide less."""
_MAX_BINS, _BIN_SIZE = 25, 100
"""Most bins of mean expression, in which random genes are drawn, and least genes of
one: of few genes the markers would be drawn again."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TypeTable:
    """Where the genes of T types stand in the data."""

    columns: tuple[IntArray, ...]
    """For each type the columns of its genes that the data have."""
    n_listed: IntArray
    """(T,) number of genes of each type, with those that the data lack."""
    parents: IntArray
    """(T,) index of the type that each type is a kind of, -1 for none."""

    def to_weights(self) -> tuple[IntArray, FloatArray, FloatArray]:
        """Return the M columns of all genes, and two weight matrices (T, M).

        The first matrix has the weight of each type's own genes, the second that of its
        own and its parent's.  A gene of fewer types weighs more: log(1 + T / types).
        """
        every = [*self.columns, np.empty(0, np.intp)]
        columns = np.unique(np.concatenate(every)).astype(np.intp)
        own = np.zeros((len(self.columns), len(columns)))
        for row, genes in zip(own, self.columns, strict=True):
            row[np.searchsorted(columns, genes)] = 1.0
        is_kind = self.parents >= 0
        both = own.copy()
        both[is_kind] = np.maximum(own[is_kind], own[self.parents[is_kind]])
        return columns, _weigh_rare_genes(own), _weigh_rare_genes(both)


@dataclass(frozen=True, eq=False, kw_only=True)
class TypeFits:
    """How well T types fit C groups; M genes are in the table and in the data."""

    columns: IntArray
    """(M,) column of each gene in the data."""
    changes: FloatArray
    """(C, M) log2 fold change against the half of the groups that have least."""
    shares: FloatArray
    """(C, M) share of a group's rows above 0."""
    scores: FloatArray
    """(C, T) standard deviations by which a type's genes, and its parent's, are higher
    than those of random tables."""
    fits: BoolArray
    """(C, T) whether each type fits."""
    best: IntArray
    """(C,) the suggested type, -1 where none fits."""
    second: IntArray
    """(C,) the next type that fits and is not the parent or a kind of the best, -1 for
    none; of a suggested parent its best kind."""

    def is_high(self) -> BoolArray:
        """Return whether each gene is high in each group, (C, M)."""
        return (self.changes >= HIGH_CHANGE) & (self.shares >= HIGH_SHARE)


def iter_type_fits(
    X: Any, codes: NDArray[np.integer], n_groups: int, table: TypeTable
) -> Generator[float, None, TypeFits]:
    """Yield the share done, 0 to 1, and return how well each type fits each group.

    1. The mean of a gene in a group is drawn towards its overall mean as by ten rows.
    2. Its change is log2 of exp(mean) - 1, over the mean of that in the half of the
       groups that have least, each group once.  So a type that is in many groups is
       still seen.
    3. The score of a type is the weighted mean of the changes, limited to -3 and 3, of
       its genes and its parent's, in standard deviations of that of random tables.  In
       a random table each gene is replaced by one of about the same mean expression.
    4. A type fits if enough of its own genes are high (``MIN_HIGH_SHARE``), one of them
       in many rows (``MIN_TOP_SHARE``), and if at most ``MAX_P`` of the random tables
       have a type of which this is true and whose score is as high.
    5. The best type has the highest score of all whose parent, or of whose kinds one,
       fits.
    6. Its family being known, a kind is suggested if it fits, and if by its own genes
       it stands out from other kinds that fit; else the parent.

    Parameters
    ----------
    X
        (N, G) log1p values, an array or sparse matrix.
    codes
        (N,) group of each row, -1 for rows in no group.
    n_groups
        Number of groups C, two or more.
    table
        The types and their genes.
    """
    figures = yield from iter_group_figures(X, codes, n_groups)
    n, means, _, positive = figures
    shares = positive / np.maximum(n, 1)
    changes = _compute_changes(n, means)
    columns, own, both = table.to_weights()
    level = (n * means).sum(axis=0)
    tables = [columns, *_draw_similar_columns(level, columns)]
    is_high = (changes >= HIGH_CHANGE) & (shares >= HIGH_SHARE)
    is_common = is_high & (shares >= MIN_TOP_SHARE)
    fits = _find_fitting_types(is_high, is_common, tables, own > 0, table.n_listed)
    limited = np.clip(changes, -_MAX_CHANGE, _MAX_CHANGE)
    scores = _score_types(limited, tables, both)
    # The best type of each random table: (N_RANDOM, C).
    highest = np.where(fits, scores, -np.inf)[1:].max(axis=2, initial=-np.inf)
    n_as_high = (highest[:, :, None] >= scores[0]).sum(axis=0)
    fits, scores = fits[0] & (1 + n_as_high <= MAX_P * len(tables)), scores[0]
    own_scores = _score_types(limited, tables, own)[0]
    families = np.where(table.parents < 0, np.arange(len(own)), table.parents)
    best, second = np.full((2, n_groups), -1, np.intp)
    for group in range(n_groups):
        of_group = scores[group], own_scores[group], fits[group]
        best[group], second[group] = _choose_types(*of_group, families)
    return TypeFits(
        columns=columns,
        changes=changes[:, columns],
        shares=shares[:, columns],
        scores=scores,
        fits=fits,
        best=best,
        second=second,
    )


def _choose_types(
    scores: FloatArray, own_scores: FloatArray, fits: BoolArray, families: IntArray
) -> tuple[int, int]:
    """Return the best type of a group and the second, -1 where there is none.

    ``families`` (T,): the parent of each type, or the type itself.
    """
    fitting_families = np.unique(families[fits])
    if not len(fitting_families):
        return -1, -1
    tops = [scores[families == family].max() for family in fitting_families]
    ranked = fitting_families[np.argsort(-np.array(tops), kind="stable")]
    chosen: list[int] = []
    for family in ranked[:2].tolist():
        kinds = np.flatnonzero((families == family) & fits)
        kinds = kinds[kinds != family]
        kinds = kinds[np.argsort(-own_scores[kinds], kind="stable")]
        is_clear = len(kinds) == 1 or (
            len(kinds) > 1 and own_scores[kinds[1]] < CLEAR * own_scores[kinds[0]]
        )
        chosen.append(int(kinds[0]) if is_clear else family)
        if len(kinds) and not is_clear:
            chosen.append(int(kinds[0]))
    return chosen[0], chosen[1] if len(chosen) > 1 else -1


def _compute_changes(n: FloatArray, means: FloatArray) -> FloatArray:
    """Return the log2 fold change of each group and column, (C, G).

    ``n``, ``means`` (C, G): number of known values, and their mean of log1p values.
    """
    overall = (n * means).sum(axis=0) / np.maximum(n.sum(axis=0), 1)
    steady = (n * means + _PRIOR_ROWS * overall) / (n + _PRIOR_ROWS)
    levels = np.expm1(steady)
    n_least = -(-len(levels) // 2)
    least = np.sort(levels, axis=0)[:n_least].mean(axis=0)
    changes: FloatArray = np.log2((levels + _FLOOR) / (least + _FLOOR))
    return changes


def _weigh_rare_genes(is_gene: FloatArray) -> FloatArray:
    """Return weights (T, M) of genes, each row with the sum 1, or 0 without genes.

    ``is_gene`` (T, M): 1 for a type's genes, else 0.
    """
    n_types = is_gene.sum(axis=0)
    weights: FloatArray = is_gene * np.log(1 + len(is_gene) / np.maximum(n_types, 1))
    sums = weights.sum(axis=1, keepdims=True)
    np.divide(weights, sums, out=weights, where=sums > 0)
    return weights


def _draw_similar_columns(level: FloatArray, columns: IntArray) -> IntArray:
    """Return random columns of about the same level, (N_RANDOM, M); always the same.

    ``level`` (G,): expression by which all columns are ranked.  ``columns`` (M,): those
    to replace.
    """
    rng = np.random.default_rng(0)
    order = np.argsort(level, kind="stable")
    bins = np.empty(len(order), np.intp)
    n_bins = int(np.clip(len(order) // _BIN_SIZE, 1, _MAX_BINS))
    bins[order] = np.arange(len(order)) * n_bins // max(len(order), 1)
    pools = [np.flatnonzero(bins == number) for number in range(n_bins)]
    drawn = np.empty((N_RANDOM, len(columns)), np.intp)
    for at, number in enumerate(bins[columns]):
        drawn[:, at] = rng.choice(pools[number], N_RANDOM)
    return drawn


def _find_fitting_types(
    is_high: BoolArray,
    is_common: BoolArray,
    tables: Sequence[IntArray],
    is_gene: BoolArray,
    n_listed: IntArray,
) -> BoolArray:
    """Return whether enough genes of each type are high, (tables, C, T).

    ``is_high``, ``is_common`` (C, G): of all columns; of a type one gene has to be
    common.  ``tables``: M columns for each table.  ``is_gene`` (T, M): whether a gene
    is one of a type's own.
    """
    needed = np.clip(np.ceil(MIN_HIGH_SHARE * n_listed), MIN_HIGH, ENOUGH_HIGH)
    of_types = is_gene.T.astype(float)
    high, common = is_high.astype(float), is_common.astype(float)
    fits: BoolArray = np.stack(
        [
            (high[:, each] @ of_types >= needed) & (common[:, each] @ of_types >= 1)
            for each in tables
        ]
    )
    return fits


def _score_types(
    changes: FloatArray, tables: Sequence[IntArray], weights: FloatArray
) -> FloatArray:
    """Return the scores of each table, (tables, C, T); 0 for a type without genes.

    A score is the weighted mean change, in standard deviations of those of the random
    tables, which are all but the first.
    """
    means = np.stack([changes[:, each] @ weights.T for each in tables])
    spread = means[1:].std(axis=0)
    above = means - means[1:].mean(axis=0)
    scores: FloatArray = np.zeros_like(above)
    np.divide(above, spread, out=scores, where=spread > 0)
    return scores


def find_evidence(
    fits: TypeFits, table: TypeTable, group: int, kind: int
) -> tuple[IntArray, IntArray]:
    """Return the genes that speak for a type in a group, as indices into ``columns``.

    The first array has the high genes of the type, by falling change times share; the
    second those of its parent, likewise, without repeats.
    """
    strength = fits.changes[group] * fits.shares[group]
    is_high = fits.is_high()[group]

    def find_high_genes(type_index: int) -> IntArray:
        """Return the high genes of a type by falling strength."""
        genes = np.searchsorted(fits.columns, np.unique(table.columns[type_index]))
        genes = genes[is_high[genes]]
        return np.asarray(genes[np.argsort(-strength[genes], kind="stable")], np.intp)

    own, parent = find_high_genes(kind), int(table.parents[kind])
    inherited = find_high_genes(parent) if parent >= 0 else own[:0]
    return own, inherited[~np.isin(inherited, own)]
