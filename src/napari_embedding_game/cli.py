"""The console command ``napari-embedding-game``.

Heavy modules are imported only where they are needed, so that the help appears at once.
:mod:`ui.app` is imported before Qt: it loads torch, which on Windows fails after Qt.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from napari_embedding_game.core.errors import InputError, check_integer
from napari_embedding_game.core.settings import (
    Settings,
    fill_affinity,
    find_setting_type,
    lower_perplexity,
    resolve_n_neighbors,
)
from napari_embedding_game.data.errors import DataError, MissingValuesError
from napari_embedding_game.papers import command

if TYPE_CHECKING:
    from napari_embedding_game.core.estimator import EmbeddingGame
    from napari_embedding_game.core.snapshot import Snapshot
    from napari_embedding_game.data.dataset import Dataset
    from napari_embedding_game.data.export.result import EmbeddingResult

Options = argparse.Namespace
DIFFERENT, WRONG, INTERRUPTED = 1, 2, 130
"""Exit codes."""


class _Parser(argparse.ArgumentParser):
    """A parser without abbreviated options that raises its errors."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        """Raise :class:`_UsageError` with the message and the usage text."""
        raise _UsageError(message, self.format_usage())


class _UsageError(Exception):
    """Wrong arguments: the message and the usage text."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the console command and exit with its code.

    ``arguments``: by default those of the process.  Wrong arguments are printed with
    the usage text, or with --json as one line of JSON, and the code is ``WRONG``.
    """
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a console may lack a letter
    written = sys.argv[1:] if arguments is None else arguments
    try:
        options = _make_parser().parse_args(written)
    except _UsageError as error:
        message, usage = error.args
        if "--json" in written:
            print(json.dumps({"error": message}))
            usage = ""
        sys.stderr.write(f"{usage}Error: {message}\n")
        sys.exit(WRONG)
    sys.exit(_run_command(options))


def _run_command(options: Options) -> int:
    """Run the chosen command and return its exit code.

    An expected error, or Ctrl-C, is printed as one sentence to stderr, and with --json
    to stdout, too: the code is then ``WRONG`` or ``INTERRUPTED``.  Options of the
    window that are given with a command are such an error.  Other exceptions are
    raised.
    """

    def tell(text: str) -> None:
        """Print a sentence to stderr, and with --json as "error" to stdout."""
        _print_to_stderr(text)
        if getattr(options, "json", False):
            print(json.dumps({"error": text.removeprefix("Error: ")}))

    try:
        names = "sample", "file", "screenshot", "quit_after_run"
        if options.do is not _open_window and any(getattr(options, n) for n in names):
            raise DataError("Options of the window go with no command: leave them out.")
        code: int = options.do(options)
        return code
    except KeyboardInterrupt:
        tell("Stopped: nothing written.")
        return INTERRUPTED
    except MissingValuesError as error:
        tell(f"Error: {error.describe_with_remedy('--missing drop')}")
    except (DataError, InputError) as error:
        tell(f"Error: {error}")
    except OSError as error:
        if error.filename is None:
            raise
        why = f"{error.filename} cannot be used ({error.strerror})"
        tell(f"Error: {why}: choose another name.")
    return WRONG


def _print_to_stderr(text: str) -> None:
    """Print a line to stderr, as stdout is for results."""
    print(text, file=sys.stderr)


# --- arguments ---------------------------------------------------------------------


def _make_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands and options.

    Each command sets ``do``, the function that runs it; without a command ``do`` is
    :func:`_open_window`.
    """
    parser = _Parser(
        prog="napari-embedding-game",
        description="A live, steerable map of single cells, images or texts. Without "
        "a command napari is opened with it.",
    )
    add = parser.add_argument
    add(
        "--version", action="version", version=metadata.version("napari-embedding-game")
    )
    add("--sample", choices=("digits", "pbmc", "tissue", "nuclei"),
        help="Load this sample and play.")  # fmt: skip
    add("--file", type=Path, help="Load this file and play.")
    add("--screenshot", type=Path, help="Save a picture of the window after the run.")
    add("-o", "--out", type=Path, help="Save the result of the run as .h5ad.")
    add("--quit-after-run", action="store_true", help="Close the window after the run.")
    parser.set_defaults(do=_open_window)
    commands = parser.add_subparsers(metavar="COMMAND")

    quiet, force = _Parser(add_help=False), _Parser(add_help=False)
    words = "Print nothing but warnings and errors."
    quiet.add_argument("-q", "--quiet", action="store_true", help=words)
    words = "Overwrite an existing OUT."
    force.add_argument("--force", action="store_true", help=words)

    def add_command(
        name: str, do: Any, words: str, *shared: _Parser, **files: str
    ) -> argparse.ArgumentParser:
        """Add a command with help, shared options and path arguments; return a parser.

        ``do``: function that runs the command.  ``words``: its help.  ``shared``:
        parsers of shared options.  ``files``: help of each path, by its name.
        """
        kinds = {"description": words, "help": words, "parents": shared}
        made: argparse.ArgumentParser = commands.add_parser(name, **kinds)
        for one, text in files.items():
            made.add_argument(one, type=Path, metavar=one.upper(), help=text)
        made.set_defaults(do=do)
        return made

    words = "Compute the map of a file without a window, and write it to OUT."
    _add_fit_arguments(add_command("fit", _fit_file, words, quiet, force))
    words = "Repeat the run of a session file, steering included, and compare the maps."
    words += " Ends with code 0 where they are the same bit for bit, else with 1."
    of_session = "Session file (.zip)."
    add_command("replay", _replay_session, words, quiet, session=of_session)
    words = "Write all that led to a map as code, which makes it again from the data."
    out = "Notebook (.ipynb) or methods (.txt)."
    add_command(
        "notebook", _write_notebook, words, quiet, force, source=of_session, out=out
    )
    words = "Write a map as one web page that needs no network."
    files = {"source": "Map (.h5ad).", "out": "Web page (.html)."}
    page = add_command("export", _export_web_page, words, quiet, force, **files)
    page.add_argument("--basis", default="X_embedding_game", metavar="KEY",
                      help="The map in obsm (default: %(default)s).")  # fmt: skip
    page.add_argument("--columns", nargs="+", metavar="COLUMN",
                      help="Of obs, to colour by; groups first.")  # fmt: skip
    page.add_argument("--genes", nargs="+", metavar="GENE",
                      help="Genes to colour by (default: all that fit).")  # fmt: skip
    words = "Compute anew what a paper reports: tables, a figure and a JSON file."
    command.add_arguments(
        add_command("reproduce", command.run_reproduce_command, words)
    )
    return parser


