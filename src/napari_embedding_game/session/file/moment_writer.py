"""Encode what a map was like at one moment: its layout, run and merging."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from napari_embedding_game.core.settings import Settings
from napari_embedding_game.core.snapshot import Snapshot
from napari_embedding_game.session.clusters.merging import Merging
from napari_embedding_game.session.file.forces_text import ForcesWriter
from napari_embedding_game.session.file.json_schema import ShotText
from napari_embedding_game.session.run.record import RunRecord

MOST_NEIGHBORS = 200_000
"""Rows up to which their neighbours are stored, 60 bytes each."""

Arrays = dict[str, NDArray[Any]]


class Moment(Protocol):
    """A saved map, or a mark of its timeline."""

    @property
    def start(self) -> Settings:
        """Settings of a start, as they stood in the window."""

    @property
    def game(self) -> Settings:
        """Settings of the game, as they stood in the window."""

    @property
    def record(self) -> RunRecord | None:
        """What was played up to here."""

    @property
    def snapshot(self) -> Snapshot | None:
        """The layout."""

    @property
    def energies(self) -> tuple[tuple[int, float], ...]:
        """(iteration, energy) pairs."""

    @property
    def merging(self) -> Merging | None:
        """How landmarks can be merged."""


def moment_values(moment: Moment) -> dict[str, Any]:
    """Return the fields of a :class:`~.json_schema.MomentText`."""
    record, shot = moment.record, moment.snapshot
    warm = None if record is None else record.warm_start
    return {
        "start": moment.start,
        "game": moment.game,
        "record": None if record is None else record.as_text(),
        "branch_left": None if warm is None else warm.iterations_left,
        "forced": _forces(record).text,
        "shot": None
        if shot is None
        else ShotText(
            iteration=shot.iteration,
            n_iter=shot.n_iter,
            energy=shot.energy,
            warning=shot.warning,
            finished=shot.finished,
            remedy=shot.remedy,
            map_hash=shot.map_hash,
        ),
        "is_merged": moment.merging is not None,
    }


def moment_arrays(moment: Moment) -> Arrays:
    """Return the arrays of a moment by their names in the file.

    Those that have the type of the file already are not copied.
    """
    record, shot = moment.record, moment.snapshot
    arrays: Arrays = {"energies": np.array(moment.energies, "<f8").reshape(-1, 2)}
    if shot is not None:
        arrays |= {
            "embedding": _as(shot.embedding, "<f4"),
            "landmarks": _as(shot.landmarks, "<f4"),
            "labels": _as(shot.labels, "<i4"),
            "pressure": _as(shot.pressure, "<f4"),
        }
        if shot.stretch is not None:
            arrays["stretch"] = _as(shot.stretch, "<f4")
        if shot.isolation is not None:
            arrays["isolation"] = _as(shot.isolation, "<f4")
        if shot.neighbors is not None and len(shot.neighbors) <= MOST_NEIGHBORS:
            arrays["neighbors"] = _as(shot.neighbors, "<i4")
    if record is not None and record.warm_start is not None:
        warm = record.warm_start
        arrays["branch_embedding"] = _as(warm.embedding, "<f4")
        arrays["branch_landmarks"] = _as(warm.landmarks, "<f4")
    arrays |= _forces(record).arrays()
    if moment.merging is not None:
        graph, tree = sp.csr_matrix(moment.merging.graph), moment.merging.tree
        arrays |= {
            "graph_weights": _as(graph.data, "<f8"),
            "graph_indices": _as(graph.indices, "<i4"),
            "graph_indptr": _as(graph.indptr, "<i4"),
            "tree_born": _as(tree.born, "<i8"),
            "tree_leader": _as(tree.leader, "<i8"),
            "tree_levels": _as(tree.levels, "<i8"),
        }
    return arrays


def _as(array: NDArray[Any], kind: str) -> NDArray[Any]:
    return array.astype(kind, copy=False)


def _forces(record: RunRecord | None) -> ForcesWriter:
    if record is None:
        return ForcesWriter((), 2)
    return ForcesWriter(record.forced, record.start.n_components)
