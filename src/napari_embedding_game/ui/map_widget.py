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

    from napari_embedding_game.ui.workspace import Workspace


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
