"""What new rows differ in throughout is taken away, and no more."""

import numpy as np

from napari_embedding_game.core.new_rows.batch_shift import remove_batch_shift

CENTRES = 12 * np.eye(4, 6)


def rows(rng, n, kinds=4):
    kind = rng.integers(0, kinds, n)
    return CENTRES[kind] + rng.normal(size=(n, 6)), kind


def test_a_shift_goes_and_the_kinds_stay():
    rng = np.random.default_rng(0)
    fitted, _ = rows(rng, 600)
    new, kind = rows(rng, 4_000)
    shift = np.array([2.0, 2, 2, 2, 6, 0])
    moved = remove_batch_shift(new + shift, fitted)
    assert moved.dtype == np.float32
    assert np.linalg.norm((moved - new).mean(axis=0)) < 0.4 * np.linalg.norm(shift)
    apart = np.linalg.norm(moved[:, None] - CENTRES, axis=2)
    assert (apart.argmin(axis=1) == kind).mean() > 0.98


def test_without_a_shift_little_moves():
    rng = np.random.default_rng(0)
    new, _ = rows(rng, 400)
    assert np.abs(remove_batch_shift(new, rows(rng, 600)[0]) - new).mean() < 0.3


def test_one_row_stays_almost_where_it_is():
    rng = np.random.default_rng(0)
    new = rows(rng, 1)[0] + 3
    moved = remove_batch_shift(new, rows(rng, 600)[0])
    assert np.abs(moved - new).max() < 0.3
