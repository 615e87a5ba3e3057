"""The tab of plots: two groups compared, genes by clusters, and gene against gene."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qtpy.QtWidgets import QTabWidget, QToolButton, QVBoxLayout, QWidget

from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.export.plots import ExpressionPlot, VolcanoPlot
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.inspector.dot_plot_pane import DotPlotPane
from napari_embedding_game.ui.inspector.markers_pane import MarkersPane
from napari_embedding_game.ui.inspector.plot_canvas import save_plot
from napari_embedding_game.ui.inspector.scatter_pane import ScatterPane
from napari_embedding_game.ui.inspector.volcano_pane import VolcanoPane
from napari_embedding_game.ui.style.coloring import composition_columns
from napari_embedding_game.ui.style.form_widgets import show_text
from napari_embedding_game.ui.style.theme import ThemeColors

if TYPE_CHECKING:
    from napari_embedding_game.ui.workspace import Workspace


class PlotsTab(QWidget):
    """Plots that follow the clusters and the selection of the map.

    Parameters
    ----------
    workspace : Workspace
    markers : MarkersPane
        Whose comparison the volcano plot shows.
    """

    def __init__(self, workspace: Workspace, markers: MarkersPane) -> None:
        super().__init__()
        self._session = session = workspace.session
        self.volcano = VolcanoPane(markers, workspace.color_by_value)
        self.dot_plot = DotPlotPane(
            session, workspace.palette, workspace.color_by_value
        )
        self.scatter = ScatterPane(session, workspace.palette)
        self.saved = QToolButton()
        self.saved.setText("Save…")
        self.saved.setProperty("role", "corner")
        self.saved.setToolTip("Save as .pdf, .svg or .png; its text can be edited.")
        self.saved.clicked.connect(self._save)
        self.tabs = QTabWidget()
        self.tabs.setDocumentMode(True)
        self.tabs.tabBar().setDrawBase(False)
        self.tabs.setCornerWidget(self.saved)
        for pane, name in (
            (self.volcano, "Volcano"),
            (self.dot_plot, "Dot plot"),
            (self.scatter, "Scatter"),
        ):
            self.tabs.addTab(pane, name)
        self.tabs.setCurrentWidget(self.dot_plot)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(8, 4, 8, 4)
        layout.addWidget(self.tabs)
        workspace.plots[VolcanoPlot] = markers.plot
        workspace.plots[ExpressionPlot] = self.dot_plot.plot
        self._connections = Connections(self)
        self._connections.call(workspace.plots.clear)
        for signal, slot in (
            (session.clusters.changed, self.refresh),
            (session.state_changed, self.refresh),
            (session.dataset_changed, self._on_dataset),
            (session.columns_changed, self._on_columns),
            (session.selection.changed, self._on_selection),
            (session.look.events.color_by, self.dot_plot.mark),
        ):
            self._connections.connect(signal, slot)
        self._on_dataset(session.dataset)

    def set_theme(self, colors: ThemeColors) -> None:
        """Take on the colours of napari's theme."""
        for pane in (self.volcano, self.dot_plot, self.scatter):
            pane.canvas.set_theme(colors)

    def refresh(self, event: object = None) -> None:
        """Show the present clusters, if somebody looks."""
        self.dot_plot.refresh()
        self.scatter.refresh()

    def _save(self) -> None:
        """Save the plot that is seen."""
        pane = self.tabs.currentWidget()
        plot = pane.plot(is_saved=True)
        if plot is not None:
            name = self.tabs.tabText(self.tabs.currentIndex()).lower()
            said = save_plot(plot, self, self._session, name.replace(" ", "_"))
            if said:
                show_text(pane.state, said, "note")

    def _on_selection(self) -> None:
        self.dot_plot.mark()
        self.scatter.recolor()

    def _on_columns(self) -> None:
        self._on_dataset(self._session.dataset)

    def _on_dataset(self, dataset: Dataset | None) -> None:
        columns = composition_columns(dataset) if dataset else []
        self.dot_plot.offer_columns(columns)
        self.refresh()
