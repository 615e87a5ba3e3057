"""Map more rows than fit into memory: fit a sample, and place all rows on its map.

1. The first pass over all rows, chunk by chunk, samples a reference in which rare
   groups stay (:mod:`~.core.new_rows.sample`).
2. The reference is fitted.
3. The second pass places all rows on the map (:meth:`EmbeddingGame.transform`) and
   writes them chunk by chunk.  Rows of the reference keep their fitted positions.

A row is placed without regard to other new rows, so chunks can be computed anywhere and
in any order: Dask sends them to the workers of a cluster, and sends a chunk again when
a worker is lost.  Each worker reads its rows from the file, which must have the same
path there.  This process holds one chunk, the reference, and the name, the metadata and
a few numbers of each row.
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
from napari_embedding_game.core.graph.neighbors import validate_row_count
from napari_embedding_game.core.new_rows.sample import (
    find_k_means_centres,
    find_nearest_centres,
    sample_by_sensitivity,
)
from napari_embedding_game.core.new_rows.transform import (
    find_nearest_landmark_among,
    validate_transform,
)
from napari_embedding_game.core.progress import yield_with_progress
from napari_embedding_game.core.settings import (
    Settings,
    fill_affinity,
    resolve_n_neighbors,
)
from napari_embedding_game.data.columns import KEY
from napari_embedding_game.data.errors import DataError, wrap_read_errors
from napari_embedding_game.data.export.anndata_result import to_storable_obs
from napari_embedding_game.data.export.result import (
    find_installed_versions,
    to_storable,
)
from napari_embedding_game.data.formats.anndata import to_readable_root
from napari_embedding_game.data.formats.store import (
    is_zarr_array,
    open_store,
    read_element,
)
from napari_embedding_game.data.stages import finish
from napari_embedding_game.session.clusters.clusters import cluster_finished_run
from napari_embedding_game.session.file.h5ad import drop_result_columns

if TYPE_CHECKING:
    from napari_embedding_game.data.formats.lazy_rows import LazyRows

CHUNK = 65_536
MAX_CENTRES = 256
_ROWS_OF_CENTRE = 50
"""Rows of the reference for each centre of k-means: with fewer, a centre would have no
choice among its rows."""
_N_SAMPLED = 65_536
"""Rows, sampled at random, to which the centres of k-means are fitted."""
_RETRIES = 5
_PATIENCE = 10
"""Seconds within which a scheduler has to answer."""


ChunkWork = Callable[[int, int], tuple[NDArray[Any], ...]]
"""Takes the first row and the end of a chunk; returns arrays with one entry per row."""
ChunkMapper = Callable[
    [ChunkWork, Iterable[int], Iterable[int]], Iterable[tuple[NDArray[Any], ...]]
]
"""Applies work to chunks, given their first rows and their ends, as ``map`` does."""


@contextmanager
def open_cluster_map(scheduler: str) -> Iterator[ChunkMapper]:
    """Connect to a Dask scheduler; yield a function that maps chunks on its workers.

    The connection is closed at the end.  ``scheduler``: its address.

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

    def map_chunks(
        work: ChunkWork, begins: Iterable[int], ends: Iterable[int]
    ) -> Iterator[tuple[NDArray[Any], ...]]:
        """Yield the arrays of each chunk, in order; send ``work`` to all workers."""
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
        yield map_chunks


def _find_nearest_centres_of_chunk(
    rows: LazyRows,
    median: NDArray[np.floating],
    centres: NDArray[np.float32],
    begin: int,
    end: int,
) -> tuple[NDArray[Any], ...]:
    """Return the nearest centre of each row, int32, and its squared distance.

    The chunk is of rows ``begin`` to ``end``, minus ``median`` (D,); ``centres`` (c, D)
    are relative to ``median``.
    """
    chunk = (rows.read_range(begin, end) - median).astype(np.float32)
    labels, squared = find_nearest_centres(chunk, centres)
    return labels.astype(np.int32), squared


def _place_rows_of_chunk(
    rows: LazyRows,
    model: EmbeddingGame,
    has_rows: NDArray[np.bool_],
    begin: int,
    end: int,
) -> tuple[NDArray[Any], ...]:
    """Return positions, nearest landmarks, stretch and isolation of a chunk's rows.

    The chunk is of rows ``begin`` to ``end``. ``has_rows`` (L,): the landmarks that a
    row may be assigned to.
    """
    positions, stretch, isolation = place_rows_with_diagnostics(
        model, rows.read_range(begin, end)
    )
    landmarks = find_nearest_landmark_among(positions, model.landmarks_, has_rows)
    return positions, landmarks, stretch, isolation


