"""Place new cells on the map of a reference, and predict their labels.

1. Genes are aligned by name.
2. Cells are normalised, scaled and projected as the reference was.
3. Cells are placed as by ``EmbeddingGame.transform``.
4. Labels are predicted by a vote of the nearest reference cells.
5. Cells unlike any reference cell are found.

The reference stays as it is, and no new cell changes the position or label of another.
Only step 5 judges a new cell together with the new cells around it, see
:mod:`~napari_embedding_game.core.new_rows.likeness`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.inspect.transfer import vote_labels, vote_weights
from napari_embedding_game.core.new_rows.batch_shift import remove_batch_shift
from napari_embedding_game.core.new_rows.likeness import (
    MAX_ROWS,
    MIN_ROWS,
    UNLIKE,
    DistanceScorer,
    ResidualScorer,
)
from napari_embedding_game.core.new_rows.search import FittedSearch
from napari_embedding_game.data.columns import KEY, make_names_unique
from napari_embedding_game.data.dataset import CONFIDENCE, AddedColumns
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.export.anndata_result import MAP_COLUMNS
from napari_embedding_game.data.export.result import (
    find_installed_versions,
    to_storable,
)
from napari_embedding_game.data.expression import (
    guess_gene_kind,
    read_log_base,
    to_natural_log,
)
from napari_embedding_game.data.formats.spaces import RAW, split_space
from napari_embedding_game.data.gene_names import FoundNames
from napari_embedding_game.data.prediction import PREDICTED, PredictedLabels
from napari_embedding_game.data.projection import (
    Projection,
    infer_count_sum,
    match_genes,
    normalise_expression,
)
from napari_embedding_game.data.stages import Stage, Stages
from napari_embedding_game.session.reference.reference_map import ReferenceMap

if TYPE_CHECKING:
    from anndata import AnnData

N_NEIGHBORS = 15
"""Reference cells that vote on the label of a new one."""
MIN_SHARED_GENES = 0.5
_ROWS_AT_ONCE = 8_192
MOSTLY_UNLIKE = (
    "{:.0%} of the new cells are unlike the reference: another tissue, species, assay "
    "or treatment, or another batch. Their labels say little{}."
)
CORRECT = "; where the kinds of cells are the same, correct the batch"


@dataclass(frozen=True, eq=False)
class MappedCells:
    """Positions, labels and likeness of n new cells on the map of a reference."""

    positions: NDArray[np.float32]
    """(n, d) positions on the map."""
    rows: NDArray[np.float32] | None
    """(n, D) coordinates in the reference's space, where projected from genes."""
    labels: Mapping[str, PredictedLabels]
    """Predicted labels, by column of the reference."""
    likeness: NDArray[np.float32]
    """(n,) share of reference cells at least as unlike the reference, above 0 to 1."""
    distance: NDArray[np.float32]
    """(n,) mean distance to the nearest reference cells, relative to the mean distance
    between these cells and theirs."""
    unlike: NDArray[np.bool_]
    """(n,) whether ``likeness`` is below the threshold."""
    published: NDArray[np.float32] | None
    """(n, d) positions in coordinates of a map by another program; None without one."""
    notes: tuple[str, ...]
    """Sentences that a person has to know."""
    facts: Mapping[str, Any]
    """Parameters and figures, as plain values, to be stored with the result."""


@dataclass(frozen=True, eq=False)
class ProjectedCells:
    """New cells in the space of a reference."""

    rows: NDArray[np.float32]
    """(n, D) coordinates."""
    match: FoundNames | None
    """The matched genes; None where the cells brought their coordinates along."""
    lognorm: Any
    """(n, M) normalised logarithms of the genes; None without genes."""
    notes: tuple[str, ...]
    """Sentences that a person has to know."""


