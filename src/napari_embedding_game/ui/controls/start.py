"""START: open data, a session, a sample or a recent map; bring back one of a crash."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path

from qtpy.QtWidgets import QFileDialog, QMenu, QSizePolicy, QVBoxLayout, QWidget

from napari_embedding_game.data.readers import ENDINGS
from napari_embedding_game.session.file.archive import ENDING
from napari_embedding_game.session.file.autosave import discard
from napari_embedding_game.session.sources import SAMPLES, SampleSource, source_of
from napari_embedding_game.ui.style.form_widgets import show_text, text_label
from napari_embedding_game.ui.style.layouts import (
    add_entries,
    column,
    empty,
    evenly,
    push_button,
)
from napari_embedding_game.ui.tasks.reading import ReadingTask
from napari_embedding_game.ui.tasks.session_store import SessionStore

MOST_LAST_MAPS = 5
IMAGES_TIP = "Each image has its labels beside it (_labels, _masks) or in labels/."
LAYER_TIP = "Load the measurements or the AnnData of the selected layer."
DATA = f"Data ({' '.join(f'*{ending}' for ending in ENDINGS)})"
SESSIONS = f"Embedding game session (*{ENDING})"


class Start(QWidget):
    """The buttons that open something, and a line for each of the last maps."""

    def __init__(
        self, reading: ReadingTask, store: SessionStore, use_layer: Callable[[], None]
    ) -> None:
        super().__init__()
        self._reading, self._store = reading, store
        tip = "Load .h5ad, .zarr, 10x counts, .fcs, .csv, .parquet, .npy or .npz."
        self.open_button = push_button("Open…", tip)
        self.layer_button = push_button("From layer", LAYER_TIP, use_layer)
        tip = "Load ready-made data to try the game on."
        self.sample_button = push_button("Sample", tip)
        samples = QMenu(self)
        add_entries(
            samples,
            (
                (w, partial(reading.load, SampleSource(k)), "")
                for k, w in SAMPLES.items()
            ),
        )
        self.sample_button.setMenu(samples)
        self.open_menu = menu = QMenu(self)
        choose, choose_folder = self.choose_file, self.choose_folder
        file = partial(choose, "Open a table of cells, images or texts", DATA)
        folder = partial(choose_folder, "Open a .zarr folder, or one of a 10x matrix")
        images = partial(choose_folder, "Open a folder of images with their labels")
        session = partial(choose, "Go on with a session", SESSIONS)
        add_entries(
            menu,
            [
                ("File…", file, ""),
                ("Folder (.zarr or 10x)…", folder, ""),
                ("Images and labels (folder)…", images, IMAGES_TIP),
            ],
        )
        menu.addSeparator()
        add_entries(menu, [("Session…", session, "")])
        self.open_button.setMenu(menu)
        self._lines = QVBoxLayout()
        self._lines.setContentsMargins(0, 12, 0, 0)
        self._lines.setSpacing(2)
        tip = "Five callouts show what to press, one after another."
        self.tour = push_button("Show me around", tip, role="link")
        buttons = evenly(self.layer_button, self.sample_button)
        parts = self.open_button, buttons, self.tour, self._lines
        self.setLayout(column(*parts, spacing=6))

    def choose_file(self, title: str, kinds: str) -> None:
        """Ask for a file and load it; with a map that was saved one goes on."""
        name, _ = QFileDialog.getOpenFileName(self, title, "", kinds)
        if name:
            self._reading.open_file(Path(name))

    def choose_folder(self, title: str) -> None:
        """Ask for a folder and load it."""
        name = QFileDialog.getExistingDirectory(self, title)
        if name:
            self._reading.load(source_of(Path(name)))

    def showEvent(self, event: object) -> None:
        """List the last maps as they are now."""
        super().showEvent(event)
        self.show_last_maps()

    def show_last_maps(self) -> None:
        """Show a line for each of the last maps."""
        empty(self._lines)
        recent = self._store.recent()[:MOST_LAST_MAPS]
        if recent:
            self._lines.addWidget(text_label("Recent maps"))
        for path, words in recent:
            go_on = partial(self._reading.open_session, path)
            line = push_button(words, words, go_on, "link")
            # A long name must not widen the dock.
            line.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
            self._lines.addWidget(line)


class Recovery(QWidget):
    """Offers the maps that a crash left behind, one after another."""

    def __init__(self, reading: ReadingTask, files: list[Path]) -> None:
        super().__init__()
        self._reading, self._files = reading, files
        self.text = text_label(role="warning")
        tip = "Go on where the map was saved last."
        self.back = push_button("Restore it", tip, self._bring_back, "main")
        tip = "Delete this saved map for good."
        self.forget = push_button("Delete it", tip, self._forget)
        buttons = evenly(self.back, self.forget)
        self.setLayout(column(self.text, buttons, margins=(0, 0, 0, 4)))
        self.refresh()

    def refresh(self) -> None:
        """Offer the first of the files, if there is one."""
        self._files = [file for file in self._files if file.exists()]
        self.setVisible(bool(self._files))
        if self._files:
            show_text(self.text, _told(self._files[0]))

    def _bring_back(self) -> None:
        self._reading.bring_back(self._files[0])

    def _forget(self) -> None:
        discard(self._files.pop(0))
        self.refresh()


def _told(recovery_file: Path) -> str:
    when = datetime.fromtimestamp(recovery_file.stat().st_mtime)
    return f"napari ended without closing its last map, saved on {when:%d %B, %H:%M}."
