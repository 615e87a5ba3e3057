"""The console command ``napari-embedding-game``.

Nothing heavy is imported before it is needed: the help has to appear at once,
and torch must be imported before Qt (on Windows torch fails after PyQt).
"""

from __future__ import annotations

import enum
import json
import math
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from napari_embedding_game.cli_reproduce import EXIT_INTERRUPTED, reproduce
from napari_embedding_game.core.energy.methods import APPROXIMATIONS, OPTIMIZERS
from napari_embedding_game.core.errors import EmbeddingWarning, InputError
from napari_embedding_game.core.graph.row_affinities import affinity_names
from napari_embedding_game.core.graph.starts import start_names
from napari_embedding_game.core.settings import SCHEDULES
from napari_embedding_game.data.errors import DataError, OptionError, shortened

if TYPE_CHECKING:
    from contextlib import ExitStack

    from napari_embedding_game.core.estimator import EmbeddingGame
    from napari_embedding_game.core.snapshot import Snapshot
    from napari_embedding_game.data.dataset import Dataset
    from napari_embedding_game.data.export.result import EmbeddingResult
    from napari_embedding_game.data.formats.lazy_rows import LazyRows
    from napari_embedding_game.data.lazy_recipe import LazyComponents
    from napari_embedding_game.data.stages import Stages
    from napari_embedding_game.session.file.saved_map import SavedMap, SavedSession

T = TypeVar("T")
EXIT_DIFFERENT = 1
EXIT_ERROR = 2

app = typer.Typer(
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="A live, steerable map of single cells, images or texts.",
)


def _choices(name: str, *values: str) -> Any:
    return enum.Enum(name, {value: value for value in values}, type=str)


Sample = _choices("Sample", "digits", "pbmc", "nuclei", "mnist")
Affinity = _choices("Affinity", "auto", *affinity_names())
Approximation = _choices("Approximation", "auto", *APPROXIMATIONS)
Optimizer = _choices("Optimizer", *OPTIMIZERS)
Schedule = _choices("Schedule", *SCHEDULES)
Init = _choices("Init", *start_names())
MissingValues = _choices("MissingValues", "error", "drop")
Duplicates = _choices("Duplicates", "keep", "drop")
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Tell nothing but warnings and errors.")
]
AsJson = Annotated[
    bool,
    typer.Option("--json", help="Write what was done as one JSON object to stdout."),
]


def main() -> None:
    """Entry point of the console command."""
    app(prog_name="napari-embedding-game")


@contextmanager
def _plain_errors(as_json: bool = False) -> Iterator[None]:
    """End an expected error (exit code 2) or Ctrl-C (130) with one sentence.

    Where JSON was asked for, stdout gets it too, as an object with "error".
    """
    try:
        yield
    except KeyboardInterrupt as interrupt:
        _tell_failure("Stopped: nothing written.", "", as_json)
        raise typer.Exit(EXIT_INTERRUPTED) from interrupt
    except (DataError, InputError) as error:
        _tell_failure(_sentence(error), "Error: ", as_json)
        raise typer.Exit(EXIT_ERROR) from error
    except OSError as error:
        if error.filename is None:
            raise
        name = shortened(str(error.filename))
        sentence = f"{name} cannot be used ({error.strerror}): choose another name."
        _tell_failure(sentence, "Error: ", as_json)
        raise typer.Exit(EXIT_ERROR) from error


def _tell_failure(sentence: str, title: str, as_json: bool) -> None:
    typer.echo(title + sentence, err=True)
    if as_json:
        _tell_json({"error": sentence})


def _sentence(error: DataError | InputError) -> str:
    if isinstance(error, OptionError):
        is_plain = error.value.replace("_", "").isalnum()
        value = error.value if is_plain else f'"{error.value}"'
        return error.told(f"--{error.option} {value}")
    return str(error)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(metadata.version("napari-embedding-game"))
        raise typer.Exit


