"""A defect of napari 0.9 that ends the process when a panel is made to float.

A click on the button that floats a panel, or docks it again, makes a new title bar, and
napari deletes the former one at once: with the button whose click is under way, and the
function that is called by it.  The process then goes on in memory that was given back,
and dies there, or later and elsewhere.
"""

from __future__ import annotations

from typing import Any

from napari._qt.widgets import qt_viewer_dock_widget
from qtpy.QtCore import QTimer

from napari_embedding_game.ui.vispy_fixes import replace_method


def mend_napari() -> None:
    """Let title bars be deleted after the click, for all of the process.

    Again is once; without the parts of napari that this needs all stays as it was.
    """
    bar = getattr(qt_viewer_dock_widget, "QtCustomTitleBar", None)
    replace_method(bar, "setParent", _hide_instead, "napari")
    replace_method(bar, "deleteLater", _after_the_click, "napari")


def _hide_instead(set_parent: Any) -> Any:
    def hide_instead(self: Any, parent: Any, *flags: Any) -> None:
        """Stay where it is: without a parent Python would delete it at once."""
        if parent is None:
            self.hide()
        else:
            set_parent(self, parent, *flags)

    return hide_instead


def _after_the_click(delete_later: Any) -> Any:
    def after_the_click(self: Any) -> None:
        """Ask for it when the event under way is over; not at all if it is gone."""
        timer = QTimer(self)
        timer.setSingleShot(True)
        timer.timeout.connect(lambda: delete_later(self))
        timer.start(0)

    return after_the_click
