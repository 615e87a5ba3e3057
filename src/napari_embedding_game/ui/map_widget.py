"""A docked widget that stands on the map of a viewer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qtpy.QtWidgets import QVBoxLayout, QWidget

from napari_embedding_game.ui.closing import Closing
from napari_embedding_game.ui.compat import unwrap
from napari_embedding_game.ui.connections import Connections, release
from napari_embedding_game.ui.style.theme import ThemeColors, theme_colors
from napari_embedding_game.ui.workspace import leave_workspace, workspace_of

if TYPE_CHECKING:
    import napari


class MapWidget(QWidget):
    """Shows the workspace of a viewer until it is closed.

    Parameters
    ----------
    viewer : napari.Viewer
    """

    def __init__(self, viewer: napari.Viewer) -> None:
        super().__init__()
        self.viewer = unwrap(viewer)
        self.workspace = workspace_of(self.viewer)
        self.workspace.docks.add(self)
        self.connections = Connections(self)
        self.column = QVBoxLayout(self)
        self.column.setContentsMargins(8, 4, 8, 4)
        self._closing = Closing(self, self._release)

    def begin(self) -> None:
        """Take on the colours of the theme, now and whenever it changes."""
        self.connections.connect(self.viewer.events.theme, self._on_theme)
        self._on_theme()

    def set_theme(self, colors: ThemeColors) -> None:
        """Take on the colours of napari's theme."""
        raise NotImplementedError

    def close(self) -> bool:
        """Undo the connections, once."""
        self._closing.close()
        return True

    def _on_theme(self, event: object = None) -> None:
        colors = theme_colors(self.viewer.theme)
        self.setStyleSheet(colors.sheet)
        self.set_theme(colors)

    def _release(self) -> None:
        release(self)
        self.setEnabled(False)
        is_with_window = self._closing.is_with_window
        leave_workspace(self.viewer, self.workspace, self, with_window=is_with_window)
