"""Preprocess raw counts with scanpy: filter, normalise, log1p, HVGs, PCA, Harmony.

Zheng et al., Nature Communications 8, 14049 (2017); Satija et al., Nature
Biotechnology 33, 495 (2015); as in scanpy's tutorial on 3k PBMCs.
"""

from __future__ import annotations

import warnings
from dataclasses import asdict, dataclass, replace
from importlib import metadata
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.expression import COUNTS_NOTE
from napari_embedding_game.data.harmony import (
    check_batches,
    mixed_by_harmony,
    told_of_batches,
)
from napari_embedding_game.data.limits.memory import check_fits
from napari_embedding_game.data.projection import Projection
from napari_embedding_game.data.quality_control import (
    LIMITS,
    cell_quality,
    find_doublets,
)
from napari_embedding_game.data.raw_counts import counts_advice, looks_like_counts
from napari_embedding_game.data.read_options import ReadOptions, Recipe
from napari_embedding_game.data.stages import Stage, Stages

if TYPE_CHECKING:
    from anndata import AnnData

_SEED = 0
_OF_ONE = {"doublets": "doublet (scrublet)"}
"""Why one cell was left out, where the sentence on all of them does not say it."""


@dataclass(frozen=True, eq=False)
class Prepared:
    """What a recipe came to another time: its long steps need not be done again."""

    kept: NDArray[np.bool_]
    """(n_source_rows,) the rows that the map is made of"""
    X: NDArray[np.floating]
    """(n, C) their components"""
    projection: Projection | None = None
    """None where batches were mixed in components that the file came with."""
    doublet_scores: NDArray[np.floating] | None = None
    """(n,) or None where doublets were not looked for"""


def apply_recipe(
    dataset: Dataset, recipe: Recipe | None = None, made: Prepared | None = None
) -> Stages[Dataset]:
    """Make principal components of raw counts, in stages.

    Parameters
    ----------
    dataset : Dataset
        Its ``X`` holds raw counts; see :func:`looks_like_counts`.
    recipe : Recipe, optional
    made : Prepared, optional
        What came of the same another time; not used where other cells pass now.

    Returns
    -------
    Dataset
        ``X`` are the components, ``profile`` is ln(1 + normalised counts) of *all*
        genes left, ``projection`` is the way from one to the other, and
        ``provenance["recipe"]`` has every number.  Cells left out are rows of the
        source that are not kept.

    Raises
    ------
    DataError
        If scanpy is missing, these are no counts, too little is left, or the batches
        cannot be mixed.
    """
    recipe = recipe or Recipe()
    _check(dataset)
    yield Stage("Starting scanpy")
    import scanpy as sc

    yield Stage("Filtering cells and genes")
    chosen = yield from _choose_cells(dataset, recipe, made)
    cells = chosen.kept
    if made is not None and not np.array_equal(cells, made.kept[dataset.kept]):
        return (yield from apply_recipe(dataset, recipe))
    adata, genes = _filtered(dataset, cells, recipe)
    if recipe.batch_key is not None:
        check_batches(dataset.obs[cells], recipe.batch_key, dataset.name)
    yield Stage("Normalising the counts of each cell")
    _quiet(sc.pp.normalize_total, adata, target_sum=recipe.target_sum)
    yield Stage("Taking logarithms")
    _quiet(sc.pp.log1p, adata)
    adata.uns.clear()
    lognorm, key = adata.X, recipe.batch_key
    if made is None or made.projection is None:
        names = np.asarray(dataset.var_names, dtype=object)[genes]
        components, projection = yield from _components(
            adata, recipe, names, dataset.name
        )
        if key is not None:
            obs = dataset.obs[cells]
            components = yield from mixed_by_harmony(components, obs, key)
    else:
        components, projection = made.X, made.projection
    n_used, n_comps = len(projection.genes), components.shape[1]
    yield Stage("Putting the map's data together")
    whole = _with_components(dataset, components, lognorm, chosen, genes, key)
    return replace(
        whole,
        projection=projection,
        read_options=replace(dataset.read_options or ReadOptions(), recipe=recipe),
        notes=(
            *_without_advice(dataset),
            *_told(chosen, genes, recipe, n_used, n_comps),
        ),
        provenance={
            **dataset.provenance,
            "recipe": {
                **asdict(recipe),
                "space": dataset.space,
                "cells_left_out": int(np.count_nonzero(~cells)),
                "left_out": chosen.numbers,
                "cells_used": int(np.count_nonzero(cells)),
                "genes_left_out": int(np.count_nonzero(~genes)),
                "genes_used": n_used,
                "components": int(n_comps),
                "random_state": _SEED,
                "scanpy": metadata.version("scanpy"),
                **({} if key is None else {"harmonypy": metadata.version("harmonypy")}),
            },
        },
    )


