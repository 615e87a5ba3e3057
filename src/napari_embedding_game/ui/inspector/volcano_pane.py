"""The comparison of two groups as a volcano plot."""

from __future__ import annotations

from collections.abc import Callable

from napari_embedding_game.data.export.plots import VolcanoPlot
from napari_embedding_game.ui.inspector.markers_pane import MarkersPane, told_p
from napari_embedding_game.ui.style.form_widgets import show_text
from napari_embedding_game.ui.style.plot_canvas import PlotPane

NONE_YET = "Select a group on the map: its genes are compared with all others'."
HINT = "Right: higher in the selected points; up: more certain. Click colours the map."


class VolcanoPane(PlotPane):
    """Draws every gene of a comparison: change to the right, certainty upwards.

    Parameters
    ----------
    markers : MarkersPane
        What compares; its choices are in the tab of the selection.
    on_name : callable
        Receives the gene that was clicked.
    """

    def __init__(self, markers: MarkersPane, on_name: Callable[[str], None]) -> None:
        super().__init__(self._tip)
        self._markers, self._on_name = markers, on_name
        self._shown: VolcanoPlot | None = None
        markers.viewers.append(self)
        self.listen([markers.compared_changed], self._show)
        self.canvas.clicked.connect(self._pick)
        self._show()

    def showEvent(self, event: object) -> None:
        """Compare now what was selected while nobody looked."""
        super().showEvent(event)
        self._markers.meet()

    def catch_up(self) -> None:
        """Show what was compared."""
        self._show()

    def plot(self) -> VolcanoPlot | None:
        """Return what is shown; None where nothing is."""
        return self._markers.plot()

    def remembering(self) -> Callable[[], None]:
        """Return what has a notebook tell the comparison on show."""
        return self._markers.remembering()

    def _show(self) -> None:
        show_text(self.state, self._markers.state.text() or NONE_YET, "note")
        plot, shown = self._markers.plot(), self._shown
        if plot is None or shown is None or shown.names is not plot.names:
            self._shown = plot
            self.canvas.show_plot(plot)

    def _row_at(self, x: float, y: float) -> int | None:
        shown = self._shown
        return None if shown is None else self.canvas.nearest(shown.places(), x, y)

    def _pick(self, x: float, y: float, is_added: bool) -> None:
        place, found = self._row_at(x, y), self._markers.result
        if place is not None and found is not None:
            self._on_name(str(found.names[place]))

    def _tip(self, x: float, y: float) -> str:
        place, found = self._row_at(x, y), self._markers.result
        if place is None or found is None:
            return HINT
        return (
            f"{found.names[place]}\nlog2 fold {found.logfoldchanges[place]:+.2f}, "
            f"p adj. {told_p(found.pvals_adj[place])}\nin {found.pts[place]:.0%}, "
            f"out {found.pts_rest[place]:.0%}"
        )
