"""The console command ``napari-embedding-game``.

Nothing heavy is imported before it is needed: the help has to appear at once,
and torch must be imported before Qt (on Windows torch fails after PyQt).
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from napari_embedding_game.core.errors import EmbeddingWarning, InputError
from napari_embedding_game.core.settings import (
    Settings,
    n_searched,
    optimizers,
    resolve,
)
from napari_embedding_game.data.errors import DataError, OptionError, shortened
from napari_embedding_game.papers import command

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
Options = argparse.Namespace
DIFFERENT, WRONG, INTERRUPTED = 1, 2, 130
"""Exit codes."""
_READING = {"missing": "error", "duplicates": "keep", "transposed": False}


class _Parser(argparse.ArgumentParser):
    """Abbreviates no option, and begins what is wrong with "Error"."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        self.exit(WRONG, f"{self.format_usage()}Error: {message}\n")


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Entry point of the console command."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a console may lack a letter
    sys.exit(_run(_parser().parse_args(arguments)))


def _run(options: Options) -> int:
    """End an expected error, or Ctrl-C, with one sentence.

    Where JSON was asked for, stdout gets it too, as an object with "error".
    """
    try:
        code: int = options.do(options)
        return code
    except KeyboardInterrupt:
        code, title, sentence = INTERRUPTED, "", "Stopped: nothing written."
    except (DataError, InputError) as error:
        code, title, sentence = WRONG, "Error: ", _sentence(error)
    except OSError as error:
        if error.filename is None:
            raise
        name = shortened(str(error.filename))
        sentence = f"{name} cannot be used ({error.strerror}): choose another name."
        code, title = WRONG, "Error: "
    _tell(title + sentence)
    if getattr(options, "json", False):
        _tell_json({"error": sentence})
    return code


def _sentence(error: DataError | InputError) -> str:
    if isinstance(error, OptionError):
        is_plain = error.value.replace("_", "").isalnum()
        value = error.value if is_plain else f'"{error.value}"'
        return error.told(f"--{error.option} {value}")
    return str(error)


def _tell(text: str) -> None:
    print(text, file=sys.stderr)


# --- What can be written after the name -------------------------------------------


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="napari-embedding-game",
        description="A live, steerable map of single cells, images or texts. Without "
        "a command napari is opened with it.",
    )
    add = parser.add_argument
    add(
        "--version", action="version", version=metadata.version("napari-embedding-game")
    )
    add("--sample", choices=("digits", "pbmc", "nuclei", "mnist"),
        help="Load this sample and play.")  # fmt: skip
    add("--file", type=Path,
        help="Load this file and play; with --sample mnist: its data.")  # fmt: skip
    add("--screenshot", type=Path, help="Save a picture of the window after the run.")
    add("-o", "--out", type=Path, help="Save the result of the run as .h5ad.")
    add("--quit-after-run", action="store_true", help="Close the window after the run.")
    parser.set_defaults(do=_window)
    commands = parser.add_subparsers(metavar="COMMAND")

    def make(name: str, do: Any, words: str, **shown: Any) -> argparse.ArgumentParser:
        made = commands.add_parser(name, description=words, **shown)
        made.set_defaults(do=do)
        return made

    words = "Compute the map of a file without a window, and write it to OUT."
    _add_fit(make("fit", _fit, words, help=words))
    words = "Repeat the run of a session file, steering included, and compare the maps."
    ends = " Ends with code 0 where they are the same bit for bit, else with 1."
    _add_replay(make("replay", _replay, words + ends, help=words))
    words = "Place new cells on the map of REFERENCE, and predict their labels."
    _add_map_onto(make("map-onto", _map_onto, words, help=words))
    words = "Write all that led to a map as code, which makes it again from the data."
    _add_notebook(make("notebook", _notebook, words, help=words))
    words = "Compute anew what a paper reports: a figure, a table and a JSON file."
    command.add_arguments(make("reproduce", command.reproduce, words, help=words))
    make("warm-up", _warm_up, "Compile the numeric kernels now.")
    return parser


