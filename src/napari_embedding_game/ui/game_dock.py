"""The main dock: controls of the map, the selection and the plots in three tabs."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import napari
from napari.settings import get_plugin_settings
from qtpy.compat import isalive
from qtpy.QtCore import QSize, Qt, QTimer
from qtpy.QtGui import QDragEnterEvent, QDropEvent, QKeyEvent, QKeySequence, QShortcut
from qtpy.QtWidgets import QAbstractSpinBox, QApplication, QLineEdit, QWidget

from napari_embedding_game.core.energy.methods import METHODS
from napari_embedding_game.data.palette import choose_palette
from napari_embedding_game.ui.canvas.hover import HoverTooltip
from napari_embedding_game.ui.canvas.marks import (
    add_caption_painters,
    add_hand_mark_painter,
)
from napari_embedding_game.ui.canvas.mouse import MapMouse
from napari_embedding_game.ui.canvas.names import MapNames
from napari_embedding_game.ui.canvas.overlay import MapOverlay
from napari_embedding_game.ui.canvas.tool_strip import ToolStrip
from napari_embedding_game.ui.canvas.track_paths import TrackPaths
from napari_embedding_game.ui.controller import Controller
from napari_embedding_game.ui.controls.data import DataControls
from napari_embedding_game.ui.controls.display import DisplayControls
from napari_embedding_game.ui.controls.method import MethodControls
from napari_embedding_game.ui.controls.run import RunControls
from napari_embedding_game.ui.controls.selection import SelectionControls
from napari_embedding_game.ui.controls.timeline import TimelineControls
from napari_embedding_game.ui.controls.trust import TrustControls
from napari_embedding_game.ui.images.experiment_layers import ImageSlider
from napari_embedding_game.ui.images.object_colors import ObjectColors
from napari_embedding_game.ui.images.objects_view import BACK_KEY, ObjectsView
from napari_embedding_game.ui.images.track_layers import TrackLayers
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
from napari_embedding_game.ui.tour import PLUGIN, Tour, TourStop
from napari_embedding_game.ui.upstream_fixes import apply_fixes
from napari_embedding_game.ui.visible_parts import visible_parts
from napari_embedding_game.ui.workspace import Workspace

AFTER_SHOWN_MS = 100
"""Milliseconds until the engine is loaded: imports would delay the first painting."""
WIDTH, LETTERS = 86, 14
"""Minimum width of the dock: pixels, plus multiples of the font's height."""
KEYS = ("Ctrl+F", "/")
"""Shortcuts that move the focus to the search box from anywhere in the window."""
MAP, SELECTION, PLOTS = range(3)
TRUST = "Trust and earlier maps"
BELOW = 90
"""Pixels below an error message that are scrolled into view with the message."""


def _find_dragged_file(event: QDropEvent) -> Path | None:
    """Return the dragged file or folder; None unless one local path is dragged."""
    files = [url.toLocalFile() for url in event.mimeData().urls()]
    return Path(files[0]) if len(files) == 1 and files[0] else None


