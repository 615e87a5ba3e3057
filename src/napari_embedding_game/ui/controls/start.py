"""Buttons to open data, a session, a sample or a recent map."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from qtpy.QtWidgets import QFileDialog, QMenu, QSizePolicy, QWidget

from napari_embedding_game.data.readers import ENDINGS
from napari_embedding_game.session.file.archive import ENDING
from napari_embedding_game.session.file.autosave import mark_as_closed
from napari_embedding_game.session.sources import SAMPLES, SampleSource, make_source
from napari_embedding_game.ui.style.form_widgets import TextLabel
from napari_embedding_game.ui.style.layouts import (
    add_menu_entries,
    clear_layout,
    equal_width_box,
    push_button,
    vertical_box,
)
from napari_embedding_game.ui.tasks.reading import ReadingTask

MAX_RECENT_MAPS = 5
FOLDER_TIP = (
    "A .zarr, a plate of OME-Zarr, 10x (matrix, Visium, Xenium), .fcs, or images with "
    "labels beside them (_labels, _masks) or in labels/."
)
LAYER_TIP = "Load the measurements or the AnnData of the selected layer."
FILES = f"Data and sessions ({' '.join(f'*{ending}' for ending in (*ENDINGS, ENDING))})"


class StartPanel(QWidget):
    """Buttons that open data, and a link for each recent map."""

    def __init__(
        self, reading: ReadingTask, load_selected_layer: Callable[[], None]
    ) -> None:
        super().__init__()
        self._reading = reading
        tip = f"Load {', '.join(ENDINGS)}."
        self.open_button = push_button("Open…", tip)
        self.layer_button = push_button("From layer", LAYER_TIP, load_selected_layer)
        self.sample_button = push_button("Sample", "Example data.")
        samples = QMenu(self)
        sources = {words: SampleSource(key) for key, words in SAMPLES.items()}
        loads = ((w, partial(reading.load, s), "") for w, s in sources.items())
        add_menu_entries(samples, loads)
        self.sample_button.setMenu(samples)
        menu = QMenu(self)
        of_folder = "Folder…", self.ask_and_open_folder, FOLDER_TIP
        add_menu_entries(menu, [("File…", self.ask_and_open_file, ""), of_folder])
        self.open_button.setMenu(menu)
        self._recent_maps_box = vertical_box(spacing=2, margins=(0, 12, 0, 0))
        self.tour = push_button("Show me around", "In five notes.", role="link")
        buttons = equal_width_box(self.layer_button, self.sample_button)
        parts = self.open_button, buttons, self.tour, self._recent_maps_box
        self.setLayout(vertical_box(*parts, spacing=6, margins=(0, 6, 0, 0)))

    def ask_and_open_file(self) -> None:
        """Ask for a file of data or a session and open it; do nothing if cancelled."""
        title = "Open a table of cells, images or texts, or a session"
        name, _ = QFileDialog.getOpenFileName(self, title, "", FILES)
        if name:
            self._reading.open_file(Path(name))

    def ask_and_open_folder(self) -> None:
        """Ask for a folder and read it in the background; do nothing if cancelled."""
        name = QFileDialog.getExistingDirectory(self, "Open a folder")
        if name:
            self._reading.load(make_source(Path(name)))

    def showEvent(self, event: object) -> None:
        """Update the links to recent maps."""
        super().showEvent(event)
        self.show_recent_maps()

    def show_recent_maps(self) -> None:
        """Show a link to each of the MAX_RECENT_MAPS newest maps, anew.

        A link opens the session file, and then marks it as closed.
        """
        clear_layout(self._recent_maps_box)
        recent = self._reading.store.list_recent_maps()[:MAX_RECENT_MAPS]
        if recent:
            self._recent_maps_box.addWidget(TextLabel("Recent maps"))
        for path, words in recent:
            seen = partial(mark_as_closed, path)
            open_map = partial(self._reading.open_session, path, then=seen)
            line = push_button(words, words, open_map, "link")
            # A long name must not widen the dock.
            line.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
            self._recent_maps_box.addWidget(line)