def _add_fit(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("source", type=Path, metavar="INPUT", help="File to read; see the README.")
    add("-o", "--out", type=Path, required=True,
        help="Result: .h5ad, or .csv for a table; .zarr with --reference.")  # fmt: skip
    add("--space", help="What to embed: X_pca, X, an array, or columns a,b,c.")
    add("--recipe", action="store_true",
        help="Make principal components of raw counts first, by scanpy's usual "
        "steps.")  # fmt: skip
    add("--missing", choices=("error", "drop"), default="error",
        help="Rows with missing or infinite values.")  # fmt: skip
    add("--duplicates", choices=("keep", "drop"), default="keep",
        help="Columns of a table that repeat another one.")  # fmt: skip
    add("--transpose", action="store_true", dest="transposed",
        help="Of a table with genes in rows: map columns.")  # fmt: skip
    kinds = {"int": int, "float": float}
    for each in fields(Settings):
        told = each.metadata
        among = f" One of {', '.join(told['choices']())}." if "choices" in told else ""
        default = f" [{each.default}]" if each.default is not None else ""
        add(f"--{each.name.replace('_', '-')}", default=each.default,
            type=kinds.get(str(each.type).partition(" ")[0], str),
            help=f"{told['title']}. {told['words']}{among}{default}".replace("%", "%%"),
            metavar=each.name.upper())  # fmt: skip
    add("--reference", type=int, metavar="ROWS",
        help="Fit so many rows, drawn so that rare groups stay, and place all others "
        "on their map: for files larger than the memory (.zarr, .h5ad).")  # fmt: skip
    add("--scheduler",
        help="With --reference: address of a Dask scheduler, such as "
        "tcp://host:8786, whose workers place the rows.")  # fmt: skip
    _add_output(parser)


def _add_replay(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("session", type=Path, metavar="SESSION", help="Session file (.zip).")
    add("-o", "--out", type=Path, help="Result: .h5ad, or .csv for a table.")
    add("--map", help="Which of its maps; the one that was shown.")
    _add_output(parser)


def _add_map_onto(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("reference", type=Path, metavar="REFERENCE",
        help="Result (.h5ad) of `fit` or of the window.")  # fmt: skip
    add("source", type=Path, metavar="NEW", help="New cells (.h5ad), with counts.")
    add("-o", "--out", type=Path, required=True,
        help="The new cells with their results (.h5ad).")  # fmt: skip
    add("--label", action="append", dest="labels",
        help="Column of the reference to predict; repeat it for several. [the "
        "clusters]")  # fmt: skip
    add("--n-neighbors", type=int, default=15,
        help="Reference cells that vote on a label.")  # fmt: skip
    add("--min-shared-genes", type=float, default=0.5,
        help="Share of the reference's genes that NEW needs.")  # fmt: skip
    add("--unlike", type=float, default=0.01,
        help="Cells are unlike the reference where fewer than this share of its own "
        "score as high.")  # fmt: skip
    add("--correct-batch", action="store_true",
        help="Take away what NEW differs in from reference cells of the same "
        "kind.")  # fmt: skip
    _add_output(parser)


def _add_notebook(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("source", type=Path, metavar="SESSION", help="Session file (.zip).")
    add("out", type=Path, metavar="OUT",
        help="Notebook (.ipynb), script (.py) or methods (.txt).")  # fmt: skip
    _add_output(parser, json=False)


def _add_output(parser: argparse.ArgumentParser, json: bool = True) -> None:
    add = parser.add_argument
    add("--force", action="store_true", help="Overwrite an existing OUT.")
    add("-q", "--quiet", action="store_true",
        help="Tell nothing but warnings and errors.")  # fmt: skip
    if json:
        add("--json", action="store_true",
            help="Write what was done as one JSON object to stdout.")  # fmt: skip


# --- window ---------------------------------------------------------------------


def _window(options: Options) -> int:
    """Open napari; what would only fail after the run is refused before."""
    from napari_embedding_game.data.export.writers import check_output

    file = options.file
    if options.sample not in (None, "mnist") and file is not None:
        raise DataError(
            f"--sample {options.sample} brings its own data: leave out --file."
        )
    if file is not None and not file.exists():
        raise DataError(f"{file} does not exist: check the name and the folder.")
    for target in (options.screenshot, options.out):
        if target is not None:
            check_output(file, target)
    import torch  # noqa: F401  (before Qt, see above)

    from napari_embedding_game.ui.app import launch

    return int(
        launch(
            options.sample,
            path=file,
            screenshot=options.screenshot,
            out=options.out,
            quit_after_run=options.quit_after_run,
        )
    )


# --- fit --------------------------------------------------------------------------


def _fit(options: Options) -> int:
    source, space, quiet = options.source, options.space, options.quiet
    chosen = {each.name: getattr(options, each.name) for each in fields(Settings)}
    if chosen["approximation"] == "auto":
        chosen["approximation"] = None
    settings = Settings(**chosen).validate()
    reading = {name: getattr(options, name) for name in _READING}
    if options.reference is None:
        _check_out(source, options.out, options.force)
        if options.scheduler is not None:
            raise DataError("--scheduler goes with --reference: give both.")
        dataset = _read(source, space, options.recipe, reading)
        n_rows = dataset.X.shape[0]
        if dataset.is_distances:
            chosen["metric"] = "precomputed"
        if not quiet:
            _tell_notes(dataset)
    else:
        _check_large_out(source, options.out, options.force)
        if options.missing != "error":
            raise DataError(
                "--reference reads rows one after another: leave out --missing."
            )
        lazy = None if options.recipe else _lazy_rows(source, space)
        n_there = _n_cells(source, space) if lazy is None else lazy.shape[0]
        n_rows = min(options.reference, n_there)
    from napari_embedding_game.core.estimator import EmbeddingGame, as_parameters
    from napari_embedding_game.core.graph.neighbors import check_rows

    # The estimator would make do with fewer neighbours, as scikit-learn asks.
    check_rows(
        n_rows,
        n_searched(resolve(settings), n_rows),
    )
    game = EmbeddingGame(**as_parameters(chosen))
    if options.reference is not None:
        return _fit_large(game, lazy or (source.resolve(), space), options)
    snapshot, interrupted = _play(_snapshots(game, dataset.X), quiet)
    if snapshot is None:
        raise KeyboardInterrupt
    result = _result(game, dataset, snapshot, reading, interrupted)
    _write(dataset, result, options.out)
    _tell_doubts(snapshot)
    if options.json:
        _tell_json(_summary(dataset, result, snapshot, options.out))
    elif not quiet:
        _report(dataset, snapshot, options.out)
    return INTERRUPTED if interrupted else 0


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
    game: EmbeddingGame, rows: LazyRows | tuple[Path, str | None], options: Options
) -> int:
    """Fit a reference, place all rows, and write them.

    ``rows`` are a file and the space of its raw counts where the recipe comes first.
    """
    from contextlib import ExitStack, nullcontext

    from napari_embedding_game.core.new_rows.transform import check_transform
    from napari_embedding_game.session import large_fit

    scheduler, quiet = options.scheduler, options.quiet
    check_transform(game.method, game.metric)
    on = nullcontext(large_fit.here)
    with (
        ExitStack() as closing,
        large_fit.on_cluster(scheduler) if scheduler else on as run,
    ):
        made = None
        if isinstance(rows, tuple):
            source = rows
            rows, made = _components(*source, options.out, closing, quiet)
        if not quiet:
            _tell("Drawing the reference")
        drawn = large_fit.draw_reference(
            rows, options.reference, game.random_state, run
        )
        snapshot, interrupted = _play(_snapshots(game, rows.take(drawn)), quiet)
        if snapshot is None or interrupted:
            raise KeyboardInterrupt
        if not quiet:
            _tell(f"Placing {rows.shape[0]:,} rows")
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
        large_fit.place_all(rows, game, options.out, facts, run, numbers)
    _tell_doubts(snapshot)
    if options.json:
        _tell_json({"out": str(options.out), **facts})
    elif not quiet:
        print(
            f"{options.out}: {rows.shape[0]:,} points of {facts['input']} "
            f"({facts['space']}), {len(drawn):,} of them fitted, {_state(snapshot)}"
        )
    return 0


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
            tell=lambda text: None if quiet else _tell(text),
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
        _tell(f"{note}{more}")


def _check_out(source: Path, out: Path, force: bool) -> None:
    """Raise DataError for an OUT that cannot be written, before computing it."""
    from napari_embedding_game.data.export.writers import check_output

    if out.suffix.lower() not in (".h5ad", ".csv"):
        raise DataError(f"{out.name} has to end in .h5ad (or .csv for a table).")
    check_output(source if source.exists() else None, out)
    if out.exists() and not force:
        raise DataError(f"{out} exists: choose another name, or add --force.")


def _snapshots(game: EmbeddingGame, X: Any) -> Iterator[Snapshot]:
    """Search and play, once somebody iterates."""
    yield from game.play(X)


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
    from napari_embedding_game.core.graph.edges import Edges
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
        _tell(f"Warning: {snapshot.warning}")
    if not snapshot.finished:
        _tell("Stopped early: the last layout before that is written.")


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
    print(json.dumps(_plain(facts), indent=2, allow_nan=False))


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
    print(
        f"{out}: {len(snapshot.embedding):,} points of {dataset.name} "
        f"({dataset.space}), {_state(snapshot)}, {far}, "
        f"{pressured if snapshot.has_pressure else 'no pressure known'}"
    )


# --- replay -----------------------------------------------------------------------


def _replay(options: Options) -> int:
    out = options.out
    if out is not None:
        _check_out(options.session, out, options.force)
    from napari_embedding_game.data.stages import finish
    from napari_embedding_game.session.file import archive
    from napari_embedding_game.session.run.replay import replay_frames, same

    recorded = archive.recorded_map(options.session, options.map)
    saved = finish(archive.with_data(recorded, options.session.parent))
    assert saved.record is not None
    assert saved.snapshot is not None
    frames = replay_frames(saved.dataset.X, saved.record)
    snapshot, interrupted = _play(frames, options.quiet)
    if interrupted or snapshot is None:
        _tell("Stopped before the end: nothing is compared.")
        return INTERRUPTED
    is_same = same(snapshot, saved.snapshot)
    if out is not None:
        _write_replayed(saved, saved.snapshot if is_same else snapshot, out)
    steered = len(saved.record.steered)
    if options.json:
        _tell_json(
            {
                "map": saved.title,
                "map_hash": snapshot.map_hash,
                "n_iter": snapshot.iteration,
                "energy": snapshot.energy,
                "steered": steered,
                "same": is_same,
                "out": None if out is None else str(out),
            }
        )
    elif not options.quiet:
        verdict = "the same map, bit for bit."
        if not is_same:
            verdict = "ANOTHER map than recorded."
            if others := archive.other_versions(options.session):
                verdict += f" The file was written by {', '.join(others)}."
        print(
            f"{saved.title}: {_state(snapshot)}, steered {steered} "
            f"time{'' if steered == 1 else 's'}: {verdict}"
        )
    return 0 if is_same else DIFFERENT


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


# --- map-onto, notebook, warm-up --------------------------------------------------


def _map_onto(options: Options) -> int:
    out, quiet = options.out, options.quiet
    if out.suffix.lower() != ".h5ad":
        raise DataError(f"{out.name} has to end in .h5ad.")
    _check_out(options.source, out, options.force)
    from napari_embedding_game.data.columns import KEY
    from napari_embedding_game.data.export.atomic import whole_or_nothing
    from napari_embedding_game.session.reference import mapping
    from napari_embedding_game.session.reference.new_cells import read_cells
    from napari_embedding_game.session.reference.reference_map import read_reference

    known, cells = read_reference(options.reference), read_cells(options.source)
    stages = mapping.map_cells(
        known,
        cells,
        options.labels or [f"{KEY}_cluster"],
        n_neighbors=options.n_neighbors,
        min_shared_genes=options.min_shared_genes,
        unlike=options.unlike,
        correct_batch=options.correct_batch,
    )
    mapped = _finish_told(stages, quiet)
    mapping.write_mapped(cells.adata, mapped, known.dataset.space)
    with whole_or_nothing(out) as temporary:
        cells.adata.write_h5ad(temporary, compression="gzip")
    if options.json:
        _tell_json({"out": str(out), **mapped.facts})
    elif not quiet:
        for note in mapped.notes:
            _tell(note)
        print(
            f"{out}: {len(mapped.places):,} cells on the map of {known.name}, "
            f"{int(mapped.unlike.sum()):,} unlike it"
        )
    return 0


def _finish_told(stages: Stages[T], quiet: bool) -> T:
    """Run stages to their end, telling each, and return what came of them."""
    last = ""
    while True:
        try:
            stage = next(stages)
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]
        if not quiet and stage.text != last:
            _tell(stage.text)
        last = stage.text


def _notebook(options: Options) -> int:
    from napari_embedding_game.data.export.writers import check_output
    from napari_embedding_game.session.notebook.export import write_code

    source, out = options.source, options.out
    check_output(source if source.exists() else None, out)
    if out.exists() and not options.force:
        raise DataError(f"{out} exists: choose another name, or add --force.")
    files = write_code(_session_of(source), out)
    if not options.quiet:
        for file in files:
            print(f"Written: {file}")
    return 0


def _session_of(source: Path) -> SavedSession:
    """Return the session of a session file, with its data."""
    from napari_embedding_game.session.file import archive

    session, troubles = archive.open_session(source)
    if troubles and not session[session.current].dataset.X.shape[1]:
        raise DataError(troubles[0])
    return session


def _warm_up(options: Options) -> int:
    """Compile the numeric kernels now, so that the first run need not wait."""
    import numpy as np

    from napari_embedding_game.core.estimator import EmbeddingGame, as_parameters
    from napari_embedding_game.core.warm_up import compile_for_many_rows
    from napari_embedding_game.session.run import engine
    from napari_embedding_game.ui.pixels import compile_loops

    engine.warm_up()  # all that the window needs, in the types that it needs them in
    compile_loops()
    compile_for_many_rows()
    X = np.random.default_rng(0).normal(size=(200, 5)).astype(np.float32)
    with warnings.catch_warnings():
        # After so few iterations no map says much.
        warnings.simplefilter("ignore", EmbeddingWarning)
        for settings in _every_kind_of_run():
            EmbeddingGame(**as_parameters(settings), random_state=0).fit(X)
        EmbeddingGame(max_iter=3, random_state=0).fit(X).transform(X[:2] + 1)
    return 0


def _every_kind_of_run() -> Iterator[dict[str, Any]]:
    from napari_embedding_game.core.energy.methods import METHODS

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
    main()