@app.callback(invoke_without_command=True)
def window(
    context: typer.Context,
    sample: Annotated[
        Sample | None, typer.Option(help="Load this sample and play.")
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(help="Load this file and play; with --sample mnist: its data."),
    ] = None,
    screenshot: Annotated[
        Path | None, typer.Option(help="Save a picture of the window after the run.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Save the result of the run as .h5ad."),
    ] = None,
    quit_after_run: Annotated[
        bool, typer.Option("--quit-after-run", help="Close the window after the run.")
    ] = False,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Show the version.",
        ),
    ] = False,
) -> None:
    """Open napari with the Embedding Game, or run one of the commands."""
    if context.invoked_subcommand is not None:
        return
    with _plain_errors():
        _check_window_options(sample, file, screenshot, out)
        import torch  # noqa: F401  (before Qt, see above)

        from napari_embedding_game.ui.app import launch

        code = launch(
            None if sample is None else sample.value,
            path=file,
            screenshot=screenshot,
            out=out,
            quit_after_run=quit_after_run,
        )
    raise typer.Exit(code)


def _check_window_options(
    sample: Sample | None,
    file: Path | None,
    screenshot: Path | None,
    out: Path | None,
) -> None:
    """Raise DataError for what would only fail after the run."""
    from napari_embedding_game.data.export.writers import check_output

    if sample not in (None, Sample.mnist) and file is not None:
        raise DataError(
            f"--sample {sample.value} brings its own data: leave out --file."
        )
    if file is not None and not file.exists():
        raise DataError(f"{file} does not exist: check the name and the folder.")
    for target in (screenshot, out):
        if target is not None:
            check_output(file, target)


