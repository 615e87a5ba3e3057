"""A map of more rows than fit into memory: fitted on some, all others placed on it.

1. One look at all rows, chunk by chunk, draws a reference that keeps rare groups
   (:mod:`~.core.new_rows.sample`).
2. The reference is fitted.
3. A second look places all rows on the map (:meth:`EmbeddingGame.transform`) and writes
   them chunk by chunk.  Rows of the reference have their own places.

No row sees another when it is placed, so chunks go anywhere and in any order: through
Dask to the workers of a cluster, and again to another one when a worker is lost.  Each
worker reads its rows from the file itself, which must be at the same path for it.  In
this process there are a chunk, the reference, and of each row its name, its metadata
and some numbers.
"""

from __future__ import annotations

import operator
import shutil
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from napari_embedding_game.core.errors import InputError
from napari_embedding_game.core.estimator import (
    EmbeddingGame,
    collect_fitted_parameters,
    place_rows_with_diagnostics,
    to_parameters,
)
from napari_embedding_game.core.graph.edges import Edges
from napari_embedding_game.core.graph.neighbors import check_rows
from napari_embedding_game.core.new_rows.sample import (
    k_means,
    nearest_centre,
    reference_rows,
)
from napari_embedding_game.core.new_rows.transform import (
    check_transform,
    nearest_landmark,
)
from napari_embedding_game.core.progress import yield_with_progress
from napari_embedding_game.core.settings import (
    Settings,
    fill_affinity,
    resolve_n_neighbors,
)
from napari_embedding_game.data.columns import KEY
from napari_embedding_game.data.errors import DataError, explain_damage
from napari_embedding_game.data.export.anndata_result import storable_obs
from napari_embedding_game.data.export.result import storable, versions
from napari_embedding_game.data.formats.anndata import parts_of
from napari_embedding_game.data.formats.store import (
    is_zarr_array,
    open_store,
    read_element,
)
from napari_embedding_game.data.stages import finish
from napari_embedding_game.session.clusters.clusters import clusters_of
from napari_embedding_game.session.file.h5ad import without_results

if TYPE_CHECKING:
    from napari_embedding_game.data.formats.lazy_rows import LazyRows

CHUNK = 65_536
MAX_CENTRES = 256
_ROWS_OF_CENTRE = 50
"""Of the reference: fewer would leave no choice among the rows of a centre."""
_SAMPLE = 65_536
"""Rows, drawn at random, that the centres are of."""
_RETRIES = 5
_PATIENCE = 10
"""Seconds within which a scheduler has to answer."""


Work = Callable[[int, int], tuple[NDArray[Any], ...]]
"""Takes the begin and the end of a chunk; returns arrays with a row for each row."""
Run = Callable[[Work, Iterable[int], Iterable[int]], Iterable[tuple[NDArray[Any], ...]]]
"""Works on chunks, given their begins and their ends, as ``map`` does."""


@contextmanager
def on_cluster(scheduler: str) -> Iterator[Run]:
    """Give what works on chunks by the workers of a Dask cluster.

    Raises InputError: Dask is not installed, no scheduler answers, or workers end again
    and again.
    """
    try:
        from distributed import Client, KilledWorker

        client = Client(scheduler, timeout=_PATIENCE)
    except ImportError as error:
        raise InputError(
            'A scheduler needs Dask: pip install "napari-embedding-game[dask]".'
        ) from error
    except (OSError, ValueError) as error:
        raise InputError(
            f"No Dask scheduler answers at {scheduler}: start one with `dask "
            "scheduler`, or leave the scheduler out."
        ) from error

    def run(
        work: Work, begins: Iterable[int], ends: Iterable[int]
    ) -> Iterator[tuple[NDArray[Any], ...]]:
        sent = client.scatter(work, broadcast=True)
        workers = client.get_executor(pure=False, retries=_RETRIES)
        starts = list(begins)
        works = [sent] * len(starts)
        try:
            yield from workers.map(operator.call, works, starts, list(ends))
        except KilledWorker as error:
            raise InputError(
                "The workers of the cluster end again and again while they work on "
                "rows: give them more memory, or draw a smaller reference."
            ) from error

    with client:
        yield run


def _nearest(
    rows: LazyRows,
    middle: NDArray[np.floating],
    centres: NDArray[np.float32],
    begin: int,
    end: int,
) -> tuple[NDArray[Any], ...]:
    part = (rows.read(begin, end) - middle).astype(np.float32)
    labels, squared = nearest_centre(part, centres)
    return labels.astype(np.int32), squared


