"""The log-concave histogram that is closest to counts, and where it lacks rows.

The logarithm of a log-concave density is concave: Gaussian, exponential, gamma and
uniform densities are log-concave, and so is every projection of a log-concave density
and every part that is cut out of one by an interval (Prékopa 1973).
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

_STEPS, _GAIN, _LEAST = 20, 1e-7, 1e-8
"""Of Newton's method: how many, the gain in likelihood below which it ends, and the
weight of an empty bin."""

FloatArray = NDArray[np.float64]


class EmptiestInterval(NamedTuple):
    """How many rows the emptiest interval of bins lacks, next to the expected rows."""

    evidence: float
    """Logarithm of the likelihood ratio (Poisson) of counts to expected counts."""
    missing: float
    """Share of the expected rows that are not there, 0 to 1."""


def fit_log_concave(counts: NDArray[np.integer]) -> FloatArray:
    """Return the log-concave probabilities (m,) of bins that fit counts best.

    They maximise the likelihood of ``counts`` (m,), the rows in bins of equal width,
    and sum to 1.  Newton's method is used, with ``_STEPS`` steps at most.  Each step
    fits a concave function, a line less hinges of weights above 0, by non-negative
    least squares.
    """
    shares = counts / counts.sum()
    basis, places = _build_concave_basis(len(counts)), np.arange(len(counts))
    mean = places @ shares
    spread = max(np.sqrt((places - mean) ** 2 @ shares), 0.5)
    logs = -0.5 * ((places - mean) / spread) ** 2
    logs = np.maximum(logs - np.log(np.exp(logs).sum()), -30)
    cost = np.exp(logs).sum() - shares @ logs
    for _ in range(_STEPS):
        weights = np.exp(logs) + _LEAST
        target, root = logs + (shares - np.exp(logs)) / weights, np.sqrt(weights)
        solution, _ = nnls(basis * root[:, None], target * root, maxiter=3000)
        step, length = basis @ solution - logs, 1.0
        while True:
            new_logs = logs + length * step
            new_cost = np.exp(np.minimum(new_logs, 50)).sum() - shares @ new_logs
            if new_cost <= cost or length < 1e-3:
                break
            length /= 2
        gain, logs, cost = cost - new_cost, new_logs, new_cost
        if gain < _GAIN:
            break
    fitted: FloatArray = np.exp(logs) / np.exp(logs).sum()
    return fitted


def find_emptiest_interval(
    counts: NDArray[np.integer] | FloatArray,
    expected: FloatArray,
    begin: int,
    end: int,
    border: int | None = None,
) -> EmptiestInterval:
    """Return the evidence and missing share of the interval that lacks most rows.

    Intervals of bins lie between the edges ``begin`` and ``end``, 0 to m, and contain
    the edge ``border`` if it is given; that of the greatest evidence is taken.
    ``counts``, ``expected`` (m,): rows in each bin.  Evidence and share are 0 where no
    interval has fewer rows than expected.
    """
    sums = [np.concatenate([[0.0], np.cumsum(x)]) for x in (counts, expected)]
    firsts = np.arange(begin, (end if border is None else border) + 1)[:, None]
    lasts = np.arange(begin if border is None else border, end + 1)
    found, wanted = (each[lasts] - each[firsts] for each in sums)
    is_missing = (lasts > firsts) & (found < wanted)
    ratio = np.divide(found, wanted, np.ones_like(wanted), where=is_missing)
    logs = np.log(ratio, np.zeros_like(ratio), where=ratio > 0)
    evidence = np.where(is_missing, wanted - found + found * logs, 0.0)
    best = evidence.argmax()
    return EmptiestInterval(float(evidence.flat[best]), float(1 - ratio.flat[best]))


@cache
def _build_concave_basis(n_bins: int) -> FloatArray:
    """Return functions (m, m + 2) whose sums with weights above 0 are concave.

    They are a constant and a line, each with both signs, and a hinge at each inner bin.
    """
    x = np.linspace(-1, 1, n_bins)[:, None]
    hinges = -np.maximum(x - x[1:-1].T, 0)
    return np.hstack([np.ones_like(x), -np.ones_like(x), x, -x, hinges])
