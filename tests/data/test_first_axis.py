"""Movies and volumes that were made so, and what is neither clearly."""

import numpy as np
import pytest

from napari_embedding_game.data.images import first_axis
from napari_embedding_game.data.images.first_axis import guess_first_axis

SHAPE = (16, 120, 120)


def balls(n=25, shape=SHAPE, seed=0, radius=(6, 10), flat=0.5, lean=0.0):
    """Ellipsoids at random places of a volume, as nuclei lie in a tissue."""
    rng = np.random.default_rng(seed)
    z, y, x = np.indices(shape)
    labels = np.zeros(shape, np.int32)
    for label in range(1, n + 1):
        at, r = rng.uniform(0, shape), rng.uniform(*radius)
        middle = at[2] + lean * (z - at[0])
        inside = ((z - at[0]) / flat) ** 2 + (y - at[1]) ** 2 + (x - middle) ** 2
        labels[(inside < r**2) & (labels == 0)] = 7 * label
    return labels


def movie(speed, n=20, seed=0, shape=SHAPE, lives=1.0):
    """Discs that wander, each seen during a part of the time."""
    rng = np.random.default_rng(seed)
    y, x = np.indices(shape[1:])
    labels = np.zeros(shape, np.int32)
    places = rng.uniform(12, shape[1] - 12, (n, 2))
    begins = rng.integers(0, 1 + int((1 - lives) * shape[0]), n)
    drift = rng.normal(0, speed, (n, 2))
    for t in range(shape[0]):
        period = 2 * shape[1]  # at the border they turn round
        seen = np.minimum(places % period, period - places % period)
        for label, (at, begin) in enumerate(zip(seen, begins, strict=True), 1):
            if begin <= t < begin + lives * shape[0]:
                labels[t, (y - at[0]) ** 2 + (x - at[1]) ** 2 < 36] = label
        places += drift + rng.normal(0, speed / 2, (n, 2))
    return labels


@pytest.mark.parametrize("seed", range(2))
def test_nuclei_of_a_volume_are_a_volume(seed):
    assert guess_first_axis(balls(seed=seed)) == "z"
    assert guess_first_axis(balls(seed=seed, flat=0.3, lean=1.0)) == "z"  # tilted
    assert guess_first_axis(balls(seed=seed, shape=(40, 80, 80), flat=1.0)) == "z"


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("speed", [1.5, 4.0, 12.0])
def test_cells_that_move_are_a_movie(seed, speed):
    assert guess_first_axis(movie(speed, seed=seed)) == "time"


def test_what_may_be_either_is_left_to_the_person():
    assert guess_first_axis(movie(0.02)) is None  # cells, or columns, that stand still
    assert guess_first_axis(movie(2.0, lives=0.5)) is None
    renumbered = np.stack([balls(shape=(1, 120, 120), seed=t)[0] for t in range(8)])
    assert guess_first_axis(renumbered) is None
    assert guess_first_axis(np.arange(1, 5)[:, None, None] * np.ones((1, 9, 9))) is None
    assert guess_first_axis(np.zeros(SHAPE, int)) is None
    assert guess_first_axis(balls()[:2]) is None
    assert guess_first_axis(balls()[0]) is None


def test_of_large_ones_some_pixels_are_enough(monkeypatch):
    monkeypatch.setattr(first_axis, "MAX_PIXELS", 60_000)
    assert guess_first_axis(balls()) == "z"
    assert guess_first_axis(movie(4.0)) == "time"