def project_cells(
    name: str,
    cells: AnnData,
    reference: ReferenceMap,
    min_shared_genes: float = MIN_SHARED_GENES,
) -> ProjectedCells:
    """Return new cells in the space of a reference.

    ``name``: of the new cells in sentences. ``min_shared_genes``: as of
    :func:`.tl.map_onto_reference`. Raises DataError: there are no cells, they have too
    few genes, or lack the space where it cannot be computed.
    """
    if cells.n_obs < 1:
        raise DataError(f"{name} has no cells: choose another file.")
    projection, notes = reference.projection, reference.notes
    if projection is None:
        rows = _read_space_of_cells(name, cells, reference)
        return ProjectedCells(rows, None, None, notes)
    aligned = _align_genes(name, cells, reference, projection, min_shared_genes)
    match, lognorm, note = aligned
    parts = [
        projection.project(projection.scale_genes(lognorm[block], match))
        for block in _split_into_blocks(cells.n_obs)
    ]
    rows = np.concatenate(parts).astype(reference.dataset.X.dtype, copy=False)
    return ProjectedCells(rows, match, lognorm, (note, *notes))


def vote_on_map(
    column: pd.Series,
    points: NDArray[np.float32],
    positions: NDArray[np.float32],
    n_neighbors: int = N_NEIGHBORS,
) -> tuple[pd.Categorical, NDArray[np.float32]]:
    """Return the label with most votes for new cells, (Q,), and its share of the votes.

    ``column`` (N rows): labels of the cells at ``points`` (N, d). Of these the nearest
    ``n_neighbors`` to each of ``positions`` (Q, d) vote.
    """
    search, k = FittedSearch(points, "euclidean"), min(n_neighbors, len(points))
    voters, distances = search(positions, k)
    texts = column.astype(object).map(str, na_action="ignore")
    codes, names = pd.factorize(texts, sort=True)
    winners, confidence = vote_labels(codes[voters], vote_weights(distances))
    voted = pd.Categorical.from_codes(winners, names)
    return voted.remove_unused_categories(), confidence.astype(np.float32)


def _split_into_blocks(n_rows: int) -> list[slice]:
    """Return slices of consecutive rows, ``_ROWS_AT_ONCE`` at most in each."""
    starts = range(0, n_rows, _ROWS_AT_ONCE)
    return [slice(begin, begin + _ROWS_AT_ONCE) for begin in starts]


