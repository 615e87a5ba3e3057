"""Folders of the user in which the program keeps what nobody else may read."""

from __future__ import annotations

import os
from pathlib import Path


def own_folder(variable: str, usual: Path) -> Path:
    """Return the folder that an environment variable names, or else the usual one.

    It is made where it is missing.  A folder that is made, and the usual one, are for
    their owner alone: what is kept there may be of patients.
    """
    chosen = os.environ.get(variable)
    path = Path(chosen) if chosen else usual
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not chosen:
        path.chmod(0o700)  # an earlier version let others in
    return path
