"""Open napari with the dock and play a sample or a file, for the command line.

Except on Windows torch is loaded in the background once the dock is shown: torch takes
as long to load as the window.
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
"""Width and height of the window in pixels."""
RUN_FAILED = "The run failed."
"""What is printed of a failed run without a message."""
SETTLE_MS = 400
"""Milliseconds from the first map to the screenshot, until the frame is painted."""


def launch(
    sample: str | None = None,
    *,
    path: str | Path | None = None,
    screenshot: str | Path | None = None,
    out: str | Path | None = None,
    quit_after_run: bool = False,
) -> int:
    """Open the window, block until the window is closed and return the exit code.

    Parameters
    ----------
    sample : str, optional
        A key of SAMPLES: that sample is loaded and played.
    path : str or Path, optional
        A file that is loaded and played where ``sample`` is None.  Without ``sample``
        and ``path`` the dock opens empty.
    screenshot : str or Path, optional
        File for a picture of the whole window after the run.
    out : str or Path, optional
        File for the result of the run, in the format of its ending.
    quit_after_run : bool
        Whether to close the window once the run and these files are finished.

    Returns
    -------
    int
        0, or 1 where reading, running or writing failed.
    """
    import napari

    from napari_embedding_game.session.sources import SampleSource
    from napari_embedding_game.ui.plugin import open_dock

    viewer = napari.Viewer(title="napari · embedding game")
    viewer.window.resize(*WINDOW)
    dock = open_dock(viewer)
    find_exit_code = connect_output_saving(
        viewer, dock, screenshot, out, quit_after_run=quit_after_run
    )
    reading, play = dock.controller.reading, dock.controller.play
    if sample is not None:
        reading.load(SampleSource(sample), then=play)
    elif path is not None:
        reading.open_file(Path(path), then=play)
    napari.run()
    return find_exit_code()


def connect_output_saving(
    viewer: napari.Viewer,
    dock: GameDock,
    screenshot: str | Path | None = None,
    out: str | Path | None = None,
    *,
    quit_after_run: bool = False,
) -> Callable[[], int]:
    """Save screenshot and result once the first map is there; print errors to stderr.

    The first map is the map of the first finished run, or of an opened session file;
    only the first one is saved.  With ``quit_after_run`` the viewer is closed after the
    result is written, after the screenshot where ``out`` is None, and after an error.
    Returns a function that returns the exit code so far: 1 after any error, else 0.
    Parameters are as for :func:`launch`.
    """
    from qtpy.QtCore import QTimer

    controller, session = dock.controller, dock.controller.session
    errors: list[str] = []
    later = partial(QTimer.singleShot, SETTLE_MS)

    def close_if_wanted(*event: object) -> None:
        """Close the viewer after ``SETTLE_MS`` if ``quit_after_run`` is set."""
        if quit_after_run:
            later(viewer.close)

    def on_error(message: str) -> None:
        """Print and note an error message, then close if wanted; do nothing for ""."""
        if message:  # "" tells that a former error is over
            print(message, file=sys.stderr)
            errors.append(message)
            close_if_wanted()

    def save_outputs() -> None:
        """Take the screenshot, then write the result, or close if there is none."""
        if screenshot is not None:
            viewer.screenshot(str(screenshot), canvas_only=False, flash=False)
        if out is not None:
            controller.writing.save(Path(out))
        else:
            close_if_wanted()

    def on_first_map() -> None:
        """Save the outputs after ``SETTLE_MS``, of this first map only."""
        session.state_changed.disconnect(on_state_changed)
        controller.reading.session_opened.disconnect(on_first_map)
        later(save_outputs)

    def on_state_changed(state: str) -> None:
        """Save after a finished run; report the message of a failed run."""
        if state == "failed":  # the message is set right after the state
            later(lambda: on_error(session.message or RUN_FAILED))
        elif state == "finished":
            on_first_map()

    session.state_changed.connect(on_state_changed)
    controller.reading.session_opened.connect(on_first_map)
    controller.workspace.trouble.connect(on_error)
    controller.writing.saved.connect(close_if_wanted)
    return lambda: int(bool(errors))
