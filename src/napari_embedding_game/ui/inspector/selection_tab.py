"""The tab of the selection: name, composition, pictures, texts and markers."""

from __future__ import annotations

import textwrap

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from qtpy.QtCore import Signal
from qtpy.QtWidgets import QLineEdit, QWidget
from superqt.utils import qdebounced

from napari_embedding_game.data.clustering import Clustering
from napari_embedding_game.data.columns import (
    count_levels,
    count_text,
    list_text,
    share_text,
)
from napari_embedding_game.data.dataset import Dataset
from napari_embedding_game.session.cluster_report import (
    ClusterReport,
    describe_points,
    to_levels,
)
from napari_embedding_game.session.tracks import find_tracks
from napari_embedding_game.ui.connections import Connections, Listener
from napari_embedding_game.ui.images.linked_layers import ObjectLayers
from napari_embedding_game.ui.images.picture_grid import PictureGrid
from napari_embedding_game.ui.images.row_pictures import (
    list_appearance_events,
    list_shown_channels,
    make_row_pictures,
)
from napari_embedding_game.ui.inspector.cluster_edits import make_menu_button
from napari_embedding_game.ui.inspector.conditions_pane import ConditionsPane
from napari_embedding_game.ui.inspector.markers_pane import MarkersPane
from napari_embedding_game.ui.inspector.two_clusters import TwoClusters
from napari_embedding_game.ui.style.coloring import (
    choice_name_in_file,
    composition_columns,
)
from napari_embedding_game.ui.style.form_widgets import (
    CLICK_TIP,
    CTRL,
    ChoiceBox,
    TextLabel,
)
from napari_embedding_game.ui.style.layouts import (
    escape_ampersands,
    escape_tooltip,
    frameless_tabs,
    vertical_box,
    widget_with_layout,
)
from napari_embedding_game.ui.style.table import Bar, Table, TableColumn
from napari_embedding_game.ui.tasks.worker import PaneJobRunner
from napari_embedding_game.ui.workspace import Workspace

HINT_NO_CLUSTER = (
    "Click a group on the map, or in the list, to see what is in it. "
    f"{CTRL}-click adds another, Escape clears."
)
HINT_LOOKING = "Looking inside …"
NO_DIFFERENCE = "No column differs: select some of the points, not all."
RENAME_TIP = "The name: type another and press Enter (F2)."
COLUMN_TIP = "Column to count by."
SHARES_TIP = f"Share of the selection; the mark is that of all. {CLICK_TIP}"
DIFFERENCES_TIP = (
    "Difference from the rest in standard deviations: blue is higher, orange lower."
)
NUMBERS_TIP = (
    "Misplaced points lie far from similar ones; outliers differ from all others: "
    "doubt both."
)
DELAY_MS = 300
"""Milliseconds without a change of an image layer before pictures are cut again."""
MAX_PICTURES, MAX_TEXTS = 300, 200
"""Points whose pictures or texts are shown at most, sampled at random."""
TEXT_LENGTH = 300
"""Characters of a text that are shown at most."""
MAX_BARS, MIN_BARS = 7, 2
"""Visible bars of the composition, at most and at least."""
_Rows = NDArray[np.intp]


