from dataclasses import replace

import numpy as np
import pytest
import torch

from napari_embedding_game.core.device import resolve_device
from napari_embedding_game.core.dynamics import play as play_module
from napari_embedding_game.core.dynamics.play import play
from napari_embedding_game.core.energy.methods import APPROXIMATIONS
from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.settings import Settings

SHORT = Settings(repulsion=300.0, max_iter=60, n_landmarks=20)


@pytest.fixture(autouse=True)
def patient_frames(monkeypatch):
    """Only ``frame_iterations`` ends a frame, however busy the machine is."""
    monkeypatch.setattr(play_module, "FRAME_SECONDS", 60.0)


def steered(settings, **changes):
    values = {name: getattr(settings, name) for name in settings.__slots__}
    return Settings(**{**values, **changes})


@pytest.fixture(scope="module")
def problem(make_problem):
    return make_problem(300, 2, 1, "fuzzy")


def game_of(problem, settings=SHORT, **options):
    options = {"frame_iterations": 10, **options}
    return play(problem.edges, problem.y.numpy(), settings, **options)


def last_of(game):
    for snapshot in game:
        last = snapshot
    return last


# --- The contract of the generator


def test_the_first_snapshot_is_the_start(problem):
    first = next(game_of(problem))
    np.testing.assert_array_equal(first.embedding, problem.y.numpy())
    assert (first.iteration, first.n_iter, first.finished) == (0, 60, False)
    assert first.embedding.dtype == first.landmarks.dtype == np.float32
    assert first.landmarks.shape == (20, 2)
    places = {tuple(place) for place in first.embedding}
    assert {tuple(place) for place in first.landmarks} <= places
    assert len(np.unique(first.landmarks, axis=0)) == 20


def test_it_plays_its_iterations_says_so_and_ends(problem):
    snapshots = list(game_of(problem))
    assert [s.iteration for s in snapshots] == list(range(0, 61, 10))
    assert [s.finished for s in snapshots] == [False] * 6 + [True]
    assert {s.n_iter for s in snapshots} == {60}
    assert snapshots[-1].labels.shape == snapshots[-1].pressure.shape == (300,)


def test_snapshots_are_copies(problem):
    game = game_of(problem)
    start = next(game)
    kept = start.embedding.copy(), start.landmarks.copy()
    other = next(game)
    assert not np.array_equal(other.embedding, kept[0])
    np.testing.assert_array_equal(start.embedding, kept[0])
    np.testing.assert_array_equal(start.landmarks, kept[1])
    other.embedding[:] = np.nan  # what a driver does to its copy is its own affair
    assert np.isfinite(next(game).embedding).all()


@pytest.mark.parametrize("approximation", APPROXIMATIONS)
def test_every_method_lowers_its_energy_and_moves_every_point(problem, approximation):
    settings = steered(SHORT, approximation=approximation, max_iter=150)
    snapshots = list(game_of(problem, settings))
    assert snapshots[-1].energy < snapshots[0].energy
    moved = np.abs(snapshots[-1].embedding - snapshots[0].embedding).max(axis=1)
    assert (moved > 0).all()
    assert snapshots[-1].labels.max() < 20


@pytest.mark.parametrize("schedule", ["fast", "paper"])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_in_every_dimension_the_energy_shown_is_eq_3(make_problem, d, schedule):
    problem = make_problem(150, d, 1)
    for snapshot in game_of(problem, steered(SHORT, schedule=schedule)):
        assert snapshot.embedding.shape == (150, d)
        assert snapshot.landmarks.shape == (20, d)
        y = torch.tensor(snapshot.embedding, dtype=torch.float64)
        z = torch.tensor(snapshot.landmarks, dtype=torch.float64)
        wanted = problem.twin.game(y, z, SHORT.repulsion / 150)
        assert snapshot.energy == pytest.approx(float(wanted), rel=1e-5)


@pytest.mark.parametrize("n", [2, 3])
def test_the_smallest_games(make_problem, n):
    last = last_of(game_of(make_problem(n, 2, 1)))
    assert last.landmarks.shape == (n, 2)
    assert np.isfinite(last.embedding).all()


# --- Reproducibility


