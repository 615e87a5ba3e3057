"""What a hand does to the points of a session's map, without a window."""

import numpy as np
import pytest

from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.snapshot import NO_FORCES
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.session.file import archive
from napari_embedding_game.session.file.saved_map import SavedSession
from napari_embedding_game.session.run.replay import is_same_layout
from worlds import replay, rows, session_of

RNG = np.random.default_rng(3)
X = (RNG.normal(size=(4, 30, 6)) + 6 * RNG.normal(size=(4, 1, 6))).reshape(120, 6)
ONE = np.arange(30)


@pytest.fixture
def session():
    session = session_of(rows(X), max_iter=60, n_landmarks=20)
    yield session
    session.stop()


class Played:
    """Frames of a run, taken one by one."""

    def __init__(self, session, run):
        self.session, self.run, self.frames = session, run, run.iter_progress()

    def frame(self):
        """Play on by one frame; return whether there was one."""
        if self.run is not self.session.active_run:
            self.frames.close()
            return False
        self.session.receive_frame(self.run, next(self.frames))
        return True

    def to_the_end(self):
        """Play until there is nothing left, after something was told to the run."""
        while self.frame() and self.session.state != "finished":
            pass


def begun(session, n_frames=6):
    played = Played(session, session.begin())
    for _ in range(n_frames):
        played.frame()
    assert session.state == "running"
    return played


def radius(snapshot):
    return snapshot.embedding.std()


def test_a_cluster_is_dragged_while_the_game_runs(session):
    played = begun(session)
    cluster = session.clusters.clusters[0].id
    session.clusters.rename(cluster, "T cells")
    rows = session.clusters.clustering.rows_in_cluster(cluster)
    before = session.snapshot
    by = np.array([3.0, 1.0]) * radius(before)
    session.hand.begin_cluster_drag(cluster)
    mark = session.timeline.newest
    assert mark.label == "T cells dragged by hand"
    assert mark.snapshot.embedding is before.embedding
    for share in (0.3, 0.6, 1.0):
        session.hand.drag_by(share * by)
        played.frame()
    played.to_the_end()
    to = before.embedding[rows].mean(axis=0) + by
    arrived = session.snapshot.embedding[rows].mean(axis=0)
    assert np.linalg.norm(arrived - to) < 0.2 * np.linalg.norm(by)
    session.hand.end_drag()
    assert session.hand.forces.springs == ()
    played.frame()
    assert session.state == "running"  # what was let go is free
    played.to_the_end()
    assert [f.forces.springs == () for f in session.run_record.forced][-1]
    assert is_same_layout(
        replay(X.astype(np.float32), session.run_record), session.snapshot
    )
    session.show_mark(mark.number)
    assert session.snapshot.embedding is before.embedding


def test_held_points_stay_and_undo_forgets_the_hold(session):
    played = begun(session)
    before = session.snapshot.embedding
    assert session.hand.hold_points(ONE) is None  # the run that is played takes it up
    mark = session.timeline.newest
    assert mark.label == "30 points held"
    played.to_the_end()
    assert np.array_equal(session.snapshot.embedding[ONE], before[ONE])
    session.hand.release_points(ONE[:10])
    played.to_the_end()
    assert np.array_equal(session.snapshot.embedding[ONE[10:]], before[ONE[10:]])
    assert not np.array_equal(session.snapshot.embedding[ONE[:10]], before[ONE[:10]])
    last = session.timeline.newest
    session.show_mark(mark.number)
    assert not session.hand.forces
    session.show_mark(last.number)
    assert np.array_equal(session.hand.forces.holds[0].rows, ONE[10:])
    again = Played(session, session.continue_run())
    again.to_the_end()  # a branch goes on with what was held
    assert np.array_equal(session.snapshot.embedding[ONE[10:]], before[ONE[10:]])


