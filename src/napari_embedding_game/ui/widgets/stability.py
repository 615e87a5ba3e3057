"""Stability: which points keep their neighbours in maps of other seeds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qtpy.QtWidgets import QHBoxLayout, QProgressBar, QPushButton, QSpinBox

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.stages import Stage
from napari_embedding_game.session.session import sentence
from napari_embedding_game.session.stability import (
    COLUMN,
    StabilityFound,
    keep_others,
    stability_job,
    take_stability,
)
from napari_embedding_game.ui.map_widget import MapWidget
from napari_embedding_game.ui.style.form_widgets import show_text, text_label
from napari_embedding_game.ui.tasks.worker import Latest

if TYPE_CHECKING:
    import napari

MEASURE, STOP = "Measure stability", "Stop"
MEANS = (
    "Makes the map again with other random numbers, in the background, and says which "
    "points then have other neighbours: what such points seem to be near to is chance. "
    "The map on show stays as it is."
)
KEPT = "The maps are in the timeline: Compare shows them side by side."
WITHOUT = "What was steered on the way or done by hand is not repeated."
STEPS = 1000
"""Of the bar."""


class StabilityWidget(MapWidget):
    """A button, how many seeds, how far it is, and what came out."""

    def __init__(self, napari_viewer: napari.Viewer) -> None:
        super().__init__(napari_viewer)
        self._session = session = self.workspace.session
        self._jobs = Latest(self, self._on_found, self._on_failed, self._on_progress)
        self._found: StabilityFound | None = None
        """What was measured last, as long as its map is on show."""
        self.button = QPushButton(MEASURE)
        self.seeds = QSpinBox()
        self.seeds.setRange(1, 50)
        self.seeds.setValue(5)
        self.seeds.setSuffix(" maps")
        self.seeds.setToolTip("Other maps to make; each takes as long as this one.")
        self.bar = QProgressBar()
        self.bar.setTextVisible(False)
        self.bar.setRange(0, STEPS)
        self.note = text_label()
        self.keep = QPushButton("Keep the maps to compare")
        self.keep.setToolTip("Puts the maps of the other seeds into the timeline.")
        row = QHBoxLayout()
        row.addWidget(self.button, 1)
        row.addWidget(self.seeds)
        self.column.addWidget(text_label(MEANS))
        self.column.addLayout(row)
        for widget in (self.bar, self.note, self.keep):
            self.column.addWidget(widget)
        self.column.addStretch(1)
        self.button.clicked.connect(self._on_button)
        self.keep.clicked.connect(self._keep)
        changes = session.state_changed, session.dataset_changed
        self._connections.connect_all(changes, self._on_session)
        self._show_busy(False)
        self._offer(None)
        self._on_session()
        self.begin()

    def _on_session(self, *event: object) -> None:
        """Measure a map at rest only; a new one takes the former sentence away."""
        session = self._session
        can_measure = session.snapshot is not None and session.state not in (
            "preparing",
            "running",
        )
        if not can_measure:
            self._end("" if session.snapshot is not None else "There is no map yet.")
            self._offer(None)
        elif self._found is None and not self._jobs.is_busy:
            show_text(self.note, "")
        self.button.setEnabled(can_measure)

    def _on_button(self) -> None:
        if self._jobs.is_busy:
            self._end("Stopped: the map on show is as it was.")
            return
        try:
            job = stability_job(self._session, self.seeds.value())
        except DataError as error:
            show_text(self.note, sentence(error), "warning")
            return
        self._offer(None)
        self._show_busy(True)
        self._jobs.ask(job)

    def _on_progress(self, stage: Stage) -> None:
        self.bar.setValue(round(STEPS * (stage.share or 0.0)))
        show_text(self.note, f"{stage.text} …", "note")

    def _on_found(self, found: StabilityFound) -> None:
        self._end()
        if not take_stability(self._session, found):
            return
        played, look = self._session.played, self._session.look
        by_hand = played is not None and (played.steered or played.forced)
        show_text(self.note, f"{found.stability.told()} {WITHOUT if by_hand else ''}")
        self._offer(found)
        if look.color_by == COLUMN:  # another one of the same name
            look.events.color_by.emit(COLUMN)
        look.color_by = COLUMN

    def _offer(self, found: StabilityFound | None) -> None:
        """Offer to keep the maps that were made, or no longer."""
        self._found = found
        self.keep.setVisible(found is not None and len(found.others) > 0)

    def _keep(self) -> None:
        if self._found is not None and keep_others(self._session, self._found):
            show_text(self.note, KEPT)
        self.keep.hide()

    def _on_failed(self, error: BaseException) -> None:
        self._end()
        show_text(self.note, sentence(error), "warning")

    def _end(self, told: str = "") -> None:
        self._jobs.stop()
        self._show_busy(False)
        show_text(self.note, told, "note")

    def _show_busy(self, is_busy: bool) -> None:
        self.button.setText(STOP if is_busy else MEASURE)
        self.seeds.setEnabled(not is_busy)
        self.bar.setVisible(is_busy)
        self.bar.setValue(0)
