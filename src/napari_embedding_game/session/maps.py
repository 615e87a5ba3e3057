"""The tree of maps: child maps of selected points, and other spaces.

The maps of a session are a tree.  One is open and lives in the :class:`Session`;
the others rest as :class:`SavedMap`.  What is named or made by hand in a child map
is a cluster by hand in its parent, too: rows are the same wherever they are shown,
since every dataset knows which rows of the source it holds.

Data read in another way (another space, other columns, counts prepared anew) are a
child of the map that was open, with all its rows: a *reading* of it.  So are the
same rows *placed* on the map of a reference.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from psygnal import Signal

from napari_embedding_game.data.dataset import Dataset, Examples
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.predicted import OR_UNLIKE
from napari_embedding_game.session.clusters.annotation import NONE, Annotation
from napari_embedding_game.session.file import archive
from napari_embedding_game.session.file.saved_map import SavedMap, SavedSession
from napari_embedding_game.session.reference.labels import PlacedCells
from napari_embedding_game.session.same_rows import (
    has_same_rows,
    is_same_source,
    rows_in,
)
from napari_embedding_game.session.session import Session

FEWEST = 10
"""Rows from which a map of its own tells anything."""
UNSAID = -2
PART, READING, PLACED = "child", "read", "placed"
"""What the key of a map begins with, by how it was made."""

Work: TypeAlias = tuple[list[tuple[str, Annotation]], Examples]
"""What a person decided: to be compared with what it was before."""


@dataclass(frozen=True, slots=True)
class Place:
    """One map in the tree, as a list or a path shows it."""

    key: str
    title: str
    parent: str | None
    n_points: int
    depth: int


class MapTree:
    """All maps of a session; ``changed`` tells that one came, went or was opened.

    Parameters
    ----------
    session : Session
        Shows the map that is open.
    """

    changed = Signal()

    def __init__(self, session: Session) -> None:
        self._session = session
        self._maps: dict[str, SavedMap] = {}
        self._told: dict[str, Annotation] = {}
        """What each child map has told its parent last."""
        self._current = ""
        self._is_moving = False
        self._view: Mapping[str, Any] = {}
        session.dataset_changed.connect(self._on_dataset)

    # What there is

    @property
    def current(self) -> str:
        """Key of the map that is open."""
        return self._current

    @property
    def is_moving(self) -> bool:
        """Whether another map of the tree is being opened, not other data."""
        return self._is_moving

    @property
    def places(self) -> list[Place]:
        """All maps, each parent directly before its children."""
        return [place for key in self._children(None) for place in self._places(key, 0)]

    @property
    def path(self) -> list[Place]:
        """The way from the first map to the one that is open."""
        known = {place.key: place for place in self.places}
        way = []
        key: str | None = self._current
        while key is not None and key in known:
            way.append(known[key])
            key = known[key].parent
        return way[::-1]

    @property
    def parts(self) -> list[Place]:
        """The maps of parts of the open map."""
        return [place for place in self.places if place.parent == self._current]

    def note_view(self, view: Mapping[str, Any]) -> None:
        """Remember what only the window knows of the open map, such as the camera."""
        self._view = dict(view)

    # Going from map to map

    def embed(
        self, points: NDArray[Any], title: str, dataset: Dataset | None = None
    ) -> str:
        """Open a child map of some points of the open map, and return its key.

        Parameters
        ----------
        points : (n,) bool or (m,) int
            Rows of the open map.
        title : str
            What a person calls them, such as the cluster's name.
        dataset : Dataset, optional
            The same source read in another space, where that is to be embedded.

        Raises
        ------
        DataError
            Too few points, or ``dataset`` is of another source.
        """
        parent = self._session.dataset
        if parent is None:
            raise DataError("Load some data first: there is no map to take a part of.")
        mask = np.zeros(len(parent.obs), bool)
        mask[points] = True
        child = _part(parent, mask, dataset)
        self._leave()
        former, key = self._current, self._new_key(PART)
        self._go(key, lambda: self._session.load(child))
        self._hang(key, title, former)
        return key

    def place(self, cells: PlacedCells) -> str:
        """Open a map of the cells on show where they were placed; return its key.

        It hangs on the map of these cells, which stays as it is.

        Parameters
        ----------
        cells : PlacedCells
            Of the data on show.

        Raises
        ------
        DataError
            Other data have been opened meanwhile.
        """
        dataset = self._session.dataset
        if dataset is None or cells.dataset is not dataset:
            raise DataError(
                "Other cells are on show than those that were placed: press Place "
                "on its map again."
            )
        column = self._session.add(Dataset.add_predicted, cells.predicted) + OR_UNLIKE
        self._leave()
        former, key = self._current, self._new_key(PLACED)
        parent = self._maps[former].parent if former.startswith(PLACED) else former
        title = f"On {Path(cells.on.reference).name}"
        of_session = self._session.capture(key, title)
        assert of_session is not None
        child = dataset.subset(np.ones(len(dataset.obs), bool))
        saved = replace(
            of_session,
            parent=parent,
            dataset=child,
            settings=replace(
                of_session.settings, n_components=cells.on.placed.shape[1]
            ),
            record=cells.moment.record,
            snapshot=cells.moment.snapshot,
            energies=(),
            merging=cells.moment.merging,
            clusters=cells.clusters,
            selected=(),
            drawn=None,
            look=replace(of_session.look, color_by=column, limits=None, split_by=""),
            comparisons=(),
            timeline=None,
            placed_on=cells.on,
        )
        self._maps[key] = saved
        try:
            self._go(key, lambda: self._session.restore(saved, child))
        except Exception:
            del self._maps[key]
            raise
        self.changed.emit()
        return key

    def fits(self, dataset: Dataset) -> bool:
        """Return whether a dataset has rows of the source that the maps are of."""
        shown = self._session.dataset
        return shown is not None and is_same_source(shown, dataset)

    def reload(self, dataset: Dataset) -> str:
        """Open the same source, read in another way, and return the key of its map.

        In a map of a part only its rows are taken.  The map that was open stays,
        unless nothing has been played on it, and what was made of its clusters is
        carried over.  Where there already is a map of the same rows and numbers, that
        one is opened; the open one takes over which objects the rows are.

        Raises
        ------
        DataError
            The dataset does not fit, or has too few of the rows.
        """
        shown = self._session.dataset
        if shown is None or not self.fits(dataset):
            raise DataError("These are rows of other data: open them instead.")
        base = self._base
        whole = shown if base == self._current else self._maps[base].dataset
        known = self._maps.get(base)
        if known is not None and known.parent is not None:  # a map of a part
            dataset = _taken(dataset, whole)
        if has_same_rows(shown, dataset):
            self._session.dataset = replace(
                shown,
                source_objects=dataset.source_objects,
                notes=dataset.notes,
                provenance=dataset.provenance,
            )
            return self._current
        for one in self._readings(base):
            if has_same_rows(one.dataset, dataset):
                self.open(one.key)
                return one.key
        return self._read_anew(base, shown, dataset)

    def _read_anew(self, base: str, shown: Dataset, dataset: Dataset) -> str:
        n_points, places = len(dataset.obs), rows_in(shown, dataset)
        state = self._session.clusters.state.carried(places, n_points)

        def move() -> None:
            self._session.load(dataset)
            labels = np.zeros(n_points, np.int32)
            self._session.clusters.restore(state, labels, 0)

        if self._session.snapshot is None and not self._children(self._current):
            # Nothing was played here: nothing is lost.
            key = self._current
            known = self._maps.get(key)
            self._go(key, move)
            if known is not None:
                self._hang(key, _reading_title(known.title, dataset), known.parent)
            else:
                self.changed.emit()
            return key
        self._leave()
        key = self._new_key(READING)
        title = self._maps[base].title
        self._go(key, move)
        self._hang(key, _reading_title(title, dataset), base)
        self._told[key] = state.annotation
        return key

    def open(self, key: str) -> None:
        """Open another map of the tree; a run on the open one is stopped."""
        if key == self._current:
            return
        if key not in self._maps:
            raise DataError("This map is gone: choose one from the list.")
        self._leave()
        saved = replace(self._maps[key], boxes=self._session.boxes)
        self._go(key, lambda: self._session.restore(saved, saved.dataset))
        self.changed.emit()

    def back(self) -> None:
        """Open the parent of the open map; without one, nothing happens."""
        parent = self._maps[self._current].parent if self._current else None
        if parent is not None:
            self.open(parent)

    def remove(self, key: str) -> None:
        """Forget a child map and its own children; names it gave stay.

        Raises
        ------
        DataError
            It is the first map, which the others hang on.
        """
        if self._maps.get(key) is None or self._maps[key].parent is None:
            raise DataError("The first map cannot be removed: open other data instead.")
        inside = {place.key for place in self._places(key, 0)}
        if self._current in inside:
            parent = self._maps[key].parent
            assert parent is not None
            self.open(parent)
        for one in inside:
            del self._maps[one]
            self._told.pop(one, None)
        self.changed.emit()

    @property
    def made(self) -> str:
        """What a person made in all these maps, in words; "" where it is nothing."""
        decided = dict(self.decided())
        names = {x.name for one in decided.values() for x in one.groups.values()}
        n_parts = sum(key.startswith(PART) for key in decided)
        n_examples = sum(map(len, self._session.boxes.values()))
        parts = (
            (len(names), "named cluster", "named clusters"),
            (n_parts, "map of a part", "maps of parts"),
            (n_examples, "example in a box", "examples in boxes"),
        )
        words = [f"{n} {one if n == 1 else several}" for n, one, several in parts if n]
        return " and ".join(", ".join(words).rsplit(", ", 1))

    @property
    def work(self) -> Work:
        """The annotation of each map, and the examples in boxes."""
        return self.decided(), self._session.boxes

    def decided(self) -> list[tuple[str, Annotation]]:
        """Return the annotation of each map by its key, the first map's first."""
        keys = [place.key for place in self.places]
        return [
            (
                key,
                self._session.clusters.state.annotation
                if key == self._current
                else self._maps[key].clusters.annotation,
            )
            for key in keys
        ]

    # To and from a file

    def capture(self) -> SavedSession | None:
        """Return all maps as they are now, for any thread; None without data."""
        if self._session.dataset is None:
            return None
        self._rest()
        maps, boxes = [self._maps[p.key] for p in self.places], self._session.boxes
        return SavedSession(
            maps=tuple(
                replace(one, boxes=boxes, dataset=one.dataset.frozen()) for one in maps
            ),
            current=self._current,
            saved_at=archive.now(),
        )

    def restore(self, saved: SavedSession) -> None:
        """Take up all maps of a session file, and open the one that was shown.

        Where this fails, the maps stay those that there were.
        """
        former = self._maps, self._told
        self._maps = {one.key: one for one in saved.maps}
        self._told = {
            one.key: one.clusters.annotation
            for one in saved.maps
            if one.parent is not None
        }
        shown = saved[saved.current]
        try:
            self._go(shown.key, lambda: self._session.restore(shown, shown.dataset))
        except Exception:
            self._maps, self._told = former
            raise
        self.changed.emit()

    # Inside

    @property
    def _base(self) -> str:
        """Key of the map that the open one is a reading of, or of the open one."""
        known = self._maps.get(self._current)
        is_reading = self._current.startswith(READING)
        if known is None or known.parent is None or not is_reading:
            return self._current
        return known.parent

    def _readings(self, base: str) -> list[SavedMap]:
        """Return a map and its readings, the open one left out."""
        keys = [base, *(c for c in self._children(base) if c.startswith(READING))]
        return [self._maps[key] for key in keys if key != self._current]

    def _new_key(self, kind: str) -> str:
        numbers = [
            int(key.removeprefix(kind)) for key in self._maps if key.startswith(kind)
        ]
        return f"{kind}{max(numbers, default=0) + 1}"

    def _hang(self, key: str, title: str, parent: str | None) -> None:
        """Store the open map below another."""
        saved = self._session.capture(key, title)
        assert saved is not None
        above = None if parent is None else self._maps[parent]
        self._maps[key] = replace(
            saved,
            parent=parent,
            overlaid=None if above is None else above.clusters.annotation,
        )
        self.changed.emit()

    def _on_dataset(self, dataset: Dataset | None) -> None:
        """Begin a new tree when a person has loaded something."""
        if not self._is_moving:
            self._maps, self._told = {}, {}
            self._current, self._view = "", {}
            self.changed.emit()

    def _go(self, key: str, move: Any) -> None:
        former = self._current, self._view
        self._current, self._view = key, {}
        self._is_moving = True
        try:
            move()
        except Exception:
            self._current, self._view = former
            raise
        finally:
            self._is_moving = False

    def _leave(self) -> None:
        """Store the open map, with its layout in the timeline."""
        self._session.mark_present("Left here")
        self._rest()

    def _rest(self) -> None:
        """Store the open map, and what its clusters mean to its parents."""
        key = self._current
        known = self._maps.get(key)
        title, view = (known.title, known.view) if known else ("", {})
        saved = self._session.capture(key, title, self._view or view)
        assert saved is not None
        if known is not None:
            saved = replace(saved, parent=known.parent, overlaid=known.overlaid)
        self._maps[key] = saved
        while self._maps[key].parent is not None:
            key = self._tell_parent(self._maps[key])

    def _tell_parent(self, child: SavedMap) -> str:
        """Annotate the cells of the parent by what was changed in a child."""
        assert child.parent is not None
        parent = self._maps[child.parent]
        rows = rows_in(child.dataset, parent.dataset)
        now = child.clusters.annotation
        levels = _changed_levels(now, self._told.get(child.key), rows >= 0)
        state, rows = parent.clusters, rows[rows >= 0]
        annotation, groups = state.annotation, [*now.groups.values()]
        if child.overlaid is not None:
            let_go = rows[levels == UNSAID]
            annotation = annotation.restored(let_go, child.overlaid, state.free_ids())
        of_parent = np.full(len(annotation.codes), NONE)
        of_parent[rows] = np.maximum(levels, NONE)
        annotation = annotation.joined(of_parent, groups, state.free_ids())
        state = state.edited(f"names from {child.title}", annotation, joins=True)
        self._told[child.key] = now
        self._maps[parent.key] = replace(parent, clusters=state)
        return parent.key

    def _children(self, key: str | None) -> list[str]:
        keys = [one.key for one in self._maps.values() if one.parent == key]
        if key is None and not keys and self._session.dataset is not None:
            return [self._current]  # nothing has been stored yet
        return keys

    def _places(self, key: str, depth: int) -> list[Place]:
        one = self._maps.get(key)
        if one is None:
            dataset = self._session.dataset
            assert dataset is not None
            return [Place(key, dataset.name, None, len(dataset.obs), depth)]
        here = Place(key, one.title, one.parent, len(one.dataset.obs), depth)
        below = [self._places(child, depth + 1) for child in self._children(key)]
        return [here, *(place for places in below for place in places)]