def _check(dataset: Dataset) -> None:
    if find_spec("scanpy") is None:
        raise DataError(
            "The recipe for raw counts needs scanpy, which is not installed: run "
            "`pip install scanpy`, or compute principal components elsewhere."
        )
    if not looks_like_counts(dataset):
        raise DataError(
            f"{dataset.name} ({dataset.space}) holds no raw counts (whole numbers of "
            "at least 100 genes): embed it as it is, or choose the space that does."
        )


@dataclass(frozen=True, eq=False)
class _ChosenCells:
    """The cells that the map is made of."""

    kept: Any
    """(n,) bool"""
    reasons: dict[str, tuple[Any, str]]
    """Masks of those left out, (n,), and why, by the field of the recipe."""
    figures: dict[str, Any]
    """(n,) what was found out about all cells, by the name of the column."""

    @property
    def numbers(self) -> dict[str, int]:
        """Cells that each field of the recipe leaves out first."""
        return {
            name: int(np.count_nonzero(rows))
            for name, (rows, _) in self.reasons.items()
        }


def _choose_cells(
    dataset: Dataset, recipe: Recipe, made: Prepared | None
) -> Stages[_ChosenCells]:
    """Leave out cells of low quality, and doublets."""
    quality = cell_quality(dataset.X, dataset.var_names)
    # The last limit is not asked where no gene is mitochondrial.
    reasons = dict(zip(LIMITS, recipe.limits.left_out(quality), strict=False))
    n = len(quality.genes)
    kept = _kept(reasons)
    n_kept = int(np.count_nonzero(kept))
    if n_kept < 3:
        n_genes = int(np.count_nonzero(~reasons["min_genes"][0]))
        raise DataError(
            f"Only {n_genes} of {n:,} cells of {dataset.name} have at least "
            f"{recipe.min_genes} genes: lower that number of the recipe."
            if n_genes < 3
            else f"Only {n_kept} of {n:,} cells of {dataset.name} are within the "
            "limits of their quality: widen these."
        )
    figures: dict[str, Any] = quality.columns()
    if recipe.doublets:
        if made is None:
            are_doublets, scores = yield from _doublets(dataset, recipe, kept)
        else:
            are_doublets, scores = kept & ~made.kept[dataset.kept], np.full(n, np.nan)
            if made.doublet_scores is not None:
                scores = made.doublet_scores[dataset.kept]
        reasons["doublets"] = are_doublets, "scrublet takes them for doublets"
        figures["doublet_score"] = scores
        kept &= ~are_doublets
    return _ChosenCells(kept, reasons, figures)


def _doublets(dataset: Dataset, recipe: Recipe, kept: Any) -> Stages[tuple[Any, Any]]:
    """Return which cells are doublets, (n,), and their scores, NaN where not kept."""
    yield Stage("Finding doublets")
    key = recipe.batch_key
    batches = None if key is None else dataset.obs[key][kept]
    found = find_doublets(sp.csr_matrix(dataset.X)[kept], batches)
    are_doublets, scores = np.zeros(len(kept), bool), np.full(len(kept), np.nan)
    are_doublets[np.flatnonzero(kept)[found.are_doublets]] = True
    scores[kept] = found.scores
    return are_doublets, scores


def _components(
    adata: AnnData, recipe: Recipe, names: Any, where: str
) -> Stages[tuple[Any, Projection]]:
    """Return principal components of the genes that vary most, and the way to them."""
    import scanpy as sc

    yield Stage("Choosing the genes that vary most")
    variable = _variable_genes(adata, recipe, where)
    yield Stage("Scaling each gene")
    check_fits(8 * variable.n_obs * variable.n_vars, where, "its scaled genes")
    # Scaling makes it dense in any case; scanpy warns of it, and another thread may
    # just then have taken the silence away.
    variable.X = variable.X.toarray() if sp.issparse(variable.X) else variable.X
    _quiet(sc.pp.scale, variable, max_value=recipe.max_value)
    yield Stage("Computing principal components")
    n_comps = min(recipe.n_comps, min(variable.shape) - 1)
    _quiet(sc.pp.pca, variable, n_comps=n_comps, random_state=_SEED)
    variable.var_names = names[adata.var["highly_variable"].to_numpy()]
    return variable.obsm["X_pca"], _projection(variable, recipe)