def map_cells(
    reference: ReferenceMap,
    name: str,
    cells: AnnData,
    labels: Sequence[str] = (),
    *,
    n_neighbors: int = N_NEIGHBORS,
    min_shared_genes: float = MIN_SHARED_GENES,
    unlike: float = UNLIKE,
    correct_batch: bool = False,
) -> Stages[MappedCells]:
    """Place new cells on the map of a reference, in stages.

    A note warns where more than half of the cells are unlike the reference.

    Options and errors are those of :func:`.tl.map_onto_reference`. ``name``: of the new
    cells in sentences. ``labels``: columns of the reference to predict.
    """
    _validate_options(reference, labels, n_neighbors, min_shared_genes, unlike)
    yield Stage("Aligning the genes")
    n, dataset, fitted = cells.n_obs, reference.dataset, reference.fitted
    projected = project_cells(name, cells, reference, min_shared_genes)
    rows, match, notes = projected.rows, projected.match, projected.notes
    if correct_batch:
        yield Stage("Taking the batch effect away")
        seed = fitted.settings.random_state
        rows = remove_batch_shift(rows, np.asarray(dataset.X), seed)
    placed, k = [], min(n_neighbors, len(dataset.obs))
    for block in _split_into_blocks(n):
        yield Stage("Placing the new cells", block.start / n)
        placed.append((fitted.place(rows[block]), *fitted.search(rows[block], k)))
    positions, near, distances = map(np.concatenate, zip(*placed, strict=True))
    embedding = positions.astype(np.float32, copy=False)
    graph = fitted.graph
    scorer = DistanceScorer(graph.indices[:, :k], graph.distances[:, :k])
    ratios = scorer.compute_ratios(near, distances)
    yield Stage("Looking for cells unlike the reference")
    likeness = None
    if match is not None and reference.projection is not None:
        likeness = _score_likeness(
            reference, reference.projection, match, projected.lognorm, n_neighbors
        )
    how = "distance" if likeness is None else "expression"
    likeness = scorer(ratios) if likeness is None else likeness
    is_unlike = likeness < unlike
    if is_unlike.mean() > 0.5:
        remedy = "" if correct_batch else CORRECT
        notes = (*notes, MOSTLY_UNLIKE.format(is_unlike.mean(), remedy))
    of_cells: dict[str, Any] = {
        "likeness": likeness.astype(np.float32),
        "distance": ratios.astype(np.float32),
        "unlike": is_unlike,
    }
    yield Stage("Predicting labels")
    published, origin = None, reference.origin
    if origin is not None:
        published = np.asarray(origin + reference.unit * embedding, np.float32)
    of_reference = AddedColumns(
        kind="predicted", reference=reference.name, correct_batch=correct_batch
    )
    predicted = {}
    for column in labels:
        found = vote_on_map(dataset.obs[column], fitted.points, embedding, k)
        how_voted = replace(of_reference, label=column)
        predicted[column] = PredictedLabels(how_voted, *found, **of_cells)
    return MappedCells(
        positions=embedding,
        rows=None if match is None else rows,
        labels=predicted,
        published=published,
        notes=notes,
        facts={
            "reference": reference.name,
            "map": reference.basis or f"X_{KEY}",
            "space": dataset.space,
            "reference_cells": len(dataset.obs),
            "labels": list(labels),
            "n_neighbors": k,
            "genes": 0 if match is None else len(match.names),
            "missing_genes": [] if match is None else match.missing,
            "genes_matched_by": "" if match is None else match.by,
            "correct_batch": correct_batch,
            "unlike_by": how,
            "unlike_threshold": float(unlike),
            "cells_unlike": int(is_unlike.sum()),
            "notes": " ".join(notes),
        },
        **of_cells,
    )


def write_mapped_cells(adata: AnnData, mapped: MappedCells) -> None:
    """Write positions, labels and likeness of mapped cells into their AnnData.

    Written to ``obsm``: the positions as "X_embedding_game", positions in coordinates
    of a map by another program under its key, and coordinates in the reference's space
    under its key (such as "X_pca").  To ``obs``: "<label>_predicted" and
    "<label>_predicted_confidence" for each label, "unlike_reference" (bool),
    "reference_likeness" (0 to 1) and "reference_distance".  To ``uns``: the facts, as
    "embedding_game_reference".  A former map is removed.
    """
    adata.uns.pop(KEY, None)  # of a former map, as these
    old = [f"{KEY}_{name}" for name in MAP_COLUMNS]
    adata.obs = adata.obs.drop(columns=old, errors="ignore")
    adata.obsm[f"X_{KEY}"] = mapped.positions
    if mapped.published is not None:
        adata.obsm[str(mapped.facts["map"])] = mapped.published
    space = split_space(str(mapped.facts["space"]))
    if space is not None and space[0] == "obsm" and mapped.rows is not None:
        adata.obsm[space[1]] = mapped.rows
    for label, one in mapped.labels.items():
        adata.obs[label + PREDICTED] = one.labels
        adata.obs[label + PREDICTED + CONFIDENCE] = one.confidence
    adata.obs["unlike_reference"] = mapped.unlike
    adata.obs["reference_likeness"] = mapped.likeness
    adata.obs["reference_distance"] = mapped.distance
    record = {**to_storable(mapped.facts), "versions": find_installed_versions()}
    adata.uns[f"{KEY}_reference"] = record


