"""Random walks over maps and their parts: each cell is called what was said of it last.

The model knows cells by what they are, not by their positions.  It keeps the edits that
hold on each map, each with the cells that it is about, and looks through all of them
for the last one: on the map itself and, where it gives a name, on the maps below it.
On the way the data are read again (in another order, another space, other columns, with
rows left out, from a file that has changed), or the labels of measured objects are
edited, and the session is saved and opened again, as a .zip and as the .h5ad of its
map.
"""

import os
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import pytest

import worlds
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.export.writers import write_result
from napari_embedding_game.data.identity import hash_rows
from napari_embedding_game.data.label_objects import Objects
from napari_embedding_game.session.file import archive
from worlds import Desk

N, STEPS = 36, 60
FIRST = int(os.environ.get("EMBEDDING_GAME_FIRST_WALK", "140"))
WALKS = int(os.environ.get("EMBEDDING_GAME_WALKS", "10"))
"""More of each walker's for a long look: 0.2 s of a processor each."""
H5AD = 0.2
"""Share of the turns to write an .h5ad file in which it is written."""
MAY_FAIL = {
    *("make", "rename", "add", "release", "merge", "split", "recluster"),
    *("embed", "back"),
}
"""There may be no group yet, or too few points."""


@dataclass(eq=False)
class Edit:
    """What was said at a time: the group of cells (None: none).

    Names of groups go with the time at which they were given.
    """

    time: int
    groups: dict = field(default_factory=dict)
    names: dict = field(default_factory=dict)


@dataclass
class Place:
    """A map, with the edits that hold and the steps of undo and redo."""

    parent: str | None
    is_reading: bool
    cells: list
    edits: list = field(default_factory=list)
    done: list = field(default_factory=list)
    undone: list = field(default_factory=list)


def later(one, other):
    return other if one is None or (other is not None and other[0] > one[0]) else one


def name_only(said):
    return None if said is None or said[1] is None else said


class Model:
    """What each cell is called on each map, from all edits that hold."""

    def __init__(self, cells):
        self.places, self.time = {"": Place(None, False, list(cells))}, 0

    def below(self, key):
        return [k for k, one in self.places.items() if one.parent == key]

    def own(self, key, cell):
        edits = [x for x in self.places[key].edits if cell in x.groups]
        last = max(edits, key=lambda x: x.time, default=None)
        return None if last is None else (last.time, last.groups[cell])

    def said(self, key, cell, without=None):
        """The last word on a cell, on a map or on those below it."""
        last = self.own(key, cell)
        for child in self.below(key):
            if child != without:
                last = later(last, name_only(self.said(child, cell)))
        return last

    def heard(self, key):
        """The maps of which a map knows the names of groups."""
        keys, one = {key}, self.places[key]
        if one.is_reading:
            keys.add(one.parent)
            for other in self.below(one.parent):
                keys |= {other} if other == key else self.heard_below(other)
        return keys | self.heard_below(key)

    def heard_below(self, key):
        return {key}.union(*(self.heard_below(child) for child in self.below(key)))

    def shown(self, key):
        """The group and the name of each cell of a map that has one."""
        one, heard, found = self.places[key], self.heard(key), {}
        for cell in one.cells:
            last = self.said(key, cell)
            if one.is_reading:
                above = self.said(one.parent, cell, without=key)
                last = later(last, name_only(above))
            if name_only(last):
                found[cell] = last[1], self.text(heard, last[1])[1]
        return found

    def text(self, heard, group):
        """The time and the text of the name that was given to a group last."""
        edits = [edit for key in heard for edit in self.places[key].edits]
        return max(edit.names[group] for edit in edits if group in edit.names)

    def names(self, key):
        return {cell: name for cell, (_, name) in self.shown(key).items()}

    def tell(self, key, groups, names=()):
        """Add an edit of a map, as a step of undo."""
        self.time += 1
        texts = {group: (self.time, name) for group, name in dict(names).items()}
        for group in {*groups.values()} - {*texts, None}:
            texts[group] = self.text(self.heard(key), group)
        edit, one = Edit(self.time, dict(groups), texts), self.places[key]
        one.edits.append(edit)
        one.done.append(edit)
        one.undone.clear()

    def undo(self, key):
        one = self.places[key]
        if one.done:
            one.undone.append(one.done.pop())
            one.edits.remove(one.undone[-1])

    def redo(self, key):
        one = self.places[key]
        if one.undone:
            one.done.append(one.undone.pop())
            one.edits.append(one.done[-1])

    def keep_only(self, key):
        """Forget the other maps; what was said there counts as said on this map."""
        one, heard = self.places[key], self.heard(key)
        edits = [edit for other in heard - {key} for edit in self.places[other].edits]
        every = {cell for other in self.places.values() for cell in other.cells}
        said = {cell for edit in edits for cell in edit.groups}
        for cell in every | said:  # also those that are left out
            last = None
            for child in self.below(key):
                last = later(last, name_only(self.said(child, cell)))
            if one.is_reading:
                above = self.said(one.parent, cell, without=key)
                last = later(last, name_only(above))
            if last is not None:
                one.edits.append(Edit(last[0], {cell: last[1]}))
        one.edits += [Edit(edit.time, {}, edit.names) for edit in edits]
        one.parent, one.is_reading, self.places = None, False, {"": one}


