"""Learn classes from a few examples, and tell how well they can be told apart."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from napari_embedding_game.core.errors import InputError

MOST_FOLDS, MOST_INNER_FOLDS = 5, 3
PENALTIES = (0.03, 0.3, 3.0)
"""Inverse strengths of the penalty of which one is chosen, as scikit-learn's ``C``."""
MOST_SCORED = 5000
"""Examples above which the penalty is not chosen anew in each fold."""
MAX_ITER = 2000
MOST_WEIGHTS = 200
"""Columns times classes up to which Newton's method is the fastest."""
BLOCK = 100_000
"""Rows that are classified at once."""


@dataclass(frozen=True, eq=False)
class Learned:
    """The class of every row, and how far it can be believed."""

    codes: NDArray[np.intp]
    """(N,) class of each row; examples keep theirs."""
    confidence: NDArray[np.float32]
    """(N,) probability of that class by the classifier, also of examples."""
    counts: NDArray[np.intp]
    """(K,) examples of each class."""
    score: float | None
    """Balanced accuracy (mean recall of the classes) of examples that were left out by
    stratified cross-validation; None where a class has a single one."""
    spread: float
    """Standard error of the score that comes from the number of examples."""
    recalls: tuple[float, ...] = ()
    """(K,) share of each class's examples that are told right when left out."""

    @property
    def n_examples(self) -> int:
        """Examples of all classes."""
        return int(self.counts.sum())


def learn(
    X: Any,
    rows: NDArray[np.integer],
    codes: NDArray[np.integer],
    *,
    is_scaled: bool = False,
    random_state: int = 0,
) -> Generator[float, None, Learned]:
    """Classify all rows by logistic regression on examples.

    The classes count alike, however many examples they have.  The penalty is the one
    with the least cross-validated log loss, so that probabilities can be believed; what
    is scored had no part in choosing it.

    Parameters
    ----------
    X : ndarray or sparse matrix, shape (N, D)
    rows : (n,) int
        The examples, each once.
    codes : (n,) int
        Class of each example, 0 to K - 1; every class has one at least.
    is_scaled : bool
        Whether the columns have a common unit, as principal components do: else each
        is standardised by the mean and the standard deviation of all rows.
    random_state : int
        Seed of the folds.

    Yields
    ------
    float
        Share that is done.

    Raises
    ------
    InputError
        If there are fewer than two classes.
    """
    from sklearn.metrics import recall_score

    rows, codes = np.asarray(rows), np.asarray(codes)
    counts = np.bincount(codes)
    if len(counts) < 2:
        raise InputError("Sort examples into two boxes at least: there is one class.")
    yield 0.0
    examples, scaler = _scaled(X, rows, is_scaled=is_scaled)
    n_folds = int(min(MOST_FOLDS, counts.min()))
    score, spread, recalls = None, float("nan"), np.zeros(0)
    if n_folds > 1:
        told = np.empty_like(codes)
        folds = _folds(n_folds, random_state)
        fixed = None
        if len(rows) > MOST_SCORED:
            fixed = _penalty(examples, codes, random_state)
        for place, (train, test) in enumerate(folds.split(codes, codes)):
            yield 0.8 * place / n_folds
            model = _fitted(examples[train], codes[train], random_state, fixed)
            told[test] = model.predict(examples[test])
        recalls = np.atleast_1d(recall_score(codes, told, average=None))
        score, spread = float(recalls.mean()), _standard_error(recalls, counts)
    yield 0.8
    model = _fitted(examples, codes, random_state)
    all_codes = np.empty(X.shape[0], np.intp)
    confidence = np.empty(X.shape[0], np.float32)
    for first in range(0, X.shape[0], BLOCK):
        block = slice(first, first + BLOCK)
        shares = model.predict_proba(scaler(X[block]))
        all_codes[block] = shares.argmax(axis=1)
        confidence[block] = shares.max(axis=1)
        yield 0.8 + 0.2 * first / X.shape[0]
    all_codes[rows] = codes
    return Learned(all_codes, confidence, counts, score, spread, tuple(recalls))


def _scaled(X: Any, rows: NDArray[np.integer], *, is_scaled: bool) -> tuple[Any, Any]:
    """Return the scaled examples, and what scales other rows in the same way."""
    from sklearn.preprocessing import StandardScaler

    if is_scaled and not sp.issparse(X):
        middle = X.mean(axis=0)
        unit = float(np.sqrt(X.var(axis=0).max())) or 1.0
        return (X[rows] - middle) / unit, lambda block: (block - middle) / unit
    scaler = StandardScaler(with_mean=not sp.issparse(X)).fit(X)
    return scaler.transform(X[rows]), scaler.transform


def _folds(n_folds: int, random_state: int) -> Any:
    from sklearn.model_selection import StratifiedKFold

    return StratifiedKFold(n_folds, shuffle=True, random_state=random_state)


def _fitted(
    X: Any, codes: NDArray[np.integer], random_state: int, penalty: float | None = None
) -> Any:
    """Return a fitted classifier with a given penalty, or the best one."""
    if penalty is None:
        penalty = _penalty(X, codes, random_state)
    n_weights = X.shape[1] * (int(codes.max()) + 1)
    return _classifier(penalty, n_weights).fit(X, codes)


def _classifier(penalty: float, n_weights: int) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(
        C=penalty,
        class_weight="balanced",
        max_iter=MAX_ITER,
        # Few steps, each with a matrix of all weights squared.
        solver="newton-cholesky" if n_weights <= MOST_WEIGHTS else "lbfgs",
    )


def _penalty(X: Any, codes: NDArray[np.integer], random_state: int) -> float:
    """Return the penalty with the least cross-validated log loss."""
    n_folds = int(min(MOST_INNER_FOLDS, np.bincount(codes).min()))
    if n_folds < 2:
        return 1.0
    losses = np.zeros(len(PENALTIES))
    weights = 1 / np.bincount(codes)[codes]
    for train, test in _folds(n_folds, random_state).split(codes, codes):
        for place, penalty in enumerate(PENALTIES):
            model = _fitted(X[train], codes[train], random_state, penalty)
            shares = model.predict_proba(X[test])
            right = shares[np.arange(len(test)), codes[test]]
            losses[place] -= weights[test] @ np.log(np.maximum(right, 1e-9))
    return PENALTIES[int(losses.argmin())]


def _standard_error(
    recalls: NDArray[np.floating], counts: NDArray[np.integer]
) -> float:
    """Return the standard error of the mean recall.

    Each recall is a share of few examples: its posterior under a flat prior has a
    spread even where all of them are told right.
    """
    right = 1 + recalls * counts
    share = right / (counts + 2)
    return float(np.sqrt((share * (1 - share) / (counts + 3)).sum()) / len(counts))