def _align_genes(
    name: str,
    cells: AnnData,
    reference: ReferenceMap,
    projection: Projection,
    min_share: float,
) -> tuple[FoundNames, Any, str]:
    """Match the genes of a reference with those of new cells, and normalise the cells.

    Of ``layers["counts"]``, ``X`` and ``raw`` the one with most genes is taken that has
    counts or logarithms. ``min_share``: least share of genes that have to match.

    Returns the matched genes; log1p of counts (n, M), normalised to the reference's sum
    per cell; and a sentence on missing genes.

    Raises DataError: the cells have neither counts nor logarithms, or too few genes.
    """
    parts: list[tuple[str, Any, pd.DataFrame]] = [
        ("layers['counts']", cells.layers.get("counts"), cells.var),
        ("X", cells.X, cells.var),
    ]
    if cells.raw is not None:
        parts.append(("raw", cells.raw.X, cells.raw.var))
    present = [part for part in parts if part[1] is not None]
    usable = [one for one in present if guess_gene_kind(one[1]) != "values"]
    if not usable:
        raise DataError(
            f"{name} holds neither raw counts nor their logarithms (values below 0, or "
            "too large): give cells with counts in X, in layers['counts'] or in raw."
        )
    # All genes count for the depth of a cell: the widest is the most complete.
    origin, values, var = max(usable, key=lambda one: one[1].shape[1])
    genes = list(map(str, var.index))
    texts = var.loc[:, [one.kind == "O" for one in var.dtypes]].astype(str)
    aliases = {str(column): names.tolist() for column, names in texts.items()}
    other_names = reference.symbols, reference.dataset.gene_ids
    also = [
        [alias.get(gene, gene) for gene in projection.genes] for alias in other_names
    ]
    how: Any = {"other_genes": also, "min_share": min_share, "where": name}
    match = match_genes(projection.genes, genes, aliases, **how)
    values = sp.csr_matrix(values) if sp.issparse(values) else np.asarray(values)
    if are_logarithms := guess_gene_kind(values) == "logarithms":
        values = to_natural_log(values, read_log_base(cells))
    by = "" if match.by == "names" else f" by {match.by}"
    missing, n = match.missing, len(match.names)
    ending = f"; missing: {match.missing_text}, taken to be as in its mean cell"
    note = (
        f"Genes compared{by}, from {origin}: {n - len(missing):,} of {n:,} of the "
        f"reference are there{ending if missing else ''}."
    )
    if projection.target_sum == 0:
        note += (
            " The counts of the reference were not normalised before their logarithms, "
            "and so those of the new cells are not."
        )
    elif are_logarithms and infer_count_sum(values) is None:
        note += (
            f" The logarithms of {origin} are taken as they are, since the sums of "
            "these genes do not say what their counts were normalised to; the "
            f"reference's were to {projection.target_sum:,.0f} a cell. If these were "
            "not, give raw counts, or logarithms of all genes."
        )
    return match, normalise_expression(values, projection.target_sum, name), note


def _read_space_of_cells(
    name: str, cells: AnnData, reference: ReferenceMap
) -> NDArray[np.float32]:
    """Return coordinates (n, D) in the reference's space that new cells come with.

    Where the space is of genes, they are brought into the reference's order by name.

    Raises DataError: the new cells lack this space, its width or kind of values
    differs, or values are missing.
    """
    dataset, space = reference.dataset, reference.dataset.space
    group, key = split_space(space) or ("", "")
    named: Any = cells.raw if space == RAW and cells.raw is not None else cells
    rows: Any = getattr(cells, group).get(key) if group else named.X
    if rows is not None and group != "obsm":
        names = pd.Index(make_names_unique(named.var_names))
        indices = names.get_indexer(pd.Index(dataset.var_names))
        is_alike = guess_gene_kind(rows) == guess_gene_kind(dataset.X)
        rows = rows[:, indices] if is_alike and (indices >= 0).all() else None
    rows = rows.toarray() if sp.issparse(rows) else np.asarray(rows)
    width = dataset.X.shape[1]
    if rows.shape != (cells.n_obs, width) or not np.isfinite(rows).all():
        raise DataError(
            f"How {space} of {reference.name} came of genes is not known, so that "
            f"{name} has to bring it along: {space} with the same {width} columns "
            "without missing values, computed as those of the reference."
        )
    values: NDArray[np.float32] = rows.astype(dataset.X.dtype, copy=False)
    return values


