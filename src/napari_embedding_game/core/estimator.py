"""The embedding game as a scikit-learn estimator.

What a fit does, and where its seed enters: :mod:`pipeline`.  Ranges of parameters are
refused by ``Settings.validate``, rows by :meth:`EmbeddingGame._as_rows`,
``neighbors.validate_row_count`` and ``precomputed.validate_distances``.
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
from sklearn.utils import check_random_state
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
    fill_approximation,
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

Steering = Sequence[tuple[int, Mapping[str, Any]]]
"""Iterations, each with the parameters that change there."""
_NAMES = tuple(each.name for each in fields(Settings))
_FARTHEST = 1e6
"""Largest coordinate of a start that is given: beyond it points feel nothing."""

Callback = Callable[[int, float, NDArray[np.float32]], Any]
"""Takes the iteration, the energy and a copy of the map; a true answer ends the fit."""


def to_parameters(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of :class:`EmbeddingGame` for these settings.

    Those that it has no parameter for, and that are not as by default, are its
    ``method_params``; what is no setting is left out.
    """
    parameters, default = EmbeddingGame().get_params(deep=False), Settings()
    given = {name: settings[name] for name in settings if name in parameters}
    others = [name for name in _NAMES if name in settings and name not in parameters]
    more = {n: settings[n] for n in others if settings[n] != getattr(default, n)}
    return {**given, "method_params": more} if more else given


