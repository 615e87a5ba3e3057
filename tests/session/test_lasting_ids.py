import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from napari_embedding_game.session.clusters.lasting_ids import (
    MOST_DORMANT,
    LastingIds,
    Numbers,
)


def division(*sizes):
    return np.repeat(np.arange(len(sizes)), sizes).astype(np.int32)


@pytest.fixture
def identities():
    return LastingIds(Numbers(1))


def test_the_largest_gets_the_lowest_number(identities):
    assert identities.follow(division(3, 9, 5), 3).tolist() == [3, 1, 2]


def test_numbers_go_with_the_points_not_with_the_order(identities):
    identities.follow(division(9, 5, 3), 3)
    shuffled = np.array([2] * 9 + [0] * 5 + [1] * 3, np.int32)
    assert identities.follow(shuffled, 3).tolist() == [2, 3, 1]


def test_a_slider_that_comes_back_brings_all_numbers_back(identities):
    eight = division(9, 8, 7, 6, 5, 4, 3, 2)
    first = identities.follow(eight, 8)
    merged = np.array([0, 0, 0, 1, 1, 2, 3, 4], np.int32)
    assert identities.follow(merged[eight], 5).tolist() == [1, 4, 6, 7, 8]
    assert identities.follow(eight, 8).tolist() == first.tolist()


def test_of_a_cluster_that_falls_apart_the_larger_part_keeps_the_number(identities):
    identities.follow(division(12), 1)
    assert identities.follow(division(5, 7), 2).tolist() == [2, 1]


def test_a_sleeping_number_does_not_wake_in_a_crowd(identities):
    rare, others = division(4, 20), np.zeros(24, np.int32)
    assert identities.follow(rare, 2).tolist() == [2, 1]
    identities.make_all_dormant()
    assert identities.follow(others, 1).tolist() == [1]
    identities.make_all_dormant()
    assert identities.follow(rare[::-1].copy(), 2).tolist() == [3, 1]


def test_numbers_that_are_dear_are_not_forgotten():
    identities = LastingIds(Numbers())
    identities.pinned = {0}
    for number in range(MOST_DORMANT + 5):
        identities.remember(number, np.array([number]))
    assert len(identities.dormant) == MOST_DORMANT
    assert min(set(identities.dormant) - {0}) == 6


DIVISIONS = st.lists(
    st.lists(st.integers(0, 4), min_size=15, max_size=15), min_size=1, max_size=8
)


@given(DIVISIONS)
def test_whatever_comes(divisions):
    identities = LastingIds(Numbers())
    known = set()
    for one in divisions:
        labels = np.array(one, np.int32)
        ids = identities.follow(labels, 5)
        assert len(set(ids.tolist())) == 5
        # The same once more changes nothing.
        populated = np.unique(labels)
        again = identities.follow(labels, 5)
        assert again[populated].tolist() == ids[populated].tolist()
        known |= set(ids.tolist()) | set(again.tolist())
    assert known == set(range(len(known)))


def test_not_more_points_sleep_than_the_map_has_many_times():
    identities = LastingIds(Numbers())
    identities.set_active(division(5, 5))
    for number in range(10, 30):
        identities.remember(number, np.arange(10))
    assert sorted(identities.dormant) == [28, 29]
