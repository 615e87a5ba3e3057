"""Quality of single cells from their raw counts: how many, of how many genes, whence.

The figures are those of ``scanpy.pp.calculate_qc_metrics``, and carry its names in the
metadata: ``total_counts``, ``n_genes_by_counts`` and ``pct_counts_mt``.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, fields
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from napari_embedding_game.data.errors import DataError

MITOCHONDRIAL = re.compile(r"mt[-.]", re.IGNORECASE)
"""How names of mitochondrial genes begin, in human and mouse."""
FEWEST_FOR_DOUBLETS = 50
"""Cells below which doublets cannot be told from others."""
NEEDS_SKIMAGE = (
    "Doublets are found by scrublet, which needs scikit-image: run "
    "`pip install scikit-image`, or go on without looking for doublets."
)
_SEED = 0

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class CellQuality:
    """Figures of n cells."""

    counts: FloatArray
    """(n,) all counts of the cell."""
    genes: FloatArray
    """(n,) genes with a count."""
    mitochondrial: FloatArray | None
    """(n,) per cent of the counts that are of mitochondrial genes; None where no gene
    has such a name."""

    def columns(self) -> dict[str, FloatArray]:
        """Return the figures of all cells by scanpy's names."""
        columns = {"total_counts": self.counts, "n_genes_by_counts": self.genes}
        if self.mitochondrial is not None:
            columns["pct_counts_mt"] = self.mitochondrial
        return columns


def cell_quality(X: Any, names: Sequence[str]) -> CellQuality:
    """Return the quality of every cell.

    Parameters
    ----------
    X : (n, G) array or scipy sparse matrix
        Raw counts.
    names : sequence of str
        (G,) names of the genes.
    """
    is_mitochondrial = np.array([bool(MITOCHONDRIAL.match(name)) for name in names])
    counts = _row_sums(X)
    genes = _row_sums(X > 0)
    share = None
    if is_mitochondrial.any():
        part = 100 * _row_sums(X[:, np.flatnonzero(is_mitochondrial)])
        share = np.divide(part, counts, out=np.zeros_like(part), where=counts > 0)
    return CellQuality(counts, genes, share)


def _row_sums(X: Any) -> FloatArray:
    sums: FloatArray = np.asarray(X.sum(axis=1, dtype=np.float64)).ravel()
    return sums


@dataclass(frozen=True)
class CellLimits:
    """Which cells are left out; a highest or lowest value of 0 is no limit."""

    min_genes: int = 0
    max_genes: int = 0
    min_counts: int = 0
    max_counts: int = 0
    max_mito: float = 0.0
    """Per cent of mitochondrial counts."""

    def left_out(self, quality: CellQuality) -> list[tuple[BoolArray, str]]:
        """Return the cells, (n,), that each limit leaves out first, and why.

        A cell is counted once, under the first of its reasons.
        """
        genes, counts, share = quality.genes, quality.counts, quality.mitochondrial
        asked = [
            (genes < max(1, self.min_genes), f"fewer than {self.min_genes} genes"),
            (_above(genes, self.max_genes), f"more than {self.max_genes:,} genes"),
            (counts < self.min_counts, f"fewer than {self.min_counts:,} counts"),
            (_above(counts, self.max_counts), f"more than {self.max_counts:,} counts"),
        ]
        if share is not None:
            words = f"more than {self.max_mito:g} % mitochondrial counts"
            asked.append((_above(share, self.max_mito), words))
        told = np.zeros(len(genes), bool)
        first = []
        for rows, words in asked:
            first.append((rows & ~told, f"they have {words}"))
            told |= rows
        return first


LIMITS = tuple(field.name for field in fields(CellLimits))
"""Names of the limits, in the order in which they are asked."""


def _above(values: FloatArray, highest: float) -> BoolArray:
    above: BoolArray = values > (highest or np.inf)
    return above


def has_scrublet() -> bool:
    """Return whether scrublet has what it needs beyond scanpy."""
    return find_spec("skimage") is not None


def find_doublets(
    X: Any, batches: pd.Series | None = None
) -> tuple[FloatArray, BoolArray]:
    """Find cells that are two in one droplet, by ``scanpy.pp.scrublet``.

    Parameters
    ----------
    X : (n, G) CSR matrix
        Raw counts.
    batches : (n,) Series, optional
        Sample of each cell: doublets are of cells of one sample.

    Returns
    -------
    array, array
        (n,) each: how like a cell is to two that were added up, and whether it is one.

    Raises
    ------
    DataError
        scikit-image is missing, there are too few cells, cells of too few
        genes, or the scores do not part.
    """
    if not has_scrublet():
        raise DataError(NEEDS_SKIMAGE)
    smallest = X.shape[0] if batches is None else int(batches.value_counts().min())
    if smallest < FEWEST_FOR_DOUBLETS:
        raise DataError(
            f"Doublets cannot be told among {smallest} cells, and "
            f"{FEWEST_FOR_DOUBLETS} of each sample are needed: go on without looking "
            "for doublets."
        )
    import scanpy as sc
    from anndata import AnnData

    index = pd.RangeIndex(X.shape[0]).astype(str)
    obs = pd.DataFrame(index=index)
    if batches is not None:
        obs["batch"] = pd.Categorical(batches.astype(str))
    adata = AnnData(sp.csr_matrix(X, dtype=np.float32), obs)
    key = None if batches is None else "batch"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # Exact neighbours: the others of scanpy fail with pynndescent 0.7.
            sc.pp.scrublet(
                adata,
                batch_key=key,
                use_approx_neighbors=False,
                random_state=_SEED,
                verbose=False,
            )
        scores = adata.obs["doublet_score"].to_numpy(dtype=np.float64)
        found = adata.obs["predicted_doublet"]
        if np.isnan(scores).any() or found.isna().any():
            raise ValueError("it gives some cells no score")
    except (ValueError, LookupError) as error:  # such as of cells with very few genes
        raise DataError(
            f"scrublet cannot tell doublets in these counts ({error}): let the lowest "
            "number of genes per cell be higher, or go on without looking for doublets."
        ) from error
    return scores, found.to_numpy(dtype=bool)
