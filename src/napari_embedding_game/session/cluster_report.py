"""Describe the selected clusters: size, composition, pressure, contrasts."""

from __future__ import annotations

import itertools
import math
import warnings
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_embedding_game.core.snapshot import (
    is_defined,
    stretched_share,
    unlike_count,
)
from napari_embedding_game.data.dataset import Dataset

MAX_LEVELS = 8
MISSING = "missing"
MAX_COLUMNS = 12
MOST_NUMBERED = 30
"""More different whole numbers than these are measurements."""
FEWEST_DIGITS, MOST_DIGITS = 3, 17
"""Of the numbers in a text; as many as 17 tell any two apart."""


@dataclass(frozen=True, slots=True)
class Share:
    """How often one value of a metadata column occurs inside the selection."""

    level: str
    count: int
    share: float
    """Of the selected rows, 0 to 1."""
    share_overall: float
    """Of all rows, 0 to 1."""
    pooled: tuple[str, ...] = ()
    """The values that are summed up in this one."""

    @property
    def levels(self) -> tuple[str, ...]:
        """The values that these rows have."""
        return self.pooled or (self.level,)


@dataclass(frozen=True, slots=True)
class Contrast:
    """How one column differs between the selected rows and the rest."""

    name: str
    mean_inside: float
    mean_outside: float
    difference: float
    """Standardised mean difference (Cohen's d): positive is higher inside."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterReport:
    """Everything the inspector shows of a selection."""

    clusters: tuple[int, ...]
    size: int
    share: float
    mean_pressure: float
    """NaN where :attr:`has_pressure` is False, and so is the share."""
    pressured_share: float
    has_pressure: bool
    """Whether the method defines pressure."""
    stretched_share: float
    """Share of points that lie far from their neighbours; NaN where not known."""
    unlike_count: int = 0
    """Number of points that are unlike anything in the data."""
    column: str = ""
    composition: tuple[Share, ...] = ()
    draw: NDArray[np.intp]
    """Rows drawn at random from the selection, for pictures and texts."""


def cluster_report(
    dataset: Dataset,
    clusters: tuple[int, ...],
    labels: NDArray[np.integer],
    pressure: NDArray[np.floating],
    *,
    stretch: NDArray[np.floating] | None = None,
    isolation: NDArray[np.floating] | None = None,
    column: str = "",
    n_draw: int = 24,
    seed: int = 0,
) -> ClusterReport:
    """Describe the rows whose label is in ``clusters``.

    Parameters
    ----------
    dataset : Dataset
    clusters : tuple of int
        Ids of clusters.
    labels, pressure : array, shape (n,)
        All pressures are NaN where the method does not define it.
    stretch, isolation : array, shape (n,), optional
        None where it is not known.
    column : str
        Metadata column to compose by; "" for none.
    n_draw : int
        How many rows to draw at random.
    seed : int
        Another seed draws other rows.
    """
    rows = np.flatnonzero(np.isin(labels, clusters))
    chosen = pressure[rows]
    rng = np.random.default_rng(seed)
    draw = rng.choice(rows, size=min(n_draw, len(rows)), replace=False)
    is_composed = column in dataset.obs and len(rows)
    return ClusterReport(
        clusters=clusters,
        size=len(rows),
        share=len(rows) / max(len(labels), 1),
        mean_pressure=float(chosen.mean()) if len(rows) else 0.0,
        pressured_share=_pressured_share(chosen),
        has_pressure=is_defined(pressure),
        stretched_share=stretched_share(None if stretch is None else stretch[rows]),
        unlike_count=0 if isolation is None else unlike_count(isolation[rows]),
        column=column,
        composition=composition(dataset.obs[column], rows) if is_composed else (),
        draw=draw,
    )


def has_contrasts(dataset: Dataset) -> bool:
    """Return whether columns are measures: not genes, nor single pixels."""
    is_dense = isinstance(dataset.profile, np.ndarray)
    return is_dense and not dataset.has_expression and dataset.images is None


def contrasts(dataset: Dataset, points: NDArray[np.bool_]) -> tuple[Contrast, ...]:
    """Return the columns in which some points, (n,), differ most from the rest.

    At most ``MAX_COLUMNS``, by falling Cohen's d: its unit is the root of the mean of
    both variances, so that one odd row in a small cluster makes no contrast.  Missing
    values are left out; a column that is constant on both sides, or empty on one, makes
    none.
    """
    if points.all() or not points.any():
        return ()
    values = np.where(np.isfinite(dataset.profile), dataset.profile, np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # empty columns
        (mean_in, var_in), (mean_out, var_out) = (
            (
                np.nanmean(part, axis=0, dtype=float),
                np.nanvar(part, axis=0, dtype=float),
            )
            for part in (values[points], values[~points])
        )
        spread = np.sqrt((var_in + var_out) / 2)
        difference = (mean_in - mean_out) / np.where(spread > 0, spread, np.nan)
    best = np.argsort(-np.abs(np.nan_to_num(difference)), kind="stable")[:MAX_COLUMNS]
    names = dataset.profile_names
    return tuple(
        Contrast(names[g], float(mean_in[g]), float(mean_out[g]), float(difference[g]))
        for g in best
        if np.isfinite(difference[g]) and difference[g]
    )


def _pressured_share(pressure: NDArray[np.floating]) -> float:
    if not is_defined(pressure):
        return math.nan
    return float((pressure > 0).mean()) if len(pressure) else 0.0


def composition(values: pd.Series, rows: NDArray[np.intp]) -> tuple[Share, ...]:
    """Return how the rows divide over the column's values, the largest first.

    Numbers are divided into quarters of the whole column; what is beyond the
    largest ``MAX_LEVELS`` values is summed up as "other".
    """
    levels = as_levels(values)
    in_order = not is_continuous(values)  # ranges stay as they follow each other
    inside = levels.iloc[rows].value_counts(sort=in_order)
    overall = levels.value_counts(normalize=True)
    shares = [
        Share(str(level), int(count), count / len(rows), float(overall[level]))
        for level, count in inside[inside > 0].items()
    ]
    return tuple(_sum_up(shares))


def as_levels(values: pd.Series) -> pd.Series:
    """Return the column as categories, a numeric one cut into its quarters.

    Where all numbers are the same, they are one category.
    """
    if is_continuous(values):
        values = _quarters(values)
    named = values.astype("category").cat.rename_categories(str)
    if named.isna().any():
        named = named.cat.add_categories(MISSING).fillna(MISSING)
    return named


def is_continuous(values: pd.Series) -> bool:
    """Return whether a column holds measurements rather than names.

    Whole numbers with few values, such as cluster numbers, count as names.
    """
    is_number = pd.api.types.is_numeric_dtype(values)
    if not is_number or pd.api.types.is_bool_dtype(values):
        return False
    # Of very many rows the first nearly always tell.
    for known in (values.iloc[:1000].dropna(), values.dropna()):
        if (known % 1 != 0).any() or known.nunique() > MOST_NUMBERED:
            return True
    return False


def _quarters(values: pd.Series) -> pd.Series:
    numbers = pd.Series(values.to_numpy(float, na_value=np.nan), index=values.index)
    numbers = numbers.where(np.isfinite(numbers))
    edges = np.unique(numbers.quantile(np.linspace(0, 1, 5)).dropna())
    if len(edges) < 2:
        return values
    return pd.cut(numbers, edges, labels=_range_texts(edges), include_lowest=True)


def _range_texts(edges: NDArray[np.float64]) -> list[str]:
    """Return a text for each range, with as few digits as tell the edges apart."""
    texts: list[str] = []
    for digits in range(FEWEST_DIGITS, MOST_DIGITS + 1):
        texts = [_rounded(edge, digits) for edge in edges]
        if len(set(texts)) == len(edges):
            break
    return [f"{left} to {right}" for left, right in itertools.pairwise(texts)]


def _rounded(number: float, digits: int) -> str:
    """Return so many digits of a number, and zeros instead of an exponent."""
    return f"{float(f'{number:.{digits}g}'):.{max(digits, 15)}g}"


def _sum_up(shares: list[Share]) -> list[Share]:
    if len(shares) <= MAX_LEVELS:
        return shares
    head, tail = shares[: MAX_LEVELS - 1], shares[MAX_LEVELS - 1 :]
    other = Share(
        f"other ({len(tail)} more)",
        sum(s.count for s in tail),
        sum(s.share for s in tail),
        sum(s.share_overall for s in tail),
        tuple(s.level for s in tail),
    )
    return [*head, other]
