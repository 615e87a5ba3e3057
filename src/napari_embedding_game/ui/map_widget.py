"""Base classes of the docked widgets for the map of a viewer."""

from __future__ import annotations

import ctypes
import gc
import os

import napari
from napari.settings import get_settings
from qtpy.QtCore import QTimer
from qtpy.QtWidgets import QCompleter, QDockWidget, QLayout, QVBoxLayout, QWidget

from napari_embedding_game.data.stages import Stage
from napari_embedding_game.session.session import error_text
from napari_embedding_game.ui.close_watcher import CloseWatcher
from napari_embedding_game.ui.compat import find_main_window, unwrap_viewer
from napari_embedding_game.ui.connections import Listener, disconnect_all
from napari_embedding_game.ui.style.form_widgets import TextLabel
from napari_embedding_game.ui.style.theme import find_theme_colors
from napari_embedding_game.ui.workspace import Workspace, get_workspace

CLOSED_MS = 2_000
"""Milliseconds after which a closed dock is deleted and most of its threads ended."""


def release_memory() -> None:
    """Collect garbage twice, and have glibc return its free pages to the system.

    Elsewhere than on glibc only garbage is collected.
    """
    for _ in range(2):  # the second frees what the window held
        gc.collect()
    if os.name == "posix":
        getattr(ctypes.CDLL(None), "malloc_trim", lambda _: 0)(0)


class MapWidget(Listener):
    """Base of the docks: shows the workspace of a viewer until the dock is closed."""

    def __init__(
        self, viewer: napari.Viewer, workspace: Workspace | None = None
    ) -> None:
        workspace = workspace or get_workspace(viewer)
        super().__init__(workspace.session)
        self._viewer, self.workspace = unwrap_viewer(viewer), workspace
        self.workspace.docks.add(self)
        self.main_layout = QVBoxLayout(self)
        self.main_layout.setContentsMargins(8, 4, 8, 4)
        self._close_watcher = CloseWatcher(self, self._on_dock_closed)

    def connect_theme(self) -> None:
        """Apply napari's colours and font size now and whenever they change."""
        letters = get_settings().appearance.events.font_size
        self._connections.connect(self.update_theme, self._viewer.events.theme, letters)
        self.update_theme()

    def close(self) -> bool:
        """Disconnect and delete this widget, at the first call; return True."""
        self._close_watcher.close()
        return True

    def update_theme(self, event: object = None) -> None:
        """Apply napari's present colours and font size to this widget and its children.

        A child that needs more than the style sheet has a method ``set_theme``, which
        is called with the colours.
        """
        colors = find_theme_colors(self._viewer.theme)
        self.setStyleSheet(colors.style_sheet(get_settings().appearance.font_size))
        self.ensurePolished()  # the new font is set
        for part in self.findChildren(QWidget):
            if hasattr(part, "set_theme"):
                part.ensurePolished()
                part.set_theme(colors)
        for completer in self.findChildren(QCompleter):
            completer.popup().setStyleSheet(colors.popup_style_sheet)

    def _on_dock_closed(self) -> None:
        """Disconnect all views, and disable this dock, which no longer counts as open.

        After the last dock of the workspace, memory is released ``CLOSED_MS`` later.
        """
        disconnect_all(self)
        self.setEnabled(False)
        self.workspace.docks.discard(self)
        if not self.workspace.docks:
            QTimer.singleShot(CLOSED_MS, release_memory)


class MapTool(MapWidget):
    """Base of the smaller widgets of the Plugins menu, with a text for messages."""

    def __init__(self, viewer: napari.Viewer) -> None:
        super().__init__(viewer)
        self.state = TextLabel()
        QTimer.singleShot(
            0, self._tabify_with_other_docks
        )  # napari docks it after this

    def lay_out_parts(self, *parts: QWidget | QLayout) -> None:
        """Lay widgets and layouts out from top to bottom, and connect the theme."""
        for part in parts:
            add = self.main_layout.addWidget
            (add if isinstance(part, QWidget) else self.main_layout.addLayout)(part)
        self.main_layout.addStretch(0)  # takes the height that no part takes
        self.connect_theme()

    def _tabify_with_other_docks(self) -> None:
        """Make this widget's dock a tab beside another open dock, and raise it.

        The titles of both tabs are cut before " (".  Without another docked widget
        nothing is done.
        """
        boxes = [x.parentWidget() for x in self.workspace.docks if x is not self]
        boxes = [box for box in boxes if isinstance(box, QDockWidget)]
        dock = self.parentWidget()
        if boxes and isinstance(dock, QDockWidget):
            find_main_window(self).tabifyDockWidget(boxes[0], dock)
            for tab in (boxes[0], dock):  # "Plate (Embedding Game)" is too long
                tab.setWindowTitle(tab.windowTitle().partition(" (")[0])
            QTimer.singleShot(0, dock.raise_)  # the tab exists after this event

    def show_stage(self, stage: Stage) -> None:
        """Show the stage of background work and its share, if the share is known."""
        share = "" if stage.share is None else f" ({stage.share:.0%})"
        self.state.show_text(f"{stage.text}{share} …")

    def show_error(self, error: BaseException) -> None:
        """Show the message of an error as a warning."""
        self.state.show_text(error_text(error), "warning")
