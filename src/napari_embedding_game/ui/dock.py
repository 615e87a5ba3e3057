"""The main dock: Data, Game, Run and Look, from top to bottom."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from qtpy.QtCore import QEvent, QObject, QSize, Qt, QTimer
from qtpy.QtGui import QKeyEvent
from qtpy.QtWidgets import QScrollArea, QVBoxLayout, QWidget

from napari_embedding_game.session.session import Session
from napari_embedding_game.ui.data_part import DataPart
from napari_embedding_game.ui.game_part import GamePart
from napari_embedding_game.ui.hover import Hover
from napari_embedding_game.ui.look_part import LookPart
from napari_embedding_game.ui.map_names import NamesOnMap
from napari_embedding_game.ui.parts import ignore_idle_wheel, skip_what_is_folded
from napari_embedding_game.ui.player import Player
from napari_embedding_game.ui.run_part import RunPart
from napari_embedding_game.ui.select_part import SelectPart
from napari_embedding_game.ui.theme import theme_colors

if TYPE_CHECKING:
    import napari

WIDTH = 350
"""Also the least: in a small window Qt would lay the inspector over a wider dock."""


class Closing(QObject):
    """Calls back once when a docked widget is closed, whatever closed it.

    napari takes a closed dock's widget out of its parent without telling it,
    closing the window tells the window only, and a program that ends closes its
    windows when no further event is handed out.
    """

    def __init__(self, widget: QWidget, on_close: Callable[[], None]) -> None:
        super().__init__(widget)
        self._widget = widget
        self._window: QWidget | None = None
        self._is_asked = False
        """Whether the window was asked to close, and has not refused."""
        self._on_close: Callable[[], None] | None = on_close
        widget.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Watch, and let every event through."""
        if watched is self._widget:
            self._on_widget(event.type())
        elif watched is self._window:
            self._on_window(event.type())
        return False

    def close(self) -> None:
        """Call back, the first time."""
        if self._on_close is not None:
            on_close, self._on_close = self._on_close, None
            if self._window is not None:
                self._window.removeEventFilter(self)
                self._window = None  # or the dock would keep a closed window alive
            on_close()

    def _on_widget(self, kind: QEvent.Type) -> None:
        if kind == QEvent.Type.ParentChange:
            self._on_parent()
        elif kind == QEvent.Type.Show:
            self._watch_window()  # its box may have come into the window later
        elif kind == QEvent.Type.Close:
            self.close()

    def _on_window(self, kind: QEvent.Type) -> None:
        if kind == QEvent.Type.Close:
            # Whether the window agrees to close is known after this event.
            self._is_asked = True
            QTimer.singleShot(0, self._close_with_window)
        elif kind == QEvent.Type.DeferredDelete or (
            kind == QEvent.Type.Hide and self._is_asked
        ):
            self.close()

    def _on_parent(self) -> None:
        if self._widget.parentWidget() is not None:
            self._watch_window()
        elif self._window is not None:
            self.close()

    def _watch_window(self) -> None:
        window = self._widget.window()
        if self._on_close is None:
            return
        if window is not self._window and window is not self._widget:
            if self._window is not None:
                self._window.removeEventFilter(self)
            self._window = window
            window.installEventFilter(self)

    def _close_with_window(self) -> None:
        self._is_asked = False
        if self._window is None or not self._window.isVisible():
            self.close()


class GameDock(QWidget):
    """The dock a person works with.

    Parameters
    ----------
    viewer : napari.Viewer
    session : Session
        What is shown and edited.
    warm_up : bool
        Whether to load the engine in the background at once.
    """

    def __init__(
        self, viewer: napari.Viewer, session: Session, *, warm_up: bool = True
    ) -> None:
        super().__init__()
        self._viewer = viewer
        self.player = Player(viewer, session)
        self.data = DataPart(viewer, self.player)
        self.game = GamePart(session)
        self.run = RunPart(self.player)
        self.look = LookPart(self.player)
        self.select = SelectPart(self.player)
        self.names = NamesOnMap(viewer, session, self.player.layers, self)
        self.hover = Hover(viewer, self.player, self)
        self._build()
        self._on_theme()
        viewer.events.theme.connect(self._on_theme)
        self._closing = Closing(self, self.shut_down)
        if warm_up:
            self.player.warm_up()

    def shut_down(self) -> None:
        """End the run and let go of the viewer; the map stays."""
        self._viewer.events.theme.disconnect(self._on_theme)
        self.data.shut_down()
        self.select.shut_down()
        self.look.shut_down()
        self.names.close()
        self.hover.close()
        self.player.close()
        self.run.curve.close_canvas()
        self.setEnabled(False)

    def sizeHint(self) -> QSize:
        """Return a width at which no control is cut."""
        return QSize(WIDTH, super().sizeHint().height())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Clear the selection on Escape, as the canvas does."""
        if event.key() == Qt.Key.Key_Escape:
            self.player.session.selection.clear()
        else:
            super().keyPressEvent(event)

    def _build(self) -> None:
        inside = QWidget()
        column = QVBoxLayout(inside)
        column.setContentsMargins(8, 4, 8, 4)
        column.setSpacing(4)
        for part in (self.data, self.game, self.run, self.select, self.look):
            column.addWidget(part)
        column.addStretch(1)
        scroll = QScrollArea()
        scroll.setWidgetResizable(True)
        scroll.setFrameShape(QScrollArea.Shape.NoFrame)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setWidget(inside)
        self.look.answered.connect(lambda: scroll.ensureWidgetVisible(self.look, 0, 0))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(scroll)
        self.setMinimumWidth(WIDTH)
        ignore_idle_wheel(self)
        skip_what_is_folded(self)

    def _on_theme(self) -> None:
        colors = theme_colors(self._viewer.theme)
        self.setStyleSheet(colors.sheet)
        self.run.curve.set_theme(colors)