class SelectionTab(Listener):
    """Describes the selected clusters or points of a session.

    Parameters
    ----------
    workspace : Workspace
    actions : QWidget
        Widgets with actions on the selection, which are placed below the title.
    """

    renamed = Signal(int, str, object)
    """Carries the id of a cluster, the typed name, and the clustering of that time."""

    def __init__(self, workspace: Workspace, *actions: QWidget) -> None:
        super().__init__(session := workspace.session)
        self.workspace = workspace
        self._picture_sources: tuple[object, ...] = ()
        """The dataset, objects and layers from which the pictures were cut."""
        self._color_by = ""
        self._title_context: tuple[Dataset | None, int | None, Clustering | None]
        self._title_context = None, None, None
        """The dataset, the cluster that the title names, or None, and its
        clustering."""
        self._is_picking = False
        """Whether rows are being selected by their pictures or texts."""
        self._context: tuple[int, ...] = ()
        """The clusters that were selected before a point was picked in them."""
        self.report: ClusterReport | None = None
        shows = self._on_report_made, self._show_busy_text, self._show_hint
        self._report_jobs = PaneJobRunner(self, HINT_LOOKING, *shows, finishes=True)
        self.hint, self.numbers = TextLabel(), TextLabel()
        self.title, self.note = QLineEdit(), TextLabel(role="plain")
        self.two = TwoClusters(session)
        self.column = ChoiceBox(COLUMN_TIP, self._update_report)
        self.channels, self._channel_menu = make_menu_button("Channels", "")
        bars = (TableColumn(""), TableColumn("", has_bar=True))
        shares = TableColumn("", "", share_text)
        options = {"has_headings": False, "max_rows": MAX_BARS, "min_rows": MIN_BARS}
        self.composition = Table(*bars, shares, **options)
        sizes = TableColumn("", "", "{:+.2f} sd".format)
        self.differences = Table(*bars, sizes, has_headings=False)
        self.texts = Table(
            TableColumn("Text"), selects_many=True, has_headings=False, wraps_text=True
        )
        self.markers = MarkersPane(workspace)
        self.conditions = ConditionsPane(workspace)
        self.thumbnails = PictureGrid(self._on_rows_picked)
        self._image_connections = Connections(self)
        self._cut_soon = qdebounced(self._on_images_changed, DELAY_MS, parent=self)
        self._lay_out_views(actions)
        self._connect_views()

    def edit_name(self) -> None:
        """Start editing the name in the title; a name typed before is set first."""
        self.title.clearFocus()
        self._show_title_and_notes(
            self._find_described_clusters()
        )  # also before the report has come
        self.title.setFocus()
        self.title.selectAll()

    def discard_typed_name(self) -> None:
        """Show the present name instead of the typed name, and leave the title."""
        self.title.setModified(False)
        self.setFocus()  # further keys are for the dock
        self._show_title_and_notes(self._find_described_clusters())

    def update_view(self) -> None:
        """Describe the present selection and forget points that were picked before."""
        self._context = self._session.selection.clusters
        self.refresh()

    def refresh(self) -> None:
        """Update columns, pictures, tabs and report for the present data and layers.

        Pictures and tabs are updated only if dataset, objects or linked layers have
        changed.
        """
        dataset, linked = self._session.dataset, self.workspace.linked_layers.current
        self._offer_columns()
        sources = dataset, getattr(dataset, "source_objects", None), linked
        if sources != self._picture_sources:
            is_other_data = sources[:1] != self._picture_sources[:1]
            self._picture_sources = sources
            images = getattr(dataset, "images", None)
            if any(x is not None for x in (linked, images, self.thumbnails.pictures)):
                self._recut_pictures()
            self._show_available_tabs(dataset, is_other_data)
        self._update_report()

    # Making

    def _lay_out_views(self, actions: tuple[QWidget, ...]) -> None:
        """Name the views and place them, with the actions below the title."""
        self.title.setProperty("role", "title")
        self.title.setFrame(False)
        self.title.setAccessibleName("Name")
        self.composition.setToolTip(SHARES_TIP)
        self.composition.setAccessibleName("Composition")
        self.differences.setToolTip(DIFFERENCES_TIP)
        self.numbers.setToolTip(NUMBERS_TIP)
        self.texts.setToolTip("Members of the selection, drawn at random: click one.")
        self.tabs = frameless_tabs(self.channels)
        for page, name in (
            (self.thumbnails, "Pictures"),
            (self.texts, "Texts"),
            (self.markers, "Markers"),
            (self.conditions, "Conditions"),
            (self.differences, "Differences"),
        ):
            self.tabs.addTab(page, name)
            page.setAccessibleName(name)
        head = self.title, self.numbers, self.note, self.two, *actions
        inside = vertical_box(*head, self.column, self.composition, self.tabs)
        self._report = widget_with_layout(inside)
        inside.setStretchFactor(self.tabs, 1)
        outside = vertical_box(self.hint, self._report, margins=(0, 6, 0, 4))
        outside.setStretchFactor(self._report, 1)
        outside.addStretch(0)
        self.setLayout(outside)
        self._show_hint(HINT_NO_CLUSTER)

    def _connect_views(self) -> None:
        """Connect the views with the session and with one another."""
        session = self._session
        self.connect_while_open(self._on_selection_changed, session.selection.changed)
        self.call_soon_after_map_changes(self.refresh)
        changes = session.dataset_changed, session.columns_changed
        changes += (session.look.events.color_by,)
        self.connect_while_open(
            self.refresh, *changes, self.workspace.linked_layers.changed
        )
        self.title.editingFinished.connect(self._on_name_edited)
        self.composition.rows_picked.connect(self._on_levels_picked)
        self.texts.rows_picked.connect(
            lambda rows, _: self._on_rows_picked(np.array(rows, int))
        )
        self.tabs.currentChanged.connect(self._on_tab_changed)

    # Events

    def _on_name_edited(self) -> None:
        """Emit ``renamed`` for a typed name, unless other data have come meanwhile.

        The title then shows the present name, which is the old one if the new one was
        refused.
        """
        dataset, cluster, listed = self._title_context
        is_typed = cluster is not None and self.title.isModified()
        if is_typed:
            self.title.setModified(False)
            if self.title.hasFocus():  # after Enter, so that Ctrl+Z is for the dock
                self.setFocus()
        if is_typed and self._session.shows_dataset(dataset):
            self.renamed.emit(cluster, self.title.text(), listed)
        self._show_title_and_notes(
            self._find_described_clusters()
        )  # the old name where the new one was refused

    def _offer_columns(self) -> None:
        """Offer columns to count by; choose the colour variable when it has changed.

        Without columns the choice and the composition are hidden.
        """
        dataset, colors = self._session.dataset, self._session.look.color_by
        columns = composition_columns(dataset) if dataset else []
        has_changed, self._color_by = colors != self._color_by, colors
        proposed = (
            choice_name_in_file(colors, dataset) if dataset and has_changed else None
        )
        self.column.set_choices(((name, name) for name in columns), proposed)
        for widget in (self.column, self.composition):
            widget.setVisible(bool(columns))

    def clear_data(self) -> None:
        """Forget the report, the pictures, the texts and the title of the former data.

        A report that is being made is stopped.
        """
        self._report_jobs.stop()
        self._watch_image_looks(None)
        self.report, self._color_by = None, ""
        self.column.set_choices(())
        self._picture_sources, self._title_context = (), (None, None, None)
        self.thumbnails.row_name = str
        self.thumbnails.set_pictures(None)
        for table in (self.texts, self.differences):
            table.show_frame(pd.DataFrame())

    def _watch_image_looks(self, linked: ObjectLayers | None) -> None:
        """Cut pictures again after changes of the looks of the linked images.

        That is done once no look has changed for DELAY_MS milliseconds.  Layers watched
        before are no longer watched; None watches no layers.
        """
        self._cut_soon.cancel()
        self._image_connections.close()
        if linked is not None:
            looks = list_appearance_events(linked)
            self._image_connections.connect(lambda _: self._cut_soon.throttle(), *looks)

    def _show_available_tabs(
        self, dataset: Dataset | None, is_other_data: bool
    ) -> None:
        """Show the tabs for which the rows have data; for other data open one of them.

        That is "Differences" for measured objects, else the first.  Without a dataset
        nothing is done.
        """
        if dataset is None:
            return
        names = dataset.obs.index
        has_conditions = any(
            count_levels(dataset.obs[name], 1) > 1 for name in dataset.level_columns
        )
        self.thumbnails.row_name = lambda row: str(names[row])
        pages = {
            self.thumbnails: self.thumbnails.pictures is not None,
            self.texts: dataset.texts is not None,
            self.markers: dataset.images is None,  # not of pixels
            self.conditions: dataset.images is None and has_conditions,
            self.differences: dataset.has_measures,
        }
        for page, is_there in pages.items():
            self.tabs.setTabVisible(self.tabs.indexOf(page), is_there)
        if is_other_data:
            is_measured = dataset.column_noun == "measure"
            first = next(page for page, is_there in pages.items() if is_there)
            self.tabs.setCurrentWidget(self.differences if is_measured else first)
        self._on_tab_changed()

    def _recut_pictures(self) -> None:
        """Cut the pictures of the shown rows again, in the checked channels.

        The menu lists the channels of the linked images; new channels are checked.
        """
        dataset, linked = self._session.dataset, self.workspace.linked_layers.current
        off = {a.data() for a in self._channel_menu.actions() if not a.isChecked()}
        names = []
        if dataset is not None and dataset.images is None and linked is not None:
            names = [channel.name for channel in list_shown_channels(linked)]
        if names != [action.data() for action in self._channel_menu.actions()]:
            self._channel_menu.clear()
            for name in names:
                action = self._channel_menu.addAction(escape_ampersands(name))
                action.setData(name)
                action.setCheckable(True)
                action.setChecked(name not in off)
                action.toggled.connect(self._on_images_changed)
        rows = self.thumbnails.rows
        self._watch_image_looks(linked)
        self.thumbnails.set_pictures(make_row_pictures(dataset, linked, off))
        self.thumbnails.set_rows(rows)

    def _on_images_changed(self, *event: object) -> None:
        """Cut the pictures again, now or once this is open, for changed images."""
        self._picture_sources = self._picture_sources[
            :1
        ]  # keep the dataset, so that the open tab stays
        self._make_open_only_slot(self.refresh)()

    def _on_selection_changed(self) -> None:
        """Describe the new selection; only mark points whose picture or text is shown.

        These are points picked by their picture or text, or one point that is shown.
        """
        selection = self._session.selection
        if self._is_picking or self._is_selected_row_shown():
            self._mark_rows(selection.rows)
            self.two.update_to_selection()
            return  # the shown pictures and texts stay
        self._context = selection.clusters
        self._update_report()

    def _is_selected_row_shown(self) -> bool:
        """Return whether one point is selected whose picture or text is shown."""
        selection, rows = self._session.selection, self._session.selection.rows
        if not selection.is_of_points or self.report is None or len(rows) != 1:
            return False
        indices = self.thumbnails.find_indices_of_rows(
            rows
        ) or self.texts.find_rows_with_keys(rows)
        return bool(indices)

    def _mark_rows(self, rows: _Rows) -> None:
        """Mark the pictures and texts of rows."""
        self.thumbnails.select_rows(rows)
        self.texts.select_keys(rows)

    def _on_rows_picked(self, rows: _Rows) -> None:
        """Select the points of picked pictures or texts, and keep the report.

        ``rows``: (m,) indices of points.
        """
        self._is_picking = True
        try:
            self._session.selection.select_points(rows)
        finally:
            self._is_picking = False

    def _on_levels_picked(self, levels: list[tuple[str, ...]], is_added: bool) -> None:
        """Select the points of a picked entry of the composition, or toggle them.

        ``levels``: the levels of each picked entry; only the first entry counts.
        ``is_added``: whether to toggle the points in the selection.
        """
        dataset, report = self._session.dataset, self.report
        if dataset is not None and report is not None and levels:
            rows = to_levels(dataset.obs[report.column]).isin(levels[0]).to_numpy()
            self._session.selection.toggle_points(rows, is_added=is_added)

    def _on_tab_changed(self, index: int = 0) -> None:
        """Show the menu of channels beside pictures that have several channels.

        ``index`` is not used.
        """
        is_seen = self.tabs.currentWidget() is self.thumbnails
        n_channels = len(self._channel_menu.actions())
        self.channels.setVisible(is_seen and n_channels > 1)

    # Report

    def _update_report(self, *event: object) -> None:
        """Update the title and request a report of the selection.

        Without a map or a selection the report is removed and a hint is shown.
        """
        session, column = self._session, self.column.value or ""
        self.two.update_to_selection()
        if session.snapshot is None or session.selection.is_empty:
            self.report = None
            self._show_hint(HINT_NO_CLUSTER)
            return
        clusters = self._find_described_clusters()
        if self.report is not None:
            self._show_title_and_notes(clusters)
        self._request_report(clusters, column)

    def _find_described_clusters(self) -> tuple[int, ...]:
        """Return the ids of the described clusters; () where points are described.

        After a picture of a cluster was picked the cluster is still described.
        """
        selection = self._session.selection
        if not selection.is_of_points:
            return selection.clusters
        return tuple(c.id for c in self._session.clusters.find_clusters(self._context))

    def _request_report(self, clusters: tuple[int, ...], column: str) -> None:
        """Start a report of clusters, or for () of the selection, in the background.

        ``column``: the column whose levels are counted, "" for none.
        """
        session = self._session
        dataset, snapshot = session.dataset, session.snapshot
        assert snapshot is not None
        assert dataset is not None
        labels, chosen = session.clusters.labels, session.selection.points

        def describe() -> tuple[ClusterReport, str, tuple[int, ...]]:
            """Return the report, its text of size and doubts, and the clusters."""
            report = describe_points(
                dataset,
                np.isin(labels, clusters) if clusters else chosen,
                snapshot,
                column=column,
                n_sampled=MAX_PICTURES,
            )
            return report, _describe_size_and_doubts(report, dataset), clusters

        self._report_jobs.submit(describe)

    def _on_report_made(
        self, result: tuple[ClusterReport, str, tuple[int, ...]]
    ) -> None:
        """Show a report, unless another selection is described by now.

        ``result``: (report, text of size and doubts, ids of the described clusters).
        Pictures are shown of the sampled rows that have an object, texts of at most
        MAX_TEXTS.
        """
        report, numbers, clusters = result
        selection, dataset = self._session.selection, self._session.dataset
        if (
            clusters != self._find_described_clusters()
            or selection.is_empty
            or dataset is None
        ):
            return
        self.report = report
        self._show_title_and_notes(clusters)
        self.hint.show_text()
        self.numbers.show_text(numbers)
        self.composition.show_frame(_make_composition_frame(report))
        self.composition.clearSelection()
        rows, objects = report.sampled, dataset.objects
        if self.thumbnails.pictures is not None:
            present = rows if objects is None else rows[objects.present[rows]]
            self.thumbnails.set_rows(present)
        if dataset.texts is not None:
            rows = rows[:MAX_TEXTS]
            style = {"width": TEXT_LENGTH, "placeholder": " …"}
            texts = [textwrap.shorten(str(dataset.texts[row]), **style) for row in rows]
            texts = [text or "(empty)" for text in texts]
            self.texts.show_frame(pd.DataFrame({"text": texts}, index=rows))
        self.differences.show_frame(_make_differences_frame(report.contrasts))
        self._report.show()
        if selection.is_of_points and clusters:
            self._mark_rows(selection.rows)

    def _show_busy_text(self, words: str) -> None:
        """Show that a report is being made, unless a former report is shown."""
        if self.report is None:
            self._show_hint(words)

    def _show_hint(self, hint: str) -> None:
        """Show a hint instead of the report."""
        self.hint.show_text(hint)
        self._report.hide()

    def _show_title_and_notes(self, clusters: tuple[int, ...]) -> None:
        """Show the notes of clusters, and their title unless it is being edited.

        Only the title of a single cluster, of which no point is picked, can be edited.
        """
        notes = [
            cluster.note for cluster in self._session.clusters.find_clusters(clusters)
        ]
        self.note.show_text("\n".join(filter(None, notes)))
        is_one = len(clusters) == 1 and not self._session.selection.is_of_points
        if not self.title.hasFocus():
            title = self._make_title(clusters)
            self.title.setText(title)
            self.title.setCursorPosition(0)  # show the beginning of a long name
            self.title.setReadOnly(not is_one)
            tip = f"{title}\n{RENAME_TIP}" if is_one else title
            self.title.setToolTip(escape_tooltip(tip))
            cluster = clusters[0] if is_one else None
            clustering = self._session.clusters.clustering
            self._title_context = self._session.dataset, cluster, clustering

    def _make_title(self, clusters: tuple[int, ...]) -> str:
        """Return a title of clusters; for () of the selected row, track or points."""
        present = self._session.clusters.find_clusters(clusters)
        if len(clusters) == 1 and present:
            return present[0].title
        if clusters:
            return f"{len(clusters)} clusters: {list_text([c.name for c in present])}"
        rows, dataset = self._session.selection.rows, self._session.dataset
        if len(rows) == 1 and dataset is not None:
            return str(dataset.obs.index[rows[0]])
        tracks = find_tracks(dataset)
        track = "" if tracks is None else tracks.find_whole_track(rows)
        return f"Track {track}" if track else "Selected points"


