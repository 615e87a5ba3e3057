"""Random walks over maps and their parts: no cell has a name that nobody gave it.

On the way the session is saved and opened again, and the data are read again, in
another order.  The model knows cells by what they are, and of each the names that were
ever given to it: by hand, or to a group that it was in at any time, in any map.
"""

import os

import numpy as np
import pandas as pd
import pytest

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.session.file import archive
from worlds import Desk, rows

N, STEPS = 36, 60
FIRST, WALKS = 140, int(os.environ.get("EMBEDDING_GAME_WALKS", "20"))
"""More of them for a long look: 0.1 s of a processor each."""


class Walker:
    """A person who names, undoes, and goes from map to map at random."""

    def __init__(self, seed, path):
        self.random, self.path = np.random.default_rng(seed), path
        self.X = np.random.default_rng(0).normal(size=(N, 3))
        self.sit_down(Desk(rows(self.X, name="cells")))
        self.given = {str(cell): set() for cell in range(N)}
        self.log, self.n_names = [], 0

    def sit_down(self, desk):
        self.desk, self.book, self.maps = desk, desk.book, desk.maps

    @property
    def cells(self):
        """Names of the cells on show, which tell them apart in all maps."""
        return self.desk.session.dataset.obs.index

    def names(self):
        return np.asarray(self.book.clustering.names_by_point)

    def new_name(self):
        self.n_names += 1
        return f"name {self.n_names}"

    def pick(self, items):
        return items[self.random.integers(len(items))]

    def give(self, rows, name):
        for cell in self.cells[rows]:
            self.given[cell].add(name)

    def groups(self):
        return [cluster for cluster in self.book.clusters if cluster.is_named]

    # What a person does

    def make(self):
        first, last = np.sort(self.random.integers(0, len(self.cells) + 1, 2))
        name = self.new_name()
        self.book.make_group(np.arange(first, last), name)
        self.give(np.arange(first, last), name)

    def rename(self):
        group, name = self.pick(self.groups()), self.new_name()
        self.book.rename(group.id, name)
        for names in self.given.values():
            if group.name in names:  # also where it comes back from below
                names.add(name)

    def add(self):
        group = self.pick(self.groups())
        rows = self.random.choice(len(self.cells), 3, replace=False)
        self.book.add_points_to_group(group.id, rows)
        self.give(rows, group.name)

    def release(self):
        self.book.remove_annotation(self.pick(self.groups()).id)

    def merge(self):
        parts = self.random.permutation([one.id for one in self.groups()])[:2]
        whole = self.book.clustering.by_id[self.book.merge(parts.tolist())]
        self.give(self.book.clustering.rows_in_cluster(whole.id), whole.name)
        for names in self.given.values():
            if whole.name in names:
                names.add(whole.name)

    def split(self):
        group = self.pick(self.groups())
        rows = self.book.clustering.rows_in_cluster(group.id)
        parts = self.random.integers(0, 2, len(rows))
        for cluster in self.book.split_into_groups(group.id, rows, parts):
            part = self.book.clustering.by_id[cluster]
            self.give(self.book.clustering.rows_in_cluster(cluster), part.name)

    def undo(self):
        self.book.undo()

    def redo(self):
        self.book.redo()

    def embed(self):
        size = self.random.integers(10, len(self.cells) + 1)
        first = self.random.integers(0, len(self.cells) - size + 1)
        self.maps.open_child_map(np.arange(first, first + size), "part")

    def back(self):
        self.maps.open(self.maps.path[-2].key)

    def open(self):
        self.maps.open(self.pick([one.key for one in self.maps.maps]))

    def named(self):
        return dict(zip(self.cells, self.names(), strict=True))

    def reopen(self):
        before = self.named(), self.book.undo_label, self.book.redo_label
        archive.save_session(self.maps.to_saved_session(), self.path)
        self.sit_down(Desk.opened(self.path))
        assert (self.named(), self.book.undo_label, self.book.redo_label) == before

    def sort(self):
        before, order = self.named(), self.random.permutation(N)
        obs = pd.DataFrame(index=order.astype(str))
        assert self.maps.open_new_reading(rows(self.X[order], name="cells", obs=obs))
        assert self.named() == before

    def step(self):
        acts = [*(self.make,) * 3, self.rename, self.add, self.release, self.merge]
        acts += [self.split, *(self.undo,) * 3, self.redo, self.embed]
        acts += [*(self.back,) * 2, self.open, self.reopen, self.sort]
        act = self.pick(acts)
        self.log.append(act.__name__)
        try:
            act()
        except (DataError, ValueError, IndexError):
            self.log[-1] += " (not possible)"  # no group yet, too few points
            assert act not in (self.reopen, self.sort)

    def check(self):
        groups = {one.name for one in self.groups()}
        for cell, name in zip(self.cells, self.names(), strict=True):
            known = self.given[cell]
            assert name not in groups or name in known, (
                f"{cell} is called {name}, and was {known}; {' '.join(self.log)}"
            )


@pytest.mark.parametrize("seed", range(FIRST, FIRST + WALKS, 10))
def test_no_cell_has_a_name_that_nobody_gave_it(seed, tmp_path):
    for number in range(seed, seed + 10):
        walker = Walker(number, tmp_path / "work.zip")
        for _ in range(STEPS):
            walker.step()
            walker.check()
