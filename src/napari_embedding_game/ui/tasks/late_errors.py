"""Report errors of background tasks whose dock has been closed."""

from __future__ import annotations

import logging

import napari
from napari.utils.notifications import show_error

from napari_embedding_game.session.session import error_text

logger = logging.getLogger(__name__)


def notify_error(error: BaseException) -> None:
    """Show a notification where napari still has a window; call it from its thread."""
    if napari.current_viewer() is not None:
        show_error(f"Embedding Game: {error_text(error)}")


def log_error(what: str, error: BaseException) -> None:
    """Write an error into the log, from any thread: there may be no window any more."""
    logger.error("%s: %s", what, error_text(error), exc_info=error)
