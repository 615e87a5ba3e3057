"""Four defects of napari 0.9: three of panels that float, one of two windows.

*A button that is deleted in its own click.*  A click on the button that floats a
panel, or docks it again, makes a new title bar, and napari deletes the former one at
once: with the button whose click is under way.

*A title bar that Python takes for garbage.*  The garbage collector may clear the
functions that the buttons of a title bar call while the bar is on the screen: the next
click ends the process, in a function without its variables.  Two walks of random clicks
showed it again and again, and no more since a title bar is held until Qt deletes it.
The same may happen to its panel, of which Qt then knows no more than a plain one: a
third walk closed it by its cross, which raised an AttributeError.

*A panel that was closed is floated before Qt has deleted it.*  napari then lets Qt
delete it amid the making of its new title bar, which raises a RuntimeError.

*A window that is closed deletes what another one draws.*  napari has vispy delete what
a removed layer had in OpenGL while the context of another window may be current.  Where
Qt does not share them the same numbers name other things there, and that window stays
blank.  Written up for napari in ``docs/upstream.md``.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any
from weakref import WeakSet

from napari._qt.widgets import qt_viewer_dock_widget
from napari._vispy import canvas
from qtpy.QtCore import QTimer

from napari_embedding_game.ui.vispy_fixes import replace_method

_held: dict[Any, Any] = {}
"""Title bars that Qt has not deleted yet, each with its panel."""

_going: WeakSet[Any] = WeakSet()
"""Panels that Qt has been asked to delete."""


def mend_napari() -> None:
    """Mend all, for all of the process; again is once.

    Title bars that are there already are mended from their next change on.  Without the
    parts of napari that this needs all stays as it was.
    """
    bar = getattr(qt_viewer_dock_widget, "QtCustomTitleBar", None)
    replace_method(bar, "__init__", _hold, "napari")
    replace_method(bar, "setParent", _hide_instead, "napari")
    replace_method(bar, "deleteLater", _after_the_click, "napari")
    panel = getattr(qt_viewer_dock_widget, "QtViewerDockWidget", None)
    replace_method(panel, "deleteLater", _remember, "napari")
    replace_method(panel, "_update_title_bar", _unless_it_goes, "napari")
    drawing = getattr(canvas, "VispyCanvas", None)
    replace_method(drawing, "_clean_and_update_scenegraph", _in_its_own, "napari")


def _hold(init: Any) -> Any:
    def hold(self: Any, *args: Any, **options: Any) -> None:
        """Stay until Qt deletes it, and so does the panel."""
        init(self, *args, **options)
        _held[self] = self.parent()
        self.destroyed.connect(lambda: _held.pop(self, None))

    return hold


def _hide_instead(set_parent: Any) -> Any:
    def hide_instead(self: Any, parent: Any, *flags: Any) -> None:
        """Stay where it is: without a parent Python would delete it at once."""
        if parent is None:
            self.hide()
        else:
            set_parent(self, parent, *flags)

    return hide_instead


def _in_its_own(clean: Any) -> Any:
    def in_its_own(self: Any) -> None:
        """Delete what is to go in the OpenGL context of this window."""
        with suppress(AttributeError, RuntimeError):  # a canvas that is closed has none
            self._scene_canvas.set_current()
        clean(self)

    return in_its_own


def _after_the_click(delete_later: Any) -> Any:
    def after_the_click(self: Any) -> None:
        """Ask for it when the event under way is over; not at all if it is gone."""
        timer = QTimer(self)
        timer.setSingleShot(True)
        timer.timeout.connect(lambda: delete_later(self))
        timer.start(0)

    return after_the_click


def _remember(delete_later: Any) -> Any:
    def remember(self: Any) -> None:
        """Ask for it, and know that it was asked for."""
        _going.add(self)
        delete_later(self)

    return remember


def _unless_it_goes(update: Any) -> Any:
    def unless_it_goes(self: Any, *args: Any, **options: Any) -> None:
        """Make the title bar anew of a panel that stays."""
        if self not in _going:
            update(self, *args, **options)

    return unless_it_goes
