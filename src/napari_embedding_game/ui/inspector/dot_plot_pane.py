"""Dot plot, matrix plot or heat map of genes in clusters or levels of a column."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

import numpy as np
from qtpy.QtGui import QResizeEvent
from qtpy.QtWidgets import (
    QBoxLayout,
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
from napari_embedding_game.data.export.plots import (
    ExpressionPlot,
    PlotKind,
    write_plot,
)
from napari_embedding_game.data.gene_names import split_names
from napari_embedding_game.session.cluster_expression import (
    ClusterExpression,
    iter_cluster_expression,
)
from napari_embedding_game.session.expression_rows import (
    CLUSTERS,
    ExpressionRows,
    RowChoice,
    offered_rows,
    rows_of,
)
from napari_embedding_game.session.looked_at import ShownFigure
from napari_embedding_game.session.session import Session, sentence
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.inspector.expression_key import ExpressionKey
from napari_embedding_game.ui.inspector.expression_table import (
    ExpressionTable,
    Shades,
    Shown,
)
from napari_embedding_game.ui.style.cluster_colors import ClusterColors
from napari_embedding_game.ui.style.coloring import SHADES, name_of, worded
from napari_embedding_game.ui.style.colors import category_colors, value_colors
from napari_embedding_game.ui.style.form_widgets import (
    let_be_narrow,
    show_text,
    text_label,
)
from napari_embedding_game.ui.style.level_click import select_rows
from napari_embedding_game.ui.style.theme import ThemeColors
from napari_embedding_game.ui.tasks.save_dialog import ask_figure, proposed
from napari_embedding_game.ui.tasks.worker import Worker

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
ROWS_TIP = (
    "What has a row each: the clusters, the groups of a column such as types or "
    "conditions, or both, each cluster parted by the groups in it."
)
GENES_TIP = (
    "Names of genes, separated by commas or spaces, then Enter. Empty: the leading "
    "markers of every cluster."
)
LEADING_TIP = (
    "How many markers of each cluster are shown: the highest scores of a Wilcoxon test "
    "against all other points, of genes at least twice as high."
)
SCALED_TIP = (
    "Each gene from its lowest (0) to its highest (1), so that rare genes are seen "
    "beside frequent ones; off: the values as they are."
)
MOST_LEADING = 10
WIDE = 600
"""Pixels in which all choices have room beside each other."""
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
        self._worker: Worker | None = None
        self._asked: tuple[Any, ...] = ()
        self._trouble = ""
        self._rows: ExpressionRows | None = None
        """Of the figures that are shown."""
        self.result: ClusterExpression | None = None
        self.kind = QComboBox()
        self.rows = QComboBox()
        self.genes = QLineEdit()
        self.n_leading = QSpinBox()
        self.scaled = QCheckBox("Scale genes")
        self.saved = QToolButton()
        self.state = text_label()
        self.table = ExpressionTable()
        self.key = ExpressionKey()
        self._head = QBoxLayout(QBoxLayout.Direction.TopToBottom)
        Connections(self).call(self._cancel)
        self._build()
        self.kind.activated.connect(self._draw)
        self.rows.activated.connect(self.refresh)
        self.scaled.toggled.connect(self._draw)
        self.genes.editingFinished.connect(self.refresh)
        self.n_leading.valueChanged.connect(self.refresh)
        self.saved.clicked.connect(self._save)
        self.table.cluster_picked.connect(self._choose)
        self.table.gene_picked.connect(on_name)

    def set_theme(self, colors: ThemeColors) -> None:
        """Take on the colours of napari's theme."""
        self.table.set_theme(colors)
        self.key.set_theme(colors)

    def offer_columns(self, columns: Sequence[str]) -> None:
        """Let rows be of these columns; what was chosen stays, if it can."""
        dataset, chosen = self._session.dataset, self._choice
        choices = [CLUSTERS] if dataset is None else offered_rows(dataset, columns)
        self.rows.clear()
        for choice in choices:
            self.rows.addItem(choice.text, choice)
        self.rows.setCurrentIndex(choices.index(chosen) if chosen in choices else 0)
        self.rows.setVisible(len(choices) > 1)
        self._name_columns()

    def showEvent(self, event: object) -> None:
        """Catch up."""
        super().showEvent(event)
        self.refresh()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Put all choices into one line where there is room."""
        super().resizeEvent(event)
        ways = QBoxLayout.Direction
        is_wide = event.size().width() >= WIDE
        self._head.setDirection(ways.LeftToRight if is_wide else ways.TopToBottom)

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
        rows = rows_of(self._choice, dataset, labels, session.clusters.clusters)
        wanted = tuple(split_names(self.genes.text()))
        self.n_leading.setEnabled(not wanted)
        n_leading = self.n_leading.value()
        asked = (dataset, self._choice, rows.ids, wanted, n_leading, rows.labels)
        if self._is_asked(asked):
            if self._worker is None:
                self._rows = rows  # with new names of clusters
                self._tell()
                self._draw()
            return
        self._cancel()
        self._asked = asked

        def find() -> Generator[float, None, ClusterExpression]:
            return iter_cluster_expression(
                dataset, rows.labels, rows.ids, wanted, n_leading=n_leading
            )

        show_text(self.state, "Comparing …", "note")
        self._worker = Worker(find)
        self._worker.frame.connect(self._on_share)
        self._worker.returned.connect(lambda found: self._on_found(found, rows))
        self._worker.failed.connect(self._on_failed)
        self._worker.begin()

    def plot(self, *, is_saved: bool = False) -> ExpressionPlot | None:
        """Return what is shown as a figure draws it; None where nothing is.

        A notebook tells what was shown, whether or not it ``is_saved``.
        """
        shown = self.table.expression.shown
        if shown is None:
            return None
        return ExpressionPlot(
            kind=shown.kind,
            genes=shown.found.genes,
            groups=shown.names,
            values=shown.shades.means,
            shares=shown.found.summary.shares,
            cells=shown.shades.cells,
            scale=value_colors(np.linspace(0, 1, SHADES), (0.0, 1.0)),
            limits=shown.shades.limits,
            title=shown.title,
        )

    def mark(self) -> None:
        """Mark the chosen clusters, and the gene that the map is coloured by."""
        session = self._session
        gene = ""
        if session.dataset is not None:
            gene = name_of(session.look.color_by, session.dataset) or ""
        selection = session.selection
        is_of_clusters = self._choice == CLUSTERS and not selection.is_of_points
        chosen = selection.clusters if is_of_clusters else ()
        self.table.expression.mark(chosen, gene)
        self.table.viewport().update()

    # Inside

    def _build(self) -> None:
        for kind, words in KINDS.items():
            self.kind.addItem(words, kind)
        self.rows.setToolTip(ROWS_TIP)
        let_be_narrow(self.rows, 8)
        self.offer_columns(())
        self.genes.setClearButtonEnabled(True)
        self.genes.setMinimumWidth(90)
        self.n_leading.setRange(1, MOST_LEADING)
        self.n_leading.setValue(3)
        self.n_leading.setFixedWidth(76)
        self.n_leading.setKeyboardTracking(False)
        self.scaled.setChecked(True)
        self.saved.setText("Save…")
        self.saved.setProperty("role", "edit")
        self.saved.setToolTip("Save as .pdf, .svg or .png; its text can be edited.")
        of_rows, of_genes = QHBoxLayout(), QHBoxLayout()
        of_rows.addWidget(self.kind)
        of_rows.addWidget(self.rows, 1)
        of_rows.addWidget(self.saved)
        of_genes.addWidget(self.genes, 1)
        of_genes.addWidget(self.n_leading)
        of_genes.addWidget(self.scaled)
        self._head.addLayout(of_rows, 2)
        self._head.addLayout(of_genes, 3)
        body = QHBoxLayout()
        body.addWidget(self.table, 1)
        body.addWidget(self.key)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 4, 0, 0)
        layout.setSpacing(4)
        layout.addLayout(self._head)
        layout.addWidget(self.state)
        layout.addLayout(body, 1)
        show_text(self.state, "")
        self._draw()

    def _name_columns(self) -> None:
        """Call the columns what they are: genes, measures or columns."""
        dataset = self._session.dataset
        some = "CD3D, MS4A1"
        if dataset is not None and not dataset.has_expression:
            some = ", ".join(dataset.profile_names[:2])
        offer = worded("Leading markers, or type genes: ", dataset)
        self.genes.setPlaceholderText(offer + some)
        self.scaled.setText(worded("Scale genes", dataset))
        for widget, tip in (
            (self.kind, KIND_TIP),
            (self.genes, GENES_TIP),
            (self.n_leading, LEADING_TIP),
            (self.scaled, SCALED_TIP),
        ):
            widget.setToolTip(worded(tip, dataset))

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

    def _on_found(self, found: ClusterExpression, rows: ExpressionRows) -> None:
        self._worker, self.result, self._rows = None, found, rows
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
    def _choice(self) -> RowChoice:
        choice: RowChoice | None = self.rows.currentData()
        return choice or CLUSTERS

    @property
    def _kind(self) -> PlotKind:
        kind: PlotKind = self.kind.currentData()
        return kind

    def _draw(self) -> None:
        """Show what was found, in the chosen way."""
        self.saved.setEnabled(self.result is not None)
        self.key.setVisible(self.result is not None)
        rows = self._rows
        if self.result is None or rows is None:
            self.table.expression.show_expression(None)
            return
        known = self._session.clusters.clustering.by_id
        is_known = rows.clusters is None or known.keys() >= set(rows.clusters)
        if not is_known:
            return  # others are on their way
        is_scaled = self.scaled.isChecked()
        shades = Shades.of(self.result, self._kind, is_scaled=is_scaled)
        if rows.clusters is None:
            colors = category_colors(len(rows.ids))
        else:
            colors = self._palette.of(tuple(known[c] for c in rows.clusters))
        shown = Shown(
            self.result, self._kind, shades, self._title(), rows.names, colors
        )
        self.table.expression.show_expression(shown)
        self.key.explain(shown.title, shades.limits, has_dots=self._kind == "dots")
        self.mark()
        self._remember(self.result)

    def _remember(self, found: ClusterExpression) -> None:
        """Have the figure that is on show told by a notebook."""
        if not self.isVisible() or self._worker is not None:
            return  # others are on their way
        _, choice, _, wanted, *_ = self._asked
        figure = ShownFigure(
            kind=self._kind,
            genes=found.genes,
            column=choice.column,
            splits_clusters=choice.splits_clusters,
            are_leading=not wanted,
            is_scaled=self.scaled.isChecked(),
        )
        self._session.figures.add(figure)

    def _title(self) -> str:
        if self._kind == "cells":
            return "Scaled value" if self.scaled.isChecked() else "Value"
        return "Scaled mean" if self.scaled.isChecked() else "Mean"

    def _choose(self, cluster: int, is_added: bool) -> None:
        if self._choice != CLUSTERS:
            self._choose_points(cluster, is_added)
            return
        if cluster not in self._session.clusters.clustering.by_id:
            return  # it has gone since, while the game runs
        if is_added:
            self._session.selection.toggle(cluster)
        else:
            self._session.selection.select(cluster)

    def _choose_points(self, row: int, is_added: bool) -> None:
        """Select the points of a row, if the map still has them."""
        rows, snapshot = self._rows, self._session.snapshot
        if rows is None or snapshot is None:
            return
        if len(rows.labels) == len(snapshot.embedding):
            select_rows(self._session.selection, rows.labels == row, is_added=is_added)

    def _save(self) -> None:
        plot = self.plot()
        if plot is None:
            return
        name = KINDS[plot.kind].lower().replace(" ", "_")
        path = ask_figure(self, proposed(self._session.dataset, name))
        if path is None:
            return
        try:
            write_plot(plot, path)
        except (DataError, OSError) as error:
            self._session.say(sentence(error))
        else:
            show_text(self.state, f"Saved as {path.name}.", "note")
