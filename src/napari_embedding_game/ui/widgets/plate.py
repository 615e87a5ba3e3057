"""The plate that the points of a map come from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from napari_embedding_game.ui.inspector.plate_pane import PlatePane
from napari_embedding_game.ui.map_widget import MapWidget
from napari_embedding_game.ui.style.form_widgets import show_text, text_label
from napari_embedding_game.ui.style.theme import ThemeColors

if TYPE_CHECKING:
    import napari

NO_PLATE = (
    "Here are the wells of a plate, once data are open that name them in a column, "
    "such as Well or Metadata_Well with A01, A02."
)


class PlateWidget(MapWidget):
    """The wells of the present data, each in the colour of a share or mean."""

    def __init__(self, napari_viewer: napari.Viewer) -> None:
        super().__init__(napari_viewer)
        session = self.workspace.session
        self.pane = PlatePane(session)
        self.hint = text_label()
        self.column.addWidget(self.hint)
        self.column.addWidget(self.pane, 1)
        for signal, slot in (
            (session.selection.changed, self.pane.refresh),
            (session.clusters.changed, self.pane.refresh),
            (session.dataset_changed, self._on_data),
            (session.columns_changed, self._on_data),
        ):
            self._connections.connect(signal, slot)
        self._on_data()
        self.begin()

    def set_theme(self, colors: ThemeColors) -> None:
        """Take on the colours of napari's theme."""
        self.pane.set_theme(colors)

    def _on_data(self, dataset: object = None) -> None:
        self.pane.set_dataset(self.workspace.session.dataset)
        self.pane.setVisible(self.pane.has_plate)
        show_text(self.hint, "" if self.pane.has_plate else NO_PLATE)