class GameDock(MapWidget):
    """The main dock of the plugin.

    Without data the dock offers to open data, with data to run; with a map there are
    tabs for the map, the selection and the plots.
    """

    def __init__(
        self,
        napari_viewer: napari.Viewer,  # the name to which napari passes it
        workspace: Workspace | None = None,
        *,
        warm_up: bool = True,
    ) -> None:
        super().__init__(napari_viewer, workspace)
        apply_fixes()
        preferences = get_plugin_settings(PLUGIN).window
        choose_palette(preferences.group_colors)
        self._connections.connect(
            self._on_palette_changed, preferences.events.group_colors
        )
        self.controller = controller = Controller(self._viewer, self.workspace)
        session = self._session
        states = session.dataset_changed, session.state_changed, session.restored
        # Before the views are made: views that become visible receive the same signal,
        # and the focus returns to where it was on the map's tab.
        self._connections.connect(self._update_visible_views, *states)
        self._connections.connect(self._on_selection_changed, session.selection.changed)
        self._make_views()
        self.tour = Tour(self._make_tour_stops())
        self._lay_out_views()
        self._connections.add_cleanup(controller.close)
        put_back = partial(self.plots_tab.set_in_window, False)
        self._connections.add_cleanup(put_back)  # else the window would stay open
        self._connect_views()
        self.connect_theme()
        self._update_visible_views()
        self._update_method_title()
        if warm_up:
            QTimer.singleShot(AFTER_SHOWN_MS, controller.warm_up_engine)
            self.tour.begin_if_unseen()

    def _make_tour_stops(self) -> list[TourStop]:
        """Return the stops of the tour, in the order in which the tour shows them."""
        session, run = self._session, self.run_controls.run_button

        def has_map() -> bool:
            return session.snapshot is not None

        def describe_misplaced() -> str:
            """Return the note on misplaced points, which may mention Show."""
            if self.trust_controls.show_misplaced.isVisible():
                return "See which points to doubt: press Show."
            return "Here it says how many points to doubt."

        return [
            TourStop(
                self.data_controls.start_panel.open_button,
                lambda: "Open your data, or try a sample.",
                lambda: session.dataset is not None,
            ),
            TourStop(
                run,
                lambda: f"Press {run.text()}, and watch the map form.",
                lambda: session.is_moving or has_map(),
            ),
            TourStop(
                self.display_controls.color_by,
                lambda: "Choose what the colours mean.",
                is_ready=has_map,
            ),
            TourStop(self.trust_controls.line, describe_misplaced),
            TourStop(
                self.selection_tab.title, lambda: "Type a name for the cluster here."
            ),
        ]

    def sizeHint(self) -> QSize:
        """Return the minimum width, at which no control is cut, and Qt's own height."""
        return QSize(self.minimumWidth(), super().sizeHint().height())

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Accept one dragged local path: napari would ask for a reader."""
        if _find_dragged_file(event) is not None:
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        """Open the one local file or folder dropped here; ignore other drops."""
        path = _find_dragged_file(event)
        if path is not None:
            event.acceptProposedAction()
            self.controller.reading.open_file(path)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """On Escape clear the selection, or discard a name that is typed in the title.

        In other text fields and number boxes Escape does nothing here; other keys go on
        to Qt.
        """
        field = QApplication.focusWidget()
        if event.key() != Qt.Key.Key_Escape:
            super().keyPressEvent(event)
        elif field is self.selection_tab.title:
            self.selection_tab.discard_typed_name()
        elif not isinstance(field, QLineEdit | QAbstractSpinBox):
            self._session.selection.clear()

    # Making

    def _make_views(self) -> None:
        """Make all controls, panes and tabs, and the map's names, marks and mouse.

        The actions of the selection's buttons are connected with the controller here.
        """
        workspace, controller, session = self.workspace, self.controller, self._session
        scene, hand, play = controller.scene, session.hand, controller.play
        self.overlay = overlay = MapOverlay(scene, self)
        self.data_controls = DataControls(controller.reading)
        self.method_controls = MethodControls(session)
        self.run_controls = RunControls(self.data_controls, controller.writing)
        self.trust_controls = TrustControls(session)
        self.timeline_controls = TimelineControls(session)
        self.display_controls = DisplayControls(workspace)
        self.display_controls.legend.show_coloring(controller.scene.coloring)
        self.cluster_pane = ClusterPane(workspace)
        self.track_paths = TrackPaths(overlay)
        add_hand_mark_painter(overlay)
        self.map_names = MapNames(overlay)
        MapNames(overlay, is_in_tissue=True)
        add_caption_painters(overlay)
        self.mouse = MapMouse(overlay, self.map_names.make_name_handle)
        self.objects_view = ObjectsView(overlay, workspace.linked_layers)
        actions = {
            "lasso": partial(self.mouse.toggle_tool, "lasso"),
            "brush": partial(self.mouse.toggle_tool, "brush"),
            "embed": controller.embed_selection,
            "objects": self.objects_view.show_selected_objects,
            "hold": partial(play, hand.hold_points, hand.show_refusal),
            "free": partial(play, hand.release_points, hand.show_refusal),
            "neighbors": scene.set_true_neighbors_shown,
        }
        self.selection_controls = SelectionControls(workspace, actions)
        self.selection_tab = SelectionTab(
            workspace, self.cluster_pane.edits, self.selection_controls
        )
        self.plots_tab = PlotsTab(
            self.selection_tab.markers, self.selection_tab.conditions
        )
        ObjectColors(scene, self)
        ImageSlider(scene, self)
        TrackLayers(scene, self)
        self.hover = HoverTooltip(overlay)
        self.larger_map = LargerMap(self)
        self.selection_controls.tool_row.addWidget(self.larger_map)
        self.tool_strip = ToolStrip(overlay, self.selection_controls.tools)

    def _lay_out_views(self) -> None:
        """Place the views in tabs, folds and the lines below the tabs.

        Also accept dropped files and focus by a click, and keep the mouse wheel from
        changing values by accident.
        """
        self.data_fold = FoldingSection("Data", self.data_controls)
        self.method_fold = FoldingSection("Method", self.method_controls)
        self.trust_fold = FoldingSection(
            TRUST, self.trust_controls, self.timeline_controls
        )
        self.look_fold = FoldingSection("Look", self.display_controls.more)
        folds = self.data_fold, self.method_fold, self.trust_fold, self.look_fold
        notices = self.data_controls.breadcrumb, self.data_controls.relink_panel
        looks = self.cluster_pane.search, self.display_controls, self.cluster_pane
        steered = self.method_controls.steering, self.trust_controls.line
        page = vertical_box(
            *notices, *looks, *steered, *folds, None, margins=(0, 6, 0, 4)
        )
        self.scroll = wrap_in_scroll_area(widget_with_layout(page))
        self.tabs = frameless_tabs()
        self.tabs.addTab(self.scroll, "Map")
        self.tabs.addTab(wrap_in_scroll_area(self.selection_tab), "Selection")
        self.tabs.addTab(self.plots_tab, "Plots")
        self.main_layout.setContentsMargins(4, 5, 4, 0)  # below napari's title
        self.main_layout.setSpacing(4)
        self.main_layout.addWidget(self.tour)
        self.main_layout.addWidget(self.tabs, 1)
        self.main_layout.addWidget(self.selection_controls.held_row)
        # Below the tabs, since edits are made in several tabs.
        self.main_layout.addWidget(self.cluster_pane.message)
        self.main_layout.addWidget(self.run_controls)
        edits = self.cluster_pane.edits
        self.main_layout.addLayout(
            horizontal_box(edits.undo_button, edits.redo_button, None, stretched=())
        )
        self._widgets_by_part: dict[str, tuple[QWidget, ...]] = {
            "method": (self.method_fold,),
            "data_title": (self.data_controls.title,),
            "map_controls": (
                self.tabs.tabBar(),
                self.cluster_pane.search,
                self.display_controls,
                self.method_controls.steering,
                self.trust_fold,
                self.look_fold,
            ),
            "map_tools": (self.trust_controls.line, self.selection_controls.tools),
            "clusters": (self.cluster_pane,),
            "legend": (self.display_controls.legend,),
        }
        """The widgets of each field of :class:`VisibleParts`."""
        self.setAcceptDrops(True)
        self.setFocusPolicy(
            Qt.FocusPolicy.ClickFocus
        )  # keys after a click are for the dock
        prevent_accidental_changes(self)

    def _connect_views(self) -> None:
        """Connect the views with the controller and with each other.

        Also bind the keys of the edits on the map, and the shortcuts of the search box.
        """
        session, controller = self._session, self.controller
        data = self.data_controls
        trust = self.trust_controls
        run = self.run_controls
        legend = self.display_controls.legend
        edits, mouse, scene = self.cluster_pane.edits, self.mouse, controller.scene
        store, connect = controller.session_store, self._connections.connect
        connect(self._update_visible_views, session.look.events.color_by)
        connect(self._update_method_title, session.settings.changed)
        connect(controller.play, session.play_wanted)
        connect(self._show_trouble, self.workspace.trouble)
        connect(self._on_reading_changed, controller.reading.changed)
        connect(self._on_points_picked, mouse.selection_picked)
        connect(self._on_cluster_opened, self.cluster_pane.table.enter_pressed)
        connect(legend.show_coloring, scene.legend_changed)
        connect(self.selection_controls.show_neighbors_message, scene.neighbors_message)
        connect(controller.select_legend_level, legend.level_picked)
        connect(self.selection_controls.show_active_tool, mouse.tool_changed)
        connect(edits.rename_cluster, self.selection_tab.renamed)
        # Below the tabs, where no frame replaces the message.
        connect(
            self.cluster_pane.message.show_text,
            self.selection_tab.thumbnails.failed,
            store.trouble,
        )
        connect(run.show_save_time, store.saved)
        connect(self.tour.begin, data.start_panel.tour.clicked)
        connect(self._scroll_to_top, data.relink_panel.layer_missed)
        connect(self._show_trust_warning, trust.warnings_changed)
        self.selection_controls.show_active_tool(mouse.tool)
        edits.edit_name = self._edit_cluster_name
        for action in (edits.rename, edits.undo, edits.redo):
            self.addAction(action)
            mouse.bind_key(action.shortcut().toString(), action.trigger)
        mouse.bind_key(BACK_KEY, self.objects_view.return_to_map)
        for key in KEYS:
            QShortcut(QKeySequence(key), self, self._focus_search_box)

    # Events

    def _update_visible_views(self, event: object = None) -> None:
        """Show the parts that :func:`visible_parts` names, and hide the others.

        Without a map or a moving run, the tab of the map is opened and the hidden docks
        are shown again.  The title of the data's fold is set to the dataset's name.
        """
        session, parts = self._session, visible_parts(self._session)
        for name, widgets in self._widgets_by_part.items():
            for widget in widgets:
                widget.setVisible(getattr(parts, name))
        self.data_fold.set_header_hidden(parts.data_title)
        if not parts.map_controls:
            self.tabs.setCurrentIndex(MAP)
            self.larger_map.setChecked(False)
            self.plots_tab.set_in_window(False)
        name = f"Data  ·  {session.dataset.name}" if session.dataset else "Data"
        self.data_fold.set_title(name)

    def _update_method_title(self, event: object = None) -> None:
        """Show the title of the chosen method in the title of the method's fold."""
        method = METHODS[self._session.settings.method]
        self.method_fold.set_title(f"Method  ·  {method.title}")

    def _show_trust_warning(self, text: str) -> None:
        """Append the titles of the trust warnings to the title of the trust fold.

        ``text``: titles joined by commas; "" removes warnings and warning colour.
        """
        self.trust_fold.set_title("  ·  ".join(filter(None, [TRUST, text])))
        set_role(self.trust_fold.button, "warned" if text else "fold")

    def _on_palette_changed(self, event: Any) -> None:
        """Use the palette set in napari's preferences; recolour map and clusters.

        If this dock is deleted already, the palette is chosen and nothing is
        recoloured.
        """
        choose_palette(event.value)
        if isalive(self):  # a window that is deleted closes no docks
            self.controller.scene.recolor()
            self._session.clusters.changed.emit()

    def _show_trouble(self, text: str) -> None:
        """Show an error message in the data controls, and scroll to it; "" hides it.

        For a message the map's tab is opened and the data's fold is expanded.
        """
        self.data_controls.trouble.show_text(text)
        if text:
            self.tabs.setCurrentIndex(MAP)
            self.data_fold.set_expanded(True)
            self.scroll.ensureWidgetVisible(self.data_controls.trouble, 0, BELOW)

    def _scroll_to_top(self) -> None:
        """Open the map's tab and scroll to its top, where a message is shown."""
        self.tabs.setCurrentIndex(MAP)
        self.scroll.verticalScrollBar().setValue(0)

    def _on_reading_changed(self) -> None:
        """Expand the data's fold, which shows the progress, while data are read."""
        if self.controller.reading.stage is not None:
            self.data_fold.set_expanded(True)

    def _on_points_picked(self) -> None:
        """Go from the map's tab to the selection's tab if anything is selected.

        Called after a click on the map.
        """
        if not self._session.selection.is_empty and self.tabs.currentIndex() == MAP:
            self.tabs.setCurrentIndex(SELECTION)

    def _on_cluster_opened(self) -> None:
        """After Enter in the list go to the selection's tab, which gets the focus.

        The title is not edited.
        """
        self._on_points_picked()
        if self.selection_tab.isVisible():
            self.selection_tab.setFocus()

    def _on_selection_changed(self) -> None:
        """Leave the selection's tab for the map's when nothing is selected."""
        is_there = self.tabs.currentIndex() == SELECTION
        if self._session.selection.is_empty and is_there:
            self.tabs.setCurrentIndex(MAP)

    def _edit_cluster_name(self, cluster: int) -> None:
        """Start editing a cluster's name, in the selection's tab or in the list.

        The selection's tab is used if it is open, or if the list is hidden since
        clusters do not colour the map.  There the described cluster is edited, whatever
        ``cluster`` is.
        """
        has_list = self._session.look.color_by == CLUSTER
        if self.tabs.currentIndex() == SELECTION or not has_list:
            self.tabs.setCurrentIndex(SELECTION)
            self.selection_tab.edit_name()
        else:
            self.tabs.setCurrentIndex(MAP)
            self.cluster_pane.table.edit_first_cell(cluster)

    def _focus_search_box(self) -> None:
        """Open the map's tab and put the cursor into the search box."""
        self.tabs.setCurrentIndex(MAP)
        self.cluster_pane.search.take_focus()

    def update_theme(self, event: object = None) -> None:
        """Apply napari's colours and font size; set the minimum width by the font."""
        super().update_theme(event)
        self.tool_strip.setStyleSheet(self.styleSheet())  # it is on the canvas
        self.tool_strip.update_place()
        self.setMinimumWidth(WIDTH + LETTERS * self.fontMetrics().height())

    def _on_dock_closed(self) -> None:
        """Show the hidden docks again before the views are disconnected."""
        self.larger_map.setChecked(False)
        super()._on_dock_closed()
