"""START: open data, a session, a sample or a recent map; bring back one of a crash."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from qtpy.QtWidgets import (
    QFileDialog,
    QHBoxLayout,
    QMenu,
    QPushButton,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from napari_embedding_game.data.readers import ENDINGS
from napari_embedding_game.session.file.archive import ENDING
from napari_embedding_game.session.file.autosave import discard
from napari_embedding_game.session.sources import SAMPLES, SampleSource, source_of
from napari_embedding_game.ui.style.form_widgets import show_text, text_label

if TYPE_CHECKING:
    from napari_embedding_game.ui.tasks.reading import ReadingTask
    from napari_embedding_game.ui.tasks.session_store import SessionStore

MOST_LAST_MAPS = 5
IMAGES_TIP = (
    "Measure the objects of all images of a folder. A labels file has the name of its "
    "image and _labels or _masks behind it, or lies in a folder labels."
)
FOLDERS = {
    "Folder (.zarr or 10x)…": "Open a .zarr folder, or the folder of a 10x matrix",
    "Images and labels (folder)…": "Open a folder of images with their labels",
}
"""Entries of the menu, and titles of what they ask."""


class Start(QWidget):
    """The buttons that open something, and a line for each of the last maps."""

    def __init__(
        self, reading: ReadingTask, store: SessionStore, use_layer: Callable[[], None]
    ) -> None:
        super().__init__()
        self._reading, self._store = reading, store
        self.open_button = QPushButton("Open…")
        self.open_button.setToolTip(
            "Load .h5ad, .zarr, 10x counts, .csv, .parquet, .npy or .npz."
        )
        self.layer_button = QPushButton("From layer")
        self.layer_button.setToolTip(
            "Load the table of measurements of the selected layer, or the AnnData that "
            "napari-spatialdata gave it."
        )
        self.layer_button.clicked.connect(lambda: use_layer())
        self.sample_button = QPushButton("Sample")
        self.sample_button.setToolTip("Load ready-made data to try the game on.")
        samples = QMenu(self)
        for key, words in SAMPLES.items():
            load = partial(self._load_sample, key)
            samples.addAction(words).triggered.connect(load)
        self.sample_button.setMenu(samples)
        self.open_menu = menu = QMenu(self)
        menu.setToolTipsVisible(True)
        menu.addAction("File…").triggered.connect(lambda _=False: self.choose_file())
        for words, title in FOLDERS.items():
            action = menu.addAction(words)
            action.triggered.connect(partial(self.choose_folder, title))
        action.setToolTip(IMAGES_TIP)
        menu.addSeparator()
        ask = menu.addAction("Session…")
        ask.triggered.connect(lambda _=False: self.choose_session())
        self.recent = menu.addMenu("Recent maps")
        menu.aboutToShow.connect(self._list_recent)
        self.open_button.setMenu(menu)
        row = QHBoxLayout()
        row.setSpacing(4)
        row.addWidget(self.layer_button, 1)
        row.addWidget(self.sample_button, 1)
        self.last_maps = QWidget()
        self._lines = QVBoxLayout(self.last_maps)
        self._lines.setContentsMargins(0, 12, 0, 0)
        self._lines.setSpacing(2)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.open_button)
        column.addLayout(row)
        column.addWidget(self.last_maps)

    def open_file(self, path: Path) -> None:
        """Load a file or folder; with a map that was saved one goes on."""
        self._reading.open_file(path)

    def choose_file(self) -> None:
        """Ask for a file and load it."""
        kinds = f"Data ({' '.join(f'*{ending}' for ending in ENDINGS)})"
        title = "Open a table of cells, images or texts"
        name, _ = QFileDialog.getOpenFileName(self, title, "", kinds)
        if name:
            self.open_file(Path(name))

    def choose_folder(self, title: str, is_checked: bool = False) -> None:
        """Ask for a folder and load it."""
        name = QFileDialog.getExistingDirectory(self, title)
        if name:
            self._reading.load(source_of(Path(name)))

    def choose_session(self) -> None:
        """Ask for a session file and go on where it was saved."""
        kinds = f"Embedding game session (*{ENDING})"
        name, _ = QFileDialog.getOpenFileName(self, "Go on with a session", "", kinds)
        if name:
            self._reading.open_session(Path(name))

    def show_last_maps(self, is_shown: bool) -> None:
        """Show a line for each of the last maps, or none."""
        while (item := self._lines.takeAt(0)) is not None:
            item.widget().deleteLater()
        self.last_maps.setVisible(is_shown)
        if not is_shown:
            return
        self._list_recent()
        actions = self.recent.actions()[:MOST_LAST_MAPS]
        if actions:
            self._lines.addWidget(text_label("Recent maps"))
        for action in actions:
            line = QPushButton(action.text())
            line.setToolTip(action.text())
            line.setProperty("role", "link")
            # A long name must not widen the dock.
            line.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
            line.clicked.connect(action.trigger)
            self._lines.addWidget(line)

    # Inside

    def _list_recent(self) -> None:
        self.recent.clear()
        for path, words in self._store.recent():
            go_on = partial(self._open_recent, path)
            self.recent.addAction(words).triggered.connect(go_on)
        self.recent.setEnabled(bool(self.recent.actions()))

    def _open_recent(self, path: Path, is_checked: bool = False) -> None:
        self._reading.open_session(path)

    def _load_sample(self, key: str, is_checked: bool = False) -> None:
        self._reading.load(SampleSource(key))


class Recovery(QWidget):
    """Offers the maps that a crash left behind, one after another."""

    def __init__(self, reading: ReadingTask, files: list[Path]) -> None:
        super().__init__()
        self._reading, self._files = reading, files
        self.text = text_label(role="warning")
        self.back, self.forget = QPushButton("Bring it back"), QPushButton("Forget it")
        self.back.setToolTip("Go on where the map was saved last.")
        self.forget.setToolTip("Delete this saved map for good.")
        self.back.clicked.connect(lambda: reading.bring_back(self._files[0]))
        self.forget.clicked.connect(self._forget)
        row = QHBoxLayout()
        row.addWidget(self.back, 1)
        row.addWidget(self.forget, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 4)
        column.addWidget(self.text)
        column.addLayout(row)
        self.refresh()

    def refresh(self) -> None:
        """Offer the first of the files, if there is one."""
        self.setVisible(bool(self._files))
        if self._files:
            show_text(self.text, _told(self._files[0]))

    def _forget(self) -> None:
        discard(self._files.pop(0))
        self.refresh()


def _told(recovery_file: Path) -> str:
    saved_at = recovery_file.stat().st_mtime
    when, is_today = (
        datetime.fromtimestamp(saved_at),
        time.time() - saved_at < 12 * 3600,
    )
    at = f"{when:%H:%M}" if is_today else f"on {when:%d %B, %H:%M}"
    return f"napari ended without closing its last map, saved {at}."