@app.command()
def fit(
    source: Annotated[
        Path, typer.Argument(metavar="INPUT", help="File to read; see the README.")
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            help="Result: .h5ad, or .csv for a table; .zarr with --reference.",
        ),
    ],
    space: Annotated[
        str | None,
        typer.Option(help="What to embed: X_pca, X, an array, or columns a,b,c."),
    ] = None,
    recipe: Annotated[
        bool,
        typer.Option(
            "--recipe",
            help="Make principal components of raw counts first, by scanpy's usual "
            "steps.",
        ),
    ] = False,
    missing: Annotated[
        MissingValues, typer.Option(help="Rows with missing or infinite values.")
    ] = MissingValues.error,
    duplicates: Annotated[
        Duplicates, typer.Option(help="Columns of a table that repeat another one.")
    ] = Duplicates.keep,
    transpose: Annotated[
        bool,
        typer.Option("--transpose", help="Of a table with genes in rows: map columns."),
    ] = False,
    n_components: Annotated[
        int, typer.Option(min=1, max=3, help="Dimensions of the map.")
    ] = 2,
    n_neighbors: Annotated[
        int, typer.Option(min=1, help="Neighbours that attract each point.")
    ] = 15,
    method: Annotated[
        str,
        typer.Option(
            help="game, ee, ssne, tsne, umap, pca and more: see docs/methods.md."
        ),
    ] = "game",
    approximation: Annotated[
        Approximation,
        typer.Option(help="How the repulsion of all pairs is found."),
    ] = Approximation.auto,
    optimizer: Annotated[
        Optimizer,
        typer.Option(
            help="The game's own steps, or a minimiser over all pairs; for more than "
            "10,000 rows with --approximation mesh."
        ),
    ] = Optimizer.game,
    perplexity: Annotated[
        float, typer.Option(help="Neighbours that count, for entropic attraction.")
    ] = 30.0,
    repulsion: Annotated[
        float | None,
        typer.Option(
            help="Repulsion as lambda x N, or as a factor where the method has no "
            "lambda; more spreads the map. [the method's own; game: 300]"
        ),
    ] = None,
    n_landmarks: Annotated[
        int, typer.Option(min=1, help="Landmarks, the cores of clusters.")
    ] = 200,
    affinity: Annotated[
        Affinity, typer.Option(help="Weights of the attraction.")
    ] = Affinity.auto,
    schedule: Annotated[
        Schedule, typer.Option(help="Course of the learning rates.")
    ] = Schedule.fast,
    max_iter: Annotated[
        int | None, typer.Option(min=1, help="Iterations; the schedule's own.")
    ] = None,
    learning_rate: Annotated[
        float | None, typer.Option(help="Steps of the points; the schedule's own.")
    ] = None,
    landmark_learning_rate: Annotated[
        float | None, typer.Option(help="Steps of the landmarks; the schedule's own.")
    ] = None,
    momentum: Annotated[
        float | None,
        typer.Option(help="Share of a step in the next, 0 to 1; the schedule's own."),
    ] = None,
    init: Annotated[Init, typer.Option(help="Layout to start from.")] = Init.spectral,
    metric: Annotated[
        str, typer.Option(help="Distance between rows, such as cosine.")
    ] = "euclidean",
    random_state: Annotated[
        int, typer.Option(min=0, help="Seed: the same gives the same map.")
    ] = 0,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    n_jobs: Annotated[
        int | None, typer.Option(help="Threads; chosen by size of the data.")
    ] = None,
    reference: Annotated[
        int | None,
        typer.Option(
            min=2,
            help="Fit so many rows, drawn so that rare groups stay, and place all "
            "others on their map: for files larger than the memory (.zarr, .h5ad).",
        ),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            help="With --reference: address of a Dask scheduler, such as "
            "tcp://host:8786, whose workers place the rows."
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite an existing OUT.")
    ] = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Compute the map of a file without a window, and write it to OUT."""
    with _plain_errors(as_json):
        reading = {
            "missing": missing.value,
            "duplicates": duplicates.value,
            "transposed": transpose,
        }
        if reference is None:
            _check_out(source, out, force)
            if scheduler is not None:
                raise DataError("--scheduler goes with --reference: give both.")
            dataset = _read(source, space, recipe, reading)
            n_rows = dataset.X.shape[0]
            if not quiet:
                _tell_notes(dataset)
        else:
            _check_large_out(source, out, force)
            if missing != "error":
                raise DataError(
                    "--reference reads rows one after another: leave out --missing."
                )
            lazy = None if recipe else _lazy_rows(source, space)
            n_there = _n_cells(source, space) if lazy is None else lazy.shape[0]
            n_rows = min(reference, n_there)
        from napari_embedding_game.core.settings import choose, n_searched

        how = None if approximation == "auto" else approximation.value
        chosen, _ = choose(method, how, optimizer.value)
        from napari_embedding_game.core.estimator import EmbeddingGame, as_parameters
        from napari_embedding_game.core.graph.neighbors import check_rows

        edges = chosen.affinity if affinity == "auto" else affinity.value
        # The estimator would make do with fewer neighbours, as scikit-learn asks.
        check_rows(n_rows, n_searched(edges, n_neighbors, perplexity, n_rows))
        given = reference is None and dataset.is_distances
        chosen = {
            "n_components": n_components,
            "n_neighbors": n_neighbors,
            "n_landmarks": n_landmarks,
            "repulsion": repulsion,
            "affinity": affinity.value,
            "schedule": schedule.value,
            "max_iter": max_iter,
            "learning_rate": learning_rate,
            "landmark_learning_rate": landmark_learning_rate,
            "momentum": momentum,
            "init": init.value,
            "metric": "precomputed" if given else metric,
            "device": device,
            "n_jobs": n_jobs,
            "random_state": random_state,
            "method": method,
            "approximation": how,
            "optimizer": optimizer.value,
            "perplexity": perplexity,
        }
        game = EmbeddingGame(**as_parameters(chosen))
        if reference is not None:
            counts = (source.resolve(), space)
            _fit_large(game, lazy or counts, reference, scheduler, out, quiet, as_json)
            return
        snapshot, interrupted = _play(game.iter_fit(dataset.X), quiet)
        if snapshot is None:
            raise KeyboardInterrupt
        result = _result(game, dataset, snapshot, reading, interrupted)
        _write(dataset, result, out)
        _tell_doubts(snapshot)
        if as_json:
            _tell_json(_summary(dataset, result, snapshot, out))
        elif not quiet:
            _report(dataset, snapshot, out)
        if interrupted:
            raise typer.Exit(EXIT_INTERRUPTED)


def _check_large_out(source: Path, out: Path, force: bool) -> None:
    from napari_embedding_game.data.export.writers import check_output

    if out.suffix.lower() != ".zarr":
        raise DataError(f"{out.name} has to end in .zarr with --reference.")
    if not out.exists():
        check_output(source if source.exists() else None, out)
        return
    if not force:
        raise DataError(f"{out} exists: choose another name, or add --force.")
    is_map = (out / "X_embedding_game").is_dir()
    if not is_map or out.resolve() in (source.resolve(), *source.resolve().parents):
        raise DataError(f"{out} is no map to overwrite: choose another name.")


def _check_lazy(source: Path) -> None:
    if not source.exists():
        raise DataError(f"{source} does not exist: check the name and the folder.")
    if source.suffix.lower() not in (".zarr", ".h5ad"):
        raise DataError(
            f"{source.name} is not read in parts: write it as .zarr or .h5ad, or leave "
            "out --reference."
        )


def _n_cells(source: Path, space: str | None) -> int:
    from napari_embedding_game.data.errors import explain_damage
    from napari_embedding_game.data.lazy_recipe import counts_shape

    _check_lazy(source)
    with explain_damage(source, "a file of AnnData"):
        return counts_shape(source.resolve(), space)[0]


def _lazy_rows(source: Path, space: str | None) -> LazyRows:
    from napari_embedding_game.data.errors import explain_damage
    from napari_embedding_game.data.formats.lazy_rows import LazyRows

    _check_lazy(source)
    with explain_damage(source, "a file of AnnData, or an array of zarr"):
        return LazyRows(source.resolve(), space)


def _fit_large(
    game: EmbeddingGame,
    rows: LazyRows | tuple[Path, str | None],
    reference: int,
    scheduler: str | None,
    out: Path,
    quiet: bool,
    as_json: bool,
) -> None:
    """Fit a reference, place all rows, and write them.

    ``rows`` are a file and the space of its raw counts where the recipe comes first.
    """
    from contextlib import ExitStack, nullcontext

    from napari_embedding_game.core.new_rows.fitted_map import check_transform
    from napari_embedding_game.session import large_fit

    check_transform(game.method, game.metric)
    on = nullcontext(large_fit.here)
    with (
        ExitStack() as closing,
        large_fit.on_cluster(scheduler) if scheduler else on as run,
    ):
        made = None
        if isinstance(rows, tuple):
            source = rows
            rows, made = _components(*source, out, closing, quiet)
        if not quiet:
            typer.echo("Drawing the reference", err=True)
        drawn = large_fit.draw_reference(rows, reference, game.random_state, run)
        snapshot, interrupted = _play(game.iter_fit(rows.take(drawn)), quiet)
        if snapshot is None or interrupted:
            raise KeyboardInterrupt
        if not quiet:
            typer.echo(f"Placing {rows.shape[0]:,} rows", err=True)
        facts = {
            **_flat(game.get_params()),
            "repulsion": game.repulsion_,
            "affinity": game.affinity_,
            "input": rows.path.name if made is None else source[0].name,
            "space": rows.space if made is None else made.facts["space"],
            **({} if made is None else {"recipe": made.facts}),
            "n_points": rows.shape[0],
            "reference": len(drawn),
            "n_iter": snapshot.iteration,
            "energy": snapshot.energy,
            "map_hash": snapshot.map_hash,
            "warning": snapshot.warning,
        }
        numbers = None if made is None else made.rows
        large_fit.place_all(rows, game, out, facts, run, numbers)
    _tell_doubts(snapshot)
    if as_json:
        _tell_json({"out": str(out), **facts})
    elif not quiet:
        typer.echo(
            f"{out}: {rows.shape[0]:,} points of {facts['input']} ({facts['space']}), "
            f"{len(drawn):,} of them fitted, {_state(snapshot)}"
        )


def _components(
    source: Path, space: str | None, out: Path, closing: ExitStack, quiet: bool
) -> tuple[LazyRows, LazyComponents]:
    """Make principal components of counts beside ``out``, kept until ``closing``."""
    import tempfile

    from napari_embedding_game.data.errors import explain_damage
    from napari_embedding_game.data.formats.lazy_rows import LazyRows
    from napari_embedding_game.data.lazy_recipe import write_components

    folder = tempfile.TemporaryDirectory(dir=out.resolve().parent, prefix=".recipe_")
    path = Path(closing.enter_context(folder)) / "components.zarr"
    with explain_damage(source, "a file of AnnData"):
        made = write_components(
            source,
            path,
            space=space,
            tell=lambda text: None if quiet else typer.echo(text, err=True),
        )
    return LazyRows(path), made


def _read(
    source: Path, space: str | None, recipe: bool, reading: Mapping[str, Any]
) -> Dataset:
    """Read a file, and make principal components of its counts where asked for."""
    from napari_embedding_game.data.loading import load
    from napari_embedding_game.data.read_options import Recipe
    from napari_embedding_game.data.stages import finish

    steps = Recipe() if recipe else None
    return finish(load(source, space=space, several="error", recipe=steps, **reading))


def _tell_notes(dataset: Dataset) -> None:
    from napari_embedding_game.data.raw_counts import counts_advice

    advice = counts_advice(dataset.X, dataset.space)
    for note in dataset.notes:
        more = " Here --recipe does so." if note in advice else ""
        typer.echo(f"{note}{more}", err=True)


def _check_out(source: Path, out: Path, force: bool) -> None:
    """Raise DataError for an OUT that cannot be written, before computing it."""
    from napari_embedding_game.data.export.writers import check_output

    if out.suffix.lower() not in (".h5ad", ".csv"):
        raise DataError(f"{out.name} has to end in .h5ad (or .csv for a table).")
    check_output(source if source.exists() else None, out)
    if out.exists() and not force:
        raise DataError(f"{out} exists: choose another name, or add --force.")


def _play(
    snapshots: Iterable[Snapshot], quiet: bool = False
) -> tuple[Snapshot | None, bool]:
    """Follow a game to its end or to Ctrl-C: its last snapshot, and if interrupted."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    snapshot = None
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[state]}"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        disable=quiet,
    )
    try:
        with bar:
            task = bar.add_task("Neighbours and start", total=None, state="")
            for snapshot in snapshots:
                bar.update(
                    task,
                    description="Game",
                    total=snapshot.n_iter or None,
                    completed=snapshot.iteration,
                    state=_state(snapshot),
                )
    except KeyboardInterrupt:
        return snapshot, True
    return snapshot, False


