"""Dot plot of genes in clusters or levels of a column."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import numpy as np
import pandas as pd
from qtpy.QtWidgets import QCheckBox, QComboBox, QLineEdit

from napari_embedding_game.data.export.plots import ExpressionPlot
from napari_embedding_game.data.gene_names import split_names
from napari_embedding_game.session.cluster_expression import (
    ClusterExpression,
    iter_cluster_expression,
)
from napari_embedding_game.session.expression_rows import (
    CLUSTERS,
    RowChoice,
    offered_rows,
    rows_of,
)
from napari_embedding_game.session.session import Session, sentence
from napari_embedding_game.ui.style.coloring import (
    SHADES,
    composition_columns,
    value_colors,
    value_limits,
    worded,
)
from napari_embedding_game.ui.style.form_widgets import let_be_narrow, show_text
from napari_embedding_game.ui.style.layouts import row
from napari_embedding_game.ui.style.plot_canvas import PlotPane
from napari_embedding_game.ui.tasks.worker import Latest

TIPS = {
    "rows": "What has a column each: clusters, groups of a column, or both.",
    "genes": "Names of genes, then Enter. Empty: three markers of every cluster.",
    "scaled": "Each gene from its lowest (0) to its highest (1).",
}
N_LEADING = 3
"""Markers of each cluster."""
WAITING = "The clusters still move: they are compared when the run pauses or ends."


class DotPlotPane(PlotPane):
    """What genes are in every cluster, found in the background while it is seen.

    Parameters
    ----------
    session : Session
    on_name : callable
        Receives the gene that was clicked.
    """

    def __init__(self, session: Session, on_name: Callable[[str], None]) -> None:
        super().__init__(self._tip)
        self._session, self._on_name = session, on_name
        self._search = Latest(self, self._on_found, self._on_failed, self._on_share)
        self._asked: tuple[object, ...] = ()
        """What the figures depend on: the data, groups and genes."""
        self._trouble = ""
        self._rows: pd.Categorical | None = None
        self._is_of_clusters = False
        """Of the figures that are shown."""
        self.result: ClusterExpression | None = None
        self.rows = QComboBox()
        self.genes = QLineEdit()
        self.scaled = QCheckBox("Scale genes")
        let_be_narrow(self.rows, 8)
        self._offer_columns()
        self.genes.setClearButtonEnabled(True)
        self.scaled.setChecked(True)
        self.head.addLayout(row(self.rows, self.scaled))
        self.head.addWidget(self.genes)
        self.canvas.clicked.connect(self._pick)
        self.rows.activated.connect(self.refresh)
        self.scaled.toggled.connect(self._draw)
        self.genes.editingFinished.connect(self.refresh)
        self.listen([session.clusters.changed, session.state_changed], self.refresh)
        others = session.dataset_changed, session.columns_changed
        self.listen(others, self.catch_up)

    def catch_up(self) -> None:
        """Offer the present columns, and show figures of the present groups."""
        self._offer_columns()
        self.refresh()

    def _offer_columns(self) -> None:
        """Let groups be of columns; what was chosen stays, if it can."""
        dataset, chosen, choices = self._session.dataset, self._choice, [CLUSTERS]
        if dataset is not None:
            choices = offered_rows(dataset, composition_columns(dataset))
        self.rows.clear()
        for choice in choices:
            self.rows.addItem(choice.text, choice)
        self.rows.setCurrentIndex(choices.index(chosen) if chosen in choices else 0)
        self.rows.setVisible(len(choices) > 1)
        self._name_columns()

    def refresh(self, *event: object) -> None:
        """Find the figures of the present groups, if they have changed."""
        session = self._session
        dataset = session.dataset
        if self._asked and self._asked[0] is not dataset:
            self._forget()
        if dataset is None or session.snapshot is None:
            return
        if session.state in ("preparing", "running"):
            show_text(self.state, WAITING, "note")
            return
        rows = rows_of(self._choice, dataset, session.clusters.clustering)
        names = tuple(split_names(self.genes.text()))
        is_of_clusters = self._choice == CLUSTERS
        asked = dataset, self._choice, names, rows.codes.tobytes()
        if asked == self._asked:
            if not self._search.is_busy:
                self._rows = rows  # with new names of clusters
                self._draw()
            return
        self._asked = asked

        def find() -> Generator[float, None, tuple[ClusterExpression, Any, bool]]:
            found = yield from iter_cluster_expression(
                dataset, rows, names, n_leading=N_LEADING
            )
            return found, rows, is_of_clusters

        show_text(self.state, "Comparing …", "note")
        self._search.ask(find)

    def plot(self) -> ExpressionPlot | None:
        """Return what is shown; None where nothing is."""
        found, rows = self.result, self._rows
        if found is None or rows is None:
            return None
        summary, is_scaled = found.summary, self.scaled.isChecked()
        values = summary.scaled if is_scaled else summary.means
        return ExpressionPlot(
            genes=found.genes,
            groups=tuple(rows.categories),
            values=values,
            shares=found.summary.shares,
            scale=value_colors(np.linspace(0, 1, SHADES), (0.0, 1.0)),
            limits=(0.0, 1.0) if is_scaled else value_limits(values.ravel()),
            title=f"{'Scaled mean' if is_scaled else 'Mean'} (size: share above 0)",
        )

    # Inside

    def _name_columns(self) -> None:
        """Call the columns what they are: genes, measures or columns."""
        dataset = self._session.dataset
        some = "CD3D, MS4A1"
        if dataset is not None and not dataset.has_expression:
            some = ", ".join(dataset.profile_names[:2])
        offer = worded("Leading markers, or genes: ", dataset)
        self.genes.setPlaceholderText(offer + some)
        self.scaled.setText(worded("Scale genes", dataset))
        for name, tip in TIPS.items():
            getattr(self, name).setToolTip(worded(tip, dataset))

    def _on_share(self, share: float) -> None:
        show_text(self.state, f"Comparing … {share:.0%}")

    def _on_failed(self, error: BaseException) -> None:
        self.result, self._trouble = None, sentence(error)
        self._draw()

    def _on_found(self, found: tuple[ClusterExpression, Any, bool]) -> None:
        self.result, self._rows, self._is_of_clusters = found
        self._trouble = self.result.note
        self._draw()

    def _forget(self) -> None:
        """Show nothing: the figures are of other data."""
        self._search.stop()
        self._asked, self._trouble, self.result = (), "", None
        self._draw()

    @property
    def _choice(self) -> RowChoice:
        choice: RowChoice | None = self.rows.currentData()
        return choice or CLUSTERS

    def _draw(self, *event: object) -> None:
        """Show what was found, and what there is to say."""
        if not self._search.is_busy:
            show_text(self.state, self._trouble, "warning")
        self.canvas.show_plot(self.plot(), is_scrolled=True)

    def _at(self, x: float, y: float) -> tuple[int | None, int | None]:
        """Return the group and the gene at a place; None beside them."""
        if self.result is None or self._rows is None:
            return None, None
        group, gene = round(x), round(y)
        return (
            group if 0 <= group < len(self.result.sizes) else None,
            gene if 0 <= gene < len(self.result.genes) else None,
        )

    def _tip(self, x: float, y: float) -> str:
        (group, gene), found, rows = self._at(x, y), self.result, self._rows
        if found is None or rows is None or (group is None and gene is None):
            return ""
        if group is None:
            return f"{found.genes[gene]}: click to colour the map by it."
        name, size = rows.categories[group], found.sizes[group]
        if gene is None:
            return f"{name}: {size:,} points. Click to choose it, Ctrl-click to add it."
        mean, share = (
            figures[group, gene]
            for figures in (found.summary.means, found.summary.shares)
        )
        where = f"{found.genes[gene]} in {name}"
        return f"{where}\nmean {mean:.3g}, above 0 in {share:.0%} of {size:,}"

    def _pick(self, x: float, y: float, is_added: bool) -> None:
        """Choose a group by its name or a dot; colour by a gene by its name."""
        (group, gene), found = self._at(x, y), self.result
        if found is not None and group is not None:
            self._choose(group, is_added)
        elif found is not None and gene is not None:
            self._on_name(found.genes[gene])

    def _choose(self, group: int, is_added: bool) -> None:
        """Select a cluster or the points of a group, if the map still has them."""
        selection, rows = self._session.selection, self._rows
        clustering = self._session.clusters.clustering
        if rows is None or len(rows) != len(clustering.labels):
            return
        if self._is_of_clusters:
            known = [
                c.id for c in clustering.clusters if c.name == rows.categories[group]
            ]
            for cluster in known:
                (selection.toggle if is_added else selection.select)(cluster)
        else:
            selection.pick(rows.codes == group, is_added=is_added)
