"""The cells of an open map, placed on the map of a reference.

The map that comes of it is a branch of no iterations: its record says that a run began
with the points there and has not moved any yet.  So it is saved, replayed and played on
as any other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from napari_embedding_game.core.settings import Settings, resolve
from napari_embedding_game.core.snapshot import WarmStart, undefined
from napari_embedding_game.data.as_anndata import as_anndata
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.predicted import PredictedLabels
from napari_embedding_game.data.stages import Stage, Stages
from napari_embedding_game.session.clusters.automatic import BookState
from napari_embedding_game.session.clusters.cluster_book import ClusterBook
from napari_embedding_game.session.clusters.merging import Merging
from napari_embedding_game.session.moment import Moment
from napari_embedding_game.session.reference.mapping import map_cells
from napari_embedding_game.session.reference.new_cells import NewCells
from napari_embedding_game.session.reference.placed_on import PlacedOn
from napari_embedding_game.session.reference.predicting import labels_of
from napari_embedding_game.session.reference.reference_map import ReferenceMap
from napari_embedding_game.session.run import replay
from napari_embedding_game.session.run.record import RunRecord


@dataclass(frozen=True, eq=False)
class PlacedCells:
    """The cells of a dataset on the map of a reference, ready to be shown."""

    dataset: Dataset
    """The one that was placed."""
    predicted: PredictedLabels
    on: PlacedOn
    moment: Moment
    book: BookState
    """The clusters that come of it."""
    notes: tuple[str, ...]
    """Sentences that a person has to know."""


def place_cells(
    dataset: Dataset,
    reference: ReferenceMap,
    path: Path,
    label: str,
    *,
    correct_batch: bool = False,
) -> Stages[PlacedCells]:
    """Place each cell of a dataset on the map of a reference, in stages.

    Parameters
    ----------
    dataset : Dataset
        With expression of genes.
    reference : ReferenceMap
    path : Path
        Its file.
    label : str
        Column of the reference that is predicted.
    correct_batch : bool
        As in :func:`~.mapping.map_cells`.

    Raises
    ------
    DataError
        The genes do not fit, or there is no such column.
    """
    cells = NewCells(dataset.name, as_anndata(dataset))
    mapped = yield from map_cells(
        reference, cells, [label], correct_batch=correct_batch
    )
    yield Stage("Finding the neighbours of the new cells")
    model = reference.model
    warm = WarmStart(embedding=mapped.places, landmarks=model.landmarks_)
    record = _record(dataset, warm)
    edges, layout = replay.prepared(dataset.X, record)
    (snapshot,) = replay.frames(edges, layout, record)
    # No game has squeezed these points.
    snapshot = replace(snapshot, pressure=undefined(len(mapped.places)))
    merging = Merging.of(edges, snapshot.labels, len(snapshot.landmarks))
    book = ClusterBook(len(mapped.places))
    book.receive(snapshot.labels, len(snapshot.landmarks), merging)
    book.finish()
    codes, names = pd.factorize(reference.dataset.obs[label].astype(object))
    return PlacedCells(
        dataset=dataset,
        predicted=labels_of(mapped, path, label, correct_batch=correct_batch),
        on=PlacedOn(
            reference=str(path),
            label=label,
            names=tuple(map(str, names)),
            codes=np.asarray(codes, np.int32),
            cells=np.asarray(model.embedding_, np.float32),
            placed=snapshot.embedding,
        ),
        moment=Moment(
            settings=record.settings, snapshot=snapshot, record=record, merging=merging
        ),
        book=book.state(),
        notes=mapped.notes,
    )


def _record(dataset: Dataset, warm: WarmStart) -> RunRecord:
    """Return the record of a run that began there and played nothing."""
    n_points, n_components = warm.embedding.shape
    settings = replace(
        resolve(Settings(n_landmarks=len(warm.landmarks))),
        n_components=n_components,
        n_neighbors=min(Settings().n_neighbors, n_points - 1),
        metric="precomputed" if dataset.is_distances else "euclidean",
    )
    return RunRecord(
        settings=settings,
        n_iter=0,
        is_branch=True,
        warm_start=warm,
    )
