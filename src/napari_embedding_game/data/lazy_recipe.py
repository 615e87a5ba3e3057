"""Apply the recipe to raw counts that do not fit into memory, by scanpy on Dask.

The steps are those of :mod:`~.recipe`, on chunks of cells that are read when needed;
the principal components are computed from the covariance of the genes, which is small
(``svd_solver="covariance_eigh"``). Memory holds a few chunks at a time, and some 8 kB
that Dask keeps for each cell. The result is an array of components, for
:class:`~.formats.lazy_rows.LazyRows`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_embedding_game.data import recipe as steps
from napari_embedding_game.data.errors import DataError, check_installed
from napari_embedding_game.data.formats import store
from napari_embedding_game.data.formats.anndata import to_readable_root
from napari_embedding_game.data.formats.spaces import (
    choose_space,
    get_space_item,
    get_space_var,
)
from napari_embedding_game.data.gene_names import choose_gene_display_names
from napari_embedding_game.data.quality_control import compute_cell_quality
from napari_embedding_game.data.raw_counts import looks_like_counts
from napari_embedding_game.data.read_options import Recipe
from napari_embedding_game.data.stages import Stage, Stages

CHUNK = 8_192
"""Number of cells in a chunk: 64 MB of 2,000 scaled genes."""


def write_principal_components(
    source: Path, out: Path, recipe: Recipe | None = None, space: str | None = None
) -> Stages[tuple[NDArray[np.int64], dict[str, Any]]]:
    """Compute principal components of raw counts by chunks and write them, in stages.

    Dask computes them: in its threads here, or in the workers of a cluster whose client
    is the present one, which read the file at the same path.

    `source` is an .h5ad or .zarr of AnnData; its counts are in `space`, ``X`` by
    default, or such as ``layers['counts']``. Batches and doublets of the recipe are
    ignored. Writes to `out` a zarr array (n, n_comps) float32. Returns the number of
    each kept cell in the file, (n,) ascending from 0, and all numbers of the recipe.

    Raises DataError if scanpy is missing, the values are no counts, or too few cells or
    genes are left.
    """
    check_installed("scanpy", "The recipe for raw counts")
    from anndata.experimental import read_elem_lazy
    from dask.array import from_array
    from dask.base import compute
    from dask.delayed import delayed

    recipe, name = recipe or Recipe(), source.name

    def compute_of_chunks(X: Any, function: Callable[..., Any]) -> Any:
        """Compute ``function`` of each chunk of X, and return the results in order."""
        return compute(*map(delayed(function), X.to_delayed().ravel()))

    with store.open_store(source) as file:
        root = to_readable_root(file, source)
        where = choose_space(root, space or "X", name)
        item = get_space_item(root, where)
        n_cells, n_genes = _find_matrix_shape(item)
        opened = read_elem_lazy if store.is_stored(item) else from_array
        X = opened(item, chunks=(min(CHUNK, n_cells), n_genes))
        if hasattr(item, "keys"):  # a sparse matrix is a group
            store.validate_stored_indptr(item)
            X = X.map_blocks(store.to_checked_csr, dtype=X.dtype, meta=X._meta)
        if not looks_like_counts(X[: min(CHUNK, n_cells)].compute()):
            raise DataError(
                f"{name} ({where}) holds no raw counts (whole numbers of at least 100 "
                "genes): leave out --recipe, or choose the space that does."
            )
        yield Stage("Counting the genes of each cell")
        var = store.read_element(get_space_var(root, where), name, "its table var")
        quality = compute_of_chunks(
            X, partial(compute_cell_quality, names=list(choose_gene_display_names(var)))
        )
        cells = steps.find_passing_cells(
            steps.find_cells_outside_limits(recipe, pd.concat(quality), name)
        )
        X = X[np.flatnonzero(cells)]
        n_detected = np.sum(compute_of_chunks(X, _count_cells_per_gene), axis=0)
        genes, adata = yield from steps.normalise_and_log(X, n_detected, recipe, name)
        solver = "covariance_eigh"
        variable = yield from steps.compute_pca_of_variable_genes(
            adata, recipe, name, solver
        )
        components = variable.obsm["X_pca"].astype(np.float32)
        n_comps = int(components.shape[1])
        components.rechunk((CHUNK, n_comps)).to_zarr(str(out))
    n_used = int(variable.n_vars)
    facts = steps.collect_recipe_facts(recipe, where, cells, genes, n_used, n_comps)
    return np.flatnonzero(cells).astype(np.int64), facts


def read_counts_shape(source: Path, space: str | None = None) -> tuple[int, int]:
    """Return the numbers of cells and genes of a file, without reading the counts.

    ``space``: "X" by default. Raises DataError if the file has no such space.
    """
    with store.open_store(source) as file:
        root = to_readable_root(file, source)
        return _find_matrix_shape(
            get_space_item(root, choose_space(root, space or "X", source.name))
        )


def _find_matrix_shape(item: Any) -> tuple[int, int]:
    # A sparse matrix is a group that stores its shape as an attribute.
    """Return the rows and columns of a stored matrix."""
    n_cells, n_genes = item.attrs["shape"] if hasattr(item, "keys") else item.shape
    return int(n_cells), int(n_genes)


def _count_cells_per_gene(counts: Any) -> NDArray[np.int64]:
    """Return the number of cells with a count of each gene, (G,)."""
    return np.asarray((counts > 0).sum(axis=0), np.int64).ravel()
