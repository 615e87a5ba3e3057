"""Read a map from a session file, and check that its parts fit together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from napari_embedding_game.core.energy.methods import get_method
from napari_embedding_game.core.types import Snapshot, WarmStart, undefined
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.label_objects import Objects
from napari_embedding_game.session.clusters.automatic import BookState
from napari_embedding_game.session.clusters.clustering import Edits, is_color
from napari_embedding_game.session.clusters.merging import Merging
from napari_embedding_game.session.file.check_settings import (
    check_record,
    check_settings,
)
from napari_embedding_game.session.file.forces_text import ForcesReader
from napari_embedding_game.session.file.json_schema import MapText
from napari_embedding_game.session.file.saved_map import (
    SavedMap,
    SavedSession,
    rows_only,
)
from napari_embedding_game.session.file.zip_container import Container
from napari_embedding_game.session.json_codec import loads
from napari_embedding_game.session.run import replay
from napari_embedding_game.session.run.record import Forced, RunRecord

OLD_SIZE = b'"size_by_pressure": true', b'"size_by": "Pressure"'
"""What points are sized by, as version 0.2 wrote it, and as it is written now."""


class MapReader:
    """Reads one map of a file and checks that its parts fit together."""

    def __init__(self, file: Container, number: int) -> None:
        self._file = file
        self._folder = f"maps/{number}"
        text = file.text(f"{self._folder}/map.json")
        self._text = loads(MapText, text.replace(*OLD_SIZE), file.name)
        self._n = self._text.n_points

    def map(self) -> SavedMap:
        """Return the map, with rows that have no numbers yet."""
        text = self._text
        names = _names(self._file.text(f"{self._folder}/names.json"), self._file.name)
        self._expect(len(names) == self._n >= 0, "its rows")
        kept = self._array("kept", "|b1", text.origin.n_source_rows)
        self._expect(np.count_nonzero(kept) == self._n, "its rows")
        check_settings(text.start, text.game, self._file.name)
        if text.record is not None:
            self._expect(text.shot is not None, "its run")
            check_record(text.record, self._file.name)
        record = self._record()
        if record is not None:
            replay.check(record)
        snapshot = self._snapshot()
        n_landmarks = 0 if snapshot is None else len(snapshot.landmarks)
        energies = self._array("energies", "<f8", None, 2)
        self._expect(bool(np.isfinite(energies).all()), "its energies")
        limits = text.look.limits
        self._expect(limits is None or limits[0] < limits[1], "its colours")
        reason = (
            f"The data of {text.origin.name} are not loaded: open the session again "
            "when the file is in its place, or load the data anew."
        )
        return SavedMap(
            key=text.key,
            title=text.title,
            parent=text.parent,
            dataset=rows_only(
                text.origin,
                pd.Index(names),
                kept,
                reason,
                self._array("x", "<f4", self._n, None) if text.has_x else None,
                self._objects(),
                dict(text.scores),
            ),
            origin=text.origin,
            start=text.start,
            game=text.game,
            record=record,
            snapshot=snapshot,
            energies=tuple((int(i), float(e)) for i, e in energies),
            merging=self._merging(n_landmarks) if text.is_merged else None,
            book=self._book(n_landmarks),
            selected=text.selected,
            drawn=self._array("drawn", "|b1", self._n) if text.is_drawn else None,
            look=text.look,
            view=text.view,
        )

    def _record(self) -> RunRecord | None:
        """Return the record, with forces and the map that the run went on from."""
        record, left = self._text.record, self._text.branch_left
        if record is None:
            return None
        record = replace(record.as_text(), forced=self._forced(record))
        if left is None:
            return record
        embedding = self._array("branch_embedding", "<f4", self._n, None)
        self._expect(embedding.shape[1] == record.start.n_components, "its branch")
        landmarks = self._array("branch_landmarks", "<f4", None, embedding.shape[1])
        for positions in (embedding, landmarks):
            self._expect(bool(np.isfinite(positions).all()), "its branch")
        self._expect(record.is_branch and left >= 0, "its branch")
        warm = WarmStart(embedding=embedding, landmarks=landmarks, iterations_left=left)
        return replace(record, warm_start=warm)

    def _forced(self, record: RunRecord) -> tuple[Forced, ...]:
        """Return what a hand did to the points of the run."""
        if not self._text.forced:
            return ()
        folder = self._folder
        if f"{folder}/hand_rows.npy" not in self._file:  # all of it was let go
            rows, ends = np.zeros(0, "<i8"), np.zeros(0, "<i8")
            places = np.zeros((0, record.start.n_components), "<f4")
        else:
            rows = self._array("hand_rows", "<i8", None)
            ends = self._array("hand_ends", "<i8", None)
            n_components = record.start.n_components
            places = self._array("hand_places", "<f4", len(rows), n_components)

        def expect(is_so: bool) -> None:
            self._expect(is_so, "its moves by hand")

        expect(_within(rows, 0, self._n))
        expect(bool(np.isfinite(places).all()))
        reader = ForcesReader(rows, ends, places, expect)
        return reader.events(self._text.forced)

    def _objects(self) -> Objects | None:
        n_axes, n_rows = self._text.n_axes, self._text.origin.n_source_rows
        if not n_axes:
            return None
        return Objects(
            self._array("label_ids", "<i8", n_rows),
            self._array("boxes", "<i8", n_rows, 2 * n_axes),
        )

    def _snapshot(self) -> Snapshot | None:
        shot = self._text.shot
        if shot is None:
            return None
        embedding = self._array("embedding", "<f4", self._n, None)
        landmarks = self._array("landmarks", "<f4", None, embedding.shape[1])
        labels = self._array("labels", "<i4", self._n)
        self._expect(embedding.shape[1] in (1, 2, 3), "its layout")
        for positions in (embedding, landmarks):
            self._expect(bool(np.isfinite(positions).all()), "its layout")
        self._expect(_within(labels, 0, len(landmarks)), "its clusters")
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
            warning=shot.warning,
            finished=shot.finished,
        )

    def _pressure(self) -> NDArray[np.float32]:
        """Return what was stored, unless the method defines none: older files do."""
        pressure: NDArray[np.float32] = self._array("pressure", "<f4", self._n)
        record = self._text.record
        game = self._text.game if record is None else record.game
        return pressure if get_method(game.method).has_pressure else undefined(self._n)

    def _stretch(self) -> NDArray[np.float32] | None:
        if f"{self._folder}/stretch.npy" not in self._file:
            return None  # an older file
        stretch: NDArray[np.float32] = self._array("stretch", "<f4", self._n)
        self._expect(bool((stretch >= 0).all()), "its stretch")
        return stretch

    def _neighbors(self) -> NDArray[np.int32] | None:
        if f"{self._folder}/neighbors.npy" not in self._file:
            return None  # an older file, or too many rows
        neighbors: NDArray[np.int32] = self._array("neighbors", "<i4", self._n, None)
        self._expect(_within(neighbors, -1, self._n), "its neighbours")
        return neighbors

    def _book(self, n_landmarks: int) -> BookState:
        text = self._text
        self._expect(text.n_clusters is None or text.n_clusters >= 0, "its clusters")
        self._expect(_ends(dict(text.joined)), "its merged clusters")
        edits = Edits(
            by_hand=self._array("by_hand", "<i4", self._n),
            n_clusters=text.n_clusters,
            grouping=text.grouping,
            given=dict(text.given),
            joined=dict(text.joined),
        )
        of_landmarks = self._array("of_landmarks", "<i4", None)
        self._expect(len(of_landmarks) in (0, n_landmarks), "its clusters")
        ids = [*dict(text.given), *dict(text.joined), *dict(text.numbers)]
        self._expect(all(0 <= i < text.next_id < 2**30 for i in ids), "its clusters")
        colors = [given.color for _, given in text.given]
        self._expect(all(not c or is_color(c) for c in colors), "its colours")
        return BookState(
            edits=edits,
            automatic=self._array("automatic", "<i4", self._n),
            of_landmarks=of_landmarks,
            numbers=dict(text.numbers),
            next_id=text.next_id,
            dormant=dict(self._dormant()),
        )

    def _dormant(self) -> Iterator[tuple[int, NDArray[np.intp]]]:
        ids = self._array("asleep", "<i4", None)
        ends = self._array("asleep_ends", "<i8", len(ids))
        rows = self._array("asleep_rows", "<i8", None)
        self._expect(_within(rows, 0, self._n), "its clusters")
        begins = np.concatenate([[0], ends])
        self._expect(
            bool((np.diff(begins) >= 0).all()) and begins[-1] == len(rows),
            "its clusters",
        )
        for cluster, begin, end in zip(ids, begins[:-1], ends, strict=True):
            yield int(cluster), rows[begin:end]

    def _merging(self, n_landmarks: int) -> Merging:
        from napari_embedding_game.core.inspect.clusters import MergeTree

        weights = self._array("graph_weights", "<f8", None)
        indices = self._array("graph_indices", "<i4", len(weights))
        indptr = self._array("graph_indptr", "<i4", n_landmarks + 1)
        born = self._array("tree_born", "<i8", n_landmarks)
        leader = self._array("tree_leader", "<i8", n_landmarks)
        levels = self._array("tree_levels", "<i8", None, n_landmarks)
        in_order = bool((np.diff(indptr) >= 0).all()) and indptr[0] == 0
        self._expect(in_order and indptr[-1] == len(weights), "its merging")
        for numbers in (indices, leader, levels):
            self._expect(_within(numbers, 0, n_landmarks), "its merging")
        # Up the tree one arrives: a leader was there before those that it leads.
        led = born > 1
        self._expect(bool((born[leader[led]] < born[led]).all()), "its merging")
        self._expect(_within(born, 0, n_landmarks + 1), "its merging")
        shape = (n_landmarks, n_landmarks)
        graph = sp.csr_matrix((weights, indices, indptr), shape=shape)
        return Merging(graph, MergeTree(born, leader, levels))

    def _array(self, name: str, dtype: str, *shape: int | None) -> NDArray[Any]:
        return self._file.array(f"{self._folder}/{name}.npy", dtype, shape)

    def _expect(self, is_so: bool, what: str) -> None:
        if not is_so:
            raise DataError(
                f"{self._file.name} is damaged: {what} do not fit together."
            )


def _names(text: bytes, where: str) -> tuple[str, ...]:
    """Return a JSON list of texts."""
    names: tuple[str, ...] = loads(tuple[str, ...], text, where)
    return names


def _within(numbers: NDArray[Any], low: int, high: int) -> bool:
    return not len(numbers) or bool(low <= numbers.min() and numbers.max() < high)


def _ends(joined: Mapping[int, int]) -> bool:
    """Return whether following clusters to what they were merged into ends."""
    arrived: set[int] = set()
    for cluster in joined:
        way: set[int] = set()
        while cluster in joined and cluster not in arrived:
            if cluster in way:
                return False
            way.add(cluster)
            cluster = joined[cluster]
        arrived |= way
    return True


def check_family(session: SavedSession, where: str) -> None:
    """Raise DataError unless the maps are one tree, parents first."""
    seen: set[str] = set()
    for one in session.maps:
        is_known = one.parent is None if not seen else one.parent in seen
        if one.key in seen or not is_known:
            raise DataError(f"{where} is damaged: its maps do not fit together.")
        seen.add(one.key)
    if session.current not in seen:
        raise DataError(f"{where} is damaged: the map that was shown is missing.")
