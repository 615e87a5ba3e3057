"""Teach by example, on the map of a viewer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from napari_embedding_game.ui.images.row_pictures import AppearanceWatch, pictures_of
from napari_embedding_game.ui.inspector.teaching.teach_pane import TeachPane
from napari_embedding_game.ui.map_widget import MapWidget
from napari_embedding_game.ui.shortcuts import WindowShortcuts
from napari_embedding_game.ui.style.form_widgets import show_text, text_label
from napari_embedding_game.ui.style.theme import ThemeColors

if TYPE_CHECKING:
    import napari

NO_DATA = (
    "Sort a few examples into boxes here, and have all others sorted like them. Open "
    "data in the Embedding Game first."
)


class TeachWidget(MapWidget):
    """The boxes of examples, and what is learned from them."""

    def __init__(self, napari_viewer: napari.Viewer) -> None:
        super().__init__(napari_viewer)
        workspace, session = self.workspace, self.workspace.session
        self.pane = TeachPane(session, workspace.teaching, self._on_pick)
        self.hint = text_label()
        self.column.addWidget(self.hint)
        self.column.addWidget(self.pane, 1)
        self._looks = AppearanceWatch(self, self._on_data)
        undoing = [self.pane.undo, self.pane.redo]
        self.addActions([*undoing, *self.pane.keys])
        self.pane.shown_changed.connect(self._on_shown)
        WindowShortcuts(self, self._viewer, [], undoing, self.pane.keys)
        for signal, slot in (
            (session.selection.changed, self.pane.follow),
            (session.dataset_changed, self._on_data),
            (workspace.linked.changed, self._on_data),
        ):
            self._connections.connect(signal, slot)
        self._on_data()
        self.begin()

    def set_theme(self, colors: ThemeColors) -> None:
        """Take on the colours of napari's theme."""
        self.pane.set_theme(colors)

    def _on_shown(self, is_shown: bool) -> None:
        """Let the keys of undoing mean the boxes while these are seen."""
        self.pane.let_have_keys(is_shown)
        self.workspace.teach_shown.emit(is_shown)

    def _on_data(self, dataset: object = None) -> None:
        dataset, linked = self.workspace.session.dataset, self.workspace.linked.current
        self._looks.watch(linked)
        self.pane.set_source(dataset, pictures_of(dataset, linked))
        self.pane.setVisible(dataset is not None)
        show_text(self.hint, "" if dataset is not None else NO_DATA)

    def _on_pick(self, rows: NDArray[np.intp]) -> None:
        self.workspace.session.selection.select_points(rows)
