"""The embedding game as a scikit-learn estimator.

:mod:`pipeline` has the steps of a fit, and where the seed enters.
``Settings.validate`` checks parameters; :meth:`EmbeddingGame._validate_rows`,
``neighbors.validate_row_count`` and ``precomputed.validate_distances`` check the data.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.utils import check_array, check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from napari_embedding_game.core.errors import (
    EmbeddingWarning,
    InputError,
    check_integer,
    describe_value,
)
from napari_embedding_game.core.interrupts import delay_interrupts
from napari_embedding_game.core.progress import yield_with_progress
from napari_embedding_game.core.settings import (
    NO_CHANGE,
    NO_STEERING,
    STEERABLE,
    Settings,
    fill_affinity,
    fill_approximation_by_size,
    is_game,
    lower_perplexity,
    resolve_n_neighbors,
    resolve_repulsion,
)
from napari_embedding_game.core.snapshot import Snapshot, Steer
from napari_embedding_game.sparse_structure import validate_sparse

if TYPE_CHECKING:
    from napari_embedding_game.core.dynamics.play import Playing
    from napari_embedding_game.core.graph.edges import Edges
    from napari_embedding_game.core.live_run import Run
    from napari_embedding_game.core.new_rows.transform import FittedMap

Steering = Sequence[tuple[int, Mapping[str, Any]]]
"""Pairs of an iteration and a dict of the parameters that change at this iteration."""
_SETTING_NAMES = tuple(each.name for each in fields(Settings))
_FARTHEST = 1e6
"""Largest coordinate of an ``init`` array: forces vanish at larger distances."""

Callback = Callable[[int, float, NDArray[np.float32]], Any]
"""Takes the iteration, the energy and a copy of the map; a true result ends the fit."""


def to_parameters(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of :class:`EmbeddingGame` that make these settings.

    Settings that are no parameter of the estimator are put into ``method_params``,
    unless they have their default; names that are no setting are left out.
    """
    parameters, default = EmbeddingGame().get_params(deep=False), Settings()
    given = {name: settings[name] for name in settings if name in parameters}
    others = [
        name for name in _SETTING_NAMES if name in settings and name not in parameters
    ]
    more = {n: settings[n] for n in others if settings[n] != getattr(default, n)}
    return {**given, "method_params": more} if more else given


def collect_fitted_parameters(model: EmbeddingGame) -> dict[str, Any]:
    """Return a fitted model's parameters as one flat dict, with the values used.

    "auto", None and a random state are replaced by the values of the fit, a metric's
    function by its name; ``method_params`` are entries like the others.
    """
    given = model.get_params(deep=False)
    return {
        **given,
        **(given.pop("method_params") or {}),
        "random_state": model.random_state_,
        "repulsion": model.repulsion_,
        "affinity": model.affinity_,
        "metric": getattr(model.metric, "__name__", model.metric),
    }


def find_first_nonfinite(X: Any) -> tuple[int, int, int] | None:
    """Return row and column of the first NaN or infinity, and the number of such rows.

    Return None where all values are finite.  ``X``: an (N, D) array or sparse CSR
    matrix of floats.
    """
    values = X.data if sparse.issparse(X) else X
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum()):  # nearly always, and without an array of bools
            return None
    is_gap = ~np.isfinite(values)
    if not is_gap.any():
        return None
    if sparse.issparse(X):
        rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))[is_gap]
        columns = X.indices[is_gap]
    else:
        rows, columns = np.nonzero(is_gap)
    return int(rows[0]), int(columns[0]), len(np.unique(rows))


def place_rows_with_diagnostics(
    model: EmbeddingGame, X: Any
) -> tuple[NDArray[np.float32], ...]:
    """Return positions (Q, d), stretch (Q,) and isolation (Q,) of new rows ``X``.

    ``X`` (Q, D).  Raises InputError for NaN and infinities, ValueError for other
    columns.
    """
    rows = model._validate_rows(X, reset=False)
    placed: tuple[NDArray[np.float32], ...] = model._fitted.place_with_diagnostics(rows)
    return placed


def _supports_new_rows(model: EmbeddingGame) -> bool:
    """Return True, or raise InputError if the method or metric takes no new rows.

    :func:`available_if` then hides the estimator's method.
    """
    with delay_interrupts():
        from napari_embedding_game.core.new_rows.transform import validate_transform

    validate_transform(model.method, model.metric)
    if getattr(model, "_has_second_space", False):
        raise InputError(
            "New rows cannot be placed on a map of two spaces: fit without second_X."
        )
    return True


def _takes_more_rows(model: EmbeddingGame) -> bool:
    """Return True, or raise InputError if the method is no game or takes no new rows.

    :func:`available_if` then hides the estimator's method.
    """
    with delay_interrupts():
        from napari_embedding_game.core.addition import validate_takes_rows

    validate_takes_rows(Settings(method=model.method))
    return _supports_new_rows(model)


