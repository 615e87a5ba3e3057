"""Log-normalised gene expression, for comparing and colouring by genes.

Raw counts do not compare between cells, as each cell was read to another depth.  They
are divided by the depth and log1p is taken, as ``scanpy.pp.normalize_total`` and
``scanpy.pp.log1p`` do; what is in logarithms, or no expression, stays as it is.
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

if TYPE_CHECKING:
    from anndata import AnnData

TARGET_SUM = 10_000.0
"""Counts of each cell after normalising; the recipe's too."""
_LARGEST_LOG1P = 20.0
"""log1p of the largest count there is stays below this."""
_SAMPLED = 100_000
"""Values that are looked at to recognise counts."""
_BLOCK = 1 << 22
"""Values that are normalised at a time, so that no other copy is needed."""

GeneKind = Literal["counts", "logarithms", "values"]
_NOTES: dict[GeneKind, str] = {
    "counts": f"Expression: counts, normalised to {TARGET_SUM:,.0f} per cell, log1p.",
    "logarithms": "Expression: log1p of the file, as it is.",
    "values": "Expression: values of the file as they are, neither counts nor log1p.",
}


@dataclass(frozen=True, eq=False)
class Expression:
    """The ``profile`` of a dataset as its columns are compared.

    Parts are computed on demand, and cached.
    """

    profile: Any
    """(n, G) array or CSR matrix."""
    is_expression: bool
    """Whether these are genes: the columns of a table are never normalised."""
    stated_kind: GeneKind | None = None
    """What a person says that the profile holds; None: its values tell."""

    @cached_property
    def has_counts(self) -> bool:
        """Whether the profile holds raw counts of genes; some of its rows tell."""
        if not self.is_expression or self.stated_kind is not None:
            return self.is_expression and self.stated_kind == "counts"
        return are_counts(self.profile)

    @cached_property
    def kind(self) -> GeneKind:
        """What the profile holds: raw counts, log1p of something, or neither."""
        if not self.is_expression:
            return "values"
        return self.stated_kind or guess_gene_kind(self.profile)

    @property
    def is_log1p(self) -> bool:
        """Whether :attr:`values` are log1p, which a fold change undoes."""
        return self.kind != "values"

    @property
    def note(self) -> str:
        """A sentence on what genes are compared by; empty without genes."""
        return _NOTES[self.kind] if self.is_expression else ""

    @cached_property
    def row_factors(self) -> NDArray[np.float64]:
        """(n,) what the counts of each cell are multiplied by; 0 for an empty cell."""
        return depth_factors(self.profile, TARGET_SUM)

    @cached_property
    def values(self) -> Any:
        """(n, G) of the profile's type: sparse counts stay sparse."""
        X = self.profile
        return scale_and_log1p(X, self.row_factors) if self.has_counts else X

    def dense_column(self, index: int) -> NDArray[np.floating]:
        """Return one column of :attr:`values`, (n,), without working out the others."""
        return to_dense(self.take_columns([index])).ravel()

    def take_columns(self, indices: Sequence[int]) -> Any:
        """Return some columns of :attr:`values`, (n, k): sparse ones stay sparse."""
        part = self.profile[:, list(indices)]
        return scale_and_log1p(part, self.row_factors) if self.has_counts else part

    def value_at(self, row: int, index: int) -> float:
        """Return one of :attr:`values`."""
        value = self.profile[[row]][:, [index]]
        if self.has_counts:
            value = scale_and_log1p(value, self.row_factors[row : row + 1])
        return float(value.sum())


def check_gene_kind(values: Any, kind: GeneKind | None, where: str) -> None:
    """Raise DataError where genes (n, G) can't hold what a person says of them."""
    if kind == "counts" and values.size and values.min() < 0:
        raise DataError(
            f"The genes of {where} hold negative numbers, so they are no raw counts: "
            "say that they hold other values."
        )


def guess_gene_kind(values: Any) -> GeneKind:
    """Return what a matrix (n, G) of genes holds: raw counts, log1p, or neither."""
    if are_counts(values):
        return "counts"
    return "logarithms" if _looks_like_log1p(values) else "values"


def depth_factors(counts: Any, target_sum: float) -> NDArray[np.float64]:
    """Return what the counts (n, G) of each cell are multiplied by, (n,).

    Their sum is ``target_sum`` then; 0 for an empty cell.
    """
    depth = np.asarray(counts.sum(axis=1, dtype=np.float64)).ravel()
    factors = np.zeros_like(depth)
    np.divide(target_sum, depth, out=factors, where=depth > 0)
    return factors


def to_dense(values: Any) -> NDArray[Any]:
    """Return a matrix, dense or sparse, as an array."""
    return np.asarray(values.toarray() if sp.issparse(values) else values)


def read_log_base(adata: AnnData) -> Any:
    """Return the base of logarithms that scanpy noted; None for e."""
    noted = adata.uns.get("log1p")
    return noted.get("base") if isinstance(noted, Mapping) else None


def to_natural_log(logarithms: Any, base: Any) -> Any:
    """Return logarithms of a base as ln(1 + x); ``base`` None or text: as they are."""
    if not isinstance(base, int | float | np.number) or base in (0, 1):
        return logarithms
    return logarithms * math.log(base)


def scale_and_log1p(counts: Any, row_factors: NDArray[np.float64]) -> Any:
    """Return log1p of each row times its factor, float32; of a sparse matrix as CSR."""
    if not sp.issparse(counts):
        return np.log1p(counts * row_factors[:, None].astype(np.float32))
    counts = sp.csr_matrix(counts)
    data = np.empty(counts.nnz, np.float32)
    each = np.repeat(np.arange(counts.shape[0], dtype=np.int32), np.diff(counts.indptr))
    for begin in range(0, counts.nnz, _BLOCK):
        part = slice(begin, begin + _BLOCK)
        data[part] = np.log1p(counts.data[part] * row_factors[each[part]])
    return sp.csr_matrix((data, counts.indices, counts.indptr), shape=counts.shape)


def _looks_like_log1p(profile: Any) -> bool:
    """Tell whether values are from 0, never large, and no whole numbers."""
    values = profile.data if sp.issparse(profile) else profile
    some = values[:: max(1, values.size // _SAMPLED)]
    if np.array_equal(some, np.round(some)):  # counted, or none
        return False
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    has_zeros = sp.issparse(profile) or low == 0
    return has_zeros and low >= 0 and high < _LARGEST_LOG1P
