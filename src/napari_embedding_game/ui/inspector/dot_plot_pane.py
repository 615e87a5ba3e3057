"""Dot plot, matrix plot or heat map of genes in all clusters."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import numpy as np
from qtpy.QtWidgets import (
    QCheckBox,
    QComboBox,
    QHBoxLayout,
    QLineEdit,
    QSpinBox,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.export.expression_figure import (
    ExpressionPlot,
    PlotKind,
    write_expression,
)
from napari_embedding_game.data.gene_names import split_names
from napari_embedding_game.session.cluster_expression import (
    ClusterExpression,
    iter_cluster_expression,
)
from napari_embedding_game.session.session import Session, sentence
from napari_embedding_game.ui.inspector.expression_key import ExpressionKey
from napari_embedding_game.ui.inspector.expression_table import (
    ExpressionTable,
    Shades,
    Shown,
)
from napari_embedding_game.ui.style.cluster_colors import ClusterColors
from napari_embedding_game.ui.style.coloring import SHADES, name_of
from napari_embedding_game.ui.style.colors import value_colors
from napari_embedding_game.ui.style.form_widgets import show_text, text_label
from napari_embedding_game.ui.style.theme import ThemeColors
from napari_embedding_game.ui.tasks.save_dialog import ask_figure, proposed
from napari_embedding_game.ui.tasks.worker import StageWorker

KINDS: dict[PlotKind, str] = {
    "dots": "Dot plot",
    "matrix": "Matrix plot",
    "cells": "Heat map",
}
KIND_TIP = (
    "Dot plot: the larger a dot, the more cells have the gene; its colour is the mean. "
    "Matrix plot: the mean alone. Heat map: one line for each of up to 60 cells of a "
    "cluster, drawn at random."
)
GENES_TIP = (
    "Names of genes, separated by commas or spaces, then Enter. Empty: the leading "
    "markers of every cluster."
)
MOST_LEADING = 10
WAITING = "The clusters still move: they are compared when the run pauses or ends."


class DotPlotPane(QWidget):
    """What genes are in every cluster, found in the background while it is seen.

    Parameters
    ----------
    session : Session
    palette : ClusterColors
    on_name : callable
        Receives the gene that was clicked.
    """

    def __init__(
        self,
        session: Session,
        palette: ClusterColors,
        on_name: Callable[[str], None],
    ) -> None:
        super().__init__()
        self._session = session
        self._palette = palette
        self._worker: StageWorker | None = None
        self._asked: tuple[Any, ...] = ()
        self._trouble = ""
        self.result: ClusterExpression | None = None
        self.kind = QComboBox()
        self.genes = QLineEdit()
        self.n_leading = QSpinBox()
        self.scaled = QCheckBox("Scale genes")
        self.saved = QToolButton()
        self.state = text_label()
        self.table = ExpressionTable()
        self.key = ExpressionKey()
        self._build()
        self.kind.activated.connect(self._draw)
        self.scaled.toggled.connect(self._draw)
        self.genes.editingFinished.connect(self.refresh)
        self.n_leading.valueChanged.connect(self.refresh)
        self.saved.clicked.connect(self._save)
        self.table.cluster_picked.connect(self._choose)
        self.table.gene_picked.connect(on_name)

    def close(self) -> None:
        """End the search."""
        self._cancel()

    def set_theme(self, colors: ThemeColors) -> None:
        """Take on the colours of napari's theme."""
        self.table.set_theme(colors)
        self.key.set_theme(colors)

    def showEvent(self, event: object) -> None:
        """Catch up."""
        super().showEvent(event)
        self.refresh()

    def refresh(self) -> None:
        """Find the figures of the present clusters, if they changed and it is seen."""
        session = self._session
        dataset, labels = session.dataset, session.clusters.labels
        if self._asked and self._asked[0] is not dataset:
            self._forget()
        if not self.isVisible() or dataset is None or session.snapshot is None:
            return
        if session.state in ("preparing", "running"):
            show_text(self.state, WAITING, "note")
            return
        clusters = tuple(cluster.id for cluster in session.clusters.clusters)
        wanted = tuple(split_names(self.genes.text()))
        self.n_leading.setEnabled(not wanted)
        asked = (dataset, clusters, wanted, self.n_leading.value(), labels)
        if self._is_asked(asked):
            if self._worker is None:
                self._tell()
                self._draw()
            return
        self._cancel()
        self._asked = asked

        def find() -> Generator[float, None, ClusterExpression]:
            return iter_cluster_expression(
                dataset, labels, clusters, wanted, n_leading=asked[3]
            )

        show_text(self.state, "Comparing …", "note")
        self._worker = StageWorker(find)
        self._worker.frame.connect(self._on_share)
        self._worker.returned.connect(self._on_found)
        self._worker.failed.connect(self._on_failed)
        self._worker.begin()

    def mark(self) -> None:
        """Mark the chosen clusters, and the gene that the map is coloured by."""
        session = self._session
        gene = ""
        if session.dataset is not None:
            gene = name_of(session.look.color_by, session.dataset) or ""
        selection = session.selection
        chosen = () if selection.is_of_points else selection.clusters
        self.table.expression.mark(chosen, gene)
        self.table.viewport().update()

    # Inside

    def _build(self) -> None:
        for kind, words in KINDS.items():
            self.kind.addItem(words, kind)
        self.kind.setToolTip(KIND_TIP)
        self.genes.setPlaceholderText("Leading markers, or type genes: CD3D, MS4A1")
        self.genes.setToolTip(GENES_TIP)
        self.genes.setClearButtonEnabled(True)
        self.genes.setMinimumWidth(90)
        self.n_leading.setRange(1, MOST_LEADING)
        self.n_leading.setValue(3)
        self.n_leading.setFixedWidth(76)
        self.n_leading.setKeyboardTracking(False)
        self.n_leading.setToolTip(
            "How many markers of each cluster are shown: the highest scores of a "
            "t-test against all other cells, of genes at least twice as high."
        )
        self.scaled.setChecked(True)
        self.scaled.setToolTip(
            "Each gene from its lowest (0) to its highest (1), so that rare genes are "
            "seen beside frequent ones; off: the values as they are."
        )
        self.saved.setText("Save…")
        self.saved.setProperty("role", "edit")
        self.saved.setToolTip("Save as .pdf, .svg or .png; its text can be edited.")
        head = QHBoxLayout()
        head.addWidget(self.kind)
        head.addWidget(self.genes, 1)
        head.addWidget(self.n_leading)
        head.addWidget(self.scaled)
        head.addWidget(self.saved)
        body = QHBoxLayout()
        body.addWidget(self.table, 1)
        body.addWidget(self.key)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 4, 0, 0)
        layout.setSpacing(4)
        layout.addLayout(head)
        layout.addWidget(self.state)
        layout.addLayout(body, 1)
        show_text(self.state, "")
        self._draw()

    def _is_asked(self, asked: tuple[Any, ...]) -> bool:
        """Whether the same was asked for before."""
        if not self._asked:
            return False
        (data, *rest, labels), (known, *others, former) = asked, self._asked
        return data is known and rest == others and np.array_equal(labels, former)

    def _cancel(self) -> None:
        if self._worker is not None:
            self._worker.abandon()
            self._worker = None
            self._asked = ()

    def _on_share(self, share: float) -> None:
        show_text(self.state, f"Comparing … {share:.0%}")

    def _on_failed(self, error: BaseException) -> None:
        self._worker, self.result = None, None
        self._trouble = sentence(error)
        self._tell()
        self._draw()

    def _on_found(self, found: ClusterExpression) -> None:
        self._worker, self.result = None, found
        self._trouble = found.note
        self._tell()
        self._draw()

    def _tell(self) -> None:
        """Tell what came of the last comparison beside its figures."""
        show_text(self.state, self._trouble, "warning")

    def _forget(self) -> None:
        """Show nothing: the figures are of other data."""
        self._cancel()
        self._asked, self._trouble, self.result = (), "", None
        self._tell()
        self._draw()

    @property
    def _kind(self) -> PlotKind:
        kind: PlotKind = self.kind.currentData()
        return kind

    def _draw(self) -> None:
        """Show what was found, in the chosen way."""
        self.saved.setEnabled(self.result is not None)
        self.key.setVisible(self.result is not None)
        if self.result is None:
            self.table.expression.show_expression(None)
            return
        known = self._session.clusters.clustering.by_id
        clusters = [known[c] for c in self.result.clusters if c in known]
        if len(clusters) < len(self.result.clusters):
            return  # others are on their way
        is_scaled = self.scaled.isChecked()
        shades = Shades.of(self.result, self._kind, is_scaled=is_scaled)
        names = tuple(cluster.name for cluster in clusters)
        colors = self._palette.of(tuple(clusters))
        shown = Shown(self.result, self._kind, shades, names, colors)
        self.table.expression.show_expression(shown)
        self.key.explain(self._title(), shades.limits, has_dots=self._kind == "dots")
        self.mark()

    def _title(self) -> str:
        if self._kind == "cells":
            return "Scaled value" if self.scaled.isChecked() else "Value"
        return "Scaled mean" if self.scaled.isChecked() else "Mean"

    def _choose(self, cluster: int, is_added: bool) -> None:
        if cluster not in self._session.clusters.clustering.by_id:
            return  # it has gone since, while the game runs
        if is_added:
            self._session.selection.toggle(cluster)
        else:
            self._session.selection.select(cluster)

    def _save(self) -> None:
        shown = self.table.expression.shown
        if shown is None:
            return
        name = KINDS[shown.kind].lower().replace(" ", "_")
        path = ask_figure(self, proposed(self._session.dataset, name))
        if path is None:
            return
        plot = ExpressionPlot(
            kind=shown.kind,
            genes=shown.found.genes,
            groups=shown.names,
            values=shown.shades.means,
            shares=shown.found.summary.shares,
            cells=shown.shades.cells,
            scale=value_colors(np.linspace(0, 1, SHADES), (0.0, 1.0)),
            limits=shown.shades.limits,
            title=self._title(),
        )
        try:
            write_expression(plot, path)
        except (DataError, OSError) as error:
            self._session.say(sentence(error))
        else:
            show_text(self.state, f"Saved as {path.name}.", "note")