def _part(parent: Dataset, mask: NDArray[np.bool_], other: Dataset | None) -> Dataset:
    if np.count_nonzero(mask) < FEWEST:
        raise DataError(
            f"{np.count_nonzero(mask)} points are too few for a map of their own: "
            f"select {FEWEST} or more."
        )
    if not parent.X.shape[1]:
        raise DataError(parent.missing_reason)
    if other is None:
        return parent.subset(mask)
    if not is_same_source(other, parent):
        raise DataError(
            f"{other.name} has other rows than {parent.name}: choose a space of the "
            "same data."
        )
    wanted = np.zeros(parent.n_source_rows, bool)
    wanted[parent.kept] = mask
    return other.subset(wanted[other.kept])


def _taken(dataset: Dataset, part: Dataset) -> Dataset:
    """Return only the rows of a part."""
    return _part(part, np.ones(len(part.obs), bool), dataset)


def _reading_title(title: str, dataset: Dataset) -> str:
    return f"{title.partition(' · ')[0]} · {dataset.space}"


def _changed_levels(
    now: Annotation, former: Annotation | None, inside: NDArray[np.bool_]
) -> NDArray[np.intp]:
    """Return the place of each cell's group among those of now, where it was changed.

    NONE where nothing was, UNSAID where a cell is in no group any more.
    """
    ids = [*now.groups]
    place = np.full(max(ids, default=0) + 2, UNSAID)
    place[ids] = np.arange(len(ids))
    levels = place[now.codes]
    if former is None:
        levels[levels == UNSAID] = NONE
        return levels[inside]
    kept = {i for i in ids if now.groups[i] == former.groups.get(i)}
    is_same = (now.codes == former.codes) & np.isin(now.codes, [NONE, *kept])
    levels[is_same] = NONE
    return levels[inside]
