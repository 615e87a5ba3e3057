"""A scatter plot of two values of all points, with a gate that selects points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from qtpy.QtCore import QStringListModel, Qt
from qtpy.QtWidgets import QCompleter, QLineEdit

from napari_embedding_game.data.columns import share_text
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.export.plots import Plot, escape_dollars
from napari_embedding_game.data.palette import Colors, make_point_colors
from napari_embedding_game.session.axis_values import (
    find_axis_values,
    list_axis_names,
    pearson_correlation,
)
from napari_embedding_game.session.session import Session
from napari_embedding_game.ui.style.coloring import (
    compute_value_extent,
    replace_gene_word,
)
from napari_embedding_game.ui.style.form_widgets import CTRL, form_layout
from napari_embedding_game.ui.style.plot_canvas import PlotPane

HINT = "Type two names, such as two genes: a part is enough to find them."
GATED = "{inside:,} of {all:,} points in the gate, {share}."
TIP = f"Drag a rectangle to select points; with Shift or {CTRL} to add them."
MAX_OFFERED = 12
MARGIN = 0.04
"""Share of an axis that is free beyond the extreme points, to begin a drag."""
MAX_PAINTED = 20_000
"""Points that are painted at most of the selected and of the other points."""
GREY = (0.55, 0.55, 0.55, 0.27)
"""Colour of points that are not selected."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ScatterPlot(Plot):
    """Points at two of their values, with the selected points in colour."""

    axes: tuple[pd.Series, pd.Series]
    """(n,) values on the horizontal and the vertical axis."""
    rgba: Colors
    """(n, 4) colour of each point."""
    chosen: NDArray[np.bool_] | None = None
    """(n,) points in colour, painted above grey points; None for all points."""
    gate: tuple[list[float], list[float]] | None = None
    """Ends of the selected rectangle, horizontal and vertical."""

    def size(self) -> tuple[float, float]:
        """Return width and height of the figure in inches."""
        return 4.0, 4.0

    def paint(self, axes: Any) -> None:
        """Paint the points in random order, so that no group covers another.

        At most MAX_PAINTED grey points and, above them, MAX_PAINTED chosen points are
        painted, then the outline of the gate.
        """
        across, up = self.axes
        axes.set(xlim=_find_axis_limits(across), ylim=_find_axis_limits(up))
        axes.set(xlabel=escape_dollars(across.name), ylabel=escape_dollars(up.name))
        axes.spines[["top", "right"]].set_visible(False)
        order = np.random.default_rng(0).permutation(len(across))
        parts = [(order, self.rgba)]
        if self.chosen is not None:
            is_in, grey = self.chosen[order], np.broadcast_to(GREY, self.rgba.shape)
            parts = [(order[~is_in], grey), (order[is_in], self.rgba)]
        for rows, colors in parts:
            rows = rows[:MAX_PAINTED]
            values = across.to_numpy()[rows], up.to_numpy()[rows]
            axes.scatter(*values, 9, colors[rows], linewidths=0, rasterized=True)
        if self.gate is not None:
            (left, right), (low, high) = self.gate
            corners = (left, right, right, left, left), (low, low, high, high, low)
            axes.plot(*corners, "--", color=axes.xaxis.label.get_color(), linewidth=1)
        axes.figure.draw_without_rendering()


