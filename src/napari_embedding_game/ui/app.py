"""Opens napari with the dock and plays a sample, for the command line.

Elsewhere than on Windows torch, which takes as long to load as the window, is loaded
beside it, once the dock is shown.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

if sys.platform == "win32":
    import torch  # before Qt: there it fails to load after PyQt  # noqa: F401

if TYPE_CHECKING:
    import napari

    from napari_embedding_game.ui.game_dock import GameDock

WINDOW = (1500, 950)
SETTLE_MS = 400
"""For the last frame to be drawn before the picture is taken."""


def launch(
    sample: str | None = None,
    *,
    path: str | Path | None = None,
    screenshot: str | Path | None = None,
    out: str | Path | None = None,
    quit_after_run: bool = False,
) -> int:
    """Open the window and return the exit code when it is closed.

    It is 1 where reading, running or writing failed.

    ``sample``: one of the keys of SAMPLES, to load and play, or else the file of
    ``path``; without either the dock opens ready for the first click. ``screenshot``,
    ``out``: where to store a picture of the whole window after the run, and its result.
    ``quit_after_run``: whether to close the window when all this is done.
    """
    import napari

    from napari_embedding_game.session.sources import SampleSource
    from napari_embedding_game.ui.plugin import open_dock

    viewer = napari.Viewer(title="napari · embedding game")
    viewer.window.resize(*WINDOW)
    dock = open_dock(viewer)
    code = after_run(viewer, dock, screenshot, out, quit_after_run=quit_after_run)
    reading, play = dock.controller.reading, dock.controller.play
    if sample is not None:
        reading.load(SampleSource(sample), then=play)
    elif path is not None:
        reading.open_file(Path(path), then=play)
    napari.run()
    return code()


def after_run(
    viewer: napari.Viewer,
    dock: GameDock,
    screenshot: str | Path | None = None,
    out: str | Path | None = None,
    *,
    quit_after_run: bool = False,
) -> Callable[[], int]:
    """Do what :func:`launch` says once the first map is there; return its exit code.

    That of a run that has ended, or of a session file.  What fails is printed to
    standard error.
    """
    from qtpy.QtCore import QTimer

    controller, session = dock.controller, dock.controller.session
    troubles: list[str] = []
    later = partial(QTimer.singleShot, SETTLE_MS)

    def close_soon(*event: object) -> None:
        if quit_after_run:
            later(viewer.close)

    def on_trouble(sentence: str) -> None:
        if sentence:
            print(sentence, file=sys.stderr)
            troubles.append(sentence)
            close_soon()

    def finish() -> None:
        if screenshot is not None:
            viewer.screenshot(str(screenshot), canvas_only=False, flash=False)
        if out is not None:
            controller.writing.save(Path(out))
        else:
            close_soon()

    def on_map() -> None:
        session.state_changed.disconnect(on_state)
        controller.reading.session_opened.disconnect(on_map)
        later(finish)

    def on_state(state: str) -> None:
        if state == "failed":  # the sentence comes right after the state
            later(lambda: on_trouble(session.message))
        elif state == "finished":
            on_map()

    session.state_changed.connect(on_state)
    controller.reading.session_opened.connect(on_map)
    controller.workspace.trouble.connect(on_trouble)
    controller.writing.saved.connect(close_soon)
    return lambda: int(bool(troubles))
