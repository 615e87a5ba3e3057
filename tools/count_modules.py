"""Count what a change, a click, a file and an array pass through.

    xvfb-run -a -s "-screen 0 1600x1000x24" python tools/count_modules.py
    git worktree add ../before a6782b3
    PYTHONPATH=../before/src ... python tools/count_modules.py --tools ../before/tools

Modules: files of the package of which a function runs in the window's thread, from
the moved slider (Repulsion, on a finished map), the click on the map or the opened file
until the window rests.  A stay: a call that is given X (or a view of it) while ``fit``
runs; a return: one that gives it back.  Functions that numba compiles are not seen.
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

PACKAGE = "napari_embedding_game"


class Calls:
    """Watches the calls of this thread while it is entered."""

    def __init__(self, X: np.ndarray | None = None) -> None:
        self.X = X
        self.modules: set[str] = set()
        self.files_with_x: set[str] = set()
        self.stays = self.returns = 0

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
        if event == "call":
            self.modules.add(module)
            if self._has_x(frame):
                self.stays += 1
                self.files_with_x.add(module)
        elif self._is_x(value):
            self.returns += 1

    def _has_x(self, frame: FrameType) -> bool:
        if self.X is None:
            return False
        names = frame.f_code.co_varnames[: frame.f_code.co_argcount]
        return any(self._is_x(frame.f_locals.get(name)) for name in names)

    def _is_x(self, value: object) -> bool:
        is_array = self.X is not None and isinstance(value, np.ndarray)
        return is_array and np.shares_memory(value, self.X)


def at_the_window() -> dict[str, int]:
    """Return the number of modules for each thing that a person does."""
    import napari
    from qtpy.QtWidgets import QAbstractSlider

    from person import Person

    viewer = napari.Viewer()
    person = Person(viewer)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cells.csv"
        rows = np.random.default_rng(0).normal(size=(300, 5))
        np.savetxt(path, rows, delimiter=",", header="a,b,c,d,e", comments="")
        counts = {"file": watched(lambda: person.open(path))}
        person.run()
        sliders = person.dock.findChildren(QAbstractSlider)
        slider = next(s for s in sliders if s.isVisible() and s.maximum() > 20)

        def move() -> None:
            slider.setValue(slider.value() + 5)
            person.rest(0.5)

        def click() -> None:
            person.click_point(0)
            person.rest(0.5)

        counts["slider"] = watched(move)
        person.wait(lambda: person.session.state == "finished", "the end")
        person.rest(1.0)
        counts["click"] = watched(click)
    return counts


def watched(action: Callable[[], None]) -> int:
    """Return how many modules an action passes."""
    with Calls() as calls:
        action()
    return len(calls.modules)


def through_fit() -> Calls:
    """Follow X through a fit."""
    from napari_embedding_game import EmbeddingGame

    X = np.random.default_rng(0).normal(size=(400, 20)).astype(np.float32)
    with Calls(X) as calls:
        EmbeddingGame(max_iter=20, random_state=0).fit(X)
    return calls


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=Path, default=Path(__file__).parent)
    sys.path.insert(0, str(parser.parse_args().tools))
    calls = through_fit()
    files = len(calls.files_with_x)
    print(f"X: {calls.stays} stays in {files} files, {calls.returns} returns")
    for name, count in at_the_window().items():
        print(f"{name}: {count} modules")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
