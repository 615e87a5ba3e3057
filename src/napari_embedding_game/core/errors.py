"""What the engine says to its user: errors and a warning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class InputError(ValueError):
    """Input or setting that cannot be used; the message says what and the way out.

    A window or a command line shows the message as it is, without a traceback.
    """


class DivergenceError(InputError):
    """The points have run off the map.

    Parameters
    ----------
    message : str
    remedy : dict
        Fields of :class:`types.GameSettings` that mend it, for a new run.
    """

    def __init__(self, message: str, remedy: Mapping[str, Any]) -> None:
        super().__init__(message)
        self.remedy = remedy


class EmbeddingWarning(UserWarning):
    """A map was made, but says little about the data; the message says why.

    The points have collapsed onto a few spots, have run far off, or were still moving.
    """
