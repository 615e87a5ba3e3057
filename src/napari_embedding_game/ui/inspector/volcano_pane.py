"""The comparison of two groups as a volcano plot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from napari_embedding_game.data.export.plots import VolcanoPlot
from napari_embedding_game.ui.inspector.markers_pane import MarkersPane, told_p
from napari_embedding_game.ui.inspector.plot_canvas import PlotPane
from napari_embedding_game.ui.style.form_widgets import show_text

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
        self._markers = markers
        self._on_name = on_name
        self._name = ""
        """The gene that was clicked."""
        self.canvas.mark(self._ring)
        markers.viewers.append(self)
        markers.compared_changed.connect(self._show)
        self.canvas.clicked.connect(self._pick)
        self._show()

    def showEvent(self, event: object) -> None:
        """Catch up."""
        super().showEvent(event)
        self._markers.catch_up()

    def plot(self, *, is_saved: bool = False) -> VolcanoPlot | None:
        """Return what is shown; None where nothing is."""
        return self._markers.plot(is_saved=is_saved)

    def _show(self) -> None:
        compared, shown = self._markers.compared, self.canvas.plot
        told = self._markers.state.text()
        show_text(self.state, told or NONE_YET, "note")
        plot = None if compared is None else compared.plot()
        is_same = (
            isinstance(shown, VolcanoPlot)
            and plot is not None
            and shown.names is plot.names
        )
        if not is_same and plot is not shown:
            self.canvas.show_plot(plot)

    def _row_at(self, x: float, y: float) -> int | None:
        plot = self.canvas.plot
        if not isinstance(plot, VolcanoPlot):
            return None
        return self.canvas.nearest(plot.places(), x, y)

    def _pick(self, x: float, y: float, is_added: bool) -> None:
        row, found = self._row_at(x, y), self._markers.result
        if row is not None and found is not None:
            self._name = str(found.names[row])
            self.canvas.mark(self._ring)
            self._on_name(self._name)

    def _tip(self, x: float, y: float) -> str:
        row, found = self._row_at(x, y), self._markers.result
        if row is None or found is None:
            return HINT
        return (
            f"{found.names[row]}\nlog2 fold {found.logfoldchanges[row]:+.2f}, "
            f"p adj. {told_p(found.pvals_adj[row])}\nin {found.pts[row]:.0%}, "
            f"out {found.pts_rest[row]:.0%}"
        )

    def _ring(self, axes: Any) -> Sequence[Any]:
        """Draw a ring around the gene that was clicked, and its name."""
        plot = self.canvas.plot
        if not isinstance(plot, VolcanoPlot) or self._name not in plot.names:
            return ()
        place = plot.places()[int(np.flatnonzero(plot.names == self._name)[0])]
        text = axes.xaxis.label.get_color()
        ring = axes.plot(*place, "o", ms=9, mfc="none", mec=text)
        name = axes.annotate(
            self._name,
            place,
            xytext=(0, 8),
            textcoords="offset points",
            ha="center",
            color=text,
        )
        return (*ring, name)