class ScatterPane(PlotPane):
    """Two fields for the axes, the scatter plot, and the points in the gate."""

    def __init__(self, session: Session) -> None:
        super().__init__(session, lambda x, y: TIP, can_drag=True)
        self._obs: object = None
        """The metadata of the shown data; each change of metadata makes another
        frame."""
        self._axes: tuple[pd.Series, pd.Series] | None = None
        self._gated: NDArray[np.bool_] | None = None
        """(n,) points that the gate has selected; None after another selection."""
        self._gate: tuple[list[float], list[float]] | None = None
        self.names = QStringListModel(self)
        """Names of values that can be an axis."""
        self.across, self.up = self._make_name_field(), self._make_name_field()
        self.head.addLayout(form_layout(("Across", self.across), ("Up", self.up)))
        self.setTabOrder(self.up, self.canvas)
        self.canvas.dragged.connect(self._on_gate_dragged)
        self.canvas.clicked.connect(lambda *_: session.selection.clear())
        clusters, selection = session.clusters.changed, session.selection.changed
        events = session.state_changed, session.dataset_changed, session.columns_changed
        self.connect_while_open(self.update_view, clusters, selection, *events)

    def clear_data(self) -> None:
        """Forget the axes of the former data, also while this is closed."""
        self._obs = None
        self._show_axes(None)

    def update_view(self) -> None:
        """Show the points of the present data in the colours of their clusters.

        When the metadata have changed, the axes are read again.  The gate is removed
        when other points are selected.
        """
        dataset = self._session.dataset
        if dataset is not None and dataset.obs is not self._obs:
            is_other, names = self._obs is None, list_axis_names(dataset)
            self._obs, self._axes = dataset.obs, None
            for field in (self.across, self.up):
                field.setPlaceholderText(
                    replace_gene_word("Gene, score or column", dataset)
                )
                if is_other and field.text() not in names:  # a name of the former data
                    field.clear()
            self.names.setStringList(names)
            self._on_names_entered()
        points = self._session.selection.points
        if self._gated is not None and not np.array_equal(points, self._gated):
            self._gated = self._gate = None  # other points were selected
            self._show_correlation()
        self.canvas.show_plot(self._make_plot())

    # Inside

    def _make_plot(self) -> ScatterPlot | None:
        """Return the scatter plot; None without a map or two axes."""
        session = self._session
        if session.snapshot is None or self._axes is None:
            return None
        selection = session.selection
        return ScatterPlot(
            axes=self._axes,
            rgba=make_point_colors(session.clusters.clustering),
            chosen=None if selection.is_empty else selection.points,
            gate=self._gate,
        )

    def _make_name_field(self) -> QLineEdit:
        """Return a field for the name of an axis, which completes any part of a name.

        The axes are updated when a name is chosen or editing ends.
        """
        field = QLineEdit()
        field.setClearButtonEnabled(True)
        completer = QCompleter(self.names, field)
        completer.setCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)
        completer.setFilterMode(Qt.MatchFlag.MatchContains)
        completer.setMaxVisibleItems(MAX_OFFERED)
        completer.activated.connect(lambda _: self._on_names_entered())
        field.setCompleter(completer)
        field.editingFinished.connect(self._on_names_entered)
        return field

    def _on_names_entered(self) -> None:
        """Show the axes that are named, once both names are known values.

        The fields then show the full names.  A hint is shown while a name is missing, a
        warning for an unknown name; both clear the plot.  Unchanged names change
        nothing.
        """
        dataset = self._session.dataset
        names = self.across.text().strip(), self.up.text().strip()
        if dataset is None or not all(names):
            self._show_axes(None, replace_gene_word(HINT, dataset))
            return
        if self._axes is not None and names == tuple(a.name for a in self._axes):
            return
        try:
            axes = (
                find_axis_values(dataset, names[0]),
                find_axis_values(dataset, names[1]),
            )
        except DataError as error:
            self._show_axes(None, str(error), "warning")
            return
        for field, axis in zip((self.across, self.up), axes, strict=True):
            field.setText(axis.name)
        self._show_axes(axes)
        self._show_correlation()

    def _show_axes(
        self,
        axes: tuple[pd.Series, pd.Series] | None,
        text: str = "",
        role: str = "note",
    ) -> None:
        """Show other axes without a gate, and a text; no axes clear the plot.

        ``axes``: two series of (n,) values, horizontal and vertical.
        """
        self._axes, self._gated, self._gate = axes, None, None
        self.state.show_text(text, role)
        self.canvas.show_plot(self._make_plot())

    def _show_correlation(self) -> None:
        """Show the correlation of the axes, if defined, and how to select points.

        Does nothing without axes.
        """
        if self._axes is not None:
            r = pearson_correlation(*self._axes)
            text = f"Correlation (Pearson) {r:.2f}. " if np.isfinite(r) else ""
            self.state.show_text(f"{text}Drag to select points.")

    def _on_gate_dragged(
        self, x: float, y: float, to_x: float, to_y: float, adds: bool
    ) -> None:
        """Select the points in the dragged rectangle, or with ``adds`` add them.

        The corners are in values of the axes.  A rectangle without points clears the
        selection, unless points are added.  A text says how many points are inside.
        """
        selection = self._session.selection
        if self._axes is None or self._session.snapshot is None:
            return
        across, up = self._gate = sorted([x, to_x]), sorted([y, to_y])
        is_in = self._axes[0].between(*across) & self._axes[1].between(*up)
        inside = is_in.to_numpy()
        self._gated = inside | selection.points if adds else inside
        if self._gated.any():
            selection.select_points(self._gated)
        else:
            selection.clear()
        n, n_all = int(np.count_nonzero(inside)), len(inside)
        self.state.show_text(
            GATED.format(inside=n, all=n_all, share=share_text(n / n_all))
        )


def _find_axis_limits(axis: pd.Series) -> tuple[float, float]:
    """Return the ends of an axis, a margin beyond the lowest and highest value."""
    low, high = compute_value_extent(axis.to_numpy())
    return low - MARGIN * (high - low), high + MARGIN * (high - low)
