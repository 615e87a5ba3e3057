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
    scaler = _scaler(X, is_scaled)
    examples = scaler.transform(X[rows])
    model = _fitted(examples, codes, random_state)
    score, spread, recalls = None, float("nan"), np.zeros(0)
    if counts.min() > 1:
        told, known = np.empty_like(codes), model.C if len(rows) > MOST_SCORED else None
        folds = list(_folds(MOST_FOLDS, codes, random_state).split(codes, codes))
        for place, (train, test) in enumerate(folds, 1):
            yield 0.8 * place / (len(folds) + 1)
            some = _fitted(examples[train], codes[train], random_state, known)
            told[test] = some.predict(examples[test])
        recalls = np.atleast_1d(recall_score(codes, told, average=None))
        # The standard error of the mean recall, under a flat prior.
        share = (1 + recalls * counts) / (counts + 2)
        score = float(recalls.mean())
        spread = float(
            np.sqrt((share * (1 - share) / (counts + 3)).sum()) / len(counts)
        )
    all_codes = np.empty(X.shape[0], np.intp)
    confidence = np.empty(X.shape[0], np.float32)
    for first in range(0, X.shape[0], BLOCK):
        yield 0.8 + 0.2 * first / X.shape[0]
        block = slice(first, first + BLOCK)
        shares = model.predict_proba(scaler.transform(X[block]))
        all_codes[block] = shares.argmax(axis=1)
        confidence[block] = shares.max(axis=1)
    all_codes[rows] = codes
    return Learned(all_codes, confidence, counts, score, spread, tuple(recalls))


def _scaler(X: Any, is_scaled: bool) -> Any:
    """Return what scales rows: each column alone, or all by one unit."""
    from sklearn.preprocessing import StandardScaler

    is_sparse = sp.issparse(X)
    scaler = StandardScaler(with_mean=not is_sparse).fit(X)
    if is_scaled and not is_sparse:
        scaler.scale_[:] = np.sqrt(scaler.var_.max()) or 1.0
    return scaler


def _folds(most: int, codes: NDArray[np.integer], random_state: int) -> Any:
    """Return folds of which each has every class: as many as the rarest one allows."""
    from sklearn.model_selection import StratifiedKFold

    n_folds = int(min(most, np.bincount(codes).min()))
    return StratifiedKFold(n_folds, shuffle=True, random_state=random_state)


def _fitted(
    X: Any, codes: NDArray[np.integer], random_state: int, penalty: float | None = None
) -> Any:
    """Return a fitted classifier with a given penalty, or the best one."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV

    counts = np.bincount(codes)
    is_small = X.shape[1] * len(counts) <= MOST_WEIGHTS
    model = LogisticRegression(
        C=penalty or 1.0,
        class_weight="balanced",
        max_iter=MAX_ITER,
        # Few steps, each with a matrix of all weights squared.
        solver="newton-cholesky" if is_small else "lbfgs",
    )
    if penalty is not None or counts.min() < 2:
        return model.fit(X, codes)
    folds = _folds(MOST_INNER_FOLDS, codes, random_state)
    search = GridSearchCV(model, {"C": PENALTIES}, scoring=_log_loss, cv=folds)
    return search.fit(X, codes).best_estimator_


def _log_loss(model: Any, X: Any, codes: NDArray[np.integer]) -> float:
    """Return minus the log loss, in which classes count alike."""
    from sklearn.metrics import log_loss

    weights = 1 / np.bincount(codes)[codes]
    shares = model.predict_proba(X)
    return -float(log_loss(codes, shares, sample_weight=weights, labels=model.classes_))
