"""Data: what is loaded, which of its spaces is embedded, what was left out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from magicgui.widgets import CheckBox, ComboBox, PushButton
from qtpy.QtWidgets import QFileDialog, QHBoxLayout, QMenu

from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.readers import ENDINGS
from napari_embedding_game.session.sources import (
    SAMPLES,
    FeaturesSource,
    FileSource,
    SampleSource,
    Source,
)
from napari_embedding_game.ui.parts import Part, add_row, form, show_text, text_label
from napari_embedding_game.ui.player import Player

if TYPE_CHECKING:
    import napari

HINT = "Open a table of cells, images or texts (one in each row), or try a sample."
NO_TABLE = (
    "Select a layer with a table first: a Labels or Points layer whose objects "
    "were measured has one."
)


class DataPart(Part):
    """Chooses the source and tells what came of it."""

    def __init__(self, viewer: napari.Viewer, player: Player) -> None:
        super().__init__("Data")
        self._viewer = viewer
        self._player = player
        self._source: Source | None = None
        self._refused_missing = False
        self.title = text_label("", "title")
        self.summary = text_label()
        self.space = ComboBox(
            choices=[],
            tooltip="Which numbers of the file are embedded, such as its principal "
            "components.",
        )
        self.drop = CheckBox(
            text="Leave out rows with missing values",
            tooltip="Map the complete rows only; the others stay in the saved file, "
            "unassigned.",
        )
        self.notes = text_label()
        self.trouble = text_label(role="error")
        self._build()
        self._connect()
        self._show(player.session.dataset)

    def choose_file(self) -> None:
        """Ask for a file and load it."""
        patterns = " ".join(f"*{ending}" for ending in ENDINGS)
        name, _ = QFileDialog.getOpenFileName(
            self, "Open a table of cells, images or texts", "", f"Data ({patterns})"
        )
        if name:
            self._player.load(FileSource(Path(name)))

    def use_layer(self) -> None:
        """Load the features table of the selected layer."""
        layer = self._viewer.layers.selection.active
        features = getattr(layer, "features", None)
        if layer is None or features is None or features.shape[1] == 0:
            show_text(self.trouble, NO_TABLE)
            return
        self._player.load(FeaturesSource(features.copy(), layer.name))

    # Inside

    def _build(self) -> None:
        self.open_button = PushButton(
            text="Open file…", tooltip="Load .h5ad, .csv, .tsv, .parquet, .npy or .npz."
        )
        self.layer_button = PushButton(
            text="From layer",
            tooltip="Load the table of measurements of the selected layer.",
        )
        self.sample_button = PushButton(
            text="Sample", tooltip="Load ready-made data to try the game on."
        )
        menu = QMenu(self)
        for key, words in SAMPLES.items():
            menu.addAction(words).triggered.connect(
                lambda _=False, key=key: self._player.load(SampleSource(key))
            )
        self.sample_button.native.setMenu(menu)
        buttons = QHBoxLayout()
        buttons.setSpacing(4)
        for button in (self.open_button, self.layer_button, self.sample_button):
            buttons.addWidget(button.native, 1)
        for widget in (self.title, self.summary):
            self.column.addWidget(widget)
        self._form = form()
        add_row(self._form, "Space", self.space)
        self.column.addLayout(self._form)
        self.column.addWidget(self.notes)
        self.column.addWidget(self.trouble)
        self.column.addWidget(self.drop.native)
        self.column.addLayout(buttons)
        self._offer_spaces([])
        self.drop.native.hide()

    def _connect(self) -> None:
        player = self._player
        self.open_button.changed.connect(self.choose_file)
        self.layer_button.changed.connect(self.use_layer)
        self.space.changed.connect(self._reload)
        self.drop.changed.connect(self._reload)
        player.asked.connect(self._on_asked)
        player.loaded.connect(self._on_loaded)
        player.busy_changed.connect(self._on_busy)
        player.trouble.connect(self._on_trouble)
        player.session.dataset_changed.connect(self._show)

    def _reload(self) -> None:
        if self._source is not None:
            missing = "drop" if self.drop.value else "error"
            self._player.load(self._source, space=self.space.value, missing=missing)

    def _on_asked(self, source: Source) -> None:
        if source is self._source:
            return
        self._source = source
        self._refused_missing = False
        self._offer_spaces([])
        with self.drop.changed.blocked():
            self.drop.value = False
        self.drop.native.hide()

    def _on_loaded(self, source: Source, spaces: list[str]) -> None:
        dataset = self._player.session.dataset
        self._offer_spaces(spaces, dataset.space if dataset else None)
        self.drop.native.setVisible(self.drop.value)

    def _offer_spaces(self, spaces: list[str], present: str | None = None) -> None:
        with self.space.changed.blocked():
            self.space.choices = spaces
            if present in spaces:
                self.space.value = present
        self._form.setRowVisible(0, len(spaces) > 1)

    def _on_busy(self, what: str) -> None:
        show_text(self.summary, what or _summary(self._player.session.dataset))

    def _on_trouble(self, sentence: str) -> None:
        show_text(self.trouble, sentence)
        if "missing" in sentence:
            self.drop.native.show()

    def _show(self, dataset: Dataset | None) -> None:
        show_text(self.title, dataset.name if dataset else "")
        show_text(self.summary, _summary(dataset))
        show_text(self.notes, "\n".join(dataset.notes) if dataset else "")


def _summary(dataset: Dataset | None) -> str:
    if dataset is None:
        return HINT
    rows, columns = dataset.X.shape
    return f"{rows:,} rows × {columns:,} values, from {dataset.space}"
