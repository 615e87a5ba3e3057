"""The tree of maps: child maps of selected points, and other spaces.

The maps of a session are a tree.  One map is open and is held by the :class:`Session`;
all others are stored as :class:`SavedMap`.  Each map has a column of what was said on
it, over all rows of the source: a parent shows the names that were given in its child
maps, see :func:`~.saved_map.compose_names`.  A child map has the annotation of its
parent as a column of its metadata.

Data read in another way (another space, other columns, counts prepared again) become a
child of the open map with the same rows, of kind "reading".  So do the same rows placed
on the map of a reference, of kind "placed".
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

from napari_embedding_game.data.dataset import ANNOTATION, AddedColumns, Dataset
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.identity import Identity, align_rows, is_unchanged_order
from napari_embedding_game.data.prediction import OR_UNLIKE, with_predicted_labels
from napari_embedding_game.data.read_options import DEFAULT_OPTIONS
from napari_embedding_game.data.read_result import ReadResult
from napari_embedding_game.session.clusters.state import ClusterState
from napari_embedding_game.session.file.saved_map import (
    MapKind,
    SavedMap,
    SavedSession,
    compose_names,
)
from napari_embedding_game.session.reference.labels import PlacedCells
from napari_embedding_game.session.session import Session
from napari_embedding_game.session.sources import store_read_result, stored_read_result

MIN_POINTS = 10
"""Fewest rows of a child map."""
MATCHED = (
    "{} stands in another order since: its rows were matched by their names, and have "
    "the same numbers."
)


class MapTree:
    """The tree of a session's maps; ``changed``: a map was added, removed or opened.

    ``session``: holds the open map.
    """

    changed = Signal()

    def __init__(self, session: Session) -> None:
        self._session = session
        self._maps: dict[str, SavedMap] = {}
        """The maps by key, parents first; the open map as it was stored last."""
        self.current = ""
        """Key of the open map."""
        self.is_switching = False
        """Whether a map of the tree is being opened, as opposed to other data."""
        self.view: Callable[[], Mapping[str, Any]] = dict
        """Returns the window's state of the open map, such as its layers."""
        session.dataset_changed.connect(self._on_dataset_changed, max_args=0)
        self._on_dataset_changed()

    # What there is

    @property
    def maps(self) -> list[SavedMap]:
        """All maps, parents before their children.

        The open map is as it was stored last; its key, title, parent and rows are up to
        date.
        """
        return list(self._maps.values())

    @property
    def path(self) -> list[SavedMap]:
        """The maps from the root of the tree to the open map; [] without data."""
        path, node = list[SavedMap](), self._maps.get(self.current)
        while node is not None:
            path.append(node)
            node = None if node.parent is None else self._maps[node.parent]
        return path[::-1]

    @property
    def child_maps(self) -> list[SavedMap]:
        """The children of the open map."""
        return [self._maps[key] for key in self._list_child_keys(self.current)]

    # How they were read

    @property
    def read_result(self) -> ReadResult | None:
        """How the data of the open map, or of its nearest known ancestor, were read.

        None where the data were not read from a source, or where this is not known.
        """
        datasets = [one.dataset for one in self.path]
        if self._session.dataset is not None:
            datasets.append(self._session.dataset)
        return next(filter(None, map(stored_read_result, datasets[::-1])), None)

    def set_read_result(self, read: ReadResult) -> None:
        """Store how the data on show were read, and give all maps its source.

        Maps of the same reading as the data on show get its options, too; other maps
        keep their own.  A root map of which no reading is known gets this one with its
        own options. Where only some columns were chosen, the columns of the former
        reading stay on offer.
        """
        former = self.read_result
        assert self._session.dataset is not None
        if former is not None and read.options.columns is not None:
            read = replace(read, columns=former.columns)  # of which these were chosen
        for one in self._maps.values():
            earlier = stored_read_result(one.dataset)
            if earlier is not None:
                is_same = one.dataset.is_of_same_reading(self._session.dataset)
                options = read.options if is_same else earlier.options
                earlier = replace(earlier, source=read.source, options=options)
                store_read_result(one.dataset, earlier)
            elif one.parent is None:
                options = one.dataset.read_options or DEFAULT_OPTIONS
                store_read_result(one.dataset, replace(read, options=options))
        store_read_result(self._session.dataset, read)

    # Going from map to map

    def open_child_map(self, points: NDArray[Any], title: str) -> None:
        """Add and open a child map of some points of the open map.

        The open map is marked and stored first; its annotation becomes a column of the
        child.

        ``points`` (n,) bool or (m,) int: rows of the open map. ``title``: of the child
        map, such as the cluster's name.

        Raises DataError: the points are fewer than ``MIN_POINTS``, or the data have no
        rows.
        """
        parent = self._session.require_data()
        mask = np.zeros(len(parent.obs), bool)
        mask[points] = True
        if (n := np.count_nonzero(mask)) < MIN_POINTS:
            raise DataError(
                f"{n} points are too few for a map of their own: select {MIN_POINTS} "
                "or more."
            )
        child = self._with_annotation_column(parent.subset(mask), mask)
        self._open_new_map(
            "part", title, self.current, lambda: self._session.load(child)
        )

    def open_placed_map(self, cells: PlacedCells) -> None:
        """Add and open a map of the cells on show, placed on the map of a reference.

        The cells' own map, which is on show, gets columns: the predicted labels, and
        the positions on a map published by another program, if the reference has one.
        The new map is its child and is coloured by the predicted label.  If a placed
        map is open, that map gets the columns, and the new map is put next to it, under
        the same parent.

        ``cells``: placed cells of the dataset on show.

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
        dataset = session.require_data()
        dataset = dataset.subset(np.ones(len(dataset.obs), bool))
        saved = replace(saved, dataset=dataset, settings=settings, look=look)
        current = self._maps[self.current]
        parent = current.parent if current.kind == "placed" else current.key
        assert parent is not None
        self._open_new_map(
            "placed", saved.title, parent, lambda: session.restore(saved)
        )

    def _has_different_rows(self, dataset: Dataset) -> bool:
        """Return whether a new reading is meant to have other rows than those on show.

        True in any of these cases:

        - there are no data on show
        - only one of both is transposed, or only one is of measured objects
        - both are of measured objects, and names or places differ
        - the number of other rows differs, but some hashes are shared, as of another
          array of a file
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
            return not is_same or _have_objects_moved(current, dataset)
        return len(known.names) != len(found.names) and known.shares_row_hashes(found)

    def open_new_reading(self, dataset: Dataset) -> bool:
        """Show a new reading of the same source; return False if its rows are others.

        A child map shows only its own rows of the reading.  If the open map was played,
        it stays, and the reading is opened as a child with the annotation copied; a map
        of the same rows and values is opened instead where there is one.  All maps get
        the objects of their rows, and maps of the same values also new columns.  Rows
        in another order are matched by name, and the session's message says so.

        Raises DataError: the source has changed since it was read.
        """
        if self._has_different_rows(dataset):
            return False
        current = self._session.dataset
        assert current is not None
        # Measured objects are known by label and place: an edit changes their numbers.
        if _are_measured(current, dataset):
            self._update_maps_and_open_reading(dataset)
            return True
        order = align_rows(
            Identity.from_dataset(current), Identity.from_dataset(dataset), dataset.name
        )
        if is_unchanged_order(order):
            self._update_maps_and_open_reading(dataset)
        else:
            self._update_maps_and_open_reading(dataset.reorder_source_rows(order))
            self._session.show_message(MATCHED.format(dataset.name))
        return True

    def _update_maps_and_open_reading(self, dataset: Dataset) -> None:
        """Open a new reading whose rows are in the order of the maps.

        The base map is the open map, or its parent if the open map is itself a reading.
        If the base map is a child map, only its rows of the reading are used.  All maps
        are updated from the reading.  Then the first of these that fits:

        - the data on show have the same rows and values: only ``columns_changed`` is
          emitted
        - the base map or another of its readings has the same rows and values: that map
          is opened
        - else the reading is opened as a map, see :meth:`_replace_or_add_reading`
        """
        current = self._session.dataset
        assert current is not None
        base = self.current
        if (one := self._maps[base]).kind == "reading" and one.parent is not None:
            base = one.parent
        whole = current if base == self.current else self._maps[base].dataset
        for key, one in self._maps.items():
            self._maps[key] = replace(
                one, dataset=update_from_reading(one.dataset, dataset)
            )
        self._session.dataset = current = update_from_reading(current, dataset)
        if self._maps[base].parent is not None:  # a map of a part
            dataset = dataset.subset(whole.kept[dataset.kept]).with_own_matrices()
        if has_same_rows_and_values(current, dataset):
            self._session.columns_changed.emit()
            return
        readings = [
            x for x in self._list_child_keys(base) if self._maps[x].kind == "reading"
        ]
        for key in (base, *readings):
            is_other = key != self.current
            if is_other and has_same_rows_and_values(self._maps[key].dataset, dataset):
                self.open(key)
                return
        self._replace_or_add_reading(base, current, dataset)

    def _replace_or_add_reading(
        self, base: str, current: Dataset, dataset: Dataset
    ) -> None:
        """Open a reading with other rows or numbers.

        The reading replaces the open map if nothing was played on it, it has no
        children and no row of a child map would be lost; else it is added as a child of
        ``base``, whose names it shows.

        ``base``: key of the map of which it is a reading. ``current``: the dataset on
        show. ``dataset``: the reading.
        """
        self._store_open_map()
        key, base_map = self.current, self._maps[base]
        # No file stores which rows a child map has.
        is_part = key == base and base_map.parent is not None
        keeps_all = not is_part or bool(dataset.kept[current.kept].all())
        replaces = (
            self._session.snapshot is None
            and keeps_all
            and not self._list_child_keys(key)
        )
        state = self._session.clusters.state
        if replaces:
            state = state.with_kept_rows(dataset.kept)
        else:
            state = state.to_reading(dataset.kept, base_map.clusters.names)

        def load_map() -> None:
            """Load the reading, and its clusters as they were on the former map."""
            self._session.load(dataset)
            self._session.clusters.restore(state)

        title = f"{base_map.title.partition(' · ')[0]} · {dataset.space}"
        if replaces:
            self._switch_map(key, load_map)
            self._add_map(key, title, self._maps[key].parent, self._maps[key].kind)
        else:
            self._open_new_map("reading", title, base, load_map)

    def transfer_clusters(self, dataset: Dataset) -> ClusterState | None:
        """Return the clusters of the root map, for measured objects of edited labels.

        The open map is stored first, so that its annotation is included.

        ``dataset``: the objects of the edited labels. Returns None where the data are
        not measured objects of the same image, or have no unique names.
        """
        current, objects = self._session.dataset, dataset.objects
        if current is None or not _are_measured(current, dataset) or objects is None:
            return None
        self._store_open_map()
        first = self.path[0]
        old_objects, names = first.dataset.objects, dataset.obs.index
        if old_objects is None or not names.is_unique:
            return None
        named = names.get_indexer(first.dataset.obs.index)
        indices = old_objects.match_to(objects, named)
        return first.clusters.to_other_source(indices, dataset.kept)

    def open(self, key: str) -> None:
        """Open another map of the tree; the run on the open map is stopped.

        The open map is marked and stored first.  Nothing happens if the map is open
        already.

        Raises DataError: there is no map of this key.
        """
        if key == self.current:
            return
        if key not in self._maps:
            raise DataError("This map is gone: choose one from the list.")
        self._mark_and_store()
        saved = self._maps[key]
        self._switch_map(key, lambda: self._session.restore(saved))
        self.changed.emit()

    # To and from a file

    def to_saved_session(self) -> SavedSession | None:
        """Store the open map, and return all maps as immutable values for any thread.

        None without data.
        """
        if self._session.dataset is None:
            return None
        self._store_open_map()
        return SavedSession(maps=tuple(self.maps), current=self.current)

    def restore(self, saved: SavedSession) -> None:
        """Replace all maps by those of a session file, and open the map it showed.

        Where this raises, the maps stay as they were; else ``changed`` is emitted.
        """
        old_maps, self._maps = self._maps, {one.key: one for one in saved.maps}
        current = saved[saved.current]
        try:
            self._switch_map(current.key, lambda: self._session.restore(current))
        except Exception:
            self._maps = old_maps
            raise
        self.changed.emit()

    def _open_new_map(
        self, kind: MapKind, title: str, parent: str, load_map: Callable[[], None]
    ) -> None:
        """Mark and store the open map, then load a new map and add it below a parent.

        ``load_map``: loads the new map into the session. The key is made of ``kind``
        and the first free number.
        """
        self._mark_and_store()
        key = next(x for n in count(1) if (x := f"{kind}{n}") not in self._maps)
        self._switch_map(key, load_map)
        self._add_map(key, title, parent, kind)

    def _with_annotation_column(
        self, child: Dataset, row_mask: NDArray[np.bool_]
    ) -> Dataset:
        """Return a child dataset with the open map's annotation as a column.

        A row without annotation keeps the name that the open map's own column of the
        parent's annotation has for it.  Where no row has a name, the dataset is
        returned as it is.

        ``row_mask``: (n,) True where a row of the open map is a row of the child.
        """
        annotation = self._session.clusters.state.annotation
        codes, names = (
            annotation.codes[row_mask],
            pd.Series(None, child.obs.index, object),
        )
        # The file may have a column of that name: then the one made here has a number.
        for one in child.added_of_kind("parent"):
            names = child.obs[one].astype(object)
        for code, group in annotation.groups.items():
            names[codes == code] = group.name
        if not names.notna().any():
            return child
        record, columns = AddedColumns(kind="parent"), {"": pd.Categorical(names)}
        return child.with_columns(ANNOTATION, columns, record)[0]

    def _add_map(self, key: str, title: str, parent: str | None, kind: MapKind) -> None:
        """Store the session's state as the map ``key`` below a parent.

        Emits ``changed``. ``parent``: None for a root.
        """
        saved = self._session.to_saved_map(key, title)
        assert saved is not None
        self._maps[key] = replace(saved, parent=parent, kind=kind)
        self._compose_names()
        self.changed.emit()

    def _on_dataset_changed(self) -> None:
        """Begin a new tree, unless the dataset was loaded to open a map of the tree.

        The tree is empty where there are no data.
        """
        if not self.is_switching:
            first = self._session.to_saved_map()
            self._maps = {} if first is None else {"": first}
            self.current = ""
            self.changed.emit()

    def _switch_map(self, key: str, load_map: Callable[[], None]) -> None:
        """Load a map as the open map; if that raises, the former map stays open."""
        previous, self.current, self.is_switching = self.current, key, True
        try:
            load_map()
        except Exception:
            self.current = previous
            raise
        finally:
            self.is_switching = False

    def _mark_and_store(self) -> None:
        """Add a mark of the layout on show, and store the open map."""
        self._session.add_mark_if_new("Left here")
        self._store_open_map()

    def _store_open_map(self) -> None:
        """Store the open map, and show what was said on it in the other maps.

        Where the window gives no state, the state that was stored last is kept.
        """
        one = self._maps[self.current]
        saved = self._session.to_saved_map(one.key, one.title, self.view() or one.view)
        assert saved is not None
        self._maps[one.key] = replace(saved, parent=one.parent, kind=one.kind)
        self._compose_names()

    def _compose_names(self) -> None:
        """Show what was said on the open map in the other maps of its cells.

        The open map gets the number of the latest statement, and shows what it showed.
        """
        self._maps = {one.key: one for one in compose_names(self.maps)}
        self._session.clusters.state = self._maps[self.current].clusters

    def _list_child_keys(self, key: str) -> list[str]:
        return [one.key for one in self._maps.values() if one.parent == key]