def map_large_file(
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
    """Fit a sample of a file's rows, place all rows on its map, and write a .zarr.

    ``source`` and ``out``: file of AnnData (.zarr or .h5ad), or an array of zarr; see
    :func:`write_placed_rows`. ``n_reference``: how many rows are fitted. ``settings``:
    fields of :class:`~.core.settings.Settings`. ``recipe``: whether principal
    components of raw counts are computed first. ``n_clusters``: how many clusters the
    landmarks are merged into; None for as many as the window would show. ``scheduler``:
    address of a Dask scheduler, whose workers place the rows. ``report``: called with a
    sentence at each stage.

    Returns a dict of the parameters and of figures of the map, such as "n_points",
    "energy" and "map_hash".

    Raises DataError or InputError: the file cannot be read or written, a setting is not
    allowed, or the scheduler fails.  After Ctrl-C nothing is written.
    """
    from napari_embedding_game.data.formats.lazy_rows import LazyRows
    from napari_embedding_game.data.lazy_recipe import (
        read_counts_shape,
        write_principal_components,
    )

    log = report or (lambda _: None)
    source = _validate_source(source)
    model = EmbeddingGame(**to_parameters(settings))
    validate_transform(model.method, model.metric)
    rows, file_rows, recipe_facts = None, None, dict[str, Any]()
    with wrap_read_errors(source, "a file of AnnData, or an array of zarr"):
        if recipe:
            n_rows = read_counts_shape(source, space)[0]
        else:
            rows = LazyRows(source, space)
            n_rows = rows.shape[0]
    n_rows = min(n_reference, n_rows)
    n_neighbors = resolve_n_neighbors(fill_affinity(Settings(**settings)), n_rows)
    validate_row_count(n_rows, n_neighbors)
    with ExitStack() as closing:
        map_chunks = (
            closing.enter_context(open_cluster_map(scheduler)) if scheduler else map
        )
        if rows is None:
            folder = TemporaryDirectory(dir=out.resolve().parent, prefix=".recipe_")
            path = Path(closing.enter_context(folder)) / "components.zarr"
            with wrap_read_errors(source, "a file of AnnData"):
                stages = write_principal_components(source, path, space=space)
                file_rows, recipe_facts = finish(stages, lambda stage: log(stage.text))
            rows = LazyRows(path)
        log("Drawing the reference")
        sampled = sample_reference_rows(
            rows, n_reference, model.random_state, map_chunks
        )
        log("Fitting the reference")
        played = model.play(rows.take_rows(sampled))
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
            "reference": len(sampled),
            "n_iter": snapshot.iteration,
            "energy": snapshot.energy,
            "map_hash": snapshot.map_hash,
            "warning": snapshot.warning,
        }
        obs = read_obs(source, file_rows, rows.shape[0])
        write_placed_rows(rows, model, out, facts, map_chunks, obs, sampled)
    return facts


def read_obs(
    source: Path, file_rows: NDArray[np.int64] | None, n_rows: int
) -> pd.DataFrame:
    """Return the metadata of a file's rows, or of its ``file_rows``, by row name.

    Columns of a former map are left out.  An array of zarr has no columns, and its
    ``n_rows`` rows are named by their number.  With ``file_rows``, a column
    "embedding_game_row" holds these numbers.

    Raises DataError: the metadata cannot be read.
    """
    if is_zarr_array(source):
        return pd.DataFrame(index=pd.RangeIndex(n_rows).astype(str))
    with wrap_read_errors(source, "a file of AnnData"), open_store(source) as root:
        stored = to_readable_root(root, source)["obs"]
        obs: pd.DataFrame = read_element(stored, source.name, "its table obs")
    obs = obs.set_axis(obs.index.astype(str))
    if obs.shape[1]:
        obs = to_storable_obs(drop_result_columns(obs))
    if file_rows is None:
        return obs
    return obs.iloc[file_rows].assign(**{f"{KEY}_row": file_rows})


