"""A pane of gene expression by clusters or groups: dots, a heatmap or violins."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import pandas as pd
from qtpy.QtWidgets import QLineEdit

from napari_embedding_game.data.columns import count_text, share_text
from napari_embedding_game.data.export.plots import (
    DotPlot,
    ExpressionPlot,
    ViolinPlot,
)
from napari_embedding_game.data.gene_names import split_names
from napari_embedding_game.session.cluster_expression import (
    CLUSTERS,
    ClusterExpression,
    RowChoice,
    assign_figure_rows,
    iter_cluster_expression,
    list_row_choices,
)
from napari_embedding_game.session.session import Session
from napari_embedding_game.ui.style.coloring import (
    composition_columns,
    compute_percentile_limits,
    make_viridis_shades,
    replace_gene_word,
)
from napari_embedding_game.ui.style.form_widgets import CTRL, ChoiceBox, check_box
from napari_embedding_game.ui.style.layouts import equal_width_box, horizontal_box
from napari_embedding_game.ui.style.plot_canvas import PlotPane
from napari_embedding_game.ui.tasks.worker import PaneJobRunner
from napari_embedding_game.ui.workspace import Workspace

GROUPS_TIP = "The columns: clusters, groups of a column, or both."
GENES_TIP = "Names of genes, then Enter. Empty: three markers of every cluster."
KINDS = {"Dots": DotPlot, "Heatmap": ExpressionPlot, "Violins": ViolinPlot}
KIND_TIP = (
    "Dots: their size is the share of points above 0. Violins: they are widest at the "
    "values that most points have. The colour is the mean."
)
SCALED_TIP = "Each gene from its lowest (0) to its highest (1)."
WAITING = "The clusters still move: they are compared when the run pauses or ends."


@dataclass(frozen=True, eq=False)
class PlotGroups:
    """The groups of points that a plot compares."""

    point_groups: pd.Categorical
    """(n,) the group of each point."""
    choice: RowChoice
    """The column or clusters that define the groups."""
    clusters: tuple[int, ...]
    """Ids of all clusters, in the order of their groups."""

    def select_group(self, session: Session, group: int, is_added: bool) -> None:
        """Select the points of a group, or the cluster, if it still exists.

        ``group``: index of the group.  With ``is_added`` the group is toggled in the
        selection.
        """
        selection = session.selection
        if self.choice != CLUSTERS:
            selection.toggle_points(self.point_groups.codes == group, is_added=is_added)
        elif session.clusters.find_clusters(self.clusters[group : group + 1]):
            select = selection.toggle_cluster if is_added else selection.select_cluster
            select(self.clusters[group])


class ExpressionPane(PlotPane):
    """Compares genes between groups in the background while this is open."""

    def __init__(self, workspace: Workspace) -> None:
        super().__init__((session := workspace.session), self._make_tooltip)
        self._color = workspace.color_by_value
        self._expression_jobs = PaneJobRunner(
            self,
            "Comparing …",
            self._on_expression_compared,
            self.state.show_text,
            self._on_comparison_failed,
        )
        self._request: tuple[object, ...] = ()
        """What the result depends on: data, grouping, genes and groups of points."""
        self._groups: PlotGroups | None = None
        """The groups of the latest request, with the present names."""
        self.result: ClusterExpression | None = None
        self.groups_choice = ChoiceBox(GROUPS_TIP, self.compare_groups)
        self.genes = QLineEdit()
        self.scaled = check_box(
            "Scale genes", SCALED_TIP, self._update_plot, is_on=True
        )
        self.genes.setClearButtonEnabled(True)
        self.genes.setAccessibleName("Genes")
        self.kind = ChoiceBox(KIND_TIP, self._update_plot, n_letters=5)
        self.kind.setAccessibleName("Kind of plot")
        self.kind.set_choices(KINDS.items())
        self.head.addLayout(equal_width_box(self.groups_choice, self.kind))
        self.head.addLayout(horizontal_box(self.genes, self.scaled))
        widgets = self.groups_choice, self.kind, self.genes, self.scaled, self.canvas
        for widget, following in pairwise(widgets):
            self.setTabOrder(widget, following)
        self.canvas.clicked.connect(self._on_plot_clicked)
        self.genes.editingFinished.connect(self.compare_groups)
        self.connect_while_open(
            self.compare_groups, session.clusters.changed, session.state_changed
        )
        self.connect_while_open(
            self.update_view, session.dataset_changed, session.columns_changed
        )

    def clear_data(self) -> None:
        """Forget the result for the former data, also while this is closed.

        A running comparison is stopped and the plot is cleared.
        """
        self._expression_jobs.stop()
        self._request = ()
        self.result = self._groups = None
        self._update_plot()

    def update_view(self) -> None:
        """Offer the present columns and genes, and compare the present groups."""
        self._offer_groupings()
        self.compare_groups()

    def compare_groups(self, *event: object) -> None:
        """Compare the present groups in the background if groups or genes changed.

        Otherwise the present result is shown with the present names.  While points move
        only a hint is shown; without a map nothing is done.
        """
        session, choice = self._session, self.groups_choice.value
        dataset = session.dataset
        if dataset is None or session.snapshot is None:
            return
        if session.is_moving:
            self.state.show_text(WAITING)
            return
        point_groups = assign_figure_rows(choice, dataset, session.clusters.clustering)
        names = tuple(split_names(self.genes.text()))
        request = dataset, choice, names, point_groups.codes.tobytes()
        self._groups = PlotGroups(
            point_groups, choice, tuple(session.clusters.clustering.by_id)
        )
        if request != self._request:
            self._request = request
            compare = partial(iter_cluster_expression, dataset, point_groups, names)
            self._expression_jobs.submit(compare)
        else:
            self._update_plot()

    # Inside

    def _make_plot(self) -> ExpressionPlot | None:
        """Return a plot of the result, of the chosen kind; None without a result.

        Means are scaled from 0 to 1 for each gene if "Scale genes" is ticked.
        """
        result, groups = self.result, self._groups
        if result is None or groups is None:
            return None
        summary, is_scaled = result.summary, self.scaled.isChecked()
        values = summary.scaled_means if is_scaled else summary.means
        title, kind = "Scaled mean" if is_scaled else "Mean", self.kind.value
        parts: dict[str, Any] = {
            "genes": result.genes,
            "groups": tuple(groups.point_groups.categories),
            "values": values,
            "scale": make_viridis_shades(),
            "limits": (0.0, 1.0)
            if is_scaled
            else compute_percentile_limits(values.ravel()),
        }
        if kind is DotPlot:
            title += " (size: share > 0)"
            parts["shares"] = summary.shares
        elif kind is ViolinPlot:
            title += " (width: points)"
            parts["densities"] = result.densities
            parts["spans"] = result.find_value_spans(is_each_whole=is_scaled)
        plot: ExpressionPlot = kind(title=title, **parts)
        return plot

    def _offer_groupings(self) -> None:
        """List the data's groupings, and write the data's word for genes into texts.

        The list is hidden if it has one grouping only.  The texts are the hint and the
        tip of the field for genes, and the label and the tip of the box that scales
        them.  Without data the clusters are the only grouping, and the word is "gene".
        """
        dataset, choices = self._session.dataset, [CLUSTERS]
        example = "CD3D, MS4A1"
        if dataset is not None:
            choices = list_row_choices(dataset, composition_columns(dataset))
            if not dataset.has_expression:
                example = ", ".join(dataset.profile_names[:2])
        self.groups_choice.set_choices((choice.text, choice) for choice in choices)
        self.groups_choice.setVisible(len(choices) > 1)
        offer = replace_gene_word("Leading markers, or genes: ", dataset)
        self.genes.setPlaceholderText(offer + example)
        self.genes.setToolTip(replace_gene_word(GENES_TIP, dataset))
        self.scaled.setText(replace_gene_word("Scale genes", dataset))
        self.scaled.setToolTip(replace_gene_word(SCALED_TIP, dataset))

    def _on_comparison_failed(self, message: str) -> None:
        """Clear result and plot, and show the message of the error."""
        self.result, self._request = None, ()  # a later compare_groups asks again
        self._update_plot()
        self.state.show_text(message, "warning")

    def _on_expression_compared(self, result: ClusterExpression) -> None:
        """Store the result and show its plot."""
        self.result = result
        self._update_plot()

    def _update_plot(self, *event: object) -> None:
        """Draw the result with the groups' present names, unless a comparison runs."""
        if not self._expression_jobs.is_busy:
            note = "" if self.result is None else self.result.note
            self.state.show_text(note, "warning")
            self.canvas.show_plot(self._make_plot(), is_scrolled=True)

    def _find_group_and_gene(self, x: float, y: float) -> tuple[int | None, int | None]:
        """Return the indices of group and gene at a position of the plot.

        Either is None outside of the plot's cells, or where another result is due.
        """
        is_due = self._expression_jobs.is_busy or self.canvas.needs_paint
        if self.result is None or is_due:
            return None, None
        group, gene = round(x), round(y)
        return (
            group if 0 <= group < len(self.result.sizes) else None,
            gene if 0 <= gene < len(self.result.genes) else None,
        )

    def _make_tooltip(self, x: float, y: float) -> str:
        """Return a text on the group, the gene or both at a position; "" for none."""
        group, gene = self._find_group_and_gene(x, y)
        result = self.result
        groups = self._groups
        if result is None or groups is None or (group is None and gene is None):
            return ""
        if group is None:
            return f"{result.genes[gene]}: click to colour the map by it."
        name = groups.point_groups.categories[group]
        size = count_text(result.sizes[group], "point")
        if gene is None:
            return f"{name}: {size}. Click to choose it, {CTRL}-click to add it."
        summary, cell = result.summary, (group, gene)
        mean, share = summary.means[cell], summary.shares[cell]
        title = f"{result.genes[gene]} in {name}"
        return f"{title}\nmean {mean:.3g}, above 0 in {share_text(share)} of {size}"

    def _on_plot_clicked(self, x: float, y: float, is_added: bool) -> None:
        """Select the clicked group, or colour by a gene clicked beside all groups.

        ``is_added``: whether to add the group to the selection.
        """
        (group, gene), result = self._find_group_and_gene(x, y), self.result
        if group is not None and self._groups is not None:
            self._groups.select_group(self._session, group, is_added)
        elif result is not None and gene is not None:
            self._color(result.genes[gene])