def _make_composition_frame(report: ClusterReport) -> pd.DataFrame:
    """Return a table (level, bar, share), indexed by the tuple of levels of each entry.

    The bar goes to the share of the selection, with a mark at the share of all.
    """
    frame = report.composition
    if frame.empty:
        return frame
    bars = [Bar(0.0, *ends) for ends in frame[["share", "of_all"]].to_numpy()]
    keys = pd.Index(frame["levels"].tolist(), tupleize_cols=False)
    return frame.assign(bar=bars).set_index(keys)[["level", "bar", "share"]]


def _make_differences_frame(sizes: pd.Series) -> pd.DataFrame:
    """Return a table (column, bar, size) of effect sizes; the longest bar is full.

    Bars begin in the middle; negative ones are orange.  Without sizes the only row says
    that no column differs.
    """
    if sizes.empty:
        sizes = pd.Series(np.nan, [NO_DIFFERENCE])
    ends = (0.5 + sizes / sizes.abs().max() / 2).fillna(0.5)
    bars = [Bar(0.5, end, is_orange=end < 0.5) for end in ends]
    return pd.DataFrame({"column": sizes.index, "bar": bars, "size": sizes.array})


def _describe_size_and_doubts(report: ClusterReport, dataset: Dataset) -> str:
    """Return the size and share of a selection, and its misplaced points and outliers.

    Doubtful points are left out where there are none.
    """
    count = count_text(report.size, dataset.row_noun)
    words = [count, f"{share_text(report.share)} of all"]
    if report.stretched_share > 0:
        words.append(f"{share_text(report.stretched_share)} misplaced")
    if report.unlike_count:
        words.append(count_text(report.unlike_count, "outlier"))
    return " · ".join(words)
