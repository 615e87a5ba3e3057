"""Labels and positions that a reference gives to the cells of the open map."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.core.settings import Settings, fill_affinity
from napari_embedding_game.core.snapshot import WarmStart
from napari_embedding_game.data.as_anndata import as_anndata
from napari_embedding_game.data.columns import KEY, share_text
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.formats.spaces import split_space
from napari_embedding_game.data.prediction import PredictedLabels
from napari_embedding_game.data.reading_process import read_in_process
from napari_embedding_game.data.stages import Stage, Stages
from napari_embedding_game.session.clusters.clusters import cluster_finished_run
from napari_embedding_game.session.clusters.landmark_merge import LandmarkMerge
from napari_embedding_game.session.clusters.statements import MapNames
from napari_embedding_game.session.file.saved_map import PlacedOn, SavedMap
from napari_embedding_game.session.reference.mapping import MappedCells, map_cells
from napari_embedding_game.session.reference.reference_map import (
    ReferenceMap,
    read_reference_file,
    to_reference_map,
)
from napari_embedding_game.session.run import replay
from napari_embedding_game.session.run.record import RunRecord

if TYPE_CHECKING:
    from anndata import AnnData

SURE = 0.8
"""Share of the votes from which a label counts as clear."""


@dataclass(frozen=True, eq=False)
class PlacedCells:
    """The cells of a dataset on the map of a reference, as a map to be shown.

    The map is a branch of no iterations: its record says that a run began with these
    positions and has not moved them yet.  So the map can be saved, replayed and
    continued like any other.
    """

    saved: SavedMap
    """The map, with the dataset that was placed."""
    predicted: PredictedLabels
    published: Mapping[str, NDArray[np.float32]]
    """Each axis of the positions in coordinates of a map by another program, by name of
    its column."""
    notes: tuple[str, ...]
    """Sentences that a person has to know."""


def load_reference(path: Path) -> Stages[ReferenceMap]:
    """Read an .h5ad file in stages, and return it as a reference.

    Raises DataError: there is no map in it, or new cells cannot be projected into its
    space.
    """
    adata: AnnData = yield from read_in_process(path, read_reference_file)
    yield Stage("Finding the neighbours of the cells of the reference")
    return to_reference_map(adata, path.name, str(path))


def predict_labels(
    dataset: Dataset,
    reference: ReferenceMap,
    label: str,
    *,
    correct_batch: bool = False,
) -> Stages[MappedCells]:
    """Predict a label of each cell of a dataset, in stages.

    ``dataset``: with expression of genes; coordinates in a space of ``obsm`` are used
    where the reference was mapped in this space. ``label``: column of the reference.
    ``correct_batch``: as in :func:`~.mapping.map_cells`, with its errors.
    """
    cells, how = as_anndata(dataset), {"correct_batch": correct_batch}
    element = split_space(dataset.space)
    if element is not None and element[0] == "obsm":
        cells.obsm[element[1]] = dataset.X
    return (yield from map_cells(reference, dataset.name, cells, [label], **how))


def place_cells(
    dataset: Dataset,
    reference: ReferenceMap,
    label: str,
    *,
    correct_batch: bool = False,
) -> Stages[PlacedCells]:
    """Place each cell of a dataset on the map of a reference, in stages.

    The label is predicted, too.  Clusters are found among the placed cells, by the
    landmarks of the reference; pressure is NaN.

    Parameters and errors are those of :func:`predict_labels`.
    """
    fitted = reference.fitted
    mapped = yield from predict_labels(
        dataset, reference, label, correct_batch=correct_batch
    )
    yield Stage("Finding the neighbours of the new cells")
    n, n_components = mapped.positions.shape
    settings = replace(
        fill_affinity(Settings(n_landmarks=len(fitted.landmarks))),
        n_components=n_components,
        n_neighbors=min(Settings().n_neighbors, n - 1),
        metric="precomputed" if dataset.is_distances else "euclidean",
    )
    warm = WarmStart(embedding=mapped.positions, landmarks=fitted.landmarks)
    record = RunRecord(settings=settings, n_iter=0, is_branch=True, warm_start=warm)
    edges, layout = replay.prepare_replay(dataset.X, record)
    (snapshot,) = replay.iter_replay_frames(edges, layout, record)
    # No game has moved these points: their pressure is not known.
    snapshot = replace(snapshot, pressure=np.full(n, np.nan, np.float32))
    n_landmarks = len(snapshot.landmarks)
    found = cluster_finished_run(edges, snapshot.labels, n_landmarks)
    cells = np.asarray(fitted.points, np.float32)
    saved = SavedMap(
        key="",
        title=f"On {Path(reference.path).name}",
        dataset=dataset,
        settings=settings,
        snapshot=snapshot,
        record=record,
        merging=LandmarkMerge.from_edges(edges, snapshot.labels, n_landmarks),
        clusters=replace(found.state, names=MapNames.make_empty(dataset.kept)),
        placed_on=PlacedOn(reference.name, cells, snapshot.embedding),
    )
    axes = () if mapped.published is None else mapped.published.T
    title = f"{reference.basis} of {reference.name}"
    return PlacedCells(
        saved=saved,
        predicted=mapped.labels[label],
        published={f"{title} {i + 1}": axis for i, axis in enumerate(axes)},
        notes=mapped.notes,
    )


def suggest_label(reference: ReferenceMap) -> str | None:
    """Return the column of a reference that a person most likely wants to predict.

    A column with "type" or "label" in its name comes first, then the clusters of the
    map, then any other column of groups; None where the reference has no such column.
    """
    columns = reference.dataset.level_columns
    by_person = [name for name in columns if not name.startswith(KEY)]
    kinds = [n for n in by_person if "type" in n.lower() or "label" in n.lower()]
    clusters = [name for name in columns if name == f"{KEY}_cluster"]
    return next(iter([*kinds, *clusters, *by_person]), None)


def describe_confidence(found: PredictedLabels, reference: ReferenceMap) -> str:
    """Return sentences on the share of clear labels, and on cells unlike the reference.

    A label is clear with at least ``SURE`` of the votes.  Unlike are the cells that
    ``found`` marks as unlike any cell of the reference.
    """
    n, label = len(found.labels), found.record.label
    clear, unlike = float((found.confidence >= SURE).mean()), int(found.unlike.sum())
    return (
        f"{label} of {reference.name} for {n:,} cells: {share_text(clear)} with at "
        f"least {SURE:.0%} of the votes. {unlike:,} ({share_text(unlike / n)}) are "
        "unlike anything in it."
    )
