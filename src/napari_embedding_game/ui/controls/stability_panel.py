"""Whether points keep their neighbours with other seeds: asked for by a button."""

from __future__ import annotations

from qtpy.QtWidgets import (
    QHBoxLayout,
    QProgressBar,
    QPushButton,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.data.stages import Stage
from napari_embedding_game.session.session import Session, sentence
from napari_embedding_game.session.stability import (
    COLUMN,
    StabilityFound,
    keep_others,
    stability_job,
    take_stability,
)
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.style.busy_bar import move_bar
from napari_embedding_game.ui.style.form_widgets import show_text, text_label
from napari_embedding_game.ui.tasks.worker import Latest

N_SEEDS, MOST_SEEDS = 5, 50
MEASURE, STOP = "Measure stability", "Stop"
MEANS = (
    "Makes the map again with other random numbers, in the background, and tells which "
    "points then have other neighbours: what such points seem to be near to is chance. "
    "The map on show stays as it is."
)
KEEP_MEANS = (
    "Puts the maps of the other seeds into the timeline, laid on the one that you see: "
    "Compare shows them with small pictures, side by side, or one turning into the "
    "other."
)
KEPT = "The maps are in the timeline: Compare under the curve shows them."
STEPS = 100
"""Of the bar, for each map."""
WITHOUT = "What was steered on the way or done by hand is not repeated."


class StabilityPanel(QWidget):
    """A button, how many seeds, how far it is, and what came out.

    Parameters
    ----------
    session : Session
    """

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._jobs = Latest(self, self._on_found, self._on_failed, self._on_progress)
        self.button = QPushButton(MEASURE)
        self.button.setToolTip(MEANS)
        self.seeds = QSpinBox()
        self.seeds.setRange(1, MOST_SEEDS)
        self.seeds.setValue(N_SEEDS)
        self.seeds.setSuffix(" maps")
        self.seeds.setToolTip(
            "How many other maps are made; each takes about as long as this one."
        )
        self.bar = QProgressBar()
        self.bar.setFixedHeight(16)
        self.bar.setTextVisible(False)
        self.note = text_label()
        self.keep = QPushButton()
        self.keep.setToolTip(KEEP_MEANS)
        self.keep.hide()
        self._found: StabilityFound | None = None
        """What was measured last, as long as its map is on show."""
        row = QHBoxLayout()
        row.addWidget(self.button, 1)
        row.addWidget(self.seeds)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 4, 0, 0)
        column.setSpacing(3)
        column.addLayout(row)
        column.addWidget(self.bar)
        column.addWidget(self.note)
        column.addWidget(self.keep)
        self.bar.hide()
        show_text(self.note, "")
        self.button.clicked.connect(self._on_button)
        self.keep.clicked.connect(self._keep)
        self._connections = Connections(self)
        for signal in (session.state_changed, session.dataset_changed):
            self._connections.connect(signal, self._on_session)
        self._on_session()

    def _on_session(self, *event: object) -> None:
        """Measure a map at rest only; a new one takes the former sentence away."""
        session = self._session
        is_moving = session.state in ("preparing", "running")
        if is_moving or session.snapshot is None:
            self._end()
            show_text(self.note, "")
            self._offer(None)
        self.button.setEnabled(not is_moving and session.snapshot is not None)

    def _on_button(self) -> None:
        if self._jobs.is_busy:
            self._end()
            show_text(self.note, "Stopped: the map on show is as it was.")
            return
        try:
            stages = stability_job(self._session, self.seeds.value())
        except DataError as error:
            show_text(self.note, sentence(error), "warning")
            return
        self._offer(None)
        self._show_busy(True)
        self._jobs.ask(stages)

    def _on_progress(self, stage: Stage) -> None:
        move_bar(self.bar, round(STEPS * (stage.share or 0.0)), STEPS)
        show_text(self.note, f"{stage.text} …")

    def _on_found(self, found: StabilityFound) -> None:
        self._end()
        if not take_stability(self._session, found):
            return
        played = self._session.played
        by_hand = played is not None and (played.steered or played.forced)
        told = [found.stability.told(), *([WITHOUT] if by_hand else [])]
        show_text(self.note, " ".join(told))
        self._offer(found)
        look = self._session.look
        if look.color_by == COLUMN:  # another one of the same name
            look.events.color_by.emit(COLUMN)
        look.color_by = COLUMN

    def _offer(self, found: StabilityFound | None) -> None:
        """Offer to keep the maps that were made, or no longer."""
        self._found = found
        n_maps = 0 if found is None else len(found.others)
        self.keep.setVisible(n_maps > 0)
        if n_maps:
            maps = "this map" if n_maps == 1 else f"these {n_maps} maps"
            self.keep.setText(f"Keep {maps} to compare")

    def _keep(self) -> None:
        found = self._found
        if found is not None and keep_others(self._session, found):
            show_text(self.note, KEPT)
        self._offer(None)

    def _on_failed(self, error: BaseException) -> None:
        self._end()
        show_text(self.note, sentence(error), "warning")

    def _end(self) -> None:
        self._jobs.stop()
        self._show_busy(False)

    def _show_busy(self, is_busy: bool) -> None:
        self.button.setText(STOP if is_busy else MEASURE)
        self.seeds.setEnabled(not is_busy)
        self.bar.setVisible(is_busy)
        self.bar.setValue(0)
