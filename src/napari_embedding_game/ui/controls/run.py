"""Run controls: buttons, progress, energy curve, messages."""

from __future__ import annotations

from typing import Any

from magicgui.widgets import ProgressBar, PushButton
from qtpy.QtCore import Signal
from qtpy.QtWidgets import QHBoxLayout, QToolButton, QVBoxLayout, QWidget

from napari_embedding_game.core.energy.methods import get_method
from napari_embedding_game.core.snapshot import Snapshot
from napari_embedding_game.data.stages import Stage
from napari_embedding_game.session.run.run import Progress
from napari_embedding_game.session.session import ALIVE, Session, State
from napari_embedding_game.session.timeline import Mark
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.controls.energy_curve import EnergyCurve
from napari_embedding_game.ui.controls.method_choices import settings_text
from napari_embedding_game.ui.controls.save_menu import SaveMenu
from napari_embedding_game.ui.controls.timeline_strip import TimelineStrip
from napari_embedding_game.ui.images.linked_layers import LinkedLayers
from napari_embedding_game.ui.style.busy_bar import BusyBar, move_bar
from napari_embedding_game.ui.style.button_text import WrappedText
from napari_embedding_game.ui.style.coloring import STRETCH
from napari_embedding_game.ui.style.form_widgets import (
    ControlsSection,
    finish_typing,
    set_role,
    show_text,
    text_label,
)
from napari_embedding_game.ui.style.status_label import StatusLabel
from napari_embedding_game.ui.style.texts import (
    ISOLATION_MEANS,
    NO_PRESSURE,
    PRESSURE_MEANS,
    STRETCH_MEANS,
    far_text,
    unlike_text,
)
from napari_embedding_game.ui.tasks.throttle import throttled

WORDS_MS = 250
"""Least time between two texts, and two curves, while the game runs: whatever
changes in a window with a canvas has all of the window put together anew."""
RESTORED = "The map as it was saved. Continue from here plays on."
RUN_TIP = "Lay out the map from its start. A map that is there stays in the timeline."
FINISHED = "Finished. Click a cluster, or change Repulsion."
AT_REST = "Finished. The points have come to rest."
STOPPED = "Stopped. The map stays."
LOOKED_BACK = "A map of the timeline. Continue from here plays on."
STOPPED_EARLY = "Stopped before there was a map."
READY = "Ready. Press Run, and watch the map form."
PREPARE_FIRST = "Prepare the data first, above."
WARMING = "Loading the engine in the background …"
HASH_TIP = (
    "Map {}: who has the same digits has the same map, to the last bit. The same data, "
    "settings and seed give them on another computer, too."
)
READING = "Other data are being read: Run waits for them."