def _state(snapshot: Snapshot) -> str:
    of_all = f" of {snapshot.n_iter}" if snapshot.n_iter else ""
    done = f"iteration {snapshot.iteration}{of_all}"
    return f"{done}, energy {snapshot.energy:.4g}, map {snapshot.map_hash}"


def _result(
    game: EmbeddingGame,
    dataset: Dataset,
    snapshot: Snapshot,
    reading: Mapping[str, Any],
    interrupted: bool,
) -> EmbeddingResult:
    from napari_embedding_game.core.graph.affinities import Edges
    from napari_embedding_game.session.clusters.cluster_book import clusters_of
    from napari_embedding_game.session.run.provenance import result_of

    edges = Edges.from_matrix(game.affinity_matrix_)
    clustering = clusters_of(edges, snapshot.labels, len(snapshot.landmarks))
    parameters = {
        **_flat(game.get_params()),
        "repulsion": game.repulsion_,
        "affinity": game.affinity_,
        "space": dataset.space,
        **reading,
        "n_iter": snapshot.iteration,
        "interrupted": interrupted,
    }
    return result_of(snapshot, parameters, clustering)


def _write(dataset: Dataset, result: EmbeddingResult, out: Path) -> None:
    from napari_embedding_game.data.export.writers import write_csv, write_h5ad

    write = write_csv if out.suffix.lower() == ".csv" else write_h5ad
    write(dataset, result, out)


