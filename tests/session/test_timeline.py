"""Marks of a map: kept, thinned out, looked back at, and gone on from."""

import gc
import weakref
from unittest.mock import Mock

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.settings import Settings, fill_affinity
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.session.run.record import Moment, make_record
from napari_embedding_game.session.run.replay import is_same_layout
from napari_embedding_game.session.run.run import UNPACED, GameRun
from napari_embedding_game.session.timeline import Timeline, count_bytes, to_warm_start
from worlds import frames_to, replay, session_of

CHOSEN = Settings()
SHORT = {"n_neighbors": 8, "init": "pca", "n_landmarks": 20, "max_iter": 60}
X = make_blobs(300, 6, centers=5, random_state=0)[0].astype(np.float32)


@pytest.fixture
def session(engine, dataset):
    return session_of(dataset, engine)


def labels(timeline):
    return [mark.label for mark in timeline.marks]


def moment(snapshot, **values):
    return Moment(settings=CHOSEN, snapshot=snapshot, **values)


def add(timeline, make_snapshot, *names, **values):
    return [
        timeline.add_mark(name, "hand", moment(make_snapshot(i, **values)))
        for i, name in enumerate(names)
    ]


# The timeline alone


def test_marks_without_a_name_are_forgotten_when_memory_runs_short(make_snapshot):
    one, three, shared = Timeline(), Timeline(), make_snapshot().neighbors
    add(one, make_snapshot, "a")
    add(three, make_snapshot, "a", "b", "c", neighbors=shared)
    room = count_bytes(three.marks)
    assert (
        2 * count_bytes(one.marks)
        < room
        <= 3 * count_bytes(one.marks) - 2 * shared.nbytes
    )
    timeline = Timeline(max_bytes=room)
    marks = add(timeline, make_snapshot, "a", "b", "c", neighbors=shared)
    timeline.rename_mark(marks[0].number, "kept")
    add(timeline, make_snapshot, "d", neighbors=shared)
    assert labels(timeline) == ["a", "c", "d"]
    assert timeline.marks[1].parent == marks[0].number


def test_many_marks_are_thinned_the_older_the_more(make_snapshot, monkeypatch):
    monkeypatch.setattr("napari_embedding_game.session.timeline.MAX_MARKS", 8)
    timeline = Timeline()
    add(timeline, make_snapshot, *map(str, range(1, 101)))
    numbers = [mark.number for mark in timeline.marks]
    assert (len(numbers), numbers[0], numbers[-2:]) == (8, 1, [99, 100])
    gaps = np.diff(numbers[1:])
    assert (gaps[:-1] >= gaps[1:]).all()
    assert timeline.state.n_thinned == 92
    for mark, before in zip(timeline.marks[1:], timeline.marks, strict=False):
        assert mark.parent == before.number


def test_what_is_on_show_is_not_deleted(make_snapshot):
    timeline = Timeline()
    a, b = add(timeline, make_snapshot, "a", "b")
    with pytest.raises(DataError, match="on show"):
        timeline.remove_mark(b.number)
    timeline.rename_mark(a.number, "  islands  apart ")
    assert timeline.marks[0].title == "islands apart"
    timeline.remove_mark(a.number)
    assert labels(timeline) == ["b"]
    for act in (timeline.show_mark, timeline.remove_mark):
        with pytest.raises(DataError, match="no longer kept"):
            act(a.number)


# The timeline of a session


def test_changes_pauses_and_ends_are_marks(session):
    now = [0.0]
    session.timeline = Timeline(clock=lambda: now[0])
    frames = frames_to(session, 10)
    session.settings.repulsion = 500.0
    session.settings.repulsion = 900.0  # on the way of a slider
    now[0] = 5.0
    frames_to(session, 20, frames)
    session.settings.n_landmarks = 100
    session.pause()
    session.resume()
    frames_to(session, 50, frames)
    changes = ["Repulsion 300 to 900", "Landmarks 200 to 100"]
    assert labels(session.timeline) == [*changes, "Paused", "Finished"]
    iterations = [mark.snapshot.iteration for mark in session.timeline.marks]
    assert iterations[:3] == [10, 20, 20]
    first, _, paused, _ = session.timeline.marks
    assert first.title == "Before: Repulsion 300 to 900"
    assert first.settings.repulsion is None
    assert paused.record.n_iter == 20