def _placed(
    rows: LazyRows,
    model: EmbeddingGame,
    has_rows: NDArray[np.bool_],
    begin: int,
    end: int,
) -> tuple[NDArray[Any], ...]:
    positions, stretch, isolation = place_rows_with_diagnostics(
        model, rows.read(begin, end)
    )
    landmarks = nearest_landmark(positions, model.landmarks_, has_rows)
    return positions, landmarks, stretch, isolation


def map_file(
    source: Path,
    out: Path,
    n_reference: int,
    settings: Mapping[str, Any],
    *,
    space: str | None = None,
    recipe: bool = False,
    n_clusters: int | None = None,
    scheduler: str | None = None,
    report: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Fit some rows of a file, place all others on their map, and write all of them.

    ``source`` and ``out``: file of AnnData (.zarr or .h5ad), or an array of zarr; see
    :func:`place_all`. ``n_reference``: rows that are fitted. ``settings``: fields of
    :class:`~.core.settings.Settings`. ``recipe``: whether principal components of raw
    counts are made first. ``n_clusters``: that landmarks are merged into, None as many
    as a window would show. ``scheduler``: address of a Dask scheduler, whose workers
    place the rows. ``report``: is given a sentence at each stage.

    Returns parameters, and what the map came to.

    Raises DataError or InputError: file, settings and scheduler do not do; Ctrl-C ends
    it, and nothing is written.
    """
    from napari_embedding_game.data.formats.lazy_rows import LazyRows
    from napari_embedding_game.data.lazy_recipe import counts_shape, write_components

    log = report or (lambda _: None)
    source = _checked(source)
    model = EmbeddingGame(**to_parameters(settings))
    check_transform(model.method, model.metric)
    rows, numbers, recipe_facts = None, None, dict[str, Any]()
    with explain_damage(source, "a file of AnnData, or an array of zarr"):
        if recipe:
            n_rows = counts_shape(source, space)[0]
        else:
            rows = LazyRows(source, space)
            n_rows = rows.shape[0]
    n_rows = min(n_reference, n_rows)
    check_rows(n_rows, resolve_n_neighbors(fill_affinity(Settings(**settings)), n_rows))
    with ExitStack() as closing:
        run = closing.enter_context(on_cluster(scheduler)) if scheduler else map
        if rows is None:
            folder = TemporaryDirectory(dir=out.resolve().parent, prefix=".recipe_")
            path = Path(closing.enter_context(folder)) / "components.zarr"
            with explain_damage(source, "a file of AnnData"):
                stages = write_components(source, path, space=space)
                numbers, recipe_facts = finish(stages, lambda stage: log(stage.text))
            rows = LazyRows(path)
        log("Drawing the reference")
        drawn = draw_reference(rows, n_reference, model.random_state, run)
        log("Fitting the reference")
        played = model.play(rows.take(drawn))
        for _ in yield_with_progress(
            played, report is not None and sys.stderr.isatty()
        ):
            pass
        snapshot = played.snapshot
        assert snapshot is not None
        log(f"Placing {rows.shape[0]:,} rows")
        facts = {
            **collect_fitted_parameters(model),
            "n_clusters": n_clusters,
            "input": source.name,
            "space": recipe_facts.get("space", rows.space),
            **({"recipe": recipe_facts} if recipe_facts else {}),
            "n_points": rows.shape[0],
            "reference": len(drawn),
            "n_iter": snapshot.iteration,
            "energy": snapshot.energy,
            "map_hash": snapshot.map_hash,
            "warning": snapshot.warning,
        }
        obs = read_obs(source, numbers, rows.shape[0])
        place_all(rows, model, out, facts, run, obs, drawn)
    return facts


def read_obs(
    source: Path, numbers: NDArray[np.int64] | None, n_rows: int
) -> pd.DataFrame:
    """Return names and metadata of the rows of a file, or of those ``numbers``.

    The results of a former map are left out; rows of an array are called by number.
    Where some rows were left out, a column has their numbers in the file.
    """
    if is_zarr_array(source):
        return pd.DataFrame(index=pd.RangeIndex(n_rows).astype(str))
    with explain_damage(source, "a file of AnnData"), open_store(source) as root:
        stored = parts_of(root, source)["obs"]
        obs: pd.DataFrame = read_element(stored, source.name, "its table obs")
    obs = obs.set_axis(obs.index.astype(str))
    if obs.shape[1]:
        obs = storable_obs(without_results(obs))
    if numbers is None:
        return obs
    return obs.iloc[numbers].assign(**{f"{KEY}_row": numbers})


def draw_reference(
    rows: LazyRows, n_rows: int, random_state: int = 0, run: Run = map
) -> NDArray[np.int64]:
    """Return the numbers of the rows of a representative sample, ascending."""
    n = rows.shape[0]
    if n_rows >= n:
        return np.arange(n)
    rng = np.random.default_rng(random_state)
    drawn = np.sort(rng.choice(n, min(n, _SAMPLE), replace=False))
    sample = rows.take(drawn)
    n_centres = max(1, min(MAX_CENTRES, n_rows // _ROWS_OF_CENTRE))
    middle = np.median(sample, axis=0)  # rounded to float32 only after it is gone
    sample = (sample - middle).astype(np.float32)
    centres = k_means(sample, n_centres, random_state)
    labels, squared = np.empty(n, np.int32), np.empty(n, np.float32)
    for part, values in _computed(run, partial(_nearest, rows, middle, centres), n):
        labels[part], squared[part] = values
    return reference_rows(labels, squared, n_rows, random_state)


def place_all(
    rows: LazyRows,
    model: EmbeddingGame,
    out: Path,
    facts: Mapping[str, Any],
    run: Run,
    obs: pd.DataFrame,
    drawn: NDArray[np.integer],
) -> None:
    """Write the places of all rows as an AnnData without X, a .zarr folder at ``out``.

    ``obs`` (N,): names and metadata of the rows; added are ``embedding_game_cluster``,
    ``_landmark`` (the nearest), ``_stretch`` and ``_isolation``.  ``drawn``: numbers of
    the fitted rows, which have the figures of the fit.  The map is in
    ``obsm["X_embedding_game"]``, ``facts`` and landmarks in ``uns["embedding_game"]``.
    """
    n, n_clusters = rows.shape[0], facts.get("n_clusters")
    cluster_of = _cluster_landmarks(model, n_clusters)
    half = out.with_name(f".{out.name}.part")
    positions = np.empty((n, model.embedding_.shape[1]), np.float32)
    landmarks = np.empty(n, np.int32)
    stretch, isolation = np.empty((2, n), np.float32)
    work = partial(_placed, rows, model, cluster_of >= 0)
    for part, values in _computed(run, work, n):
        positions[part], landmarks[part], stretch[part], isolation[part] = values
    stretch[drawn], isolation[drawn] = model.stretch_, model.isolation_
    numbers = np.unique(cluster_of[cluster_of >= 0])
    clusters = pd.Categorical(
        cluster_of[landmarks].astype(str), categories=numbers.astype(str)
    )
    columns = {"cluster": clusters, "landmark": landmarks}
    columns |= {"stretch": stretch, "isolation": isolation}
    obs = obs.assign(**{f"{KEY}_{name}": each for name, each in columns.items()})
    record = {
        "parameters": storable(facts),
        "landmarks": model.landmarks_,
        "energy": model.energy_,
        "map_hash": model.map_hash_,
        "versions": versions(),
    }
    try:
        _write_zarr(obs, positions, record, half)
    except BaseException:
        shutil.rmtree(half, ignore_errors=True)
        raise
    try:
        if out.exists():
            shutil.rmtree(out)
        half.rename(out)
    except OSError as error:  # on Windows: something in it is open
        raise DataError(
            f"{out} could not be replaced ({error.strerror or error}): the whole "
            f"result is in {half.name} beside it, to be renamed."
        ) from error


def _write_zarr(
    obs: pd.DataFrame,
    positions: NDArray[np.float32],
    record: Mapping[str, Any],
    out: Path,
) -> None:
    """Write an AnnData of metadata, a map and its record as a .zarr folder."""
    from anndata import AnnData

    shutil.rmtree(out, ignore_errors=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # names that are not unique; zarr's versions
        adata = AnnData(obs=obs, obsm={f"X_{KEY}": positions}, uns={KEY: dict(record)})
        adata.write_zarr(out)


def _checked(source: Path) -> Path:
    if not source.exists():
        raise DataError(f"{source} does not exist: check the name and the folder.")
    if source.suffix.lower() not in (".zarr", ".h5ad"):
        raise DataError(
            f"{source.name} is not read in parts: write it as .zarr or .h5ad, or leave "
            "out --reference."
        )
    return source.resolve()


def _cluster_landmarks(
    model: EmbeddingGame, n_clusters: int | None
) -> NDArray[np.int32]:
    """Return the number of each landmark's cluster, those of the command line."""
    edges = Edges.from_matrix(model.affinity_matrix_)
    numbers = np.full(len(model.landmarks_), -1, np.int32)
    n_landmarks = len(model.landmarks_)
    clusters = clusters_of(edges, model.labels_, n_landmarks, n_clusters)
    numbers[model.labels_] = clusters.labels
    return numbers


def _computed(
    run: Run, work: Work, n: int
) -> Iterator[tuple[slice, tuple[NDArray[Any], ...]]]:
    """Yield each chunk of n rows with what came of it."""
    begins = range(0, n, CHUNK)
    ends = [min(begin + CHUNK, n) for begin in begins]
    yield from zip(map(slice, begins, ends), run(work, begins, ends), strict=True)
