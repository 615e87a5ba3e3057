"""Points of a slow game go from frame to frame without a jump."""

import numpy as np
import pytest

from napari_embedding_game.core.types import Snapshot
from napari_embedding_game.ui.canvas import glide as module
from napari_embedding_game.ui.canvas.glide import Glide


def frame(place, n=3, *, finished=False):
    """A snapshot with all points in one place."""
    return Snapshot(
        embedding=np.full((n, 2), place, np.float32),
        landmarks=np.full((2, 2), place, np.float32),
        labels=np.zeros(n, np.int32),
        pressure=np.zeros(n, np.float32),
        energy=0.0,
        iteration=int(place),
        n_iter=100,
        finished=finished,
    )


class Canvas:
    """Keeps where the points were drawn."""

    def __init__(self):
        self.drawn, self.moved = [], []
        self.is_there = self.is_quick = True

    def draw(self, snapshot):
        self.drawn.append(float(snapshot.embedding[0, 0]))

    def move(self, embedding, landmarks):
        np.testing.assert_array_equal(embedding[:2], landmarks)
        self.moved.append(float(embedding[0, 0]))
        return self.is_there


@pytest.fixture
def clock(monkeypatch):
    """A clock that a test sets."""
    now = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def canvas():
    return Canvas()


@pytest.fixture
def glide(canvas, clock, qapp):
    glide = Glide(canvas.draw, canvas.move, lambda: canvas.is_quick)
    yield glide
    glide.forget()


def run_to(glide, clock, now):
    """Let the next picture of a glide come at a time."""
    clock[0] = now
    if glide.is_gliding:
        glide._timer.timeout.emit()


def test_frames_that_come_quickly_are_drawn_as_they_come(glide, canvas, clock):
    for place in range(5):
        glide.show(frame(place))
        clock[0] += 0.1
    assert canvas.drawn == [0, 1, 2, 3, 4]
    assert not glide.is_gliding


def test_between_slow_frames_the_points_glide_and_arrive(glide, canvas, clock):
    glide.show(frame(0))
    clock[0] += 1.0
    glide.show(frame(10))
    assert canvas.drawn == [0, 0]
    run_to(glide, clock, 101.25)
    run_to(glide, clock, 101.5)
    run_to(glide, clock, 102.1)
    assert canvas.moved == [2.5, 5.0, 10.0]
    assert not glide.is_gliding


def test_a_frame_that_comes_sooner_is_glided_to_from_where_the_points_are(
    glide, canvas, clock
):
    glide.show(frame(0))
    clock[0] = 101.0
    glide.show(frame(10))
    clock[0] = 101.5
    glide.show(frame(20))
    assert canvas.drawn == [0, 0, 5]
    run_to(glide, clock, 101.75)
    assert canvas.moved == [12.5]


def test_a_game_that_rests_is_drawn_where_it_is(glide, canvas, clock):
    glide.show(frame(0))
    clock[0] = 101.0
    glide.show(frame(10))
    glide.settle()
    assert canvas.drawn == [0, 0, 10]
    glide.settle()
    assert canvas.drawn == [0, 0, 10]


@pytest.mark.parametrize(
    "second",
    [frame(10, finished=True), frame(10, n=4), "slow drawing"],
    ids=["the last frame", "other points", "slow drawing"],
)
def test_what_cannot_glide_is_drawn_at_once(glide, canvas, clock, second):
    glide.show(frame(0))
    clock[0] = 101.0
    canvas.is_quick = second != "slow drawing"
    glide.show(second if canvas.is_quick else frame(10))
    assert canvas.drawn == [0, 10]
    assert not glide.is_gliding


def test_a_layer_that_is_gone_ends_it(glide, canvas, clock):
    glide.show(frame(0))
    clock[0] = 101.0
    glide.show(frame(10))
    canvas.is_there = False
    run_to(glide, clock, 101.5)
    assert not glide.is_gliding
