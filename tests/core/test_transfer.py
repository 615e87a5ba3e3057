"""Votes of the nearest rows, and rows that are unlike all fitted ones."""

import numpy as np

from napari_embedding_game.core.inspect.transfer import (
    compute_share_at_least_as_high,
    vote_labels,
    vote_weights,
)
from napari_embedding_game.core.new_rows.likeness import (
    UNLIKE,
    DistanceScorer,
    ResidualScorer,
)


def test_near_neighbours_count_more_and_all_together_one():
    weights = vote_weights(np.array([[0.0, 1.0, 2.0], [3.0, 3.0, 3.0], [0, 0, 0]]))
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    np.testing.assert_allclose(weights[1:], 1 / 3)
    np.testing.assert_allclose(weights[0, 0] / weights[0, 2], np.exp(2))


def test_the_most_votes_win_and_their_share_is_the_confidence():
    codes = np.array([[0, 0, 1], [1, 2, 2], [2, -1, -1], [-1, -1, -1]])
    weights = np.full((4, 3), 1 / 3)
    winners, confidence = vote_labels(codes, weights)
    assert winners.tolist() == [0, 2, 2, -1]
    np.testing.assert_allclose(confidence, [2 / 3, 2 / 3, 1 / 3, 0])
    winners, confidence = vote_labels(np.full((2, 3), -1), weights[:2])
    assert (winners.tolist(), confidence.tolist()) == ([-1, -1], [0, 0])


def test_share_of_known_scores_that_are_as_high():
    known = np.arange(99.0)
    np.testing.assert_allclose(
        compute_share_at_least_as_high(np.array([-1.0, 98.0, 99.0, 49.0]), known),
        [1, 0.02, 0.01, 0.51],
    )


def expression(rng, n, genes_up=()):
    """Scaled noise in two programmes of genes; ``genes_up`` are of an unseen kind."""
    kinds = rng.integers(0, 2, n)
    values = rng.normal(size=(n, 120)).astype(np.float32)
    values[:, :10] += 6 * kinds[:, None]
    values[:, list(genes_up)] += 2.5
    return values


def left_by(values, fitted, n_components=3):
    mean = fitted.mean(axis=0)
    axes = np.linalg.svd(fitted - mean, full_matrices=False)[2][:n_components]
    return values - mean - (values - mean) @ axes.T @ axes


def test_a_kind_that_was_not_fitted_is_told_and_others_are_not():
    rng = np.random.default_rng(0)
    fitted, like = expression(rng, 600), expression(rng, 300)
    unlike = expression(rng, 60, range(20, 50))
    scores = ResidualScorer(fitted, np.full(600, 100.0), 3)
    new = np.vstack([like, unlike])
    rest, depth = left_by(new, fitted), np.full(360, 100.0)
    shares = scores(new, rest, depth)
    assert (shares[300:] < 0.01).mean() > 0.95
    assert (shares[:300] < 0.01).mean() < 0.05
    for n in (1, 2, 5):  # few are compared with the means of as few
        scores = ResidualScorer(fitted, np.full(600, 100.0), 3, n)
        few = [
            scores(new[i : i + n], rest[i : i + n], depth[:n]) for i in range(0, 40, n)
        ]
        assert (np.concatenate(few) < 0.01).mean() < 0.1


def far_rows(rng, n):
    """Distances of fitted rows and of new rows to one another: all from one law."""
    return rng.integers(0, n, (n, 5)), np.sort(rng.gamma(9, size=(n, 5)), axis=1)


def test_rows_like_the_fitted_ones_are_hardly_ever_told():
    rng = np.random.default_rng(0)
    n_told, shares = 0, []
    for _ in range(100):
        scorer = DistanceScorer(*far_rows(rng, 400))
        ratios = scorer.compute_ratios(*far_rows(rng, 400))
        n_told += bool(scorer.describe_unlike_rows(ratios))
        shares.append((scorer(ratios) < UNLIKE).mean())
    assert n_told <= 1
    assert 0.005 < np.mean(shares) < 0.015
    told = scorer.describe_unlike_rows(
        np.repeat(np.sort(ratios)[-5:], [96, 1, 1, 1, 1])
    )
    assert told.startswith("100 of 100 new rows (100%) are unlike all fitted rows; of")


def test_rows_among_equal_ones_have_ratios():
    near = np.array([[1, 2], [0, 2], [0, 1]])
    scorer = DistanceScorer(near, np.zeros((3, 2)))
    ratios = scorer.compute_ratios(near[:2], np.array([[0.0, 0.0], [1.0, 2.0]]))
    np.testing.assert_array_equal(ratios, [1, np.inf])
    assert "is row 1 " in scorer.describe_unlike_rows(ratios)
