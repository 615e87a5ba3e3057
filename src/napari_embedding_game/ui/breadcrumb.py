"""The way from the whole map to the part that is open, and back."""

from __future__ import annotations

from qtpy.QtWidgets import QHBoxLayout, QLabel, QPushButton, QWidget

from napari_embedding_game.session.maps import Place
from napari_embedding_game.ui.player import Player

LONGEST = 18
"""Letters of a title; the tooltip has all of them."""


class Breadcrumb(QWidget):
    """Hidden while the whole map is open; a click goes back to a map above."""

    def __init__(self, player: Player) -> None:
        super().__init__()
        self._player = player
        self._maps = player.keeper.maps
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(0, 0, 0, 2)
        self._row.setSpacing(4)
        self.buttons: list[QPushButton] = []
        self._maps.changed.connect(self.refresh)
        self.refresh()

    def shut_down(self) -> None:
        """Let go of the session."""
        self._maps.changed.disconnect(self.refresh)

    def refresh(self) -> None:
        """Show the present way."""
        while self._row.count():
            widget = self._row.takeAt(0).widget()
            if widget is not None:
                widget.deleteLater()
        path = self._maps.path if self._player.session.dataset is not None else []
        self.buttons = [self._button(place) for place in path[:-1]]
        for button in self.buttons:
            self._row.addWidget(button)
            self._row.addWidget(QLabel("›"))
        if path:
            here = QLabel(_short(path[-1].title))
            here.setProperty("role", "title")
            self._row.addWidget(here, 1)
        self.setVisible(len(path) > 1)

    def _button(self, place: Place) -> QPushButton:
        button = QPushButton(f"‹ {_short(place.title)}")
        button.setToolTip(f"Back to {place.title} ({place.n_points:,} points).")
        button.clicked.connect(lambda _=False, key=place.key: self._open(key))
        return button

    def _open(self, key: str) -> None:
        self._player.keeper.open(key)


def _short(title: str) -> str:
    return title if len(title) <= LONGEST else f"{title[: LONGEST - 1]}…"
