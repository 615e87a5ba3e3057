"""A napari window that knows nothing of a person's maps, with somebody at it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

import napari
from napari.settings import get_plugin_settings, get_settings
from PIL import Image

from person import Person

get_settings(None)  # those of nobody: docks lie where a new window has them
_SETTINGS = get_plugin_settings("napari-embedding-game", None)


@contextmanager
def opened(width: int, height: int) -> Iterator[Person]:
    """Open a window of so many pixels with the dock; close it at the end."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        os.environ["NAPARI_EMBEDDING_GAME_AUTOSAVE"] = folder
        _SETTINGS.window.shows_tour = False
        viewer = napari.Viewer()
        viewer.window.resize(width, height)
        person = Person(viewer)
        try:
            yield person
        finally:
            person.rest(1.0)  # until the session is stored
            viewer.close()
            person.rest(2.0)  # it is stored once more, in the background


def picture(person: Person) -> Image.Image:
    """Return what the window looks like, in RGB."""
    shown = person.viewer.screenshot(canvas_only=False, flash=False)
    return Image.fromarray(shown).convert("RGB")
