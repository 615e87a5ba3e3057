"""Read what a map was like at one moment, and check that its parts fit together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from napari_embedding_game.core.energy.methods import get_method
from napari_embedding_game.core.settings import Settings
from napari_embedding_game.core.snapshot import Snapshot, WarmStart, undefined
from napari_embedding_game.session.clusters.merging import Merging
from napari_embedding_game.session.file.check_settings import (
    check_record,
    check_settings,
)
from napari_embedding_game.session.file.forces_text import ForcesReader
from napari_embedding_game.session.file.json_schema import MomentText
from napari_embedding_game.session.json_codec import decode, encode
from napari_embedding_game.session.run.record import Forced, RunRecord


class Arrays(Protocol):
    """Where the arrays of a moment come from."""

    def __call__(self, name: str, dtype: str, *shape: int | None) -> NDArray[Any]:
        """Return an array of this type and shape; None stands for any length."""

    def __contains__(self, name: object) -> bool:
        """Whether there is an array of this name."""


class MomentReader:
    """Reads one moment of a map.

    Parameters
    ----------
    text : MomentText
    n_points : int
    arrays : Arrays
    expect : callable
        Raises the error of a damaged file, which names the second argument, unless
        the first is True.
    where : str
        Name of the file.
    """

    def __init__(
        self,
        text: MomentText,
        n_points: int,
        arrays: Arrays,
        expect: Callable[[bool, str], None],
        where: str,
    ) -> None:
        self._text, self._n, self._arrays = text, n_points, arrays
        self._expect, self._where = expect, where
        check_settings(text.start, text.game, where)
        if text.record is not None:
            expect(text.shot is not None, "its run")
            check_record(text.record, where)

    def record(self) -> RunRecord | None:
        """Return the record, with forces and the map that the run went on from."""
        record, left = self._text.record, self._text.branch_left
        if record is None:
            return None
        record = replace(record.as_text(), forced=self._forced(record))
        if left is None:
            return record
        embedding = self._arrays("branch_embedding", "<f4", self._n, None)
        self._expect(embedding.shape[1] == record.start.n_components, "its branch")
        landmarks = self._arrays("branch_landmarks", "<f4", None, embedding.shape[1])
        for positions in (embedding, landmarks):
            self._expect(bool(np.isfinite(positions).all()), "its branch")
        self._expect(record.is_branch and left >= 0, "its branch")
        warm = WarmStart(embedding=embedding, landmarks=landmarks, iterations_left=left)
        return replace(record, warm_start=warm)

    def _forced(self, record: RunRecord) -> tuple[Forced, ...]:
        """Return what a hand did to the points of the run."""
        if not self._text.forced:
            return ()
        if "hand_rows" not in self._arrays:  # all of it was let go
            rows, ends = np.zeros(0, "<i8"), np.zeros(0, "<i8")
            places = np.zeros((0, record.start.n_components), "<f4")
        else:
            rows = self._arrays("hand_rows", "<i8", None)
            ends = self._arrays("hand_ends", "<i8", None)
            n_components = record.start.n_components
            places = self._arrays("hand_places", "<f4", len(rows), n_components)

        def expect(is_so: bool) -> None:
            self._expect(is_so, "its moves by hand")

        expect(within(rows, 0, self._n))
        expect(bool(np.isfinite(places).all()))
        reader = ForcesReader(rows, ends, places, expect)
        return reader.events(self._text.forced)

    def snapshot(self) -> Snapshot | None:
        """Return the layout; None where nothing had been played."""
        shot = self._text.shot
        if shot is None:
            return None
        embedding = self._arrays("embedding", "<f4", self._n, None)
        landmarks = self._arrays("landmarks", "<f4", None, embedding.shape[1])
        labels = self._arrays("labels", "<i4", self._n)
        self._expect(embedding.shape[1] in (1, 2, 3), "its layout")
        for positions in (embedding, landmarks):
            self._expect(bool(np.isfinite(positions).all()), "its layout")
        self._expect(within(labels, 0, len(landmarks)), "its clusters")
        return Snapshot(
            iteration=shot.iteration,
            n_iter=shot.n_iter,
            embedding=embedding,
            landmarks=landmarks,
            energy=shot.energy,
            labels=labels,
            pressure=self._pressure(),
            stretch=self._stretch(),
            neighbors=self._neighbors(),
            isolation=self._isolation(),
            warning=shot.warning,
            remedy=self._remedy(shot.remedy),
            finished=shot.finished,
        )

    def _remedy(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the settings that mend a warning, if a run can have them."""
        names = {field.name for field in fields(Settings)}
        self._expect(names.issuperset(values), "its remedy")
        game = encode(self._text.game) | dict(values)
        mended: Settings = decode(Settings, game, self._where)
        check_settings(self._text.start, mended, self._where)
        return {name: getattr(mended, name) for name in values}

    def _pressure(self) -> NDArray[np.float32]:
        """Return what was stored, unless the method defines none: older files do."""
        pressure: NDArray[np.float32] = self._arrays("pressure", "<f4", self._n)
        record = self._text.record
        game = self._text.game if record is None else record.game
        return pressure if get_method(game.method).has_pressure else undefined(self._n)

    def _stretch(self) -> NDArray[np.float32] | None:
        if "stretch" not in self._arrays:
            return None  # an older file
        stretch: NDArray[np.float32] = self._arrays("stretch", "<f4", self._n)
        self._expect(bool((stretch >= 0).all()), "its stretch")
        return stretch

    def _isolation(self) -> NDArray[np.float32] | None:
        if "isolation" not in self._arrays:
            return None  # an older file, or given edges
        isolation: NDArray[np.float32] = self._arrays("isolation", "<f4", self._n)
        self._expect(bool((isolation >= 0).all()), "its isolation")
        return isolation

    def _neighbors(self) -> NDArray[np.int32] | None:
        if "neighbors" not in self._arrays:
            return None  # an older file, or too many rows
        neighbors: NDArray[np.int32] = self._arrays("neighbors", "<i4", self._n, None)
        self._expect(within(neighbors, -1, self._n), "its neighbours")
        return neighbors

    def merging(self, n_landmarks: int) -> Merging | None:
        """Return how the landmarks can be merged, where that is known."""
        from napari_embedding_game.core.inspect.clusters import MergeTree

        if not self._text.is_merged:
            return None
        weights = self._arrays("graph_weights", "<f8", None)
        indices = self._arrays("graph_indices", "<i4", len(weights))
        indptr = self._arrays("graph_indptr", "<i4", n_landmarks + 1)
        born = self._arrays("tree_born", "<i8", n_landmarks)
        leader = self._arrays("tree_leader", "<i8", n_landmarks)
        levels = self._arrays("tree_levels", "<i8", None, n_landmarks)
        in_order = bool((np.diff(indptr) >= 0).all()) and indptr[0] == 0
        self._expect(in_order and indptr[-1] == len(weights), "its merged clusters")
        for numbers in (indices, leader, levels):
            self._expect(within(numbers, 0, n_landmarks), "its merged clusters")
        # Up the tree one arrives: a leader was there before those that it leads.
        led = born > 1
        self._expect(bool((born[leader[led]] < born[led]).all()), "its merged clusters")
        self._expect(within(born, 0, n_landmarks + 1), "its merged clusters")
        shape = (n_landmarks, n_landmarks)
        graph = sp.csr_matrix((weights, indices, indptr), shape=shape)
        return Merging(graph, MergeTree(born, leader, levels))

    def energies(self) -> tuple[tuple[int, float], ...]:
        """Return (iteration, energy) pairs."""
        energies = self._arrays("energies", "<f8", None, 2)
        self._expect(bool(np.isfinite(energies).all()), "its energies")
        return tuple((int(i), float(e)) for i, e in energies)


def within(numbers: NDArray[Any], low: int, high: int) -> bool:
    """Return whether all numbers are at least ``low`` and below ``high``."""
    return not len(numbers) or bool(low <= numbers.min() and numbers.max() < high)
