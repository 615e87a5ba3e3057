"""Classify rows from a few examples, and estimate the accuracy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from napari_embedding_game.core.errors import InputError

MAX_FOLDS, MAX_ITER = 5, 2000
PENALTIES = (0.03, 0.3, 3.0)
"""Inverse strengths of the penalty (scikit-learn's ``C``) that are tried."""
MAX_WEIGHTS = 200
"""Largest number of columns times classes for which Newton's method is the fastest."""


@dataclass(frozen=True, eq=False)
class Classification:
    """The class of every row, with its probability and the estimated accuracy."""

    codes: NDArray[np.intp]
    """(N,) class of each row; examples keep their class."""
    confidence: NDArray[np.float32]
    """(N,) probability of the class by the classifier, also for examples."""
    counts: NDArray[np.intp]
    """(K,) number of examples of each class."""
    score: float | None
    """Balanced accuracy by stratified cross-validation; None if a class has 1 example.

    The penalty is chosen on the same folds, which flatters the score a little.
    """
    spread: float
    """Standard error of the score, from the number of examples."""
    recalls: tuple[float, ...] = ()
    """(K,) share of each class's examples predicted correctly when left out."""

    @property
    def n_examples(self) -> int:
        """Number of examples of all classes."""
        return int(self.counts.sum())


# OpenBLAS may set this flag for lanes that it does not use (numpy issue 24067).
@np.errstate(invalid="ignore")
def classify_rows(
    X: Any,
    rows: NDArray[np.integer],
    codes: NDArray[np.integer],
    is_scaled: bool = False,
) -> Classification:
    """Classify all rows by logistic regression on examples, with balanced classes.

    The penalty with the smallest cross-validated log loss is used.  Where a class has a
    single example nothing is cross-validated: the penalty is scikit-learn's default,
    the score None, its spread NaN and recalls are ().

    Parameters
    ----------
    X
        (N, D) array or sparse matrix of all rows.
    rows
        (n,) row numbers of the examples, each once.
    codes
        (n,) classes of the examples, from 0 to K - 1, each with an example.
    is_scaled
        Whether the columns have a common unit, as principal components do: then all
        are divided by the largest standard deviation.  Otherwise each column is
        standardised by the mean and standard deviation of all rows.  The columns of a
        sparse matrix are always divided by their own standard deviation, not centred.

    Raises
    ------
    InputError
        There are fewer than two classes.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import recall_score
    from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_predict
    from sklearn.preprocessing import StandardScaler

    rows, codes = np.asarray(rows), np.asarray(codes)
    counts = np.bincount(codes)
    if len(counts) < 2:
        raise InputError("Give examples of two classes at least: there is one class.")
    scaler = StandardScaler(with_mean=not sp.issparse(X)).fit(X)
    if is_scaled and not sp.issparse(X):  # a common unit for all columns
        scaler.scale_[:] = np.sqrt(scaler.var_.max()) or 1.0
    examples = scaler.transform(X[rows])
    is_small = X.shape[1] * len(counts) <= MAX_WEIGHTS
    solver = "newton-cholesky" if is_small else "lbfgs"
    model = LogisticRegression(
        class_weight="balanced", max_iter=MAX_ITER, solver=solver
    )
    score, spread, recalls = None, float("nan"), np.zeros(0)
    if counts.min() > 1:
        n_folds = min(MAX_FOLDS, int(counts.min()))
        folds = StratifiedKFold(n_folds, shuffle=True, random_state=0)
        search = GridSearchCV(
            model,
            {"C": PENALTIES},
            scoring="neg_log_loss",
            cv=folds,
            refit=False,
            error_score="raise",  # or the search would skip penalties that fail
        )
        model.set_params(**search.fit(examples, codes).best_params_)
        predicted = cross_val_predict(model, examples, codes, cv=folds)
        recalls = np.atleast_1d(recall_score(codes, predicted, average=None))
        # The standard error of the mean recall, under a flat prior.
        share = (1 + recalls * counts) / (counts + 2)
        of_classes = share * (1 - share) / (counts + 3)
        score = float(recalls.mean())
        spread = float(np.sqrt(of_classes.sum()) / len(counts))
    shares = model.fit(examples, codes).predict_proba(scaler.transform(X))
    all_codes = shares.argmax(axis=1)
    all_codes[rows] = codes
    confidence = shares[np.arange(len(shares)), all_codes].astype(np.float32)
    return Classification(all_codes, confidence, counts, score, spread, tuple(recalls))
