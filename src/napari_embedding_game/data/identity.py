"""Decide whether a source that is read again has the same rows as before.

Names prove nothing: "0" to "799" name the rows of any 800 rows, and a table without
names numbers its rows anew when it is sorted. A row is the same where its numbers are
the same, so each row of a source has a hash of its raw numbers, for any choice of
columns to embed. Tables are joined with labels of images by :mod:`images.join`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from napari_embedding_game.data.columns import list_text, make_names_unique
from napari_embedding_game.data.errors import DataError

if TYPE_CHECKING:
    from anndata import AnnData

    from napari_embedding_game.data.dataset import Dataset

Part: TypeAlias = str | tuple[str, ...]
"""A matrix of a source by its name, such as "X", or table columns by their names."""
RowHashes: TypeAlias = Mapping[Part, NDArray[np.uint64]]
"""(n_source_rows,) hash of the numbers of each row in a part, keyed by the part."""

MAX_COLUMNS = 256
"""Number of evenly spaced columns of a wide dense matrix that are hashed: these
distinguish rows as well as all columns do, and take little time."""
MIN_DISTINCT_SHARE = 0.9
"""Share of the distinct rows of the best part that another part needs to count."""
_ROWS, _VALUES = 4_096, 1 << 15
"""Number of rows, or of values of a dense matrix, hashed at a time: all steps then stay
in the processor's cache, which makes them five times as fast."""
CHANGED_MESSAGE = "{} has changed since it was read: {}. {}"
KEPT_MAP_REMEDY = (
    "The map is kept as it is: put the former file back, or open the new one under "
    '"Open other data".'
)
"""Remedy where the file of an open map has other rows than before."""


@dataclass(frozen=True, eq=False)
class Identity:
    """Names and hashes by which the n rows of a source are recognised."""

    names: pd.Index
    """(n,) names of the rows."""
    row_hashes: RowHashes
    """Hashes of the parts that were read; empty where a source can never change."""

    @classmethod
    def from_dataset(cls, dataset: Dataset) -> Identity:
        """Return the names and hashes of all rows of a dataset's source."""
        return cls(dataset.source_obs_names, dataset.row_hashes)

    @property
    def distinguishing_parts(self) -> list[Part]:
        """Parts with at least 0.9 times as many distinct rows as the best part."""
        hashes = self.row_hashes
        n_distinct = {part: len(pd.unique(one)) for part, one in hashes.items()}
        least = MIN_DISTINCT_SHARE * max(n_distinct.values(), default=0)
        return [part for part, n in n_distinct.items() if n >= least]

    def shares_row_hashes(self, other: Identity) -> bool:
        """Return whether a distinguishing part has equal hashes in both, row by row."""
        shared = [
            part for part in self.distinguishing_parts if part in other.row_hashes
        ]
        ours, theirs = self.row_hashes, other.row_hashes
        return any(np.array_equal(ours[part], theirs[part]) for part in shared)


def align_rows(
    known: Identity, found: Identity, source_name: str, remedy: str = KEPT_MAP_REMEDY
) -> NDArray[np.intp]:
    """Return for each known row its index among the rows found, (n,).

    Rows are found by unique names, else in their order. At least one distinguishing
    part that both sides have must have equal numbers in all rows; other parts may have
    been computed anew for the same cells. If either side has no hashes, names decide
    alone.

    ``source_name``: name of the source in the message. ``remedy``: sentence at the end
    of the message.

    Raises DataError that says how the rows differ, then the remedy.
    """
    n, n_found = len(known.names), len(found.names)
    if n_found != n:
        why = f"it now has {n_found:,} rows instead of {n:,}"
        raise DataError(CHANGED_MESSAGE.format(source_name, why, remedy))
    order = find_row_order(known.names, found.names)
    if order is None:
        sorted_text = "its rows stand in another order, and some have the same name"
        why = describe_missing_row(known.names, found.names) or sorted_text
        raise DataError(CHANGED_MESSAGE.format(source_name, why, remedy))
    hashes, found_hashes = known.row_hashes, found.row_hashes
    if not hashes or not found_hashes:
        return order
    telling = known.distinguishing_parts
    shared = [part for part in telling if len(found_hashes.get(part, ())) == n]
    if not shared:
        why = _describe_missing_part(telling[0], found_hashes)
        raise DataError(CHANGED_MESSAGE.format(source_name, why, remedy))
    for part in shared:
        if np.array_equal(hashes[part], found_hashes[part][order]):
            return order
    why = _describe_changed_numbers(hashes[shared[0]], found_hashes[shared[0]], order)
    raise DataError(CHANGED_MESSAGE.format(source_name, why, remedy))


