"""Keyboard shortcuts of a dock that work in the whole window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from napari.layers import Labels
from qtpy.QtCore import QObject, Qt
from qtpy.QtGui import QAction
from qtpy.QtWidgets import QAbstractItemView, QApplication, QWidget

from napari_embedding_game.ui.connections import Connections

if TYPE_CHECKING:
    import napari


class WindowShortcuts(QObject):
    """Lets the keys of some actions work in all of the window.

    Where a key means something else they work in the dock only: a list such as
    napari's list of layers renames with F2 by itself, and Ctrl+Z takes back what was
    painted into a selected Labels layer.  A field that is typed in takes its keys
    first, as everywhere in Qt.

    Parameters
    ----------
    dock : QWidget
    viewer : napari.Viewer
    renaming : sequence of QAction
        Actions whose keys lists have as well.
    undoing : sequence of QAction
        Actions whose keys Labels layers have as well.
    """

    def __init__(
        self,
        dock: QWidget,
        viewer: napari.Viewer,
        renaming: Sequence[QAction],
        undoing: Sequence[QAction],
    ) -> None:
        super().__init__(dock)
        self._dock = dock
        self._viewer = viewer
        self._renaming = renaming
        self._undoing = undoing
        connections = Connections(self)
        connections.connect(QApplication.instance().focusChanged, self._on_focus)
        connections.connect(viewer.layers.selection.events.active, self._on_active)
        self._follow()

    def _on_focus(self, before: QWidget | None, now: QWidget | None) -> None:
        self._follow()

    def _on_active(self, event: object = None) -> None:
        self._follow()

    def _follow(self) -> None:
        focus = QApplication.focusWidget()
        is_ours = focus is not None and self._dock.isAncestorOf(focus)
        is_list = isinstance(focus, QAbstractItemView) and not is_ours
        is_painted = isinstance(self._viewer.layers.selection.active, Labels)
        for action in self._renaming:
            _let_reach(action, not is_list)
        for action in self._undoing:
            _let_reach(action, not is_painted)


def _let_reach(action: QAction, everywhere: bool) -> None:
    contexts = Qt.ShortcutContext
    wanted = contexts.WidgetWithChildrenShortcut
    if everywhere:
        wanted = contexts.WindowShortcut
    if action.shortcutContext() != wanted:
        action.setShortcutContext(wanted)