def _tell_doubts(snapshot: Snapshot) -> None:
    """Tell what to beware of."""
    if snapshot.warning:
        typer.echo(f"Warning: {snapshot.warning}", err=True)
    if not snapshot.finished:
        typer.echo("Stopped early: the last layout before that is written.", err=True)


def _summary(
    dataset: Dataset, result: EmbeddingResult, snapshot: Snapshot, out: Path
) -> dict[str, Any]:
    """Return what :func:`_report` tells, and all parameters, by names for a program.

    A share under pressure that is not defined (NaN) becomes null in JSON.
    """
    return {
        "out": str(out),
        "input": dataset.name,
        "space": dataset.space,
        "notes": list(dataset.notes),
        "n_source_rows": dataset.n_source_rows,
        "n_points": len(snapshot.embedding),
        "n_components": snapshot.embedding.shape[1],
        "n_landmarks": len(snapshot.landmarks),
        "n_clusters": len(result.groups()),
        "n_iter": snapshot.iteration,
        "finished": snapshot.finished,
        "energy": snapshot.energy,
        "map_hash": snapshot.map_hash,
        "stretched_share": snapshot.stretched_share,
        "unlike_count": snapshot.unlike_count,
        "pressured_share": snapshot.pressured_share,
        "warning": snapshot.warning,
        "parameters": dict(result.parameters),
    }


def _flat(parameters: dict[str, Any]) -> dict[str, Any]:
    return {**parameters, **(parameters.pop("method_params") or {})}


def _tell_json(facts: Any) -> None:
    """Write one JSON object; what JSON has no number for becomes null."""
    typer.echo(json.dumps(_plain(facts), indent=2, allow_nan=False))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if hasattr(value, "item"):  # a number of numpy
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    is_known = value is None or isinstance(value, bool | int | float | str)
    return value if is_known else str(value)


