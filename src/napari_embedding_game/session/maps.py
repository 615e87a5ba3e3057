"""The tree of maps: child maps of selected points, and other spaces.

The maps of a session are a tree.  One is open and lives in the :class:`Session`;
the others rest as :class:`SavedMap`.  What is named or made by hand in a child map
is a cluster by hand in its parent, too: rows are the same wherever they are shown,
since every dataset knows which rows of the source it holds.  A child map has the
names of its parent as a column of its metadata.

Data read in another way (another space, other columns, counts prepared anew) are a
child of the map that was open, with all its rows: a *reading* of it.  So are the
same rows *placed* on the map of a reference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from psygnal import Signal

from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.identity import Identity, align_rows, is_unchanged_order
from napari_embedding_game.data.prediction import OR_UNLIKE, with_predicted_labels
from napari_embedding_game.data.read_options import DEFAULT_OPTIONS
from napari_embedding_game.data.read_result import ReadResult
from napari_embedding_game.session.clusters.annotation import NONE
from napari_embedding_game.session.clusters.cluster_matching import (
    renumber_away_from_groups,
)
from napari_embedding_game.session.clusters.state import ClusterState
from napari_embedding_game.session.file.saved_map import (
    MapKind,
    SavedMap,
    SavedSession,
)
from napari_embedding_game.session.reference.labels import PlacedCells
from napari_embedding_game.session.session import Session
from napari_embedding_game.session.sources import store_read_result, stored_read_result

MIN_POINTS = 10
"""Least rows of a map."""
ANNOTATION = "annotation"
"""Column of a child map: what its cells are called in its parent."""
MATCHED = (
    "{} stands in another order since: its rows were matched by their names, and have "
    "the same numbers."
)


class MapTree:
    """All maps of a session; ``changed`` tells that one came, went or was opened.

    ``session``: shows the map that is open.
    """

    changed = Signal()

    def __init__(self, session: Session) -> None:
        self._session = session
        self._maps: dict[str, SavedMap] = {}
        """By their keys, parents first; the open one as it was stored last."""
        self.current = ""
        """Key of the map that is open."""
        self.is_moving = False
        """Whether another map of the tree is being opened, not other data."""
        self.view: Callable[[], Mapping[str, Any]] = dict
        """Returns the window's state of the open map, such as its layers."""
        session.dataset_changed.connect(self._on_dataset, max_args=0)
        self._on_dataset()

    # What there is

    @property
    def maps(self) -> list[SavedMap]:
        """All maps, parents before their children; the open one as it was stored last.

        Its key, title, parent and rows are those of now.
        """
        return list(self._maps.values())

    @property
    def path(self) -> list[SavedMap]:
        """The way from the first map to the one that is open."""
        path, node = list[SavedMap](), self._maps.get(self.current)
        while node is not None:
            path.append(node)
            node = None if node.parent is None else self._maps[node.parent]
        return path[::-1]

    @property
    def parts(self) -> list[SavedMap]:
        """The maps below the open one."""
        return [self._maps[key] for key in self._children(self.current)]

    # How they were read

    @property
    def read(self) -> ReadResult | None:
        """How the data of the open map were read, or of the one it is part of.

        None where they were not read from a source, or how is not known.
        """
        datasets = [one.dataset for one in self.path]
        if self._session.dataset is not None:
            datasets.append(self._session.dataset)
        return next(filter(None, map(stored_read_result, datasets[::-1])), None)

    def set_read_result(self, read: ReadResult) -> None:
        """Note how the data on show were read; all maps are of its source now."""
        former = self.read
        assert self._session.dataset is not None
        if former is not None and read.options.columns is not None:
            read = replace(read, columns=former.columns)  # of which these were chosen
        for one in self._maps.values():
            earlier = stored_read_result(one.dataset)
            if earlier is not None:
                is_same = one.dataset.provenance is self._session.dataset.provenance
                options = read.options if is_same else earlier.options
                earlier = replace(earlier, source=read.source, options=options)
                store_read_result(one.dataset, earlier)
            elif one.parent is None:
                options = one.dataset.read_options or DEFAULT_OPTIONS
                store_read_result(one.dataset, replace(read, options=options))
        store_read_result(self._session.dataset, read)

    # Going from map to map

    def embed(self, points: NDArray[Any], title: str) -> None:
        """Open a child map of some points of the open map.

        ``points`` (n,) bool or (m,) int: rows of the open map. ``title``: what a
        person calls them, such as the cluster's name.

        Raises DataError: too few points, or the rows of the data are not there.
        """
        parent = self._session.data()
        mask = np.zeros(len(parent.obs), bool)
        mask[points] = True
        if (n := np.count_nonzero(mask)) < MIN_POINTS:
            raise DataError(
                f"{n} points are too few for a map of their own: select {MIN_POINTS} "
                "or more."
            )
        child = self._with_names_of_cells(parent.subset(mask))
        self._begin("part", title, self.current, lambda: self._session.load(child))

    def place(self, cells: PlacedCells) -> None:
        """Open a map of the cells on show where they were placed.

        It hangs on the map of these cells, which stays as it is.

        ``cells``: of the data on show.

        Raises DataError: other data have been opened meanwhile.
        """
        session, saved = self._session, cells.saved
        if not session.shows_dataset(saved.dataset):
            raise DataError(
                "Other cells are on show than those that were placed: press Place "
                "on its map again."
            )
        column = session.add_columns(with_predicted_labels, cells.predicted) + OR_UNLIKE
        for name, axis in cells.published.items():
            session.add_columns(Dataset.with_map_column, name, axis)
        n_components = saved.settings.n_components
        settings = replace(session.settings.value, n_components=n_components)
        look = replace(session.look, color_by=column, limits=None, split_by="")
        dataset = session.data()
        dataset = dataset.subset(np.ones(len(dataset.obs), bool))
        saved = replace(saved, dataset=dataset, settings=settings, look=look)
        current = self._maps[self.current]
        parent = current.parent if current.kind == "placed" else current.key
        assert parent is not None
        self._begin("placed", saved.title, parent, lambda: session.restore(saved))

    def _has_other_rows(self, dataset: Dataset) -> bool:
        """Return whether these are other rows as a person has asked for other ones.

        Such as the columns of a table, another array of a file, or labels that were
        edited.
        """
        current = self._session.dataset
        if current is None:
            return True
        options = (current.read_options, dataset.read_options)
        if len({one is not None and one.transposed for one in options}) > 1:
            return True
        known, found = map(Identity.from_dataset, (current, dataset))
        if _are_measured(current) != _are_measured(dataset):
            return True
        if _are_measured(current, dataset):
            is_same = known.names.equals(found.names)
            return not is_same or _are_renumbered(current, dataset)
        return len(known.names) != len(found.names) and known.shares_numbers(found)

    def reload(self, dataset: Dataset) -> bool:
        """Open the same source, read in another way, and return whether it is the same.

        A map of a part has its rows only.  The map that was open stays if it was
        played; its annotation is carried over.  A map of the same rows and numbers is
        opened again.  All maps get the objects of their rows; those of the same numbers
        also new columns.  Rows that stand in another order are matched, and the
        session's message says so.  Other rows that were asked for change nothing.

        Raises DataError: the source has changed since it was read.
        """
        if self._has_other_rows(dataset):
            return False
        current = self._session.dataset
        assert current is not None
        # Measured objects are known by label and place: an edit changes their numbers.
        if _are_measured(current, dataset):
            self._open_reading(dataset)
            return True
        order = align_rows(
            Identity.from_dataset(current), Identity.from_dataset(dataset), dataset.name
        )
        if is_unchanged_order(order):
            self._open_reading(dataset)
        else:
            self._open_reading(dataset.reorder_source_rows(order))
            self._session.show_message(MATCHED.format(dataset.name))
        return True

    def _open_reading(self, dataset: Dataset) -> None:
        """Open rows that stand in the order of the maps, read in another way."""
        current = self._session.dataset
        assert current is not None
        base = self.current
        if (one := self._maps[base]).kind == "reading" and one.parent is not None:
            base = one.parent
        whole = current if base == self.current else self._maps[base].dataset
        for key, one in self._maps.items():
            self._maps[key] = replace(one, dataset=renewed(one.dataset, dataset))
        self._session.dataset = current = renewed(current, dataset)
        if self._maps[base].parent is not None:  # a map of a part
            dataset = dataset.subset(whole.kept[dataset.kept])
        if has_same_rows(current, dataset):
            self._session.columns_changed.emit()
            return
        readings = [x for x in self._children(base) if self._maps[x].kind == "reading"]
        for key in (base, *readings):
            is_other = key != self.current
            if is_other and has_same_rows(self._maps[key].dataset, dataset):
                self.open(key)
                return
        self._reread(base, current, dataset)

    def _reread(self, base: str, current: Dataset, dataset: Dataset) -> None:
        self._store()
        indices, base_map = rows_in(current, dataset), self._maps[base]
        old = self._session.clusters.state
        state = old.to_other_rows(indices, len(dataset.obs))
        # The annotation of rows that are not on show is there.
        rows_there = rows_in(dataset, base_map.dataset)
        returned = np.flatnonzero((rows_there >= 0) & (rows_in(dataset, current) < 0))
        added = base_map.clusters.annotation.take_rows(rows_there[returned])
        added = state.annotation.with_annotation_from(
            returned, added, state.iter_free_ids()
        )
        state = replace(
            state,
            cluster=renumber_away_from_groups(state.cluster, added),
            annotation=added,
        )
        keeps_all = (old.annotation.codes[indices < 0] == NONE).all()
        if self.current == base and base_map.parent is not None:
            keeps_all = (indices >= 0).all()  # which rows a part has, no file knows

        def move() -> None:
            self._session.load(dataset)
            self._session.clusters.restore(state)

        title = f"{base_map.title.partition(' · ')[0]} · {dataset.space}"
        key = self.current
        if self._session.snapshot is None and keeps_all and not self._children(key):
            # Nothing was played here: nothing is lost.
            self._open(key, move)
            self._add_map(key, title, self._maps[key].parent, self._maps[key].kind)
        else:
            self._begin("reading", title, base, move)

    def carried(self, dataset: Dataset) -> ClusterState | None:
        """Return the annotation of measured objects that still exist.

        ``dataset``: the same labels, edited. None where they have no unique names.
        """
        current, objects = self._session.dataset, dataset.objects
        if current is None or not _are_measured(current, dataset) or objects is None:
            return None
        self._store()
        first = self.path[0]
        old_objects, names = first.dataset.objects, dataset.obs.index
        if old_objects is None or not names.is_unique:
            return None
        named = names.get_indexer(first.dataset.obs.index)
        indices = old_objects.match_to(objects, named)
        return first.clusters.to_other_rows(indices, len(dataset.obs))

    def open(self, key: str) -> None:
        """Open another map of the tree; a run on the open one is stopped."""
        if key == self.current:
            return
        if key not in self._maps:
            raise DataError("This map is gone: choose one from the list.")
        self._store_marked()
        saved = self._maps[key]
        self._open(key, lambda: self._session.restore(saved))
        self.changed.emit()

    # To and from a file

    def capture(self) -> SavedSession | None:
        """Return all maps as they are now, for any thread; None without data."""
        if self._session.dataset is None:
            return None
        self._store()
        return SavedSession(maps=tuple(self.maps), current=self.current)

    def restore(self, saved: SavedSession) -> None:
        """Take up all maps of a session file, and open the one that was shown.

        Where this fails, the maps stay as they were.
        """
        old_maps, self._maps = self._maps, {one.key: one for one in saved.maps}
        current = saved[saved.current]
        try:
            self._open(current.key, lambda: self._session.restore(current))
        except Exception:
            self._maps = old_maps
            raise
        self.changed.emit()

    def _begin(
        self, kind: MapKind, title: str, parent: str, move: Callable[[], None]
    ) -> None:
        """Leave the open map for a new one below another."""
        self._store_marked()
        key = next(x for n in count(1) if (x := f"{kind}{n}") not in self._maps)
        self._open(key, move)
        self._add_map(key, title, parent, kind)

    def _with_names_of_cells(self, child: Dataset) -> Dataset:
        """Return a dataset with the names of the cells of the open map as a column."""
        parent, clusters = self._session.dataset, self._session.clusters
        annotation = clusters.state.annotation
        assert parent is not None
        rows, names = rows_in(child, parent), pd.Series(None, child.obs.index, object)
        # The file may have a column of that name: then the one made here has a number.
        for one in child.added_of_kind("map"):
            if one.startswith(ANNOTATION):
                names = child.obs[one].astype(object)
        for code, group in annotation.groups.items():
            names[annotation.codes[rows] == code] = group.name
        if not names.notna().any():
            return child
        return child.with_map_column(ANNOTATION, pd.Categorical(names))[0]

    def _add_map(self, key: str, title: str, parent: str | None, kind: MapKind) -> None:
        """Store the open map below another."""
        saved = self._session.capture(key, title)
        assert saved is not None
        overlaid = None if parent is None else self._maps[parent].clusters.annotation
        self._maps[key] = replace(saved, parent=parent, kind=kind, overlaid=overlaid)
        self.changed.emit()

    def _on_dataset(self) -> None:
        """Begin a new tree when a person has loaded something."""
        if not self.is_moving:
            first = self._session.capture()
            self._maps = {} if first is None else {"": first}
            self.current = ""
            self.changed.emit()

    def _open(self, key: str, move: Callable[[], None]) -> None:
        previous, self.current, self.is_moving = self.current, key, True
        try:
            move()
        except Exception:
            self.current = previous
            raise
        finally:
            self.is_moving = False

    def _store_marked(self) -> None:
        """Store the open map, with its layout in the timeline."""
        self._session.mark_present("Left here")
        self._store()

    def _store(self) -> None:
        """Store the open map, and what its clusters mean to its parents."""
        one = self._maps[self.current]
        saved = self._session.capture(one.key, one.title, self.view() or one.view)
        assert saved is not None
        same = ("parent", "kind", "overlaid")
        place: dict[str, Any] = {part: getattr(one, part) for part in same}
        self._maps[one.key] = replace(saved, **place)
        while one.parent is not None:
            one = self._annotate_parent(self._maps[one.key], one)

    def _annotate_parent(self, child: SavedMap, stored: SavedMap) -> SavedMap:
        """Annotate the cells of the parent by what was changed in a child.

        A cell whose annotation was removed gets back the one it had above before.

        ``stored``: the child as it was before. Returns the parent as it was before.
        """
        assert child.parent is not None
        parent = self._maps[child.parent]
        state, new = parent.clusters, child.clusters.annotation
        old = stored.clusters.annotation
        rows = rows_in(child.dataset, parent.dataset)
        is_changed = new.differs_from(old) & (rows >= 0)
        released, annotation = rows[is_changed & (new.codes == NONE)], state.annotation
        new_ids = state.iter_free_ids()
        if child.overlaid is not None:
            before = child.overlaid.take_rows(released)
            by_name = {group.name: group for group in annotation.groups.values()}
            # The same group may have another name now, and another one its id.
            by_key = {group.key: group for group in annotation.groups.values()}
            items = before.groups.items()
            groups = {i: by_key.get(x.key) or by_name.get(x.name, x) for i, x in items}
            before = replace(before, groups=groups)
            annotation = annotation.with_annotation_from(released, before, new_ids)
        is_changed &= new.codes != NONE
        annotation = annotation.with_annotation_from(
            rows[is_changed], new.take_rows(is_changed), new_ids
        )
        state = state.with_annotation(
            f"names from {child.title}", annotation, joins=True
        )
        self._maps[parent.key] = replace(parent, clusters=state)
        return parent

    def _children(self, key: str) -> list[str]:
        return [one.key for one in self._maps.values() if one.parent == key]


