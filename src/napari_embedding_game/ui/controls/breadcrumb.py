"""Breadcrumb of the tree of maps: parents, the open map, its children."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from qtpy.QtWidgets import QHBoxLayout, QMenu, QPushButton, QSizePolicy, QWidget
from superqt import QElidingLabel

from napari_embedding_game.session.maps import MapTree
from napari_embedding_game.session.session import Session
from napari_embedding_game.ui.connections import Connections

LONGEST = 18
"""Letters of a title; the tooltip has all of them."""


class Breadcrumb(QWidget):
    """A click goes to a map above or to a map of a part; hidden where there is none."""

    def __init__(
        self, session: Session, maps: MapTree, open_map: Callable[[str], None]
    ) -> None:
        super().__init__()
        self._session, self._maps, self._open_map = session, maps, open_map
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(0, 0, 0, 2)
        self._row.setSpacing(4)
        self.buttons: list[QPushButton] = []
        self.parts: QPushButton | None = None
        """Opens a menu of the maps of parts of this one, where there are any."""
        self._connections = Connections(self)
        self._connections.connect(maps.changed, self.refresh)
        self.refresh()

    def refresh(self) -> None:
        """Show the present way."""
        while (item := self._row.takeAt(0)) is not None:
            if item.widget() is not None:
                item.widget().deleteLater()
        path = self._maps.path if self._session.dataset is not None else []
        parts = self._maps.parts if path else []
        self.buttons, self.parts = [], None
        for place in path[:-1]:
            button = QPushButton(f"‹ {_short(place.title)}")
            button.setToolTip(f"Back to {place.title} ({place.n_points:,} points).")
            button.clicked.connect(partial(self._open, place.key))
            self.buttons.append(button)
            self._row.addWidget(button)
        here = QElidingLabel(path[-1].title if self.buttons else "")
        here.setProperty("role", "title")
        here.setMinimumWidth(1)  # two long names must not widen the dock
        here.setToolTip(here.text())
        self._row.addWidget(here, 1)
        if parts:
            self.parts = QPushButton("Other maps  ")
            fixed = QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed
            self.parts.setSizePolicy(*fixed)
            self.parts.setToolTip(
                "Go on with a map of some of these points, or of all in another space."
            )
            menu = QMenu(self.parts)
            for place in parts:
                action = menu.addAction(f"{place.title} ({place.n_points:,} points)")
                action.triggered.connect(partial(self._open, place.key))
            self.parts.setMenu(menu)
            self._row.addWidget(self.parts)
        self.setVisible(len(path) > 1 or bool(parts))

    def _open(self, key: str, is_checked: bool = False) -> None:
        self._open_map(key)


def _short(title: str) -> str:
    return title if len(title) <= LONGEST else f"{title[: LONGEST - 1]}…"
