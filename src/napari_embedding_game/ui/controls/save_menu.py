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
    ".pdf": ("Figure (.pdf)…", "PDF (*.pdf)"),
    ".gif": ("Film of the run (.gif)…", "Animated picture (*.gif)"),
    ".ipynb": ("Notebook (.ipynb)…", "Jupyter notebook (*.ipynb)"),
    ".txt": ("Methods paragraph (.txt)…", "Text (*.txt)"),
}
PANELS = "Figure of several panels…"
PANELS_TIP = (
    "For print: clusters, genes, groups and plots as panels a, b, c of a figure."
)
SESSION = "Session, to go on later…"
COLUMNS = "Columns in the layer's features"
IN_ANNDATA = "Map and clusters in the layer's AnnData"
COPY_METHODS = "Copy methods text"
TIPS = {
    ".ipynb": "All that led to this map, as code that makes it again from the data.",
    ".txt": "What was done, for the methods of a paper, with versions and citations.",
}
"""Of entries that do not say all."""
ANNDATA_TIP = (
    "Into obs and obsm of the table in memory, and the features of the layer; no file "
    "is written."
)


class SaveMenu(PushButton):
    """The Save button; asks for the path of the file.

    Parameters
    ----------
    session : Session
    linked : LinkedLayers
    """

    save_requested = Signal(Path)
    """Of the map, in the format that the ending says."""
    panels_requested = Signal()
    """Of a figure of several panels, which are still to be chosen."""
    save_session_requested = Signal(Path)
    copy_methods_requested = Signal()
    """Of the paragraph on methods, to the clipboard."""
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
        self.menu.setToolTipsVisible(True)
        for ending, (words, _) in FORMATS.items():
            action = self.menu.addAction(words)
            action.setToolTip(TIPS.get(ending, ""))
            action.triggered.connect(lambda _=False, ending=ending: self._save(ending))
            if ending == ".pdf":  # after the other figures
                self._add_panels()
        self.copy_methods = self.menu.addAction(COPY_METHODS)
        self.copy_methods.setToolTip(TIPS[".txt"])
        self.copy_methods.triggered.connect(
            lambda _=False: self.copy_methods_requested.emit()
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

    def _add_panels(self) -> None:
        panels = self.menu.addAction(PANELS)
        panels.setToolTip(PANELS_TIP)
        panels.triggered.connect(lambda _=False: self.panels_requested.emit())

    def _on_show(self) -> None:
        """Offer columns only where there is a layer that they go to."""
        linked = self._linked
        is_annotated = linked.annotation is not None
        has_table = linked.current is not None or linked.table is not None
        self.columns.setText(IN_ANNDATA if is_annotated else COLUMNS)
        self.columns.setToolTip(ANNDATA_TIP if is_annotated else "")
        self.columns.setVisible(has_table or is_annotated)

    def _save(self, ending: str) -> None:
        name = proposed(self._session.dataset, "map")
        path = ask(self.native, name, ending, FORMATS[ending][1])
        if path is not None:
            self.save_requested.emit(path)

    def _save_session(self) -> None:
        path = ask_for_session(self.native, self._session.dataset)
        if path is not None:
            self.save_session_requested.emit(path)
