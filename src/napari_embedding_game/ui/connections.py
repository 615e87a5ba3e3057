"""Connect docks and their views with signals that outlive them, until a dock closes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from qtpy.QtCore import QObject, QTimer
from qtpy.QtWidgets import QWidget
from superqt.utils import qthrottled

from napari_embedding_game.session.session import Session

SOON_MS, RUNNING_MS = 30, 1_000
"""Milliseconds: edits that follow each other faster than ``SOON_MS`` are shown
together.

``RUNNING_MS`` lies between two updates of a view in a running game, since each update
repaints the whole window.
"""
WORDS_MS = 500
"""Milliseconds between two updates of a text in a running game."""


def throttle_while_running(
    owner: QObject, session: Session, job: Callable[[], object]
) -> Callable[..., None]:
    """Return a slot that calls ``job`` at once, or throttled while a game runs.

    In a running game ``job`` is called at most once in ``WORDS_MS`` milliseconds.  The
    slot accepts any arguments and passes none to ``job``; ``owner`` is the parent of
    the timer.
    """
    throttled_job = qthrottled(job, WORDS_MS, parent=owner)

    def run_or_throttle(*values: object) -> None:
        """Call ``job`` instead of a waiting call, or throttle it in a running game."""
        if session.state == "running":
            throttled_job.throttle()
        else:
            throttled_job.cancel()  # a call that still waits would show an old state
            job()

    return run_or_throttle


class Connections(QObject):
    """The connections of a view to signals of objects that outlive the view.

    A session, a viewer and the objects that docks share outlive a dock.  Each
    connection to a signal of theirs is made here, so that a closed dock receives no
    signal any more and can be freed.

    Parameters
    ----------
    owner : QObject, optional
        The parent of this object: :func:`disconnect_all` of the dock that ``owner`` is
        in closes these connections.
    """

    def __init__(self, owner: QObject | None = None) -> None:
        super().__init__(owner)
        self._stack = ExitStack()

    def connect(self, slot: Callable[..., Any], *signals: Any) -> None:
        """Connect one slot with each of these signals until :meth:`close`.

        The signals may be of psygnal, Qt or napari.
        """
        for signal in signals:
            signal.connect(slot)
            self._stack.callback(signal.disconnect, slot)

    def add_cleanup(self, cleanup: Callable[[], Any]) -> None:
        """Have :meth:`close` call a function."""
        self._stack.callback(cleanup)

    def append_callback(
        self, callbacks: list[Any], callback: Callable[..., Any]
    ) -> None:
        """Append a callback to a list of napari; :meth:`close` removes it."""
        callbacks.append(callback)
        self.add_cleanup(lambda: callback in callbacks and callbacks.remove(callback))

    def close(self) -> None:
        """Disconnect all slots and call all cleanups, in reverse order, once.

        Where a cleanup raises, the remaining cleanups are called before the error is
        raised.
        """
        self._stack.close()


class Listener(QWidget):
    """A widget of a dock that is updated by signals only while it is open.

    Where a signal came while the widget was closed, :meth:`update_view` is called once
    when the widget is shown.
    """

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session, self._is_outdated = session, True
        self._connections = Connections(self)
        self.visible_with: list[QWidget] = []
        """Other widgets that show data of this widget: it is open while they are."""
        self._connections.connect(lambda *_: self.clear_data(), session.dataset_changed)

    def connect_while_open(self, slot: Callable[[], object], *signals: Any) -> None:
        """Connect a slot that is called, without arguments, only while this is open.

        A signal that comes while this is closed marks the view as outdated.
        """
        self._connections.connect(self._make_open_only_slot(slot), *signals)

    def _make_open_only_slot(self, slot: Callable[[], object]) -> Callable[..., None]:
        """Return a function of any arguments that calls ``slot()`` while this is open.

        While this is closed the function only marks the view as outdated.  If the view
        is outdated when it is open, :meth:`update_view` is called instead of ``slot``.
        """

        def call_if_open(*values: object) -> None:
            """Call ``slot``, update an outdated view instead, or mark a closed view."""
            if not self.is_open():
                self._is_outdated = True
            elif self._is_outdated:
                self.update_view_if_outdated()
            else:
                slot()

        return call_if_open

    def call_soon_after_map_changes(self, job: Callable[[], object]) -> None:
        """Call ``job`` soon after clusters or run state change, while this is open.

        Changes within ``SOON_MS`` milliseconds, in a running game ``RUNNING_MS``, are
        answered by one call, at the end of that time.
        """
        session = self._session
        # Checked when the throttled call is due: this may be closed by then.
        throttled_job = qthrottled(
            self._make_open_only_slot(job), SOON_MS, leading=False, parent=self
        )

        def schedule_job() -> None:
            """Throttle ``job`` by the delay of the present run state."""
            is_running = session.state == "running"
            throttled_job.setTimeout(RUNNING_MS if is_running else SOON_MS)
            throttled_job.throttle()

        changes = session.clusters.changed, session.state_changed
        self.connect_while_open(schedule_job, *changes)

    def clear_data(self) -> None:
        """Forget the data of the former dataset, also while this is closed.

        Does nothing here; called at each ``dataset_changed``, for subclasses.
        """

    def is_open(self) -> bool:
        """Return whether this or a widget of ``visible_with`` is visible in its window.

        A window that is itself hidden does not matter.
        """
        widgets = self, *self.visible_with
        return any(widget.isVisibleTo(widget.window()) for widget in widgets)

    def update_view(self) -> None:
        """Show the present state of the session; does nothing here, for subclasses."""

    def showEvent(self, event: object) -> None:
        """Update the view if signals came while it was closed."""
        super().showEvent(event)
        self.update_view_if_outdated()

    def update_view_if_outdated(self) -> None:
        """Update the view if it is new or a signal came while it was closed."""
        if self._is_outdated:
            self._is_outdated = False
            self.update_view()


def disconnect_all(owner: QObject) -> None:
    """Close the :class:`Connections` of all descendants, and stop all their QTimers.

    Where a call raises, the remaining calls are made before the error is raised.
    """
    with ExitStack() as stack:  # all of them, even where a call raises
        for connections in owner.findChildren(Connections):
            stack.callback(connections.close)
        for timer in owner.findChildren(QTimer):
            stack.callback(timer.stop)