class EmbeddingGame(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    ClusterMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """Map rows to 1, 2 or 3 dimensions by a game of points against landmarks.

    Points are attracted by their neighbours and repelled by landmarks; landmarks are
    attracted by points and repelled by one another.  In the end the landmarks cover the
    data, and the cluster of a point is its nearest landmark.

    A fitted model keeps ``X``, which :meth:`transform` needs.

    Parameters
    ----------
    n_components : int, default=2
        Dimensions of the map, 1, 2 or 3.
    n_neighbors : int, default=15
        K, neighbours that attract each point.  Not used with the affinity "entropic",
        such as under "tsne", "ssne" and "ee": K is then 3 perplexities.
    perplexity : float, default=30.0
        How many similar rows attract each point with the affinity "entropic"; at most a
        third of the other rows, or fewer are used with a warning.
    n_landmarks : int, default=200
        L; more of them than rows are not used.
    repulsion : float, optional
        How strongly points repel one another: lambda x N of the method's energy, whose
        effect does not depend on the number of rows, or a factor where the method has
        no lambda.  None is the method's default, 300 for the game.
    max_iter : int, optional
        Number of iterations instead of the schedule's.
    learning_rate, landmark_learning_rate : float, optional
        Lengths of a step of points and of landmarks instead of the schedule's.
    init : str or (N, d) array, default="spectral"
        The points' start: "spectral", "random", or a classical method, "pca",
        "gradient_pca", "random_projection", "le", "ale" or "vrle".  An array, such as
        ``embedding_`` of a former fit, is used unchanged, in units of the map: kernels
        are about 1 wide, and computed starts have unit variance.
    affinity : str, default="auto"
        How the attraction of neighbours decreases with their distance: "mixed",
        "fuzzy", "uniform" or "entropic"; "auto" is the method's default.
    metric : str or callable, default="euclidean"
        The name of a metric of scikit-learn's brute search or pynndescent.  Or a
        function of two rows, compiled by ``numba.njit`` for more than 5,000 rows.  Or
        "precomputed": ``X`` are then distances (N, N), such as
        ``adata.obsp["distances"]`` of scanpy; the stored entries of a sparse matrix are
        the neighbours.
    n_jobs : int, optional
        Threads; the result does not depend on it.
    random_state : int, RandomState or None, default=None
        None chooses a random seed, stored in ``random_state_``.  The same seed gives
        the same map, bit for bit, with any number of threads and on any processor;
        ``docs/reproducibility.md`` lists the exceptions.
    method : str, default="game"
        Any of :data:`methods.METHODS`: "game", "ee", "ssne", "tsne", "umap",
        "umap_exact", "two_kernel_lle", "two_kernel_pca", "pca", "given" (the map that
        is the ``init``, centred and scaled); "ee" and "ssne" also with
        "_spectral_direction", "_homotopy" or "_pressured_points".
    n_clusters : int, optional
        Number of clusters that landmarks are merged into, at most the number of
        landmarks that have points: see :mod:`clusters`.  None: each landmark is a
        cluster.
    method_params : dict, optional
        Any other field of :class:`~napari_embedding_game.core.settings.Settings`:
        "approximation", "schedule", "momentum" or "device".
        See ``napari-embedding-game fit --help``.

    Attributes
    ----------
    embedding_ : (N, d) float32
    landmarks_ : (L, d) float32
    labels_ : (N,) int32
        Cluster of each row: the index of its nearest landmark (Eq. 7), or with
        ``n_clusters`` the cluster of that landmark.
    landmark_clusters_ : (L,) int32
        Cluster of each landmark; with ``n_clusters`` -1 for landmarks without rows.
    pressure_ : (N,) float32
        Height out of the plane at which each point's energy is least, in units of the
        map.  All NaN for methods that do not define pressure, and for more than 20,000
        rows unless landmarks repel the points.
    stretch_ : (N,) float32
        Distance of each point to its neighbours in the data, relative to the usual
        distance on this map (1): large where a position cannot be trusted.
    energy_ : float
        The energy that the method minimises; for the game the bound of Eq. 3.
    map_hash_ : str
        16 hexadecimal digits that identify the map on any machine with the same version
        of this program.
    affinity_matrix_ : (N, N) sparse matrix, float32
        The weights of the attraction, symmetric.
    knn_indices_, knn_distances_ : (N, K) int32, (N, K) float32
        Neighbours of each row in ``X``, nearest first, without the row itself.
    isolation_ : (N,) float32
        Distance of each row to its neighbours in the data, relative to the neighbours'
        distances to theirs: well above 1 for outliers, for which no position is right.
    repulsion_, affinity_, random_state_ : float, str, int
        The values that were used.
    n_iter_ : int
        Number of iterations, of the last :meth:`partial_fit` where rows were added; for
        minimisers including those that fit the landmarks.
    n_samples_seen_ : int
        Number of rows on the map, N.
    n_features_in_ : int
    feature_names_in_ : (D,) array of str
        Names of the columns, if ``X`` was a table whose columns all have names.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> EmbeddingGame(random_state=0).fit_transform(X).shape
    (1797, 2)

    New rows are placed on a map that does not change:

    >>> model = EmbeddingGame(random_state=0).fit(X[:1700])
    >>> model.transform(X[1700:]).shape
    (97, 2)

    Or they join the map, which then moves a little:

    >>> model.partial_fit(X[1700:]).embedding_.shape
    (1797, 2)
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        n_neighbors: int = 15,
        perplexity: float = 30.0,
        n_landmarks: int = 200,
        repulsion: float | None = None,
        learning_rate: float | None = None,
        landmark_learning_rate: float | None = None,
        max_iter: int | None = None,
        init: str | NDArray[np.floating] = "spectral",
        affinity: str = "auto",
        metric: str | Callable[..., float] = "euclidean",
        method: str = "game",
        n_clusters: int | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        method_params: Mapping[str, Any] | None = None,
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.perplexity = perplexity
        self.n_landmarks = n_landmarks
        self.repulsion = repulsion
        self.learning_rate = learning_rate
        self.landmark_learning_rate = landmark_learning_rate
        self.max_iter = max_iter
        self.init = init
        self.affinity = affinity
        self.metric = metric
        self.method = method
        self.n_clusters = n_clusters
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.method_params = method_params

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        verbose: bool = False,
        steering: Steering = (),
        stop_at: int | None = None,
        neighbors: tuple[Any, Any] | None = None,
        second_X: Any = None,
        callback: Callback | None = None,
        callback_every: int = 50,
    ) -> EmbeddingGame:
        """Compute the map of ``X``, an (N, D) array or sparse matrix.

        Ctrl-C ends the fit early with a warning, and the map of that moment is the fit;
        before the first map it raises KeyboardInterrupt.

        Parameters
        ----------
        X : (N, D) array or sparse matrix
        y : ignored
        verbose : bool, default=False
            Whether to show a progress bar.
        steering : sequence of (iteration, dict of parameters), optional
            Parameters that change during the run, as by the sliders of the window, such
            as ``[(120, {"repulsion": 700}), (300, {"n_landmarks": 80})]``; also both
            rates, momentum, method, approximation, schedule and max_iter.
        stop_at : int, optional
            Iteration after which the run ends before the end of its schedule.
        neighbors : (indices, distances), optional
            Neighbours of each row, (N, K) integers and (N, K) numbers, which replace
            the search; a row may be among its own neighbours.  The distances are of
            ``metric``, which :meth:`transform` uses for new rows.
        second_X : (N, E) array or sparse matrix, optional
            Rows of a second space, such as proteins, or the mean of the cells around
            each cell in tissue (:func:`.tissue.average_surroundings`); NaN where they
            are unknown.  Neighbours are near in both spaces:
            ``method_params={"second_share": 0.3}`` weighs the second one, from 0 to 1,
            by default 0.5, and ``steering`` changes it.  :mod:`.two_spaces` has the
            formula.  The metric is one of euclidean, cosine and correlation, and no
            new rows can be placed.
        callback : callable, optional
            Called as ``callback(iteration, energy, embedding)``; a true result ends the
            run, and the map of that moment is the fit.
        callback_every : int, default=50
            Iterations between two calls.

        Raises
        ------
        InputError
            Too few rows, constant data, NaN or infinities, or a setting out of range
            (checked before the neighbour search).  Or the run ended before an iteration
            of ``steering``; a former fit then stays.
        ValueError
            Text instead of numbers.

        Warns
        -----
        EmbeddingWarning
            The map represents the data badly: the points have collapsed, have run far
            apart, or were still moving.  Or the fit was ended early.
        """
        if verbose:
            print("Finding neighbours", file=sys.stderr)
        before = dict(vars(self))
        every = 0
        if callback is not None:
            every = check_integer("callback_every", callback_every, 1)
        run = self._begin_run(X, steering, stop_at, neighbors, every, second_X)
        is_ended = False
        try:
            for frame in yield_with_progress(run) if verbose else run:
                if callback is None or not frame.iteration:
                    continue
                if frame.iteration % every == 0:
                    seen = frame if frame.finished else run.advance(look=True)
                    assert seen is not None
                    shown = seen.iteration, seen.energy, seen.embedding.copy()
                    if is_ended := bool(callback(*shown)):
                        run.stop()
        except KeyboardInterrupt:
            if run.snapshot is None:
                raise
            warnings.warn(
                f"Ended early, after {run.snapshot.iteration:,} iterations: this is "
                "the map of that moment. To go on, fit with it as init.",
                EmbeddingWarning,
                stacklevel=2,
            )
            return self
        snapshot = run.snapshot
        assert snapshot is not None
        if run.script and not is_ended:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise InputError(
                f"The run ends after {snapshot.iteration} iterations, before the "
                f"steering at {max(run.script)}: give max_iter, or steer earlier."
            )
        if snapshot.warning:
            warnings.warn(snapshot.warning, EmbeddingWarning, stacklevel=2)
        return self

    def play(self, X: Any, *, second_X: Any = None) -> Run:
        """Begin a fit that can be watched and steered, and runs while it is iterated.

        ::

            run = EmbeddingGame().play(X)
            for snapshot in run:
                draw(snapshot.embedding)
                run.set(repulsion=700)

        At the end of the schedule, after leaving the iteration early, or after
        ``run.stop()`` the last snapshot becomes the fit, with the attributes that
        :meth:`fit` sets.  Snapshots have warnings in ``warning``.  :meth:`fit`
        describes ``X``, ``second_X`` and the errors.
        """
        return self._begin_run(X, second_X=second_X)

    def fit_transform(
        self, X: Any, y: Any = None, **fit_params: Any
    ) -> NDArray[np.float32]:
        """Fit, and return the map of ``X``, (N, d) float32.

        ``fit_params``: other parameters of :meth:`fit`.
        """
        return self.fit(X, **fit_params).embedding_

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Return the positions of new rows on the fitted map, (Q, d) float32.

        The map does not change.  Each row is placed alone, so that the order and the
        size of batches have no effect.  A fitted row gets its position in
        ``embedding_``.  The estimator has no ``transform`` where the method or the
        metric takes no new rows.

        A row that is unlike all fitted rows gets a position among them, as every row
        does, and the position says nothing: :meth:`score_samples` finds such rows.

        Parameters
        ----------
        X : (Q, D) array or sparse matrix
            Rows with the columns of the fitted rows, prepared in the same way.

        Raises
        ------
        InputError
            NaN, infinities, or values that are too large.
        ValueError
            Columns that differ from those of the fit, or no fit.

        Warns
        -----
        EmbeddingWarning
            Of the new rows 2 % or more are unlike all fitted rows, and chance does not
            explain it (p < 0.001), or a row is more than twice as far off as any fitted
            row.
        """
        check_is_fitted(self, "embedding_")
        return self._place_rows(X, stacklevel=4)  # scikit-learn wraps this method

    def _place_rows(self, X: Any, stacklevel: int) -> NDArray[np.float32]:
        """Return the positions of new rows, (Q, d), and warn of unlike rows.

        :meth:`transform` describes ``X``, the errors and the warning.  ``stacklevel``:
        number of calls from the warning to the caller's line.
        """
        placed: NDArray[np.float32]
        placed, ratios = self._fitted.place_with_distance_ratios(
            self._validate_rows(X, reset=False)
        )
        if told := self._fitted.distance_scorer.describe_unlike_rows(ratios):
            warnings.warn(told, EmbeddingWarning, stacklevel=stacklevel)
        return placed

    @available_if(_takes_more_rows)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any = None) -> EmbeddingGame:
        """Add new rows to the map, whose points hardly move; the first call fits.

        New rows come after the others in ``embedding_`` and all other attributes.
        With ``n_clusters`` the clusters are found anew, and keep the numbers of the
        former clusters with which they share most rows.

        Unlike :meth:`transform`, which leaves the map as it is, new rows hold one
        another, become neighbours of fitted rows, and move these by about 0.4 % of the
        width of the map.  ``docs/methods.md`` compares such maps with fits of all rows.
        The result depends on the batches and their order.

        Kinds of rows that the map does not have find no room there: then fit all rows
        again, as the warning says.

        Parameters
        ----------
        X : (Q, D) array or sparse matrix
            Rows with the columns of the fitted rows, prepared in the same way.
        y : ignored

        Raises
        ------
        InputError
            NaN, infinities, or values that are too large; the fit then stays.
        ValueError
            Columns that differ from those of the fit.

        Warns
        -----
        EmbeddingWarning
            About half of the new rows or more are of kinds that the map does not have;
            or fewer are unlike all fitted rows, as by :meth:`transform`; or the map
            represents the data badly, as after :meth:`fit`.
        """
        if not hasattr(self, "embedding_"):
            return self.fit(X)
        with delay_interrupts():
            from napari_embedding_game.core.addition import add_rows

        added = add_rows(self._fitted, self._validate_rows(X, reset=False))
        former = self.labels_
        with delay_interrupts():
            self._store_fit(added.snapshot, added.edges, added.fitted)
            if self.n_clusters is not None:
                self._keep_cluster_numbers(former)
        for told in filter(None, (added.warning, added.snapshot.warning)):
            warnings.warn(told, EmbeddingWarning, stacklevel=2)
        return self

    @available_if(_supports_new_rows)  # type: ignore[untyped-decorator]
    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """Return how like the fitted rows each new row is, (Q,) float64, 0 to 1.

        The likeness is the share of the fitted rows that are at least as far from their
        nearest 15 rows, relative to the distances of these to theirs.  Below 0.01 a row
        is unlike all fitted rows; of rows that are like them 1 % score so low.  The
        same score is ``obs["reference_likeness"]`` of :func:`.tl.map_onto_reference`
        where that has no expression.

        As in scikit-learn's detectors of outliers a lower score means a less likely
        row.  :meth:`transform` describes ``X`` and the errors.
        """
        check_is_fitted(self, "embedding_")
        rows, fitted = self._validate_rows(X, reset=False), self._fitted
        likeness: NDArray[np.float64] = fitted.distance_scorer(
            fitted.compute_distance_ratios(rows)
        )
        return likeness

    @available_if(_supports_new_rows)  # type: ignore[untyped-decorator]
    def predict(self, X: Any) -> NDArray[np.int32]:
        """Return the clusters of new rows' nearest landmarks, (Q,) int32.

        Landmarks without rows, which have no cluster, are left out. :meth:`transform`
        describes ``X``, the errors and the warning.
        """
        check_is_fitted(self, "embedding_")
        with delay_interrupts():
            from napari_embedding_game.core.new_rows.transform import (
                find_nearest_landmark_among,
            )

        positions = self._place_rows(X, stacklevel=3)
        has_rows = self.landmark_clusters_ >= 0
        nearest = find_nearest_landmark_among(positions, self.landmarks_, has_rows)
        clusters: NDArray[np.int32] = self.landmark_clusters_[nearest]
        return clusters

    def _begin_run(
        self,
        X: Any,
        steering: Steering | None = None,
        stop_at: int | None = None,
        neighbors: tuple[Any, Any] | None = None,
        every: int = 0,
        second_X: Any = None,
    ) -> Run:
        """Validate the data and settings, find neighbours, and return a run.

        Settings and data are refused before the search.  ``steering`` None is a run
        that is watched: snapshots have diagnostics.  ``neighbors`` replace the search,
        an array ``init`` the start layout.  ``every``: iterations between two snapshots
        for a callback; 0 for none.  ``second_X``: rows of a second space.
        """
        with delay_interrupts():  # half of torch could not be imported again
            from napari_embedding_game.core import pipeline
            from napari_embedding_game.core.dynamics.play import play
            from napari_embedding_game.core.graph.neighbors import NeighborGraph
            from napari_embedding_game.core.live_run import Run
            from napari_embedding_game.core.new_rows.transform import make_fitted_map

        X = self._validate_rows(X, ensure_min_samples=2)
        for name, value in (("n_clusters", self.n_clusters), ("stop_at", stop_at)):
            if value is not None:
                check_integer(name, value, 1)
        chosen = self._resolve_settings()
        changes = SettingChanges(chosen, X)
        # Changes of the script count from their iterations on, not from the start.
        script = _make_steer_script(steering or (), stop_at, SettingChanges(chosen, X))
        settings, layout, n_rows = changes.initial, None, X.shape[0]
        shape = n_rows, self.n_components
        if not isinstance(self.init, str):
            layout = _validate_layout("init", self.init, shape)
        _validate_fit_arguments(settings, layout is not None, neighbors is not None)
        if second_X is None and settings.second_space:
            raise InputError(
                f'second_space="{settings.second_space}" only names a space: give its '
                "rows as second_X."
            )
        if second_X is not None:
            second_X = check_array(
                _to_plain_matrix(second_X, "second_X"),
                accept_sparse="csr",
                dtype=[np.float64, np.float32],
                ensure_all_finite=False,
                input_name="second_X",
            )
        pipeline.validate_settings_for_data(X, settings)
        settings = _limit_neighbors_to_rows(settings, n_rows)
        if neighbors is None:
            graph = pipeline.find_neighbors(X, settings)
        else:
            k = resolve_n_neighbors(settings, n_rows)
            graph = NeighborGraph(
                *_validate_neighbors(neighbors, n_rows, k), "precomputed"
            )
        edges, layout = pipeline.make_edges_and_layout(
            graph, X, settings, layout, second_X
        )

        def start_playing(settings: Settings, until: Callable[[int], int]) -> Playing:
            """Return the generator of snapshots; ``until``: iterations to a stop."""
            is_watched = steering is None
            return play(
                edges, layout, settings, diagnose=is_watched, frame_iterations=until
            )

        def store_fit(snapshot: Snapshot, last: Settings) -> None:
            """Set all fitted attributes from a snapshot and the last settings."""
            positions = snapshot.embedding, snapshot.landmarks
            mixed = edges.mix_by_share(last.second_share)
            fitted = make_fitted_map(X, graph, mixed, last, *positions)
            self._has_second_space = second_X is not None
            self._store_fit(snapshot, mixed, fitted)

        return Run(
            start_playing,
            settings,
            change_settings=changes.change_settings,
            store_snapshot=store_fit,
            script=script,
            stop_at=stop_at,
            map_shape=shape,
            snapshot_every=every,
        )

    def _resolve_settings(self) -> Settings:
        """Return the settings that the parameters make, validated, with a seed.

        A seed is sampled where ``random_state`` is no integer; an array ``init`` counts
        as "random"; the affinity "auto" becomes the method's.  Raises InputError for a
        name in ``method_params`` that is no setting, or is a parameter itself.
        """
        given = self.get_params(deep=False)
        more = given.pop("method_params") or {}
        given = {name: value for name, value in given.items() if name in _SETTING_NAMES}
        others = [name for name in _SETTING_NAMES if name not in given]
        for name in more:
            if name in given:
                raise InputError(f"{name} is no method_params: give {name} itself.")
            if name not in others:
                raise InputError(
                    f"method_params takes {', '.join(others)}, not {name}."
                )
        if not isinstance(self.init, str):
            given["init"] = "random"
        if not isinstance(self.random_state, Integral):
            drawn = check_random_state(self.random_state).randint(2**31 - 1)
            given["random_state"] = int(drawn)
        return fill_affinity(Settings(**given, **more).validate())

    def _validate_rows(self, X: Any, **options: Any) -> Any:
        """Return the rows ``X`` as a finite array or CSR matrix, float32 or float64.

        Rows of other types become float64: they are centred before they are rounded,
        see :mod:`rows`.  A tensor is copied to an array; masked values count as NaN.
        Raises InputError for an AnnData, a damaged sparse matrix, NaN and infinities.
        ``options``: of scikit-learn's ``validate_data``, which also stores or compares
        the columns' names.
        """
        if hasattr(X, "obsm"):
            raise InputError(
                "X must be a matrix with a row for each cell, and this is an AnnData: "
                'give adata.obsm["X_pca"] or another space of it, or use '
                "tl.embedding_game(adata)."
            )
        X = _to_plain_matrix(X, "X")
        kinds = {"accept_sparse": "csr", "dtype": [np.float64, np.float32]}
        rows = validate_data(self, X, ensure_all_finite=False, **kinds, **options)
        if (gap := find_first_nonfinite(rows)) is not None:
            row, column, n = gap
            names = getattr(self, "feature_names_in_", None)
            where = column if names is None else f'"{names[column]}"'
            raise InputError(
                f"X has missing or infinite values (NaN, inf) in {n:,} of "
                f"{rows.shape[0]:,} rows, first in row {row:,} (counted from 0), "
                f"column {where}: leave such rows out, or fill in what is missing, as "
                "by sklearn.impute.SimpleImputer."
            )
        return rows

    def _store_fit(self, snapshot: Snapshot, edges: Edges, fitted: FittedMap) -> None:
        """Set all fitted attributes from a snapshot, the edges and the fitted map.

        With ``n_clusters`` landmarks are merged into that many clusters.
        """
        settings, graph = fitted.settings, fitted.graph
        self._fitted, self.n_samples_seen_ = fitted, graph.n_points
        self.random_state_, self.affinity_ = settings.random_state, settings.affinity
        self.knn_indices_, self.knn_distances_ = graph.indices, graph.distances
        self.isolation_ = edges.isolation
        self.affinity_matrix_ = edges.to_csr_matrix()
        self.embedding_, self.landmarks_ = snapshot.embedding, snapshot.landmarks
        self.pressure_, self.stretch_ = snapshot.pressure, snapshot.stretch
        self.energy_, self.n_iter_ = snapshot.energy, snapshot.iteration
        self.map_hash_ = snapshot.map_hash
        self.repulsion_ = resolve_repulsion(settings)
        merged = np.arange(len(snapshot.landmarks), dtype=np.int32)
        if self.n_clusters is not None:
            from napari_embedding_game.core.inspect import clusters

            between = clusters.landmark_graph(edges, snapshot.labels, len(merged))
            sizes = np.bincount(snapshot.labels, minlength=len(merged))
            # The window merges in the same way, independent of the seed.
            merged = clusters.build_merge_tree(between, sizes).cut(int(self.n_clusters))
        self.landmark_clusters_, self.labels_ = merged, merged[snapshot.labels]

    def _keep_cluster_numbers(self, former: NDArray[np.int32]) -> None:
        """Renumber the clusters so that most rows keep their former number.

        ``former`` (N,): the cluster that each of the first N rows had.
        """
        from scipy.optimize import linear_sum_assignment

        n = 1 + int(max(former.max(), self.labels_.max()))
        pairs = former.astype(np.int64) * n + self.labels_[: len(former)]
        shared = np.bincount(pairs, minlength=n * n).reshape(n, n)
        numbers, clusters = linear_sum_assignment(shared, maximize=True)
        # Landmarks without rows stay -1, the last entry.
        number_of = np.full(n + 1, -1, np.int32)
        number_of[clusters] = numbers
        self.landmark_clusters_ = number_of[self.landmark_clusters_]
        self.labels_ = number_of[self.labels_]

    @property
    def _n_features_out(self) -> int:
        """Number of columns that :meth:`transform` returns, as scikit-learn asks."""
        return int(self.embedding_.shape[1])

    def __sklearn_tags__(self) -> Any:
        """Return tags for scikit-learn: takes sparse rows, keeps float32.

        "pairwise" is set for the metric "precomputed".
        """
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float32"]
        tags.input_tags.pairwise = self.metric == "precomputed"
        return tags