def collect_fitted_parameters(model: EmbeddingGame) -> dict[str, Any]:
    """Return all parameters of a fitted model, flat, with the values that were used."""
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
    """Return the row and the column of the first value that is NaN or infinite.

    And the number of rows with such values; None where all values are finite.  ``X`` is
    an (N, D) array or sparse CSR matrix of floats.
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
    """Return positions (Q, d), stretch (Q,) and isolation (Q,) of new rows."""
    rows = model._as_rows(X, reset=False)
    placed: tuple[NDArray[np.float32], ...] = model._fitted.place_with_diagnostics(rows)
    return placed


def _takes_new_rows(model: EmbeddingGame) -> bool:
    """Return True; InputError says why a method or metric takes no new rows."""
    with delay_interrupts():
        from napari_embedding_game.core.new_rows.transform import validate_transform

    validate_transform(model.method, model.metric)
    return True


class EmbeddingGame(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    ClusterMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """Map rows to 1, 2 or 3 dimensions by a game of points against landmarks.

    Points run towards their neighbours and away from landmarks; landmarks chase
    the points and flee one another.  The landmarks end up tiling the data, so
    the nearest landmark of a point is its cluster.

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
        How strongly points are kept apart: lambda x N of the method's energy, which
        means the same for any number of rows, or a factor where the method has no
        lambda.  None is the method's own, 300 for the game.
    max_iter : int, optional
        Iterations instead of the schedule's.
    learning_rate, landmark_learning_rate : float, optional
        Steps of the points and of the landmarks instead of the schedule's.
    init : str or (N, d) array, default="spectral"
        Where the points start: "spectral", "random", or a classical method, one of
        "pca", "gradient_pca", "random_projection", "le", "ale" and "vrle".  An array,
        such as ``embedding_`` of a former fit, is taken as it is, in units of the map:
        kernels are about 1 wide, and the other starts have unit variance.
    affinity : str, default="auto"
        How the attraction of neighbours falls with their distance: "mixed", "fuzzy",
        "uniform" or "entropic"; "auto" is the method's own.
    metric : str or callable, default="euclidean"
        Any that scikit-learn's brute search or pynndescent knows by name.  Or a
        function of two rows, compiled by ``numba.njit`` for more than 5,000 rows.  Or
        "precomputed": ``X`` are then distances (N, N), such as
        ``adata.obsp["distances"]`` of scanpy; of a sparse matrix the stored entries are
        the neighbours.
    n_jobs : int, optional
        Threads; the result does not depend on it.
    random_state : int, RandomState or None, default=None
        None draws a seed, kept in ``random_state_``.  The same seed gives the same map,
        bit for bit, with any number of threads and on any processor;
        ``docs/reproducibility.md`` says where this does not hold.
    method : str, default="game"
        Any of :data:`methods.METHODS`: "game", "ee", "ssne", "tsne", "umap",
        "umap_exact", "two_kernel_lle", "two_kernel_pca", "pca", "given" (the map that
        is the ``init``, centred and scaled); "ee" and "ssne" also with
        "_spectral_direction", "_homotopy" or "_pressured_points".
    n_clusters : int, optional
        Landmarks are merged into so many clusters, or as many as have points if these
        are fewer: see :mod:`clusters`.  None leaves each landmark a cluster.
    method_params : dict, optional
        Any other field of :class:`~napari_embedding_game.core.settings.Settings`:
        "approximation", "schedule", "momentum" or "device".
        See ``napari-embedding-game fit --help``.

    Attributes
    ----------
    embedding_ : (N, d) float32
    landmarks_ : (L, d) float32
    labels_ : (N,) int32
        Cluster of each row: its nearest landmark (Eq. 7), or with ``n_clusters`` the
        cluster which this is merged into.
    landmark_clusters_ : (L,) int32
        Cluster of each landmark; with ``n_clusters`` -1 for one without rows.
    pressure_ : (N,) float32
        How far each point would be moved out of the plane, in units of the map.  All
        NaN under methods that do not define it, and of more than 20,000 rows unless
        landmarks push them.
    stretch_ : (N,) float32
        Distance of each point to its neighbours in the data, relative to what is usual
        on this map (1): large where a position cannot be trusted.
    energy_ : float
        The energy that the method minimises; for the game the bound of Eq. 3.
    map_hash_ : str
        16 hexadecimal digits by which the map is recognised elsewhere, made by the same
        version of this program.
    affinity_matrix_ : (N, N) sparse matrix, float32
        The weights of the attraction, symmetric.
    knn_indices_, knn_distances_ : (N, K) int32, (N, K) float32
        Neighbours of each row, nearest first, itself left out.
    isolation_ : (N,) float32
        Distance of each row to its neighbours in the data, relative to theirs: well
        above 1 for outliers, for which no position is right.
    repulsion_, affinity_, random_state_ : float, str, int
        The values that were used.
    n_iter_ : int
        Iterations; a minimiser's with those in which the landmarks settle at the end.
    n_features_in_ : int
    feature_names_in_ : (D,) array of str
        Where ``X`` was a table whose columns all have names.

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
        callback: Callback | None = None,
        callback_every: int = 50,
    ) -> EmbeddingGame:
        """Find the map of ``X``, an (N, D) array or sparse matrix; ``y`` is not used.

        Ctrl-C ends it early, and the map of that moment is the fit.

        Parameters
        ----------
        X : (N, D) array or sparse matrix
        y : ignored
        verbose : bool, default=False
            Whether to show a progress bar.
        steering : sequence of (iteration, dict of parameters), optional
            What changes on the way, as with the sliders of the window, such as
            ``[(120, {"repulsion": 700}), (300, {"n_landmarks": 80})]``; also both
            rates, momentum, method, approximation, schedule and max_iter.
        stop_at : int, optional
            Iteration after which the run ends though its schedule has not.
        neighbors : (indices, distances), optional
            Neighbours of each row, (N, K) integers and (N, K) numbers, that are used
            instead of a search; a row itself may be among them.  The distances are by
            ``metric``, by which :meth:`transform` searches for new rows.
        callback : callable, optional
            Called as ``callback(iteration, energy, embedding)``; a true answer ends the
            run, and the map of that moment is the fit.
        callback_every : int, default=50
            Iterations between two calls.

        Raises
        ------
        InputError
            Too few rows, constant data, NaN or infinities, or a setting out of range
            (checked before the neighbours are searched).
        ValueError
            Text where numbers belong.

        Warns
        -----
        EmbeddingWarning
            The map represents the data badly: the points have collapsed, have run far
            off, or were still moving.  Or it was ended early.
        """
        if verbose:
            print("Finding neighbours", file=sys.stderr)
        before = dict(vars(self))
        every = 0
        if callback is not None:
            every = check_integer("callback_every", callback_every, 1)
        run = self._play(X, steering, stop_at, neighbors, every)
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

    def play(self, X: Any) -> Run:
        """Begin a fit that is watched and steered; it is played while it is iterated.

        ::

            run = EmbeddingGame().play(X)
            for snapshot in run:
                draw(snapshot.embedding)
                run.set(repulsion=700)

        At the end of the schedule, where the iteration is left early, or after
        ``run.stop()`` the last snapshot is the fit: what :meth:`fit` sets is set.
        Warnings are in ``warning`` of the snapshots.  For ``X`` and what is raised see
        :meth:`fit`.
        """
        return self._play(X)

    def fit_transform(
        self, X: Any, y: Any = None, **fit_params: Any
    ) -> NDArray[np.float32]:
        """Return the map of ``X``, (N, d) float32; ``fit_params``: of :meth:`fit`."""
        return self.fit(X, **fit_params).embedding_

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Return where new rows lie on the map, (Q, d) float32; the map stays as it is.

        Each row is placed alone, so that the order and the size of batches change
        nothing. A fitted row keeps its position in ``embedding_``.  The estimator has
        no ``transform`` where the method or the metric takes no new rows.

        Parameters
        ----------
        X : (Q, D) array or sparse matrix
            Rows with the columns of the fitted ones, prepared in the same way.

        Raises
        ------
        InputError
            NaN, infinities, or values that are too large.
        ValueError
            Other columns than in the fit, or no fit at all.
        """
        check_is_fitted(self, "embedding_")
        placed: NDArray[np.float32] = self._fitted.place(self._as_rows(X, reset=False))
        return placed

    @available_if(_takes_new_rows)  # type: ignore[untyped-decorator]
    def predict(self, X: Any) -> NDArray[np.int32]:
        """Return the cluster of new rows, (Q,) int32: that of their nearest landmark.

        For what ``X`` is and what is raised see :meth:`transform`.
        """
        with delay_interrupts():
            from napari_embedding_game.core.new_rows.transform import (
                nearest_landmark_among,
            )

        positions = np.array(self.transform(X))  # scikit-learn may make a table of them
        has_rows = self.landmark_clusters_ >= 0
        nearest = nearest_landmark_among(positions, self.landmarks_, has_rows)
        clusters: NDArray[np.int32] = self.landmark_clusters_[nearest]
        return clusters

    def _play(
        self,
        X: Any,
        steering: Steering | None = None,
        stop_at: int | None = None,
        neighbors: tuple[Any, Any] | None = None,
        every: int = 0,
    ) -> Run:
        """Begin a run that is watched, or that is steered as given, without a look."""
        with delay_interrupts():  # half of torch could not be imported again
            from napari_embedding_game.core import pipeline
            from napari_embedding_game.core.dynamics.play import play
            from napari_embedding_game.core.graph.neighbors import NeighborGraph
            from napari_embedding_game.core.live_run import Run
            from napari_embedding_game.core.new_rows.transform import make_fitted_map

        X = self._as_rows(X, ensure_min_samples=2)
        for name, value in (("n_clusters", self.n_clusters), ("stop_at", stop_at)):
            if value is not None:
                check_integer(name, value, 1)
        changes = SettingChanges(self._chosen(), X)
        script = _make_script(steering or (), stop_at, changes)
        settings, layout, n_rows = changes.begun, None, X.shape[0]
        shape = n_rows, self.n_components
        if not isinstance(self.init, str):
            layout = _as_layout("init", self.init, shape)
        _check_fit(settings, layout is not None, neighbors is not None)
        pipeline.validate_inputs(X, settings)
        settings = _within_rows(settings, n_rows)
        if neighbors is None:
            graph = pipeline.find_neighbors(X, settings)
        else:
            k = resolve_n_neighbors(settings, n_rows)
            graph = NeighborGraph(*_as_neighbors(neighbors, n_rows, k), "precomputed")
        edges, layout = pipeline.make_edges_and_layout(graph, X, settings, layout)

        def begin(settings: Settings, frames: Callable[[int], int]) -> Playing:
            is_watched = steering is None
            return play(
                edges, layout, settings, diagnose=is_watched, frame_iterations=frames
            )

        def keep(snapshot: Snapshot, last: Settings) -> None:
            positions = snapshot.embedding, snapshot.landmarks
            self.random_state_, self.affinity_ = last.random_state, last.affinity
            self.knn_indices_, self.knn_distances_ = graph.indices, graph.distances
            self.isolation_ = edges.isolation
            self.affinity_matrix_ = edges.to_csr_matrix()
            self._fitted = make_fitted_map(X, graph, edges, last, *positions)
            self._store_map(snapshot, edges, resolve_repulsion(last))

        change = changes.change_settings
        return Run(begin, settings, change, keep, script, stop_at, shape, every)

    def _chosen(self) -> Settings:
        """Return all settings, in the types that the engine takes."""
        given = self.get_params(deep=False)
        more = given.pop("method_params") or {}
        given = {name: value for name, value in given.items() if name in _NAMES}
        others = [name for name in _NAMES if name not in given]
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

    def _as_rows(self, X: Any, **options: Any) -> Any:
        """Return rows of any kind in float32, if they are, or in float64.

        They are centred before they are rounded, see :mod:`rows`.
        """
        if hasattr(X, "obsm"):
            raise InputError(
                "X must be a matrix with a row for each cell, and this is an AnnData: "
                'give adata.obsm["X_pca"] or another space of it, or use '
                "tl.embedding_game(adata)."
            )
        if hasattr(X, "detach"):  # a tensor, whose type scikit-learn does not see
            X = np.asarray(X.detach().cpu())
        if np.ma.is_masked(X):  # it would take what lies under the mask
            X = X.astype(float).filled(np.nan)
        if sparse.issparse(X):
            try:
                validate_sparse(X)
            except ValueError as error:
                raise InputError(f"X is damaged, as {error}: make it anew.") from error
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

    def _store_map(self, snapshot: Snapshot, edges: Edges, repulsion: float) -> None:
        """Keep a map and its clusters."""
        self.embedding_, self.landmarks_ = snapshot.embedding, snapshot.landmarks
        self.pressure_, self.stretch_ = snapshot.pressure, snapshot.stretch
        self.energy_, self.n_iter_ = snapshot.energy, snapshot.iteration
        self.map_hash_, self.repulsion_ = snapshot.map_hash, repulsion
        merged = np.arange(len(snapshot.landmarks), dtype=np.int32)
        if self.n_clusters is not None:
            from napari_embedding_game.core.inspect import clusters

            between = clusters.landmark_graph(edges, snapshot.labels, len(merged))
            sizes = np.bincount(snapshot.labels, minlength=len(merged))
            # As the window draws it, whatever the seed.
            merged = clusters.build_merge_tree(between, sizes).cut(int(self.n_clusters))
        self.landmark_clusters_, self.labels_ = merged, merged[snapshot.labels]

    @property
    def _n_features_out(self) -> int:
        """Columns of what :meth:`transform` returns, which scikit-learn names."""
        return int(self.embedding_.shape[1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float32"]
        tags.input_tags.pairwise = self.metric == "precomputed"
        return tags


# After scikit-learn has wrapped it for set_output, which would hide the condition.
EmbeddingGame.transform = available_if(  # type: ignore[method-assign]
    _takes_new_rows
)(EmbeddingGame.transform)


def _as_neighbors(
    given: Any, n_rows: int, k: int
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return given neighbours, nearest first, without the rows themselves, (N, k)."""
    try:
        indices, distances = (np.asarray(each) for each in given)
        is_right = (
            indices.shape == distances.shape
            and indices.ndim == 2
            and len(indices) == n_rows
            and indices.dtype.kind in "iu"
            and distances.dtype.kind in "fiu"
            and bool(((indices >= 0) & (indices < n_rows)).all())
            and bool(((distances >= 0) & np.isfinite(distances)).all())
        )
    except (TypeError, ValueError):  # no pair of tables
        is_right = False
    if not is_right:
        raise InputError(
            "neighbors must be (indices, distances), two arrays with a row for each of "
            f"the {n_rows:,} rows of X: numbers of rows from 0 to {n_rows - 1:,}, and "
            "finite distances at least 0."
        )
    # A row itself goes first, or where it is not there the farthest.
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
    """The settings that a fit begins with, and what has changed on its way.

    ``chosen``: as the parameters say, for any number of rows. ``X``: the rows (N, D).
    """

    def __init__(self, chosen: Settings, X: Any) -> None:
        self._chosen, self._X = chosen, X
        self._changed: dict[str, Any] = {}
        self.begun = fill_approximation(chosen, X.shape[0])

    def change_settings(self, parameters: Mapping[str, Any]) -> Settings:
        """Return the settings once these parameters have changed, too.

        Raises InputError: they cannot change on the way, or are out of range.
        """
        from napari_embedding_game.core import pipeline

        unknown = sorted(set(parameters) - set(STEERABLE))
        if unknown:
            raise InputError(
                f"{unknown[0]} cannot be changed on the way: steering takes "
                f"{', '.join(STEERABLE)}."
            )
        if not is_game(self.begun):
            raise InputError(NO_STEERING)
        changed = self._changed | dict(parameters)
        new = replace(self._chosen, **changed).validate()
        new = fill_approximation(new, self._X.shape[0])
        pipeline.validate_inputs(self._X, new)
        if not is_game(new):
            raise InputError(NO_CHANGE)
        self._changed = changed
        return new


def _make_script(
    steering: Steering, stop_at: int | None, changes: SettingChanges
) -> dict[int, Steer]:
    """Return what is to change by itself, by iterations, which have to rise."""
    script: dict[int, Steer] = {}
    for iteration, parameters in steering:
        least = max(script, default=-1) + 1
        most = None if stop_at is None else stop_at - 1
        at = check_integer("iteration of steering", iteration, least, most)
        script[at] = Steer(settings=changes.change_settings(parameters))
    return script


def _check_fit(settings: Settings, has_map: bool, has_neighbors: bool) -> None:
    """Raise InputError where ``init`` or ``neighbors`` do not go with the settings."""
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


def _within_rows(settings: Settings, n_rows: int) -> Settings:
    """Return settings that ask for no more neighbours than there are; warn of it."""
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


def _as_layout(name: str, values: Any, shape: tuple[int, int]) -> NDArray[np.float32]:
    """Return positions of the points that are given, a copy."""
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
