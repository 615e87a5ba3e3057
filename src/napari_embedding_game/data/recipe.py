"""Preprocess raw counts with scanpy: filter, normalise, log1p, HVGs, PCA, Harmony.

Zheng et al., Nature Communications 8, 14049 (2017); Satija et al., Nature
Biotechnology 33, 495 (2015); as in scanpy's tutorial on 3k PBMCs.
The numbers of the recipe are in :class:`~.read_options.Recipe`.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from importlib import metadata
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from napari_embedding_game.data import harmony
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.errors import DataError, check_installed
from napari_embedding_game.data.expression import to_dense
from napari_embedding_game.data.limits.memory import check_fits
from napari_embedding_game.data.projection import Projection
from napari_embedding_game.data.quality_control import (
    Reasons,
    compute_cell_quality,
    describe_rare_genes,
    find_cells_left_out,
    find_doublets,
)
from napari_embedding_game.data.raw_counts import looks_like_counts
from napari_embedding_game.data.read_options import ReadOptions, Recipe
from napari_embedding_game.data.stages import Stage, Stages

if TYPE_CHECKING:
    from anndata import AnnData

_DOUBLET = "doublet (scrublet)"


@dataclass(frozen=True, eq=False)
class RecipeResult:
    """Results of a recipe from an earlier run, so that its long steps are skipped."""

    kept: NDArray[np.bool_]
    """(n_source_rows,) mask of the rows of the map."""
    X: NDArray[np.floating]
    """(n, C) components of these rows."""
    projection: Projection | None = None
    """None where batches were mixed in components that the file came with."""
    doublet_scores: NDArray[np.floating] | None = None
    """(n,) doublet scores; None where doublets were not sought."""


def apply_recipe(
    dataset: Dataset, recipe: Recipe | None = None, stored: RecipeResult | None = None
) -> Stages[Dataset]:
    """Compute principal components of raw counts by a recipe, in stages.

    In the dataset returned, ``X`` are the components, ``profile`` is ln(1 + normalised
    counts) of *all* kept genes, ``projection`` maps the latter to the former, ``obs``
    has the quality of cells, and ``provenance["recipe"]`` has all numbers. Cells left
    out are source rows that are not kept.

    ``recipe``: None for the default settings. ``stored``: results of an earlier run,
    used instead of computing them; ignored if other cells pass now.

    Raises DataError if scanpy is missing, the values are no counts, too few cells or
    genes are left, or the batches cannot be mixed.
    """
    recipe = recipe or Recipe()
    name, key = dataset.name, recipe.batch_key
    remedy = ", or compute principal components elsewhere"
    check_installed("scanpy", "The recipe for raw counts", remedy)
    if not looks_like_counts(dataset):
        raise DataError(
            f"{name} ({dataset.space}) holds no raw counts (whole numbers of at least "
            "100 genes): embed it as it is, or choose the space that does."
        )
    yield Stage("Filtering cells and genes")
    counts = sp.csr_matrix(dataset.X)
    quality, reasons = yield from _check_cells(dataset, counts, recipe, stored)
    kept = find_passing_cells(reasons)
    if stored is not None and not np.array_equal(kept, stored.kept[dataset.kept]):
        return (yield from apply_recipe(dataset, recipe))
    counts, part = counts[kept], dataset.subset(kept)
    n_detected = np.asarray((counts > 0).sum(axis=0)).ravel()
    genes, adata = yield from normalise_and_log(counts, n_detected, recipe, name)
    names = np.asarray(dataset.var_names, dtype=object)[genes]
    if stored is None or stored.projection is None:
        components, projection = yield from _compute_components(
            adata, names, part.obs, recipe, name
        )
    else:
        components, projection = stored.X, stored.projection
    yield Stage("Putting the map's data together")
    n_comps, mixed = components.shape[1], f', "{key}" mixed by Harmony' if key else ""
    fresh = {k: v.to_numpy() for k, v in quality.items() if k not in part.obs}
    n_used = len(projection.genes)
    facts = {
        **collect_recipe_facts(recipe, dataset.space, kept, genes, n_used, n_comps),
        "left_out": {limit: int(rows.sum()) for limit, (rows, _) in reasons.items()},
        **({} if key is None else {"harmonypy": metadata.version("harmonypy")}),
    }
    left_out = {
        why: dataset.expand_to_source_rows(rows, False)
        for rows, why in reasons.values()
        if rows.any()
    }
    return part.with_matrices(
        X=np.ascontiguousarray(components, dtype=np.float32),
        obs=part.obs.assign(**{k: v[kept] for k, v in fresh.items()}),
        quality={k: dataset.expand_to_source_rows(v, np.nan) for k, v in fresh.items()},
        left_out={**dataset.left_out, **left_out},
        var_names=tuple(f"pca {i + 1}" for i in range(n_comps)),
        space=f"{dataset.space}, {n_comps} principal components{mixed}",
        profile=sp.csr_matrix(adata.X, dtype=np.float32),
        profile_names=tuple(map(str, names)),
        has_expression=True,
        projection=projection,
        read_options=replace(dataset.read_options or ReadOptions(), recipe=recipe),
        notes=(*dataset.notes, *_describe_recipe(recipe, facts, reasons, len(genes))),
        provenance={**dataset.provenance, "recipe": facts},
    )


def _check_cells(
    dataset: Dataset,
    counts: sp.csr_matrix,
    recipe: Recipe,
    stored: RecipeResult | None,
) -> Stages[tuple[pd.DataFrame, Reasons]]:
    """Return the quality of each cell, and the cells left out by reason, in stages.

    With ``recipe.doublets`` the quality has a column "doublet_score", NaN for cells
    that are left out for another reason; scores of ``stored`` are used if there are
    any.  ``counts`` (n, G): of the dataset's cells.  Raises DataError if too few cells
    are left, or the batches cannot be mixed.
    """
    key = recipe.batch_key
    quality = compute_cell_quality(counts, dataset.var_names)
    reasons = find_cells_outside_limits(recipe, quality, dataset.name)
    kept = find_passing_cells(reasons)
    if key is not None:
        harmony.check_batches(dataset, key, kept)
    if recipe.doublets:
        yield Stage("Finding doublets")
        scores, is_doublet = np.full(len(kept), np.nan), np.zeros_like(kept)
        if stored is not None and stored.doublet_scores is not None:
            scores = stored.doublet_scores[dataset.kept]
            is_doublet = kept & ~stored.kept[dataset.kept]
        else:
            batches = None if key is None else dataset.obs[key][kept]
            scores[kept], is_doublet[kept] = find_doublets(counts[kept], batches)
        quality["doublet_score"], reasons["doublets"] = scores, (is_doublet, _DOUBLET)
    return quality, reasons


def _compute_components(
    adata: AnnData,
    names: NDArray[Any],
    obs: pd.DataFrame,
    recipe: Recipe,
    where: str,
) -> Stages[tuple[NDArray[np.floating], Projection]]:
    """Return principal components (n, C) and the projection to them, in stages.

    ``adata``: log1p of normalised counts (n, G). ``names`` (G,): of its genes. ``obs``
    (n rows): metadata with the batches, which Harmony mixes in the components if the
    recipe names their column.
    """
    variable = yield from compute_pca_of_variable_genes(adata, recipe, where)
    components = variable.obsm["X_pca"]
    variable.var_names = names[variable.var_names.astype(int)]
    projection = _to_projection(variable, recipe)
    if recipe.batch_key is not None:
        components = yield from harmony.mix_batches(components, obs, recipe.batch_key)
    return components, projection


def _describe_recipe(
    recipe: Recipe, facts: Mapping[str, Any], reasons: Reasons, n_genes: int
) -> list[str]:
    """Return sentences on the cells and genes that a recipe left out, and its steps.

    ``facts``: provenance of the run, see :func:`collect_recipe_facts`. ``n_genes``:
    number of genes before any was left out.
    """
    n_cells, notes = facts["cells_left_out"] + facts["cells_used"], list[str]()
    because = {_DOUBLET: "scrublet takes them for doublets"}
    for rows, why in reasons.values():
        words = because.get(why, f"they have {why}")
        if n := np.count_nonzero(rows):
            notes.append(f"{n:,} of {n_cells:,} cells left out because {words}.")
    if n_lost := facts["genes_left_out"]:
        rare = describe_rare_genes(recipe.min_cells)
        notes.append(f"{n_lost:,} of {n_genes:,} genes left out as found in {rare}.")
    notes.append(
        f"Recipe: counts normalised to {recipe.target_sum:,.0f} a cell, ln(1 + x), "
        f"{facts['genes_used']:,} variable genes, scaled to at most "
        f"{recipe.max_value:g}, {facts['components']} principal components."
    )
    key = recipe.batch_key
    return notes if key is None else [*notes, harmony.describe_mixing(key)]


# Steps that accept arrays in memory and arrays of Dask


def find_cells_outside_limits(
    recipe: Recipe, quality: pd.DataFrame, where: str
) -> Reasons:
    """Return the cells that each limit of a recipe leaves out, and the reasons.

    ``where``: the source, for the message. Raises DataError if fewer than three cells
    are left; it names the limit that leaves out most cells.
    """
    reasons = find_cells_left_out(recipe, quality)
    if (n_kept := int(find_passing_cells(reasons).sum())) < 3:
        rows, why = max(reasons.values(), key=lambda one: one[0].sum())
        raise DataError(
            f"Only {n_kept} of {len(rows):,} cells of {where} are within the limits of "
            f"the recipe, as {rows.sum():,} have {why}: change that number, "
            "in the window or in Python."
        )
    return reasons


def find_passing_cells(reasons: Reasons) -> NDArray[np.bool_]:
    """Return a mask of the cells, (n,), that no reason leaves out."""
    return np.asarray(~np.any([rows for rows, _ in reasons.values()], axis=0))


def normalise_and_log(
    counts: Any, n_detected: NDArray[np.integer], recipe: Recipe, where: str
) -> Stages[tuple[NDArray[np.bool_], AnnData]]:
    """Return a mask of the genes kept, (G,), and log1p of normalised counts, in stages.

    `counts` (n, G); `n_detected` (G,) is the number of cells in which each gene is
    found. The AnnData has the kept genes alone, named "0" onwards. Raises DataError if
    fewer than three genes are in enough cells.
    """
    import scanpy as sc
    from anndata import AnnData

    genes: NDArray[np.bool_] = n_detected >= max(1, recipe.min_cells)
    n_genes = int(np.count_nonzero(genes))
    if n_genes < 3:
        raise DataError(
            f"Only {n_genes} of {len(genes):,} genes of {where} are found in at least "
            f"{max(1, recipe.min_cells)} cells: lower that number of the recipe."
        )
    yield Stage("Normalising the counts of each cell")
    index = pd.RangeIndex(n_genes).astype(str)
    adata = AnnData(counts[:, np.flatnonzero(genes)], var=pd.DataFrame(index=index))
    _run_without_warnings(sc.pp.normalize_total, adata, target_sum=recipe.target_sum)
    yield Stage("Taking logarithms")
    _run_without_warnings(sc.pp.log1p, adata)
    adata.uns.clear()
    return genes, adata


def compute_pca_of_variable_genes(
    adata: AnnData, recipe: Recipe, where: str, solver: str | None = None
) -> Stages[AnnData]:
    """Return the scaled genes that vary most with their components, in stages.

    ``adata``: log1p of normalised counts, which get scanpy's columns on variable genes.
    ``solver``: ``svd_solver`` of scanpy; None for its default. The components are in
    ``obsm["X_pca"]``, at most one fewer than cells or genes. Raises DataError if the
    genes vary too little, or do not fit into memory.
    """
    import scanpy as sc

    yield Stage("Choosing the genes that vary most")
    n_top = min(recipe.n_top_genes, adata.n_vars)
    try:
        _run_without_warnings(sc.pp.highly_variable_genes, adata, n_top_genes=n_top)
    except ValueError as error:
        raise DataError(
            f"The genes of {where} vary too little to choose among them ({error}): "
            "compute principal components elsewhere."
        ) from error
    variable = adata[:, adata.var["highly_variable"].to_numpy()].copy()
    yield Stage("Scaling each gene")
    # Scaling makes the matrix dense in any case.
    if hasattr(variable.X, "map_blocks"):
        empty = np.empty((0, 0), variable.X.dtype)
        variable.X = variable.X.map_blocks(to_dense, dtype=empty.dtype, meta=empty)
    else:
        check_fits(8 * variable.n_obs * variable.n_vars, where, "its scaled genes")
        variable.X = to_dense(variable.X)
    _run_without_warnings(sc.pp.scale, variable, max_value=recipe.max_value)
    yield Stage("Computing principal components")
    n_comps = min(recipe.n_comps, min(variable.shape) - 1)
    how = {"random_state": harmony.SEED, "svd_solver": solver}
    _run_without_warnings(sc.pp.pca, variable, n_comps=n_comps, **how)
    return variable


def collect_recipe_facts(
    recipe: Recipe,
    space: str,
    kept_cells: Any,
    kept_genes: Any,
    n_used: int,
    n_comps: int,
) -> dict[str, Any]:
    """Return all numbers of a recipe and of its run, for the provenance.

    `kept_cells` (n,) and `kept_genes` (G,) are masks. `n_used` is the number of
    variable genes, `n_comps` the number of components.
    """
    return {
        **asdict(recipe),
        "space": space,
        "cells_left_out": int(np.count_nonzero(~kept_cells)),
        "cells_used": int(np.count_nonzero(kept_cells)),
        "genes_left_out": int(np.count_nonzero(~kept_genes)),
        "genes_used": n_used,
        "components": n_comps,
        "random_state": harmony.SEED,
        "scanpy": metadata.version("scanpy"),
    }


def _to_projection(variable: AnnData, recipe: Recipe) -> Projection:
    """Build the projection from the means, deviations and loadings of scaled genes.

    ``variable``: result of :func:`compute_pca_of_variable_genes`, with names of genes.
    """
    loadings = np.asarray(variable.varm["PCs"], np.float32)
    return Projection(
        genes=tuple(map(str, variable.var_names)),
        mean=variable.var["mean"].to_numpy(np.float32),
        std=variable.var["std"].to_numpy(np.float32),
        loadings=loadings,
        offset=np.asarray(variable.X.mean(axis=0) @ loadings, np.float32),
        target_sum=recipe.target_sum,
        max_value=recipe.max_value,
    )


def _run_without_warnings(step: Any, *args: Any, **options: Any) -> None:
    """Call a function of scanpy, ignoring its warnings."""
    with warnings.catch_warnings(action="ignore"):
        step(*args, **options)
