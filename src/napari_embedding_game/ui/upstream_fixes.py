"""Defects of napari 0.9 and vispy 0.17 that end the process, raise or blank a window.

Each has a test that fails without its mending, and goes with it once it is mended where
it belongs; ``docs/upstream.md`` has the reports.  Modules are named as texts: one that
another version calls otherwise costs its mending, and no dock.

*Deleted OpenGL programs* (vispy).  Where a program is deleted, as its layer was
removed, the process may die at a later drawing.  napari's issues 6472, 7351 and 8471
look like it.

*A mouse that drags in a view that is gone* (vispy).  In napari's grid each layer that
comes or goes makes new views; the mouse goes on to the former one: an error a move.

*Title bars of panels* (napari).  One is deleted in the click on its own button, and
one is made for a panel that Qt is about to delete.

*A window that is closed deletes what another one draws* (napari), in whatever OpenGL
context is current.

*Loops over label images* (napari).  Parallel ones of numba, in the window's thread:
with numba's own threading layer the process ends when a run is in one meanwhile, and
while a run is compiled the window waits.  napari is asked for its numpy functions.
"""

from __future__ import annotations

import functools
import logging
import re
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from importlib.metadata import version
from typing import Any, NamedTuple

from qtpy.compat import isalive
from qtpy.QtCore import QTimer
from qtpy.QtWidgets import QApplication

logger = logging.getLogger(__name__)

BELOW = {"napari": (0, 11), "vispy": (0, 19)}
"""Versions from which on nothing is mended: nobody has looked whether they need it."""


class Fix(NamedTuple):
    """What is mended: a method of a class in a module that may be called otherwise."""

    module: str
    owner: str
    method: str
    mended: Callable[..., Any]


def mend() -> None:
    """Mend all, for all of the process; again is once.

    What is not there is left as it is, with a line in the log: other versions of napari
    and vispy call it something else, and then the dock opens all the same.
    """
    panel_class = _find(_TITLE_BARS.module, _TITLE_BARS.owner)
    widgets = QApplication.allWidgets() if panel_class else []
    panels = [one for one in widgets if isinstance(one, panel_class)]
    for panel in panels:  # made before, with what was there
        with suppress(TypeError, RuntimeError):  # it may have been disconnected
            panel.topLevelChanged.disconnect(panel._update_title_bar)
    for fix in FIXES:
        if (owner := _find(fix.module, fix.owner)) is not None:
            replace(owner, fix.method, fix.mended)
    for panel in panels:
        panel.topLevelChanged.connect(panel._update_title_bar)
    backends = _find("napari.utils.colormap_backend", "ColormapBackend")
    set_backend = _find("napari.utils.colormap_backend", "set_backend")
    if backends is not None and set_backend is not None:
        set_backend(backends.pure_python)


def _find(module: str, name: str) -> Any:
    """Return what a module of napari or vispy has by a name; None where it has none."""
    library = module.partition(".")[0]
    major, minor = map(int, re.findall(r"\d+", version(library))[:2])
    if (major, minor) >= BELOW[library]:
        return None
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        logger.warning("%s.%s is left as it is: %s", module, name, error)
        return None


def replace(owner: Any, name: str, mended: Callable[..., Any]) -> None:
    """Replace a function, once; log if it is missing.

    ``mended`` receives the function that was there, and what that is called with.
    """
    method = getattr(owner, name, None)
    if method is None:
        logger.warning("%s has changed: %s is left as it is", owner, name)
    elif not hasattr(method, "_is_mended"):

        @functools.wraps(method)
        def instead(*args: Any, **options: Any) -> Any:
            return mended(method, *args, **options)

        instead._is_mended = True  # type: ignore[attr-defined]
        setattr(owner, name, instead)


def _keep_program(delete: Any, program: Any) -> None:
    """Leave the program to its window: 2 MB each in Mesa's software drawing."""


def _release_mouse(update: Any, canvas: Any, *event: Any) -> None:
    """Let go of a mouse that is held by a view that is outside of the scene by now."""
    update(canvas, *event)
    scene = canvas._scene_canvas
    node = getattr(scene, "_mouse_handler", None)
    while node is not None and node is not scene.scene:
        node = node.parent
    if node is None:
        scene._mouse_handler = None


def _after_event(update: Any, panel: Any, *args: Any, **options: Any) -> None:
    """Make the title bar of a panel anew when the event under way is over."""

    def update_later() -> None:
        if isalive(panel) and panel.widget() is not None:  # it was not closed meanwhile
            try:
                update(panel, *args, **options)
            except RuntimeError:  # it deletes what waits to be, as in a closed window
                if isalive(panel):
                    raise

    QTimer.singleShot(0, update_later)


def _in_canvas_context(clean: Any, canvas: Any) -> None:
    """Delete what is to go in the OpenGL context of this window."""
    with suppress(AttributeError, RuntimeError):  # a canvas that is closed has none
        canvas._scene_canvas.set_current()
    clean(canvas)


_TITLE_BARS = Fix(
    "napari._qt.widgets.qt_viewer_dock_widget",
    "QtViewerDockWidget",
    "_update_title_bar",
    _after_event,
)
_CANVAS = "napari._vispy.canvas", "VispyCanvas"
FIXES = (
    Fix("vispy.gloo.glir", "GlirProgram", "delete", _keep_program),
    Fix(*_CANVAS, "_update_scenegraph", _release_mouse),
    _TITLE_BARS,
    Fix(*_CANVAS, "_clean_and_update_scenegraph", _in_canvas_context),
)
