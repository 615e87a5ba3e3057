"""Say what could not be done, in a dock or after it has been closed."""

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
    show: Callable[[str], object], act: Callable[..., Any], *args: Any
) -> Any:
    """Return what comes of an act; show why, and return None, where it is refused."""
    try:
        return act(*args)
    except (DataError, InputError, OSError) as error:
        show(error_text(error))
        return None


def notify_error(error: BaseException) -> None:
    """Show a notification where napari still has a window; call it from its thread."""
    if napari.current_viewer() is not None:
        show_error(f"Embedding Game: {error_text(error)}")


def log_error(what: str, error: BaseException) -> None:
    """Write an error into the log, from any thread: there may be no window any more."""
    logger.error("%s: %s", what, error_text(error), exc_info=error)
