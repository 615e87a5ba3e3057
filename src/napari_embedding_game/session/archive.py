"""The session file: a .zip of JSON and plain arrays, without code of any kind.

``session.json`` says what there is; each map has a folder with its texts and
arrays.  Whatever is read is checked before it is used: see :mod:`container` for
the file, :mod:`codec` for the texts, and :func:`_check` for how it fits together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from napari_embedding_game.core.types import GameSettings, Snapshot, StartSettings
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.objects import Objects
from napari_embedding_game.data.result import versions
from napari_embedding_game.session import container, replay
from napari_embedding_game.session.clustering import Edits, Given, Grouping
from napari_embedding_game.session.clusters import BookState, is_color
from napari_embedding_game.session.codec import dumps, loads
from napari_embedding_game.session.container import Container
from napari_embedding_game.session.merging import Merging
from napari_embedding_game.session.origin import SAMPLES, Origin, origin_of, reload
from napari_embedding_game.session.record import RunRecord
from napari_embedding_game.session.saved import (
    SavedMap,
    SavedSession,
    rows_only,
)

ENDING = ".zip"
FORMAT: Literal["napari-embedding-game session"] = "napari-embedding-game session"
VERSION = 1
"""Raised when files are written that an older program would read wrongly."""

LARGEST_X = 64_000_000
"""Bytes of numbers that are stored where there is no file to read them from again."""

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True, kw_only=True)
class _SessionText:
    """What ``session.json`` holds."""

    format: Literal["napari-embedding-game session"]
    version: int
    saved_at: str
    current: str
    n_maps: int
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class _ShotText:
    iteration: int
    n_iter: int
    energy: float
    warning: str
    finished: bool


@dataclass(frozen=True, kw_only=True)
class _MapText:
    """What ``map.json`` in the folder of a map holds."""

    key: str
    title: str
    parent: str | None
    origin: Origin
    start: StartSettings
    game: GameSettings
    record: RunRecord | None
    shot: _ShotText | None
    n_points: int
    n_clusters: int | None
    grouping: Grouping
    given: tuple[tuple[int, Given], ...]
    joined: tuple[tuple[int, int], ...]
    numbers: tuple[tuple[int, int], ...]
    next_id: int
    selected: tuple[int, ...]
    is_drawn: bool
    is_merged: bool
    has_x: bool = False
    n_axes: int = 0
    """Axes of the label image that the rows are objects of; 0: they are none."""
    look: Mapping[str, Any]
    view: Mapping[str, Any]


def save(session: SavedSession, path: str | Path) -> None:
    """Write a session file; an existing one is replaced in one step.

    Raises
    ------
    DataError
        The file cannot be written, or it is one of the data files.
    """
    path = Path(path)
    for one in session.maps:
        source = one.dataset.source
        if source is not None and path.exists() and source.exists():
            _refuse_input(path, source)
    members: dict[str, bytes | NDArray[Any]] = {
        "session.json": dumps(
            _SessionText(
                format=FORMAT,
                version=VERSION,
                saved_at=session.saved_at or now(),
                current=session.current,
                n_maps=len(session.maps),
                versions=versions(),
            )
        )
    }
    for number, one in enumerate(session.maps):
        folder = f"maps/{number}"
        members[f"{folder}/map.json"] = dumps(_text(one))
        members[f"{folder}/names.json"] = dumps(list(map(str, one.dataset.obs.index)))
        for name, array in _arrays(one).items():
            members[f"{folder}/{name}.npy"] = array
    container.write(path, members)


def load(path: str | Path) -> SavedSession:
    """Read a session file; the data it refers to are not read yet.

    Raises
    ------
    DataError
        It is no session file, is damaged, or was written by a later version.
    """
    file = Container(Path(path))
    text = loads(_SessionText, file.text("session.json"), file.name)
    if text.version > VERSION:
        raise DataError(
            f"{file.name} was written by a later version of this program: "
            "update napari-embedding-game to open it."
        )
    if not 1 <= text.n_maps <= len(file):
        raise DataError(f"{file.name} is damaged: it holds no map.")
    maps = tuple(_Reader(file, number).map() for number in range(text.n_maps))
    session = SavedSession(maps=maps, current=text.current, saved_at=text.saved_at)
    _check_family(session, file.name)
    return session


def with_data(saved: SavedMap, beside: str | Path) -> SavedMap:
    """Return the map with its data, read again.

    Parameters
    ----------
    beside : str or Path
        Folder of the session file; the data may lie there, too.

    Raises
    ------
    DataError
        The data are missing or have changed; the map can be shown without them.
    """
    assert saved.origin is not None
    if saved.dataset.X.shape[1]:
        return saved  # they were stored with the map
    dataset = reload(saved.origin, saved.dataset.kept, Path(beside))
    return replace(saved, dataset=dataset)


def open_session(path: str | Path) -> tuple[SavedSession, list[str]]:
    """Read a session file and the data it refers to, as far as they are there.

    Returns
    -------
    session : SavedSession
        A map whose data could not be read can be shown, but not played on.
    troubles : list of str
        A sentence for each thing that could not be read.

    Raises
    ------
    DataError
        The session file itself cannot be read.
    """
    path = Path(path)
    session = load(path)
    maps, troubles = [], []
    for one in session.maps:
        try:
            maps.append(with_data(one, path.parent))
        except DataError as error:
            maps.append(one)
            troubles.append(str(error))
    return replace(session, maps=tuple(maps)), list(dict.fromkeys(troubles))


def recorded_map(path: str | Path, title: str | None = None) -> SavedMap:
    """Return a map of a session file that has a run to replay.

    Parameters
    ----------
    title : str, optional
        What it is called; by default the map that was shown.

    Raises
    ------
    DataError
        The file cannot be read, has no such map, or nothing was played on it.
    """
    path = Path(path)
    session = load(path)
    if title is None:
        saved = session[session.current]
    else:
        titles = [one.title for one in session.maps]
        if title not in titles:
            raise DataError(
                f"{path.name} has no map '{title}': choose one of {', '.join(titles)}."
            )
        saved = session.maps[titles.index(title)]
    if saved.record is None:
        raise DataError(
            f"Nothing has been played on the map '{saved.title}' of {path.name}: "
            "there is no run to replay."
        )
    return saved


def now() -> str:
    """Return the present time as text."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