def test_what_is_held_while_paused_is_held_when_one_comes_back(session, tmp_path):
    begun(session)
    session.pause()
    first = session.timeline.newest
    before = session.snapshot.embedding
    session.hand.hold_points(ONE)
    assert session.hand.describe_forces_or_refusal() == "By hand: 30 points held."
    saved = SavedSession(maps=(session.to_saved_map(),))
    archive.save_session(saved, tmp_path / "held.zip")
    session.show_mark(first.number)
    assert not session.hand.forces
    session.show_mark(session.timeline.marks[-1].number)
    (opened,) = archive.open_session(tmp_path / "held.zip")[0].maps
    other = session_of(rows(X))
    other.restore(opened)
    for one in (session, other):
        assert one.hand.describe_forces_or_refusal() == "By hand: 30 points held."
        Played(one, one.continue_run()).to_the_end()
        assert np.array_equal(one.snapshot.embedding[ONE], before[ONE])
        assert is_same_layout(
            replay(X.astype(np.float32), one.run_record), one.snapshot
        )
        one.stop()


def test_a_landmark_is_dragged_pinned_and_let_go(session):
    played = begun(session)
    hand, place = session.hand, np.array([4.0, -3.0])
    hand.begin_landmark_drag(5)
    assert session.timeline.newest.label == "Landmark dragged by hand"
    hand.drag_to(np.array([1e9, 0.0]))
    assert hand.forces.landmarks[0].place == (100_000, 0)  # well on the map
    hand.drag_to(place)
    played.frame()
    assert np.array_equal(session.snapshot.landmarks[5], place)
    hand.end_drag()
    assert not hand.forces
    hand.begin_landmark_drag(5)
    hand.drag_to(place)
    hand.end_drag(is_pinned=True)
    played.to_the_end()
    assert np.array_equal(session.snapshot.landmarks[5], place)
    assert hand.describe_forces_or_refusal() == "By hand: 1 landmark pinned."
    assert is_same_layout(
        replay(X.astype(np.float32), session.run_record), session.snapshot
    )
    newest = session.timeline.newest
    session.show_mark(newest.parent)
    session.show_mark(newest.number)
    assert hand.forces.landmarks[0].number == 5
    branch = Played(session, session.continue_run())
    branch.to_the_end()
    assert np.array_equal(session.snapshot.landmarks[5], place)
    session.settings.n_landmarks = 12  # which are others
    assert not hand.forces
    branch.to_the_end()
    assert len(session.snapshot.landmarks) == 12
    session.settings.approximation = "exact"
    with pytest.raises(InputError, match="push no points"):
        hand.begin_landmark_drag(5)


def test_what_cannot_be_steered_says_so_and_changes_nothing(session):
    hand = session.hand
    with pytest.raises(DataError, match="no map yet"):
        hand.hold_points(ONE)
    with pytest.raises(DataError, match="no map yet"):
        hand.begin_cluster_drag(0)
    played = begun(session)
    played.to_the_end()
    n_marks = len(session.timeline.marks)
    with pytest.raises(DataError, match="Choose some points"):
        hand.hold_points(np.zeros(0, int))
    with pytest.raises(DataError, match="Nothing is held"):
        hand.release_points()
    with pytest.raises(DataError, match="no points any more"):
        hand.begin_cluster_drag(-5)
    session.stop()
    with pytest.raises(DataError, match="Continue"):
        hand.begin_cluster_drag(session.clusters.clusters[0].id)
    hand.show_refusal("Nothing moves.")
    assert (hand.describe_forces_or_refusal(), session.message) == (
        "Nothing moves.",
        "Nothing moves.",
    )
    hand.drop_forces()  # another map comes
    assert hand.describe_forces_or_refusal() == ""
    session.settings.method = "ee_spectral_direction"
    with pytest.raises(InputError, match="Only a game"):
        hand.hold_points(ONE)
    assert hand.forces is NO_FORCES
    assert session.state == "stopped"
    assert len(session.timeline.marks) == n_marks