def _report(dataset: Dataset, snapshot: Snapshot, out: Path) -> None:
    """Tell what was written."""
    far = f"{snapshot.stretched_share:.1%} far from similar points"
    pressured = f"{snapshot.pressured_share:.0%} under pressure"
    typer.echo(
        f"{out}: {len(snapshot.embedding):,} points of {dataset.name} "
        f"({dataset.space}), {_state(snapshot)}, {far}, "
        f"{pressured if snapshot.has_pressure else 'no pressure in this method'}"
    )


@app.command()
def replay(
    session: Annotated[
        Path, typer.Argument(metavar="SESSION", help="Session file (.zip).")
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Result: .h5ad, or .csv for a table."),
    ] = None,
    map_title: Annotated[
        str | None,
        typer.Option("--map", help="Which of its maps; the one that was shown."),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite an existing OUT.")
    ] = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Repeat the run of a session file, steering included, and compare the maps.

    Ends with code 0 where they are the same bit for bit, else with 1.
    """
    with _plain_errors(as_json):
        if out is not None:
            _check_out(session, out, force)
        from napari_embedding_game.data.stages import finish
        from napari_embedding_game.session.file import archive
        from napari_embedding_game.session.run.replay import replay_frames, same

        recorded = archive.recorded_map(session, map_title)
        saved = finish(archive.with_data(recorded, session.parent))
        assert saved.record is not None
        assert saved.snapshot is not None
        frames = replay_frames(saved.dataset.X, saved.record)
        snapshot, interrupted = _play(frames, quiet)
        if interrupted or snapshot is None:
            typer.echo("Stopped before the end: nothing is compared.", err=True)
            raise typer.Exit(EXIT_INTERRUPTED)
        is_same = same(snapshot, saved.snapshot)
        if out is not None:
            _write_replayed(saved, saved.snapshot if is_same else snapshot, out)
    steered = len(saved.record.steered)
    if as_json:
        _tell_json(
            {
                "map": saved.title,
                "n_iter": snapshot.iteration,
                "energy": snapshot.energy,
                "map_hash": snapshot.map_hash,
                "steered": steered,
                "same": is_same,
                "out": None if out is None else str(out),
            }
        )
    elif not quiet:
        verdict = "the same map, bit for bit."
        if not is_same:
            verdict = "ANOTHER map than recorded."
            if others := archive.other_versions(session):
                verdict += f" The file was written by {', '.join(others)}."
        typer.echo(
            f"{saved.title}: {_state(snapshot)}, steered {steered} "
            f"time{'' if steered == 1 else 's'}: {verdict}"
        )
    if not is_same:
        raise typer.Exit(EXIT_DIFFERENT)


def _write_replayed(saved: SavedMap, snapshot: Snapshot, out: Path) -> None:
    from napari_embedding_game.session.run.provenance import result
    from napari_embedding_game.session.session import Session

    session = Session()
    session.restore(saved)
    assert saved.record is not None
    clustering = session.clusters.clustering
    _write(
        saved.dataset, result(saved.dataset, saved.record, snapshot, clustering), out
    )


@app.command("map-onto")
def map_onto(
    reference: Annotated[
        Path,
        typer.Argument(
            metavar="REFERENCE", help="Result (.h5ad) of `fit` or of the window."
        ),
    ],
    source: Annotated[
        Path, typer.Argument(metavar="NEW", help="New cells (.h5ad), with counts.")
    ],
    out: Annotated[
        Path,
        typer.Option("--out", "-o", help="The new cells with their results (.h5ad)."),
    ],
    labels: Annotated[
        list[str] | None,
        typer.Option(
            "--label",
            help="Column of the reference to predict; repeat it for several. [the "
            "clusters]",
        ),
    ] = None,
    n_neighbors: Annotated[
        int, typer.Option(min=1, help="Reference cells that vote on a label.")
    ] = 15,
    min_shared_genes: Annotated[
        float, typer.Option(help="Share of the reference's genes that NEW needs.")
    ] = 0.5,
    unlike: Annotated[
        float,
        typer.Option(
            help="Cells are unlike the reference where fewer than this share of its "
            "own score as high."
        ),
    ] = 0.01,
    correct_batch: Annotated[
        bool,
        typer.Option(
            "--correct-batch",
            help="Take away what NEW differs in from reference cells of the same kind.",
        ),
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite an existing OUT.")
    ] = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Place new cells on the map of REFERENCE, and predict their labels."""
    with _plain_errors(as_json):
        if out.suffix.lower() != ".h5ad":
            raise DataError(f"{out.name} has to end in .h5ad.")
        _check_out(source, out, force)
        from napari_embedding_game.data.columns import KEY
        from napari_embedding_game.data.export.atomic import whole_or_nothing
        from napari_embedding_game.session.reference import mapping
        from napari_embedding_game.session.reference.new_cells import read_cells
        from napari_embedding_game.session.reference.reference_map import (
            read_reference,
        )

        known, cells = read_reference(reference), read_cells(source)
        stages = mapping.map_cells(
            known,
            cells,
            labels or [f"{KEY}_cluster"],
            n_neighbors=n_neighbors,
            min_shared_genes=min_shared_genes,
            unlike=unlike,
            correct_batch=correct_batch,
        )
        mapped = _finish_told(stages, quiet)
        mapping.write_mapped(cells.adata, mapped, known.dataset.space)
        with whole_or_nothing(out) as temporary:
            cells.adata.write_h5ad(temporary, compression="gzip")
    if as_json:
        _tell_json({"out": str(out), **mapped.facts})
    elif not quiet:
        for note in mapped.notes:
            typer.echo(note, err=True)
        typer.echo(
            f"{out}: {len(mapped.places):,} cells on the map of {known.name}, "
            f"{int(mapped.unlike.sum()):,} unlike it"
        )


def _finish_told(stages: Stages[T], quiet: bool) -> T:
    """Run stages to their end, telling each, and return what came of them."""
    last = ""
    while True:
        try:
            stage = next(stages)
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]
        if not quiet and stage.text != last:
            typer.echo(stage.text, err=True)
        last = stage.text