class RunControls(ControlsSection):
    """Drives the run and tells where it stands.

    The buttons, and what has to be seen at once, are in ``bar_below``, which the dock
    keeps in view below what is scrolled; the figures of the map are in the section.

    Parameters
    ----------
    session : Session
    linked : LinkedLayers
    """

    play_requested = Signal()
    """A new run, in place of the present one."""
    continue_requested = Signal()
    """A run that goes on from the map on show."""
    """A run that begins where the same rows lie on another map."""
    save_requested = Signal(object)
    """The path of a file for the map, in the format that its ending says."""
    panels_requested = Signal(object)
    """Of a figure of several panels; brings the widget to ask over."""
    save_session_requested = Signal(object)
    """The path of a session file."""
    copy_methods_requested = Signal()
    """The paragraph on methods, to the clipboard."""
    write_features_requested = Signal()
    """Columns of the map in the features of the layer."""
    mended = Signal()
    """Settings were changed to mend what the message says."""

    def __init__(self, session: Session, linked: LinkedLayers) -> None:
        super().__init__()
        self._session = session
        self.bar_below = QWidget(self)
        """Buttons, stage and messages, for the lower edge of the dock."""
        self._is_preparation_offered = self._is_reading = self._is_warming = False
        self.run = PushButton(text="Run", tooltip=RUN_TIP)
        self.pause = PushButton(
            text="Pause", tooltip="Hold the game, or play on where it was held."
        )
        self.step = PushButton(
            text="Step", tooltip="Play a few iterations and hold again."
        )
        self.stop = PushButton(text="Stop", tooltip="End the game and keep the map.")
        self.save = SaveMenu(session, linked)
        self.bar = ProgressBar(min=0, max=100, value=0)
        self._busy_bar = BusyBar(self.bar.native)
        self.stage = text_label()
        self.status = StatusLabel()
        self.far = StatusLabel()
        self.far.setToolTip(f"Found by their {STRETCH_MEANS}")
        self.unlike = StatusLabel()
        self.unlike.setToolTip(f"Found by their {ISOLATION_MEANS}")
        self.show_misplaced = QToolButton()
        self.trust = self._trust_line()
        """How far the map can be trusted, in one line."""
        self._trusted: float | None = None
        self.squeezed = StatusLabel()
        self.squeezed.setToolTip(f"Share of the points under {PRESSURE_MEANS}")
        self.message = text_label(role="warning")
        self.mend = PushButton(text="")
        WrappedText(self.mend.native)
        self._remedy: dict[str, Any] = {}
        """Settings that mend what the message says."""
        self.curve = EnergyCurve()
        self.timeline = TimelineStrip(session)
        self._progress: Progress | None = None
        """The last frame of the run."""
        self._words_turn = throttled(WORDS_MS, self._tell_progress, self, at_once=True)
        self._connections = Connections(self)
        self._build()
        self._connect()
        self._on_state(self._session.state)
        self._on_message(self._session.message)

    def tell_saved(self, name: str) -> None:
        """Tell what was written."""
        show_text(self.stage, f"Saved {name}.")

    def note_offer(self, is_offered: bool) -> None:
        """Step back while the data are to be prepared first."""
        if is_offered != self._is_preparation_offered:
            self._is_preparation_offered = is_offered
            self._on_state(self._session.state)

    def note_warming(self, is_warming: bool) -> None:
        """Tell that the engine is being loaded; Run can be pressed all the same."""
        self._is_warming = is_warming
        if self._session.state == "idle":
            self._tell_state("idle")

    def note_reading(self, stage: Stage | None) -> None:
        """Play nothing that is about to be replaced; None: nothing is read any more."""
        if self._is_reading != (stage is not None):
            self._is_reading = stage is not None
            self._enable_run()
            self._tell_state(self._session.state)

    def show_trust(self, trustworthiness: float | None) -> None:
        """Show how trustworthy the map is as a whole, 0 to 1; None: not known."""
        self._trusted = trustworthiness
        if self._session.snapshot is not None:
            self._tell_far(self._session.snapshot)

    def tell_copied(self, what: str) -> None:
        """Tell what was copied to the clipboard."""
        show_text(self.stage, f"Copied {what}.")

    def _build(self) -> None:
        self.bar.native.setProperty("role", "slim")
        self.bar.native.setTextVisible(False)
        self.bar.native.setFixedHeight(6)
        below = QVBoxLayout(self.bar_below)
        below.setContentsMargins(8, 0, 8, 6)
        below.setSpacing(4)
        below.addWidget(self.timeline.go_on.native)
        below.addLayout(self._buttons())
        for widget in (
            self.stage,
            self.bar.native,
            self.message,
            self.mend.native,
        ):
            below.addWidget(widget)
        for widget in (self.status, self.unlike, self.squeezed):
            self.column.addWidget(widget)
        self.column.addWidget(self.curve)
        self.column.addWidget(self.timeline)

    def _buttons(self) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(4)
        row.addWidget(self.run.native, 2)
        for button in (self.pause, self.step, self.stop, self.save):
            row.addWidget(button.native, 1)
        return row

    def _trust_line(self) -> QWidget:
        self.show_misplaced.setText("show")
        self.show_misplaced.setProperty("role", "edit")
        self.show_misplaced.setToolTip("Colour the points by their stretch.")
        line = QWidget()
        row = QHBoxLayout(line)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self.far, 1)
        row.addWidget(self.show_misplaced)
        return line

    def _connect(self) -> None:
        session, save = self._session, self.save
        self.run.changed.connect(self._play)
        self.mend.changed.connect(self._mend)
        self.show_misplaced.clicked.connect(self._color_by_stretch)
        self.pause.changed.connect(self._pause_or_resume)
        self.step.changed.connect(session.step)
        self.stop.changed.connect(session.stop)
        self.timeline.continue_requested.connect(self._continue)
        save.save_requested.connect(lambda path: self.save_requested.emit(path))
        save.panels_requested.connect(lambda: self.panels_requested.emit(self))
        save.copy_methods_requested.connect(lambda: self.copy_methods_requested.emit())
        save.save_session_requested.connect(
            lambda path: self.save_session_requested.emit(path)
        )
        save.write_features_requested.connect(
            lambda: self.write_features_requested.emit()
        )
        for signal, slot in (
            (session.restored, self._on_restored),
            (session.looked_back, self._on_looked_back),
            (session.state_changed, self._on_state),
            (session.progressed, self._on_progress),
            (session.message_changed, self._on_message),
            (session.dataset_changed, self._on_dataset),
        ):
            self._connections.connect(signal, slot)

    def _play(self) -> None:
        finish_typing()
        self.play_requested.emit()

    def _continue(self) -> None:
        finish_typing()
        self.continue_requested.emit()

    def _pause_or_resume(self) -> None:
        if self._session.state == "paused":
            self._session.resume()
        else:
            self._session.pause()

    def _on_restored(self) -> None:
        """Tell of a map that was played another time."""
        self._show_figures()
        if self._session.snapshot is not None:
            self._tell_snapshot(self._session.snapshot)
            show_text(self.stage, RESTORED)

    def _on_looked_back(self, mark: Mark) -> None:
        """Tell of a map of an earlier moment."""
        self._tell_snapshot(mark.snapshot)
        show_text(self.stage, LOOKED_BACK)

    def _on_dataset(self) -> None:
        self.curve.set_energies([])
        self._on_state(self._session.state)

    def _on_state(self, state: State) -> None:
        if state != "running":
            self._words_turn.cancel()  # they would be of what was before
        moving = state in ("running", "paused")
        is_alive = moving or state == "preparing"
        self.run.text = "Run" if self._session.snapshot is None else "Run again"
        self.run.native.setVisible(not is_alive)
        self.pause.native.setVisible(moving)
        self.step.native.setVisible(state == "paused")
        self.stop.native.setVisible(is_alive)
        self._enable_run()
        is_next = self._session.snapshot is None and not self._is_preparation_offered
        set_role(self.run.native, "main" if is_next else "")
        self.pause.text = "Resume" if state == "paused" else "Pause"
        self.pause.enabled = self.step.enabled = moving
        self.stop.enabled = moving or state == "preparing"
        self.save.enabled = self._session.snapshot is not None and not moving
        self.save.native.setVisible(self.save.enabled)
        self.bar.native.setVisible(is_alive)
        self._tell_state(state)

    def _enable_run(self) -> None:
        can_begin = not self._is_reading
        self.run.enabled = can_begin and self._session.dataset is not None
        self.mend.enabled = can_begin

    def _show_figures(self) -> None:
        """Take no room for figures of a map before there is, or is going to be, one."""
        session = self._session
        is_told = session.snapshot is not None or session.state != "idle"
        for widget in (self.status, self.far, self.squeezed):
            widget.setVisible(is_told)
        self.curve.setVisible(is_told)
        self.setVisible(is_told)

    def _tell_state(self, state: State) -> None:
        self._show_figures()
        if state not in ALIVE:
            self._busy_bar.end()
            move_bar(self.bar.native, 0, 100)
        if state in ("idle", "finished", "stopped", "failed"):
            show_text(self.stage, self._last_words(state))
        if state in ("idle", "preparing"):
            self.status.setText("")
            self.far.setText("")
            self._tell_unlike("")
            self.squeezed.setText("")
        elif self._session.snapshot is not None:
            self._tell_snapshot(self._session.snapshot)

    def _last_words(self, state: State) -> str:
        session = self._session
        if self._is_reading:
            return READING
        if state == "stopped" and session.snapshot is None:
            return STOPPED_EARLY
        if state == "idle" and self._is_warming:
            return WARMING
        if state == "idle" and session.dataset is not None:
            return PREPARE_FIRST if self._is_preparation_offered else READY
        run = session.run
        finished = FINISHED if run is None else _finished_text(run.settings.method)
        return {"finished": finished, "stopped": STOPPED}.get(state, "")

    def _on_progress(self, progress: Progress) -> None:
        snapshot = progress.snapshot
        if snapshot is None:
            self._busy_bar.begin()
            show_text(self.stage, f"{progress.stage} …")
            self.curve.set_energies([])
            return
        self._move_bar(snapshot)
        self._progress = progress
        if self._session.state == "running":
            self._words_turn.throttle()
        else:
            self._tell_progress()

    def _tell_progress(self) -> None:
        """Tell where the run stands by its last frame."""
        progress, state = self._progress, self._session.state
        if progress is None or progress.snapshot is None:
            return
        if state != "finished":
            show_text(self.stage, _stage_text(progress, state))
        self._tell_snapshot(progress.snapshot)

    def _move_bar(self, snapshot: Snapshot) -> None:
        if not snapshot.n_iter and self._session.state == "running":
            self._busy_bar.begin()
            return
        self._busy_bar.end()
        done = min(snapshot.iteration, snapshot.n_iter)
        move_bar(self.bar.native, done, max(snapshot.n_iter, 1))

    def _tell_snapshot(self, snapshot: Snapshot) -> None:
        self._move_bar(snapshot)
        is_moving = self._session.state == "running"
        self.status.setText(_status_text(snapshot, is_moving))
        self.status.setToolTip("" if is_moving else HASH_TIP.format(snapshot.map_hash))
        self._tell_far(snapshot)
        self._tell_unlike(unlike_text(snapshot))
        self.squeezed.setText(_squeezed_text(snapshot))
        self.curve.set_energies(self._session.energies)

    def _tell_far(self, snapshot: Snapshot) -> None:
        trusted, far = self._trusted, far_text(snapshot.stretched_share)
        is_known = trusted is not None and self._session.state != "running"
        words = [f"Trustworthy {trusted:.0%}"] if is_known else []
        self.far.setText("  ·  ".join([*words, *([far] if far else [])]))
        self.show_misplaced.setVisible(snapshot.stretched_share > 0)

    def _color_by_stretch(self) -> None:
        self._session.look.color_by = STRETCH

    def _tell_unlike(self, text: str) -> None:
        self.unlike.setText(text)
        self.unlike.setVisible(bool(text))

    def _on_message(self, message: str) -> None:
        failed = self._session.state == "failed"
        show_text(self.message, message, "error" if failed else "warning")
        self._offer_remedy(message)

    def _offer_remedy(self, message: str) -> None:
        """Offer to mend what the message says, where the engine knows how."""
        settings, remedy = self._session.settings, self._session.remedy(message)
        self._remedy = {k: v for k, v in remedy.items() if getattr(settings, k) != v}
        self.mend.native.setVisible(bool(self._remedy))
        if self._remedy:
            set_role(self.mend.native, "main")
            said = settings_text(self._remedy)
            self.mend.text = f"Run again with {said}"
            self.mend.tooltip = (
                "Change these settings and lay the map out anew from its start. Other "
                "settings stay as they are."
            )

    def _mend(self) -> None:
        remedy, self._remedy = self._remedy, {}
        for name, value in remedy.items():
            setattr(self._session.settings, name, value)
        self.mended.emit()
        self._play()


def _finished_text(method: str) -> str:
    return AT_REST if get_method(method).moved_by else FINISHED


def _status_text(snapshot: Snapshot, is_moving: bool) -> str:
    of_all = f" of {snapshot.n_iter:,}" if snapshot.n_iter else ""
    told = f"{snapshot.iteration:,}{of_all} iterations"
    return told if is_moving else f"{told}, map {snapshot.map_hash[:4]}"


def _squeezed_text(snapshot: Snapshot) -> str:
    if not snapshot.has_pressure:
        return NO_PRESSURE
    return f"{snapshot.pressured_share:.0%} of points crowded"


def _stage_text(progress: Progress, state: State) -> str:
    if state == "paused":
        return "Paused"
    if progress.seconds_left is None:
        return progress.stage
    return f"{progress.stage}, {_left(progress.seconds_left)}"


def _left(seconds: float) -> str:
    if seconds < 1:
        return "nearly done"
    if seconds < 90:
        return f"{seconds:.0f} s left"
    return f"{seconds / 60:.0f} min left"
