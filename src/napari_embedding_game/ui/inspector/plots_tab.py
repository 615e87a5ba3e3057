"""The tab of plots: of all clusters, and of gene against gene."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qtpy.QtWidgets import QTabWidget, QVBoxLayout, QWidget

from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.export.plots import ExpressionPlot
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.inspector.dot_plot_pane import DotPlotPane
from napari_embedding_game.ui.inspector.scatter_pane import ScatterPane
from napari_embedding_game.ui.style.coloring import (
    composition_columns,
    worded,
)
from napari_embedding_game.ui.style.theme import ThemeColors

if TYPE_CHECKING:
    from napari_embedding_game.ui.workspace import Workspace

DOTTED = "Genes by clusters: where each is high."
PLOTTED = "Gene against gene, point by point."


class PlotsTab(QWidget):
    """Plots of the whole map, which follow its clusters and its selection.

    Parameters
    ----------
    workspace : Workspace
    """

    def __init__(self, workspace: Workspace) -> None:
        super().__init__()
        self._workspace = workspace
        self._session = session = workspace.session
        self.dot_plot = DotPlotPane(
            session, workspace.palette, workspace.color_by_value
        )
        self.scatter = ScatterPane(session, workspace.palette)
        self.tabs = QTabWidget()
        self.tabs.setDocumentMode(True)
        self.tabs.addTab(self.dot_plot, "Dot plot")
        self.tabs.addTab(self.scatter, "Scatter")
        layout = QVBoxLayout(self)
        layout.setContentsMargins(8, 4, 8, 4)
        layout.addWidget(self.tabs)
        workspace.plots.offer(ExpressionPlot, self.dot_plot.plot)
        self._connections = Connections(self)
        self._connections.call(self._withdraw)
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

    def _withdraw(self) -> None:
        self._workspace.plots.withdraw(ExpressionPlot, self.dot_plot.plot)

    def set_theme(self, colors: ThemeColors) -> None:
        """Take on the colours of napari's theme."""
        self.dot_plot.set_theme(colors)
        self.scatter.set_theme(colors)

    def refresh(self, event: object = None) -> None:
        """Show the present clusters, if somebody looks."""
        self.dot_plot.refresh()
        self.scatter.refresh()

    def _on_selection(self) -> None:
        self.dot_plot.mark()
        self.scatter.recolor()

    def _on_columns(self) -> None:
        self._on_dataset(self._session.dataset)

    def _on_dataset(self, dataset: Dataset | None) -> None:
        columns = composition_columns(dataset) if dataset else []
        self.dot_plot.offer_columns(columns)
        self.tabs.setTabToolTip(0, worded(DOTTED, dataset))
        self.tabs.setTabToolTip(1, worded(PLOTTED, dataset))
        self.refresh()