def _score_likeness(
    reference: ReferenceMap,
    projection: Projection,
    match: FoundNames,
    lognorm: Any,
    n_neighbors: int,
) -> NDArray[np.float64] | None:
    """Return, for each new cell, the share of reference cells at least as unlike: (n,).

    Unlike means that the reference's components leave much of the expression
    unexplained. Only genes that both sides have count, and at most ``MAX_ROWS``
    reference cells, drawn at random.  None where the reference has no expression or too
    few cells, or where its space is the genes themselves.

    ``match``: the matched genes. ``lognorm`` (n, M): normalised logarithms of the new
    cells. ``n_neighbors``: cells over which scores are averaged.
    """
    dataset, n = reference.dataset, lognorm.shape[0]
    n_rows, profile = len(dataset.obs), dataset.profile
    has_genes = dataset.expression.kind != "values"
    is_of_genes = projection.loadings.shape[1] == len(projection.genes)
    if n_rows < MIN_ROWS or not has_genes or is_of_genes:
        return None
    sample = np.sort(np.random.default_rng(0).permutation(n_rows)[:MAX_ROWS])
    logs = normalise_expression(profile[sample], projection.target_sum, dataset.name)
    mine = match_genes(projection.genes, dataset.profile_names, min_share=0)
    # A gene that one side lacks would be unexplained in all cells.
    both = (mine.index_of_each >= 0) & (match.index_of_each >= 0)
    values, depth = (
        projection.scale_genes(logs, mine),
        _count_detected_genes(logs, mine.index_of_each[both]),
    )
    fitted, n_averaged = (values[:, both], depth), min(n_neighbors, n)
    scores = ResidualScorer(*fitted, projection.loadings.shape[1], n_averaged)
    likeness = np.empty(n)
    order = np.random.default_rng(0).permutation(n)
    for part in np.array_split(order, -(-n // MAX_ROWS)):
        scaled = projection.scale_genes(lognorm[part], match)
        residual = projection.compute_residual(scaled, projection.project(scaled))
        depth = _count_detected_genes(lognorm[part], match.index_of_each[both])
        likeness[part] = scores(scaled[:, both], residual[:, both], depth)
    return likeness


def _count_detected_genes(
    lognorm: Any, indices: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Return the number of genes above 0 in each cell, (n,), of columns ``indices``."""
    return np.asarray((lognorm[:, indices] > 0).sum(axis=1), np.float64).ravel()


def _validate_options(
    reference: ReferenceMap,
    labels: Sequence[str],
    n_neighbors: int,
    min_share: float,
    unlike: float,
) -> None:
    """Raise InputError for a wrong option, DataError for a label that is no column.

    A label is also wrong if its column does not hold groups.
    """
    if n_neighbors < 1:
        raise InputError(f"n_neighbors must be at least 1, not {n_neighbors}.")
    for name, value in (("min_shared_genes", min_share), ("unlike", unlike)):
        if not 0 < value < 1:
            raise InputError(f"{name} must be between 0 and 1, not {value:g}.")
    columns = reference.dataset.level_columns
    for label in labels:
        if label not in columns:
            what = f'{reference.name} has no column "{label}" to predict'
            if (role := reference.dataset.roles.get(label)) is not None:
                what = f'Column "{label}" of {reference.name} holds {role}, no groups'
            offered = ", ".join(columns) or "none, as it has no groups"
            raise DataError(f"{what}: choose one of {offered}.")
