"""A button with the menu of formats to save in."""

from __future__ import annotations

from pathlib import Path

from magicgui.widgets import PushButton
from psygnal import Signal
from qtpy.QtWidgets import QMenu

from napari_embedding_game.session.session import Session
from napari_embedding_game.ui.images.linked_layers import LinkedLayers
from napari_embedding_game.ui.tasks.save_dialog import ask, ask_for_session, proposed

FORMATS = {
    ".h5ad": ("AnnData (.h5ad)…", "AnnData (*.h5ad)"),
    ".csv": ("Table (.csv)…", "Comma-separated values (*.csv)"),
    ".parquet": ("Table (.parquet)…", "Parquet (*.parquet)"),
    ".png": ("Figure (.png)…", "Picture (*.png)"),
    ".svg": ("Figure (.svg)…", "Scalable picture (*.svg)"),
    ".gif": ("Film of the run (.gif)…", "Animated picture (*.gif)"),
}
SESSION = "Session, to go on later…"
COLUMNS = "Columns in the layer's features"


class SaveMenu(PushButton):
    """The Save button; asks for the path of the file.

    Parameters
    ----------
    session : Session
    linked : LinkedLayers
    """

    save_requested = Signal(Path)
    """Of the map, in the format that the ending says."""
    save_session_requested = Signal(Path)
    write_features_requested = Signal()
    """Of columns, into the features of the layer."""

    def __init__(self, session: Session, linked: LinkedLayers) -> None:
        super().__init__(
            text="Save",
            tooltip="Write map, clusters and settings to a file; the input stays as "
            "it is.",
        )
        self._session = session
        self._linked = linked
        self.menu = QMenu(self.native)
        for ending, (words, _) in FORMATS.items():
            self.menu.addAction(words).triggered.connect(
                lambda _=False, ending=ending: self._save(ending)
            )
        self.columns = self.menu.addAction(COLUMNS)
        self.columns.triggered.connect(
            lambda _=False: self.write_features_requested.emit()
        )
        self.menu.addSeparator()
        self.session = self.menu.addAction(SESSION)
        self.session.triggered.connect(self._save_session)
        self.menu.aboutToShow.connect(self._on_show)
        self.native.setMenu(self.menu)

    def _on_show(self) -> None:
        """Offer columns only where there is a layer that they go to."""
        linked = self._linked
        has_table = linked.current is not None or linked.table is not None
        self.columns.setVisible(has_table)

    def _save(self, ending: str) -> None:
        name = proposed(self._session.dataset, "map")
        path = ask(self.native, name, ending, FORMATS[ending][1])
        if path is not None:
            self.save_requested.emit(path)

    def _save_session(self) -> None:
        path = ask_for_session(self.native, self._session.dataset)
        if path is not None:
            self.save_session_requested.emit(path)
