"""The recipe for raw counts of a file that does not fit into memory, by scanpy on Dask.

The steps are those of :mod:`~.recipe`, on chunks of cells that are read when they are
needed; the principal components are those of the covariance of the genes, which is
small (``svd_solver="covariance_eigh"``).  In memory are some chunks at a time, and some
8 kB that Dask keeps for each cell.  What it leaves behind is an
array of components, for :class:`~.formats.lazy_rows.LazyRows`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.formats.anndata import open_store
from napari_embedding_game.data.formats.anndata_contents import split_space
from napari_embedding_game.data.quality_control import CellLimits
from napari_embedding_game.data.raw_counts import looks_like_counts
from napari_embedding_game.data.read_options import Recipe

CHUNK = 8_192
"""Cells that are worked on at a time: 64 MB of 2,000 scaled genes."""
_SEED = 0
NEEDS_DASK = (
    "The recipe for a file that is read in parts needs scanpy and Dask: pip install "
    '"napari-embedding-game[dask]" scanpy.'
)


@dataclass(frozen=True, eq=False)
class LazyComponents:
    """Principal components of the cells that were kept, in an array of zarr."""

    path: Path
    """Of the (n, n_comps) array, float32."""
    rows: NDArray[np.int64]
    """(n,) number of each kept cell in the file, ascending."""
    facts: dict[str, Any]
    """Every number of the recipe."""


def write_components(
    source: Path,
    out: Path,
    recipe: Recipe | None = None,
    space: str | None = None,
    tell: Callable[[str], None] = lambda text: None,
) -> LazyComponents:
    """Make principal components of raw counts, chunk by chunk.

    They are computed by Dask: by its threads here, or by the workers of a cluster
    whose client is the present one, which read the file at the same path.

    Parameters
    ----------
    source : Path
        .h5ad or .zarr of AnnData.
    out : Path
        Of the array of zarr.
    recipe : Recipe, optional
        Without batches.
    space : str, optional
        The counts, ``X`` by default, or such as ``layers['counts']``.
    tell : callable
        Receives what is being done.

    Raises
    ------
    DataError
        Dask or scanpy is missing, these are no counts, or too little is left.
    """
    try:
        import dask
        import scanpy as sc
        from anndata import AnnData
        from anndata.experimental import read_elem_lazy
    except ImportError as error:
        raise DataError(NEEDS_DASK) from error
    recipe = recipe or Recipe()
    if recipe.doublets or recipe.limits != CellLimits(recipe.min_genes):
        raise DataError(
            "Counts that are read in parts can be left out by their number of genes "
            "only: leave out other cells before, or read the whole file."
        )
    where = space or "X"
    with open_store(source) as root, dask.config.set(scheduler=_scheduler()):
        item = _counts(root, where, source.name)
        n_cells, n_genes = _shape(item)
        X = read_elem_lazy(item, chunks=(min(CHUNK, n_cells), n_genes))
        _check(X, source.name, where)
        tell("Counting the genes of each cell")
        cells = np.flatnonzero(_n_found(X, 1) >= max(1, recipe.min_genes))
        _check_left(len(cells), n_cells, "cells", recipe.min_genes, source.name)
        X = X[cells]
        genes = np.flatnonzero(_n_found(X, 0) >= max(1, recipe.min_cells))
        _check_left(len(genes), n_genes, "genes", recipe.min_cells, source.name)
        names = pd.RangeIndex(len(genes)).astype(str)
        adata = AnnData(X[:, genes], var=pd.DataFrame(index=names))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            sc.pp.normalize_total(adata, target_sum=recipe.target_sum)
            sc.pp.log1p(adata)
            adata.uns.clear()
            tell("Choosing the genes that vary most")
            n_top = min(recipe.n_top_genes, adata.n_vars)
            sc.pp.highly_variable_genes(adata, n_top_genes=n_top)
            variable = adata[:, adata.var["highly_variable"].to_numpy()].copy()
            empty = np.empty((0, 0), variable.X.dtype)
            variable.X = variable.X.map_blocks(_dense, dtype=empty.dtype, meta=empty)
            tell("Scaling each gene and computing principal components")
            sc.pp.scale(variable, max_value=recipe.max_value)
            n_comps = min(recipe.n_comps, min(variable.shape) - 1)
            sc.pp.pca(
                variable,
                n_comps=n_comps,
                random_state=_SEED,
                svd_solver="covariance_eigh",
            )
            components = variable.obsm["X_pca"].astype(np.float32)
            components.rechunk((CHUNK, n_comps)).to_zarr(str(out))
    facts = {
        **asdict(recipe),
        "space": where,
        "cells_left_out": n_cells - len(cells),
        "genes_left_out": n_genes - len(genes),
        "genes_used": int(variable.n_vars),
        "components": n_comps,
        "random_state": _SEED,
        "scanpy": metadata.version("scanpy"),
    }
    return LazyComponents(out, cells.astype(np.int64), facts)


def counts_shape(source: Path, space: str | None = None) -> tuple[int, int]:
    """Return how many cells and genes a file has, reading none of them."""
    with open_store(source) as root:
        return _shape(_counts(root, space or "X", source.name))


def _shape(item: Any) -> tuple[int, int]:
    # Of a sparse matrix, which is a group, it is written down.
    shape = item.attrs["shape"] if hasattr(item, "keys") else item.shape
    n_cells, n_genes = map(int, shape)
    return n_cells, n_genes


def _scheduler() -> Any:
    """Return the client of a cluster, if there is one, else Dask's threads."""
    try:
        from distributed import get_client

        return get_client()
    except (ImportError, ValueError):
        return "threads"


def _counts(root: Any, space: str, name: str) -> Any:
    """Return the stored matrix of a space."""
    item = root
    for part in split_space(space) or (space,):
        if part not in item:
            raise DataError(f"{name} has no {space}: choose the space of its counts.")
        item = item[part]
    return item


def _check(X: Any, name: str, space: str) -> None:
    """Raise DataError unless the first rows of these are raw counts."""
    first = X[: min(CHUNK, X.shape[0])].compute()
    if not looks_like_counts(first):
        raise DataError(
            f"{name} ({space}) holds no raw counts (whole numbers of at least 100 "
            "genes): leave out --recipe, or choose the space that does."
        )


def _check_left(n_left: int, n: int, what: str, least: int, name: str) -> None:
    if n_left < 3:
        raise DataError(
            f"Only {n_left} of {n:,} {what} of {name} have at least {least} "
            f"{'genes' if what == 'cells' else 'cells'}: these are no counts for the "
            "usual recipe."
        )


def _n_found(X: Any, axis: int) -> NDArray[np.int64]:
    """Return how many values above 0 there are along an axis."""
    n_blocks = X.numblocks[0]
    chunks = (X.chunks[0], (1,)) if axis == 1 else ((1,) * n_blocks, (X.shape[1],))
    found = X.map_blocks(_count, axis, dtype=np.int64, chunks=chunks)
    return np.asarray(found.sum(axis=axis).compute())


def _count(block: Any, axis: int) -> NDArray[np.int64]:
    counted = np.asarray((block > 0).sum(axis=axis), np.int64).ravel()
    return counted[:, None] if axis == 1 else counted[None]


def _dense(block: Any) -> Any:
    return block.toarray() if sp.issparse(block) else block
