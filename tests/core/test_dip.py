"""Hartigan's dip: known values, and how often uniform numbers exceed published ones."""

import numpy as np
import pytest

from napari_embedding_game.core.inspect.dip import has_two_modes, measure_dip


@pytest.mark.parametrize(
    ("numbers", "dip"),
    [
        ([0, 0, 1, 1], 1 / 4),  # as far from one mode as numbers can be
        (np.arange(8), 1 / 16),  # evenly spaced: no further than 1 / (2 n)
        ([5, 5, 5], 0),
        ([1, 2, 3, 4, 10, 11, 12, 13.5], 0.15789473684210525),  # by diptest 0.12
        ([0.1, 0.2, 0.25, 0.9, 1.4, 1.45, 1.5, 1.52, 3], 0.14102564102564102),
    ],
)
def test_the_dip_has_its_known_values(numbers, dip):
    assert measure_dip(np.array(numbers, float)) == pytest.approx(dip, abs=1e-12)


def test_order_place_and_scale_do_not_matter():
    rng = np.random.default_rng(0)
    numbers = np.concatenate([rng.normal(size=200), rng.normal(3, 1, 100)])
    dip = measure_dip(numbers)
    assert measure_dip(-7 * numbers[::-1] + 3) == pytest.approx(dip, rel=1e-9)


def test_uniform_numbers_exceed_the_published_quantiles_as_often_as_they_say():
    # Hartigan and Hartigan 1985, table 1, for 50 numbers: 0.0702 is exceeded by 5 %.
    samples = np.random.default_rng(0).random((1_500, 50))
    assert np.mean([measure_dip(x) > 0.0702 for x in samples]) == pytest.approx(
        0.05, abs=0.015
    )
    assert np.mean([has_two_modes(x) for x in samples]) <= 0.015


def test_two_modes_are_seen_and_a_shoulder_is_none():
    rng = np.random.default_rng(0)
    assert has_two_modes(np.r_[rng.normal(size=300), rng.normal(4, 1, 300)])
    assert not has_two_modes(np.r_[rng.normal(size=300), rng.normal(1.5, 1, 300)])
    assert not has_two_modes(rng.exponential(size=600))
