"""Run controls: the buttons of a run, how far it is, and what went wrong."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from qtpy.QtWidgets import QMenu, QWidget

from napari_embedding_game.session.run.run import Progress
from napari_embedding_game.session.session import State
from napari_embedding_game.ui.connections import Connections, in_step
from napari_embedding_game.ui.controls.data import DataControls
from napari_embedding_game.ui.controls.save_menu import save_button
from napari_embedding_game.ui.controls.settings_form import settings_text
from napari_embedding_game.ui.style.form_widgets import (
    Text,
    commit_typed_number,
    set_role,
)
from napari_embedding_game.ui.style.layouts import (
    add_menu_entries,
    equal_width_box,
    escape_ampersands,
    push_button,
    slim_progress_bar,
    update_progress_bar,
    vertical_box,
    wrap_button_text,
)
from napari_embedding_game.ui.tasks.compilation import PARTS, CompilationWatch
from napari_embedding_game.ui.tasks.writing import WritingTask

RUN_TIP = "Lay out the map. A former map stays under Trust and earlier maps."
LATER = "then lay out the map."
CONTINUE_TIP = "Play on from this map, which stays among the earlier maps."
REMEDY_TIP = "Change settings and lay the map out anew: {}."
GIVEN_TIP = "Show a map that the data came with, and its misplaced points."
PLAIN_TIP = "Make a map of the data as they are."
RESTORED = "Opened. Click a group to look inside."
LOOKED_BACK = "An earlier map."
FINISHED = "Finished. Click a group to look inside."
SELECTED = "Escape shows all groups."
STAGE_TIP = (
    "Similar points attract each other; landmarks, the pale rings, push them apart. "
    "Nearby landmarks make a cluster."
)
STOPPED = "Stopped. The map stays."
STOPPED_EARLY = "Stopped before there was a map."
READY = "Ready. Press Run."
SAVED = "Saved automatically at %H:%M."
READING = "The data are being read."
COMPILING = "Preparing this computer for the first map (once): {} of at most {} parts"


class RunControls(QWidget):
    """Drives the run and shows its state, at the lower edge of the dock."""

    def __init__(self, data: DataControls, writing: WritingTask) -> None:
        super().__init__()
        self._first_step, reading = data.first_step, data.reading
        self._session = session = reading.workspace.session
        self._reading, self._writing = reading.jobs, writing
        self._remedy: dict[str, Any] = {}
        """Settings that remedy the warning on show."""
        self._progress: Progress | None = None
        """The last frame of the run."""
        self.run = push_button("Run", RUN_TIP, self._run)
        self.plain = push_button("Run without preparing", PLAIN_TIP, self._play, "link")
        self.given_button = push_button("", GIVEN_TIP, self._show_given, "link")
        self.maps = QMenu(self.given_button)
        self.maps.aboutToShow.connect(self._list_maps)
        text = "Continue from here"
        self.continue_button = push_button(text, CONTINUE_TIP, self._continue)
        pause_tip, stop_tip = (
            "Hold the game, or play on.",
            "End the game, keep the map.",
        )
        self.pause = push_button("Pause", pause_tip, self._pause_or_resume)
        self.stop = push_button("Stop", stop_tip, session.stop)
        self.remedy_button = push_button("", "", self._apply_remedy, "main")
        self.save = save_button(session, writing)
        self.bar = slim_progress_bar()
        self.stage, self.message = Text(role="plain"), Text(role="warning")
        self.saved = Text()
        self.stage.setToolTip(STAGE_TIP)
        self._origin = RESTORED if session.snapshot else ""
        """Where the map is from, if it was not played now."""
        self._last_state_text: str | None = None
        """What was said last of the state."""
        buttons = equal_width_box(self.run, self.pause, self.stop, self.save)
        parts = self.continue_button, buttons, self.plain, self.given_button
        parts += self.stage, self.saved, self.bar, self.message, self.remedy_button
        self.setLayout(vertical_box(*parts, margins=(0, 0, 0, 6)))
        self._compilation = CompilationWatch(self)
        connections = Connections(self)
        connections.call(self._compilation.stop)
        hear = connections.connect
        hear(self._on_compilation, self._compilation.changed)
        hear(lambda saved: self._on_map(RESTORED), session.restored)
        hear(lambda mark: self._on_map(LOOKED_BACK), session.mark_shown)
        hear(self._on_state, session.state_changed)
        hear(self._on_progress, session.progressed)
        hear(in_step(self, session, self._update_message), session.progressed)
        hear(self._on_message, session.message_changed)
        hear(lambda _: self.saved.show_text(), session.dataset_changed)
        hear(self.refresh, session.dataset_changed, session.settings.changed)
        hear(self.refresh, session.staleness_changed, reading.changed)
        hear(self.refresh, data.offers_changed)
        hear(self._update_message, session.selection.changed, writing.busy_changed)
        hear(self._on_file_saved, writing.saved)
        self._on_message(session.message)

    def show_saved(self) -> None:
        """Show that the map has just been saved automatically."""
        self.saved.show_text(time.strftime(SAVED))

    def refresh(self, *event: object) -> None:
        """Show the possible actions and the state of the run."""
        session, state = self._session, self._session.state
        moving, has_map = state in ("running", "paused"), session.snapshot is not None
        has_data, is_alive = session.dataset is not None, moving or state == "preparing"
        first, title = self._first_step()[0], "Run again" if has_map else "Run"
        self.run.setText(f"{first} and run" if first else title)
        self.run.setToolTip(f"{first} the data; {LATER}" if first else RUN_TIP)
        set_role(self.run, "" if has_map and not first else "main")
        self.pause.setText("Resume" if state == "paused" else "Pause")
        set_role(self.pause, "main" if state == "paused" else "")
        maps = list(session.given_maps)
        has_choice, is_asked = len(maps) > 1, session.settings.method == "given"
        named = f"Show the map {maps[0]}" if maps else ""
        self.given_button.setText(
            "Show a map of the file" if has_choice else escape_ampersands(named)
        )
        self.given_button.setMenu(self.maps if has_choice else None)
        set_role(self.given_button, "menu" if has_choice else "link")
        is_open = session.stale or state in ("stopped", "failed")
        is_given = state == "finished" and is_asked
        can_go_on = is_given or (is_open and session.can_continue)
        # Nothing is played that is about to be replaced.
        is_reading = self._reading.is_busy
        is_free = not (is_alive or is_reading)
        can_show = not has_map or (has_choice and is_asked)
        shown = (
            (self.run, is_free and (has_data or bool(first))),
            (self.plain, is_free and has_data and bool(first)),
            (self.given_button, is_free and bool(maps) and can_show),
            (self.remedy_button, not is_reading and bool(self._remedy)),
            (self.pause, moving),
            (self.stop, is_alive),
            (self.save, has_map and not is_alive),
            (self.bar, is_alive),
            (self.continue_button, can_go_on and has_map),
        )
        # What comes first: the focus goes on to it from what hides, not to napari's.
        for widget, is_visible in sorted(shown, key=lambda one: not one[1]):
            widget.setVisible(is_visible)
        self._update_message()

    # Inside

    def _run(self) -> None:
        commit_typed_number()
        prepare = self._first_step()[1]
        if prepare is None:
            self._play()
        else:
            prepare(self._play)

    def _play(self) -> None:
        commit_typed_number()
        self._session.play_wanted.emit(self._session.begin)

    def _list_maps(self) -> None:
        self.maps.clear()
        names = self._session.given_maps
        entries = [(name, partial(self._show_given, name), "") for name in names]
        add_menu_entries(self.maps, entries)

    def _show_given(self, name: str = "") -> None:
        session = self._session
        session.given_map = name or next(iter(session.given_maps))
        session.settings.choose_method("given")
        self._play()

    def _continue(self) -> None:
        commit_typed_number()
        if self._session.settings.method == "given":
            self._session.settings.choose_method("game")
        self._session.play_wanted.emit(self._session.continue_run)

    def _pause_or_resume(self) -> None:
        session = self._session
        (session.resume if session.state == "paused" else session.pause)()

    def _apply_remedy(self) -> None:
        self._session.settings.update(**self._remedy)
        self._play()

    # What happens

    def _on_file_saved(self, name: str, left_out: str) -> None:
        self.stage.show_text(f"Saved {name}. {left_out}".strip())

    def _on_map(self, words: str) -> None:
        """Show a map that was played at another time."""
        self._origin = words
        self.refresh()
        if self._session.snapshot is not None:
            self.stage.show_text(words)  # also where something is selected

    def _on_state(self, state: State) -> None:
        self._origin = ""
        if state == "preparing":
            self._progress = None
            update_progress_bar(self.bar, 0, 100)
        self.refresh()

    def _on_progress(self, progress: Progress) -> None:
        self._progress = progress
        snapshot = progress.snapshot
        if snapshot is not None:
            done = min(snapshot.iteration, snapshot.n_iter)
            update_progress_bar(self.bar, done, max(snapshot.n_iter, 1))

    def _on_compilation(self) -> None:
        """Show how far compiling is, while it is what a run waits for."""
        if self._is_compiling:
            update_progress_bar(self.bar, *self._compiled_parts)
        elif self._session.state == "preparing":
            update_progress_bar(self.bar, 0, 100)
        self._update_message()

    @property
    def _is_compiling(self) -> bool:
        """Whether a run waits for loops that are being compiled."""
        return self._session.state == "preparing" and self._compilation.is_compiling

    @property
    def _compiled_parts(self) -> tuple[int, int]:
        """How many parts are compiled, and how many there are at most."""
        n_begun = self._compilation.n_begun
        return n_begun, max(n_begun, PARTS)

    def _update_message(self) -> None:
        """Show another state; what was said since of the same one stays."""
        if (text := self._state_text()) != self._last_state_text:
            self._last_state_text = text
            self.stage.show_text(text)

    def _state_text(self) -> str:
        """Return the state of the run, and the possible actions."""
        session, state, progress = self._session, self._session.state, self._progress
        if self._is_compiling:
            return COMPILING.format(*self._compiled_parts)
        if state in ("preparing", "running"):
            return "" if progress is None else progress_text(progress)
        if state == "paused":
            return "Paused"
        if self._reading.is_busy or self._writing.text:
            return self._writing.text or READING
        if not session.selection.is_empty:
            is_earlier = self._origin == LOOKED_BACK
            return f"{LOOKED_BACK} {SELECTED}" if is_earlier else SELECTED
        if session.message:  # which says it better
            return ""
        if session.snapshot is None:
            is_ready = session.dataset is not None and not self._first_step()[0]
            return STOPPED_EARLY if state == "stopped" else READY if is_ready else ""
        return self._origin or {"stopped": STOPPED, "finished": FINISHED}.get(state, "")

    def _on_message(self, message: str) -> None:
        failed, settings = self._session.state == "failed", self._session.settings
        self.message.show_text(message, "error" if failed else "warning")
        remedy = self._session.remedy.items()
        self._remedy = {k: v for k, v in remedy if getattr(settings, k) != v}
        text = settings_text(self._remedy)
        changes = text if len(self._remedy) == 1 else "these changes"
        self.remedy_button.setText(wrap_button_text(f"Run with {changes}"))
        self.remedy_button.setToolTip(REMEDY_TIP.format(text))
        self.refresh()


def progress_text(progress: Progress) -> str:
    """Return what is done, and how long it takes."""
    seconds = progress.seconds_left
    if progress.snapshot is None:
        return f"{progress.stage} …"
    if seconds is None:
        return progress.stage
    left = f"{seconds:.0f} s left" if seconds < 90 else f"{seconds / 60:.0f} min left"
    return f"{progress.stage}, {left if seconds >= 1 else 'nearly done'}"
