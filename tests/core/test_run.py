"""A run as one object: iterated, steered, stopped, and then the fit."""

import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

from napari_embedding_game import EmbeddingGame
from napari_embedding_game.core import live_run
from napari_embedding_game.core.dynamics import play
from napari_embedding_game.core.errors import EmbeddingWarning, InputError
from napari_embedding_game.core.live_run import Run
from napari_embedding_game.core.snapshot import HandForces, Hold, Spring

CLOUD = np.random.default_rng(0).normal(size=(120, 6))


@pytest.fixture(autouse=True)
def every_iteration_is_seen(monkeypatch):
    monkeypatch.setattr(play, "FRAME_SECONDS", 0.0)
    monkeypatch.setattr(play, "LONGEST_UNWATCHED", 0.0)


def game(**parameters):
    chosen = {"n_landmarks": 10, "max_iter": 40, "random_state": 0, **parameters}
    return EmbeddingGame(**chosen)


def spring(rows, place):
    return Spring(rows=np.array(rows), place=tuple(place))


def is_fitted(model, snapshot):
    """Return whether a model is a snapshot, with labels and pressure of its moment."""
    apart = np.linalg.norm(model.embedding_[:, None] - model.landmarks_, axis=2)
    return (
        np.array_equal(model.embedding_, snapshot.embedding)
        and np.array_equal(model.labels_, apart.argmin(axis=1))
        and np.isfinite(model.pressure_).all()
        and model.n_iter_ == snapshot.iteration
    )


@pytest.mark.parametrize("way", ["break", "stop"])
def test_a_run_left_early_is_the_fit(way):
    model = game()
    run = model.play(CLOUD)
    for snapshot in run:
        if snapshot.iteration == 17:
            if way == "break":
                break
            run.stop()
    assert snapshot.iteration == 17
    assert is_fitted(model, snapshot)
    rest = [snapshot.iteration for snapshot in run]
    assert rest == ([] if way == "stop" else list(range(18, 41)))


def test_a_fit_at_which_nobody_looks_copies_the_start_and_the_end_alone(monkeypatch):
    monkeypatch.setattr(play, "FRAME_SECONDS", 0.0)
    monkeypatch.setattr(play, "SHARE_UNWATCHED", 1e-9)
    monkeypatch.setattr(play, "LONGEST_UNWATCHED", 600.0)
    copied, copy = [], play._Driver._copy_positions
    monkeypatch.setattr(
        play._Driver, "_copy_positions", lambda *given: copied.append(1) or copy(*given)
    )
    game().fit(CLOUD)
    assert len(copied) == 2 * 2  # points and landmarks


def test_a_fit_that_is_watched_says_how_far_it_has_come(capsys):
    game().fit(CLOUD, verbose=True)
    told = capsys.readouterr().err
    assert told.startswith("Finding neighbours\n")
    assert "100%" in told


def test_what_is_set_acts_at_once_and_plays_on_after_the_end():
    model = game()
    run = model.play(CLOUD)
    for snapshot in run:
        if snapshot.iteration == 5:
            run.set(repulsion=600, n_landmarks=7)
            run.set(n_landmarks=6)
    assert len(model.landmarks_) == 6
    run.set(learning_rate=0.0)
    (one, *_, last) = run
    assert (one.iteration, last.finished) == (41, True)
    assert [iteration for iteration, _ in run.steered] == [5, 40]
    assert run.steered[-1][1].repulsion == 600
    np.testing.assert_array_equal(last.embedding, snapshot.embedding)
    assert model.get_params()["repulsion"] is None


def test_what_is_set_as_the_script_changes_something_is_not_lost():
    script = [(5, {"repulsion": 600.0, "momentum": 0.7})]
    run = game()._begin_run(CLOUD, script)
    forces = HandForces(springs=(spring([7], (1.0, 0.0)),))
    for snapshot in run:
        if snapshot.iteration == 5:
            run.set(n_landmarks=6, momentum=0.8)
            run.hold(forces)
    ((at, settings),) = run.steered
    found = at, settings.repulsion, settings.n_landmarks, settings.momentum
    assert found == (5, 600, 6, 0.8)
    assert run.forced == [(5, forces)]
    assert len(snapshot.landmarks) == 6


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"n_neighbors": 5}, "n_neighbors cannot be changed on the way"),
        ({"repulsion": -1}, "repulsion must be a number above 0"),
        ({"n_landmarks": "many"}, "n_landmarks must be a whole number"),
        ({"method": "ee_homotopy"}, "cannot take turns"),
        ({"momentum": 1.0}, "momentum"),
    ],
)
def test_what_cannot_change_is_refused_and_the_run_goes_on(changed, told):
    run = game().play(CLOUD)
    for snapshot in run:
        if snapshot.iteration == 3:
            with pytest.raises(InputError, match=told):
                run.set(**changed)
    assert snapshot.finished
    assert run.steered == []


