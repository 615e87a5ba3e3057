"""Log-normalise gene expression, to compare groups and to colour by genes.

Raw counts do not compare between cells, as each cell was read to another depth. They
are divided by the depth and log1p is taken, as ``scanpy.pp.normalize_total`` and
``scanpy.pp.log1p`` do; logarithms, and columns that are no genes, stay unchanged.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.raw_counts import are_counts
from napari_embedding_game.data.row_matrices import take_rows

if TYPE_CHECKING:
    from anndata import AnnData

TARGET_SUM = 10_000.0
"""Sum of the counts of each cell after normalising; also the recipe's."""
_LARGEST_LOG1P = 20.0
"""Upper bound of log1p of any real count."""
_MAX_SAMPLE = 100_000
"""Number of values inspected to recognise logarithms."""
_BLOCK = 1 << 22
"""Number of values normalised at a time, so that no second copy is needed."""

GeneKind = Literal["counts", "logarithms", "values"]
_NOTES: dict[GeneKind, str] = {
    "counts": f"Expression: counts, normalised to {TARGET_SUM:,.0f} per cell, log1p.",
    "logarithms": "Expression: log1p of the file, as it is.",
    "values": "Expression: values of the file as they are, neither counts nor log1p.",
}


@dataclass(frozen=True, eq=False)
class Expression:
    """The ``profile`` of a dataset in the values by which its columns are compared.

    Computed on demand, and cached; but values of some rows only are never cached.
    """

    profile: Any
    """(N, G) array or CSR matrix, whose kind of values is decided for all rows."""
    is_expression: bool
    """Whether the columns are genes: columns of a table are never normalised."""
    stated_kind: GeneKind | None = None
    """Kind of values as a person states it; None: guessed from the values."""
    rows: NDArray[np.integer] | None = None
    """(n,) indices of the rows that are compared; None for all."""

    @cached_property
    def has_counts(self) -> bool:
        """Whether the profile holds raw counts of genes: as stated, else guessed."""
        if not self.is_expression or self.stated_kind is not None:
            return self.is_expression and self.stated_kind == "counts"
        return are_counts(self.profile)

    @cached_property
    def kind(self) -> GeneKind:
        """What the profile holds: raw counts, log1p of counts, or other values.

        The stated kind, else a guess; "values" if the columns are no genes.
        """
        if not self.is_expression:
            return "values"
        return self.stated_kind or guess_gene_kind(self.profile)

    @property
    def is_log1p(self) -> bool:
        """Whether :attr:`values` are log1p, so that a fold change takes expm1 first."""
        return self.kind != "values"

    @property
    def note(self) -> str:
        """Sentence on the values by which genes are compared; "" without genes."""
        return _NOTES[self.kind] if self.is_expression else ""

    @property
    def n_rows(self) -> int:
        """Number of rows that are compared."""
        return self.profile.shape[0] if self.rows is None else len(self.rows)

    @cached_property
    def row_factors(self) -> NDArray[np.float64]:
        """(n,) factor that normalises the counts of each cell; 0 for an empty cell."""
        return compute_depth_factors(take_rows(self.profile, self.rows), TARGET_SUM)

    @property
    def values(self) -> Any:
        """(n, G) values to compare: log1p of counts, else the profile itself."""
        is_whole = self.rows is None
        return (
            self._values_of_all_rows
            if is_whole
            else self._take_and_normalise_rows(self.profile)
        )

    @cached_property
    def _values_of_all_rows(self) -> Any:
        return self._take_and_normalise_rows(self.profile)

    def make_dense_column(self, index: int) -> NDArray[np.floating]:
        """Return a single column of :attr:`values` as an array (n,)."""
        return to_dense(self.take_columns([index])).ravel()

    def take_columns(self, indices: Sequence[int]) -> Any:
        """Return the columns of :attr:`values` at `indices`: (n, k), maybe sparse."""
        return self._take_and_normalise_rows(self.profile[:, list(indices)])

    def value_at(self, row: int, index: int) -> float:
        """Return the value of :attr:`values` at a row and a column index."""
        source_row = row if self.rows is None else self.rows[row]
        value = self.profile[[source_row]][:, [index]]
        if self.has_counts:
            value = scale_and_log1p(value, self.row_factors[row : row + 1])
        return float(value.sum())

    def _take_and_normalise_rows(self, columns: Any) -> Any:
        """Return the values of columns of the profile: (N, k) to (n, k)."""
        part = take_rows(columns, self.rows)
        return scale_and_log1p(part, self.row_factors) if self.has_counts else part


def check_gene_kind(values: Any, kind: GeneKind | None, where: str) -> None:
    """Raise DataError if genes (n, G) stated to be counts have a negative value."""
    if kind == "counts" and values.size and values.min() < 0:
        raise DataError(
            f"The genes of {where} hold negative numbers, so they are no raw counts: "
            "say that they hold other values."
        )


def guess_gene_kind(values: Any) -> GeneKind:
    """Return whether genes (n, G) seem to be counts, logarithms or other values."""
    if are_counts(values):
        return "counts"
    return "logarithms" if _is_probably_log1p(values) else "values"


def compute_depth_factors(counts: Any, target_sum: float) -> NDArray[np.float64]:
    """Return the factor of each cell, (n,), that brings its counts to `target_sum`.

    The factor of a cell without counts is 0.
    """
    depth = np.asarray(counts.sum(axis=1, dtype=np.float64)).ravel()
    factors = np.zeros_like(depth)
    np.divide(target_sum, depth, out=factors, where=depth > 0)
    return factors


def to_dense(values: Any) -> NDArray[Any]:
    """Return a dense or sparse matrix as an ndarray."""
    return np.asarray(values.toarray() if sp.issparse(values) else values)


def read_log_base(adata: AnnData) -> Any:
    """Return the base of the logarithms that scanpy stored in ``uns``; None for e."""
    noted = adata.uns.get("log1p")
    return noted.get("base") if isinstance(noted, Mapping) else None


def to_natural_log(logarithms: Any, base: Any) -> Any:
    """Multiply logarithms of a base by ln(base), which makes them natural.

    They are returned unchanged for a base that is None, 0, 1 or no number.
    """
    if not isinstance(base, int | float | np.number) or base in (0, 1):
        return logarithms
    return logarithms * math.log(base)


def scale_and_log1p(counts: Any, row_factors: NDArray[np.float64]) -> Any:
    """Multiply each row by its factor and return log1p, float32; sparse becomes CSR."""
    if not sp.issparse(counts):
        return np.log1p(counts * row_factors[:, None].astype(np.float32))
    counts = sp.csr_matrix(counts)
    data = np.empty(counts.nnz, np.float32)
    each = np.repeat(np.arange(counts.shape[0], dtype=np.int32), np.diff(counts.indptr))
    for begin in range(0, counts.nnz, _BLOCK):
        part = slice(begin, begin + _BLOCK)
        data[part] = np.log1p(counts.data[part] * row_factors[each[part]])
    return sp.csr_matrix((data, counts.indices, counts.indptr), shape=counts.shape)


def _is_probably_log1p(profile: Any) -> bool:
    """Return whether values look like log1p of counts.

    They do if there are zeros and no negative values, the highest is below 20, and
    sampled values are not all whole numbers.
    """
    values = profile.data if sp.issparse(profile) else profile
    some = values[:: max(1, values.size // _MAX_SAMPLE)]
    if np.array_equal(some, np.round(some)):  # whole numbers are counts, or empty
        return False
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    has_zeros = sp.issparse(profile) or low == 0
    return has_zeros and low >= 0 and high < _LARGEST_LOG1P
