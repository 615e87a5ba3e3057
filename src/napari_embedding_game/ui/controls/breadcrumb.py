"""Breadcrumb of the tree of maps: parents, the open map, its children."""

from __future__ import annotations

from qtpy.QtCore import Signal
from qtpy.QtWidgets import (
    QHBoxLayout,
    QLabel,
    QMenu,
    QPushButton,
    QSizePolicy,
    QWidget,
)

from napari_embedding_game.session.maps import MapTree, Place
from napari_embedding_game.session.session import Session
from napari_embedding_game.ui.connections import Connections

LONGEST = 18
"""Letters of a title; the tooltip has all of them."""


class Breadcrumb(QWidget):
    """A click goes to a map above or to a map of a part; hidden where there is none.

    Parameters
    ----------
    session : Session
    maps : MapTree
    """

    map_requested = Signal(str)
    """The key of a map."""

    def __init__(self, session: Session, maps: MapTree) -> None:
        super().__init__()
        self._session = session
        self._maps = maps
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(0, 0, 0, 2)
        self._row.setSpacing(4)
        self.buttons: list[QPushButton] = []
        self.parts: QPushButton | None = None
        """Opens a menu of the maps of parts of this one, where there are any."""
        self._connections = Connections(self)
        self._connections.connect(self._maps.changed, self.refresh)
        self.refresh()

    def refresh(self) -> None:
        """Show the present way."""
        while self._row.count():
            widget = self._row.takeAt(0).widget()
            if widget is not None:
                widget.deleteLater()
        path = self._maps.path if self._session.dataset is not None else []
        self.buttons = [self._button(place) for place in path[:-1]]
        for button in self.buttons:
            self._row.addWidget(button)
            self._row.addWidget(QLabel("›"))
        if self.buttons:
            here = QLabel(_short(path[-1].title))
            here.setProperty("role", "title")
            here.setMinimumWidth(1)  # two long names must not widen the dock
            here.setToolTip(path[-1].title)
            self._row.addWidget(here, 1)
        parts = self._maps.parts if path else []
        self.parts = self._menu_button(parts) if parts else None
        if self.parts is not None:
            self._row.addWidget(self.parts)
        if not self.buttons:
            self._row.addStretch(1)
        self.setVisible(len(path) > 1 or bool(parts))

    def _menu_button(self, parts: list[Place]) -> QPushButton:
        button = QPushButton("Other maps  ")
        button.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        button.setToolTip(
            "Go on with a map of some of these points, or of all in another space."
        )
        menu = QMenu(button)
        for place in parts:
            action = menu.addAction(f"{place.title} ({place.n_points:,} points)")
            action.triggered.connect(
                lambda _=False, key=place.key: self.map_requested.emit(key)
            )
        button.setMenu(menu)
        return button

    def _button(self, place: Place) -> QPushButton:
        button = QPushButton(f"‹ {_short(place.title)}")
        button.setToolTip(f"Back to {place.title} ({place.n_points:,} points).")
        button.clicked.connect(
            lambda _=False, key=place.key: self.map_requested.emit(key)
        )
        return button


def _short(title: str) -> str:
    return title if len(title) <= LONGEST else f"{title[: LONGEST - 1]}…"