class Walker:
    """A person who names, undoes, reads again, and goes from map to map at random."""

    def __init__(self, seed, folder):
        self.random, self.folder = np.random.default_rng(seed), folder
        self.X = np.random.default_rng(0).normal(size=(N, 3))
        self.left_out, self.log, self.n_names = np.zeros(N, bool), [], 0
        self.sit_down(Desk(self.read()))
        self.model = Model(self.cells)

    def sit_down(self, desk):
        self.desk, self.book, self.maps = desk, desk.book, desk.maps

    def read(self, order=None, numbers=None, space="X", columns=slice(None)):
        """Return the table as a file has it, its rows in some order."""
        order = np.arange(N) if order is None else order
        X = self.X[order] if numbers is None else numbers
        return worlds.rows(
            X[:, :2] if space == "Y" else X[:, columns],
            name="cells",
            space=space,
            obs=pd.DataFrame(index=order.astype(str)),
            kept=~np.isin(order, np.flatnonzero(self.left_out)),
            row_hashes={"X": hash_rows(X)},
        )

    @property
    def cells(self):
        """Names of the cells on show, which tell them apart in all maps."""
        return self.desk.session.dataset.obs.index

    @property
    def key(self):
        return self.maps.current

    def names(self):
        """The name of each cell on show that has one."""
        named = {group.name for group in self.groups()}
        of_all = zip(self.cells, self.book.clustering.names_by_point, strict=True)
        return {cell: name for cell, name in of_all if name in named}

    def new_name(self):
        self.n_names += 1
        return f"name {self.n_names}"

    def pick(self, items):
        return items[self.random.integers(len(items))]

    def groups(self):
        return [cluster for cluster in self.book.clusters if cluster.is_named]

    def group_keys(self):
        """The group of each cell on show, by its lasting key."""
        said = self.book.state.annotation
        keys = {code: group.key for code, group in said.groups.items()}
        return {c: keys.get(x) for c, x in zip(self.cells, said.codes, strict=True)}

    def tell(self, cells, before):
        """Tell the model what an edit said of these cells."""
        now, said = self.group_keys(), self.book.state.annotation
        groups = {cell: now[cell] for cell in cells if now[cell] != before[cell]}
        names = {group.key: group.name for group in said.groups.values()}
        new = {*groups.values()} - {*before.values(), None}
        self.model.tell(self.key, groups, {key: names[key] for key in new})

    # What a person does

    def make(self):
        first, last = np.sort(self.random.integers(0, len(self.cells) + 1, 2))
        before, rows = self.group_keys(), np.arange(first, last)
        self.book.make_group(rows, self.new_name())
        self.tell(self.cells[rows], before)

    def rename(self):
        group, name = self.pick(self.groups()), self.new_name()
        shown = self.model.shown(self.key)
        of = {cell: key for cell, (key, known) in shown.items() if known == group.name}
        self.book.rename(group.id, name)
        key = self.book.state.annotation.groups[group.id].key
        joined = dict.fromkeys(of, key) if len({*of.values()}) > 1 else {}
        self.model.tell(self.key, joined, {key: name})

    def add(self):
        group, before = self.pick(self.groups()), self.group_keys()
        rows = self.random.choice(len(self.cells), 3, replace=False)
        if {before[cell] for cell in self.cells[rows]} == {self.key_of(group)}:
            return  # they are in it
        self.book.add_points_to_group(group.id, rows)
        self.tell(self.cells[rows], before)

    def key_of(self, group):
        return self.book.state.annotation.groups[group.id].key

    def release(self):
        group, before = self.pick(self.groups()), self.group_keys()
        rows = self.book.clustering.rows_in_cluster(group.id)
        self.book.remove_annotation(group.id)
        self.tell(self.cells[rows], before)

    def merge(self):
        parts = self.random.permutation([one.id for one in self.groups()])[:2]
        before = self.group_keys()
        whole = self.book.merge(parts.tolist())
        self.tell(self.cells[self.book.clustering.rows_in_cluster(whole)], before)

    def split(self):
        group, before = self.pick(self.groups()), self.group_keys()
        rows = self.book.clustering.rows_in_cluster(group.id)
        parts = self.random.integers(0, 2, len(rows))
        self.book.split_into_groups(group.id, rows, parts)
        self.tell(self.cells[rows], before)

    def recluster(self):
        """Make groups of what was found among some points of any clusters."""
        before, n = self.group_keys(), len(self.cells)
        rows = self.random.choice(n, self.random.integers(1, n + 1), replace=False)
        parts = self.random.integers(0, 3, len(rows))
        self.book.split_into_groups(None, rows, parts)
        self.tell(self.cells[rows], before)

    def undo(self):
        self.book.undo()
        self.model.undo(self.key)

    def redo(self):
        self.book.redo()
        self.model.redo(self.key)

    def embed(self):
        size = self.random.integers(10, len(self.cells) + 1)
        first = self.random.integers(0, len(self.cells) - size + 1)
        parent = self.key
        self.maps.open_child_map(np.arange(first, first + size), "part")
        self.model.places[self.key] = Place(parent, False, list(self.cells))

    def back(self):
        self.maps.open(self.maps.path[-2].key)

    def open(self):
        self.maps.open(self.pick([one.key for one in self.maps.maps]))

    def reopen(self):
        before = self.names(), self.book.undo_label, self.book.redo_label
        archive.save_session(self.maps.to_saved_session(), self.folder / "work.zip")
        self.sit_down(Desk.opened(self.folder / "work.zip"))
        assert (self.names(), self.book.undo_label, self.book.redo_label) == before

    def sort(self):
        """Read the file again, whose rows stand in another order."""
        order = self.random.permutation(N)
        assert self.maps.open_new_reading(self.read(order))
        self.note_reading()

    def other_space(self):
        """Read other numbers of the same rows, without some of them."""
        self.read_otherwise(space="Y")

    def other_columns(self):
        """Read other columns of the same space, without some of the rows."""
        self.read_otherwise(columns=self.pick([[0, 1], [0, 2], [1, 2]]))

    def read_otherwise(self, **how):
        former, self.left_out = self.left_out, self.random.random(N) < 0.1
        try:
            assert self.maps.open_new_reading(self.read(**how))
        finally:
            self.left_out = former
        self.note_reading()

    def note_reading(self):
        """Tell the model which map shows what was read."""
        one = next(x for x in self.maps.maps if x.key == self.key)
        known = self.model.places.get(self.key)
        if known is None:
            self.model.places[self.key] = Place(one.parent, True, list(self.cells))
        else:
            known.cells = list(self.cells)

    def refuse(self):
        """Read a file again that has other rows, or the same with other numbers."""
        order, before = self.random.permutation(N), self.names()
        fewer = np.delete(order, self.random.integers(N, size=3))
        more, drawn = np.append(order, [N, N + 1]), self.random.integers(N, size=N)
        named_anew = np.arange(len(fewer))
        files = [
            self.read(fewer),
            self.read(named_anew, self.X[fewer]),  # the first of the names
            self.read(np.append(order, order[:1])),
            self.read(drawn),  # some rows twice, others not
            self.read(more, self.random.normal(size=(N + 2, 3))),
        ]
        if self.desk.session.dataset.row_hashes:  # else nobody knew the numbers
            files.append(self.read(numbers=self.random.normal(size=(N, 3))))
            files.append(self.read(numbers=self.X[order]))
            files.append(self.read(numbers=self.X[drawn]))
        with pytest.raises(DataError, match="has changed since it was read"):
            self.maps.open_new_reading(self.pick(files))
        assert self.names() == before

    def through_h5ad(self):
        """Write the map on show with its data, and open it; the others stay behind."""
        if self.random.random() > H5AD:
            return
        before, path = self.names(), self.folder / "map.h5ad"
        packed, _ = archive.pack_shown_map_for_h5ad(self.maps.to_saved_session(), path)
        result = worlds.layout(len(self.cells), session=packed)
        write_result(self.desk.session.dataset, result, path)
        self.model.keep_only(self.key)
        self.sit_down(Desk.opened(path))
        assert self.names() == before

    def acts(self):
        """What is done in turn at random, more often where it is listed again."""
        acts = [*(self.make,) * 3, self.rename, self.add, self.release, self.merge]
        acts += [self.split, self.recluster, *(self.undo,) * 3, self.redo, self.embed]
        return [*acts, *(self.back,) * 2, self.open, self.reopen, *self.acts_on_files()]

    def acts_on_files(self):
        acts = [self.sort, self.other_space, self.other_columns, self.refuse]
        return [*acts, self.through_h5ad]

    def step(self):
        act = self.pick(self.acts())
        self.log.append(act.__name__)
        try:
            act()
        except (DataError, ValueError, IndexError):
            self.log[-1] += " (not possible)"  # no group yet, too few points
            assert act.__name__ in MAY_FAIL

    def check(self):
        wrong = self.names(), self.model.names(self.key)
        assert wrong[0] == wrong[1], f"{self.key}: {' '.join(self.log)}"