@pytest.mark.parametrize("approximation", APPROXIMATIONS)
def test_the_same_seed_gives_the_same_bits(problem, approximation):
    settings = steered(SHORT, approximation=approximation)
    first = last_of(game_of(problem, replace(settings, random_state=5)))
    again = last_of(
        game_of(problem, replace(settings, random_state=5), frame_iterations=7)
    )
    other = last_of(game_of(problem, replace(settings, random_state=6)))
    np.testing.assert_array_equal(first.embedding, again.embedding)
    np.testing.assert_array_equal(first.landmarks, again.landmarks)
    is_drawn = approximation not in ("exact", "mesh")
    own = first.embedding if is_drawn else first.landmarks
    others = other.embedding if is_drawn else other.landmarks
    assert not np.array_equal(own, others)


# --- Steering


@pytest.mark.parametrize(
    "changes",
    [
        {"repulsion": 30.0},
        {"learning_rate": 0.05},
        {"landmark_learning_rate": 5.0},
        {"approximation": "sampled_edges"},
        {"approximation": "sampled_landmarks"},
        {"n_landmarks": 7},
        {"n_landmarks": 90},
        {"momentum": 0.0},
    ],
)
def test_settings_sent_act_on_the_running_game(problem, changes):
    games = [game_of(problem), game_of(problem)]
    for game in games:
        for _ in range(3):
            before = next(game)
    plain = games[0].send(None)
    changed = games[1].send(steered(SHORT, **changes))
    assert changed.iteration == plain.iteration == before.iteration + 10
    assert not np.array_equal(changed.embedding, plain.embedding)
    assert len(changed.landmarks) == changes.get("n_landmarks", 20)
    assert changed.labels.max() < len(changed.landmarks)


@pytest.mark.parametrize("n_landmarks", [1, 5, 150, 10_000])
def test_landmarks_come_and_go_without_a_jump_of_the_points(problem, n_landmarks):
    settings = steered(SHORT, momentum=0.0, learning_rate=0.1)
    game = game_of(problem, settings, frame_iterations=1)
    for _ in range(30):
        before = next(game)
    after = game.send(steered(settings, n_landmarks=n_landmarks))
    assert len(after.landmarks) == min(n_landmarks, 300)
    # The root mean square of a step is the rate at most, over all coordinates.
    moved = after.embedding - before.embedding
    assert np.sqrt((moved**2).mean()) <= 0.1 * (1 + 1e-5)


def test_landmarks_that_stay_keep_their_places_and_their_order(problem):
    settings = steered(SHORT, landmark_learning_rate=0.0)
    game = game_of(problem, settings)
    before = next(game).landmarks.tolist()
    fewer = game.send(steered(settings, n_landmarks=8)).landmarks.tolist()
    more = game.send(steered(settings, n_landmarks=30)).landmarks.tolist()
    assert fewer == [place for place in before if place in fewer]
    assert more[:8] == fewer


def test_steering_late_gives_time_to_react(problem):
    game = game_of(problem)
    for _ in range(6):
        late = next(game)
    assert (late.iteration, late.n_iter) == (50, 60)
    steer = game.send(steered(SHORT, repulsion=600.0))
    assert (steer.iteration, steer.n_iter) == (60, 80)  # back to 30 of 60 first
    assert last_of(game).iteration == 80


def test_a_finished_game_plays_on_when_it_is_steered_and_finishes_again(problem):
    game = game_of(problem)
    while not (snapshot := next(game)).finished:
        pass
    on = game.send(steered(SHORT, repulsion=1000.0))
    assert not on.finished
    assert (on.iteration, on.n_iter) == (70, 90)
    while not (snapshot := next(game)).finished:
        pass
    assert snapshot.iteration == 90
    with pytest.raises(StopIteration):
        next(game)


# --- What is refused


@pytest.mark.parametrize("rate", [1e8, 1e20, 1e29])
@pytest.mark.parametrize("player", ["learning_rate", "landmark_learning_rate"])
def test_points_that_run_off_the_map_are_told(problem, player, rate):
    with pytest.raises(InputError, match="lower the learning rates"):
        last_of(game_of(problem, steered(SHORT, **{player: rate})))


def test_few_points_stay_on_the_processor(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    assert resolve_device("auto", 700).type == "cpu"
    assert resolve_device("auto", 1_000_000).type == "cuda"


def test_devices_that_are_not_there_are_told(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr("torch.backends.mps.is_available", lambda: False)
    assert resolve_device("auto").type == "cpu"
    for device in ("cuda", "mps"):
        with pytest.raises(InputError, match=f"no device {device}"):
            resolve_device(device)
    with pytest.raises(InputError, match="'abacus'"):
        resolve_device("abacus")
