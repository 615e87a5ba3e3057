"""Opens napari with the dock and plays a sample, for the command line."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import torch  # before Qt: on Windows it fails to load after PyQt  # noqa: F401

if TYPE_CHECKING:
    import napari

    from napari_embedding_game.session.session import Session
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

    Parameters
    ----------
    sample : {"digits", "pbmc", "nuclei", "mnist"}, optional
        Sample to load and play; none opens the docks ready for the first click.
    path : str or Path, optional
        File to load and play, or where to find the MNIST sample.
    screenshot : str or Path, optional
        Where to store a picture of the whole window after the run.
    out : str or Path, optional
        Where to write the result (.h5ad) after the run.
    quit_after_run : bool
        Whether to close the window when all this is done.

    Returns
    -------
    int
        0, or 1 when reading, running or writing failed.
    """
    import napari

    from napari_embedding_game.ui.plugin import open_dock

    viewer = napari.Viewer(title="napari · embedding game")
    viewer.window.resize(*WINDOW)
    dock = open_dock(viewer)
    command_line_run = CommandLineRun(viewer, dock, screenshot, out, quit_after_run)
    source = _source(sample, path)
    if source is not None:
        dock.controller.reading.load(source, then=dock.controller.play)
    napari.run()
    return command_line_run.code


def _source(sample: str | None, path: str | Path | None):
    from napari_embedding_game.session.sources import FileSource, SampleSource

    where = Path(path) if path is not None else None
    if sample is not None:
        return SampleSource(sample, where)
    return FileSource(where) if where is not None else None


class CommandLineRun:
    """What is to be done once the first run has ended."""

    def __init__(
        self,
        viewer: napari.Viewer,
        dock: GameDock,
        screenshot: str | Path | None,
        out: str | Path | None,
        quit_after_run: bool,
    ) -> None:
        self.code = 0
        self._viewer = viewer
        self._dock = dock
        self._session: Session = dock.controller.session
        self._screenshot = screenshot
        self._out = out
        self._quit = quit_after_run
        self._session.state_changed.connect(self._on_state)
        dock.controller.trouble.connect(self._on_trouble)
        dock.controller.writing.saved.connect(self._leave)

    def _on_state(self, state: str) -> None:
        if state == "failed":
            # The sentence comes right after the state.
            self._later(lambda: self._on_trouble(self._session.message))
        elif state == "finished":
            self._session.state_changed.disconnect(self._on_state)
            self._later(self._take_picture)

    def _on_trouble(self, sentence: str) -> None:
        if sentence:
            print(sentence, file=sys.stderr)
            self.code = 1
            self._leave()

    def _take_picture(self) -> None:
        if self._screenshot is not None:
            picture = str(self._screenshot)
            self._viewer.screenshot(picture, canvas_only=False, flash=False)
        if self._out is not None:
            self._dock.controller.writing.save(Path(self._out))
        else:
            self._leave()

    def _leave(self) -> None:
        if self._quit:
            self._later(self._viewer.close)

    @staticmethod
    def _later(job) -> None:
        from qtpy.QtCore import QTimer

        QTimer.singleShot(SETTLE_MS, job)
