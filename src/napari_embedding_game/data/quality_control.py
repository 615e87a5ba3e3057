"""Quality of single cells by raw counts: total, number of genes, mitochondrial share.

The measures are those of ``scanpy.pp.calculate_qc_metrics``, under its names of
columns: ``total_counts``, ``n_genes_by_counts`` and ``pct_counts_mt``.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from napari_embedding_game.data.errors import DataError

MITOCHONDRIAL = re.compile(r"(\w+_)?mt[-.:]", re.IGNORECASE)
"""Prefix of the names of mitochondrial genes, as MT-CO1 and, of two species,
mm10_mt-Co1."""
MIN_CELLS_FOR_DOUBLETS = 50
"""Smallest number of cells among which doublets can be recognised."""
FloatArray = NDArray[np.float64]
Reasons = dict[str, tuple[NDArray[np.bool_], str]]
"""(n,) masks of the cells left out, and why ("fewer than 200 genes"), by the limit."""


def compute_cell_quality(X: Any, names: Sequence[str]) -> pd.DataFrame:
    """Return the quality of each cell from raw counts (n, G), dense or sparse.

    ``names``: (G,) names of the genes. Columns of n rows: total counts, number of genes
    with a count, and percentage of mitochondrial counts, 0 for an empty cell; without
    the last if no gene has a mitochondrial name.
    """

    def sum_rows(values: Any) -> FloatArray:
        return np.asarray(values.sum(axis=1, dtype=np.float64)).ravel()

    figures = {"total_counts": sum_rows(X), "n_genes_by_counts": sum_rows(X > 0)}
    if indices := [i for i, name in enumerate(names) if MITOCHONDRIAL.match(name)]:
        part, counts = 100 * sum_rows(X[:, indices]), figures["total_counts"]
        share = np.divide(part, counts, out=np.zeros_like(part), where=counts > 0)
        figures["pct_counts_mt"] = share
    return pd.DataFrame(figures)


_LIMIT_COLUMNS = {
    "min_genes": ("n_genes_by_counts", "genes"),
    "max_genes": ("n_genes_by_counts", "genes"),
    "min_counts": ("total_counts", "counts"),
    "max_counts": ("total_counts", "counts"),
    "max_mito": ("pct_counts_mt", "% mitochondrial counts"),
}
"""Column of the quality table and noun of each limit."""
LIMITS = tuple(_LIMIT_COLUMNS)
"""Names of the recipe's limits; 0 switches a limit off."""


def find_cells_left_out(limits: Any, quality: pd.DataFrame) -> Reasons:
    """Return a mask of the cells, (n,), that each limit leaves out, and the reason.

    ``limits``: a recipe. ``quality``: see :func:`compute_cell_quality`. A cell is
    counted once, under the first limit that leaves it out. A maximum of 0 is no limit;
    a cell without any gene is always left out.
    """
    is_out = np.zeros(len(quality), bool)
    reasons: Reasons = {}
    for limit, (column, _) in _LIMIT_COLUMNS.items():
        number, is_least = getattr(limits, limit), limit.startswith("min")
        number = max(1, number) if limit == "min_genes" else number
        values = quality.get(column, 0 * is_out)
        rows = np.asarray(values < number if is_least else values > (number or np.inf))
        reasons[limit] = rows & ~is_out, describe_limit(limit, number)
        is_out |= rows
    return reasons


def describe_limit(limit: str, value: float) -> str:
    """Return the reason for cells beyond a limit, such as "fewer than 200 genes".

    ``limit``: name of the limit. For 0 or 1 as fewest genes the text is "no genes".
    """
    than = "fewer" if limit.startswith("min") else "more"
    words = f"{than} than {f'{value:,}'.removesuffix('.0')} {_LIMIT_COLUMNS[limit][1]}"
    return re.sub("^fewer than [01] genes", "no genes", words)


def describe_rare_genes(min_cells: int) -> str:
    """Return how many cells have a gene that is left out: "fewer than 3 cells".

    For a minimum of 0 or 1 the text is "no cell".
    """
    return f"fewer than {min_cells:,} cells" if min_cells > 1 else "no cell"


def find_doublets(
    X: Any, batches: pd.Series | None = None
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return doublet scores and a mask of doublets, (n,) each, by scanpy's scrublet.

    ``X`` are raw counts (n, G), CSR; ``batches`` (n,) the sample of each cell, as
    doublets are two cells of one sample. A score is higher for a cell more like the sum
    of two cells.

    Raises DataError if any sample has fewer than 50 cells, cells have too few genes, or
    a cell gets no score.
    """
    texts = None if batches is None else batches.astype(str)
    smallest = X.shape[0] if texts is None else int(texts.value_counts().min())
    if smallest < MIN_CELLS_FOR_DOUBLETS:
        raise DataError(
            f"Doublets cannot be found among {smallest} cells: each sample needs "
            f"{MIN_CELLS_FOR_DOUBLETS}. Go on without looking for doublets."
        )
    import scanpy as sc
    from anndata import AnnData

    adata, key = AnnData(sp.csr_matrix(X, dtype=np.float32)), None
    if texts is not None:
        key = "batch"
        adata.obs[key] = pd.Categorical(texts)
    # Exact neighbours, as scanpy's approximate ones fail with pynndescent 0.7.
    options: Any = {"use_approx_neighbors": False, "random_state": 0, "verbose": False}
    try:
        with warnings.catch_warnings(action="ignore"):
            sc.pp.scrublet(adata, batch_key=key, **options)
        scores = adata.obs["doublet_score"].to_numpy(dtype=np.float64)
        is_doublet = adata.obs["predicted_doublet"]
        if np.isnan(scores).any() or is_doublet.isna().any():
            raise ValueError("it gives some cells no score")
    except (ValueError, LookupError) as error:
        # Cells with very few genes cause these errors.
        raise DataError(
            f"scrublet cannot tell doublets in these counts ({error}): let the lowest "
            "number of genes per cell be higher, or go on without looking for doublets."
        ) from error
    return scores, is_doublet.to_numpy(dtype=bool)
