"""Count what a change, a click, a file and an array pass through.

    xvfb-run -a -s "-screen 0 1600x1000x24" python tools/count_modules.py

Modules: files of the package of which a function runs in the window's thread, from
what a person does until the window rests: the slider of the clusters or of the
repulsion moved on a finished map, a click where the mouse already is, an opened file.
What the run before has left to do (figures on the map, a save by itself) is awaited
first.  The save that follows a change, at most once a minute, is counted by itself.
``--list``: names the modules, and the functions of each.  ``--page FILE``: writes who
calls whom, in the order of the first call: ``docs/journeys.md`` is made by it.  A stay:
a call that is given X (or a view of it) while ``fit`` runs; a return: one that gives it
back.  Functions that numba compiles are not seen.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from person import Person
from window import opened

PACKAGE = "napari_embedding_game"
REST = 0.5
"""Seconds of rest before and after what is counted."""


CallTree = dict[tuple[str, str], "CallTree"]
"""Calls by (function, module), each with the calls that it makes in turn."""


def tree_lines(
    tree: CallTree, depth: int, indent: str = "", listed: set[str] | None = None
) -> list[str]:
    """Return a line of Markdown for each function, indented, ``depth`` calls deep.

    A function is listed once, below its first caller.  Functions without a name, and
    methods of Python's own protocols, stand for what they call.
    """
    lines: list[str] = []
    listed = set() if listed is None else listed
    for (function, module), below in tree.items():
        if function.rpartition(".")[2].startswith(("<", "__")):
            lines += tree_lines(below, depth, indent, listed)
        elif function not in listed:
            listed.add(function)
            lines.append(f"{indent}- `{function}` ({module})")
            if depth > 1:
                lines += tree_lines(below, depth - 1, indent + "  ", listed)
    return lines


JOURNEYS = {
    "fit": "`EmbeddingGame().fit(X)` in Python",
    "file": "A file is opened",
    "repulsion": "The slider *Repulsion* is moved on a finished map",
    "clusters": "The slider of the clusters is moved",
    "click": "A cell is clicked on the map",
}
"""Titles of what the page follows."""
DEPTH = 6
"""Calls from the first function to the last one on the page."""
INTRODUCTION = f"""# Journeys through the code

Each list shows which function calls which, {DEPTH} calls deep, in the order of first
calls. A function is listed once, below its first caller. What another thread, another
process or a compiled loop does is not seen. A program that watches the calls makes this
page; do not edit it:

    xvfb-run -a python tools/count_modules.py --page docs/journeys.md
"""


def journeys_page(counted: dict[str, Calls]) -> str:
    """Return the page of :data:`JOURNEYS` as Markdown."""
    parts = [INTRODUCTION]
    for name, title in JOURNEYS.items():
        lines = tree_lines(counted[name].tree, DEPTH)
        parts.append(f"## {title}\n\n" + "\n".join(lines) + "\n")
    return "\n".join(parts)


class Calls:
    """Watches the calls of this thread while it is entered."""

    def __init__(self, X: np.ndarray | None = None) -> None:
        self.X = X
        self.modules: dict[str, set[str]] = {}
        """By the names of files, the functions of each that ran."""
        self.files_with_x: set[str] = set()
        self.stays = self.returns = 0
        self.tree: CallTree = {}
        """The calls of functions of the package, each below its caller."""
        self._open: list[tuple[FrameType, CallTree]] = []
        """The calls that have not returned, with what each has called."""

    def __enter__(self) -> Calls:
        sys.setprofile(self._see)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _see(self, frame: FrameType, event: str, value: Any) -> None:
        file = frame.f_code.co_filename
        if PACKAGE not in file or event not in ("call", "return"):
            return
        module = file.rpartition(f"{PACKAGE}/")[2]
        self._grow_tree(frame, event, module)
        if event == "call":
            self.modules.setdefault(module, set()).add(frame.f_code.co_qualname)
            if self._has_x(frame):
                self.stays += 1
                self.files_with_x.add(module)
        elif self._is_x(value):
            self.returns += 1

    def _grow_tree(self, frame: FrameType, event: str, module: str) -> None:
        """Add a call below the call that it belongs to, or end a call that returns."""
        if event == "return":
            while self._open and self._open.pop()[0] is not frame:
                pass
            return
        below = self._open[-1][1] if self._open else self.tree
        key = frame.f_code.co_qualname.replace(".<locals>", ""), module
        self._open.append((frame, below.setdefault(key, {})))

    def _has_x(self, frame: FrameType) -> bool:
        if self.X is None:
            return False
        names = frame.f_code.co_varnames[: frame.f_code.co_argcount]
        return any(self._is_x(frame.f_locals.get(name)) for name in names)

    def _is_x(self, value: object) -> bool:
        is_array = self.X is not None and isinstance(value, np.ndarray)
        return is_array and np.shares_memory(value, self.X)


def at_the_window() -> dict[str, Calls]:
    """Return the calls of each thing that a person does."""
    with opened(1100, 750) as person:
        return _counted(person)


def _counted(person: Person) -> dict[str, Calls]:
    from qtpy.QtCore import QTimer

    from napari_embedding_game.ui.tasks.worker import JobRunner

    dock = person.dock
    clusters, repulsion = (
        dock.cluster_pane.slider.slider,
        dock.method_controls.repulsion_slider,
    )
    store = dock.controller.session_store
    saving = store.findChild(QTimer)

    def is_busy() -> bool:
        parts = [*dock.findChildren(JobRunner), *store.findChildren(JobRunner)]
        return any(part.is_busy for part in parts)

    def rest() -> None:
        person.rest(REST)
        person.wait(lambda: not is_busy(), "the end of all work")
        person.rest(REST)

    def watched(act: Callable[..., object], *what: object) -> Calls:
        rest()
        with Calls() as calls:
            act(*what)
            rest()
        return calls

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cells.csv"
        rows = np.random.default_rng(0).normal(size=(300, 5))
        np.savetxt(path, rows, delimiter=",", header="a,b,c,d,e", comments="")
        counts = {"file": watched(person.open, path)}
    person.run()
    person.wait(lambda: not saving.isActive(), "the first save")
    counts["clusters"] = watched(lambda: clusters.setValue(clusters.value() + 5))
    person.point_at(0)
    counts["click"] = watched(person.click_point, 0)
    counts["save"] = watched(saving.start, 0)
    counts["repulsion"] = watched(setattr, repulsion, "value", repulsion.value + 0.3)
    return counts


def through_fit() -> Calls:
    """Follow X through a fit."""
    from napari_embedding_game import EmbeddingGame

    X = np.random.default_rng(0).normal(size=(400, 20)).astype(np.float32)
    EmbeddingGame(max_iter=1).fit(X)  # imports what a fit needs
    with Calls(X) as calls:
        EmbeddingGame(max_iter=20, random_state=0).fit(X)
    return calls


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--page", type=Path, metavar="FILE")
    chosen = parser.parse_args()
    calls = through_fit()
    files = len(calls.files_with_x)
    print(f"X: {calls.stays} stays in {files} files, {calls.returns} returns")
    counted = at_the_window()
    if chosen.page:
        chosen.page.write_text(journeys_page({"fit": calls, **counted}))
    for name, watched in counted.items():
        modules = watched.modules
        print(f"{name}: {len(modules)} modules")
        for module in sorted(modules) if chosen.list else ():
            print(f"    {module}: {', '.join(sorted(modules[module]))}")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
