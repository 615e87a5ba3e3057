"""Means and shares of groups: by hand, sparse as dense, and with missing values."""

import numpy as np
import pytest
import scipy.sparse as sp

from napari_embedding_game.core.inspect.group_sums import GroupSummary, summarize_groups

X = np.array([[0, 2], [4, 2], [1, 0], [3, 8], [9, 9]], np.float32)
CODES = np.array([0, 0, 1, 1, -1])


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix, sp.csc_matrix])
def test_figures_that_can_be_worked_out_by_hand(kind):
    found = summarize_groups(kind(X), CODES, 2)
    np.testing.assert_allclose(found.means, [[2, 2], [2, 4]])
    np.testing.assert_allclose(found.shares, [[0.5, 1], [1, 0.5]])


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_a_missing_value_counts_in_no_mean(kind):
    changed = X.copy()
    changed[1, 0] = np.nan
    found = summarize_groups(kind(changed), CODES, 2)
    np.testing.assert_allclose(found.means[:, 0], [0, 2])
    np.testing.assert_allclose(found.shares[:, 0], [0, 1])


def test_a_group_without_rows_has_no_figures():
    found = summarize_groups(X, CODES, 3)
    assert np.isnan(found.means[2]).all()
    assert np.isnan(found.shares[2]).all()


def test_scaled_means_go_from_0_to_1():
    means = np.array([[1, 5, 3], [3, 5, np.nan], [2, 5, 4.0]])
    scaled = GroupSummary(means, means).scaled_means
    np.testing.assert_allclose(scaled, [[0, 0, 0], [1, 0, np.nan], [0.5, 0, 1]])
