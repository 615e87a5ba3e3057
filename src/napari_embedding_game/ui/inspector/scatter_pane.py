"""Gene against gene: two numbers of all points, and a gate that selects on the map."""

from __future__ import annotations

import numpy as np
from qtpy.QtCore import QStringListModel, Qt
from qtpy.QtWidgets import (
    QCompleter,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QVBoxLayout,
    QWidget,
)

from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.session.axis_values import (
    Axis,
    Gate,
    axis_names,
    axis_of,
    correlation,
)
from napari_embedding_game.session.session import Session
from napari_embedding_game.ui.inspector.scatter_plot import ScatterPlot
from napari_embedding_game.ui.style.cluster_colors import ClusterColors
from napari_embedding_game.ui.style.coloring import worded
from napari_embedding_game.ui.style.form_widgets import show_text, text_label
from napari_embedding_game.ui.style.theme import ThemeColors

HINT = "Type two names, such as two genes: a part is enough to find them."
GATED = "{inside:,} of {all:,} points in the gate, {share:.1%}."
MOST_OFFERED = 12


class ScatterPane(QWidget):
    """Two fields for the axes, the plot, and how many points are in the gate.

    Parameters
    ----------
    session : Session
    palette : ClusterColors
    """

    def __init__(self, session: Session, palette: ClusterColors) -> None:
        super().__init__()
        self._session = session
        self._palette = palette
        self._dataset: Dataset | None = None
        self._obs: object = None
        """Its metadata, of which each change makes another frame."""
        self._axes: tuple[Axis, Axis] | None = None
        self._gated: np.ndarray | None = None
        self._names = QStringListModel(self)
        self.across, self.up = QLineEdit(), QLineEdit()
        self.state = text_label()
        self.plot = ScatterPlot()
        self._build()
        for field in (self.across, self.up):
            field.editingFinished.connect(self._on_names)
        self.plot.gated.connect(self._select)
        self.plot.cleared.connect(session.selection.clear)

    def set_theme(self, colors: ThemeColors) -> None:
        """Take on the colours of napari's theme."""
        self.plot.set_theme(colors)

    def showEvent(self, event: object) -> None:
        """Catch up."""
        super().showEvent(event)
        self.refresh()

    def refresh(self) -> None:
        """Show the present data in the colours of the present clusters."""
        if not self.isVisible():
            return
        dataset = self._session.dataset
        obs = None if dataset is None else dataset.obs
        if dataset is not self._dataset or obs is not self._obs:
            self._dataset, self._obs = dataset, obs
            for field in (self.across, self.up):
                field.setPlaceholderText(worded("Gene, score or column", dataset))
            self._names.setStringList([] if dataset is None else axis_names(dataset))
            self._axes = None
            self._on_names()
        self.recolor()

    def recolor(self) -> None:
        """Show which points are selected now, and the colours of clusters."""
        session = self._session
        is_known = session.snapshot is not None and self._axes is not None
        if not self.isVisible() or not is_known:
            return
        points = session.selection.points
        if self._gated is not None and not np.array_equal(points, self._gated):
            self._gated = self.plot.gate = None  # something else was selected
            self._tell_axes()
        chosen = None if session.selection.is_empty else points
        self.plot.color(self._palette.of_points(), chosen)

    # Inside

    def _build(self) -> None:
        head = QHBoxLayout()
        for field, words, tip in (
            (self.across, "Across", "to the right"),
            (self.up, "Up", "upwards"),
        ):
            field.setToolTip(
                f"What is drawn {tip}: a score, a column or another number."
            )
            field.setClearButtonEnabled(True)
            field.setMinimumWidth(80)
            offer = QCompleter(self._names, field)
            offer.setCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)
            offer.setFilterMode(Qt.MatchFlag.MatchContains)
            offer.setMaxVisibleItems(MOST_OFFERED)
            offer.activated.connect(lambda _: self._on_names())
            field.setCompleter(offer)
            head.addWidget(QLabel(words))
            head.addWidget(field, 1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 4, 0, 0)
        layout.setSpacing(4)
        layout.addLayout(head)
        layout.addWidget(self.state)
        layout.addWidget(self.plot, 1)
        show_text(self.state, HINT, "note")

    def _on_names(self) -> None:
        """Show other axes, once both are named."""
        dataset = self._dataset
        names = self.across.text().strip(), self.up.text().strip()
        if dataset is None or not all(names):
            self._show(None)
            show_text(self.state, worded(HINT, dataset), "note")
            return
        if self._axes is not None and names == tuple(a.name for a in self._axes):
            return
        try:
            axes = axis_of(dataset, names[0]), axis_of(dataset, names[1])
        except DataError as error:
            self._show(None)
            show_text(self.state, str(error), "warning")
            return
        for field, axis in zip((self.across, self.up), axes, strict=True):
            field.setText(axis.name)
        self._show(axes)
        self._tell_axes()
        self.recolor()

    def _show(self, axes: tuple[Axis, Axis] | None) -> None:
        self._axes, self._gated = axes, None
        self.plot.show_axes(axes)

    def _tell_axes(self) -> None:
        if self._axes is None:
            return
        r = correlation(self._axes[0].values, self._axes[1].values)
        told = f"Correlation (Pearson) {r:.2f}. " if np.isfinite(r) else ""
        show_text(self.state, f"{told}Drag to select cells.", "note")

    def _select(self, gate: Gate, is_added: bool) -> None:
        """Select the points in a gate, or add them."""
        selection = self._session.selection
        if self._axes is None or self._session.snapshot is None:
            return
        inside = gate.inside(self._axes[0].values, self._axes[1].values)
        points = inside | selection.points if is_added else inside
        self._gated = points
        if points.any():
            selection.select_points(points)
        else:
            selection.clear()
        n, n_all = int(np.count_nonzero(inside)), len(inside)
        told = GATED.format(inside=n, all=n_all, share=n / n_all)
        show_text(self.state, told, "note")
