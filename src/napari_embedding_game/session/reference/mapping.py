"""Place new cells on the map of a reference, and tell what they are like.

    genes aligned by name -> the reference's normalising, scaling and loadings
    -> places by ``EmbeddingGame.transform`` -> labels of the reference cells around
    -> which are unlike any of them

The map and its cells stay as they are, and no new cell changes the place or the labels
of another.  Only whether it is unlike the reference is judged together with the new
cells around it, see :mod:`~napari_embedding_game.core.new_rows.likeness`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.new_rows.batch_shift import without_shift
from napari_embedding_game.core.new_rows.likeness import (
    FEWEST_ROWS,
    MOST_ROWS,
    Unexplained,
)
from napari_embedding_game.core.new_rows.search import FittedSearch
from napari_embedding_game.core.new_rows.transfer import (
    tail_share,
    vote,
    vote_weights,
)
from napari_embedding_game.data.columns import KEY
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.export.result import storable, versions
from napari_embedding_game.data.expression import Expression
from napari_embedding_game.data.formats.anndata_contents import split_space
from napari_embedding_game.data.projection import GeneMatch, match_genes, normalised
from napari_embedding_game.data.stages import Stage, Stages
from napari_embedding_game.data.stored_columns import StoredColumns
from napari_embedding_game.session.reference.new_cells import (
    NewCells,
    brought_space,
    expression_of,
)
from napari_embedding_game.session.reference.reference_map import ReferenceMap

if TYPE_CHECKING:
    from anndata import AnnData

N_NEIGHBORS = 15
"""Reference cells that vote on the label of a new one."""
UNLIKE = 0.01
"""Share of the reference's cells that would be told to be unlike the reference."""
MIN_SHARED_GENES = 0.5
_ROWS_AT_ONCE = 8_192


@dataclass(frozen=True, eq=False)
class MappedCells:
    """Where new cells are on the map of a reference, and what they are like.

    n cells in the order of the new data.
    """

    places: NDArray[np.float32]
    """(n, d)"""
    rows: NDArray[np.float32]
    """(n, D) the space of the reference."""
    labels: dict[str, NDArray[Any]]
    """(n,) predicted texts by the column of the reference; "" where no neighbour has a
    label."""
    confidence: dict[str, NDArray[np.float64]]
    """(n,) by column, 0 to 1: see :mod:`~.core.new_rows.transfer`."""
    likeness: NDArray[np.float64]
    """(n,) share of reference cells that are as unlike the others, above 0 to 1."""
    distance: NDArray[np.float64]
    """(n,) mean distance to the nearest reference cells, 1 as between those."""
    unlike: NDArray[np.bool_]
    """(n,) whether ``likeness`` is below the threshold."""
    genes: GeneMatch | None
    lognorm: Any = None
    """(n, M) expression as it was compared; None where the space was brought along."""
    gene_names: tuple[str, ...] = ()
    """(M,)"""
    notes: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    """For the record, in plain values."""


