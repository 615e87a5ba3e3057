"""The embedding game as a scikit-learn estimator."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from napari_embedding_game.core.compatibility import check_affinity
from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.family import member, n_searched, per_point, resolve
from napari_embedding_game.core.names import (
    AFFINITIES,
    Approximation,
    Init,
    OptimizerName,
    ScheduleName,
    Update,
)
from napari_embedding_game.core.types import GameSettings, Snapshot, StartSettings


class EmbeddingGame(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Map rows to 1, 2 or 3 dimensions by a game of points against landmarks.

    Points run towards their neighbours and away from landmarks; landmarks chase
    the points and flee one another.  The landmarks end up tiling the data, so
    the nearest landmark of a point is its cluster.

    Parameters
    ----------
    n_components : int, default=2
        Dimensions of the map, 1, 2 or 3.
    n_neighbors : int, default=15
        K, neighbours that attract each point.
    n_landmarks : int, default=200
        L; more of them than rows are not used.
    repulsion : float or "auto", default="auto"
        The lambda of the method's energy; "auto" is the method's own, for the
        game 300 / N.  Where the method has no lambda (s-SNE, t-SNE, two-kernel
        PCA, UMAP), a factor on its repulsion.
    affinity : str, default="auto"
        Edge weights: all 1 as in the game's paper ("uniform"), UMAP's ("fuzzy"),
        a mixture of both ("mixed"), t-SNE's ("entropic") or signed ("lle"), or
        PCA's, which only PCA has ("inner_products");
        "auto" is the method's own, for the game "mixed": see :mod:`affinities`.
    schedule : {"fast", "paper"}, default="fast"
        At most 500 iterations with momentum, or the paper's 6,000 without.
    max_iter : int, optional
        Iterations instead of the schedule's.
    learning_rate, landmark_learning_rate : float, optional
        Steps of the points and of the landmarks instead of the schedule's.
    momentum : float, optional
        Share of the last step that goes into the next, instead of the schedule's.
    update, landmark_update : {"momentum", "omd", "optimistic"}, default="momentum"
        How each player learns: see :class:`optimizer.PlayerRMS`.
    init : str, default="spectral"
        Where the points start: "spectral", "random", or a classical method, one of
        "pca", "gradient_pca", "random_projection", "le", "ale", "vrle", "isomap" and
        "lle".
    metric : str, default="euclidean"
        Any that scikit-learn's brute search or pynndescent knows by name, for dense
        or for sparse rows as these are.
    device : str, default="auto"
        "auto", "cpu", "cuda" or "mps".
    n_jobs : int, optional
        Threads; the result does not depend on it.
    random_state : int, RandomState or None, default=None
        None draws a seed; the seed used is kept in ``random_state_``.
    method : str, default="game"
        Any of :data:`family.MEMBERS`: "game", "ee", "ssne", "tsne", "umap",
        "umap_exact", "two_kernel_lle", "two_kernel_pca", "pca", "pca_low_rank";
        with the extra ``peers`` "umap_learn" and "opentsne".
    approximation : str, optional
        How the repulsion of all pairs is found: by "landmarks" (Eq. 3), "sampled_edges"
        (Eq. 8), "sampled_landmarks" (Eq. 9) or "exact"; None is the method's own, and
        "exact" under a minimiser.
    optimizer : str, default="game"
        Who moves the points: "game", their own steps, or a minimiser over all pairs,
        "spectral_direction", "lbfgs", "homotopy" or "pressured_points", for some
        thousand rows: see :mod:`descents`.  ``max_iter`` is then the most steps.
    perplexity : float, default=30.0
        For entropic edges: how many neighbours count, softly.  Three times as
        many are looked at, whatever ``n_neighbors`` is.

    Attributes
    ----------
    embedding_ : (N, d) float32
    landmarks_ : (L, d) float32
    labels_ : (N,) int32
        Index of each row's nearest landmark (Eq. 7).
    pressure_ : (N,) float32
        How badly each point is stuck, in units of the map; 0 is not at all.  All 0
        for PCA, which has no kernel and so no pressure.
    energy_ : float
        The energy that the method minimises; for the game the bound of Eq. 3.
    repulsion_ : float
        The value of ``repulsion`` that was used: given again, it stands for the same.
    affinity_ : str
        The edge weights that were used.
    n_iter_ : int
        Under a minimiser, with those in which the landmarks settle at the end.
    n_features_in_ : int
    random_state_ : int

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> EmbeddingGame(random_state=0).fit_transform(X).shape
    (1797, 2)
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        n_neighbors: int = 15,
        n_landmarks: int = 200,
        repulsion: float | str = "auto",
        affinity: str = "auto",
        schedule: ScheduleName = "fast",
        max_iter: int | None = None,
        learning_rate: float | None = None,
        landmark_learning_rate: float | None = None,
        momentum: float | None = None,
        init: Init = "spectral",
        metric: str = "euclidean",
        device: str = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
        method: str = "game",
        approximation: Approximation | None = None,
        optimizer: OptimizerName = "game",
        perplexity: float = 30.0,
        update: Update = "momentum",
        landmark_update: Update = "momentum",
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.n_landmarks = n_landmarks
        self.repulsion = repulsion
        self.affinity = affinity
        self.schedule = schedule
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.landmark_learning_rate = landmark_learning_rate
        self.momentum = momentum
        self.init = init
        self.metric = metric
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.method = method
        self.approximation = approximation
        self.optimizer = optimizer
        self.perplexity = perplexity
        self.update = update
        self.landmark_update = landmark_update

    def fit(self, X: Any, y: Any = None) -> EmbeddingGame:
        """Find the map of ``X``, an (N, D) array or sparse matrix; ``y`` is not used.

        Raises
        ------
        InputError
            Too few rows, constant data, or a setting out of range.
        ValueError
            NaN, infinities, or text where numbers belong.
        """
        for snapshot in self._snapshots(X, diagnose=False):
            if snapshot.finished:
                self._keep(snapshot)
        return self

    def fit_transform(
        self, X: Any, y: Any = None, **params: Any
    ) -> NDArray[np.float32]:
        """Return the map of ``X``, (N, d) float32."""
        return self.fit(X).embedding_

    def iter_fit(self, X: Any) -> Iterator[Snapshot]:
        """Yield snapshots while the map forms; each is also kept as the result.

        Stop iterating at any time: the attributes hold the last snapshot.
        """
        for snapshot in self._snapshots(X, diagnose=True):
            self._keep(snapshot)
            yield snapshot
            if snapshot.finished:
                return

    def _snapshots(self, X: Any, diagnose: bool) -> Iterator[Snapshot]:
        from napari_embedding_game.core import steps

        X = validate_data(
            self,
            X,
            accept_sparse="csr",
            dtype=[np.float32, np.float64],
            ensure_min_samples=2,
        )
        n_rows = X.shape[0]
        self.random_state_ = self._seed()
        start = self._start(n_rows, self.random_state_)
        self.repulsion_ = self._repulsion(n_rows)
        self.affinity_ = start.affinity
        graph = steps.neighbors(X, start)
        weighted, layout = steps.place(graph, X, start)
        settings = self._settings(n_rows)
        yield from steps.begin(weighted, layout, start, settings, diagnose=diagnose)

    def _start(self, n_rows: int, seed: int) -> StartSettings:
        affinity: Any = self.affinity
        if affinity != "auto" and affinity not in AFFINITIES:
            raise InputError(
                f'affinity must be "auto" or one of {AFFINITIES}, not {affinity!r}.'
            )
        start = StartSettings(
            n_components=self.n_components,
            n_neighbors=self.n_neighbors,
            metric=self.metric,
            affinity=affinity,
            perplexity=self.perplexity,
            init=self.init,
            random_state=seed,
            device=self.device,
            n_jobs=self.n_jobs,
        )
        start = resolve(start, self.method)
        check_affinity(self.method, start.affinity, self.optimizer)
        return replace(start, n_neighbors=self._n_neighbors(start.affinity, n_rows))

    def _n_neighbors(self, affinity: str, n_rows: int) -> int:
        wanted = n_searched(affinity, self.n_neighbors, self.perplexity, n_rows)
        if wanted < n_rows:
            return wanted
        warnings.warn(
            f"n_neighbors={wanted} needs at least {wanted + 1} "
            f"rows; with {n_rows} rows, {n_rows - 1} neighbours are used.",
            UserWarning,
            stacklevel=5,
        )
        return n_rows - 1

    def _settings(self, n_rows: int) -> GameSettings:
        is_own = isinstance(self.repulsion, str)
        return GameSettings(
            method=self.method,
            approximation=self.approximation,
            optimizer=self.optimizer,
            strength=None if is_own else self.repulsion_ * self._unit(n_rows),
            n_landmarks=self.n_landmarks,
            learning_rate=self.learning_rate,
            landmark_learning_rate=self.landmark_learning_rate,
            momentum=self.momentum,
            update=self.update,
            landmark_update=self.landmark_update,
            schedule=self.schedule,
            max_iter=self.max_iter,
        )

    def _repulsion(self, n_rows: int) -> float:
        given = self.repulsion
        if isinstance(given, str) and given == "auto":
            return member(self.method).strength / self._unit(n_rows)
        if isinstance(given, Real) and 0 < given < math.inf:
            return float(given)
        raise InputError(
            f'repulsion must be a number above 0 or "auto", not {given!r}.'
        )

    def _unit(self, n_rows: int) -> int:
        """Return the strength that a ``repulsion`` of 1 stands for."""
        return n_rows if member(self.method).unit is per_point else 1

    def _seed(self) -> int:
        if isinstance(self.random_state, (int, np.integer)):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _keep(self, snapshot: Snapshot) -> None:
        self.embedding_ = snapshot.embedding
        self.landmarks_ = snapshot.landmarks
        self.labels_ = snapshot.labels
        self.pressure_ = snapshot.pressure
        self.energy_ = snapshot.energy
        self.n_iter_ = snapshot.iteration

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