def test_a_hand_drags_and_holds_and_lets_go():
    run = game(max_iter=120).play(CLOUD)
    for snapshot in run:
        if snapshot.iteration == 40:
            held = snapshot.embedding[[3, 4]]
            away = snapshot.embedding.mean(axis=0) + np.array([9.0, 0.0])
            hold = Hold(rows=np.array([3, 4], np.uint8), places=held)
            run.hold(HandForces(holds=(hold,), springs=(spring([7], away),)))
            for refused in (
                spring([120], away),
                spring(np.arange(120) > 90, away),  # rows 0 and 1 by their numbers
                spring([0.7], away),
                spring([1], (0.0, 0.0, 0.0)),
            ):
                with pytest.raises(InputError, match=r"of th(is|e) map"):
                    run.hold(HandForces(springs=(refused,)))
    np.testing.assert_array_equal(snapshot.embedding[[3, 4]], held)
    assert np.linalg.norm(snapshot.embedding[7] - away) < 1
    run.hold(HandForces())
    *_, last = run
    assert [len(forces.springs) for _, forces in run.forced] == [1, 0]
    assert (np.abs(last.embedding[[3, 4]] - held).max(axis=1) > 0).all()


def test_what_is_not_played_is_not_steered():
    run = game(method="pca").play(CLOUD)
    *_, last = run
    for told in (lambda: run.set(n_landmarks=5), lambda: run.hold(HandForces())):
        with pytest.raises(InputError, match="Only a game"):
            told()
    assert list(run) == []
    assert last.finished
    with pytest.raises(InputError, match="Only a game is steered"):
        game(method="pca").fit(CLOUD, steering=[(5, {"n_landmarks": 5})])


def test_any_thread_may_steer_and_no_wish_is_lost(monkeypatch):
    whole = live_run.replace_steerable
    monkeypatch.setattr(
        live_run, "replace_steerable", lambda *given: time.sleep(1e-3) or whole(*given)
    )
    run = game().play(CLOUD)
    hand = HandForces(springs=(spring([5], (9.0, 0.0)),))
    wishes = [partial(run.set, repulsion=70.0), partial(run.set, n_landmarks=9)]
    wishes += [partial(run.set, momentum=0.5), partial(run.hold, hand)]
    with ThreadPoolExecutor(len(wishes)) as threads:
        for wish in [threads.submit(wish) for wish in wishes]:
            wish.result()
    *_, last = run
    assert (run.forced[0][1], len(last.landmarks)) == (hand, 9)
    assert (run.settings.repulsion, run.settings.momentum) == (70.0, 0.5)


def test_any_thread_may_stop():
    model, going = game(max_iter=100_000), threading.Event()
    run = model.play(CLOUD)

    def watch():
        for _ in run:
            going.set()

    thread = threading.Thread(target=watch)
    thread.start()
    assert going.wait(60)
    run.stop()
    thread.join(60)
    assert not thread.is_alive()
    assert is_fitted(model, run.snapshot)


def test_ctrl_c_in_fit_keeps_the_map_of_that_moment(monkeypatch):
    whole = Run.advance

    def interrupted(self, look=False):
        if not look and self.snapshot is not None and self.snapshot.iteration == 9:
            raise KeyboardInterrupt
        return whole(self, look)

    take = EmbeddingGame._store_fit

    def impatient(self, *given):
        signal.raise_signal(signal.SIGINT)  # once more, while the map is kept
        take(self, *given)

    monkeypatch.setattr(Run, "advance", interrupted)
    monkeypatch.setattr(EmbeddingGame, "_store_fit", impatient)
    model = game()
    with pytest.warns(EmbeddingWarning, match="Ended early, after 9 iterations"):
        model.fit(CLOUD)
    monkeypatch.undo()
    assert model.n_iter_ == 9
    assert np.isfinite(model.pressure_).all()
    assert model.set_params(init=model.embedding_).fit(CLOUD).n_iter_ == 40


def test_ctrl_c_before_there_is_a_map_is_not_held_back(monkeypatch):
    def interrupted(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(Run, "advance", interrupted)
    with pytest.raises(KeyboardInterrupt):
        game().fit(CLOUD)
