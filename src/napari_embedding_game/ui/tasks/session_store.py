"""Save, open and autosave session files; recover those of a crash."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from qtpy.QtCore import QCoreApplication, QObject, QTimer, Signal

from napari_embedding_game.data.errors import DataError
from napari_embedding_game.session.file import archive
from napari_embedding_game.session.file.autosave import (
    Autosave,
    discard,
    find_recent_sessions,
    find_recovery_files,
)
from napari_embedding_game.session.file.saved_map import SavedSession
from napari_embedding_game.session.session import sentence
from napari_embedding_game.ui.compat import camera_of
from napari_embedding_game.ui.connections import Connections
from napari_embedding_game.ui.tasks.late_errors import log_error, notify_error
from napari_embedding_game.ui.tasks.worker import Latest, Worker

if TYPE_CHECKING:
    import napari

    from napari_embedding_game.ui.workspace import Workspace

logger = logging.getLogger(__name__)

TICK_MS = 1000
NOT_CLOSED = "The map could not be saved when it was closed"


class SessionStore(QObject):
    """Saves the session of a viewer every minute of work, and when it is closed."""

    trouble = Signal(str)

    def __init__(
        self,
        viewer: napari.Viewer,
        workspace: Workspace,
        map_frame: Callable[[], tuple[float, ...]],
    ) -> None:
        super().__init__()
        self._viewer, self._map_frame = viewer, map_frame
        self._session, self._linked = workspace.session, workspace.linked
        self._maps = workspace.maps
        self._autosave: Autosave | None = None
        self._saving = Latest(self, self._on_saved, self._on_failed, finishes=True)
        self._old: Path | None = None
        """What is forgotten once it is saved under a new name."""
        self._seen: tuple[Any, ...] = ()
        """Where the camera was at the last tick."""
        self._is_closed = False
        self._timer = QTimer(self)
        self._timer.setInterval(TICK_MS)
        self._timer.timeout.connect(self.tick)
        session = self._session
        changes = (
            session.state_changed,
            session.clusters.changed,
            session.selection.changed,
            session.settings.changed,
            session.look.events,
            workspace.maps.changed,
            session.columns_changed,
        )
        self._connections = Connections()
        self._connections.connect_all(changes, self._touch)
        self._connections.connect(workspace.leaving, self.note_view)
        # Where the program ends before the window can say that it is closed.
        application = QCoreApplication.instance()
        if application is not None:
            self._connections.connect(application.aboutToQuit, self.close)

    def recovery_files(self) -> list[Path]:
        """Return the sessions that a crash left behind, the newest first."""
        try:
            return find_recovery_files()
        except OSError:
            return []  # without such a folder nothing was saved either

    def recent(self) -> list[tuple[Path, str]]:
        """Return the last maps that were closed, and words for each, newest first."""
        try:
            paths = find_recent_sessions()
        except OSError as error:
            log_error("The last maps cannot be listed", error)
            return []
        files = []
        for path in paths:
            try:
                when = datetime.fromtimestamp(path.stat().st_mtime)
                files.append((path, _recent_told(archive.summary(path), when)))
            except DataError as error:
                logger.info("%s is not listed: %s", path.name, error)
            except OSError as error:
                log_error(f"{path.name} cannot be listed among the last maps", error)
        return files

    def note_view(self) -> None:
        """Keep with the open map what the window shows of it."""
        center, zoom, angles = _seen(self._viewer)
        view = {
            "center": list(center),
            "zoom": zoom,
            "angles": list(angles),
            "map": list(self._map_frame()),
            "layers": self._linked.describe(),
        }
        self._maps.note_view(view)

    def capture(self) -> SavedSession | None:
        """Return the whole session with its view, as it is now."""
        self.note_view()
        return self._maps.capture()

    def open(self, key: str) -> None:
        """Open another map of the session."""
        self.note_view()
        self._maps.open(key)

    def tick(self) -> None:
        """Save in the background if it is time."""
        if self._autosave is None or self._saving.is_busy:
            return
        # Looked at here, as the camera tells of every move of the mouse.
        seen, self._seen = self._seen, _seen(self._viewer)
        if seen != self._seen:
            self._autosave.touch()
        job = self._autosave.tick()
        if job is not None:
            self._saving.ask(job)

    def take_over(self, recovery_file: Path) -> None:
        """Save what was brought back under a new name, then forget the old file."""
        if self._autosave is None:
            self._start()
        job = None if self._autosave is None else self._autosave.job()
        if job is not None:
            self._old = recovery_file
            self._saving.ask(job)

    def begin_anew(self) -> None:
        """Put away what was saved by itself, as other data are to take its place."""
        self._timer.stop()
        self._put_away()

    def close(self) -> None:
        """Save once more and let go, the first time."""
        if not self._is_closed:
            self._is_closed = True
            self._connections.close()
            self._saving.stop()
            self.begin_anew()

    def show_view(self, view: Mapping[str, Any]) -> None:
        """Look where the person looked; what is no such view is passed over."""
        camera = camera_of(self._viewer)
        numbers = _numbers((view.get("zoom"), *(view.get("center") or ())))
        if len(numbers) == 4 and numbers[0] > 0:
            before, now = _numbers(view.get("map") or ()), self._map_frame()
            if len(before) == len(now) == 3 and before[0] > 0:
                numbers = _followed(numbers, before, now)
            camera.center, camera.zoom = numbers[1:], numbers[0]
        angles = _numbers(view.get("angles") or ())
        if len(angles) == 3 and self._viewer.dims.ndisplay == 3:
            camera.angles = angles

    # Inside

    def _put_away(self) -> None:
        """Save once more in the background, and close the file in good order."""
        autosave, self._autosave = self._autosave, None
        if autosave is None:
            return
        try:
            worker = Worker(_logged(autosave.closing()))
        except Exception as error:  # whatever it is, the window has to close
            log_error(NOT_CLOSED, error)
            notify_error(error)
        else:  # no slot of this object: it may be gone by then
            worker.failed.connect(notify_error)
            worker.begin()

    def _touch(self, *event: object) -> None:
        if self._session.snapshot is None:
            return  # nothing of a person's work would be lost
        if self._autosave is None:
            self._start()
        if self._autosave is not None:
            self._autosave.touch()

    def _start(self) -> None:
        try:
            self._autosave = Autosave(self.capture)
        except OSError as error:
            self._connections.close()
            self.trouble.emit(
                f"Nothing is saved on the quiet ({error.strerror or error}): save the "
                "session yourself now and then."
            )
        else:
            self._timer.start()

    def _on_saved(self, nothing: object) -> None:
        old, self._old = self._old, None
        if old is not None:
            discard(old)

    def _on_failed(self, error: BaseException) -> None:
        self._old = None
        self.trouble.emit(sentence(error))


def _logged(job: Callable[[], None]) -> Callable[[], None]:
    """Return a job that writes into the log, too, why it failed."""

    def logged() -> None:
        try:
            job()
        except Exception as error:
            log_error(NOT_CLOSED, error)
            raise

    return logged


def _seen(viewer: Any) -> tuple[tuple[float, ...], float, tuple[float, ...]]:
    """Return the centre, the zoom and the angles of the camera.

    A flat view has no angles.
    """
    camera = camera_of(viewer)
    angles = camera.angles if viewer.dims.ndisplay == 3 else ()
    center = tuple(map(float, camera.center))
    return center, float(camera.zoom), tuple(map(float, angles))


def _numbers(values: Sequence[Any]) -> tuple[float, ...]:
    """Return finite numbers as they are; () where these are none."""
    is_one = [type(x) is float and np.isfinite(x) for x in values]
    return tuple(values) if all(is_one) else ()


def _followed(
    camera: Sequence[float], before: Sequence[float], now: Sequence[float]
) -> tuple[float, ...]:
    """Return zoom and centre that show the same part of a map which lies elsewhere.

    A map lies beside its images, and has another size and place without them.
    """
    zoom, depth, *center = camera
    size = now[0] / before[0]
    moved = (
        there + (middle - here) * size
        for middle, here, there in zip(center, before[1:], now[1:], strict=True)
    )
    return (zoom / size, depth, *moved)


def _recent_told(one: archive.Summary, when: datetime) -> str:
    names = f", {one.n_names} named clusters" if one.n_names else ""
    return f"{one.title}, {one.n_points:,} points{names}, closed {when:%d %B, %H:%M}"
