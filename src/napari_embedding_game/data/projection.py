"""Project gene expression to principal components, as it was fitted.

Kept with a map, a projection maps new cells into the same space:

    ((log1p of normalised counts - mean) / std, clipped to +-max_value) @ loadings
    - offset

A gene that the new cells lack is set to its mean, so that it has no effect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.expression import (
    TARGET_SUM,
    compute_depth_factors,
    guess_gene_kind,
    scale_and_log1p,
    to_dense,
)
from napari_embedding_game.data.gene_names import FoundNames, find_names

_MAX_SAMPLE = 200
"""Number of cells from which the sum of normalised counts is estimated."""


@dataclass(frozen=True, eq=False)
class Projection:
    """The fitted numbers of all steps after normalising."""

    genes: tuple[str, ...]
    """(G,) names of the genes that the components are computed from."""
    mean: NDArray[np.float32]
    """(G,) value subtracted from the logarithms of each gene."""
    std: NDArray[np.float32]
    """(G,) divisor of the centred values of each gene."""
    loadings: NDArray[np.float32]
    """(G, C) weights of the scaled genes; sparse where it maps genes to themselves."""
    offset: NDArray[np.float32]
    """(C,) value subtracted from the components."""
    target_sum: float = TARGET_SUM
    """Sum of the counts of each cell after normalising; 0 if it was not normalised."""
    max_value: float = np.inf
    """Largest magnitude of a scaled value."""

    def scale_genes(self, lognorm: Any, match: FoundNames) -> NDArray[np.float32]:
        """Return the scaled genes of cells, (n, G); genes that are missing are 0.

        ``lognorm`` (n, M) is log1p of counts normalised to ``target_sum``; ``match``
        has the column of each of the G genes among the M columns, -1 for a missing
        gene. The values are clipped to ``max_value``.
        """
        is_matched = match.index_of_each >= 0
        values = np.zeros((lognorm.shape[0], len(self.genes)), np.float32)
        values[:, is_matched] = to_dense(lognorm[:, match.index_of_each[is_matched]])
        values[:, is_matched] -= self.mean[is_matched]
        values /= self.std
        np.clip(values, -self.max_value, self.max_value, out=values)
        return values

    def project(self, scaled: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the principal components of scaled genes, (n, C)."""
        return np.asarray(scaled @ self.loadings - self.offset, np.float32)

    def compute_residual(
        self, scaled: NDArray[np.float32], components: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """Return scaled genes minus the values that components explain, (n, G)."""
        explained = (components + self.offset) @ self.loadings.T
        return np.asarray(scaled - explained, np.float32)

    def to_storable(self) -> dict[str, Any]:
        """Return all fields, keyed by name, as values that an .h5ad file can hold."""
        return {**vars(self), "genes": np.array(self.genes, dtype=object)}

    @classmethod
    def from_storable(cls, storable: Mapping[str, Any], where: str) -> Projection:
        """Build a projection from the dict of :meth:`to_storable`.

        Raises DataError that names `where`, if a part is missing or shapes do not fit.
        """
        try:
            parts = {one.name: storable[one.name] for one in fields(cls)}
            genes = tuple(map(str, parts.pop("genes")))
            parts = {
                k: np.asarray(v, np.float32) if np.ndim(v) else float(v)
                for k, v in parts.items()
            }
            result = cls(genes, **parts)
            n, n_comps = result.loadings.shape
            shapes = [one.shape for one in (result.offset, result.mean, result.std)]
            if shapes != [(n_comps,), (n,), (n,)] or len(genes) != n:
                raise ValueError(shapes)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DataError(
                f"What {where} tells of its principal components is damaged: fit the "
                "map again with the recipe."
            ) from error
        return result


def match_genes(
    genes: Sequence[str],
    data_names: Sequence[str],
    other_names: Mapping[str, Sequence[str]] | None = None,
    *,
    other_genes: Sequence[Sequence[str]] = (),
    min_share: float = 0.5,
    where: str = "The new cells",
) -> FoundNames:
    """Find the genes of a reference among the M genes of new cells.

    Names are compared by :func:`find_names`. ``genes``: names in the reference.
    ``data_names``: (M,) names in the new cells. ``other_names``: further (M,) names in
    the new cells, keyed by their column. ``other_genes``: further names in the
    reference. The combination that finds most genes is taken, of several the first.
    Raises DataError if fewer than `min_share` are found.
    """
    known = {"names": data_names} | {**(other_names or {}), "names": data_names}
    tried = [
        find_names(each, known[by], by)
        for each in (genes, *other_genes)
        for by in known
    ]
    best = max(tried, key=lambda match: match.share)
    if best.share >= min_share:
        return best
    few = ", ".join(map(str, list(data_names)[:3]))
    raise DataError(
        f"{where} have only {round(best.share * len(genes)):,} of the {len(genes):,} "
        f"genes that the map was made of ({best.share:.0%}; at least {min_share:.0%} "
        f"are needed): theirs are called {few}, the map's {', '.join(genes[:3])}. Give "
        "both the same kind of names, or cells of the same species and assay."
    )


def normalise_expression(values: Any, target_sum: float, where: str) -> Any:
    """Return log1p of counts normalised to ``target_sum``, (n, M) float32.

    `values` (n, M), dense or sparse, are raw counts, or log1p of counts that were
    normalised to any sum. Logarithms without a common sum (see :func:`infer_count_sum`)
    stay unchanged; a ``target_sum`` of 0 normalises nothing. ``where``: subject of the
    message. Raises DataError if the values are neither counts nor logarithms.
    """
    kind = guess_gene_kind(values)
    if kind == "values":
        raise DataError(
            f"{where} hold neither raw counts nor their logarithms (values below 0, or "
            "too large): give cells with counts in X, in layers['counts'] or in raw."
        )
    if kind == "logarithms":
        if target_sum == 0 or infer_count_sum(values) is None:
            return values.astype(np.float32, copy=False)
        is_sparse = sp.issparse(values)
        values = sp.csr_matrix(values).expm1() if is_sparse else np.expm1(values)
    factors = (
        compute_depth_factors(values, target_sum)
        if target_sum
        else np.ones(values.shape[0])
    )
    return scale_and_log1p(values, factors).astype(np.float32)


def infer_count_sum(logarithms: Any) -> float | None:
    """Return the sum of a cell's counts, inferred from `logarithms` (n, M) = log1p.

    This is the median over about 200 cells, if the sums are equal within 1 % or the
    counts whole. None if sums differ, as after a selection of the normalised genes, or
    if all inspected cells are empty.
    """
    sums, are_equal, are_integers = _inspect_count_sums(logarithms)
    is_sure = len(sums) and (are_integers or are_equal)
    return float(np.median(sums)) if is_sure else None


def infer_target_sum(logarithms: Any) -> float | None:
    """Return the sum to which the counts of `logarithms` (n, M) were normalised.

    0 if the counts are whole and their sums differ, so that they were not normalised;
    None as of :func:`infer_count_sum`.
    """
    sums, are_equal, are_integers = _inspect_count_sums(logarithms)
    if len(sums) and are_integers and not are_equal:
        return 0.0
    return infer_count_sum(logarithms)


def _inspect_count_sums(logarithms: Any) -> tuple[NDArray[np.float64], bool, bool]:
    """Return the sums of the counts of about 200 cells without empty ones.

    And whether the sums are equal within 1 %, and whether the counts are whole.
    """
    some = to_dense(logarithms[:: max(1, logarithms.shape[0] // _MAX_SAMPLE)])
    counts = np.expm1(some[some.any(axis=1)].astype(np.float64))
    sums = counts.sum(axis=1)
    are_integers = np.allclose(counts, np.round(counts), rtol=1e-5, atol=1e-3)
    are_equal = len(sums) > 1 and sums.std() <= 0.01 * sums.mean()
    return sums, bool(are_equal), are_integers
