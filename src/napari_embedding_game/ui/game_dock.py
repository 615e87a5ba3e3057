"""The dock of the map: next steps, controls of the map, selection and plots."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import napari
from napari.settings import get_plugin_settings
from qtpy.compat import isalive
from qtpy.QtCore import QSize, Qt, QTimer
from qtpy.QtGui import QDragEnterEvent, QDropEvent, QKeyEvent, QKeySequence, QShortcut
from qtpy.QtWidgets import QAbstractSpinBox, QApplication, QLineEdit

from napari_embedding_game.core.energy.methods import METHODS
from napari_embedding_game.data.palette import choose_palette
from napari_embedding_game.ui.canvas.hover import HoverTooltip
from napari_embedding_game.ui.canvas.marks import (
    add_caption_painter,
    add_hand_mark_painter,
)
from napari_embedding_game.ui.canvas.mouse import MapMouse
from napari_embedding_game.ui.canvas.names import MapNames
from napari_embedding_game.ui.canvas.overlay import MapOverlay
from napari_embedding_game.ui.controller import Controller
from napari_embedding_game.ui.controls.data import DataControls
from napari_embedding_game.ui.controls.display import DisplayControls
from napari_embedding_game.ui.controls.method import MethodControls
from napari_embedding_game.ui.controls.run import RunControls
from napari_embedding_game.ui.controls.selection import SelectionControls
from napari_embedding_game.ui.controls.timeline import Timeline
from napari_embedding_game.ui.controls.trust import TrustControls
from napari_embedding_game.ui.images.experiment_layers import ImageSlider
from napari_embedding_game.ui.images.object_colors import ObjectColors
from napari_embedding_game.ui.inspector.cluster_pane import ClusterPane
from napari_embedding_game.ui.inspector.plots_tab import PlotsTab
from napari_embedding_game.ui.inspector.selection_tab import SelectionTab
from napari_embedding_game.ui.larger_map import LargerMap
from napari_embedding_game.ui.map_widget import MapWidget
from napari_embedding_game.ui.style.coloring import CLUSTER
from napari_embedding_game.ui.style.form_widgets import (
    FoldingSection,
    prevent_accidental_changes,
    set_role,
    wrap_in_scroll_area,
)
from napari_embedding_game.ui.style.layouts import (
    frameless_tabs,
    horizontal_box,
    vertical_box,
    widget_with_layout,
)
from napari_embedding_game.ui.tour import PLUGIN, Stop, Tour
from napari_embedding_game.ui.upstream_fixes import mend
from napari_embedding_game.ui.workspace import Workspace

AFTER_SHOWN_MS = 100
"""When the engine begins to be loaded: imports would hold up the first drawing."""
WIDTH, LETTERS = 86, 14
"""The least, in pixels and in heights of a letter: below it controls are cut."""
KEYS = ("Ctrl+F", "/")
"""Lead to the search box from anywhere in the window."""
MAP, SELECTION, PLOTS = range(3)
TRUST = "Trust and earlier maps"
BELOW = 90
"""Pixels around what went wrong: a box to tick stands below."""


def _file_of(event: QDropEvent) -> Path | None:
    """Return the one local file or folder that is dragged, if it is one."""
    files = [url.toLocalFile() for url in event.mimeData().urls()]
    return Path(files[0]) if len(files) == 1 and files[0] else None


class GameDock(MapWidget):
    """The dock a person works with.

    Without data it offers to open some, with data to run; a map has tabs for itself,
    for its selection and for plots.
    """

    def __init__(
        self,
        napari_viewer: napari.Viewer,  # the name to which napari passes it
        workspace: Workspace | None = None,
        *,
        warm_up: bool = True,
    ) -> None:
        super().__init__(napari_viewer, workspace)
        mend()
        preferences = get_plugin_settings(PLUGIN).window
        choose_palette(preferences.group_colors)
        self._heard.connect(self._on_palette, preferences.events.group_colors)
        self.controller = controller = Controller(self._viewer, self.workspace)
        session = self._session
        states = session.dataset_changed, session.state_changed, session.restored
        # Before the views: what comes into sight hears of it as well, and the focus
        # returns to where it was on the map's tab.
        self._heard.connect(self._show_state, *states)
        self._heard.connect(self._on_selection, session.selection.changed)
        self._make_views()
        self.tour = Tour(self._tour_stops())
        self._build()
        self._heard.call(controller.close)
        self._connect()
        self.begin()
        self._show_state()
        self._name_method()
        if warm_up:
            QTimer.singleShot(AFTER_SHOWN_MS, controller.warm_up)
            self.tour.begin_once()

    def _tour_stops(self) -> list[Stop]:
        """Return what a tour explains, in this order."""
        session, run = self._session, self.run.run

        def has_map() -> bool:
            return session.snapshot is not None

        def misplaced_text() -> str:
            if self.trust.show_misplaced.isVisible():
                return "See which points to doubt: press Show."
            return "Here it says how many points to doubt."

        return [
            Stop(
                self.data.start.open_button,
                lambda: "Open your data, or try a sample.",
                lambda: session.dataset is not None,
            ),
            Stop(
                run,
                lambda: f"Press {run.text()}, and watch the map form.",
                lambda: session.is_moving or has_map(),
            ),
            Stop(
                self.look.color_by,
                lambda: "Choose what the colours mean.",
                is_due=has_map,
            ),
            Stop(self.trust.line, misplaced_text),
            Stop(self.inspector.title, lambda: "Type a name for the cluster here."),
        ]

    def sizeHint(self) -> QSize:
        """Return a width at which no control is cut."""
        return QSize(self.minimumWidth(), super().sizeHint().height())

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Take a file that is dragged here: napari would ask what is to read it."""
        if _file_of(event) is not None:
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        """Open the file that is let go here."""
        path = _file_of(event)
        if path is not None:
            event.acceptProposedAction()
            self.controller.reading.open_file(path)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Clear the selection on Escape, as the canvas does, where nobody types."""
        field = QApplication.focusWidget()
        if event.key() != Qt.Key.Key_Escape:
            super().keyPressEvent(event)
        elif field is self.inspector.title:
            self.inspector.discard_name()
        elif not isinstance(field, QLineEdit | QAbstractSpinBox):
            self._session.selection.clear()

    # Making

    def _make_views(self) -> None:
        workspace, controller, session = self.workspace, self.controller, self._session
        scene, hand, play = controller.scene, session.hand, controller.play
        self.overlay = overlay = MapOverlay(scene, self)
        self.data = DataControls(controller.reading)
        self.game = MethodControls(session)
        self.run = RunControls(self.data, controller.writing)
        self.trust = TrustControls(session)
        self.timeline = Timeline(session)
        self.look = DisplayControls(workspace)
        self.look.legend.set_legend(controller.scene.coloring)
        self.clusters = ClusterPane(workspace)
        add_hand_mark_painter(overlay)
        self.names = MapNames(overlay)
        add_caption_painter(overlay)
        self.mouse = MapMouse(overlay, self.names.handle_at)
        acts = {
            "lasso": partial(self.mouse.toggle_tool, "lasso"),
            "brush": partial(self.mouse.toggle_tool, "brush"),
            "embed": controller.embed_selection,
            "objects": controller.show_objects,
            "hold": partial(play, hand.hold_points, hand.show_refusal),
            "free": partial(play, hand.release_points, hand.show_refusal),
            "neighbors": scene.set_true_neighbors_shown,
        }
        self.select = SelectionControls(workspace, acts)
        self.inspector = SelectionTab(workspace, self.clusters.edits, self.select)
        self.plots = PlotsTab(self.inspector.markers)
        ObjectColors(scene, self)
        ImageSlider(scene, self)
        self.hover = HoverTooltip(overlay)
        self.larger = LargerMap(self)

    def _build(self) -> None:
        self.data_fold = FoldingSection("Data", self.data)
        self.method_fold = FoldingSection("Method", self.game)
        self.trust_fold = FoldingSection(TRUST, self.trust, self.timeline)
        self.look_fold = FoldingSection("Look", self.look.more)
        folds = self.data_fold, self.method_fold, self.trust_fold, self.look_fold
        notices = self.data.breadcrumb, self.data.relink
        looks = self.clusters.search, self.look, self.clusters
        steered = self.game.steering, self.select.tools, self.trust.line
        page = vertical_box(
            *notices, *looks, *steered, *folds, None, margins=(0, 6, 0, 4)
        )
        self.scroll = wrap_in_scroll_area(widget_with_layout(page))
        self.tabs = frameless_tabs(self.larger)
        self.tabs.addTab(self.scroll, "Map")
        self.tabs.addTab(wrap_in_scroll_area(self.inspector), "Selection")
        self.tabs.addTab(self.plots, "Plots")
        self.column.setContentsMargins(4, 5, 4, 0)  # below napari's title
        self.column.setSpacing(4)
        self.column.addWidget(self.tour)
        self.column.addWidget(self.tabs, 1)
        self.column.addWidget(self.select.held_row)
        # Edits are made in more than one tab.
        self.column.addWidget(self.clusters.message)
        self.column.addWidget(self.run)
        edits = self.clusters.edits
        self.column.addLayout(
            horizontal_box(edits.back, edits.forth, None, stretched=())
        )
        self.setAcceptDrops(True)
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)  # after a click keys are for it
        prevent_accidental_changes(self)

    def _connect(self) -> None:
        """Connect the views with the controller and with one another."""
        session, controller = self._session, self.controller
        data, trust, run, legend = self.data, self.trust, self.run, self.look.legend
        edits, mouse, scene = self.clusters.edits, self.mouse, controller.scene
        store, hear = controller.session_store, self._heard.connect
        hear(self._show_list, session.look.events.color_by)
        hear(self._name_method, session.settings.changed)
        hear(controller.play, session.play_wanted)
        hear(self._show_trouble, self.workspace.trouble)
        hear(self._on_reading, controller.reading.changed)
        hear(self._on_picked, mouse.selection_picked)
        hear(self._on_opened, self.clusters.table.enter_pressed)
        hear(legend.set_legend, scene.legend_changed)
        hear(self.select.show_correction, scene.neighbors_message)
        hear(controller.select_level, legend.level_picked)
        hear(self.select.show_tool, mouse.tool_changed)
        hear(edits.name, self.inspector.renamed)
        # Below the tabs: nobody asked for that, and frames leave it.
        hear(
            self.clusters.message.show_text,
            self.inspector.thumbnails.failed,
            store.trouble,
        )
        hear(run.show_saved, store.saved)
        hear(self.tour.begin, data.start.tour.clicked)
        hear(self._show_top, data.relink.layer_missed)
        hear(self._show_warning, trust.warned)
        self.select.show_tool(mouse.tool)
        edits.edit_name = self._edit_name
        for action in (edits.rename, edits.undo, edits.redo):
            self.addAction(action)
            mouse.bind_key(action.shortcut().toString(), action.trigger)
        for key in KEYS:
            QShortcut(QKeySequence(key), self, self._search)

    # What happens

    def _show_state(self, event: object = None) -> None:
        """Show what can be done now: open data, run, or work with the map."""
        session = self._session
        has_data = session.dataset is not None
        has_map = session.snapshot is not None
        is_map = has_map or session.is_moving
        self.tabs.tabBar().setVisible(is_map)
        self.larger.setVisible(is_map)
        if not is_map:
            self.tabs.setCurrentIndex(MAP)
            self.larger.setChecked(False)
        for widget in (
            self.clusters.search,
            self.look,
            self.game.steering,
            self.trust_fold,
            self.look_fold,
        ):
            widget.setVisible(is_map)
        self.trust.line.setVisible(has_map)
        self.select.tools.setVisible(has_map)
        self.method_fold.setVisible(has_data)
        self.data_fold.set_header_hidden(not is_map)
        self.data.title.setVisible(not is_map)  # which stands above it
        self._show_list()
        name = f"Data  ·  {session.dataset.name}" if session.dataset else "Data"
        self.data_fold.set_title(name)

    def _name_method(self, event: object = None) -> None:
        method = METHODS[self._session.settings.method]
        self.method_fold.set_title(f"Method  ·  {method.title}")

    def _show_warning(self, text: str) -> None:
        self.trust_fold.set_title("  ·  ".join(filter(None, [TRUST, text])))
        set_role(self.trust_fold.button, "warned" if text else "fold")

    def _show_list(self, event: object = None) -> None:
        """Show one list below the colours: the clusters, or what else colours mean."""
        is_cluster = self._session.look.color_by == CLUSTER
        self.clusters.setVisible(is_cluster and self._session.snapshot is not None)
        self.look.legend.setVisible(not is_cluster)

    def _on_palette(self, event: Any) -> None:
        """Show groups in the colours of a palette that was chosen in Preferences."""
        choose_palette(event.value)
        if isalive(self):  # a window that is torn down closes no docks
            self.controller.scene.recolor()
            self._session.clusters.changed.emit()

    def _show_trouble(self, text: str) -> None:
        """Show what failed; "" when it is over."""
        self.data.trouble.show_text(text)
        if text:
            self.tabs.setCurrentIndex(MAP)
            self.data_fold.set_expanded(True)
            self.scroll.ensureWidgetVisible(self.data.trouble, 0, BELOW)

    def _show_top(self) -> None:
        """Show the message above all else."""
        self.tabs.setCurrentIndex(MAP)
        self.scroll.verticalScrollBar().setValue(0)

    def _on_reading(self) -> None:
        """Show how far reading is."""
        if self.controller.reading.stage is not None:
            self.data_fold.set_expanded(True)

    def _on_picked(self) -> None:
        """Show the selection after a click on the map."""
        if not self._session.selection.is_empty and self.tabs.currentIndex() == MAP:
            self.tabs.setCurrentIndex(SELECTION)

    def _on_opened(self) -> None:
        """Show the selection after Enter in the list, with no cursor in its name."""
        self._on_picked()
        if self.inspector.isVisible():
            self.inspector.setFocus()

    def _on_selection(self) -> None:
        """Go back to the map when nothing is selected any more."""
        is_there = self.tabs.currentIndex() == SELECTION
        if self._session.selection.is_empty and is_there:
            self.tabs.setCurrentIndex(MAP)

    def _edit_name(self, cluster: int) -> None:
        """Let a person type a name where the cluster is seen."""
        has_list = self._session.look.color_by == CLUSTER
        if self.tabs.currentIndex() == SELECTION or not has_list:
            self.tabs.setCurrentIndex(SELECTION)
            self.inspector.edit_name()
        else:
            self.tabs.setCurrentIndex(MAP)
            self.clusters.table.edit_first_cell(cluster)

    def _search(self) -> None:
        self.tabs.setCurrentIndex(MAP)
        self.clusters.search.begin()

    def update_theme(self, event: object = None) -> None:
        """Take these on, and be as wide as the letters need."""
        super().update_theme(event)
        self.setMinimumWidth(WIDTH + LETTERS * self.fontMetrics().height())

    def _release(self) -> None:
        self.larger.setChecked(False)
        super()._release()
