"""Run controls: the buttons of a run, its progress and its messages."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from qtpy.QtWidgets import QMenu, QWidget

from napari_embedding_game.session.run.run import Progress
from napari_embedding_game.session.session import State
from napari_embedding_game.ui.connections import Connections, throttle_while_running
from napari_embedding_game.ui.controls.data import DataControls
from napari_embedding_game.ui.controls.save_menu import make_save_button
from napari_embedding_game.ui.controls.settings_form import describe_settings
from napari_embedding_game.ui.style.form_widgets import (
    TextLabel,
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
    """Starts, pauses and stops runs; shows the state of the run and its messages."""

    def __init__(self, data: DataControls, writing: WritingTask) -> None:
        super().__init__()
        self._find_first_step, reading = data.find_first_step, data.reading
        self._session = session = reading.workspace.session
        self._reading, self._writing = reading.jobs, writing
        self._remedy: dict[str, Any] = {}
        """Settings that would remedy the shown warning."""
        self._progress: Progress | None = None
        """The last frame of the run."""
        self.run_button = push_button("Run", RUN_TIP, self._on_run_clicked)
        self.plain_button = push_button(
            "Run without preparing", PLAIN_TIP, self._request_run, "link"
        )
        self.given_button = push_button("", GIVEN_TIP, self._show_given_map, "link")
        self.given_maps_menu = QMenu(self.given_button)
        self.given_maps_menu.aboutToShow.connect(self._list_given_maps)
        text = "Continue from here"
        self.continue_button = push_button(
            text, CONTINUE_TIP, self._on_continue_clicked
        )
        pause_tip = "Hold the game, or play on."
        stop_tip = "End the game, keep the map."
        self.pause_button = push_button("Pause", pause_tip, self._pause_or_resume)
        self.stop_button = push_button("Stop", stop_tip, session.stop)
        self.remedy_button = push_button("", "", self._run_with_remedy, "main")
        self.save_button = make_save_button(session, writing)
        self.bar = slim_progress_bar()
        self.stage, self.message = TextLabel(role="plain"), TextLabel(role="warning")
        self.saved = TextLabel()
        self.stage.setToolTip(STAGE_TIP)
        self._origin = RESTORED if session.snapshot else ""
        """Text for a map that was opened or looked back at; "" for a map of a run."""
        self._last_state_text: str | None = None
        """The last text of the state, which is shown again only if it changes."""
        buttons = equal_width_box(
            self.run_button, self.pause_button, self.stop_button, self.save_button
        )
        parts = self.continue_button, buttons, self.plain_button, self.given_button
        parts += self.stage, self.saved, self.bar, self.message, self.remedy_button
        self.setLayout(vertical_box(*parts, margins=(0, 0, 0, 6)))
        self._compilation = CompilationWatch(self)
        connections = Connections(self)
        connections.add_cleanup(self._compilation.stop)
        connect = connections.connect
        connect(self._on_compilation_changed, self._compilation.changed)
        connect(lambda saved: self._on_map_opened(RESTORED), session.restored)
        connect(lambda mark: self._on_map_opened(LOOKED_BACK), session.mark_shown)
        connect(self._on_state_changed, session.state_changed)
        connect(self._on_run_progressed, session.progressed)
        connect(
            throttle_while_running(self, session, self._update_state_text),
            session.progressed,
        )
        connect(self._on_message_changed, session.message_changed)
        connect(lambda _: self.saved.show_text(), session.dataset_changed)
        connect(self.update_buttons, session.dataset_changed, session.settings.changed)
        connect(self.update_buttons, session.staleness_changed, reading.changed)
        connect(self.update_buttons, data.first_step_changed)
        connect(
            self._update_state_text, session.selection.changed, writing.busy_changed
        )
        connect(self._on_file_saved, writing.saved)
        self._on_message_changed(session.message)

    def show_save_time(self) -> None:
        """Show the present time as the time of the last automatic saving."""
        self.saved.show_text(time.strftime(SAVED))

    def update_buttons(self, *event: object) -> None:
        """Show the buttons that can be used in the present state, and the state's text.

        Run is hidden while a run is going on or data are read; its text names a first
        step, if one is needed.  "Continue" is shown where a stopped, failed, stale or
        given map can be played on.
        """
        session, state = self._session, self._session.state
        moving, has_map = state in ("running", "paused"), session.snapshot is not None
        has_data, is_alive = session.dataset is not None, moving or state == "preparing"
        first, title = self._find_first_step()[0], "Run again" if has_map else "Run"
        self.run_button.setText(f"{first} and run" if first else title)
        self.run_button.setToolTip(f"{first} the data; {LATER}" if first else RUN_TIP)
        set_role(self.run_button, "" if has_map and not first else "main")
        self.pause_button.setText("Resume" if state == "paused" else "Pause")
        set_role(self.pause_button, "main" if state == "paused" else "")
        maps = list(session.given_maps)
        has_choice, is_asked = len(maps) > 1, session.settings.method == "given"
        named = f"Show the map {maps[0]}" if maps else ""
        self.given_button.setText(
            "Show a map of the file" if has_choice else escape_ampersands(named)
        )
        self.given_button.setMenu(self.given_maps_menu if has_choice else None)
        set_role(self.given_button, "menu" if has_choice else "link")
        is_open = session.stale or state in ("stopped", "failed")
        is_given = state == "finished" and is_asked
        can_go_on = is_given or (is_open and session.can_continue)
        # No run begins while other data are read, which would replace it.
        is_reading = self._reading.is_busy
        is_free = not (is_alive or is_reading)
        can_show = not has_map or (has_choice and is_asked)
        shown = (
            (self.run_button, is_free and (has_data or bool(first))),
            (self.plain_button, is_free and has_data and bool(first)),
            (self.given_button, is_free and bool(maps) and can_show),
            (self.remedy_button, not is_reading and bool(self._remedy)),
            (self.pause_button, moving),
            (self.stop_button, is_alive),
            (self.save_button, has_map and not is_alive),
            (self.bar, is_alive),
            (self.continue_button, can_go_on and has_map),
        )
        # Show before hiding: the focus of a hidden button then stays in the dock.
        for widget, is_visible in sorted(shown, key=lambda entry: not entry[1]):
            widget.setVisible(is_visible)
        self._update_state_text()

    # Inside

    def _on_run_clicked(self) -> None:
        """Do the first step, if one is needed, and then request a run.

        A number that is being typed is taken over before.
        """
        commit_typed_number()
        prepare = self._find_first_step()[1]
        if prepare is None:
            self._request_run()
        else:
            prepare(self._request_run)

    def _request_run(self) -> None:
        """Take over a number that is being typed, and request a new run."""
        commit_typed_number()
        self._session.play_wanted.emit(self._session.begin)

    def _list_given_maps(self) -> None:
        """Fill the menu with the maps that came with the data."""
        self.given_maps_menu.clear()
        names = self._session.given_maps
        entries = [(name, partial(self._show_given_map, name), "") for name in names]
        add_menu_entries(self.given_maps_menu, entries)

    def _show_given_map(self, name: str = "") -> None:
        """Show a map that came with the data: request a run with the method "given".

        ``name``: the name of the map; "" for the first map.
        """
        session = self._session
        session.given_map = name or next(iter(session.given_maps))
        session.settings.choose_method("given")
        self._request_run()

    def _on_continue_clicked(self) -> None:
        """Request a run that starts from the present map.

        The method "given" is replaced by "game".
        """
        commit_typed_number()
        if self._session.settings.method == "given":
            self._session.settings.choose_method("game")
        self._session.play_wanted.emit(self._session.continue_run)

    def _pause_or_resume(self) -> None:
        """Resume a paused run, else pause the run."""
        session = self._session
        (session.resume if session.state == "paused" else session.pause)()

    def _run_with_remedy(self) -> None:
        """Change the settings as the warning proposes, and request a run."""
        self._session.settings.update(**self._remedy)
        self._request_run()

    # Events

    def _on_file_saved(self, name: str, left_out: str) -> None:
        """Show a saved file's name, and ``left_out``, a sentence on data it lacks."""
        self.stage.show_text(f"Saved {name}. {left_out}".strip())

    def _on_map_opened(self, origin: str) -> None:
        """Show the text ``origin`` of a map that was opened or looked back at."""
        self._origin = origin
        self.update_buttons()
        if self._session.snapshot is not None:
            self.stage.show_text(origin)  # also while something is selected

    def _on_state_changed(self, state: State) -> None:
        """Clear the text on where the map came from, and update the buttons.

        When a run begins, its progress is reset.
        """
        self._origin = ""
        if state == "preparing":
            self._progress = None
            update_progress_bar(self.bar, 0, 100)
        self.update_buttons()

    def _on_run_progressed(self, progress: Progress) -> None:
        """Store the progress, and move the bar to the iteration if there is a map."""
        self._progress = progress
        snapshot = progress.snapshot
        if snapshot is not None:
            done = min(snapshot.iteration, snapshot.n_iter)
            update_progress_bar(self.bar, done, max(snapshot.n_iter, 1))

    def _on_compilation_changed(self) -> None:
        """Show the progress of compilation while a run waits for it; update the text.

        When compilation has ended, the bar of a preparing run returns to 0.
        """
        if self._is_waiting_for_compilation:
            update_progress_bar(self.bar, *self._compilation_progress)
        elif self._session.state == "preparing":
            update_progress_bar(self.bar, 0, 100)
        self._update_state_text()

    @property
    def _is_waiting_for_compilation(self) -> bool:
        """Whether a run waits until loops are compiled."""
        return self._session.state == "preparing" and self._compilation.is_compiling

    @property
    def _compilation_progress(self) -> tuple[int, int]:
        """Number of functions whose compilation has begun, and its expected maximum."""
        n_begun = self._compilation.n_begun
        return n_begun, max(n_begun, PARTS)

    def _update_state_text(self) -> None:
        """Show the state's text if it has changed; otherwise a later message stays."""
        if (text := self._describe_state()) != self._last_state_text:
            self._last_state_text = text
            self.stage.show_text(text)

    def _describe_state(self) -> str:
        """Return a text of the state of the run or of the map; "" for none.

        The first that applies: compilation, progress, pause, writing or reading,
        selection, the session's message ("", it is shown below), no map, and the origin
        or end of the map.
        """
        session, state, progress = self._session, self._session.state, self._progress
        if self._is_waiting_for_compilation:
            return COMPILING.format(*self._compilation_progress)
        if state in ("preparing", "running"):
            return "" if progress is None else describe_progress(progress)
        if state == "paused":
            return "Paused"
        if self._reading.is_busy or self._writing.busy_text:
            return self._writing.busy_text or READING
        if not session.selection.is_empty:
            is_earlier = self._origin == LOOKED_BACK
            return f"{LOOKED_BACK} {SELECTED}" if is_earlier else SELECTED
        if session.message:  # which is shown below
            return ""
        if session.snapshot is None:
            is_ready = session.dataset is not None and not self._find_first_step()[0]
            return STOPPED_EARLY if state == "stopped" else READY if is_ready else ""
        return self._origin or {"stopped": STOPPED, "finished": FINISHED}.get(state, "")

    def _on_message_changed(self, message: str) -> None:
        """Show a message of the session, as an error if the run failed, and its remedy.

        The button changes only the settings that differ from the remedy; without such
        settings it is hidden.
        """
        failed, settings = self._session.state == "failed", self._session.settings
        self.message.show_text(message, "error" if failed else "warning")
        remedy = self._session.remedy.items()
        self._remedy = {k: v for k, v in remedy if getattr(settings, k) != v}
        text = describe_settings(self._remedy)
        changes = text if len(self._remedy) == 1 else "these changes"
        self.remedy_button.setText(wrap_button_text(f"Run with {changes}"))
        self.remedy_button.setToolTip(REMEDY_TIP.format(text))
        self.update_buttons()


def describe_progress(progress: Progress) -> str:
    """Return the stage of a run and the estimated time left, if estimated."""
    seconds = progress.seconds_left
    if progress.snapshot is None:
        return f"{progress.stage} …"
    if seconds is None:
        return progress.stage
    left = f"{seconds:.0f} s left" if seconds < 90 else f"{seconds / 60:.0f} min left"
    return f"{progress.stage}, {left if seconds >= 1 else 'nearly done'}"
