"""A volcano plot of the comparison of two groups."""

from __future__ import annotations

from napari_embedding_game.data.columns import share_text
from napari_embedding_game.ui.inspector.markers_pane import MarkersPane, p_text
from napari_embedding_game.ui.style.plot_canvas import PlotPane

HINT = "Right: higher in the selected points; up: more certain. Click colours the map."


class VolcanoPane(PlotPane):
    """Shows each gene of a comparison: change to the right, certainty upwards.

    Parameters
    ----------
    markers : MarkersPane
        Makes the comparison; its choices are in the tab of the selection. They compare
        the selection with other points, or two conditions inside it.
    """

    def __init__(self, markers: MarkersPane) -> None:
        super().__init__(markers.workspace.session, self._make_tooltip)
        self.markers = markers
        markers.visible_with.append(self)
        self.connect_while_open(self.update_view, markers.compared_changed)
        self.canvas.clicked.connect(self._on_plot_clicked)

    def showEvent(self, event: object) -> None:
        """Have the markers compare a selection that was made while this was closed."""
        super().showEvent(event)
        self.markers.update_view_if_outdated()

    def update_view(self) -> None:
        """Show the plot and text of the markers' comparison, or no plot without one."""
        self.state.show_text(self.markers.state.text())
        compared = self.markers.compared
        plot = None if compared is None else compared.plot
        if plot is not self.canvas.plot:
            self.canvas.show_plot(plot)

    def _find_gene_at(self, x: float, y: float) -> int | None:
        """Return the index of the gene near a position; None for none.

        None also while the picture is that of a former plot.
        """
        plot = self.canvas.plot
        if plot is None or self.canvas.needs_paint:  # another plot is still shown
            return None
        return self.canvas.find_nearest_position(plot.compute_gene_positions(), x, y)

    def _on_plot_clicked(self, x: float, y: float, is_added: bool) -> None:
        """Colour the map by the gene near the click; do nothing elsewhere."""
        row = self._find_gene_at(x, y)
        if row is not None:
            name = str(self.canvas.plot.names[row])
            self.markers.workspace.color_by_value(name)

    def _make_tooltip(self, x: float, y: float) -> str:
        """Return the figures of the gene near a position, else a hint."""
        row, genes = self._find_gene_at(x, y), self.markers.result
        if row is None or genes is None:
            return HINT
        return (
            f"{genes.names[row]}\nlog2 fold {genes.logfoldchanges[row]:+.2f}, "
            f"p adj. {p_text(genes.pvals_adj[row])}\nin {share_text(genes.pts[row])}, "
            f"out {share_text(genes.pts_rest[row])}"
        )
