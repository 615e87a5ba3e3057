"""A description of selected points: size, composition and contrasts."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_embedding_game.core.inspect.group_sums import (
    iter_group_figures,
    run_to_result,
)
from napari_embedding_game.core.snapshot import (
    MISPLACED_STRETCH,
    OUTLIER_ISOLATION,
    Snapshot,
    compute_share_above,
)
from napari_embedding_game.data.columns import (
    NO_LEVEL,
    make_names_unique,
    to_text_levels,
)
from napari_embedding_game.data.dataset import Dataset

MAX_LEVELS = 8
MAX_COLUMNS = 12
MIN_DIGITS, MAX_DIGITS = 3, 17
"""Digits of numbers in a text; 17 digits distinguish any two floats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterReport:
    """The facts that the inspector shows of selected points."""

    size: int
    share: float
    """Share of all points, 0 to 1."""
    stretched_share: float
    """Share of points that lie far from their neighbours; NaN where unknown."""
    unlike_count: int
    """Number of points that are unlike all others in the data."""
    column: str
    composition: pd.DataFrame
    """The table of :func:`make_composition_table`; empty without a column."""
    sampled: NDArray[np.intp]
    """Rows sampled from the selection, for pictures and texts."""
    contrasts: pd.Series
    """The series of :func:`rank_differing_columns`; empty where columns are no
    measures."""


def describe_points(
    dataset: Dataset,
    points: NDArray[np.bool_],
    snapshot: Snapshot,
    *,
    column: str = "",
    n_sampled: int = 24,
) -> ClusterReport:
    """Return size, composition by a column and contrasts of a group of points.

    ``points`` (n,) bool: the group. ``column``: metadata column of the composition;
    ``""``, or a column that does not exist, for none. ``n_sampled``: most rows that are
    sampled at random from the group, by a fixed seed.
    """
    rows = np.flatnonzero(points)
    stretch, isolation = snapshot.stretch, snapshot.isolation
    rng = np.random.default_rng(0)
    composed, contrasted = pd.DataFrame(), pd.Series(dtype=float)
    if column in dataset.obs and len(rows):
        composed = make_composition_table(dataset.obs[column], rows)
    if dataset.has_measures:
        contrasted = rank_differing_columns(dataset, points)
    return ClusterReport(
        size=len(rows),
        share=len(rows) / max(len(points), 1),
        stretched_share=compute_share_above(
            None if stretch is None else stretch[rows], MISPLACED_STRETCH
        ),
        unlike_count=0
        if isolation is None
        else int((isolation[rows] > OUTLIER_ISOLATION).sum()),
        column=column,
        composition=composed,
        sampled=rng.choice(rows, size=min(n_sampled, len(rows)), replace=False),
        contrasts=contrasted,
    )


def rank_differing_columns(dataset: Dataset, points: NDArray[np.bool_]) -> pd.Series:
    """Return Cohen's d of the columns in which a group differs most from other points.

    The series, by name of the column, has at most ``MAX_COLUMNS`` entries, by falling
    absolute d; d is positive where the group is higher.  The unit of d is the root of
    the mean of both variances, so that one outlier in a small group makes no contrast.
    Missing values are left out.  So are columns that are constant on both sides, or
    that have no values on one side.

    ``points`` (n,) bool: the group.
    """
    sides = iter_group_figures(dataset.profile, np.where(points, 0, 1), 2)
    counts, means, squares, _ = run_to_result(sides)
    spread = np.sqrt((squares / np.maximum(counts, 1)).mean(axis=0))
    difference = np.where((counts > 0).all(axis=0), means[0] - means[1], 0.0)
    # Where both sides are constant, rounding may leave some spread.
    differs = (difference != 0) & (spread > 1e-9 * np.abs(difference))
    names = np.array(dataset.profile_names, dtype=object)
    d = pd.Series(difference[differs] / spread[differs], names[differs])
    return d.iloc[np.argsort(-d.abs().to_numpy(), kind="stable")[:MAX_COLUMNS]]


def make_composition_table(values: pd.Series, rows: NDArray[np.intp]) -> pd.DataFrame:
    """Return a table of the levels of a column among some rows.

    The most frequent level is first, but measurements are binned into quarters of the
    whole column, which stay in their order.  Missing values are a level.  Where there
    are more than ``MAX_LEVELS`` levels, the last ones are summed up as "other".

    The columns are ``level``, ``count``, ``share`` of these rows, ``of_all`` (the
    level's share of all points), both 0 to 1, and ``levels`` (a tuple of the levels
    that are summed up in this entry).
    """
    levels = to_levels(values)
    in_order = not is_continuous(values)  # ranges stay as they follow each other
    counts = levels.iloc[rows].value_counts(sort=in_order)
    counts = counts[counts > 0]
    names, n_other = counts.index.astype(str), len(counts) - MAX_LEVELS + 1
    of_all = levels.value_counts(normalize=True)[counts.index]
    parts = pd.DataFrame(
        {"count": counts.array, "of_all": of_all.array, "level": names}
    )
    parts["levels"] = names
    sums = {"level": "first", "count": "sum", "of_all": "sum", "levels": tuple}
    last = MAX_LEVELS - 1 if n_other > 1 else len(parts)
    table = parts.groupby(np.minimum(parts.index, last)).agg(sums)
    if n_other > 1:
        table.loc[last, "level"] = f"other ({n_other} more)"
    return table.assign(share=table["count"] / len(rows))


def to_levels(values: pd.Series) -> pd.Series:
    """Return a column as categories of text; measurements are binned into quarters.

    Missing values are a category of their own, the last.
    """
    levels = to_text_levels(
        _cut_into_quarters(values) if is_continuous(values) else values
    )
    if not levels.isna().any():
        return levels
    names = levels.cat.categories
    missing = make_names_unique(names.append(pd.Index([NO_LEVEL])))[-1]
    return levels.cat.add_categories(missing).fillna(missing)


def is_continuous(values: pd.Series) -> bool:
    """Return whether a column holds measurements: numbers are no groups.

    Numbers that group rows are categories since the column was read, see
    :mod:`~.data.roles`.
    """
    return values.dtype.kind in "iuf"


def _cut_into_quarters(values: pd.Series) -> pd.Series:
    """Return a column cut at its quartiles, as categories named by their ranges.

    Infinite numbers become missing.  A column with fewer than two different finite
    numbers is returned unchanged.
    """
    numbers = pd.Series(values.to_numpy(float, na_value=np.nan), index=values.index)
    numbers = numbers.where(np.isfinite(numbers))
    if numbers.nunique() < 2:
        return values
    levels, edges = pd.qcut(numbers, 4, retbins=True, duplicates="drop")
    return levels.cat.rename_categories(_format_ranges(edges))


def _format_ranges(edges: NDArray[np.float64]) -> list[str]:
    """Return a text such as "1.5 to 2" for the range between each two adjacent edges.

    Numbers have the fewest digits, from ``MIN_DIGITS`` on, that distinguish all edges.
    """
    texts: list[str] = []
    for digits in range(MIN_DIGITS, MAX_DIGITS + 1):
        numbers = [float(f"{edge:.{digits}g}") for edge in edges]
        texts = [f"{number:.{max(digits, 15)}g}" for number in numbers]  # no exponent
        if len(set(texts)) == len(edges):
            break
    return [f"{left} to {right}" for left, right in itertools.pairwise(texts)]
