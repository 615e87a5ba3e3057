"""Pairs of groups in tissue, compared with permuted labels."""

import numpy as np
import pytest

from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.graph.tissue import find_tissue_neighbors
from napari_embedding_game.core.inspect.neighborhoods import compare_neighborhoods
from napari_embedding_game.core.threads import limit_threads

rng = np.random.default_rng(0)
N, K = 400, 4
POSITIONS = rng.uniform(0, 10, (N, 2)).astype(np.float32)
SECTIONS = rng.integers(2, size=N)
GROUPS = np.where(POSITIONS[:, 0] < 4, 0, rng.integers(1, 3, N))
GROUPS[SECTIONS == 1] = rng.integers(3, size=(SECTIONS == 1).sum())
GROUPS[::37] = -1
POSITIONS[::41] = np.nan
NEAR = find_tissue_neighbors(POSITIONS, SECTIONS, K)


def count(groups, sources=None, is_target=None):
    """Count pairs as slowly as they are defined, (3, 3)."""
    counts = np.zeros((3, 3))
    for i in range(N) if sources is None else sources:
        for j in NEAR[i]:
            is_there = j >= 0 and groups[i] >= 0 and groups[j] >= 0
            if is_there and (is_target is None or is_target[j]):
                counts[groups[i], groups[j]] += 1
    return counts


def test_counts_and_their_spread_are_those_of_permutations():
    found = compare_neighborhoods(NEAR, GROUPS, SECTIONS, n_permutations=2_000)
    observed = count(GROUPS)
    np.testing.assert_array_equal(found.counts, observed)
    placed = (GROUPS >= 0) & (NEAR[:, 0] >= 0)
    slow = []
    for _ in range(150):
        mixed = GROUPS.copy()
        for section in (0, 1):
            rows = placed & (section == SECTIONS)
            mixed[rows] = rng.permutation(mixed[rows])
        slow.append(count(mixed))
    mean, spread = np.mean(slow, axis=0), np.std(slow, axis=0)
    assert (np.abs(found.expected - mean) < 4 * spread / np.sqrt(150)).all()
    z = (observed - mean) / spread
    np.testing.assert_allclose(found.z, z, rtol=0.25, atol=0.4)
    assert found.z[0, 0] > 8  # the first group keeps to itself
    assert found.z[0, 1] < -4
    assert found.p[0, 0] == 1 / 2_001
    assert (found.p_adjusted >= found.p).all()
    np.testing.assert_allclose(found.ratio, observed / found.expected)


def test_labels_at_random_are_no_finding():
    groups = rng.integers(3, size=N)
    found = compare_neighborhoods(NEAR, groups, SECTIONS)
    assert found.p_adjusted.min() > 0.01
    assert np.abs(found.z).max() < 4


def test_labels_stay_in_their_section():
    """Where a section is of one group, its pairs are what chance gives."""
    groups = SECTIONS.astype(np.int64)
    found = compare_neighborhoods(NEAR, groups, SECTIONS)
    np.testing.assert_array_equal(found.counts, found.expected)
    assert np.isnan(found.z).all()
    assert np.isnan(found.p_adjusted).all()
    # Without sections the same labels lie far from chance.
    one = find_tissue_neighbors(POSITIONS, None, K)
    sorted_groups = (POSITIONS[:, 0] > 5).astype(np.int64)
    assert compare_neighborhoods(one, sorted_groups).z[0, 0] > 5


def test_around_a_selection_the_others_are_counted():
    around = np.arange(N) % 9 == 0
    found = compare_neighborhoods(NEAR, GROUPS, SECTIONS, around=around)
    sources = np.flatnonzero(around)
    by_hand = count(GROUPS, sources, ~around).sum(axis=0)
    np.testing.assert_array_equal(found.counts, by_hand[None])
    assert found.z.shape == (1, 3)
    left = (POSITIONS[:, 0] < 3.5) & (SECTIONS == 0) & (rng.random(N) < 0.3)
    assert compare_neighborhoods(NEAR, GROUPS, SECTIONS, around=left).z[0, 0] > 3


def test_neither_threads_nor_order_change_the_result():
    with limit_threads(1):
        one = compare_neighborhoods(NEAR, GROUPS, SECTIONS, random_state=3)
    with limit_threads(4):
        four = compare_neighborhoods(NEAR, GROUPS, SECTIONS, random_state=3)
    np.testing.assert_array_equal(one.z, four.z)
    other = compare_neighborhoods(NEAR, GROUPS, SECTIONS, random_state=4)
    assert (one.z != other.z).any()
    order = rng.permutation(N)
    near = find_tissue_neighbors(POSITIONS[order], SECTIONS[order], K)
    moved = compare_neighborhoods(near, GROUPS[order], SECTIONS[order])
    np.testing.assert_array_equal(moved.counts, one.counts)


def test_a_neighbour_may_be_as_far_as_the_radius():
    grid = np.stack(np.meshgrid(np.arange(4), np.arange(5)), axis=-1).reshape(-1, 2)
    near = find_tissue_neighbors(100 * grid, k=8, radius=100)
    assert (near >= 0).sum() == 2 * (3 * 5 + 4 * 4)
    steps = np.abs(grid[near] - grid[:, None]).sum(axis=2)[near >= 0]
    assert (steps == 1).all()
    with pytest.raises(InputError, match="a radius above 0, not 0"):
        find_tissue_neighbors(grid, radius=0)


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(InputError, match="here are 1"):
        compare_neighborhoods(NEAR, np.zeros(N, np.int64), SECTIONS)
    with pytest.raises(InputError, match="here are 0"):
        compare_neighborhoods(np.full((N, K), -1), GROUPS, SECTIONS)
    nothing = np.zeros(N, bool)
    with pytest.raises(InputError, match="No other cells lie"):
        compare_neighborhoods(NEAR, GROUPS, SECTIONS, around=nothing)
