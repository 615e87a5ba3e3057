"""Two defects of vispy 0.17 that end the process, or raise, while layers come and go.

*Deleted OpenGL programs.*  Where a program is deleted, as its layer was removed, the
process may die at a later drawing: in vispy, which skips ``glUseProgram`` for the
number that it saw last, and in Mesa's software OpenGL (22.3) also with the right
program in use.  Layers that come and go show it within seconds without this plugin;
napari's issues 6472, 7351 and 8471 look like the same under Windows.  With no program
deleted it does not occur.

*A mouse that drags in a view that is gone.*  In napari's grid every layer that comes or
goes makes new views.  vispy goes on to send the mouse to the view in which its button
was pressed, whose camera is in no scene any more: an error at every move, until the
button is released.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import Any

from vispy.gloo import glir
from vispy.scene import SceneCanvas

logger = logging.getLogger(__name__)
_MARK = "_is_mended"


def mend_vispy() -> None:
    """Mend both, for all of the process; again is once.

    Without the parts of vispy that this needs everything stays as it was.
    """
    replace_method(getattr(glir, "GlirProgram", None), "delete", _keep)
    replace_method(SceneCanvas, "_process_mouse_event", _release_first)


def replace_method(
    owner: Any, name: str, wrap: Callable[[Any], Any], whose: str = "vispy"
) -> None:
    """Put a mended method in the place of one, once; without it, log that it is not.

    Parameters
    ----------
    owner : type or None
    name : str
        Of the method.
    wrap : callable
        Returns the mended method for the one that is there.
    whose : str
        The package, for the log.
    """
    method = None if owner is None else getattr(owner, name, None)
    if method is None:
        logger.warning("%s has changed: %s is left as it is", whose, name)
    elif not hasattr(method, _MARK):
        mended = functools.wraps(method)(wrap(method))
        setattr(mended, _MARK, True)
        setattr(owner, name, mended)


def _keep(delete: Any) -> Any:
    def keep(self: Any) -> None:
        """Leave the program where it is: some kilobytes."""

    return keep


def _release_first(process: Any) -> Any:
    def release_first(self: Any, event: Any) -> None:
        """Let go of a mouse that is held by a view outside of the scene."""
        holder = getattr(self, "_mouse_handler", None)
        if holder is not None and not _is_within(holder, getattr(self, "_scene", None)):
            self._mouse_handler = None
        process(self, event)

    return release_first


def _is_within(node: Any, scene: Any) -> bool:
    while node is not None and node is not scene:
        node = node.parent
    return node is not None