def _kept(reasons: dict[str, tuple[Any, str]]) -> Any:
    """Return the cells, (n,), that nothing speaks against."""
    return ~np.any([rows for rows, _ in reasons.values()], axis=0)


def _filtered(dataset: Dataset, cells: Any, recipe: Recipe) -> tuple[AnnData, Any]:
    """Return the counts of some cells in the genes that pass, and these as a mask."""
    from anndata import AnnData

    X = sp.csr_matrix(dataset.X)[cells]
    genes = np.asarray((X > 0).sum(axis=0)).ravel() >= max(1, recipe.min_cells)
    if np.count_nonzero(genes) < 3:
        raise DataError(
            f"Only {np.count_nonzero(genes)} of {len(genes):,} genes of {dataset.name} "
            f"are found in at least {recipe.min_cells} cells: lower that number of the "
            "recipe."
        )
    names = pd.RangeIndex(np.count_nonzero(genes)).astype(str)
    return AnnData(X[:, genes].copy(), var=pd.DataFrame(index=names)), genes


def _variable_genes(adata: AnnData, recipe: Recipe, where: str) -> AnnData:
    import scanpy as sc

    n_top = min(recipe.n_top_genes, adata.n_vars)
    try:
        _quiet(sc.pp.highly_variable_genes, adata, n_top_genes=n_top)
    except ValueError as error:
        raise DataError(
            f"The genes of {where} vary too little to choose among them ({error}): "
            "compute principal components elsewhere."
        ) from error
    return adata[:, adata.var["highly_variable"].to_numpy()].copy()


def _projection(variable: AnnData, recipe: Recipe) -> Projection:
    """Return the way to the components, from their scaled genes and loadings."""
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


def _with_components(
    dataset: Dataset,
    components: Any,
    lognorm: Any,
    chosen: _ChosenCells,
    genes: Any,
    batch_key: str | None,
) -> Dataset:
    components = np.ascontiguousarray(components, dtype=np.float32)
    names = np.asarray(dataset.var_names, dtype=object)[genes]
    mixed = "" if batch_key is None else f', "{batch_key}" mixed by Harmony'
    part = dataset.subset(chosen.kept)
    fresh = {k: v for k, v in chosen.figures.items() if k not in part.obs}
    left_out = {
        _OF_ONE.get(name, why.removeprefix("they have ")): dataset.expand(rows, False)
        for name, (rows, why) in chosen.reasons.items()
        if rows.any()
    }
    return replace(
        part,
        X=components,
        obs=part.obs.assign(**{k: v[chosen.kept] for k, v in fresh.items()}),
        quality={k: dataset.expand(v, np.nan) for k, v in fresh.items()},
        left_out={**dataset.left_out, **left_out},
        var_names=tuple(f"pca {i + 1}" for i in range(components.shape[1])),
        space=f"{dataset.space}, {components.shape[1]} principal components{mixed}",
        profile=sp.csr_matrix(lognorm, dtype=np.float32),
        profile_names=tuple(map(str, names)),
        has_expression=True,
    )


def _without_advice(dataset: Dataset) -> list[str]:
    advice = [*counts_advice(dataset.X, dataset.space), COUNTS_NOTE]
    return [note for note in dataset.notes if note not in advice]


def _told(
    chosen: _ChosenCells, genes: Any, recipe: Recipe, n_used: int, n_comps: int
) -> list[str]:
    notes = [
        f"{np.count_nonzero(rows):,} of {len(rows):,} cells left out because {why}."
        for rows, why in chosen.reasons.values()
        if rows.any()
    ]
    if not genes.all():
        notes.append(
            f"{np.count_nonzero(~genes):,} of {len(genes):,} genes left out because "
            f"fewer than {recipe.min_cells} cells have them."
        )
    return [
        *notes,
        f"Recipe: counts normalised to {recipe.target_sum:,.0f} a cell, ln(1 + x), "
        f"{n_used:,} variable genes, scaled to at most {recipe.max_value:g}, "
        f"{n_comps} principal components.",
        *([] if recipe.batch_key is None else [told_of_batches(recipe.batch_key)]),
    ]


def _quiet(step: Any, *args: Any, **options: Any) -> None:
    """Run a step of scanpy without its FutureWarnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        step(*args, **options)