def find_row_order(
    known_names: pd.Index, found_names: pd.Index
) -> NDArray[np.intp] | None:
    """Return the index of each known name among the found names, (n,).

    Where only one side has unique names, the other side's are made unique ("A", "A-1"),
    as another program may have done. Returns None if a known name is gone, or if both
    sides have repeated names and the names are not the same in the same order.
    """
    known_names, found_names = known_names.astype(str), found_names.astype(str)
    if known_names.equals(found_names):
        return np.arange(len(known_names))
    if not (known_names.is_unique and found_names.is_unique):
        is_one_unique = known_names.is_unique or found_names.is_unique
        known_names, found_names = (
            pd.Index(make_names_unique(names)) for names in (known_names, found_names)
        )
        if not is_one_unique:
            return (
                np.arange(len(known_names)) if known_names.equals(found_names) else None
            )
    indices = found_names.get_indexer(known_names)
    return None if (indices < 0).any() else np.asarray(indices, np.intp)


def is_unchanged_order(order: NDArray[np.intp]) -> bool:
    """Return whether the indices `order` (n,) are 0 to n - 1 in ascending order."""
    return bool((order == np.arange(len(order))).all())


# Hashes of numbers


def hash_rows(values: Any) -> NDArray[np.uint64]:
    """Return (n,) hashes of the rows of a dense or sparse matrix (n, D) of numbers.

    Equal numbers have equal hashes in any type; -0.0 equals 0, and all missing values
    are equal. A hash is the sum of the numbers' bits times an odd factor for each
    column, modulo 2^64. Of a dense matrix of 512 columns or more, evenly spaced columns
    are hashed: at least :data:`MAX_COLUMNS`.
    """
    n, n_columns = values.shape
    hashes = np.empty(n, np.uint64)
    if sp.issparse(values):
        matrix, factors = sp.csr_matrix(values), _make_odd_hash_factors(n_columns)
        for first in range(0, n, _ROWS):
            block = matrix[first : first + _ROWS]
            bits = sp.csr_matrix(
                (_to_mixed_bits(block.data), block.indices, block.indptr),
                shape=block.shape,
            )
            hashes[first : first + _ROWS] = bits @ factors
        return hashes
    step = max(1, n_columns // MAX_COLUMNS)
    factors = _make_odd_hash_factors(n_columns)[::step]
    n_rows = max(1, _VALUES // max(1, len(factors)))
    for first in range(0, n, n_rows):
        block = values[first : first + n_rows, ::step]
        hashes[first : first + n_rows] = _to_mixed_bits(block) @ factors
    return hashes


def hash_table_rows(numbers: Mapping[str, NDArray[np.float64]]) -> RowHashes:
    """Return the (n,) row hashes of a table, keyed by the sorted names of its columns.

    ``numbers``: (n,) values of each column by name, in any order. Of 512 columns or
    more, evenly spaced ones are hashed and are the key. Empty without columns.
    """
    names = sorted(numbers)[:: max(1, len(numbers) // MAX_COLUMNS)]
    if not names:
        return {}
    hashes = np.zeros(len(numbers[names[0]]), np.uint64)
    for first in range(0, len(hashes), _ROWS):
        rows = slice(first, first + _ROWS)
        for name in names:
            hashes[rows] += _to_mixed_bits(
                numbers[name][rows]
            ) * _make_name_hash_factor(name)
    return {tuple(names): hashes}


def _to_mixed_bits(values: Any) -> NDArray[np.uint64]:
    """Return numbers as float64 bits, uint64, the high half mixed into the low half.

    The shape is that of ``values``. The bits of 0 and -0 are equal, and so are those of
    all NaN.
    """
    numbers = np.array(values, np.float64, order="C")
    numbers += 0.0  # this turns -0.0 into 0
    is_missing = np.isnan(numbers)
    if is_missing.any():
        numbers[is_missing] = np.nan
    bits = numbers.view(np.uint64)
    bits ^= bits >> np.uint64(32)
    return bits


def _make_odd_hash_factors(n_columns: int) -> NDArray[np.uint64]:
    """Return an odd factor for each column, (n_columns,), by SplitMix64."""
    z = np.arange(1, n_columns + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        z = (z ^ (z >> np.uint64(shift))) * np.uint64(factor)
    return (z ^ (z >> np.uint64(31))) | np.uint64(1)


def _make_name_hash_factor(name: str) -> np.uint64:
    """Return an odd factor for a column of this name, the same on any machine."""
    digest = blake2b(name.encode(errors="surrogatepass"), digest_size=8).digest()
    return np.uint64(int.from_bytes(digest, "little") | 1)


# Sums that a notebook compares, on any machine


def sum_absolute_rows(values: Any) -> NDArray[np.float64]:
    """Return (n,) sums of the absolute values of each row; missing values count 0."""
    if sp.issparse(values):
        return np.asarray(abs(values).sum(axis=1), np.float64).ravel()
    return np.asarray(np.nansum(np.abs(np.asarray(values, np.float64)), axis=1))


def check_row_sums(adata: AnnData, sums: pd.Series) -> None:
    """Raise DataError unless the rows of ``adata.X`` have the absolute sums (n,).

    A notebook assigns annotations of the window to rows by name, and equal sums show
    that these are the same rows. Sums are compared to four digits, as logarithms are
    rounded differently on other machines.
    """
    known, found = sums.to_numpy(np.float64), sum_absolute_rows(adata.X)
    is_other = ~np.isclose(found, known, rtol=1e-4, atol=1e-6)
    if is_other.any():
        raise DataError(
            f"{np.count_nonzero(is_other):,} of {len(known):,} rows have other numbers "
            "under the same names than in the window: put the data file back as it was."
        )


# Clauses on what has changed


def describe_missing_row(known_names: pd.Index, found_names: pd.Index) -> str:
    """Return a clause that names the first known row that is gone; "" if none is."""
    known_names, found_names = known_names.astype(str), found_names.astype(str)
    gone = known_names[~known_names.isin(found_names)]
    return f'it has no row "{gone[0]}" any more' if len(gone) else ""


def _describe_missing_part(part: Part, found: RowHashes) -> str:
    """Return a clause that names the lost part, or the lost columns of a table.

    ``found``: hashes of the parts that the source still has.
    """
    if isinstance(part, str):
        return f"it no longer holds {part}, by which its rows could be told"
    present = {name for one in found if isinstance(one, tuple) for name in one}
    gone = [name for name in part if name not in present]
    what = f"column {gone[0]}" if len(gone) == 1 else f"the columns {list_text(gone)}"
    return f"it no longer has {what}"


def _describe_changed_numbers(
    known: NDArray[np.uint64], found: NDArray[np.uint64], order: NDArray[np.intp]
) -> str:
    """Return a clause on how many rows have other hashes, or that rows were reordered.

    ``order``: (n,) index among the found rows of each known row.
    """
    n_changed = int(np.count_nonzero(known != found[order]))
    is_sorted = is_unchanged_order(order) and np.array_equal(
        np.sort(known), np.sort(found)
    )
    if is_sorted:
        return "its rows stand in another order, which their names do not show"
    return f"{n_changed:,} of {len(known):,} rows have other numbers"
