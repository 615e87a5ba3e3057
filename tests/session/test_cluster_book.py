"""Clusters of 60 points on 6 landmarks, 10 points each, merged by number."""

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.session.clusters.automatic import FIRST_ID
from napari_embedding_game.session.clusters.cluster_book import ClusterBook
from napari_embedding_game.session.clusters.clustering import (
    ClusterAnnotation,
    resolve_n_clusters,
    untouched,
)
from napari_embedding_game.session.clusters.edits import Named

N, L = 60, 6
LABELS = np.repeat(np.arange(L), N // L).astype(np.int32)


def divide(n_clusters):
    """Merge the landmarks with the highest numbers."""
    return np.minimum(np.arange(L), n_clusters - 1).astype(np.int32)


def sizes(book):
    return {cluster.name: cluster.size for cluster in book.clusters}


@pytest.fixture
def book():
    book = ClusterBook(N)
    book.receive(LABELS, L, divide)
    return book


@pytest.fixture
def three(book):
    """Clusters "1" (40 points), "2" and "3" (10 points each)."""
    book.set_n_clusters(3)
    assert sizes(book) == {"1": 40, "2": 10, "3": 10}
    return book


def named(book, name):
    return next(c.id for c in book.clusters if c.name == name)


def test_each_landmark_is_its_own_cluster_at_first(book):
    assert sizes(book) == {str(i): 10 for i in range(L)}
    np.testing.assert_array_equal(book.labels, LABELS)
    assert book.of_landmarks.tolist() == list(range(L))


def fifty(book, n_landmarks=50):
    """Let a game with many landmarks be played on 200 points."""
    labels = (np.arange(200) % n_landmarks).astype(np.int32)

    def by_number(n_clusters):
        return (np.arange(n_landmarks) % n_clusters).astype(np.int32)

    book.begin_run()
    book.receive(labels, n_landmarks, by_number)
    return labels, by_number


@pytest.mark.parametrize(
    ("n_points", "n_clusters"), [(41, 3), (313, 9), (700, 13), (2638, 20), (10**6, 20)]
)
def test_few_points_are_few_clusters(n_points, n_clusters):
    assert resolve_n_clusters(untouched(n_points), 41) == n_clusters


def test_many_landmarks_are_as_many_clusters_as_can_be_read():
    book = ClusterBook(200)
    fifty(book)
    assert book.n_clusters == len(book.clusters) == 7
    assert [c.name for c in book.clusters] == [str(i) for i in range(1, 8)]
    assert not book.history.undo_label
    book.set_n_clusters(7)  # as it is
    assert not book.history.undo_label
    few = ClusterBook(200)
    fifty(few, 40)
    assert few.n_clusters is None
    assert len(few.clusters) == 40


@pytest.mark.parametrize(("chosen", "seen"), [(7, 7), (None, 50)])
def test_a_chosen_number_of_clusters_is_kept(chosen, seen):
    book = ClusterBook(200)
    labels, by_number = fifty(book)
    book.set_n_clusters(chosen)
    fifty(book)
    assert len(book.clusters) == seen
    again = ClusterBook(200)
    again.restore(book.state(), labels, 50, by_number)
    assert (again.n_clusters, len(again.clusters)) == (chosen, seen)
    np.testing.assert_array_equal(again.labels, book.labels)
    while book.history.undo_label:
        book.undo()
    assert len(book.clusters) == 7


def outgrow(book):
    """Let a game on 200 points have seven clusters, and "7" become the largest."""
    labels, by_number = fifty(book)
    last = book.clustering.rows(named(book, "7"))[0]
    labels = labels.copy()
    labels[book.clustering.rows(named(book, "1"))[:12]] = labels[last]
    book.receive(labels, 50, by_number)
    assert largest(book) == ("7", 40)
    return labels, 50, by_number


def largest(book):
    return max(sizes(book).items(), key=lambda pair: pair[1])


def test_numbers_go_by_size_once_the_first_game_has_ended():
    book = ClusterBook(200)
    outgrow(book)
    rows = book.clustering.rows(named(book, "7"))
    book.finish()
    cluster = named(book, "1")
    np.testing.assert_array_equal(book.clustering.rows(cluster), rows)
    in_order = [(-c.size, book.clustering.rows(c.id)[0]) for c in book.clusters]
    assert in_order == sorted(in_order)
    assert not book.history.undo_label
    fifty(book)  # a second game, in which all are of a size again
    book.finish()
    assert book.clustering.by_id[cluster].name == "1"


@pytest.mark.parametrize(
    "act",
    [
        lambda book, game: book.finish(are_looked_at=True),
        lambda book, game: book.rename(named(book, "3"), "B cells"),
        lambda book, game: book.restore(book.state(), *game),
    ],
)
def test_numbers_stay_where_somebody_goes_by_them(act):
    book = ClusterBook(200)
    act(book, outgrow(book))
    book.finish()
    assert largest(book) == ("7", 40)


@pytest.mark.parametrize("has_name", [False, True])
def test_no_number_is_left_out_when_a_game_ends(has_name):
    book = ClusterBook(200)
    labels, by_number = fifty(book)
    book.finish()
    if has_name:
        book.rename(named(book, "2"), "B cells")
    before = {c.id: c.name for c in book.clusters}
    few = np.array([0, 1, 2, 3, 3, 3, 6])[labels % 7].astype(np.int32)
    book.receive(few, 50, by_number)
    book.finish(are_looked_at=True)
    after = {c.id: c.name for c in book.clusters}
    assert len(after) == 5
    fits = {"1", "2", "3", "4", "5"}
    assert {name for name in after.values() if name.isdigit()} <= fits
    assert ("B cells" in after.values()) == has_name
    kept = [c for c in after if before.get(c) in {*fits, "B cells"}]
    assert len(kept) == 4
    assert all(after[c] == before[c] for c in kept)


def test_clusters_that_change_places_step_by_step_keep_their_numbers():
    """Each step is small, so that a frame after the other would carry them round."""
    book = ClusterBook(N)
    at_rest = (np.arange(N) // 20).astype(np.int32)

    def three_parts(n_clusters):
        return np.arange(3, dtype=np.int32)

    book.receive(at_rest, 3, three_parts)
    book.set_n_clusters(3)
    book.finish()
    before = book.clustering.names.copy()
    for step in range(1, 21):
        moved = ((np.arange(N) + step) // 20 % 3).astype(np.int32)
        book.receive(moved, 3, three_parts)
    assert (book.clustering.names != before).all()  # while it plays, nothing jumps
    book.finish()
    np.testing.assert_array_equal(book.clustering.names, before)


def test_an_undecided_number_is_stored_as_such():
    book = ClusterBook(200)
    labels, by_number = fifty(book)
    book.rename(book.clusters[3].id, "B cells")
    again = ClusterBook(200)
    again.restore(book.state(), labels, 50, by_number)
    assert again.clusters == book.clusters
    fifty(again, 30)
    assert again.n_clusters is None


def test_a_slider_is_one_step_back_and_gives_the_names_back(three):
    one = named(three, "2")
    three.rename(one, "B cells")
    for k in (2, 1):
        three.set_n_clusters(k)
    assert sizes(three) == {"1": 50, "B cells": 10}
    three.set_n_clusters(3)
    assert sizes(three) == {"1": 40, "B cells": 10, "3": 10}
    three.undo()
    assert three.n_clusters == 3
    three.undo()
    assert sizes(three) == {"1": 40, "2": 10, "3": 10}
    assert three.history.redo_label == "Redo rename of 2"


def test_a_name_stays_on_its_points_through_the_game(three):
    three.rename(named(three, "2"), "B cells")
    rows = three.clustering.rows(named(three, "B cells"))
    moved = LABELS.copy()
    moved[rows[:4]] = 5
    moved[LABELS == 5] = LABELS[rows[0]]
    order = np.array([3, 4, 5, 0, 1, 2], np.int32)  # other landmarks, same places
    three.receive(order[moved], L, lambda k: divide(k)[np.argsort(order)])
    assert sizes(three) == {"1": 30, "B cells": 10, "3": 10, "4": 10}
    np.testing.assert_array_equal(three.clustering.rows(named(three, "B cells")), rows)
    three.undo()  # the name alone held them
    assert sizes(three) == {"1": 34, "3": 10, "4": 16}


def test_points_that_come_later_get_no_name(three):
    """Nor those of a cluster that was merged into the one with the name."""
    merged = three.merge([named(three, "1"), named(three, "2")])
    three.rename(merged, "B cells")
    three.receive(np.zeros(N, np.int32), L, divide)
    assert sizes(three) == {"B cells": 50, "2": 10}
    three.rename(named(three, "2"), "T cells")
    three.rename(merged, "")
    assert sizes(three) == {"1": 50, "T cells": 10}
    assert three.clustering.by_id[merged].is_by_hand  # merged, and still together


def test_a_name_that_is_taken_away_lets_its_points_go(three):
    one = named(three, "2")
    three.recolor(one, "#ff0000")
    three.rename(one, "B cells")
    three.undo()
    three.redo()
    three.undo()
    assert three.clustering.by_id[one].name == "2"
    three.rename(one, "B cells")
    assert not three.clustering.by_id[one].is_by_hand
    three.rename(one, "")
    assert three.clustering.by_id[one].color == "#ff0000"
    three.set_n_clusters(1)
    assert sizes(three) == {"1": 50, "2": 10}  # they keep their colour
    three.recolor(one, "")
    assert sizes(three) == {"1": 60}


def test_names_of_points_that_part_are_told(three):
    for name in ("1", "2", "3"):
        three.rename(named(three, name), f"type {name}")
    assert three.told_parted() == ""
    three.set_n_clusters(2)  # "1" and "3", of which most is "1"
    assert three.told_parted() == (
        "type 3 is no longer one cluster: its points keep the name until you change it."
    )
    three.set_n_clusters(1)
    assert three.told_parted() == (
        "type 2 and type 3 are no longer one cluster each: their points keep the names "
        "until you change them."
    )
    assert sizes(three) == {"type 1": 40, "type 2": 10, "type 3": 10}


def test_landmarks_that_leave_take_no_name_with_them(book):
    book.rename(4, "T cells")
    rows = book.clustering.rows(4)
    fewer = np.array([0, 0, 1, 2, 3, 4], np.int32)[LABELS]
    book.receive(fewer, L - 1)
    assert book.clustering.by_id[4].name == "T cells"
    np.testing.assert_array_equal(book.clustering.rows(4), rows)


def test_a_new_game_on_the_same_points_leaves_the_names_alone(book):
    book.rename(4, "T cells")
    rows = book.clustering.rows(4)
    book.begin_run()
    for labels in (np.zeros(N, np.int32), LABELS[::-1].copy()):
        book.receive(labels, L)
        named_rows = book.clustering.rows(named(book, "T cells"))
        np.testing.assert_array_equal(named_rows, rows)


@pytest.mark.parametrize("n_clusters", [3, None])
def test_all_stays_as_it_is_until_a_new_game_begins(book, n_clusters):
    book.set_n_clusters(n_clusters)
    book.rename(book.clusters[1].id, "T cells")
    before = sizes(book)
    book.begin_run()  # it is stopped, or fails, before its first frame
    book.rename(book.clusters[2].id, "B cells")
    assert list(sizes(book).values()) == list(before.values())
    assert {"T cells", "B cells"} <= set(sizes(book))
    book.undo()
    assert sizes(book) == before
    book.set_n_clusters(1)
    assert len(book.clusters) == 2


def test_a_new_game_without_names_counts_by_landmark_again(book):
    book.receive(LABELS, L)
    book.begin_run()
    book.receive(LABELS[::-1].copy(), L)
    np.testing.assert_array_equal(book.labels, LABELS[::-1])


def test_merge_keeps_the_given_name_and_its_points(three):
    rare = named(three, "3")
    three.rename(rare, "NK")
    three.annotate(rare, "CD56 high")
    target = three.merge([rare, named(three, "1")])
    assert sizes(three) == {"NK": 50, "2": 10}
    assert three.clustering.by_id[target].note == "CD56 high"
    assert three.clustering.by_id[target].is_by_hand
    three.set_n_clusters(6)
    assert sizes(three)["NK"] == 50
    three.undo()
    three.undo()
    assert sizes(three) == {"1": 40, "2": 10, "NK": 10}


def test_points_that_reach_a_merged_cluster_later_follow(three):
    target = three.merge([named(three, "1"), named(three, "2")])
    book_of_two = sizes(three)
    moved = LABELS.copy()
    moved[three.clustering.rows(named(three, "3"))[0]] = LABELS[-1]
    three.receive(moved, L, divide)
    assert book_of_two == {"1": 50, "3": 10}
    assert three.clustering.by_id[target].size == 51


def test_split(three):
    large = named(three, "1")
    rows = three.clustering.rows(large)
    ids = three.split(large, rows, np.repeat([7, 3, 5], [8, 20, 12]))
    assert ids[0] == large
    assert sizes(three) == {"1": 20, "2": 10, "3": 10, "4": 12, "5": 8}
    assert [three.clustering.by_id[i].name for i in ids] == ["1", "4", "5"]
    with pytest.raises(DataError, match="does not fall into parts"):
        three.split(large, rows, np.zeros(len(rows), int))
    assert three.history.undo_label == "Undo split of 1"


def test_a_drawn_cluster_holds_whatever_the_game_does(three):
    drawn = three.make_cluster(np.array([0, 11, 25, 25]), "doublets")
    assert sizes(three) == {"1": 39, "2": 9, "3": 9, "doublets": 3}
    three.set_n_clusters(1)
    three.receive(np.zeros(N, np.int32), L, divide)
    assert three.clustering.rows(drawn).tolist() == [0, 11, 25]
    three.release(drawn)
    assert sizes(three) == {"1": 60}


def test_a_mask_is_a_selection_too(three):
    mask = np.zeros(N, bool)
    mask[3:8] = True
    drawn = three.make_cluster(mask)
    assert three.clustering.by_id[drawn].size == 5
    assert three.clustering.by_id[drawn].name == "4"


@pytest.mark.parametrize(
    ("edit", "sentence"),
    [
        (lambda b: b.rename(named(b, "1"), "2"), "already a cluster called 2"),
        (lambda b: b.rename(named(b, "1"), "Unassigned"), "outside the map"),
        (lambda b: b.rename(99, "B"), "This cluster is gone"),
        (lambda b: b.recolor(named(b, "1"), "blue"), "blue is no colour"),
        (lambda b: b.merge([named(b, "1")]), "two or more"),
        (lambda b: b.make_cluster([]), "Select some points"),
        (lambda b: b.set_n_clusters(0), "choose 1 or more"),
    ],
)
def test_what_cannot_be_done_is_told_and_changes_nothing(three, edit, sentence):
    before, label = three.clustering, three.history.undo_label
    with pytest.raises(DataError, match=sentence):
        edit(three)
    assert three.clustering is before
    assert three.history.undo_label == label


def test_two_clusters_never_share_a_name(three):
    """A child map may bring a name that another cluster has."""
    three.rename(named(three, "2"), "B")
    rows = three.clustering.rows(named(three, "3"))
    child = Named(key="0", rows=rows, given=ClusterAnnotation(name="B"))
    three.adopt("child1", "the map of 3", [child])
    assert sorted(sizes(three)) == ["1", "B", "B (2)"]


def test_colour_note_and_back_to_none(three):
    one = named(three, "1")
    three.recolor(one, "#FF0080")
    three.annotate(one, " look again ")
    assert (three.clustering.by_id[one].color, three.clustering.by_id[one].note) == (
        "#ff0080",
        "look again",
    )
    three.recolor(one, "")
    three.annotate(one, "")
    assert not three.state().edits.given
    assert [three.history.undo_label, three.undo()] == ["Undo note on 1", None]
    assert three.clustering.by_id[one].note == "look again"


def test_names_of_a_child_map_come_and_go_with_it(three):
    def child(*names):
        return [
            Named(
                key=str(i),
                rows=np.arange(5 * i, 5 * i + 5),
                given=ClusterAnnotation(name=name),
            )
            for i, name in enumerate(names)
        ]

    three.adopt("child1", "the map of 1", child("CD4", "CD8"))
    cd8 = named(three, "CD8")
    assert sizes(three) == {"1": 40, "3": 10, "CD4": 5, "CD8": 5}
    three.adopt("child1", "the map of 1", child("CD4", "CD8 memory"))
    assert named(three, "CD8 memory") == cd8
    three.adopt("child1", "the map of 1", child("CD4"))
    assert sizes(three) == {"1": 40, "2": 5, "3": 10, "CD4": 5}
    assert three.history.undo_label == "Undo names from the map of 1"
    three.undo()
    assert sizes(three) == {"1": 40, "2": 10, "3": 10}


def test_state_and_restore(three):
    three.rename(named(three, "2"), "B")
    three.make_cluster(np.arange(7))
    three.set_n_clusters(2)
    other = ClusterBook()
    other.restore(three.state(), LABELS, L, divide)
    assert other.clusters == three.clusters
    np.testing.assert_array_equal(other.labels, three.labels)
    for book in (three, other):
        book.set_n_clusters(3)
    assert other.clusters == three.clusters


def test_a_stored_book_without_a_game_shows_what_was_seen(three):
    other = ClusterBook()
    other.restore(three.state(), LABELS, L)
    assert other.clusters == three.clusters
    other.rename(named(other, "1"), "T")
    assert sizes(other) == {"T": 40, "2": 10, "3": 10}


def test_ids_that_are_no_landmark_begin_far_away(three):
    assert all(c.id >= FIRST_ID for c in three.clusters)


class Editing(RuleBasedStateMachine):
    """Any edits: all the way back is untouched, all the way forth is what was."""

    @staticmethod
    def seen(book):
        return book.clusters, book.labels.tolist()

    def __init__(self):
        super().__init__()
        self.book = ClusterBook(N)
        self.book.receive(LABELS, L, divide)
        self.first = self.book.state().edits

    def some(self, place):
        return self.book.clusters[place % len(self.book.clusters)].id

    def try_to(self, edit, *arguments):
        before, label = self.seen(self.book), self.book.history.undo_label
        try:
            edit(*arguments)
        except DataError:
            assert self.seen(self.book) == before
            assert self.book.history.undo_label == label

    @rule(place=st.integers(0, 9), name=st.sampled_from(["", "A", "B", "3", "x  y"]))
    def rename(self, place, name):
        self.try_to(self.book.rename, self.some(place), name)

    @rule(place=st.integers(0, 9), color=st.sampled_from(["", "#ff0000", "red"]))
    def recolor(self, place, color):
        self.try_to(self.book.recolor, self.some(place), color)

    @rule(places=st.lists(st.integers(0, 9), max_size=4))
    def merge(self, places):
        self.try_to(self.book.merge, [self.some(place) for place in places])

    @rule(place=st.integers(0, 9), parts=st.integers(1, 4))
    def split(self, place, parts):
        rows = self.book.clustering.rows(self.some(place))
        cut = np.arange(len(rows)) % parts
        self.try_to(self.book.split, self.some(place), rows, cut)

    @rule(rows=st.lists(st.integers(0, N - 1), max_size=12))
    def draw(self, rows):
        self.try_to(self.book.make_cluster, np.array(rows, int))

    @rule(place=st.integers(0, 9))
    def release(self, place):
        self.try_to(self.book.release, self.some(place))

    @rule(n_clusters=st.none() | st.integers(0, 8))
    def slide(self, n_clusters):
        self.try_to(self.book.set_n_clusters, n_clusters)

    @rule(seed=st.integers(0, 5))
    def play(self, seed):
        rng = np.random.default_rng(seed)
        labels = LABELS.copy()
        labels[rng.choice(N, 6)] = rng.integers(0, L, 6)
        self.book.receive(labels, L, divide)

    @precondition(lambda self: self.book.history.undo_label)
    @rule()
    def undo_and_redo(self):
        before = self.book.state().edits
        self.book.undo()
        self.book.redo()
        assert self.book.state().edits == before

    @rule()
    def all_the_way_back_and_forth(self):
        book, present = self.book, self.book.state().edits
        steps = 0
        while book.history.undo_label:
            book.undo()
            steps += 1
        assert book.state().edits == self.first
        for _ in range(steps):
            book.redo()
        assert book.state().edits == present
        assert not book.history.redo_label

    @invariant()
    def every_point_is_in_one_cluster_with_a_name_of_its_own(self):
        clusters = self.book.clusters
        assert sum(c.size for c in clusters) == N
        assert {c.id for c in clusters} == set(np.unique(self.book.labels).tolist())
        assert len({c.name for c in clusters}) == len(clusters)


TestEditing = Editing.TestCase
TestEditing.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
