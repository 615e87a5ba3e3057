"""A deleted OpenGL program must not stay the one that vispy takes to be in use.

vispy 0.17 remembers which program is in use and skips ``glUseProgram`` for it.  If that
one is deleted, as its layer was removed, OpenGL may give its number to the next one;
vispy then draws without having put that one to use, and the process dies in the driver:
with Mesa's software OpenGL after seconds of layers that come and go.  napari's issues
6472, 7351 and 8471 look like the same under Windows.
"""

from __future__ import annotations

import functools
import logging
from typing import Any

from vispy.gloo import glir

logger = logging.getLogger(__name__)
_MARK = "_puts_out_of_use"


def put_deleted_programs_out_of_use() -> None:
    """Have vispy put a program out of use before it deletes it; again is once.

    Without the parts of vispy that this needs everything stays as it was.
    """
    program: Any = getattr(glir, "GlirProgram", None)
    delete = getattr(program, "delete", None)
    if delete is None or not hasattr(program, "deactivate"):
        logger.warning("vispy has changed: deleted programs are left to it")
        return
    if hasattr(delete, _MARK):
        return

    @functools.wraps(delete)
    def put_out_and_delete(self: Any) -> None:
        if self._parser.env.get("current_program") == self._handle:
            self.deactivate()
        delete(self)

    setattr(put_out_and_delete, _MARK, True)
    program.delete = put_out_and_delete
