"""Compare the map on show with others of the timeline: a way between, or panels."""

from __future__ import annotations

from qtpy.QtCore import Qt
from qtpy.QtWidgets import (
    QCheckBox,
    QHBoxLayout,
    QPushButton,
    QSlider,
    QVBoxLayout,
    QWidget,
)

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.session.comparing import Compared
from napari_embedding_game.session.session import Session, sentence
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.style.coloring import CLUSTER, MOVEMENT
from napari_embedding_game.ui.style.form_widgets import show_text, text_label
from napari_embedding_game.ui.tasks.worker import Latest

STEPS = 100
"""Places of the slider."""
COMPARING = "Comparing the two maps …"
SLIDER_TIP = (
    "Drag to let every point go from its place on this map to its place on the other, "
    "which is turned, mirrored and scaled to lie on this one as well as it can. Only "
    "what you see changes: let the slider go back to the left, or end the comparison, "
    "and the map is as it was."
)
COLOR_TIP = (
    "The brighter a point, the farther it lies from its place on the other map. Groups "
    "that move as one keep their shape; single bright points have no stable place."
)
SIDE_TIP = (
    "Draw the maps beside each other, each laid on the first as well as it can, in the "
    "same colours. What you choose in one is chosen in all, and maps in space turn "
    "together. While they are, Compare with another mark adds that map."
)
PLANE_OR_SPACE = "Only maps of 2 or 3 dimensions can be laid side by side."


class ComparisonBar(QWidget):
    """A slider from this map to the other, colours by movement, and what differs.

    Parameters
    ----------
    session : Session
    """

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._comparing = Latest(self, self._take, self._on_failed)
        self._former_color = CLUSTER
        self.here, self.there = text_label("This map", wraps=False), text_label()
        self.other = text_label("The other", wraps=False)
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setRange(0, STEPS)
        self.slider.setToolTip(SLIDER_TIP)
        self.slider.setAccessibleName("Way from this map to the other")
        self.by_movement = QCheckBox("Colour by movement")
        self.by_movement.setToolTip(COLOR_TIP)
        self.side_by_side = QCheckBox("Side by side")
        self.words = text_label()
        self.close_button = QPushButton("End comparison")
        self.close_button.setToolTip("Show this map as it is.")
        self._build()
        self.slider.valueChanged.connect(self._on_slider)
        self.by_movement.clicked.connect(self._on_color)
        self.side_by_side.clicked.connect(session.comparing.lay_side_by_side)
        self.close_button.clicked.connect(self._on_end)
        self._connections = Connections(self)
        self._connections.call(session.comparing.end)
        self._connections.connect(session.comparing.changed, self._on_comparison)
        self._connections.connect(session.comparing.laid_out, self._on_laid_out)
        self._connections.connect(session.look.events.color_by, self._on_look)
        self._on_comparison()

    def begin(self, number: int) -> None:
        """Compare the map on show with the mark of this number."""
        try:
            job = self._session.comparing.job(number)
        except DataError as error:
            self._session.say(str(error))
            return
        self._comparing.ask(job)
        self._set_known(False)
        show_text(self.words, COMPARING)
        self.setVisible(True)

    # Inside

    def _build(self) -> None:
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 2, 0, 2)
        column.setSpacing(3)
        row = QHBoxLayout()
        row.addWidget(self.here)
        row.addWidget(self.slider, 1)
        row.addWidget(self.other)
        column.addWidget(self.there)
        column.addLayout(row)
        column.addWidget(self.words)
        choices = QHBoxLayout()
        choices.addWidget(self.side_by_side)
        choices.addWidget(self.by_movement)
        choices.addStretch()
        column.addLayout(choices)
        column.addWidget(self.close_button)

    def _set_known(self, is_known: bool) -> None:
        for widget in (self.there, self.by_movement, self.side_by_side):
            widget.setVisible(is_known)
        is_way = is_known and not self._session.comparing.is_side_by_side
        for widget in (self.here, self.slider, self.other):
            widget.setVisible(is_way)

    def _take(self, compared: Compared) -> None:
        self._session.comparing.take(compared)
        self._on_comparison()

    def _on_failed(self, error: BaseException) -> None:
        self._session.say(sentence(error))
        self._on_comparison()

    def _on_comparison(self) -> None:
        if self._comparing.is_busy:
            return
        compared = self._session.comparing.current
        self.setVisible(compared is not None)
        self.slider.blockSignals(True)
        self.slider.setValue(0)
        self.slider.blockSignals(False)
        if compared is not None:
            self._set_known(True)
            mark = compared.mark
            show_text(self.there, f"The other: {mark.title} ({mark.origin})")
            show_text(self.words, compared.told())
        elif self._session.look.color_by == MOVEMENT:
            self._session.look.color_by = self._former_color
        self._on_laid_out()
        self._on_look()

    def _on_laid_out(self) -> None:
        comparing = self._session.comparing
        is_beside = comparing.is_side_by_side
        self.side_by_side.setChecked(is_beside)
        is_possible = comparing.can_lie_side_by_side
        self.side_by_side.setEnabled(is_possible)
        self.side_by_side.setToolTip(SIDE_TIP if is_possible else PLANE_OR_SPACE)
        is_way = comparing.current is not None and not is_beside
        for widget in (self.here, self.slider, self.other):
            widget.setVisible(is_way)

    def _on_slider(self, value: int) -> None:
        self._session.comparing.show(value / STEPS)

    def _on_color(self, is_on: bool) -> None:
        look = self._session.look
        if is_on:
            self._former_color = look.color_by
            look.color_by = MOVEMENT
        elif look.color_by == MOVEMENT:
            look.color_by = self._former_color

    def _on_look(self, *event: object) -> None:
        self.by_movement.setChecked(self._session.look.color_by == MOVEMENT)

    def _on_end(self) -> None:
        self._comparing.stop()
        self._session.comparing.end()
        self._on_comparison()
