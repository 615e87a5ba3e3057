"""The command ``napari-embedding-game reproduce``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

NOT_PASSED, INTERRUPTED = 1, 130
"""Exit codes."""
_VERDICTS = {True: "passed", False: "NOT PASSED", None: "not judged"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``reproduce`` to its parser, and set the parser's epilog."""
    parser.epilog = (
        "Ends with code 0 where all criteria are met, else with 1. After an "
        "interruption the same command goes on where it stopped."
    )
    add = parser.add_argument
    add("name", nargs="?", metavar="NAME", help="Which one; see --list.")
    add("--data", type=Path, help="Folder with the data files.")
    add("-o", "--out", type=Path, default=Path("reproduced"), help="Folder of results.")
    add("--quick", action="store_true", help="Small sizes, to see that it works.")
    add("--random-state", type=int, default=0, help="Seed.")
    add("--list", action="store_true", help="Show what can be reproduced.")
    add("-q", "--quiet", action="store_true", help="Print nothing but errors.")


def run_reproduce_command(options: argparse.Namespace) -> int:
    """Run a reproduction and print its tables and checks; return the exit code.

    With ``options.list``, or without a name, all reproductions are printed instead.
    ``options.quiet`` prints nothing but errors.  The code is 0 where all criteria are
    met, ``NOT_PASSED``, or after Ctrl-C ``INTERRUPTED``: finished computations are
    kept.
    """
    from napari_embedding_game.core.settings import Settings
    from napari_embedding_game.papers.reproductions import frame, inputs, table

    if options.list or options.name is None:
        for each in table.REPRODUCTIONS.values():
            needs = f" Needs {each.data}." if each.data else ""
            print(f"{each.name:<20} {each.what} ({each.paper}).{needs}")
        return 0
    folder, quiet = options.out / options.name, options.quiet
    seed = Settings(random_state=options.random_state).validate().random_state
    chosen = inputs.Inputs(options.data, options.quick, seed)
    reproduction = table.find_reproduction(options.name)
    try:
        facts = frame.run_reproduction(reproduction, chosen, options.out, quiet)
    except KeyboardInterrupt:
        print(f"Stopped: what is done is kept in {folder}.", file=sys.stderr)
        return INTERRUPTED
    if not quiet:
        for each in facts["tables"]:
            print(
                f"{each['title']}:",
                "",
                *frame.to_markdown_lines(each["rows"]),
                sep="\n",
            )
        for check in facts["checks"]:
            print(f"{_VERDICTS[check['passed']]}: {check['asked']} ({check['found']})")
        print(f"{folder}: figure (.png) and numbers (.json)")
    return 0 if facts["passed"] else NOT_PASSED
