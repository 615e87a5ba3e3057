"""Show errors in a dock, as a notification of napari, or in the log.

The error of a run is told by :meth:`Session.note_run_failed` instead.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import napari
from napari.utils.notifications import show_error

from napari_embedding_game.core.errors import InputError
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.session.session import error_text

logger = logging.getLogger(__name__)


def call_or_show_error(
    show: Callable[[str], object], function: Callable[..., Any], *args: Any
) -> Any:
    """Return ``function(*args)``; where the call is refused, show why and return None.

    Refusals are DataError, InputError and OSError: ``show`` receives their text.  Other
    exceptions are raised.
    """
    try:
        return function(*args)
    except (DataError, InputError, OSError) as error:
        show(error_text(error))
        return None


def notify_error(error: BaseException) -> None:
    """Show an error as a notification of napari; do nothing where no window is open.

    To be called from the window's thread.
    """
    if napari.current_viewer() is not None:
        show_error(f"Embedding Game: {error_text(error)}")


def log_error(task: str, error: BaseException) -> None:
    """Write an error and its traceback to the log, from any thread."""
    logger.error("%s: %s", task, error_text(error), exc_info=error)
