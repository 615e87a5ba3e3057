"""Describe the selected clusters: size, composition, pressure, contrasts."""

from __future__ import annotations

import itertools
import math
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from napari_embedding_game.core.inspect.group_sums import (
    ColumnBlocks,
    is_read_by_column,
    iter_blocks,
)
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
BLOCK = 4096
"""Rows of an array that are summed up at a time, so that it takes little memory."""
ENTRIES = 1 << 20
"""Entries of a sparse matrix that are summed up at a time, for the same reason."""


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


@dataclass(frozen=True, slots=True)
class ColumnSums:
    """Count, sum and sum of squares of every column, missing values left out."""

    count: NDArray[np.float64]
    total: NDArray[np.float64]
    squares: NDArray[np.float64]

    @classmethod
    def of(cls, rows: Any) -> ColumnSums:
        """Sum up a (n, G) array or sparse matrix; the latter is not made dense."""
        if sp.issparse(rows):
            return cls(*_sparse_sums(rows))
        parts = np.zeros((3, rows.shape[1]))
        for begin in range(0, rows.shape[0], BLOCK):
            parts += _block_sums(rows[begin : begin + BLOCK])
        return cls(*parts)

    def contrast(self, inside: ColumnSums) -> tuple[NDArray[np.float64], ...]:
        """Return (mean inside, mean outside, standardised difference), each (G,).

        ``self`` is of all rows, ``inside`` of some of them.  The unit is the root
        of the mean of both sides' variances, so that one odd row inside a small
        cluster makes no contrast.  A column that is constant on both sides, or
        empty on one, differs by 0.
        """
        outside = ColumnSums(
            self.count - inside.count,
            self.total - inside.total,
            self.squares - inside.squares,
        )
        (mean_in, var_in), (mean_out, var_out) = inside.moments(), outside.moments()
        with np.errstate(divide="ignore", invalid="ignore"):
            difference = (mean_in - mean_out) / np.sqrt((var_in + var_out) / 2)
        return mean_in, mean_out, np.where(np.isfinite(difference), difference, 0.0)

    def moments(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return mean and variance of each column, NaN where there is no value."""
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = self.total / self.count
            variance = self.squares / self.count - mean**2
        # What is left of cancelled digits is no variance.
        noise = 1e-12 * self.squares / np.maximum(self.count, 1)
        return mean, np.where(variance > noise, variance, 0.0)


def _sums_by_column(
    values: ColumnBlocks, rows: NDArray[np.intp]
) -> Generator[float, None, tuple[ColumnSums, ColumnSums]]:
    """Yield the share done, and return the sums over all rows and over some."""
    n_columns = values.shape[1]
    sums = np.zeros((2, 3, n_columns))
    for first, last, block in iter_blocks(values):
        for place, part in enumerate((block, block[rows])):
            of_part = ColumnSums.of(part)
            found = of_part.count, of_part.total, of_part.squares
            sums[place, :, first:last] = found
        yield last / n_columns
    return ColumnSums(*sums[0]), ColumnSums(*sums[1])


def _sparse_sums(rows: Any) -> NDArray[np.float64]:
    """Return count, sum and sum of squares of each column: (3, G)."""
    n_rows, n_columns = rows.shape
    parts = np.zeros((3, n_columns))
    for columns, values in _entries(rows):
        known = np.isfinite(values)
        parts[0] -= np.bincount(columns[~known], minlength=n_columns)
        values = np.where(known, values, 0.0)
        parts[1] += np.bincount(columns, values, n_columns)
        parts[2] += np.bincount(columns, np.square(values), n_columns)
    parts[0] += n_rows
    return parts


def _entries(matrix: Any) -> Iterator[tuple[NDArray[Any], NDArray[np.float64]]]:
    """Yield columns and values of what a sparse matrix stores, part by part."""
    rows = matrix.tocsr()  # itself, if it is one
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    for begin in range(0, rows.nnz, ENTRIES):
        part = slice(begin, begin + ENTRIES)
        yield rows.indices[part], rows.data[part].astype(np.float64)


def _block_sums(rows: NDArray[Any]) -> NDArray[np.float64]:
    dense = np.asarray(rows).astype(np.float64)
    known = np.isfinite(dense)
    dense[~known] = 0.0
    return np.array([known.sum(0), dense.sum(0), np.square(dense).sum(0)])


class Reporter:
    """Describes selections of one dataset; remembers what does not change."""

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset
        self._sums: ColumnSums | None = None

    def describe(
        self,
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
            composition=self._composition(rows, column),
            draw=draw,
        )

    def _composition(self, rows: NDArray[np.intp], column: str) -> tuple[Share, ...]:
        if column not in self.dataset.obs or not len(rows):
            return ()
        return composition(self.dataset.obs[column], rows)

    def contrasts(self, points: NDArray[np.bool_]) -> tuple[Contrast, ...]:
        """Do all of :meth:`iter_contrasts`, and return what it found."""
        steps = self.iter_contrasts(points)
        while True:
            try:
                next(steps)
            except StopIteration as end:
                found: tuple[Contrast, ...] = end.value
                return found

    def iter_contrasts(
        self, points: NDArray[np.bool_]
    ) -> Generator[float, None, tuple[Contrast, ...]]:
        """Yield the share done, and return the columns that differ most.

        Some points are compared with the rest.

        Parameters
        ----------
        points : array, shape (n,)
            Whether each row is one of them.

        Returns
        -------
        tuple of Contrast
            At most ``MAX_COLUMNS``, the largest difference first; none where there
            is no rest, and where columns are single pixels, which tell nothing.
        """
        rows = np.flatnonzero(points)
        everything_or_nothing = len(rows) in (0, len(self.dataset.obs))
        if everything_or_nothing or self.dataset.images is not None:
            return ()
        values = self.dataset.expression.values
        if is_read_by_column(values):
            self._sums, inside = yield from _sums_by_column(values, rows)
        else:
            yield 0.0
            if self._sums is None:
                self._sums = ColumnSums.of(values)
            inside = ColumnSums.of(values[rows])
        columns = self._sums.contrast(inside)
        best = np.argsort(-np.abs(columns[2]), kind="stable")[:MAX_COLUMNS]
        names = self.dataset.profile_names
        return tuple(
            Contrast(names[g], *(float(part[g]) for part in columns))
            for g in best
            if columns[2][g] != 0
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