def sample_reference_rows(
    rows: LazyRows, n_rows: int, random_state: int = 0, map_chunks: ChunkMapper = map
) -> NDArray[np.int64]:
    """Return the row numbers of a sample in which rare groups stay, ascending.

    Rows far from the k-means centres of a random subsample, or of small clusters, are
    drawn more often.

    ``n_rows``: size of the sample; where the file has no more rows, all are returned.
    ``random_state``: seed. ``map_chunks``: applies the search for centres to the
    chunks.
    """
    n = rows.shape[0]
    if n_rows >= n:
        return np.arange(n)
    rng = np.random.default_rng(random_state)
    sampled = np.sort(rng.choice(n, min(n, _N_SAMPLED), replace=False))
    sample = rows.take_rows(sampled)
    n_centres = max(1, min(MAX_CENTRES, n_rows // _ROWS_OF_CENTRE))
    median = np.median(sample, axis=0)  # rounded to float32 only after it is gone
    sample = (sample - median).astype(np.float32)
    centres = find_k_means_centres(sample, n_centres, random_state)
    labels, squared = np.empty(n, np.int32), np.empty(n, np.float32)
    for part, values in _iter_chunk_results(
        map_chunks, partial(_find_nearest_centres_of_chunk, rows, median, centres), n
    ):
        labels[part], squared[part] = values
    return sample_by_sensitivity(labels, squared, n_rows, random_state)


def write_placed_rows(
    rows: LazyRows,
    model: EmbeddingGame,
    out: Path,
    facts: Mapping[str, Any],
    map_chunks: ChunkMapper,
    obs: pd.DataFrame,
    sampled: NDArray[np.integer],
) -> None:
    """Place all rows and write their positions as an AnnData without X, a .zarr folder.

    ``facts``: parameters to be stored, of which "n_clusters" is used. ``obs`` (N rows):
    names and metadata of the rows, to which the columns ``embedding_game_cluster``,
    ``_landmark`` (the nearest), ``_stretch`` and ``_isolation`` are added.
    ``sampled``: row numbers of the fitted rows, which keep the stretch and isolation of
    the fit.

    The map is written to ``obsm["X_embedding_game"]``, ``facts`` and landmarks to
    ``uns["embedding_game"]``.  The folder is written beside ``out``, and replaces it
    when it is complete.

    Raises DataError: an existing folder at ``out`` cannot be replaced; then the result
    stays beside it.
    """
    n, n_clusters = rows.shape[0], facts.get("n_clusters")
    cluster_of = _find_cluster_of_landmarks(model, n_clusters)
    half = out.with_name(f".{out.name}.part")
    positions = np.empty((n, model.embedding_.shape[1]), np.float32)
    landmarks = np.empty(n, np.int32)
    stretch, isolation = np.empty((2, n), np.float32)
    work = partial(_place_rows_of_chunk, rows, model, cluster_of >= 0)
    for part, values in _iter_chunk_results(map_chunks, work, n):
        positions[part], landmarks[part], stretch[part], isolation[part] = values
    stretch[sampled], isolation[sampled] = model.stretch_, model.isolation_
    numbers = np.unique(cluster_of[cluster_of >= 0])
    clusters = pd.Categorical(
        cluster_of[landmarks].astype(str), categories=numbers.astype(str)
    )
    columns = {"cluster": clusters, "landmark": landmarks}
    columns |= {"stretch": stretch, "isolation": isolation}
    obs = obs.assign(**{f"{KEY}_{name}": each for name, each in columns.items()})
    record = {
        "parameters": to_storable(facts),
        "landmarks": model.landmarks_,
        "energy": model.energy_,
        "map_hash": model.map_hash_,
        "versions": find_installed_versions(),
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
    """Write an AnnData of metadata, a map and its record as a .zarr folder.

    An existing folder is deleted first.
    """
    from anndata import AnnData

    shutil.rmtree(out, ignore_errors=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # names that are not unique; zarr's versions
        adata = AnnData(obs=obs, obsm={f"X_{KEY}": positions}, uns={KEY: dict(record)})
        adata.write_zarr(out)


def _validate_source(source: Path) -> Path:
    """Return the resolved path of an existing .zarr or .h5ad; else raise DataError."""
    if not source.exists():
        raise DataError(f"{source} does not exist: check the name and the folder.")
    if source.suffix.lower() not in (".zarr", ".h5ad"):
        raise DataError(
            f"{source.name} is not read in parts: write it as .zarr or .h5ad, or leave "
            "out --reference."
        )
    return source.resolve()


def _find_cluster_of_landmarks(
    model: EmbeddingGame, n_clusters: int | None
) -> NDArray[np.int32]:
    """Return the cluster of each landmark, (L,), as ``fit`` of the command line does.

    A landmark without points has -1. ``n_clusters``: None for as many as the window
    would show.
    """
    edges = Edges.from_symmetric_matrix(model.affinity_matrix_)
    numbers = np.full(len(model.landmarks_), -1, np.int32)
    n_landmarks = len(model.landmarks_)
    clusters = cluster_finished_run(edges, model.labels_, n_landmarks, n_clusters)
    numbers[model.labels_] = clusters.labels
    return numbers


def _iter_chunk_results(
    map_chunks: ChunkMapper, work: ChunkWork, n: int
) -> Iterator[tuple[slice, tuple[NDArray[Any], ...]]]:
    """Yield the slice of each chunk of ``n`` rows, and the arrays computed for it.

    Chunks have ``CHUNK`` rows, the last one fewer.
    """
    begins = range(0, n, CHUNK)
    ends = [min(begin + CHUNK, n) for begin in begins]
    yield from zip(
        map(slice, begins, ends), map_chunks(work, begins, ends), strict=True
    )
