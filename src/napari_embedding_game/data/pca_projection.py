"""Reconstruct the projection from genes to the principal components of an AnnData.

``sc.pp.pca`` stores loadings (``varm["PCs"]``), but not whether of logarithms or of
scaled logarithms (``sc.pp.scale`` stores ``mean`` and ``std`` in ``var``). Computing
the components of the reference's own cells again shows which.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.expression import (
    TARGET_SUM,
    guess_gene_kind,
    read_log_base,
    to_dense,
    to_natural_log,
)
from napari_embedding_game.data.projection import (
    Projection,
    infer_target_sum,
    normalise_expression,
)
from napari_embedding_game.data.raw_counts import are_counts

if TYPE_CHECKING:
    from anndata import AnnData

_MAX_SAMPLE = 2_000
"""Number of cells whose components are computed again."""
_MIN_EXPLAINED = 0.98
"""Share of the components' variance that the recomputed components must explain."""
_MAX_VALUE = 10.0
"""Cap of scaled values in scanpy's tutorials, the default."""


def reconstruct_pca_projection(adata: AnnData, where: str) -> Projection:
    """Return the projection that gives ``obsm["X_pca"]`` from the genes of `adata`.

    Tried are logarithms of ``X``, then logarithms scaled by the stored means and
    deviations; if ``X`` has values below 0, it is taken as scaled. The first that
    explains 98 % of the variance of the stored components is returned, judged by about
    2,000 cells. Raises DataError if neither does.
    """
    loadings = np.asarray(adata.varm["PCs"], np.float32)
    used = np.flatnonzero(np.any(loadings != 0, axis=1))
    stored = np.asarray(adata.obsm["X_pca"], np.float32)
    rows = np.flatnonzero(np.isfinite(stored).all(axis=1))
    rows = rows[:: max(1, len(rows) // _MAX_SAMPLE)]
    stored, values = stored[rows], adata.X
    is_scaled = values.min() < 0
    base = read_log_base(adata)
    unit = to_natural_log(1.0, base)  # ln(1 + x) of 1 in the stored base
    if not is_scaled and are_counts(values):
        values = normalise_expression(values, TARGET_SUM, "These cells")
    elif not is_scaled:
        values = to_natural_log(values, base)
    values = values[:, used]
    plain = Projection(
        genes=tuple(map(str, adata.var_names[used])),
        mean=np.asarray(values.mean(axis=0, dtype=np.float64), np.float32).ravel(),
        std=np.full(len(used), unit, np.float32),
        loadings=loadings[used],
        offset=np.zeros(loadings.shape[1], np.float32),
        target_sum=_infer_target_sum(adata),
    )
    candidates = [] if is_scaled else [plain]
    if {"mean", "std"} <= set(adata.var.columns):
        mean, std = (
            unit * adata.var[k].to_numpy(np.float32)[used] for k in ("mean", "std")
        )
        most = float(max(values.max(), -values.min())) if is_scaled else _MAX_VALUE
        std = np.where(std > 0, std, 1).astype(np.float32)
        candidates.append(replace(plain, mean=mean, std=std, max_value=most))
    values, best = to_dense(values[rows]).astype(np.float32), 0.0
    for candidate in candidates:
        scaled = (values - candidate.mean) / candidate.std
        part = np.clip(scaled, -candidate.max_value, candidate.max_value)
        computed = (values if is_scaled else part) @ candidate.loadings
        offset = (computed - stored).mean(axis=0)
        error = np.square(computed - offset - stored).sum()
        explained = 1 - error / np.square(stored - stored.mean(0)).sum()
        if explained >= _MIN_EXPLAINED:
            return replace(candidate, offset=np.asarray(offset, np.float32))
        best = max(best, float(explained))
    raise DataError(
        f"{where} has loadings (varm['PCs']), but neither X nor its logarithms give "
        f"the components in obsm['X_pca'] again ({best:.0%} of their variance): keep "
        "what they were computed of in X, or fit the reference with the recipe."
    )


def _infer_target_sum(adata: AnnData) -> float:
    """Return the sum to which counts were normalised, 0 if they were not.

    Inferred from logarithms in ``X``, else in ``raw``; 10,000 if neither tells.
    """
    matrices = [adata.X, *([] if adata.raw is None else [adata.raw.X])]
    logarithms = (one for one in matrices if guess_gene_kind(one) == "logarithms")
    base = read_log_base(adata)
    sums = (infer_target_sum(to_natural_log(one, base)) for one in logarithms)
    return next((one for one in sums if one is not None), TARGET_SUM)