def map_cells(
    reference: ReferenceMap,
    cells: NewCells,
    labels: Sequence[str] = (),
    *,
    n_neighbors: int = N_NEIGHBORS,
    min_shared_genes: float = MIN_SHARED_GENES,
    unlike: float = UNLIKE,
    correct_batch: bool = False,
) -> Stages[MappedCells]:
    """Place new cells on the map of a reference, in stages.

    Parameters
    ----------
    reference : ReferenceMap
    cells : NewCells
    labels : sequence of str
        Columns of the reference's metadata that are predicted.
    n_neighbors : int
        Reference cells that vote: the nearest on the map.
    min_shared_genes : float
        Share of the genes of the reference's space that the new cells have to have.
    unlike : float
        A cell is unlike the reference where fewer than this share of the reference's
        own cells score as high.
    correct_batch : bool
        Whether what the new cells differ in from reference cells of the same kind is
        taken away before they are placed, see
        :mod:`~napari_embedding_game.core.new_rows.batch_shift`.

    Raises
    ------
    DataError
        Genes or numbers of the new cells do not fit, or there is no such column.
    InputError
        An argument is out of range.
    """
    _check_arguments(n_neighbors, min_shared_genes, unlike)
    _check_columns(reference, labels)
    yield Stage("Aligning the genes")
    prepared = _Prepared.of(reference, cells, min_shared_genes)
    n = prepared.n
    rows = np.empty((n, reference.dataset.X.shape[1]), reference.dataset.X.dtype)
    places = np.empty((n, reference.model.embedding_.shape[1]), np.float32)
    distances = np.empty((n, min(n_neighbors, len(reference.dataset.obs))), np.float32)
    near = np.empty(distances.shape, np.int64)
    model, seed = reference.model, reference.model.random_state_
    on_map = FittedSearch(model.embedding_, "euclidean")
    for begin in range(0, n, _ROWS_AT_ONCE):
        block = slice(begin, min(begin + _ROWS_AT_ONCE, n))
        rows[block] = prepared.rows(block)
    if correct_batch:
        yield Stage("Taking the batch effect away")
        rows = without_shift(rows, np.asarray(reference.dataset.X), seed)
    for begin in range(0, n, _ROWS_AT_ONCE):
        yield Stage("Placing the new cells", begin / n)
        block = slice(begin, min(begin + _ROWS_AT_ONCE, n))
        places[block] = reference.model.transform(rows[block])
        distances[block], near[block] = reference.model.kneighbors(
            rows[block], n_neighbors
        )
    yield Stage("Predicting labels")
    voters, apart = on_map(places, distances.shape[1])
    weights = vote_weights(apart)
    predicted, confidence = {}, {}
    for column in labels:
        codes, names = pd.factorize(reference.dataset.obs[column].astype(object))
        winners, confidence[column] = vote(codes[voters], weights)
        texts = np.array([*map(str, names), ""], dtype=object)
        predicted[column] = texts[winners]
    own = reference.model.knn_distances_[:, :n_neighbors].mean(axis=1)
    usual = own[near].mean(axis=1)
    mean = distances.mean(axis=1)
    distance = np.divide(mean, usual, out=np.ones_like(mean), where=usual > 0)
    yield Stage("Looking for cells unlike the reference")
    likeness, how = _likeness(reference, prepared, mean, own, n_neighbors)
    is_unlike = likeness < unlike
    notes = [*prepared.notes, *reference.notes]
    if is_unlike.mean() > 0.5:
        notes.append(
            f"{is_unlike.mean():.0%} of the new cells are unlike the reference: "
            f"another "
            "tissue, species, assay or treatment, or another batch. Their labels say "
            "little"
            + (
                "."
                if correct_batch
                else "; where the kinds of cells are the same, correct the batch."
            )
        )
    match = prepared.match
    return MappedCells(
        places=places,
        rows=rows,
        labels=predicted,
        confidence=confidence,
        likeness=likeness,
        distance=np.asarray(distance, np.float64),
        unlike=is_unlike,
        genes=match,
        lognorm=prepared.lognorm,
        gene_names=prepared.gene_names,
        notes=tuple(notes),
        facts={
            "reference": reference.name,
            "space": reference.dataset.space,
            "reference_cells": len(reference.dataset.obs),
            "labels": list(labels),
            "n_neighbors": int(distances.shape[1]),
            "genes": 0 if match is None else len(match.genes),
            "missing_genes": [] if match is None else match.missing,
            "genes_matched_by": "" if match is None else match.by,
            "correct_batch": correct_batch,
            "unlike_by": how,
            "unlike_threshold": float(unlike),
            "cells_unlike": int(is_unlike.sum()),
            "notes": " ".join(notes),
        },
    )


def write_mapped(
    adata: AnnData, mapped: MappedCells, space: str, dimensions: str = f"X_{KEY}"
) -> None:
    """Put what was found out about new cells into their AnnData.

    ``obsm["X_embedding_game"]`` the places, ``obsm`` the space of the reference (such
    as ``X_pca``); ``obs``: for each label ``<label>_predicted`` and
    ``<label>_confidence``; ``unlike_reference`` (bool), ``reference_likeness`` (0 to 1)
    and ``reference_distance``; ``uns["embedding_game_reference"]`` the record.
    """
    adata.obsm[dimensions] = mapped.places
    place = split_space(space)
    if place is not None and place[0] == "obsm" and mapped.genes is not None:
        adata.obsm[place[1]] = mapped.rows
    for name, column in mapped_columns(mapped).items():
        adata.obs[name] = column.to_numpy() if column.dtype != "category" else (
            pd.Categorical(column)
        )  # fmt: skip
    adata.uns[f"{KEY}_reference"] = {
        **storable(mapped.facts),
        "versions": versions(),
    }


def mapped_columns(mapped: MappedCells) -> dict[str, pd.Series]:
    """Return what was found out about each new cell, by the name of its column."""
    columns: dict[str, Any] = {}
    for label, names in mapped.labels.items():
        columns[f"{label}_predicted"] = pd.Series(pd.Categorical(names))
        columns[f"{label}_confidence"] = mapped.confidence[label].astype(np.float32)
    columns["unlike_reference"] = mapped.unlike
    columns["reference_likeness"] = mapped.likeness.astype(np.float32)
    columns["reference_distance"] = mapped.distance.astype(np.float32)
    return {name: pd.Series(values) for name, values in columns.items()}


# Inside


