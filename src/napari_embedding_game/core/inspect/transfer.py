"""Transfer labels of fitted rows to new rows by a vote of the nearest fitted rows.

The K nearest fitted rows vote with weights exp(-2 d^2 / d_K^2); the share of the label
with the most votes is the confidence.  Confidence measures the agreement of the
neighbours, not their similarity to the row, for which see
:func:`compute_share_at_least_as_high`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def vote_weights(distances: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return the weight of each neighbour's vote, (Q, K); each row sums to 1.

    ``distances`` (Q, K): distances to the neighbours, nearest first.  Weights are equal
    where all distances of a row are 0.
    """
    farthest = np.where(distances[:, -1:] > 0, distances[:, -1:], 1.0)
    weights = np.exp(-2 * (distances.astype(np.float64) / farthest) ** 2)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def vote_labels(
    codes: NDArray[np.integer], weights: NDArray[np.floating]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return each row's label with the most votes, and its share of votes, (Q,) each.

    ``codes`` (Q, K): labels of the neighbours, -1 for a neighbour without a label,
    whose vote counts against every label; ``weights`` (Q, K).  Of labels with equal
    votes the lowest code wins.  The label is -1 where no neighbour has a label.
    """
    rows = np.arange(len(codes))
    # Neighbours without a label vote for the last column, which cannot win.
    votes = np.zeros((len(codes), int(codes.max(initial=-1)) + 2))
    for neighbor, weight in zip(codes.T, weights.T, strict=True):
        votes[rows, neighbor] += weight
    votes[:, -1] = 0
    winners = votes.argmax(axis=1)
    confidence = votes[rows, winners]
    return np.where(confidence > 0, winners, -1), confidence


def compute_share_at_least_as_high(
    scores: NDArray[np.floating], reference: NDArray[np.floating]
) -> NDArray[np.float64]:
    """Return the share of reference scores that are at least as high as scores, (Q,).

    One is added to both numbers, (1 + number at least as high) / (1 + number of
    reference scores), so that the share is never 0.  ``scores`` (Q,); ``reference``
    (n,).  A row similar to the reference has a share below 0.01 once in a hundred
    times.
    """
    ascending = np.sort(np.asarray(reference))
    higher = len(ascending) - np.searchsorted(ascending, scores, side="left")
    return np.asarray((1 + higher) / (1 + len(ascending)), np.float64)
