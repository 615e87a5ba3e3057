"""Fixes for defects of napari 0.9 and vispy 0.17 that crash, raise or blank a window.

Each fix has a test that fails without the fix; fix and test are removed once napari or
vispy is fixed.  ``docs/upstream.md`` has the reports.  Modules are given as texts: if
another version has no such module, the fix is skipped and the dock still opens.

*Deleted OpenGL programs* (vispy).  After a program is deleted, because its layer was
removed, the process may crash at a later painting.  napari's issues 6472, 7351 and 8471
look like this defect.

*A drag in a view that is gone* (vispy).  In napari's grid each added or removed layer
makes new views, but mouse events still go to the former view: an error at each move.

*Title bars of panels* (napari).  A title bar is deleted in the click on its own button,
and a title bar is made for a panel that Qt is about to delete.

*Closing a window deletes objects of another window* (napari), namely those of the
OpenGL context that is current.

*Loops over label images* (napari).  napari runs parallel loops of numba in the window's
thread.  With numba's own threading layer the process ends if a run is in such a loop at
the same time, and while a run is compiled the window waits.  napari is set to its numpy
functions.
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

UNFIXED_FROM = {"napari": (0, 11), "vispy": (0, 19)}
"""Versions from which on no fix is applied: they have not been checked."""


class Fix(NamedTuple):
    """A method of a class of napari or vispy and its replacement.

    The replacement receives the replaced method and then the method's arguments.
    """

    module: str
    owner: str
    method: str
    replacement: Callable[..., Any]


def apply_fixes() -> None:
    """Apply all fixes in this process; further calls change nothing.

    Existing panels are connected with the fixed method, and napari's label colours are
    set to its numpy functions.  A fix whose module, class or method does not exist in
    this version of napari or vispy is skipped and logged; versions from
    ``UNFIXED_FROM`` on get no fix.
    """
    panel_class = _import_name(_TITLE_BARS.module, _TITLE_BARS.owner)
    widgets = QApplication.allWidgets() if panel_class else []
    panels = [panel for panel in widgets if isinstance(panel, panel_class)]
    for panel in panels:  # connected with the method that is replaced
        with suppress(TypeError, RuntimeError):  # already disconnected
            panel.topLevelChanged.disconnect(panel._update_title_bar)
    for fix in FIXES:
        if (owner := _import_name(fix.module, fix.owner)) is not None:
            replace_method(owner, fix.method, fix.replacement)
    for panel in panels:
        panel.topLevelChanged.connect(panel._update_title_bar)
    backends = _import_name("napari.utils.colormap_backend", "ColormapBackend")
    set_backend = _import_name("napari.utils.colormap_backend", "set_backend")
    if backends is not None and set_backend is not None:
        set_backend(backends.pure_python)


def _import_name(module: str, name: str) -> Any:
    """Return an attribute of a module of napari or vispy.

    Returns None where the module or attribute is missing, which is logged, or where the
    library's version is at least that of ``UNFIXED_FROM``, which is not logged.
    """
    library = module.partition(".")[0]
    major, minor = map(int, re.findall(r"\d+", version(library))[:2])
    if (major, minor) >= UNFIXED_FROM[library]:
        return None
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        logger.warning("%s.%s is left as it is: %s", module, name, error)
        return None


def replace_method(owner: Any, name: str, replacement: Callable[..., Any]) -> None:
    """Replace a method of a class by a function that calls ``replacement``, once.

    ``replacement`` receives the former method and then the arguments of each call.  A
    method that is replaced already stays; a missing method is logged.
    """
    method = getattr(owner, name, None)
    if method is None:
        logger.warning("%s has changed: %s is left as it is", owner, name)
    elif not hasattr(method, "_is_fixed"):

        @functools.wraps(method)
        def call_replacement(*args: Any, **options: Any) -> Any:
            return replacement(method, *args, **options)

        call_replacement._is_fixed = True  # type: ignore[attr-defined]
        setattr(owner, name, call_replacement)


def _skip_program_deletion(delete: Any, program: Any) -> None:
    """Delete nothing: a program stays with its window, 2 MB each in Mesa's software."""


def _release_stale_mouse_handler(update: Any, canvas: Any, *event: Any) -> None:
    """Update the scene, then release the mouse from a view that is no longer in it."""
    update(canvas, *event)
    scene = canvas._scene_canvas
    node = getattr(scene, "_mouse_handler", None)
    while node is not None and node is not scene.scene:
        node = node.parent
    if node is None:
        scene._mouse_handler = None


def _update_title_bar_later(
    update: Any, panel: Any, *args: Any, **options: Any
) -> None:
    """Update the title bar of a panel after this event, unless it is closed."""

    def update_later() -> None:
        """Call ``update`` unless the panel, or its window, is closed by now."""
        if isalive(panel) and panel.widget() is not None:  # not closed meanwhile
            try:
                update(panel, *args, **options)
            except RuntimeError:  # its children are deleted, as in a closed window
                if isalive(panel):
                    raise

    QTimer.singleShot(0, update_later)


def _clean_in_canvas_context(clean: Any, canvas: Any) -> None:
    """Make a canvas's OpenGL context current, then have napari clean the canvas up.

    A closed canvas, which has no context, is cleaned up without.
    """
    with suppress(AttributeError, RuntimeError):  # a closed canvas has no context
        canvas._scene_canvas.set_current()
    clean(canvas)


_TITLE_BARS = Fix(
    "napari._qt.widgets.qt_viewer_dock_widget",
    "QtViewerDockWidget",
    "_update_title_bar",
    _update_title_bar_later,
)
_CANVAS = "napari._vispy.canvas", "VispyCanvas"
FIXES = (
    Fix("vispy.gloo.glir", "GlirProgram", "delete", _skip_program_deletion),
    Fix(*_CANVAS, "_update_scenegraph", _release_stale_mouse_handler),
    _TITLE_BARS,
    Fix(*_CANVAS, "_clean_and_update_scenegraph", _clean_in_canvas_context),
)
