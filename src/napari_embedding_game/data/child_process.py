"""Start a child process of this program, in which a module serves the parent."""

from __future__ import annotations

import subprocess
import sys
from typing import Any


def start_process(module: str, **options: Any) -> subprocess.Popen[bytes]:
    """Start Python with the import path of this process, and call ``serve()`` there.

    ``module``: full name of the module that has ``serve``. Standard input and output of
    the process are pipes. ``options``: further options of ``Popen``.
    """
    path = f"import sys; sys.path[:] = {sys.path!r}; "
    return subprocess.Popen(
        [sys.executable, "-c", f"{path}from {module} import serve; serve()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        **options,
    )