# Writing


def _refuse_input(path: Path, source: Path) -> None:
    if path.samefile(source):
        raise DataError(
            f"{path.name} is the data file itself and stays as it is: "
            "choose another name for the session."
        )


def _text(one: SavedMap) -> _MapText:
    edits, shot, objects = one.book.edits, one.snapshot, one.dataset.source_objects
    return _MapText(
        key=one.key,
        title=one.title,
        parent=one.parent,
        origin=one.origin or origin_of(one.dataset),
        start=one.start,
        game=one.game,
        record=one.record,
        shot=None
        if shot is None
        else _ShotText(
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


def _arrays(one: SavedMap) -> Arrays:
    book, shot = one.book, one.snapshot
    asleep = list(book.asleep.values())
    arrays: Arrays = {
        "kept": one.dataset.kept,
        "by_hand": book.edits.by_hand.astype("<i4"),
        "automatic": book.automatic.astype("<i4"),
        "of_landmarks": book.of_landmarks.astype("<i4"),
        "asleep": np.array(list(book.asleep), "<i4"),
        "asleep_ends": np.cumsum([len(rows) for rows in asleep]).astype("<i8"),
        "asleep_rows": np.concatenate([*asleep, np.zeros(0, "<i8")]).astype("<i8"),
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


# Reading


class _Reader:
    """Reads one map of a file and checks that its parts fit together."""

    def __init__(self, file: Container, number: int) -> None:
        self._file = file
        self._folder = f"maps/{number}"
        self._text = loads(_MapText, file.text(f"{self._folder}/map.json"), file.name)
        self._n = self._text.n_points

    def map(self) -> SavedMap:
        """Return the map, with rows that have no numbers yet."""
        text = self._text
        names = loads_names(
            self._file.text(f"{self._folder}/names.json"), self._file.name
        )
        self._expect(len(names) == self._n >= 0, "its rows")
        kept = self._array("kept", "|b1", text.origin.n_source_rows)
        self._expect(np.count_nonzero(kept) == self._n, "its rows")
        snapshot = self._snapshot()
        n_landmarks = 0 if snapshot is None else len(snapshot.landmarks)
        if text.record is not None:
            self._expect(snapshot is not None, "its run")
            replay.check(text.record)
        energies = self._array("energies", "<f8", None, 2)
        self._expect(bool(np.isfinite(energies).all()), "its energies")
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
            ),
            origin=text.origin,
            start=text.start,
            game=text.game,
            record=text.record,
            snapshot=snapshot,
            energies=tuple((int(i), float(e)) for i, e in energies),
            merging=self._merging(n_landmarks) if text.is_merged else None,
            book=self._book(n_landmarks),
            selected=text.selected,
            drawn=self._array("drawn", "|b1", self._n) if text.is_drawn else None,
            look=text.look,
            view=text.view,
        )

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
            pressure=self._array("pressure", "<f4", self._n),
            warning=shot.warning,
            finished=shot.finished,
        )

    def _book(self, n_landmarks: int) -> BookState:
        text = self._text
        self._expect(text.n_clusters is None or text.n_clusters >= 1, "its clusters")
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
            asleep=dict(self._asleep()),
        )

    def _asleep(self) -> Iterator[tuple[int, NDArray[np.intp]]]:
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
        from napari_embedding_game.core.clusters import MergeTree

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


def loads_names(text: bytes, where: str) -> tuple[str, ...]:
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


def _check_family(session: SavedSession, where: str) -> None:
    seen: set[str] = set()
    for one in session.maps:
        is_known = one.parent is None if not seen else one.parent in seen
        if one.key in seen or not is_known:
            raise DataError(f"{where} is damaged: its maps do not fit together.")
        seen.add(one.key)
    if session.current not in seen:
        raise DataError(f"{where} is damaged: the map that was shown is missing.")
