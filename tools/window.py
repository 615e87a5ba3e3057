"""A napari window that knows nothing of a person's maps, with somebody at it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image

from person import Person


@contextmanager
def opened(width: int, height: int) -> Iterator[Person]:
    """Open a window of so many pixels with the dock; close it at the end."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        os.environ["NAPARI_EMBEDDING_GAME_AUTOSAVE"] = folder
        # Where docks lay last time; napari reads this when it is imported.
        os.environ["NAPARI_CONFIG"] = str(Path(folder) / "settings.yaml")
        import napari
        from napari.settings import get_plugin_settings

        get_plugin_settings("napari-embedding-game").window.shows_tour = False
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