def _add_fit_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``fit`` to its parser, with an option for each setting.

    Default, help and allowed values of an option come from the field of Settings.
    """
    add = parser.add_argument
    add("source", type=Path, metavar="INPUT",
        help="File or folder: .h5ad, .h5mu, .zarr, 10x, Visium, Xenium, .loom, .rds, "
        ".fcs, .csv, .tsv, .parquet, .npy, .npz.")  # fmt: skip
    add("-o", "--out", type=Path, required=True,
        help="Result: .h5ad, or .csv for a table; .zarr with --reference.")  # fmt: skip
    add("--space", help="What to embed: X_pca, X, an array, or columns a,b,c.")
    add("--recipe", action="store_true",
        help="Make principal components of raw counts first, by scanpy's usual "
        "steps.")  # fmt: skip
    add("--missing", choices=("error", "drop"), default="error",
        help="Rows with missing or infinite values: refuse the file, or leave them "
        "out.")  # fmt: skip
    add("--transpose", action="store_true", dest="transposed",
        help="Of a table with genes in rows: map columns.")  # fmt: skip
    for each in fields(Settings):
        text = each.metadata
        names = text["choices"]() if "choices" in text else ()
        names = [one for one in names if one != "given"]  # which needs a map
        among = f" One of {', '.join(names)}." if names else ""
        among = f" {text['allowed'].capitalize()}." if "allowed" in text else among
        default = f" [{each.default}]" if each.default is not None else ""
        add(f"--{each.name.replace('_', '-')}", default=each.default,
            type=find_setting_type(each.name),
            help=f"{text['title']}. {text['words']}{among}{default}".replace("%", "%%"),
            metavar=each.name.upper())  # fmt: skip
    add("--reference", type=int, metavar="ROWS",
        help="Fit so many rows, drawn so that rare groups stay, and place all others "
        "on their map: for files larger than the memory (.zarr, .h5ad).")  # fmt: skip
    add("--n-clusters", type=int, metavar="N",
        help="Clusters that the landmarks are merged into, or fewer where fewer have "
        "points (default: as many as the map suggests).")  # fmt: skip
    add("--json", action="store_true",
        help="Print the result, or what went wrong as \"error\", as one line of "
        "JSON.")  # fmt: skip
    add("--scheduler",
        help="With --reference: address of a Dask scheduler, such as "
        "tcp://host:8786, whose workers place the rows.")  # fmt: skip


# --- window ---------------------------------------------------------------------


def _open_window(options: Options) -> int:
    """Open the window, wait until it is closed, and return its exit code.

    Raises DataError before the window opens: --sample and --file are given together,
    the file does not exist, an output cannot be written, or Qt cannot be imported.
    """
    from napari_embedding_game.data.export.writers import check_output_path

    file = options.file
    if options.sample is not None and file is not None:
        raise DataError(
            f"--sample {options.sample} brings its own data: leave out --file."
        )
    if file is not None and not file.exists():
        raise DataError(f"{file} does not exist: check the name and the folder.")
    for target in (options.screenshot, options.out):
        if target is not None:
            check_output_path(file, target)
    from napari_embedding_game.ui.app import launch  # before Qt, see above

    try:
        import qtpy.QtWidgets  # noqa: F401
    except ImportError as error:
        raise DataError(
            f"No window can be opened here ({error}): pip install "
            '"napari-embedding-game[all]"; on Linux Qt needs libraries of the system, '
            'too, listed under "No window opens" in docs/faq.md.'
        ) from error

    names = "screenshot", "out", "quit_after_run"
    given = {name: getattr(options, name) for name in names}
    return int(launch(options.sample, path=file, **given))


# --- fit --------------------------------------------------------------------------


def _fit_file(options: Options) -> int:
    """Make the map of a file, write it, and return the exit code.

    - With --reference the file is passed on to :func:`_fit_large_file`.
    - A file of distances is embedded with the metric "precomputed".
    - A perplexity too large for the rows is lowered, with a warning.
    - After Ctrl-C the last layout is written, and the code is ``INTERRUPTED``; before
      the first layout KeyboardInterrupt is raised.

    Notes, warnings and progress are printed to stderr; a line on the result, or with
    --json one line of JSON, to stdout.

    Raises DataError or InputError: the options, file or settings cannot be used.
    """
    source, quiet = options.source, options.quiet
    chosen = {each.name: getattr(options, each.name) for each in fields(Settings)}
    settings = Settings(**chosen).validate()
    if options.n_clusters is not None:
        check_integer("--n-clusters", options.n_clusters, 1)
    if options.reference is not None:
        return _fit_large_file(chosen, options)
    _validate_output_path(source, options.out, options.force, ".h5ad", ".csv")
    if options.scheduler is not None:
        raise DataError("--scheduler goes with --reference: give both.")
    from napari_embedding_game.data.loader import load
    from napari_embedding_game.data.read_options import Recipe
    from napari_embedding_game.data.stages import finish
    from napari_embedding_game.session.second_space import TISSUE, make_second_rows

    reading = {name: getattr(options, name) for name in ("missing", "transposed")}
    recipe = Recipe() if options.recipe else None
    if options.second_space not in ("", TISSUE):
        reading["second_space"] = options.second_space
    dataset = finish(load(source, space=options.space, recipe=recipe, **reading))
    chosen["second_space"] = dataset.second_space or options.second_space
    second_X = make_second_rows(dataset, Settings(**chosen))
    if dataset.is_distances:
        if settings.metric not in (Settings().metric, "precomputed"):
            raise DataError(
                f"{dataset.space} says which rows are neighbours: leave out --metric."
            )
        chosen["metric"] = "precomputed"
    if not quiet:
        _print_notes(dataset)
    from napari_embedding_game.core.estimator import EmbeddingGame, to_parameters
    from napari_embedding_game.core.graph.neighbors import validate_row_count
    from napari_embedding_game.core.progress import yield_with_progress
    from napari_embedding_game.data.columns import share_text
    from napari_embedding_game.data.export.writers import write_result

    # The estimator would make do with fewer neighbours, as scikit-learn asks.
    n_rows = len(dataset.obs)
    validate_row_count(n_rows, resolve_n_neighbors(fill_affinity(settings), n_rows))
    lowered = lower_perplexity(fill_affinity(settings), n_rows)
    if lowered is not None:
        chosen["perplexity"], sentence = lowered
        _print_to_stderr(f"Warning: {sentence}")
    game = EmbeddingGame(**to_parameters(chosen))
    if not quiet:
        _print_to_stderr("Finding neighbours")
    run, code = game.play(dataset.X, second_X=second_X), 0
    try:
        for _ in yield_with_progress(run, not quiet and sys.stderr.isatty()):
            pass
    except KeyboardInterrupt:
        if run.snapshot is None:
            raise
        code = INTERRUPTED
    snapshot = run.snapshot
    assert snapshot is not None
    noted = {**reading, "n_iter": snapshot.iteration, "interrupted": bool(code)}
    result = _make_result(game, dataset.space, snapshot, noted, options.n_clusters)
    write_result(dataset, result, options.out)
    if snapshot.warning:
        _print_to_stderr(f"Warning: {snapshot.warning}")
    if not snapshot.finished:
        _print_to_stderr("Stopped early: the last layout before that is written.")
    if options.json:
        facts = {
            "out": str(options.out),
            "input": dataset.name,
            "space": dataset.space,
            "n_points": len(snapshot.embedding),
            "n_clusters": len(result.groups.clusters),
            "n_iter": snapshot.iteration,
            "energy": snapshot.energy,
            "map_hash": snapshot.map_hash,
            "misplaced": snapshot.stretched_share,
            "pressured": snapshot.pressured_share,
            "random_state": game.random_state_,
            "warning": snapshot.warning,
            "interrupted": bool(code),
        }
        print(_to_json(facts))
    elif not quiet:
        pressured = f"{share_text(snapshot.pressured_share)} under pressure"
        print(
            f"{options.out}: {len(snapshot.embedding):,} points of {dataset.name} "
            f"({dataset.space}), {_run_state_text(snapshot)}, "
            f"{share_text(snapshot.stretched_share)} misplaced, "
            f"{pressured if snapshot.has_pressure else 'no pressure known'}"
        )
    return code


def _fit_large_file(chosen: Mapping[str, Any], options: Options) -> int:
    """Fit a sample of a file and place its other rows; return the exit code 0.

    ``chosen``: settings by name.  Prints a warning of the run, and a line on the
    result.

    Raises DataError: the output is no .zarr, --missing or --transpose is given, or the
    file cannot be used.
    """
    _validate_output_path(options.source, options.out, options.force, ".zarr")
    switches = {"missing": options.missing != "error", "transpose": options.transposed}
    switches["second-space"] = bool(options.second_space)
    for name in (name for name, is_given in switches.items() if is_given):
        raise DataError(f"--reference reads rows one by one: leave out --{name}.")
    from napari_embedding_game.session.large_fit import map_large_file

    facts = map_large_file(
        options.source,
        options.out,
        options.reference,
        chosen,
        space=options.space,
        recipe=options.recipe,
        n_clusters=options.n_clusters,
        scheduler=options.scheduler,
        report=None if options.quiet else _print_to_stderr,
    )
    if facts["warning"]:
        _print_to_stderr(f"Warning: {facts['warning']}")
    if options.json:
        print(_to_json({"out": str(options.out), **facts}))
    elif not options.quiet:
        print(
            f"{options.out}: {facts['n_points']:,} points of {facts['input']} "
            f"({facts['space']}), {facts['reference']:,} of them fitted, iteration "
            f"{facts['n_iter']}, map {facts['map_hash']}"
        )
    return 0


def _to_json(facts: Mapping[str, Any]) -> str:
    """Return facts, and the version of the program, as one line of JSON.

    NaN and infinite numbers are null, and values that JSON does not have are text.
    Another version may make another map of the same data, so the version is included.
    """
    known: dict[str, Any] = {"version": metadata.version("napari-embedding-game")}
    known |= {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in facts.items()
    }
    return json.dumps(known, default=str)


def _print_notes(dataset: Dataset) -> None:
    """Print the notes of a dataset, and a warning if it looks like raw counts.

    A space of ``obsm`` is not warned of.
    """
    from napari_embedding_game.data.raw_counts import looks_like_counts

    for note in dataset.notes:
        _print_to_stderr(note)
    if looks_like_counts(dataset) and not dataset.space.startswith("obsm"):
        _print_to_stderr(
            f"What is in {dataset.space} looks like raw counts, which need normalising "
            "before a map means anything: --recipe does so."
        )


def _validate_output_path(source: Path, out: Path, force: bool, *endings: str) -> None:
    """Raise DataError if the output cannot be written, before anything is computed.

    ``force``: whether an existing file may be replaced; a .zarr folder only if it holds
    a map and is neither the source nor a folder around it.  ``endings``: allowed
    endings of the output; none for any.
    """
    from napari_embedding_game.data.export.writers import check_output_path

    if endings and out.suffix.lower() not in endings:
        option = " with --reference" if endings == (".zarr",) else ""
        raise DataError(f"{out.name} has to end in {' or '.join(endings)}{option}.")
    if out.suffix.lower() != ".zarr" or not out.is_dir():
        check_output_path(source if source.exists() else None, out)
    elif force:
        is_source = out.resolve() in (source.resolve(), *source.resolve().parents)
        if is_source or not (out / "obsm" / "X_embedding_game").is_dir():
            raise DataError(f"{out} is no map to overwrite: choose another name.")
    if out.exists() and not force:
        raise DataError(f"{out} exists: choose another name, or add --force.")


def _run_state_text(snapshot: Snapshot) -> str:
    """Return the iteration, energy and map hash of a snapshot as text."""
    of_all = f" of {snapshot.n_iter}" if snapshot.n_iter else ""
    done = f"iteration {snapshot.iteration}{of_all}"
    return f"{done}, energy {snapshot.energy:.4g}, map {snapshot.map_hash}"


def _make_result(
    game: EmbeddingGame,
    space: str,
    snapshot: Snapshot,
    noted: Mapping[str, Any],
    n_clusters: int | None,
) -> EmbeddingResult:
    """Return the map as a result, with the clusters that the window would show.

    ``noted``: further parameters of the result.  ``n_clusters``: number of clusters, or
    fewer where fewer landmarks have points; None for the number that the window
    chooses.
    """
    from napari_embedding_game.core.estimator import collect_fitted_parameters
    from napari_embedding_game.core.graph.edges import Edges
    from napari_embedding_game.data.export.result import EmbeddingResult
    from napari_embedding_game.session.clusters.clusters import cluster_finished_run

    edges = Edges.from_symmetric_matrix(game.affinity_matrix_)
    n_landmarks = len(snapshot.landmarks)
    clusters = cluster_finished_run(edges, snapshot.labels, n_landmarks, n_clusters)
    parameters = {**collect_fitted_parameters(game), "space": space, **noted}
    parameters["n_clusters"] = n_clusters
    return EmbeddingResult(snapshot, parameters, clusters.clustering)


# --- replay -----------------------------------------------------------------------


def _replay_session(options: Options) -> int:
    """Replay the run of a session file; return 0 if the map is the same, else 1.

    The data are read again from the file that the session names.  Prints a verdict, and
    for another map which versions of packages differ.

    Raises DataError: the session has no run, or the data cannot be read.
    """
    from napari_embedding_game.core.progress import yield_with_progress
    from napari_embedding_game.data.stages import finish
    from napari_embedding_game.session.file import archive
    from napari_embedding_game.session.run.replay import is_same_layout, replay_frames
    from napari_embedding_game.session.second_space import make_second_rows

    saved = archive.load_recorded_map(options.session)
    saved = finish(archive.read_map_data(saved, options.session.parent, {}))
    assert saved.record is not None
    assert saved.snapshot is not None
    second_X = make_second_rows(saved.dataset, saved.record.settings)
    frames = replay_frames(saved.dataset.X, saved.record, second_X=second_X)
    has_bar = not options.quiet and sys.stderr.isatty()
    *_, snapshot = yield_with_progress(frames, has_bar)
    is_same = is_same_layout(snapshot, saved.snapshot)
    if not options.quiet:
        verdict = "the same map, bit for bit."
        if not is_same:
            verdict = "ANOTHER map than recorded."
            if changed := archive.list_other_versions(options.session):
                verdict += f" The file was written by {', '.join(changed)}."
        steered = len(saved.record.steered)
        print(
            f"{saved.title}: {_run_state_text(snapshot)}, steered {steered} "
            f"time{'' if steered == 1 else 's'}: {verdict}"
        )
    return 0 if is_same else DIFFERENT


# --- notebook, web page ------------------------------------------------------------


def _write_notebook(options: Options) -> int:
    """Write code that makes the map of a session file, print its paths, return 0.

    Raises DataError: the session or the data of its map cannot be read, or the output
    cannot be written.
    """
    from napari_embedding_game.session.file import archive
    from napari_embedding_game.session.notebook.export import write_code

    source, out = options.source, options.out
    _validate_output_path(source, out, options.force)
    session, troubles = archive.open_session(source)
    if troubles and not session[session.current].dataset.var_names:
        raise DataError(troubles[0])
    files = write_code(session, out)
    if not options.quiet:
        for file in files:
            print(f"Written: {file}")
    return 0


def _export_web_page(options: Options) -> int:
    """Write a map as a web page, print its file, and return the exit code 0.

    Raises DataError: the source cannot be read, or the output has to end in .html or
    cannot be written.
    """
    from napari_embedding_game.session.reference.reference_map import (
        read_reference_file,
    )
    from napari_embedding_game.session.web_page import write_web_page

    source, out = options.source, options.out
    _validate_output_path(source, out, options.force, ".html")
    given = {name: getattr(options, name) for name in ("basis", "columns", "genes")}
    write_web_page(read_reference_file(source), out, title=source.stem, **given)
    if not options.quiet:
        print(f"Written: {out}")
    return 0


if __name__ == "__main__":
    main()
