"""The closest log-concave histogram, and the bins in which rows are missing."""

import numpy as np
import pytest

from napari_embedding_game.core.inspect.log_concave import (
    find_emptiest_interval,
    fit_log_concave,
)


def test_log_concave_counts_are_their_own_fit():
    counts = np.round(1e6 * np.exp(-0.5 * np.linspace(-2, 3, 30) ** 2)).astype(int)
    np.testing.assert_allclose(fit_log_concave(counts), counts / counts.sum(), 1e-3)


@pytest.mark.parametrize(
    ("counts", "fitted"),
    [
        ((10, 0, 10), (1 / 3, 1 / 3, 1 / 3)),
        ((8, 4, 2, 1), (8 / 15, 4 / 15, 2 / 15, 1 / 15)),  # falls evenly
        ((0, 0, 9, 0), (0, 0, 1, 0)),
    ],
)
def test_counts_with_a_gap_are_filled_up(counts, fitted):
    np.testing.assert_allclose(fit_log_concave(np.array(counts)), fitted, atol=1e-3)


def test_no_other_log_concave_histogram_is_likelier():
    rng = np.random.default_rng(0)
    counts = np.histogram(np.r_[rng.normal(size=400), rng.normal(4, 1, 200)], 40)[0]
    fitted = fit_log_concave(counts)
    assert np.diff(np.log(fitted), 2).max() < 1e-6
    likelihood = counts @ np.log(fitted)
    for _ in range(200):
        bend = -np.cumsum(np.cumsum(rng.exponential(size=40)))
        other = fitted * np.exp(1e-3 * rng.normal() * np.arange(40) + 1e-5 * bend)
        assert counts @ np.log(other / other.sum()) <= likelihood + 1e-4


def test_the_emptiest_interval_contains_the_border():
    counts, expected = np.array([9, 2, 9, 0, 1, 9]), np.full(6, 5.0)
    anywhere = find_emptiest_interval(counts, expected, 0, 6)
    assert anywhere.missing == pytest.approx(0.9)  # of bins 3 and 4: 1 of 10
    assert anywhere.evidence == pytest.approx(10 - 1 + np.log(0.1))
    # Of the intervals that contain edge 1, bins 1 to 4 lack most: 8 of 20 rows.
    assert find_emptiest_interval(counts, expected, 0, 6, 1).missing == 0.4
    assert find_emptiest_interval(counts, expected, 0, 1) == (0, 0)