def _are_measured(*datasets: Dataset) -> bool:
    return all("measured" in one.provenance for one in datasets)


def _have_objects_moved(one: Dataset, other: Dataset) -> bool:
    """Return whether measured objects with the same labels lie at other places.

    False where one of the datasets is not of measured objects.
    """
    ours, theirs = one.source_objects, other.source_objects
    if ours is None or theirs is None or not _are_measured(one, other):
        return False
    return not bool(ours.is_centered_in_counterpart(theirs).all())


def has_same_rows_and_values(one: Dataset, other: Dataset) -> bool:
    """Return whether two datasets of a source have the same rows and the same X.

    False also where the space or the type of matrix differs.
    """
    if one.space != other.space or not np.array_equal(one.kept, other.kept):
        return False
    X, Y = one.X, other.X
    if X is Y or X.shape != Y.shape or type(X) is not type(Y):
        return X is Y
    parts = [(X, Y)]
    if not isinstance(X, np.ndarray):
        parts = [(X.data, Y.data), (X.indices, Y.indices), (X.indptr, Y.indptr)]
    return all(np.array_equal(a, b) for a, b in parts)


def update_from_reading(old: Dataset, read: Dataset) -> Dataset:
    """Return a dataset with the values of a new reading, for the same rows as before.

    Columns that were added in the program stay.  If the reading lacks some of the rows,
    or X of these rows has changed, the old dataset is returned with new objects and
    positions in tissue only.
    """
    if old.space == read.space and read.kept[old.kept].all():
        is_all = np.array_equal(old.kept, read.kept)
        part = read if is_all else read.subset(old.kept[read.kept])
        if old.matrix_rows is None:
            part = part.with_own_matrices()
        if has_same_rows_and_values(old, part):
            result, how = part.with_added_columns_of(old), stored_read_result(old)
            if how is not None:
                store_read_result(result, how)
            return result
    result = replace(
        old, source_objects=read.source_objects, source_tissue=read.source_tissue
    )
    result.known.update(old.known)
    return result
