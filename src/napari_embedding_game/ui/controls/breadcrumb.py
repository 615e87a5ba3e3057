"""A breadcrumb of the tree of maps: parents, the open map and its child maps."""

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
"""Letters of all parents' titles together at most, and of each title at least."""
LEGIBLE = "X cells · 1…23"
"""Text whose width is the minimum width of the open map's title."""
CHILD_MAPS_TIP = "Maps of some of these points, or of all in another space."


class Breadcrumb(QWidget):
    """Buttons that open a parent map, and a menu that opens a child map.

    Hidden where the open map has neither parents nor child maps.
    """

    def __init__(self, workspace: Workspace) -> None:
        super().__init__()
        self._session, self._maps = workspace.session, workspace.map_tree
        self.buttons: list[QPushButton] = []
        """A button for each parent map, from the root on."""
        self.current = QElidingLabel()
        self.current.setElideMode(Qt.TextElideMode.ElideMiddle)
        self.child_maps_button = push_button("Other maps  ", CHILD_MAPS_TIP)
        self.child_maps_button.setSizePolicy(
            QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed
        )
        self.child_maps_button.setMenu(QMenu(self.child_maps_button))
        self._row = horizontal_box(self.current)
        self.setLayout(
            vertical_box(
                self._row, horizontal_box(self.child_maps_button, None, stretched=())
            )
        )
        Connections(self).connect(self.update_maps, self._maps.changed)
        self.update_maps()

    def update_maps(self) -> None:
        """Show parents, open map and child maps; hide this without parent and child.

        The title of the open map is shown without the titles of its parents.
        """
        path = self._maps.path if self._session.dataset is not None else []
        children = self._maps.child_maps if path else []
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
        self.current.setText(
            title.rpartition(" · ")[2]
        )  # without the titles of its parents
        self.current.setToolTip(escape_tooltip(title))
        menu = self.child_maps_button.menu()
        menu.clear()
        openers = (partial(self._maps.open, child.key) for child in children)
        add_menu_entries(menu, zip(map(_describe_map, children), openers, repeat("")))
        self.child_maps_button.setVisible(bool(children))
        self.setVisible(len(path) > 1 or bool(children))

    def _make_parent_button(self, saved: SavedMap, n_letters: int) -> QPushButton:
        """Return a button that opens a parent map, of at most ``n_letters`` letters."""
        title = saved.title
        short = title if len(title) <= n_letters else f"{title[: n_letters - 1]}…"
        tip = f"Back to {_describe_map(saved)}."
        return push_button(f"‹ {short}", tip, partial(self._maps.open, saved.key))


def _describe_map(saved: SavedMap) -> str:
    """Return the title of a map and its number of points."""
    return f"{saved.title} ({len(saved.dataset.obs):,} points)"
