"""A docked widget that stands on the map of a viewer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qtpy.QtCore import QTimer
from qtpy.QtWidgets import QDockWidget, QLayout, QMainWindow, QVBoxLayout, QWidget

from napari_embedding_game.data.stages import Stage
from napari_embedding_game.session.session import sentence
from napari_embedding_game.ui.closing import Closing
from napari_embedding_game.ui.compat import main_window_of, unwrap
from napari_embedding_game.ui.connections import Connections, release
from napari_embedding_game.ui.style.form_widgets import show_text, text_label
from napari_embedding_game.ui.style.theme import ThemeColors, theme_colors
from napari_embedding_game.ui.workspace import leave_workspace, workspace_of

if TYPE_CHECKING:
    import napari

    from napari_embedding_game.ui.workspace import Workspace


LOW = 900
"""Height of a window below which one of two docks would be cut."""


class MapWidget(QWidget):
    """Shows the workspace of a viewer until it is closed."""

    def __init__(
        self, viewer: napari.Viewer, workspace: Workspace | None = None
    ) -> None:
        super().__init__()
        self._viewer = unwrap(viewer)
        self.workspace = workspace or workspace_of(self._viewer)
        self.workspace.docks.add(self)
        self._connections = Connections(self)
        self.column = QVBoxLayout(self)
        self.column.setContentsMargins(8, 4, 8, 4)
        self._closing = Closing(self, self._release)

    def begin(self) -> None:
        """Take on the colours of the theme, now and whenever it changes."""
        self._connections.connect(self._viewer.events.theme, self._on_theme)
        self._on_theme()

    def set_theme(self, colors: ThemeColors) -> None:
        """Take on the colours of napari's theme, beyond its sheet."""

    def close(self) -> bool:
        """Undo the connections, once."""
        self._closing.close()
        return True

    def _on_theme(self, event: object = None) -> None:
        colors = theme_colors(self._viewer.theme)
        self.setStyleSheet(colors.sheet)
        self.set_theme(colors)

    def _release(self) -> None:
        release(self)
        self.setEnabled(False)
        is_with_window = self._closing.is_with_window
        leave_workspace(self._viewer, self.workspace, self, with_window=is_with_window)


class MapTool(MapWidget):
    """A widget of the Plugins menu: its parts one below another, and a sentence."""

    def __init__(self, viewer: napari.Viewer) -> None:
        super().__init__(viewer)
        self._session = self.workspace.session
        self.state = text_label()
        window = getattr(self._viewer, "window", None)  # a model alone has none
        self._room = None if window is None else window.geometry()
        """The window as it was before this was opened."""

    def showEvent(self, event: object) -> None:
        """Find room, the first time."""
        super().showEvent(event)
        if self._room is not None:
            QTimer.singleShot(0, self._find_room)

    def lay_out(self, *parts: QWidget | QLayout) -> None:
        """Put the parts below each other, and take on the theme."""
        for part in parts:
            add = self.column.addWidget
            (add if isinstance(part, QWidget) else self.column.addLayout)(part)
        self.column.addStretch(0)  # for what no part takes
        self.begin()

    def say(self, text: str = "", role: str = "note") -> None:
        """Show a sentence."""
        show_text(self.state, text, role)

    def _find_room(self) -> None:
        """Be a tab beside the map's dock where there is no room below it."""
        room, self._room = self._room, None
        top = main_window_of(self)
        if room is None or not isinstance(top, QMainWindow) or room[3] >= LOW:
            return
        others = [x for x in self.workspace.docks if not isinstance(x, MapTool)]
        boxes = [x for x in top.findChildren(QDockWidget) if x.isVisible()]
        own = [x for x in boxes if x.isAncestorOf(self)]
        main = [x for x in boxes for other in others if x.isAncestorOf(other)]
        if own and main:
            top.tabifyDockWidget(main[0], own[0])
            own[0].raise_()
            self._size = room[2:]
            QTimer.singleShot(0, self._give_back)  # once all is laid out anew

    def _give_back(self) -> None:
        """Let the window be as large as before."""
        self._viewer.window.resize(*self._size)

    def say_stage(self, stage: Stage) -> None:
        """Say how far work beside the window is."""
        share = "" if stage.share is None else f" ({stage.share:.0%})"
        self.say(f"{stage.text}{share} …")

    def say_error(self, error: BaseException) -> None:
        """Say why something failed."""
        self.say(sentence(error), "warning")
