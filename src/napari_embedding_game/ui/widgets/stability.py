"""Stability: which points keep their neighbours in maps of other seeds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qtpy.QtWidgets import QProgressBar, QSpinBox

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.stages import Stage
from napari_embedding_game.session.stability import (
    COLUMN,
    stability_job,
    take_stability,
)
from napari_embedding_game.ui.map_widget import MapTool
from napari_embedding_game.ui.style.form_widgets import text_label
from napari_embedding_game.ui.style.layouts import push_button, row
from napari_embedding_game.ui.tasks.worker import Latest

if TYPE_CHECKING:
    import napari

    from napari_embedding_game.core.inspect.compare import Stability
    from napari_embedding_game.core.snapshot import Snapshot

MEASURE, STOP = "Measure stability", "Stop"
MEANS = (
    "Makes the map again with other random numbers, in the background, and says which "
    "points then have other neighbours: what such points seem to be near to is chance. "
    "The map on show stays as it is."
)
WITHOUT = "What was steered on the way or done by hand is not repeated."
NO_MAP, STOPPED = "There is no map yet.", "Stopped: the map on show is as it was."
STEPS = 1000
"""Of the bar."""


class StabilityWidget(MapTool):
    """A button, how many seeds, how far it is, and what came out."""

    def __init__(self, napari_viewer: napari.Viewer) -> None:
        super().__init__(napari_viewer)
        session = self._session
        self._jobs = Latest(self, self._on_found, self._on_failed, self._on_stage)
        self._is_told = False
        """Whether what was measured last is of the map on show."""
        self.button = push_button(MEASURE, "", self._on_button, "main")
        self.seeds, self.bar = QSpinBox(), QProgressBar()
        self.seeds.setRange(1, 50)
        self.seeds.setValue(5)
        self.seeds.setSuffix(" maps")
        self.seeds.setToolTip("Other maps to make; each takes as long as this one.")
        self.bar.setTextVisible(False)
        self.bar.setRange(0, STEPS)
        changes = session.state_changed, session.dataset_changed
        self._connections.connect_all(changes, self._on_session)
        parts = row(self.button, self.seeds), self.bar, self.state
        self.lay_out(text_label(MEANS), *parts)
        self._end()
        self._on_session()

    def _on_session(self, *event: object) -> None:
        """Measure a map at rest only; a new one takes the former sentence away."""
        session = self._session
        can_measure = session.snapshot is not None and not session.is_moving
        if not can_measure:
            self._end("" if session.snapshot is not None else NO_MAP)
            self._is_told = False
        elif not self._is_told and not self._jobs.is_busy:
            self.say()
        self.button.setEnabled(can_measure)

    def _on_button(self) -> None:
        if self._jobs.is_busy:
            self._end(STOPPED)
            return
        try:
            job = stability_job(self._session, self.seeds.value())
        except DataError as error:
            self.say_error(error)
            return
        self._is_told = False
        self._jobs.ask(job)
        self._show_busy()

    def _on_stage(self, stage: Stage) -> None:
        self.bar.setValue(round(STEPS * (stage.share or 0.0)))
        self.say(f"{stage.text} …")

    def _on_found(self, found: tuple[Snapshot, Stability]) -> None:
        self._end()
        self._is_told = take_stability(self._session, *found)
        if not self._is_told:
            return
        played, look = self._session.played, self._session.look
        by_hand = played is not None and (played.steered or played.forced)
        self.say(f"{found[1].told()} {WITHOUT if by_hand else ''}")
        if look.color_by == COLUMN:  # another one of the same name
            look.events.color_by.emit(COLUMN)
        look.color_by = COLUMN

    def _on_failed(self, error: BaseException) -> None:
        self._end()
        self.say_error(error)

    def _end(self, text: str = "") -> None:
        self._jobs.stop()
        self._show_busy()
        self.say(text)

    def _show_busy(self) -> None:
        is_busy = self._jobs.is_busy
        self.button.setText(STOP if is_busy else MEASURE)
        self.seeds.setEnabled(not is_busy)
        self.bar.setVisible(is_busy)
        self.bar.setValue(0)