def _are_measured(*datasets: Dataset) -> bool:
    return all("measured" in one.provenance for one in datasets)


def _are_renumbered(one: Dataset, other: Dataset) -> bool:
    """Return whether measured objects of the same labels lie elsewhere."""
    ours, theirs = one.source_objects, other.source_objects
    if ours is None or theirs is None or not _are_measured(one, other):
        return False
    return not bool(ours.overlaps_counterpart(theirs).all())


def has_same_rows(one: Dataset, other: Dataset) -> bool:
    """Return whether two datasets of a source have the same rows and numbers."""
    if one.space != other.space or not np.array_equal(one.kept, other.kept):
        return False
    X, Y = one.X, other.X
    if X is Y or X.shape != Y.shape or type(X) is not type(Y):
        return X is Y
    parts = [(X, Y)]
    if not isinstance(X, np.ndarray):
        parts = [(X.data, Y.data), (X.indices, Y.indices), (X.indptr, Y.indptr)]
    return all(np.array_equal(a, b) for a, b in parts)


def renewed(old: Dataset, read: Dataset) -> Dataset:
    """Return the rows of a dataset from a new reading of all rows of its source.

    If their numbers have changed there, only their objects are taken from it.
    """
    if old.space == read.space and read.kept[old.kept].all():
        is_all = np.array_equal(old.kept, read.kept)
        part = read if is_all else read.subset(old.kept[read.kept])
        if has_same_rows(old, part):
            result, how = part.with_added_columns_of(old), stored_read_result(old)
            if how is not None:
                store_read_result(result, how)
            return result
    result = replace(old, source_objects=read.source_objects)
    result.known.update(old.known)
    return result


def rows_in(one: Dataset, other: Dataset) -> NDArray[np.intp]:
    """Return the row of another dataset of the same source for each row, or -1."""
    indices = np.full(other.n_source_rows, -1)
    indices[other.kept] = np.arange(len(other.obs))
    rows: NDArray[np.intp] = indices[one.kept]
    return rows