# After scikit-learn has wrapped it for set_output, which would hide the condition.
EmbeddingGame.transform = available_if(  # type: ignore[method-assign]
    _supports_new_rows
)(EmbeddingGame.transform)


def _to_plain_matrix(X: Any, name: str) -> Any:
    """Return a tensor as an array, and masked values as NaN; other rows as they are.

    Raises InputError, with the ``name`` of the rows, for a damaged sparse matrix.
    """
    if hasattr(X, "detach"):  # a tensor, whose type scikit-learn does not see
        X = np.asarray(X.detach().cpu())
    if np.ma.is_masked(X):  # it would take what lies under the mask
        X = X.astype(float).filled(np.nan)
    if sparse.issparse(X):
        try:
            validate_sparse(X)
        except ValueError as error:
            raise InputError(f"{name} is damaged, as {error}: make it anew.") from error
    return X


def _validate_neighbors(
    neighbors: Any, n_rows: int, k: int
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return the k nearest of ``neighbors``, indices (N, k) and distances (N, k).

    Neighbours are sorted, nearest first, and a row itself is left out.  Raises
    InputError for arrays of other shapes or values, fewer than k neighbours, and a
    neighbour that a row has twice.
    """
    try:
        indices, distances = (np.asarray(each) for each in neighbors)
        is_right = (
            indices.shape == distances.shape
            and indices.ndim == 2
            and len(indices) == n_rows
            and indices.dtype.kind in "iu"
            and distances.dtype.kind in "fiu"
            and bool(((indices >= 0) & (indices < n_rows)).all())
            and bool(((distances >= 0) & np.isfinite(distances)).all())
        )
    except (TypeError, ValueError):  # no pair of arrays
        is_right = False
    if not is_right:
        raise InputError(
            "neighbors must be (indices, distances), two arrays with a row for each of "
            f"the {n_rows:,} rows of X: numbers of rows from 0 to {n_rows - 1:,}, and "
            "finite distances at least 0."
        )
    # The row itself becomes column 0, or the farthest neighbour where it is missing.
    rank = np.where(indices == np.arange(n_rows)[:, None], -1.0, distances)
    order = np.argsort(rank, axis=1, kind="stable")
    indices, distances, rank = (
        np.take_along_axis(each, order, 1) for each in (indices, distances, rank)
    )
    skip = int((rank[:, :1] < 0).any())
    if skip:
        is_alone = rank[:, 0] >= 0
        indices[is_alone] = np.roll(indices[is_alone], 1, axis=1)
        distances[is_alone] = np.roll(distances[is_alone], 1, axis=1)
    indices, distances = indices[:, skip:], distances[:, skip:]
    if indices.shape[1] < k:
        raise InputError(
            f"neighbors holds {indices.shape[1]} other rows for each row, and {k} are "
            "asked for: give more, or lower n_neighbors (or perplexity, of which three "
            "times as many are used)."
        )
    each_once = np.sort(indices, axis=1)
    is_twice = (each_once[:, 1:] == each_once[:, :-1]).any(axis=1)
    is_twice |= (indices == np.arange(n_rows)[:, None]).any(axis=1)
    if is_twice.any():
        raise InputError(
            f"neighbors names a row twice in row {is_twice.argmax():,} (counted from "
            "0): give each neighbour once."
        )
    return (
        np.ascontiguousarray(indices[:, :k], np.int32),
        np.ascontiguousarray(distances[:, :k], np.float32),
    )


class SettingChanges:
    """The settings at the start of a fit, and the changes during the fit.

    ``chosen``: settings of the parameters, for any number of rows; ``X``: rows (N, D).
    """

    def __init__(self, chosen: Settings, X: Any) -> None:
        self._chosen_settings, self._X = chosen, X
        self._changed: dict[str, Any] = {}
        self.initial = fill_approximation_by_size(chosen, X.shape[0])

    def change_settings(self, parameters: Mapping[str, Any]) -> Settings:
        """Record changed parameters, and return the settings with all changes so far.

        Raises InputError if the method is no game, before or after, and for parameters
        that cannot change during a game, or are out of range; these are not recorded.
        """
        from napari_embedding_game.core import pipeline

        unknown = sorted(set(parameters) - set(STEERABLE))
        if unknown:
            raise InputError(
                f"{unknown[0]} cannot be changed on the way: steering takes "
                f"{', '.join(STEERABLE)}."
            )
        if not is_game(self.initial):
            raise InputError(NO_STEERING)
        changed = self._changed | dict(parameters)
        new = replace(self._chosen_settings, **changed).validate()
        new = fill_approximation_by_size(new, self._X.shape[0])
        pipeline.validate_settings_for_data(self._X, new)
        if not is_game(new):
            raise InputError(NO_CHANGE)
        self._changed = changed
        return new


def _make_steer_script(
    steering: Steering, stop_at: int | None, changes: SettingChanges
) -> dict[int, Steer]:
    """Return the settings that ``steering`` asks for, keyed by iteration.

    Each entry has the changes of all earlier ones.  Raises InputError for iterations
    that do not increase, or not before ``stop_at``, and for settings that cannot
    change.
    """
    script: dict[int, Steer] = {}
    for iteration, parameters in steering:
        least = max(script, default=-1) + 1
        most = None if stop_at is None else stop_at - 1
        at = check_integer("iteration of steering", iteration, least, most)
        script[at] = Steer(settings=changes.change_settings(parameters))
    return script


def _validate_fit_arguments(
    settings: Settings, has_map: bool, has_neighbors: bool
) -> None:
    """Raise InputError if ``init`` or ``neighbors`` do not go with the settings.

    Refused: the method "given" without a map as ``init``, a learning rate of 0, and
    ``neighbors`` together with the metric "precomputed".
    """
    if settings.method == "given" and not has_map:
        raise InputError(
            "The method given examines a map that you have: give it as init, an "
            "array with a row for each row of X, or open its file in the window."
        )
    if settings.learning_rate == 0:
        raise InputError(
            "learning_rate must be above 0, as no point would leave its start: to "
            'examine a map that you have, give it as init to the method "given".'
        )
    if has_neighbors and settings.metric == "precomputed":
        raise InputError(
            'Either neighbors or metric="precomputed" says which rows are near: '
            "give X as rows, and the metric of the distances in neighbors."
        )


def _limit_neighbors_to_rows(settings: Settings, n_rows: int) -> Settings:
    """Lower n_neighbors and perplexity to what ``n_rows`` allow, with a warning each.

    n_neighbors is lowered to n_rows - 1.  With the affinity "entropic", whose
    neighbours follow from the perplexity, the perplexity is lowered to
    (n_rows - 1) / 3, at least 1.  Settings that fit are returned themselves.
    """
    k = resolve_n_neighbors(settings, n_rows)
    if k >= n_rows:
        warnings.warn(
            f"n_neighbors={k} needs at least {k + 1} rows; with {n_rows} "
            f"rows, {n_rows - 1} neighbours are used.",
            stacklevel=4,
        )
        settings = replace(settings, n_neighbors=n_rows - 1)
    if (lowered := lower_perplexity(settings, n_rows)) is not None:
        warnings.warn(lowered[1], stacklevel=4)
        settings = replace(settings, perplexity=lowered[0])
    return settings


def _validate_layout(
    name: str, values: Any, shape: tuple[int, int]
) -> NDArray[np.float32]:
    """Return a copy of start positions as float32 of ``shape`` (N, d).

    Raises InputError, with ``name``, for another shape, NaN, coordinates beyond 1e6, or
    positions that are all the same.
    """
    try:
        layout = np.array(values, np.float32)
    except (TypeError, ValueError):  # no numbers
        layout = np.empty(0, np.float32)
    is_near = bool((np.abs(layout) <= _FARTHEST).all())
    if layout.shape != shape or not is_near or (layout == layout[0]).all():
        raise InputError(
            f"{name} must have a row for each row of X and a column for each dimension "
            f"of the map, {shape[0]} x {shape[1]} numbers from -{_FARTHEST:g} to "
            f"{_FARTHEST:g} that are not all the same, not {describe_value(values)}."
        )
    return layout
