import json

import numpy as np
import pytest

from napari_embedding_game.session.session import error_text
from worlds import frames_to, play, session_of


@pytest.fixture
def session(engine, dataset):
    return session_of(dataset, engine)


def test_a_pause_that_comes_with_the_last_frame_holds_nothing_after(session):
    frames = frames_to(session, until=40)
    run, last = session.run, next(frames)
    session.pause()
    session.receive_frame(run, last)
    assert session.state == "finished"
    session.settings.repulsion = 999.0
    session.receive_frame(run, next(frames))
    assert (session.state, session.snapshot.iteration) == ("running", 60)


def test_game_settings_steer_and_start_settings_make_the_run_stale(session, engine):
    frames = frames_to(session, until=10)
    stale = []
    session.staleness_changed.connect(stale.append)
    session.settings.repulsion = 300.0  # the method's own, which acts already
    assert not session.timeline.marks
    session.settings.repulsion = 999.0
    next(frames)
    assert engine.games[-1].repulsion == 999.0
    session.settings.n_neighbors = 30
    session.settings.n_neighbors = 15
    assert stale == [True, False]


@pytest.mark.parametrize("method", ["tsne", "pca"])
def test_a_method_with_other_edges_waits_for_the_next_run(session, engine, method):
    frames = frames_to(session, until=10)
    session.settings.choose_method(method)
    assert session.stale
    next(frames)
    assert engine.games[-1].method == "game"
    session.settings.choose_method("game")
    assert not session.stale
    session.settings.repulsion = 50.0
    next(frames)
    assert engine.games[-1].repulsion == 50.0


def test_the_game_and_a_minimiser_need_a_run_each(session, engine):
    session.settings.approximation = "sampled_edges"
    frames_to(session)
    session.settings.choose_method("ee_spectral_direction")
    assert session.stale
    run = session.begin()
    frames = run.iter_progress()
    while len(engine.games) < 2:
        session.receive_frame(run, next(frames))
    assert not session.stale
    session.settings.repulsion = 900.0  # a minimiser is not steered either
    assert session.stale
    session.receive_frame(run, next(frames))
    assert engine.games[-1].method == "ee_spectral_direction"
    assert engine.games[-1].repulsion is None
    session.settings.choose_method("game")
    assert session.stale


def test_a_run_that_never_moves_leaves_the_map_and_what_it_was_made_with(session):
    frames_to(session)
    session.hand.hold_points(np.arange(3))
    session.settings.n_neighbors = 30
    run = session.begin()
    session.receive_frame(run, next(run.iter_progress()))
    assert not session.stale
    session.stop()
    assert session.stale
    kept = session.moment
    assert kept.settings.n_neighbors == kept.record.settings.n_neighbors == 15
    assert kept.forces.holds is session.hand.forces.holds
    assert session.hand.describe_forces_or_refusal() == "By hand: 3 points held."
    session.settings.n_neighbors = 15
    session.move_cluster(1, np.ones(2))
    pinned = "By hand: 3 points held, 1 cluster pinned."
    for cluster in (1, 2):  # the second while the first is being prepared
        session.move_cluster(cluster, np.ones(2), is_pinned=True)
        assert session.hand.describe_forces_or_refusal() == pinned
        pinned = pinned.replace("1 cluster", "2 clusters")
    session.stop()
    assert session.hand.describe_forces_or_refusal() == "By hand: 3 points held."
    session.settings.n_neighbors = 30
    session.note_run_failed(session.begin(), MemoryError())
    assert session.stale
    session.settings.n_neighbors = 15
    assert not session.stale


def test_the_result_tells_how_it_was_made(session):
    assert session.to_result() is None
    play(session, at=20, then=lambda: session.settings.update(repulsion=800.0))
    parameters = session.to_result().parameters
    assert parameters["repulsion"] == 800.0
    assert not parameters["interrupted"]
    assert parameters["n_neighbors"] == 15
    assert json.loads(parameters["steering"]) == [[20, {"repulsion": 800.0}]]
    assert parameters["n_iter"] == 50


def test_other_errors_become_one_sentence():
    assert "not enough" in error_text(MemoryError())
    told = error_text(RuntimeError("CUDA\nerror:\n  device-side assert"))
    assert "RuntimeError: CUDA error: device-side assert" in told
    assert "\n" not in told
    told = error_text(OSError(22, r"Error loading torch\lib\c10.dll"))
    assert "open it by the command napari-embedding-game" in told
