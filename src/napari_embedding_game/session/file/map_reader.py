"""Read a map from a session file, and check that its parts fit together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_embedding_game.core.snapshot import Snapshot
from napari_embedding_game.data.dataset import Examples
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.label_objects import Objects
from napari_embedding_game.data.predicted import PredictedLabels
from napari_embedding_game.session.clusters.automatic import BookState
from napari_embedding_game.session.clusters.clustering import Edits, is_color
from napari_embedding_game.session.file.json_schema import MapText
from napari_embedding_game.session.file.moment_reader import MomentReader, within
from napari_embedding_game.session.file.origin import PREPARED
from napari_embedding_game.session.file.prepared import read_prepared
from napari_embedding_game.session.file.saved_map import (
    SavedMap,
    SavedSession,
    rows_only,
)
from napari_embedding_game.session.file.stored_table import read_table
from napari_embedding_game.session.file.timeline_reader import read_timeline
from napari_embedding_game.session.file.zip_container import Container
from napari_embedding_game.session.json_codec import loads
from napari_embedding_game.session.reference.placed_on import PlacedOn
from napari_embedding_game.session.run import replay
from napari_embedding_game.session.shown_comparisons import ShownComparison
from napari_embedding_game.session.timeline import TimelineState

OLD_SIZE = b'"size_by_pressure": true', b'"size_by": "Pressure"'
"""What points are sized by, as version 0.2 wrote it, and as it is written now."""


class _Members:
    """The arrays in one folder of the file."""

    def __init__(self, file: Container, folder: str) -> None:
        self._file, self._folder = file, folder

    def __call__(self, name: str, dtype: str, *shape: int | None) -> NDArray[Any]:
        return self._file.array(f"{self._folder}/{name}.npy", dtype, shape)

    def __contains__(self, name: object) -> bool:
        return f"{self._folder}/{name}.npy" in self._file


class MapReader:
    """Reads one map of a file and checks that its parts fit together."""

    def __init__(self, file: Container, number: int) -> None:
        self._file = file
        self._folder = f"maps/{number}"
        text = file.text(f"{self._folder}/map.json")
        self._text = loads(MapText, text.replace(*OLD_SIZE), file.name)
        self._n = self._text.n_points
        self._arrays = _Members(file, self._folder)

    def map(self) -> SavedMap:
        """Return the map, with rows that have no numbers yet."""
        text = self._text
        names = _names(self._file.text(f"{self._folder}/names.json"), self._file.name)
        self._expect(len(names) == self._n >= 0, "its rows")
        kept = self._arrays("kept", "|b1", text.origin.n_source_rows)
        self._expect(np.count_nonzero(kept) == self._n, "its rows")
        moment = MomentReader(
            text, self._n, self._arrays, self._expect, self._file.name
        )
        record = moment.record()
        if record is not None:
            replay.check(record)
        snapshot = moment.snapshot()
        n_landmarks = 0 if snapshot is None else len(snapshot.landmarks)
        limits = text.look.limits
        self._expect(limits is None or limits[0] < limits[1], "its colours")
        reason = (
            f"The data of {text.origin.name} are not loaded: open the session again "
            "when the file is in its place, or load the data anew."
        )
        dataset = rows_only(
            text.origin,
            pd.Index(names),
            kept,
            reason,
            self._x() if text.has_x else None,
            self._objects(),
            dict(text.scores),
            dict(self._taught()),
            tuple(self._predicted()),
            self._table(names),
            *self._profile(),
        )
        if text.prepared is not None:
            dataset.known[PREPARED] = read_prepared(
                text.prepared, kept, self._arrays, self._expect
            )
        return SavedMap(
            key=text.key,
            title=text.title,
            parent=text.parent,
            dataset=dataset,
            origin=text.origin,
            start=text.start,
            game=text.game,
            record=record,
            snapshot=snapshot,
            energies=moment.energies(),
            merging=moment.merging(n_landmarks),
            book=self._book(n_landmarks),
            selected=text.selected,
            drawn=self._arrays("drawn", "|b1", self._n) if text.is_drawn else None,
            look=text.look,
            view=text.view,
            timeline=self._timeline(snapshot),
            comparisons=tuple(self._comparisons()),
            boxes=self._boxes(),
            figures=text.figures,
            placed_on=self._placed_on(),
        )

    def _x(self) -> NDArray[np.floating]:
        is_double = "x_double" in self._arrays
        name, dtype = ("x_double", "<f8") if is_double else ("x", "<f4")
        return self._arrays(name, dtype, self._n, None)

    def _comparisons(self) -> Iterator[ShownComparison]:
        texts = self._text.comparisons
        if not texts:
            return
        n_groups = sum(1 + text.has_outside + text.has_selected for text in texts)
        groups = iter(self._arrays("compared", "|b1", n_groups, self._n))
        for text in texts:
            yield ShownComparison(
                inside=next(groups),
                outside=next(groups) if text.has_outside else None,
                selected=next(groups) if text.has_selected else None,
                method=text.method,
                samples=text.samples,
                column=text.column,
                levels=text.levels,
            )

    def _timeline(self, snapshot: Snapshot | None) -> TimelineState | None:
        text = self._text.timeline
        if text is None:
            return None  # an older file

        def member(name: str, kind: str) -> NDArray[Any]:
            return self._arrays(name, kind, None)

        return read_timeline(
            text, self._n, snapshot, member, self._expect, self._file.name
        )

    def _taught(self) -> Mapping[str, Examples]:
        """Return the examples of taught classes, which are rows of the source."""
        for examples in self._text.taught.values():
            self._check_examples(examples)
        return self._text.taught

    def _boxes(self) -> Examples:
        """Return the rows that are sorted into boxes, which are rows of the source."""
        self._check_examples(self._text.boxes)
        return self._text.boxes

    def _check_examples(self, examples: Examples) -> None:
        n_rows = self._text.origin.n_source_rows
        rows = np.array([row for rows in examples.values() for row in rows], "<i8")
        self._expect(within(rows, 0, n_rows), "its examples")
        self._expect(len(np.unique(rows)) == len(rows), "its examples")

    def _table(self, names: Sequence[str]) -> pd.DataFrame | None:
        if not self._text.columns:
            return None
        return read_table(self._text.columns, names, self._arrays, self._expect)

    def _profile(self) -> tuple[NDArray[np.float32] | None, tuple[str, ...]]:
        names = self._text.profile_names
        if not names or not self._text.has_x:
            return None, ()
        return self._arrays("profile", "<f4", self._n, len(names)), names

    def _predicted(self) -> Iterator[PredictedLabels]:
        texts, n = self._text.predicted, self._n
        if not texts:
            return
        codes = self._arrays("predicted", "<i4", len(texts), n)
        unlike = self._arrays("predicted_unlike", "|b1", len(texts), n)
        shares = self._arrays("predicted_shares", "<f4", len(texts), 3, n)
        for place, text in enumerate(texts):
            is_known = within(codes[place], -1, len(text.names))
            self._expect(is_known, "its predicted labels")
            is_once = len(set(text.names)) == len(text.names)
            self._expect(is_once, "its predicted labels")
            yield PredictedLabels(
                text.reference,
                text.label,
                text.correct_batch,
                text.names,
                codes[place],
                shares[place, 0],
                shares[place, 1],
                shares[place, 2],
                unlike[place],
            )

    def _placed_on(self) -> PlacedOn | None:
        text = self._text.placed_on
        if text is None:
            return None
        placed = self._arrays("placed", "<f4", self._n, None)
        cells = self._arrays("reference_cells", "<f4", None, placed.shape[1])
        codes = self._arrays("reference_codes", "<i4", len(cells))
        is_map = placed.shape[1] in (1, 2, 3) and len(cells) > 0
        is_known = within(codes, -1, len(text.names))
        are_finite = all(bool(np.isfinite(places).all()) for places in (placed, cells))
        self._expect(is_map and is_known and are_finite, "the map of its reference")
        return PlacedOn(text.reference, text.label, text.names, codes, cells, placed)

    def _objects(self) -> Objects | None:
        n_axes, n_rows = self._text.n_axes, self._text.origin.n_source_rows
        if not n_axes:
            return None
        return Objects(
            self._arrays("label_ids", "<i8", n_rows),
            self._arrays("boxes", "<i8", n_rows, 2 * n_axes),
            self._arrays("areas", "<i8", n_rows) if "areas" in self._arrays else None,
        )

    def _book(self, n_landmarks: int) -> BookState:
        text = self._text
        self._expect(text.n_clusters is None or text.n_clusters >= 0, "its clusters")
        self._expect(_ends(dict(text.joined)), "its merged clusters")
        edits = Edits(
            by_hand=self._arrays("by_hand", "<i4", self._n),
            n_clusters=text.n_clusters,
            grouping=text.grouping,
            given=dict(text.given),
            joined=dict(text.joined),
            below=self._arrays("below", "<i4", self._n)
            if "below" in self._arrays
            else None,
        )
        of_landmarks = self._arrays("of_landmarks", "<i4", None)
        self._expect(len(of_landmarks) in (0, n_landmarks), "its clusters")
        ids = [*dict(text.given), *dict(text.joined), *dict(text.numbers)]
        self._expect(all(0 <= i < text.next_id < 2**30 for i in ids), "its clusters")
        colors = [given.color for _, given in text.given]
        self._expect(all(not c or is_color(c) for c in colors), "its colours")
        return BookState(
            edits=edits,
            automatic=self._arrays("automatic", "<i4", self._n),
            of_landmarks=of_landmarks,
            numbers=dict(text.numbers),
            next_id=text.next_id,
            dormant=dict(self._dormant()),
        )

    def _dormant(self) -> Iterator[tuple[int, NDArray[np.intp]]]:
        ids = self._arrays("asleep", "<i4", None)
        ends = self._arrays("asleep_ends", "<i8", len(ids))
        rows = self._arrays("asleep_rows", "<i8", None)
        self._expect(within(rows, 0, self._n), "its clusters")
        begins = np.concatenate([[0], ends])
        self._expect(
            bool((np.diff(begins) >= 0).all()) and begins[-1] == len(rows),
            "its clusters",
        )
        for cluster, begin, end in zip(ids, begins[:-1], ends, strict=True):
            yield int(cluster), rows[begin:end]

    def _expect(self, is_so: bool, what: str) -> None:
        if not is_so:
            raise DataError(
                f"{self._file.name} is damaged ({what}): open another copy of it, or "
                "the data anew."
            )


def _names(text: bytes, where: str) -> tuple[str, ...]:
    """Return a JSON list of texts."""
    names: tuple[str, ...] = loads(tuple[str, ...], text, where)
    return names


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
            raise DataError(
                f"{where} is damaged (its maps): open another copy of it, or the data "
                "anew."
            )
        seen.add(one.key)
    if session.current not in seen:
        raise DataError(f"{where} is damaged: the map that was shown is missing.")
