"""Labels of new rows by those of the fitted rows around them.

The K nearest fitted rows vote, each with exp(-2 d^2 / d_K^2); the share of the label
with the most votes is the confidence.  It measures the agreement of the neighbours, not
their similarity to the row: see :func:`tail_share`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def vote_weights(distances: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return what the votes of neighbours count, (Q, K); a row sums to 1."""
    farthest = np.where(distances[:, -1:] > 0, distances[:, -1:], 1.0)
    weights = np.exp(-2 * (distances.astype(np.float64) / farthest) ** 2)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def vote(
    codes: NDArray[np.integer], weights: NDArray[np.floating]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the label of each row with the most votes, and its share, (Q,) each.

    ``codes`` (Q, K): -1 for a neighbour without a label, which counts as being against.
    Of equals the lowest code wins; -1 where no neighbour has a label.
    """
    rows = np.arange(len(codes))
    # Those without a label vote for the last column, which does not win.
    votes = np.zeros((len(codes), int(codes.max(initial=-1)) + 2))
    for neighbor, weight in zip(codes.T, weights.T, strict=True):
        votes[rows, neighbor] += weight
    votes[:, -1] = 0
    winners = votes.argmax(axis=1)
    confidence = votes[rows, winners]
    return np.where(confidence > 0, winners, -1), confidence


def tail_share(
    scores: NDArray[np.floating], reference: NDArray[np.floating]
) -> NDArray[np.float64]:
    """Return the share of reference scores that are at least as high, (Q,), 0 to 1.

    A row like those of the reference has a share below 0.01 once in a hundred times:
    (1 + number at least as high) / (1 + number of the reference), which is never 0.
    """
    ascending = np.sort(np.asarray(reference))
    higher = len(ascending) - np.searchsorted(ascending, scores, side="left")
    return np.asarray((1 + higher) / (1 + len(ascending)), np.float64)
