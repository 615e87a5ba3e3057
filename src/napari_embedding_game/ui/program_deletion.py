"""Deleted OpenGL programs stay with the driver until the process ends.

Where a program is deleted, as its layer was removed, the process may die at a later
drawing: in vispy 0.17, which skips ``glUseProgram`` for the number that it saw last,
and in Mesa's software OpenGL (22.3) also with the right program in use.  Layers that
come and go show it within seconds without this plugin; napari's issues 6472, 7351 and
8471 look like the same under Windows.  With no program deleted it does not occur.
"""

from __future__ import annotations

import functools
import logging
from typing import Any

from vispy.gloo import glir

logger = logging.getLogger(__name__)
_MARK = "_keeps_programs"


def keep_deleted_programs() -> None:
    """Have vispy delete no OpenGL program from now on; again is once.

    Without the parts of vispy that this needs everything stays as it was.
    """
    program: Any = getattr(glir, "GlirProgram", None)
    delete = getattr(program, "delete", None)
    if delete is None:
        logger.warning("vispy has changed: deleting programs is left to it")
        return
    if hasattr(delete, _MARK):
        return

    @functools.wraps(delete)
    def keep(self: Any) -> None:
        """Leave the program where it is: some kilobytes."""

    setattr(keep, _MARK, True)
    program.delete = keep
