"""Describe the selected clusters: size, composition, contrasts."""

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
MAX_NUMBERED = 30
"""More different whole numbers than these are measurements."""
MIN_DIGITS, MAX_DIGITS = 3, 17
"""Digits of the numbers in a text; 17 distinguish any two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterReport:
    """Everything the inspector shows of a selection."""

    size: int
    share: float
    """Of all points, 0 to 1."""
    stretched_share: float
    """Share of points that lie far from their neighbours; NaN where not known."""
    unlike_count: int
    """Number of points that are unlike anything in the data."""
    column: str
    composition: pd.DataFrame
    """As :func:`composition` returns it; empty without a column."""
    sampled: NDArray[np.intp]
    """Rows drawn at random from the selection, for pictures and texts."""
    contrasts: pd.Series
    """As :func:`contrasts` returns it; empty where columns are no measures."""


def describe_points(
    dataset: Dataset,
    points: NDArray[np.bool_],
    snapshot: Snapshot,
    *,
    column: str = "",
    n_sampled: int = 24,
) -> ClusterReport:
    """Describe some points, (n,).

    ``column``: metadata column to compose by; "" for none. ``n_sampled``: how many rows
    to sampled at random.
    """
    rows = np.flatnonzero(points)
    stretch, isolation = snapshot.stretch, snapshot.isolation
    rng = np.random.default_rng(0)
    composed, contrasted = pd.DataFrame(), pd.Series(dtype=float)
    if column in dataset.obs and len(rows):
        composed = compose_by_level(dataset.obs[column], rows)
    if dataset.has_measures:
        contrasted = contrast_columns(dataset, points)
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


def contrast_columns(dataset: Dataset, points: NDArray[np.bool_]) -> pd.Series:
    """Return the columns in which some points, (n,), differ most from the rest.

    At most ``MAX_COLUMNS``, by falling Cohen's d: positive where inside is higher.  Its
    unit is the root of the mean of both variances, so that one odd row in a small
    cluster makes no contrast.  Missing values are left out; a column that is constant
    on both sides, or empty on one, makes none.
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


def compose_by_level(values: pd.Series, rows: NDArray[np.intp]) -> pd.DataFrame:
    """Return how the rows divide over the column's values, the largest first.

    Numbers are divided into quarters of the whole column; what is beyond the
    largest ``MAX_LEVELS`` values is summed up as "other".  Each row has ``level``,
    ``count``, ``share`` of these rows and ``of_all``, 0 to 1, and ``levels``: the
    values that are summed up in it.
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
    """Return the column as categories, a numeric one cut into its quarters.

    Where all numbers are the same, they are one category.
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
    """Return whether a column holds measurements rather than names.

    Whole numbers with few values, such as cluster numbers, count as names.
    """
    if values.dtype.kind not in "iuf":
        return False
    # The first of very many rows nearly always suffice.
    for part in (values.iloc[:1000], values):
        filled = part.dropna().astype(float)  # other types have no remainder
        if (filled % 1 != 0).any() or part.nunique() > MAX_NUMBERED:
            return True
    return False


def _cut_into_quarters(values: pd.Series) -> pd.Series:
    numbers = pd.Series(values.to_numpy(float, na_value=np.nan), index=values.index)
    numbers = numbers.where(np.isfinite(numbers))
    if numbers.nunique() < 2:
        return values
    levels, edges = pd.qcut(numbers, 4, retbins=True, duplicates="drop")
    return levels.cat.rename_categories(_range_texts(edges))


def _range_texts(edges: NDArray[np.float64]) -> list[str]:
    """Return a text for each range, with as few digits as distinguish the edges."""
    texts: list[str] = []
    for digits in range(MIN_DIGITS, MAX_DIGITS + 1):
        numbers = [float(f"{edge:.{digits}g}") for edge in edges]
        texts = [f"{number:.{max(digits, 15)}g}" for number in numbers]  # no exponent
        if len(set(texts)) == len(edges):
            break
    return [f"{left} to {right}" for left, right in itertools.pairwise(texts)]