@app.command()
def notebook(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="INPUT",
            help="Session file (.zip) that the window saved.",
        ),
    ],
    out: Annotated[
        Path,
        typer.Argument(
            metavar="OUT", help="Notebook (.ipynb), script (.py) or methods (.txt)."
        ),
    ],
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite an existing OUT.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Write all that led to a map as code, which makes it again from the data."""
    with _plain_errors():
        from napari_embedding_game.data.export.writers import check_output
        from napari_embedding_game.session.notebook.export import write_code

        check_output(source if source.exists() else None, out)
        if out.exists() and not force:
            raise DataError(f"{out} exists: choose another name, or add --force.")
        session = _session_of(source)
        files = write_code(session, out)
    if not quiet:
        for file in files:
            typer.echo(f"Written: {file}")


def _session_of(source: Path) -> SavedSession:
    """Return the session of a session file, with its data."""
    from napari_embedding_game.session.file import archive

    session, troubles = archive.open_session(source)
    if troubles and not session[session.current].dataset.X.shape[1]:
        raise DataError(troubles[0])
    return session


app.command()(_plain_errors()(reproduce))


@app.command("warm-up", hidden=True)
def warm_up() -> None:
    """Compile the numeric kernels now, so that the first run need not wait."""
    import numpy as np

    from napari_embedding_game.core.estimator import EmbeddingGame, as_parameters
    from napari_embedding_game.core.warm_up import compile_grid, compile_searches
    from napari_embedding_game.session.run import engine

    engine.warm_up()  # all that the window needs, in the types that it needs them in
    compile_grid()
    compile_searches()
    X = np.random.default_rng(0).normal(size=(200, 5)).astype(np.float32)
    with warnings.catch_warnings():
        # After so few iterations no map says much.
        warnings.simplefilter("ignore", EmbeddingWarning)
        for settings in _every_kind_of_run():
            EmbeddingGame(**as_parameters(settings), random_state=0).fit(X)
        EmbeddingGame(max_iter=3, random_state=0).fit(X).transform(X[:2] + 1)


def _every_kind_of_run() -> Iterator[dict[str, Any]]:
    from napari_embedding_game.core.energy.methods import METHODS
    from napari_embedding_game.core.settings import optimizers

    for n_components in (2, 3):
        for affinity in ("uniform", "mixed"):
            yield {"n_components": n_components, "affinity": affinity, "max_iter": 3}
    for method, member in METHODS.items():
        few = {"method": method, "perplexity": 10.0, "max_iter": 2}
        for approximation in () if member.moved_by else member.approximations:
            yield {**few, "approximation": approximation}
        for optimizer in optimizers(method)[1:]:
            yield {**few, "optimizer": optimizer}


if __name__ == "__main__":
    sys.exit(main())
