"""Recognise raw counts, for which the scanpy recipe is offered."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

_SAMPLED_ROWS = 2000
_MIN_GENES = 100
"""Raw counts of fewer genes than these can be mapped as they are."""


def looks_like_counts(source: Any) -> bool:
    """Return whether a matrix holds raw counts: whole numbers from 0, some above 1.

    `source` is a matrix, or an AnnData or :class:`~.dataset.Dataset` whose ``X`` is
    inspected. A matrix of fewer than 100 genes, of distances, or None, is never taken
    for counts; of a larger one 2,000 evenly spaced rows are inspected.
    """
    if getattr(source, "is_distances", False):
        return False
    X = getattr(source, "X", source)
    return X is not None and X.shape[1] >= _MIN_GENES and are_counts(X)


def are_counts(X: Any) -> bool:
    """Return whether values are whole numbers from 0, some above 1.

    `X` is a matrix of any width, of which some 2,000 evenly spaced rows are inspected,
    or a vector of values. False for other types than numbers.
    """
    if X.dtype.kind not in "buif":
        return False
    step = max(1, X.shape[0] // _SAMPLED_ROWS)
    if sp.issparse(X):
        X = sp.csr_matrix(X)[::step].data
    values = np.asarray(X if X.ndim == 1 else X[::step])
    if not values.size or values.max() <= 1:
        return False
    return bool(np.all(values >= 0) and np.all(values == np.round(values)))