class LabelEditor(Walker):
    """A walker through maps of measured objects, whose labels are edited."""

    def __init__(self, seed, folder):
        self.n_drawn, self.places = N, np.arange(N)
        super().__init__(seed, folder)

    def read(self):
        """Return the objects as they are measured now, in the order of their labels.

        Each object lies at a place of its own, at which no other is ever drawn.
        """
        n, corner = len(self.places), np.stack([10 * self.places, self.places * 0], 1)
        boxes = np.concatenate([corner, corner + 3], axis=1)
        labels = np.arange(1, n + 1)
        return worlds.rows(
            np.random.default_rng(len(self.log)).normal(size=(n, 3)),
            name="cells",
            obs=pd.DataFrame(index=labels.astype(str)),
            source_objects=Objects(labels, boxes, np.full(n, 9)),
            provenance={"measured": {}},
        )

    @property
    def cells(self):
        boxes = self.desk.session.dataset.objects.boxes
        return pd.Index((boxes[:, 0] // 10).astype(str))

    def measure_again(self):
        """Measure the same objects, whose numbers are others by now."""
        assert self.maps.open_new_reading(self.read())
        self.note_reading()

    def edit_labels(self):
        """Delete some objects, draw others, and number all anew."""
        left = self.random.permutation(self.places)[self.random.integers(3) :]
        drawn = self.n_drawn + np.arange(self.random.integers(1, 4))
        self.places = self.random.permutation([*left, *drawn])
        self.n_drawn += len(drawn)
        dataset = self.read()
        assert not self.maps.open_new_reading(dataset)
        names = self.maps.transfer_clusters(dataset)
        self.desk.session.load(dataset)
        self.book.restore(names)
        self.model.keep_only("")
        first = self.model.places[""]
        first.cells, first.done, first.undone = list(self.cells), [], []

    def acts_on_files(self):
        return [self.measure_again, self.edit_labels]


@pytest.mark.parametrize("walker", [Walker, LabelEditor])
@pytest.mark.parametrize("seed", range(FIRST, FIRST + WALKS, 10))
def test_each_cell_is_called_what_was_said_of_it_last(walker, seed, tmp_path):
    for number in range(seed, seed + 10):
        walk = walker(number, tmp_path)
        for _ in range(STEPS):
            walk.step()
            walk.check()
