"""A docked widget for the map of a viewer."""

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
from napari_embedding_game.ui.closing import Closing
from napari_embedding_game.ui.compat import main_window_of, unwrap
from napari_embedding_game.ui.connections import Listener, release
from napari_embedding_game.ui.style.form_widgets import Text
from napari_embedding_game.ui.style.theme import theme_colors
from napari_embedding_game.ui.workspace import Workspace, workspace_of

CLOSED_MS = 2_000
"""Until a closed dock is deleted, and threads that it abandoned have ended mostly."""


def give_back() -> None:
    """Collect garbage, and return free pages to the system, as glibc keeps them."""
    for _ in range(2):  # what a window had is garbage once the window is gone
        gc.collect()
    if os.name == "posix":
        getattr(ctypes.CDLL(None), "malloc_trim", lambda _: 0)(0)


class MapWidget(Listener):
    """Shows the workspace of a viewer until it is closed."""

    def __init__(
        self, viewer: napari.Viewer, workspace: Workspace | None = None
    ) -> None:
        workspace = workspace or workspace_of(viewer)
        super().__init__(workspace.session)
        self._viewer, self.workspace = unwrap(viewer), workspace
        self.workspace.docks.add(self)
        self.column = QVBoxLayout(self)
        self.column.setContentsMargins(8, 4, 8, 4)
        self._closing = Closing(self, self._release)

    def begin(self) -> None:
        """Take on the colours and letters of napari, now and whenever they change.

        Parts that need more than its sheet have a method ``set_theme``.
        """
        letters = get_settings().appearance.events.font_size
        self._heard.connect(self.update_theme, self._viewer.events.theme, letters)
        self.update_theme()

    def close(self) -> bool:
        """Undo the connections, once."""
        self._closing.close()
        return True

    def update_theme(self, event: object = None) -> None:
        """Take on the present colours and letters of napari."""
        colors = theme_colors(self._viewer.theme)
        self.setStyleSheet(colors.style_sheet(get_settings().appearance.font_size))
        self.ensurePolished()  # it has its letters
        for part in self.findChildren(QWidget):
            if hasattr(part, "set_theme"):
                part.ensurePolished()
                part.set_theme(colors)
        for completer in self.findChildren(QCompleter):
            completer.popup().setStyleSheet(colors.popup_style_sheet)

    def _release(self) -> None:
        release(self)
        self.setEnabled(False)
        self.workspace.docks.discard(self)
        if not self.workspace.docks:
            QTimer.singleShot(CLOSED_MS, give_back)


class MapTool(MapWidget):
    """A widget of the Plugins menu: its parts one below another, and a sentence."""

    def __init__(self, viewer: napari.Viewer) -> None:
        super().__init__(viewer)
        self.state = Text()
        QTimer.singleShot(0, self._tabify)  # once it is docked

    def lay_out(self, *parts: QWidget | QLayout) -> None:
        """Put the parts below each other, and take on the theme."""
        for part in parts:
            add = self.column.addWidget
            (add if isinstance(part, QWidget) else self.column.addLayout)(part)
        self.column.addStretch(0)  # for what no part takes
        self.begin()

    def _tabify(self) -> None:
        """Become a tab next to the map's dock."""
        boxes = [x.parentWidget() for x in self.workspace.docks if x is not self]
        boxes = [box for box in boxes if isinstance(box, QDockWidget)]
        dock = self.parentWidget()
        if boxes and isinstance(dock, QDockWidget):
            main_window_of(self).tabifyDockWidget(boxes[0], dock)
            for tab in (boxes[0], dock):  # of "Plate (Embedding Game)"
                tab.setWindowTitle(tab.windowTitle().partition(" (")[0])
            QTimer.singleShot(0, dock.raise_)  # once it has its tab

    def show_stage(self, stage: Stage) -> None:
        """Show the progress of background work."""
        share = "" if stage.share is None else f" ({stage.share:.0%})"
        self.state.show_text(f"{stage.text}{share} …")

    def show_error(self, error: BaseException) -> None:
        """Say why something failed."""
        self.state.show_text(error_text(error), "warning")
