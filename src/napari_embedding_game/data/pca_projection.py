"""The way from genes to the principal components that scanpy has left in an AnnData.

``sc.pp.pca`` keeps loadings (``varm["PCs"]``), but not of which numbers: of logarithms,
or of these scaled (``sc.pp.scale`` leaves ``mean`` and ``std`` in ``var``).  Which they
were is found by computing the components of the reference's own cells again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.expression import TARGET_SUM, Expression
from napari_embedding_game.data.projection import Projection, normalised

if TYPE_CHECKING:
    from anndata import AnnData

_SAMPLED = 2_000
"""Cells whose components are computed again."""
_LEAST_EXPLAINED = 0.98
"""Of the variance of the components, by those computed again."""
_MAX_VALUE = 10.0
"""Cut of scaled values in scanpy's tutorials, where the data do not tell another."""


def pca_projection(adata: AnnData, where: str) -> Projection:
    """Return how ``obsm["X_pca"]`` came of the genes of `adata`.

    Raises
    ------
    DataError
        There are no loadings, or no numbers of `adata` give these components.
    """
    if "PCs" not in adata.varm or "X_pca" not in adata.obsm:
        raise DataError(
            f"{where} does not tell how its space came of genes (it has no "
            "varm['PCs']), so that new cells cannot be projected: fit the reference "
            "with the recipe, or give new cells that have the same space in obsm."
        )
    loadings = np.asarray(adata.varm["PCs"], np.float32)
    used = np.flatnonzero(np.any(loadings != 0, axis=1))
    known = np.asarray(adata.obsm["X_pca"], np.float32)
    rows = np.flatnonzero(np.isfinite(known).all(axis=1))
    best = 0.0
    for mean, std, max_value, values in _candidates(adata, used):
        way = Projection(
            genes=tuple(map(str, adata.var_names[used])),
            mean=mean,
            std=std,
            loadings=loadings[used],
            offset=np.zeros(loadings.shape[1], np.float32),
            target_sum=_target_sum(adata),
            max_value=max_value,
        )
        sample = rows[:: max(1, len(rows) // _SAMPLED)]
        made = _dense(values[sample]) @ way.loadings
        offset = (made - known[sample]).mean(axis=0)
        made = made - offset
        error = np.square(made - known[sample]).sum()
        explained = 1 - error / np.square(known[sample] - known[sample].mean(0)).sum()
        best = max(best, float(explained))
        if explained >= _LEAST_EXPLAINED:
            object.__setattr__(way, "offset", np.asarray(offset, np.float32))
            return way
    raise DataError(
        f"{where} has loadings (varm['PCs']), but neither X nor its logarithms give "
        f"the "
        f"components in obsm['X_pca'] again ({best:.0%} of their variance): keep what "
        "they were computed of in X, or fit the reference with the recipe."
    )


def _candidates(
    adata: AnnData, used: NDArray[np.intp]
) -> Iterator[tuple[NDArray[np.float32], NDArray[np.float32], float, Any]]:
    """Yield mean, deviation and cut of each way to scale, with the scaled genes."""
    zeros, ones = np.zeros(len(used), np.float32), np.ones(len(used), np.float32)
    scaling = None
    if {"mean", "std"} <= set(adata.var.columns):
        mean, std = (
            adata.var[name].to_numpy(np.float32)[used] for name in ("mean", "std")
        )
        scaling = mean, np.where(std > 0, std, 1).astype(np.float32)
    X = adata.X
    if _lowest(X) < 0:
        if scaling is not None:
            values = X[:, used]
            largest = float(max(values.max(), -_lowest(values)))
            yield *scaling, largest, values
        return
    lognorm = X
    if Expression(X, True).has_counts:
        lognorm = normalised(X, TARGET_SUM, "These cells")
    values = lognorm[:, used]
    yield zeros, ones, np.inf, values
    if scaling is not None:
        scaled = np.clip(
            (_dense(values) - scaling[0]) / scaling[1], -_MAX_VALUE, _MAX_VALUE
        )
        yield *scaling, _MAX_VALUE, scaled


def _target_sum(adata: AnnData) -> float:
    """Return what counts of a cell were normalised to, by logarithms that tell it."""
    for values in (adata.X, None if adata.raw is None else adata.raw.X):
        if values is None or _lowest(values) < 0:
            continue
        if Expression(values, True).kind != "logarithms":
            continue
        sample = _dense(values[: min(200, values.shape[0])])
        sums = np.expm1(sample.astype(np.float64)).sum(axis=1)
        if sums.std() <= 0.01 * sums.mean():
            return float(np.median(sums))
    return TARGET_SUM


def _lowest(values: Any) -> float:
    return float(
        values.data.min() if sp.issparse(values) and values.nnz else values.min()
    )


def _dense(values: Any) -> NDArray[np.float32]:
    return np.asarray(values.toarray() if sp.issparse(values) else values, np.float32)
