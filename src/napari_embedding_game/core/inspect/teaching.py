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
    """Balanced accuracy by stratified cross-validation; None for a class of one."""
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

    The classes count alike.  The penalty is the one with the least cross-validated log
    loss; what is scored had no part in choosing it.  Yields the share that is done.

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
    model = _fitted(examples, codes, random_state)
    n_folds = int(min(MOST_FOLDS, counts.min()))
    score, spread, recalls = None, float("nan"), np.zeros(0)
    if n_folds > 1:
        told, known = np.empty_like(codes), None
        if len(rows) > MOST_SCORED:
            known = model.C
        folds = _folds(n_folds, random_state).split(codes, codes)
        for place, (train, test) in enumerate(folds):
            yield 0.8 * (place + 1) / (n_folds + 1)
            some = _fitted(examples[train], codes[train], random_state, known)
            told[test] = some.predict(examples[test])
        recalls = np.atleast_1d(recall_score(codes, told, average=None))
        score, spread = float(recalls.mean()), _standard_error(recalls, counts)
    all_codes = np.empty(X.shape[0], np.intp)
    confidence = np.empty(X.shape[0], np.float32)
    for first in range(0, X.shape[0], BLOCK):
        yield 0.8 + 0.2 * first / X.shape[0]
        block = slice(first, first + BLOCK)
        shares = model.predict_proba(scaler(X[block]))
        all_codes[block] = shares.argmax(axis=1)
        confidence[block] = shares.max(axis=1)
    all_codes[rows] = codes
    return Learned(all_codes, confidence, counts, score, spread, tuple(recalls))


def _scaled(X: Any, rows: NDArray[np.integer], *, is_scaled: bool) -> tuple[Any, Any]:
    """Return the scaled examples, and what scales other rows in the same way."""
    from sklearn.preprocessing import StandardScaler

    is_sparse = sp.issparse(X)
    scaler = StandardScaler(with_mean=not is_sparse).fit(X)
    if is_scaled and not is_sparse:  # one unit for all
        scaler.scale_[:] = np.sqrt(scaler.var_.max()) or 1.0
    return scaler.transform(X[rows]), scaler.transform


def _folds(n_folds: int, random_state: int) -> Any:
    from sklearn.model_selection import StratifiedKFold

    return StratifiedKFold(n_folds, shuffle=True, random_state=random_state)


def _fitted(
    X: Any, codes: NDArray[np.integer], random_state: int, penalty: float | None = None
) -> Any:
    """Return a fitted classifier with a given penalty, or the best one."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV

    counts = np.bincount(codes)
    model = LogisticRegression(
        C=penalty or 1.0,
        class_weight="balanced",
        max_iter=MAX_ITER,
        # Few steps, each with a matrix of all weights squared.
        solver="newton-cholesky"
        if X.shape[1] * len(counts) <= MOST_WEIGHTS
        else "lbfgs",
    )
    n_folds = int(min(MOST_INNER_FOLDS, counts.min()))
    if penalty is not None or n_folds < 2:
        return model.fit(X, codes)
    search = GridSearchCV(
        *(model, {"C": PENALTIES}),
        scoring=_balanced_log_loss,
        cv=_folds(n_folds, random_state),
    )
    return search.fit(X, codes).best_estimator_


def _balanced_log_loss(model: Any, X: Any, codes: NDArray[np.integer]) -> float:
    """Return minus the log loss, in which classes count alike."""
    from sklearn.metrics import log_loss

    weights = 1 / np.bincount(codes)[codes]
    shares = model.predict_proba(X)
    return -float(log_loss(codes, shares, sample_weight=weights, labels=model.classes_))


def _standard_error(
    recalls: NDArray[np.floating], counts: NDArray[np.integer]
) -> float:
    """Return the standard error of the mean recall, under a flat prior."""
    right = 1 + recalls * counts
    share = right / (counts + 2)
    return float(np.sqrt((share * (1 - share) / (counts + 3)).sum()) / len(counts))
