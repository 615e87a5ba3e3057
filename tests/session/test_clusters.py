"""Clusters of 60 points on 6 landmarks, 10 points each, merged by number."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from napari_embedding_game.core.inspect.merge_tree import MergeTree
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.session.clusters.clusters import Clusters
from napari_embedding_game.session.clusters.landmark_merge import LandmarkMerge

N, L = 60, 6
LABELS = np.repeat(np.arange(L), N // L).astype(np.int32)


def chained(n_landmarks):
    """Landmarks in a line, of which those with the highest numbers merge first."""
    line = sp.diags([1.0, 1.0], [-1, 1], shape=(n_landmarks, n_landmarks))
    number = np.arange(n_landmarks)
    tree = MergeTree(number + 1, np.maximum(number - 1, 0), number[None])
    return LandmarkMerge(line.tocsr(), tree)


def sizes(clusters):
    return {cluster.name: cluster.size for cluster in clusters.clusters}


def id_of(clusters, name):
    return next(c.id for c in clusters.clusters if c.name == name)


def rows_of(clusters, name):
    return clusters.clustering.rows_in_cluster(id_of(clusters, name))


@pytest.fixture
def six():
    clusters = Clusters(N)
    clusters.update_from_game(LABELS, L, chained(L))
    return clusters


@pytest.fixture
def three(six):
    """Clusters "1" (40 points), "2" and "3" (10 points each)."""
    six.set_n_clusters(3)
    assert sizes(six) == {"1": 40, "2": 10, "3": 10}
    return six


def fifty(clusters, labels=None):
    """Let a game with 50 landmarks be played."""
    labels = np.arange(200) % 50 if labels is None else labels
    clusters.update_from_game(labels.astype(np.int32), 50, chained(50))


def test_clusters_of_a_few_points_go_to_their_neighbour_unless_a_number_is_chosen():
    clusters = Clusters(200)
    fifty(clusters)  # 7 clusters: 6 of 4 points, and the rest
    assert clusters.n_clusters == 7
    assert min(sizes(clusters).values()) >= 10
    assert sum(sizes(clusters).values()) == 200
    clusters.set_n_clusters(8)
    assert sorted(sizes(clusters).values()) == [4] * 7 + [172]
    few = Clusters(25)
    few.update_from_game(
        np.arange(25, dtype=np.int32), 25, chained(25)
    )  # a landmark a point
    assert sum(sizes(few).values()) == 25
    assert min(sizes(few).values()) >= 10


@pytest.mark.parametrize("chosen", [5, None])
def test_a_chosen_number_of_clusters_is_kept(chosen):
    clusters = Clusters(200)
    fifty(clusters)
    clusters.set_n_clusters(chosen)
    fifty(clusters)
    assert len(clusters.clusters) == (chosen or 50)
    again = Clusters(200)
    labels = np.arange(200, dtype=np.int32) % 50
    shown = SimpleNamespace(labels=labels, landmarks=range(50))
    again.restore(clusters.state, shown, chained(50))
    assert again.n_clusters == chosen
    fifty(again)
    assert again.clusters == clusters.clusters


def test_one_is_the_largest_when_the_first_game_has_ended():
    clusters = Clusters(N)
    clusters.set_n_clusters(3)

    def play(*counts):
        labels = np.repeat(np.arange(3), counts).astype(np.int32)
        clusters.update_from_game(labels, 3, chained(3))

    play(30, 20, 10)
    play(20, 10, 30)
    assert sizes(clusters) == {"1": 20, "2": 30, "3": 10}  # nothing jumps meanwhile
    clusters.finish_numbering()
    assert sizes(clusters) == {"1": 30, "2": 20, "3": 10}
    play(30, 10, 20)  # from then on they follow their cells
    clusters.finish_numbering()
    assert sizes(clusters) == {"1": 20, "2": 30, "3": 10}


@pytest.mark.parametrize("seen_by", ["finish_numbering", "fix_numbers", "undo", "redo"])
def test_numbers_follow_what_was_seen_at_rest(seen_by):
    """Each step is small, so that a frame after the other would carry them round."""
    clusters = Clusters(N)
    clusters.set_n_clusters(3)
    for name in ("T cells", "B cells"):  # of an earlier map
        clusters.annotate_by_column(
            pd.Series(np.where(np.arange(N) < 3, name, None)), {}
        )
    clusters.undo()

    def receive(step):
        labels = ((np.arange(N) + step) // 20 % 3).astype(np.int32)
        clusters.update_from_game(labels, 3, chained(3))

    receive(0)
    getattr(clusters, seen_by)()
    before = clusters.clustering.names_by_point.copy()
    for step in range(1, 21):
        receive(step)
    clusters.finish_numbering()
    np.testing.assert_array_equal(clusters.clustering.names_by_point, before)


def test_a_name_stays_on_its_points_through_game_and_slider(three):
    three.rename(id_of(three, "2"), "B cells")
    rows, before = rows_of(three, "B cells"), three.state
    same = replace(before.annotation, codes=before.annotation.codes.copy())
    assert (
        before.with_annotation("rename", same) is before
    )  # or it would have to be undone
    moved = LABELS.copy()
    moved[rows[:4]] = 5
    moved[:3] = LABELS[rows[0]]
    order = np.array([3, 4, 5, 0, 1, 2], np.int32)  # other landmarks, same places
    for labels in (moved, order[moved], np.zeros(N, np.int32)):
        three.update_from_game(labels, L, chained(L))
        np.testing.assert_array_equal(rows_of(three, "B cells"), rows)
    for n_clusters in (1, 6, None, 3):
        three.set_n_clusters(n_clusters)
        np.testing.assert_array_equal(rows_of(three, "B cells"), rows)
        assert sum(sizes(three).values()) == N
    three.undo()
    assert "B cells" not in sizes(three)
    three.redo()
    np.testing.assert_array_equal(rows_of(three, "B cells"), rows)


def test_merge_keeps_the_given_name_colour_and_note(three):
    rare = id_of(three, "3")
    three.rename(rare, "NK")
    three.recolor(rare, "#FF0080")
    three.set_note(rare, " CD56 high ")
    target = three.merge([rare, id_of(three, "1")])
    assert sizes(three) == {"NK": 50, "2": 10}
    merged = three.clustering.by_id[target]
    assert (merged.color, merged.note) == ("#ff0080", "CD56 high")
    three.set_n_clusters(6)
    assert sizes(three)["NK"] == 50
    three.undo()
    assert sizes(three)["NK"] == 10


def test_of_many_merged_clusters_two_are_named(six):
    first, second, third, *_ = six.clusters
    target = six.merge([first.id, second.id, third.id])
    assert six.clustering.by_id[target].name == "0 + 1 + 2"
    six.undo()
    target = six.merge([one.id for one in six.clusters[:4]])
    assert six.clustering.by_id[target].name == "0 + 1 + 2 more"


def test_parts_become_groups_and_the_largest_stays(three):
    large = id_of(three, "1")
    rows = three.clustering.rows_in_cluster(large)
    ids = three.split_into_groups(large, rows, np.repeat([7, 3, 5], [8, 20, 12]))
    assert ids[0] == large
    assert sizes(three) == {"1": 20, "2": 10, "3": 10, "1.2": 12, "1.3": 8}
    assert [three.clustering.by_id[i].name for i in ids] == ["1", "1.2", "1.3"]
    three.set_n_clusters(1)
    assert {"1.2": 12, "1.3": 8}.items() <= sizes(three).items()
    with pytest.raises(DataError, match="are one cluster"):
        three.split_into_groups(large, rows, np.zeros(len(rows), int))


def test_a_column_becomes_annotation(three):
    levels = np.where(np.arange(N) < 50, np.arange(N) % 2, -1)
    names = pd.Categorical.from_codes(levels, ["T", "3"])
    three.annotate_by_column(pd.Series(names, name="leiden"), {})
    assert sizes(three)["T"] == sizes(three)["3"] == 25
    assert len(set(sizes(three))) == len(three.clusters)  # a cluster 3 is called else
    assert three.undo_label == "Undo annotation by leiden"
    three.undo()
    assert sizes(three) == {"1": 40, "2": 10, "3": 10}


def test_a_column_leaves_what_was_said_and_empty_levels_annotate_nothing():
    clusters = Clusters(6)
    group = clusters.make_group(np.arange(3), "T")
    clusters.recolor(group, "#ff0000")
    clusters.set_note(group, "look again")
    levels = pd.Categorical(["T", "", " ", "B", "unassigned", "B"])
    clusters.annotate_by_column(pd.Series(levels, name="kind"), {"B": "#00ff00"})
    found = {c.name: (c.size, c.color, c.note) for c in clusters.clusters if c.is_named}
    assert found == {"T": (3, "#ff0000", "look again"), "B": (2, "#00ff00", "")}


class Editing(RuleBasedStateMachine):
    """Any edits: all the way back is untouched, all the way forth is what was."""

    def __init__(self):
        super().__init__()
        self.clusters = Clusters(N)
        self.clusters.update_from_game(LABELS, L, chained(L))

    def some(self, place):
        return self.clusters.clusters[place % len(self.clusters.clusters)].id

    def try_to(self, edit, *arguments):
        """Edit; cells that were annotated and not meant keep what was said of them."""
        before = self.clusters.state
        try:
            edit(*arguments)
        except DataError:
            assert self.clusters.state is before

    @rule(place=st.integers(0, 9), name=st.sampled_from(["", "A", "B", "3", "x  y"]))
    def rename(self, place, name):
        self.try_to(self.clusters.rename, self.some(place), name)

    @rule(places=st.lists(st.integers(0, 9), max_size=4))
    def merge(self, places):
        self.try_to(self.clusters.merge, [self.some(place) for place in places])

    @rule(place=st.integers(0, 9), parts=st.integers(1, 4))
    def split(self, place, parts):
        cluster = self.some(place)
        rows = self.clusters.clustering.rows_in_cluster(cluster)
        self.try_to(
            self.clusters.split_into_groups, cluster, rows, np.arange(len(rows)) % parts
        )

    @rule(rows=st.lists(st.integers(0, N - 1), max_size=12))
    def draw(self, rows):
        self.try_to(self.clusters.make_group, np.array(rows, int))

    @rule(place=st.integers(0, 9))
    def release(self, place):
        self.try_to(self.clusters.remove_annotation, self.some(place))

    @rule(n_clusters=st.none() | st.integers(1, 8), seed=st.integers(0, 5))
    def play(self, n_clusters, seed):
        before = self.clusters.state.annotation
        rng = np.random.default_rng(seed)
        labels = LABELS.copy()
        labels[rng.choice(N, 20)] = rng.integers(0, L, 20)
        self.clusters.update_from_game(labels, L, chained(L))
        self.clusters.set_n_clusters(n_clusters)
        assert self.clusters.state.annotation is before

    @rule()
    def all_the_way_back_and_forth(self):
        clusters = self.clusters
        present, n_steps = clusters.state.annotation, len(clusters.state.done)
        for _ in range(n_steps):
            clusters.undo()
        assert not clusters.state.annotation.groups
        for _ in range(n_steps):
            clusters.redo()
        assert clusters.state.annotation == present

    @invariant()
    def every_point_is_in_one_cluster_with_a_name_of_its_own(self):
        clusters, said = self.clusters.clusters, self.clusters.state.annotation
        assert sum(c.size for c in clusters) == N
        assert {c.id for c in clusters} == set(np.unique(self.clusters.labels).tolist())
        assert len({c.name for c in clusters}) == len(clusters)
        for code, group in said.groups.items():
            rows = np.flatnonzero(self.clusters.clustering.names_by_point == group.name)
            np.testing.assert_array_equal(rows, np.flatnonzero(said.codes == code))


TestEditing = Editing.TestCase
TestEditing.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
