"""Breadcrumb of the tree of maps: parents, the open map, its children."""

from __future__ import annotations

from functools import partial
from itertools import repeat

from qtpy.QtCore import Qt
from qtpy.QtWidgets import QMenu, QPushButton, QSizePolicy, QWidget
from superqt import QElidingLabel

from napari_embedding_game.session.file.saved_map import SavedMap
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.style.layouts import (
    add_menu_entries,
    escape_tooltip,
    horizontal_box,
    push_button,
    vertical_box,
)
from napari_embedding_game.ui.workspace import Workspace

MAX_LETTERS, MIN_LETTERS = 14, 5
"""Letters of the titles above together, and of each; the tooltip has all of them."""
LEGIBLE = "X cells · 1…23"
"""As wide as this is the title of the open map at least."""
PARTS_TIP = "Maps of some of these points, or of all in another space."


class Breadcrumb(QWidget):
    """A click goes to a map above or to a map of a part; hidden where there is none."""

    def __init__(self, workspace: Workspace) -> None:
        super().__init__()
        self._session, self._maps = workspace.session, workspace.maps
        self.buttons: list[QPushButton] = []
        """Of the maps above."""
        self.current = QElidingLabel()
        self.current.setElideMode(Qt.TextElideMode.ElideMiddle)
        self.parts = push_button("Other maps  ", PARTS_TIP)
        self.parts.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self.parts.setMenu(QMenu(self.parts))
        self._row = horizontal_box(self.current)
        self.setLayout(
            vertical_box(self._row, horizontal_box(self.parts, None, stretched=()))
        )
        Connections(self).connect(self.refresh, self._maps.changed)
        self.refresh()

    def refresh(self) -> None:
        """Show the maps as they are."""
        path = self._maps.path if self._session.dataset is not None else []
        parts = self._maps.child_maps if path else []
        for button in self.buttons:
            button.deleteLater()
        n_letters = max(MAX_LETTERS // max(len(path) - 1, 1), MIN_LETTERS)
        self.buttons = [
            self._make_parent_button(saved, n_letters) for saved in path[:-1]
        ]
        for number, button in enumerate(self.buttons):
            self._row.insertWidget(number, button)
        title = path[-1].title if self.buttons else ""
        # Two long names must not widen the dock, nor the buttons leave no letter.
        width = self.fontMetrics().horizontalAdvance(LEGIBLE)
        self.current.setMinimumWidth(width if title else 1)
        self.current.setText(title.rpartition(" · ")[2])  # what is not in that above
        self.current.setToolTip(escape_tooltip(title))
        menu = self.parts.menu()
        menu.clear()
        openers = (partial(self._maps.open, part.key) for part in parts)
        add_menu_entries(menu, zip(map(_describe_map, parts), openers, repeat("")))
        self.parts.setVisible(bool(parts))
        self.setVisible(len(path) > 1 or bool(parts))

    def _make_parent_button(self, saved: SavedMap, n_letters: int) -> QPushButton:
        title = saved.title
        short = title if len(title) <= n_letters else f"{title[: n_letters - 1]}…"
        tip = f"Back to {_describe_map(saved)}."
        return push_button(f"‹ {short}", tip, partial(self._maps.open, saved.key))


def _describe_map(saved: SavedMap) -> str:
    return f"{saved.title} ({len(saved.dataset.obs):,} points)"
