"""The command ``napari-embedding-game reproduce``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from napari_embedding_game.papers.reproductions.frame import Tell

EXIT_NOT_PASSED = 1
EXIT_INTERRUPTED = 130


def reproduce(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Which one; see --list.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="Data file, or folder with the data files.")
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder for the results.")
    ] = Path("reproduced"),
    quick: Annotated[
        bool, typer.Option("--quick", help="Small sizes, to see that it works.")
    ] = False,
    random_state: Annotated[int, typer.Option(min=0, help="Seed.")] = 0,
    again: Annotated[
        bool, typer.Option("--again", help="Compute finished parts once more.")
    ] = False,
    show_list: Annotated[
        bool, typer.Option("--list", help="Show what can be reproduced.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Tell nothing but errors.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Write NAME.json to stdout as well.")
    ] = False,
) -> None:
    """Compute anew what a paper reports: a figure, a table and a JSON file.

    Ends with code 0 where all criteria are met, else with 1.  After an
    interruption the same command goes on where it stopped.
    """
    from napari_embedding_game.papers.reproductions import frame, table

    if show_list or name is None:
        _list(table.REPRODUCTIONS)
        return
    reproduction = table.find(name)
    inputs = frame.Inputs(data, quick, random_state)
    try:
        with _progress(quiet) as tell:
            facts = frame.reproduce(reproduction, inputs, out, tell=tell, again=again)
    except KeyboardInterrupt as interrupt:
        typer.echo(f"Stopped: what is done is kept in {out / name}.", err=True)
        raise typer.Exit(EXIT_INTERRUPTED) from interrupt
    if as_json:
        typer.echo(json.dumps(facts, indent=1))
    elif not quiet:
        _report(facts, out / name)
    if not facts["passed"]:
        raise typer.Exit(EXIT_NOT_PASSED)


def _list(reproductions: dict[str, Any]) -> None:
    width = max(map(len, reproductions), default=0)
    for each in reproductions.values():
        needs = f" Needs {each.data}." if each.data else ""
        typer.echo(f"{each.name:<{width}}  {each.what} ({each.paper}).{needs}")


@contextmanager
def _progress(quiet: bool = False) -> Iterator[Tell]:
    """Show a bar of the parts that are done."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    bar = Progress(
        BarColumn(),
        TextColumn("{task.completed} of {task.total}"),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
        console=Console(stderr=True),
        disable=quiet,
    )
    with bar:
        task = bar.add_task("", total=None)

        def tell(text: str, done: int, expected: int) -> None:
            bar.update(task, description=text, completed=done, total=expected or None)

        yield tell


_VERDICTS = {True: "passed", False: "NOT PASSED", None: "not judged"}


def _report(facts: dict[str, Any], folder: Path) -> None:
    for check in facts["checks"]:
        verdict = _VERDICTS[check["passed"]]
        typer.echo(f"{verdict}: {check['asked']} ({check['found']})")
    typer.echo(f"{folder}: figure (.png), table (.md) and numbers (.json)")
