"""What napari's manifest names: docks, reader, samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import napari
import numpy as np
from napari.utils.notifications import show_info
from qtpy.QtCore import QTimer

from napari_embedding_game.data import readers
from napari_embedding_game.data.errors import DataError
from napari_embedding_game.session.file import archive
from napari_embedding_game.session.sources import SampleSource, Source
from napari_embedding_game.ui.compat import main_window_of, unwrap, viewers
from napari_embedding_game.ui.game_dock import GameDock
from napari_embedding_game.ui.images.linked_layers import MAP_KEY
from napari_embedding_game.ui.tasks.writing import write_table

LayerData = tuple[Any, ...]

NO_VIEWER = (
    "Files are opened in napari's window: make a napari.Viewer first, or read them by "
    "napari_embedding_game.read."
)
ONE_FILE = "Files are opened one at a time: of several the last one is read."
NO_MAP_LAYER = (
    "Only a map of the Embedding Game is saved as AnnData: select its layer embedding "
    "while its dock is open, or choose another format."
)
NAME = "Map (Embedding Game)"
"""The title that napari's menu gives the main dock."""


class MapDock(GameDock):
    """What napari is given when it asks for the main dock: the open one, or a new one.

    napari's menu and ``add_plugin_dock_widget`` do not know each other's docks, and two
    docks of one session would work against each other.  napari asks for a class, and
    nothing is ever of this one.
    """

    def __new__(cls, napari_viewer: napari.Viewer) -> GameDock:  # type: ignore[misc]
        """Return the dock of a viewer, out of the box that it was in."""
        viewer = unwrap(napari_viewer)
        dock = find_dock(viewer)
        if dock is None:
            return GameDock(viewer)
        box = dock.parentWidget()
        dock.setParent(main_window_of(dock))  # without a parent it would be closed
        viewer.window.remove_dock_widget(box)
        return dock


def find_dock(viewer: napari.Viewer) -> GameDock | None:
    """Return the main dock of a window, shown or hidden; None without one."""
    widgets = viewer.window.dock_widgets.values()
    return next((one for one in widgets if isinstance(one, GameDock)), None)


def open_dock(viewer: napari.Viewer) -> GameDock:
    """Open the main dock, or show the one that is there, and return it."""
    if (dock := find_dock(viewer)) is not None:
        box = dock.parent()
        box.show()
        box.raise_()
        return dock
    dock = GameDock(viewer)
    viewer.window.add_dock_widget(dock, name=NAME, add_vertical_stretch=False)
    return dock


def get_reader(path: str | Sequence[str]) -> Callable[..., list[LayerData]] | None:
    """Return a reader for sessions, and tables of cells, images or texts, or None.

    A folder of images with their labels is one, too.  What is inside a .zip, a .csv or
    a .zarr is looked at: layers that napari saved, and images, are left to others.
    """
    stack = path if isinstance(path, list | tuple) else [path]  # it may be of one
    if len(stack) != 1:
        return None
    path = Path(stack[0])
    if path.name.lower().endswith(archive.ENDING):
        is_ours = archive.is_archive(path)
    else:
        is_ours = readers.can_read(path) and not readers.holds_layers(path)
    return (lambda _: _load_later(path)) if is_ours else None


def _load_later(source: Source | Path) -> list[LayerData]:
    """Load a file or sample into the dock of a viewer, in the background.

    Of the one that shows it, as a file may be dropped on another than the present one.
    """
    viewer = napari.current_viewer()
    if viewer is None:
        raise DataError(NO_VIEWER)
    # napari wants a layer of everything: it is empty, hidden, and taken away.
    key = object()

    def load() -> None:
        target = viewer
        for one in (viewer, *viewers()):
            for layer in [x for x in one.layers if x.metadata.get("key") is key]:
                one.layers.remove(layer)
                target = one
        reading = open_dock(target).controller.reading
        if reading.jobs.is_busy:  # several were dropped
            show_info(ONE_FILE)
        if isinstance(source, Path):
            reading.open_file(source)
        else:
            reading.load(source)

    QTimer.singleShot(0, load)
    meta = {"name": "embedding", "metadata": {"key": key}, "visible": False}
    return [(np.empty((0, 2)), meta, "points")]


def write_map(path: str, layers: Sequence[LayerData]) -> list[str]:
    """Write the map whose layer napari saves, as *Save > AnnData* does.

    Raises OSError: none of the layers is of a map on show, or it can't be written.  A
    ValueError, as a DataError is, napari would take for the lack of a writer.
    """
    viewer = napari.current_viewer()
    is_ours = any(MAP_KEY in meta.get("metadata", {}) for _, meta, _ in layers)
    dock = find_dock(viewer) if is_ours and viewer is not None else None
    if dock is None:
        raise OSError(NO_MAP_LAYER)
    try:
        left_out = write_table(dock.workspace, Path(path))()
    except DataError as error:
        raise OSError(str(error)) from error
    if left_out:
        dock.workspace.session.show_message(str(left_out))
    return [path]


open_digits = partial(_load_later, SampleSource("digits"))
open_pbmc = partial(_load_later, SampleSource("pbmc"))
open_nuclei = partial(_load_later, SampleSource("nuclei"))
