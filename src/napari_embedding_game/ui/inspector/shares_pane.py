"""A pane of the shares of clusters in samples, compared between two conditions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
from qtpy.QtWidgets import QLabel, QToolButton

from napari_embedding_game.core.inspect.shares import MAX_FDR, ShareComparison
from napari_embedding_game.data.columns import share_text
from napari_embedding_game.data.export.atomic import write_csv
from napari_embedding_game.data.export.plots import SharesPlot
from napari_embedding_game.data.palette import (
    Colors,
    cluster_colors,
    level_colors,
    to_hex_colors,
)
from napari_embedding_game.session.cluster_expression import (
    CLUSTERS,
    assign_figure_rows,
    list_row_choices,
)
from napari_embedding_game.session.session import Session
from napari_embedding_game.session.shares import (
    Conditions,
    MapChanges,
    list_conditions_by_samples,
    list_levels,
    make_map_change_job,
    make_share_job,
    with_change_column,
)
from napari_embedding_game.ui.inspector.expression_pane import WAITING, PlotGroups
from napari_embedding_game.ui.inspector.markers_pane import p_text
from napari_embedding_game.ui.style.coloring import (
    color_by_column,
    composition_columns,
)
from napari_embedding_game.ui.style.form_widgets import CTRL, ChoiceBox
from napari_embedding_game.ui.style.layouts import (
    equal_width_box,
    escape_tooltip,
    horizontal_box,
    push_button,
)
from napari_embedding_game.ui.style.plot_canvas import PlotPane
from napari_embedding_game.ui.style.table import Table, TableColumn
from napari_embedding_game.ui.tasks.errors import call_or_show_error
from napari_embedding_game.ui.tasks.save_dialog import ask_and_save
from napari_embedding_game.ui.tasks.worker import PaneJobRunner

NO_SAMPLES = (
    "No columns name samples, such as donors, and their conditions. If there are such "
    "columns, choose the role samples for the one of the samples: Columns, below the "
    "name of the data."
)
GROUPS_TIP = "Whose shares are compared: clusters, or groups of a column."
SAMPLES_TIP = "The column that names the samples, such as donors. Each counts once."
CONDITION_TIP = "The column that names the condition of each sample."
TEST_TIP = (
    "Shares of samples are compared, as logits, by a moderated t-test (as propeller "
    "does). The question is whether they differ more between the conditions than "
    "samples of a condition do. If one share rises, others fall."
)
COLOR_TEXT = "Colour the map by change"
COLOR_TIP = (
    "Compares the share of the cells around each landmark in the same way, and colours "
    f"the map where it has changed, at a false discovery rate below {MAX_FDR:g}."
)
CHANGED = (
    "On the map {n_changed:,} of {n_landmarks:,} landmarks have changed "
    f"(FDR < {MAX_FDR:g}). "
    "Blue: more in {first}; orange: less."
)
UNCHANGED = (
    f"On the map no landmark has changed (FDR < {MAX_FDR:g}), so the colours stay."
)


def _format_shares(shares: tuple[float, float]) -> str:
    """Return the shares in both conditions as text; a dash for NaN."""
    return " / ".join(share_text(x) if np.isfinite(x) else "–" for x in shares)


COLUMNS = (
    TableColumn("Group", f"Click to select it; {CTRL}+C copies all."),
    TableColumn("Shares", "", _format_shares),
    TableColumn(
        "log2 FC", "Log2 of how many times larger the first share is.", "{:+.1f}".format
    ),
    TableColumn(
        "p adj.", "Adjusted for the number of groups (Benjamini-Hochberg).", p_text
    ),
)


@dataclass(frozen=True, eq=False)
class ShareGroups(PlotGroups):
    """The groups of points whose shares are compared, and what they are compared by."""

    rgba: Colors
    """(K, 4) colours of the groups."""
    conditions: Conditions


class SharesPane(PlotPane):
    """Compares the shares of groups in samples in the background while this is open."""

    def __init__(self, session: Session) -> None:
        super().__init__(session, self._make_tooltip)
        self._share_jobs = PaneJobRunner(
            self,
            "Comparing …",
            self._on_shares_compared,
            self.state.show_text,
            self._on_comparison_failed,
        )
        self._map_jobs = PaneJobRunner(
            self, "Comparing the map …", self._on_map_compared, self.state.show_text
        )
        self._obs: object = None
        """The metadata whose columns are offered; each change makes another frame."""
        self._offered: dict[str, list[str]] = {}
        """Columns of conditions, keyed by the columns that can name samples."""
        self._request: tuple[object, ...] = ()
        self._groups: ShareGroups | None = None
        """The groups of the latest request."""
        self._shown: ShareGroups | None = None
        """The groups of the result."""
        self._chosen: int | None = None
        """The group that a person chose, by its index; None for the first listed."""
        self._map_note: tuple[Conditions | None, str] = None, ""
        """What was found on the map, and between which conditions."""
        self.result: ShareComparison | None = None
        boxes = (
            ("Groups", GROUPS_TIP),
            ("Samples", SAMPLES_TIP),
            ("Condition", CONDITION_TIP),
            ("First condition", ""),
            ("Second condition", ""),
        )
        self.grouping, self.samples, self.condition, self.first, self.second = (
            ChoiceBox(tip, self.compare_shares, n_letters=5) for _, tip in boxes
        )
        widgets = self.grouping, self.samples, self.condition, self.first, self.second
        for widget, (name, _) in zip(widgets, boxes, strict=True):
            widget.setAccessibleName(name)
        self.color_button = push_button(COLOR_TEXT, COLOR_TIP, self._on_color_clicked)
        self.table_button = QToolButton()
        self.table_button.setText("Save table…")
        self.table_button.setProperty("role", "edit")
        self.table_button.setToolTip("All figures and counts as .csv.")
        self.table_button.clicked.connect(self._ask_and_save_table)
        """Stands beside the button that saves the plot, while this is open."""
        self.table_button.hide()
        self.table = Table(*COLUMNS, max_rows=5, min_rows=3)
        self.versus = QLabel("vs")
        self.head.addLayout(equal_width_box(self.grouping, self.samples))
        levels = self.first, self.versus, self.second
        self.head.addWidget(self.condition)
        self.head.addLayout(
            horizontal_box(*levels, stretched=(self.first, self.second))
        )
        self._choices = (*widgets, self.versus)
        self.layout().addWidget(self.table)
        self.layout().addWidget(self.color_button)
        self.canvas.clicked.connect(self._on_plot_clicked)
        self.table.rows_picked.connect(self._on_rows_picked)
        self.connect_while_open(
            self.compare_shares,
            session.clusters.changed,
            session.state_changed,
            session.dataset_changed,
            session.columns_changed,
        )
        self._show_result()

    def clear_data(self) -> None:
        """Forget the result for the former data, also while this is closed."""
        self._share_jobs.stop()
        self._map_jobs.stop()
        self._request, self._map_note = (), (None, "")
        self._chosen = self.result = self._groups = self._shown = None
        self._show_result()

    def update_view(self) -> None:
        """Offer the present columns, and compare the present groups."""
        self.compare_shares()

    def compare_shares(self, *event: object) -> None:
        """Offer the present columns, and compare the chosen groups if these changed.

        While points move only a hint is shown; without a map nothing is done.
        """
        session, dataset = self._session, self._session.dataset
        self._offer_choices()
        if dataset is None:
            return
        if not self._offered:
            self.state.show_text(NO_SAMPLES)
            return
        if session.snapshot is None:
            return
        if session.is_moving:
            self.state.show_text(WAITING)
            return
        choice, clustering = self.grouping.value, session.clusters.clustering
        groups = assign_figure_rows(choice, dataset, clustering)
        if choice == CLUSTERS:
            rgba = cluster_colors(clustering.clusters)
        else:
            stored = dataset.level_colors.get(choice.column, {})
            rgba = level_colors(groups.categories, stored)
        levels = self.first.value, self.second.value
        conditions = Conditions(self.samples.value, self.condition.value, levels)
        self._groups = ShareGroups(
            groups, choice, tuple(clustering.by_id), rgba, conditions
        )
        request = dataset, choice, conditions, groups.codes.tobytes()
        if request != self._request:
            if request[1:2] != self._request[1:2]:
                self._chosen = None
            self._request = request
            self._share_jobs.submit(make_share_job(dataset, groups, conditions))
        elif not self._share_jobs.is_busy and self.result is not None:
            self._shown = self._groups  # with the present names and colours
            self._show_result()

    def showEvent(self, event: object) -> None:
        """Show the button of the table with this."""
        super().showEvent(event)
        self._update_table_button()

    def hideEvent(self, event: object) -> None:
        """Hide the button of the table with this."""
        super().hideEvent(event)
        self.table_button.hide()

    # Inside

    def _update_table_button(self) -> None:
        """Show the button of the table where this is open and has a result."""
        self.table_button.setVisible(self.isVisible() and self.result is not None)

    def _offer_choices(self) -> None:
        """List what can be compared; hide the choices where nothing can."""
        dataset = self._session.dataset
        obs = None if dataset is None else dataset.obs
        if obs is not self._obs:
            self._obs, self._request = obs, ()
            self._offered = (
                {} if dataset is None else list_conditions_by_samples(dataset)
            )
        is_offered = bool(self._offered)
        for widget in self._choices:
            widget.setVisible(is_offered)
        if dataset is None or not is_offered:
            return
        self.samples.set_choices((f"by {one}", one) for one in self._offered)
        columns = self._offered[self.samples.value]
        self.condition.set_choices((f"Condition: {one}", one) for one in columns)
        self.condition.setVisible(len(columns) > 1)
        column = self.condition.value
        for box in (self.first, self.second):
            box.setToolTip(
                escape_tooltip(f"The two conditions, of the column {column}.")
            )
        levels = list_levels(dataset, column)
        self.first.set_choices((one, one) for one in levels)
        others = [one for one in levels if one != self.first.value]
        former = (self.second.value,) if self.second.value in others else others[-1:]
        self.second.set_choices(((one, one) for one in others), *former)
        used = self.samples.value, self.condition.value
        choices = list_row_choices(dataset, composition_columns(dataset))
        self.grouping.set_choices(
            (choice.text, choice)
            for choice in choices
            if not choice.splits_clusters and choice.column not in used
        )

    def _on_shares_compared(self, result: ShareComparison) -> None:
        """Show the result of the latest request."""
        self.result, self._shown = result, self._groups
        self._show_result()

    def _on_comparison_failed(self, message: str) -> None:
        """Clear the result, and show the message of the error."""
        self.result, self._shown, self._request = None, None, ()
        self._show_result()
        self.state.show_text(message, "warning")

    def _show_result(self) -> None:
        """Show the result as plot, table and sentence; without one clear them."""
        result, shown = self.result, self._shown
        self.canvas.show_plot(self._make_plot(), is_scrolled=True)
        self.color_button.setVisible(result is not None)
        self._update_table_button()
        self.color_button.setEnabled(result is not None and not result.refusal)
        self.table.setVisible(result is not None)
        if result is None or shown is None:
            self.state.show_text("")
            self.table.show_frame(pd.DataFrame())
            return
        frame = self._list_groups()
        self.table.set_heading(0, shown.choice.column or "Cluster")
        first, second = shown.conditions.levels
        self.table.set_heading(1, f"{first} /\n{second}")
        self.table.horizontalHeaderItem(1).setToolTip(
            escape_tooltip(f"Mean share in the samples of {first}, and of {second}.")
        )
        tips = {
            group: f"{frame.loc[group, 'group']}: p = {p_text(p)}, not adjusted."
            for group, p in enumerate(result.pvals)
            if np.isfinite(p)
        }
        shades = dict(enumerate(to_hex_colors(shown.rgba)))
        self.table.show_frame(frame, shades, tips)
        noted, note = self._map_note
        note = note if noted == shown.conditions else ""
        text = result.describe(shown.conditions.samples)
        self.state.show_text(f"{text} {note}".strip())
        self.state.setToolTip(TEST_TIP)

    def _list_groups(self) -> pd.DataFrame:
        """Return the rows of the table by rising p, indexed by the number of a group.

        Without p-values the largest group comes first.
        """
        result, shown = self.result, self._shown
        assert result is not None
        assert shown is not None
        order = -result.counts.sum(axis=0) if result.refusal else result.pvals
        figures = result.to_frame()
        pairs = zip(figures["share_first"], figures["share_second"], strict=True)
        frame = pd.DataFrame(
            {
                "group": [str(one) for one in shown.point_groups.categories],
                "shares": [*pairs],
                "change": figures["log2_fold_change"],
                "p": figures["pval_adj"],
            }
        )
        return frame.iloc[np.argsort(order, kind="stable")]

    def _make_plot(self) -> SharesPlot | None:
        """Return the plot of the result; None without one.

        The dots are of the chosen group, else of the first one in the table.
        """
        result, shown = self.result, self._shown
        if result is None or shown is None or not len(result.counts):
            return None
        n_groups, chosen = len(shown.rgba), self._chosen
        if chosen is None or chosen >= n_groups:
            chosen = int(self._list_groups().index[0])
        names = [str(one) for one in shown.point_groups.categories]
        title = names[chosen]
        if shown.choice == CLUSTERS:
            cluster = self._session.clusters.clustering.by_id.get(
                shown.clusters[chosen]
            )
            if cluster is not None and not cluster.is_named:
                title = f"cluster {title}"
        return SharesPlot(
            title=title,
            groups=tuple(names),
            rgba=shown.rgba,
            shares=result.shares,
            samples=tuple(map(str, result.sample_names)),
            is_first=result.design.is_inside,
            levels=result.levels,
            chosen=chosen,
            is_paired=result.design.is_paired,
        )

    def _make_tooltip(self, x: float, y: float) -> str:
        """Return group, sample and share of the part of a bar at a position."""
        plot, result = self.canvas.plot, self.result
        if not isinstance(plot, SharesPlot) or result is None:
            return ""
        group = plot.find_group(x, y)
        if group is None:
            return ""
        profile = int(np.abs(plot.row_positions - y).argmin())
        count, total = result.counts[profile, group], result.counts[profile].sum()
        share = share_text(count / total)
        return (
            f"{plot.groups[group]} in {plot.samples[profile]}: {share}, "
            f"{count:,} of {total:,}. Click to choose it."
        )

    def _on_plot_clicked(self, x: float, y: float, is_added: bool) -> None:
        """Choose the group whose part of a bar was clicked."""
        plot = self.canvas.plot
        group = plot.find_group(x, y) if isinstance(plot, SharesPlot) else None
        if group is not None:
            self._choose_group(group, is_added)

    def _on_rows_picked(self, groups: list[int], is_added: bool) -> None:
        """Choose the first group that was picked in the table."""
        if groups:
            self._choose_group(groups[0], is_added)

    def _choose_group(self, group: int, is_added: bool) -> None:
        """Show the dots of a group, and select its points or its cluster on the map."""
        if (shown := self._shown) is None:
            return
        self._chosen = group
        self.canvas.show_plot(self._make_plot(), is_scrolled=True)
        shown.select_group(self._session, group, is_added)

    # The map and the file

    def _on_color_clicked(self) -> None:
        """Compare the landmarks in the background, to colour the map by changes."""
        if self._shown is None:
            return
        job = call_or_show_error(
            partial(self.state.show_text, role="warning"),
            make_map_change_job,
            self._session,
            self._shown.conditions,
        )
        if job is not None:
            self._map_jobs.submit(job)

    def _on_map_compared(self, changes: MapChanges) -> None:
        """Colour the map by the changes; say where nothing has changed."""
        shown, session = self._shown, self._session
        if shown is None or session.dataset is None:
            return
        note = UNCHANGED
        if changes.n_changed:
            note = CHANGED.format(
                n_changed=changes.n_changed,
                n_landmarks=changes.n_landmarks,
                first=shown.conditions.levels[0],
            )
        self._map_note = shown.conditions, note
        if changes.n_changed:
            name = session.add_columns(
                with_change_column, shown.conditions, changes.values
            )
            color_by_column(session, name)
        self._show_result()

    def _ask_and_save_table(self) -> None:
        """Ask for a .csv file and write figures and counts of all groups."""
        result, shown = self.result, self._shown
        assert result is not None
        assert shown is not None
        table = make_share_table(result, shown.point_groups.categories)
        kinds, write = {".csv": "Table"}, partial(write_csv, table)
        message = ask_and_save(self, self._session, "shares", kinds, write)
        if message:
            self.state.show_text(message)


def make_share_table(result: ShareComparison, names: pd.Index) -> pd.DataFrame:
    """Return the figures of all groups with the counts of samples, as a file has them.

    ``names`` (K,) of the groups.  A column of counts is named after its sample and its
    condition.
    """
    frame, (first, second) = result.to_frame(), result.levels
    frame = frame.rename(
        columns={"share_first": f"share {first}", "share_second": f"share {second}"}
    )
    frame.insert(0, "group", names.astype(str))
    levels = np.where(result.design.is_inside, first, second)
    for sample, level, counts in zip(
        result.sample_names, levels, result.counts, strict=True
    ):
        frame[f"count {sample} ({level})"] = counts
    return frame
