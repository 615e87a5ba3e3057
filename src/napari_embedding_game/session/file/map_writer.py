"""Encode a saved map as the text and arrays of a session file."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.session.file.forces_text import ForcesWriter
from napari_embedding_game.session.file.json_schema import MapText, ShotText
from napari_embedding_game.session.file.origin import SAMPLES, origin_of
from napari_embedding_game.session.file.saved_map import SavedMap

LARGEST_X = 64_000_000
"""Bytes of numbers that are stored where there is no file to read them from again."""
MOST_NEIGHBORS = 200_000
"""Rows up to which their neighbours are stored, 60 bytes each."""

Arrays = dict[str, NDArray[Any]]


def map_text(one: SavedMap, *, reads_source: bool = True) -> MapText:
    """Return all of a map that is no array; the first time its source is read."""
    edits, shot, objects = one.book.edits, one.snapshot, one.dataset.source_objects
    warm = None if one.record is None else one.record.warm_start
    return MapText(
        key=one.key,
        title=one.title,
        parent=one.parent,
        origin=one.origin or origin_of(one.dataset, reads_source=reads_source),
        start=one.start,
        game=one.game,
        record=None if one.record is None else one.record.as_text(),
        branch_left=None if warm is None else warm.iterations_left,
        forced=_forces(one).text,
        shot=None
        if shot is None
        else ShotText(
            iteration=shot.iteration,
            n_iter=shot.n_iter,
            energy=shot.energy,
            warning=shot.warning,
            finished=shot.finished,
        ),
        n_points=len(one.dataset.obs),
        n_clusters=edits.n_clusters,
        grouping=edits.grouping,
        given=tuple(edits.given.items()),
        joined=tuple(edits.joined.items()),
        numbers=tuple(one.book.numbers.items()),
        next_id=one.book.next_id,
        selected=one.selected,
        is_drawn=one.drawn is not None,
        is_merged=one.merging is not None,
        has_x=_stores_x(one.dataset),
        scores=one.dataset.scores,
        n_axes=0 if objects is None else objects.ndim,
        look=one.look,
        view=one.view,
    )


def _stores_x(dataset: Dataset) -> bool:
    """Return whether a dataset has to be stored, since it cannot be read again."""
    X = dataset.X
    return (
        dataset.source is None
        and dataset.name.lower() not in SAMPLES
        and not sp.issparse(X)
        and 0 < X.size * 4 <= LARGEST_X
    )


def _forces(one: SavedMap) -> ForcesWriter:
    record = one.record
    if record is None:
        return ForcesWriter((), 2)
    return ForcesWriter(record.forced, record.start.n_components)


def map_arrays(one: SavedMap) -> Arrays:
    """Return the arrays of a map by their names in the file."""
    book, shot = one.book, one.snapshot
    dormant = list(book.dormant.values())
    arrays: Arrays = {
        "kept": one.dataset.kept,
        "by_hand": book.edits.by_hand.astype("<i4"),
        "automatic": book.automatic.astype("<i4"),
        "of_landmarks": book.of_landmarks.astype("<i4"),
        "asleep": np.array(list(book.dormant), "<i4"),
        "asleep_ends": np.cumsum([len(rows) for rows in dormant]).astype("<i8"),
        "asleep_rows": np.concatenate([*dormant, np.zeros(0, "<i8")]).astype("<i8"),
        "energies": np.array(one.energies, "<f8").reshape(-1, 2),
    }
    if _stores_x(one.dataset):
        arrays["x"] = one.dataset.X.astype("<f4")
    objects = one.dataset.source_objects
    if objects is not None:
        arrays["label_ids"] = objects.label_ids.astype("<i8")
        arrays["boxes"] = objects.boxes.astype("<i8")
    if shot is not None:
        arrays |= {
            "embedding": shot.embedding.astype("<f4"),
            "landmarks": shot.landmarks.astype("<f4"),
            "labels": shot.labels.astype("<i4"),
            "pressure": shot.pressure.astype("<f4"),
        }
        if shot.stretch is not None:
            arrays["stretch"] = shot.stretch.astype("<f4")
        if shot.neighbors is not None and len(shot.neighbors) <= MOST_NEIGHBORS:
            arrays["neighbors"] = shot.neighbors.astype("<i4")
    if one.record is not None and one.record.warm_start is not None:
        warm = one.record.warm_start
        arrays["branch_embedding"] = warm.embedding.astype("<f4")
        arrays["branch_landmarks"] = warm.landmarks.astype("<f4")
    arrays |= _forces(one).arrays()
    if one.drawn is not None:
        arrays["drawn"] = one.drawn
    if one.merging is not None:
        graph, tree = sp.csr_matrix(one.merging.graph), one.merging.tree
        arrays |= {
            "graph_weights": graph.data.astype("<f8"),
            "graph_indices": graph.indices.astype("<i4"),
            "graph_indptr": graph.indptr.astype("<i4"),
            "tree_born": tree.born.astype("<i8"),
            "tree_leader": tree.leader.astype("<i8"),
            "tree_levels": tree.levels.astype("<i8"),
        }
    return arrays
