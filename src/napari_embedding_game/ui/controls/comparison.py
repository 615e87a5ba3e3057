"""Compare the map on show with another: a slider between the two, or side by side."""

from __future__ import annotations

from qtpy.QtCore import QSignalBlocker, Qt
from qtpy.QtWidgets import (
    QCheckBox,
    QHBoxLayout,
    QPushButton,
    QSlider,
    QVBoxLayout,
    QWidget,
)

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.session.comparing import Compared, comparing_job
from napari_embedding_game.session.session import Session, sentence
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.style.coloring import CLUSTER, MOVEMENT
from napari_embedding_game.ui.style.form_widgets import show_text, text_label
from napari_embedding_game.ui.tasks.worker import Latest

STEPS = 100
"""Places of the slider."""
SLIDER_TIP = (
    "Drag to let every point go from this map to the other, which is turned, mirrored "
    "and scaled to lie on this one. Only what you see changes."
)
COLOR_TIP = (
    "The brighter a point, the farther it lies from its position on the other map."
)
SIDE_TIP = "Draw the maps next to each other; a selection in one is made in all."


class Comparison(QWidget):
    """A slider from this map to the other, colours by movement, and what differs."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._comparing = Latest(self, self._take, self._on_failed)
        self._former_color = CLUSTER
        self.there, self.words = text_label(), text_label()
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setRange(0, STEPS)
        self.slider.setToolTip(SLIDER_TIP)
        self.by_movement = QCheckBox("Colour by movement")
        self.by_movement.setToolTip(COLOR_TIP)
        self.side_by_side = QCheckBox("Side by side")
        self.side_by_side.setToolTip(SIDE_TIP)
        self.close_button = QPushButton("End comparison")
        self.close_button.setToolTip("Show this map as it is.")
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 2, 0, 2)
        column.setSpacing(3)
        for widget in (self.there, self.slider, self.words):
            column.addWidget(widget)
        choices = QHBoxLayout()
        choices.addWidget(self.side_by_side)
        choices.addWidget(self.by_movement)
        column.addLayout(choices)
        column.addWidget(self.close_button)
        view = session.view
        self.slider.valueChanged.connect(lambda value: view.show(value / STEPS))
        self.by_movement.clicked.connect(self._on_color)
        self.side_by_side.clicked.connect(view.lay_side_by_side)
        self.close_button.clicked.connect(self._on_end)
        self._connections = Connections(self)
        self._connections.call(view.end_comparison)
        changes = view.compared_changed, view.laid_out, session.look.events.color_by
        self._connections.connect_all(changes, self.refresh)
        self.refresh()

    def begin(self, number: int) -> None:
        """Compare the map on show with the mark of this number."""
        try:
            job = comparing_job(self._session, number)
        except DataError as error:
            self._session.say(str(error))
            return
        self._comparing.ask(job)
        self.refresh()

    def refresh(self, *event: object) -> None:
        """Show the comparison as it is."""
        view, look = self._session.view, self._session.look
        compared, is_busy = view.compared, self._comparing.is_busy
        self.setVisible(is_busy or compared is not None)
        self.slider.setVisible(compared is not None and not view.is_side_by_side)
        with QSignalBlocker(self.slider):
            self.slider.setValue(round(STEPS * view.share) if compared else 0)
        self.side_by_side.setVisible(view.can_lie_side_by_side)
        self.side_by_side.setChecked(view.is_side_by_side)
        self.by_movement.setVisible(compared is not None)
        self.by_movement.setChecked(look.color_by == MOVEMENT)
        if is_busy:
            show_text(self.words, "Comparing the two maps …")
        elif compared is not None:
            mark = compared.mark
            show_text(self.there, f"The other map: {mark.title} ({mark.origin})")
            show_text(self.words, compared.told())
        elif look.color_by == MOVEMENT:
            look.color_by = self._former_color

    # Inside

    def _take(self, compared: Compared) -> None:
        self._session.view.compare(compared)
        self.refresh()

    def _on_failed(self, error: BaseException) -> None:
        self._session.say(sentence(error))
        self.refresh()

    def _on_color(self, is_on: bool) -> None:
        look = self._session.look
        if is_on:
            self._former_color = look.color_by
        look.color_by = MOVEMENT if is_on else self._former_color

    def _on_end(self) -> None:
        self._comparing.stop()
        self._session.view.end_comparison()
        self.refresh()
