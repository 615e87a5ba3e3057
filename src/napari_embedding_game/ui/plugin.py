"""The docks, the reader, the writer and the samples that napari's manifest names.

The dock, the readers and the sessions are imported where they are first needed: their
imports take seconds, and napari imports this module when its menu is clicked.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import napari
import numpy as np
from napari.utils.notifications import show_info
from qtpy.QtCore import QEventLoop, QTimer
from qtpy.QtWidgets import QApplication, QWidget

from napari_embedding_game.ui.compat import (
    find_main_window,
    list_viewers,
    unwrap_viewer,
)

if TYPE_CHECKING:
    from napari_embedding_game.session.sources import Source
    from napari_embedding_game.ui.game_dock import GameDock

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
DOCK_MODULE = "napari_embedding_game.ui.game_dock"
OPENING, READY = "Opening the Embedding Game ...", "Ready"
"""What napari's status bar says while the dock is imported, and afterwards."""


class MapDock(QWidget):
    """Returns the open main dock of a viewer, or a new one, where napari makes a dock.

    napari's menu and ``add_plugin_dock_widget`` do not know each other's docks, and two
    docks of one session would disturb each other.  napari asks for a class, and reads
    the parameters of its ``__init__``; no object is ever an instance of this class.
    """

    def __init__(self, napari_viewer: napari.Viewer) -> None:
        raise NotImplementedError

    def __new__(cls, napari_viewer: napari.Viewer) -> GameDock:  # type: ignore[misc]
        """Return the open main dock of a viewer, without its box, or a new dock.

        The former box is removed from the window.
        """
        viewer = unwrap_viewer(napari_viewer)
        dock = find_game_dock(viewer)
        if dock is None:
            return _import_dock_class(viewer)(viewer)
        box = dock.parentWidget()
        dock.setParent(find_main_window(dock))  # without a parent it would be closed
        viewer.window.remove_dock_widget(box)
        return dock


def find_game_dock(viewer: napari.Viewer) -> GameDock | None:
    """Return the main dock of a viewer's window, shown or hidden, or None."""
    if DOCK_MODULE not in sys.modules:
        return None  # no dock has been opened yet
    dock_class = _import_dock_class(viewer)
    widgets = viewer.window.dock_widgets.values()
    return next((widget for widget in widgets if isinstance(widget, dock_class)), None)


def _import_dock_class(viewer: napari.Viewer) -> type[GameDock]:
    """Return the class of the main dock.

    The first import takes seconds, so the viewer's status bar says that it has begun.
    """
    is_imported = DOCK_MODULE in sys.modules
    if not is_imported:
        viewer.status = OPENING
        QApplication.processEvents(QEventLoop.ProcessEventsFlag.ExcludeUserInputEvents)
    from napari_embedding_game.ui.game_dock import GameDock

    if not is_imported:
        viewer.status = READY
    return GameDock


def open_dock(viewer: napari.Viewer) -> GameDock:
    """Return the main dock of a viewer's window: make it, or show and raise it."""
    if (dock := find_game_dock(viewer)) is not None:
        box = dock.parent()
        box.show()
        box.raise_()
        return dock
    dock = _import_dock_class(viewer)(viewer)
    viewer.window.add_dock_widget(dock, name=NAME, add_vertical_stretch=False)
    return dock


def get_reader(path: str | Sequence[str]) -> Callable[..., list[LayerData]] | None:
    """Return a reader for a session, a table or a folder of images, or None.

    The reader loads the file into the dock and returns an empty hidden layer.  None for
    several paths, and for files that hold no session and no table: a .zip, .csv or
    .zarr is opened to find out whether napari's layers or an image are in it.
    """
    from napari_embedding_game.data import readers
    from napari_embedding_game.session.file import archive

    paths = path if isinstance(path, list | tuple) else [path]
    if len(paths) != 1:
        return None
    path = Path(paths[0])
    if path.name.lower().endswith(archive.ENDING):
        is_ours = archive.is_session_zip(path)
    else:
        is_ours = readers.can_read(path) and not readers.holds_layers_or_images(path)
    return (lambda _: _load_in_background(path)) if is_ours else None


def _load_in_background(source: Source | Path) -> list[LayerData]:
    """Schedule the loading of a file or sample; return the data of an empty layer.

    The source is read in the dock of the viewer that receives the layer, as a file may
    be dropped on another viewer than the current one.  The empty layer is removed
    before the source is read.  If a file is being read already, it is replaced, and a
    notification says so.

    Raises
    ------
    DataError
        There is no viewer.
    """
    from napari_embedding_game.data.errors import DataError

    viewer = napari.current_viewer()
    if viewer is None:
        raise DataError(NO_VIEWER)
    # napari wants a layer from each reader: this one is hidden, empty and removed.
    key = object()

    def load() -> None:
        """Remove the empty layer, and read the source in its viewer's dock."""
        target = viewer
        for candidate in (viewer, *list_viewers()):
            layers = candidate.layers
            for layer in [x for x in layers if x.metadata.get("key") is key]:
                layers.remove(layer)
                target = candidate
        reading = open_dock(target).controller.reading
        if reading.jobs.is_busy:  # several files were dropped
            show_info(ONE_FILE)
        if isinstance(source, Path):
            reading.open_file(source)
        else:
            reading.load(source)

    QTimer.singleShot(0, load)
    meta = {"name": "embedding", "metadata": {"key": key}, "visible": False}
    return [(np.empty((0, 2)), meta, "points")]


def write_map(path: str, layers: Sequence[LayerData]) -> list[str]:
    """Write the map of a layer as AnnData, as *Save > AnnData* does; return the path.

    A sentence on data that the file lacks is shown as the session's message.

    Raises
    ------
    OSError
        No layer belongs to the map of an open dock, or the file cannot be written.
        napari would take a ValueError, such as a DataError, for a missing writer.
    """
    from napari_embedding_game.data.errors import DataError
    from napari_embedding_game.ui.images.linked_layers import MAP_KEY
    from napari_embedding_game.ui.tasks.writing import prepare_table

    viewer = napari.current_viewer()
    is_ours = any(MAP_KEY in meta.get("metadata", {}) for _, meta, _ in layers)
    dock = find_game_dock(viewer) if is_ours and viewer is not None else None
    if dock is None:
        raise OSError(NO_MAP_LAYER)
    try:
        left_out = prepare_table(dock.workspace, Path(path))()
    except DataError as error:
        raise OSError(str(error)) from error
    if left_out:
        dock.workspace.session.show_message(str(left_out))
    return [path]


def open_sample(key: str) -> list[LayerData]:
    """Load a sample into the dock; return the data of an empty layer.

    ``key``: of :data:`~napari_embedding_game.session.sources.SAMPLES`.
    """
    from napari_embedding_game.session.sources import SampleSource

    return _load_in_background(SampleSource(key))


open_digits = partial(open_sample, "digits")
open_pbmc = partial(open_sample, "pbmc")
open_tissue = partial(open_sample, "tissue")
open_nuclei = partial(open_sample, "nuclei")