@dataclass(frozen=True, eq=False)
class _Prepared:
    """New cells in the terms of a reference."""

    reference: ReferenceMap
    n: int
    lognorm: Any
    """(n, M); None where the cells bring the space along."""
    gene_names: tuple[str, ...]
    match: GeneMatch | None
    brought: NDArray[np.float32] | None
    notes: tuple[str, ...]

    @classmethod
    def of(
        cls, reference: ReferenceMap, cells: NewCells, min_share: float
    ) -> _Prepared:
        adata, way = cells.adata, reference.projection
        if adata.n_obs < 1:
            raise DataError(f"{cells.name} has no cells: choose another file.")
        if way is None:
            dataset = reference.dataset
            rows = brought_space(
                cells, dataset.space, dataset.X.shape[1], reference.name
            )
            return cls(reference, adata.n_obs, None, (), None, rows, ())
        values, names, others, origin = expression_of(cells, way.target_sum)
        match = match_genes(
            way.genes, names, others, min_share=min_share, where=cells.name
        )
        how = "" if match.by == "names" else f" by {match.by}"
        notes = (f"Genes compared{how}, from {origin}: {match.told}",)
        return cls(reference, adata.n_obs, values, tuple(names), match, None, notes)

    def scaled(self, rows: Any) -> NDArray[np.float32]:
        """Return the scaled genes of some of the cells."""
        way, match = self.reference.projection, self.match
        assert way is not None
        assert match is not None
        return way.scaled(self.lognorm[rows], match)

    def rows(self, rows: Any) -> NDArray[np.float32]:
        """Return some of the cells in the space of the reference."""
        if self.brought is not None:
            brought: NDArray[np.float32] = self.brought[rows]
            return brought
        way = self.reference.projection
        assert way is not None
        return way.components(self.scaled(rows))


def _likeness(
    reference: ReferenceMap,
    prepared: _Prepared,
    distance: NDArray[np.floating],
    own: NDArray[np.floating],
    n_neighbors: int,
) -> tuple[NDArray[np.float64], str]:
    """Return the share of reference cells that are as unlike as each new cell."""
    way, match = reference.projection, prepared.match
    n_rows = len(reference.dataset.obs)
    order = np.random.default_rng(0).permutation(n_rows)
    sample = np.sort(order[:MOST_ROWS])
    lognorm = None
    if way is not None and match is not None and n_rows >= FEWEST_ROWS:
        lognorm = _reference_lognorm(reference, sample)
    if way is None or match is None or lognorm is None:
        return tail_share(distance, own), "distance"
    mine = match_genes(way.genes, reference.dataset.profile_names, min_share=0)
    # Genes that either has not would be left over in all cells.
    both = (mine.places >= 0) & (match.places >= 0)
    values = way.scaled(lognorm, mine)[:, both]
    scores = Unexplained(
        values,
        _n_found(lognorm, mine.places[both]),
        way.loadings.shape[1],
        n_neighbors,
    )
    likeness = np.empty(prepared.n)
    parts = np.array_split(
        np.random.default_rng(0).permutation(prepared.n), -(-prepared.n // MOST_ROWS)
    )
    for part in parts:
        scaled = prepared.scaled(part)
        rest = way.rest(scaled, way.components(scaled))
        depth = _n_found(prepared.lognorm[part], match.places[both])
        likeness[part] = scores(scaled[:, both], rest[:, both], depth)
    return likeness, "expression"


def _n_found(lognorm: Any, places: NDArray[np.intp]) -> NDArray[np.float64]:
    return np.asarray((lognorm[:, places] > 0).sum(axis=1), np.float64).ravel()


def _reference_lognorm(reference: ReferenceMap, rows: NDArray[np.intp]) -> Any:
    """Return the expression of some of the reference's cells, None without any."""
    dataset, way = reference.dataset, reference.projection
    if way is None or not dataset.has_expression:
        return None
    if Expression(dataset.profile, True).kind == "values":
        return None
    if isinstance(dataset.profile, StoredColumns):
        read = dataset.profile[rows].in_memory()
        return normalised(read, way.target_sum, dataset.name)
    return normalised(dataset.profile, way.target_sum, dataset.name)[rows]


def _check_arguments(n_neighbors: int, min_share: float, unlike: float) -> None:
    if n_neighbors < 1:
        raise InputError(f"n_neighbors must be at least 1, not {n_neighbors}.")
    for name, value in (("min_shared_genes", min_share), ("unlike", unlike)):
        if not 0 < value < 1:
            raise InputError(f"{name} must be between 0 and 1, not {value:g}.")


def _check_columns(reference: ReferenceMap, labels: Sequence[str]) -> None:
    known = reference.label_columns
    for label in labels:
        if label not in reference.dataset.obs:
            raise DataError(
                f'{reference.name} has no column "{label}" to predict: choose one of '
                f"{', '.join(known) or 'none, as it has no groups'}."
            )
        if label not in known:
            raise DataError(
                f'The column "{label}" of {reference.name} holds numbers, and only '
                f"groups are predicted: choose one of {', '.join(known) or 'none'}."
            )