def test_looking_back_shows_all_of_that_moment_bit_for_bit(session):
    frames = frames_to(session, 10)
    session.clusters.rename(1, "T cells")
    session.settings.repulsion = 900.0
    frames_to(session, 50, frames)
    end = session.snapshot
    looked = []
    session.mark_shown.connect(looked.append)
    changed, finished = session.timeline.marks[0], session.timeline.marks[-1]
    session.show_mark(changed.number)
    assert looked == [changed]
    assert session.snapshot is changed.snapshot
    assert (session.state, session.settings.repulsion) == ("stopped", None)
    assert session.run_record.n_iter == 10
    assert len(session.clusters.labels) == len(end.embedding)
    session.settings.repulsion = 50.0  # steers nothing: that run is over
    assert session.timeline.marks[-1] is finished
    session.show_mark(finished.number)
    assert session.snapshot.embedding is end.embedding
    assert session.settings.repulsion == 900.0
    assert session.clusters.clustering.by_id[1].name == "T cells"


def test_continue_is_a_branch_and_the_former_future_stays(session, engine, monkeypatch):
    frames = frames_to(session, 10)
    session.pause()
    session.resume()
    frames_to(session, 50, frames)
    paused, finished = session.timeline.marks
    session.show_mark(paused.number)
    assert session.timeline.current is paused
    session.settings.repulsion = 700.0
    searched = AssertionError("neighbours that are known are searched")
    monkeypatch.setattr(engine, "find_neighbors", Mock(side_effect=searched))
    frames = frames_to(session, 0, session.continue_run().iter_progress())
    assert session.timeline.current is None  # a run is on show
    assert np.array_equal(session.snapshot.embedding, paused.snapshot.embedding)
    assert engine.games[-1].repulsion == 700.0
    frames_to(session, 50, frames)
    newest = session.timeline.newest
    assert newest.parent == paused.number
    assert session.timeline.find_mark(finished.number) is finished
    assert session.run_record.is_branch


def test_a_map_without_data_or_of_other_dimensions_cannot_go_on(session):
    with pytest.raises(DataError, match="no map"):
        session.continue_run()
    frames_to(session)
    session.settings.n_components = 3
    with pytest.raises(DataError, match="2 dimensions"):
        session.continue_run()
    session.settings.n_components = 2
    session.settings.choose_method("pca")
    with pytest.raises(InputError, match="always begins anew"):
        session.continue_run()


# With the real engine


def to_end(run):
    """Return all snapshots up to the end of the schedule."""
    shots = []
    for frame in run.iter_progress():
        if frame.snapshot is not None:
            shots.append(frame.snapshot)
            if frame.snapshot.finished:
                run.stop()
    return shots


@pytest.mark.parametrize("large_picture", [0.0, 0.5])
def test_a_run_keeps_no_rows_that_were_taken_for_it(large_picture):
    rows, taken = np.random.default_rng(0).random((60, 4), np.float32), []

    def take():
        X = rows.copy()
        taken.append(weakref.ref(X))
        return X

    chosen = {"n_landmarks": 6, "max_iter": 20, "n_neighbors": 5}
    settings = Settings(**chosen, affinity="mixed", large_picture=large_picture)
    run = GameRun(take, settings, pace=UNPACED)
    (*_, last) = to_end(run)
    gc.collect()
    assert [one() for one in taken] == [None] * (1 + bool(large_picture))
    (*_, alike) = to_end(GameRun(lambda: rows, settings, pace=UNPACED))
    np.testing.assert_array_equal(last.embedding, alike.embedding)


@pytest.mark.parametrize(
    ("changes", "n_components"),
    [({}, 2), ({"n_landmarks": 9}, 3), ({}, 1), ({"method": "tsne"}, 2)],
)
def test_a_run_that_goes_on_begins_where_the_map_was(changes, n_components):
    chosen = {**SHORT, "n_components": n_components, **changes}
    settings = fill_affinity(Settings(**chosen))
    end = to_end(GameRun(lambda: X, settings, pace=UNPACED))[-1]
    branch = GameRun(lambda: X, settings, pace=UNPACED, warm_start=to_warm_start(end))
    shots = to_end(branch)
    assert np.array_equal(shots[0].embedding, end.embedding)
    # Not pressed together again: at each moment about as wide as it was.
    widths = [np.ptp(shot.embedding, axis=0)[0] for shot in shots]
    assert min(widths) > 0.7 * widths[0]
    last = shots[-1]
    assert is_same_layout(replay(X, make_record(branch, last)), last)
