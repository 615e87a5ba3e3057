"""What napari's manifest names: docks, reader, samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import napari
import numpy as np
from qtpy.QtCore import Qt, QTimer

from napari_embedding_game.data import readers
from napari_embedding_game.data.stages import finish
from napari_embedding_game.session.session import Session
from napari_embedding_game.session.sources import (
    FileSource,
    SampleSource,
    Source,
    Wish,
)
from napari_embedding_game.ui import dock, inspector
from napari_embedding_game.ui.layers import PLACEHOLDER, unwrapped
from napari_embedding_game.ui.map_layers import POINTS_NAME

if TYPE_CHECKING:
    import os

    from napari_embedding_game.data.dataset import Dataset

    LayerData = tuple[Any, ...]

GAME, INSPECTOR = "Embedding Game", "Embedding Game Inspector"

_sessions: WeakKeyDictionary[object, Session] = WeakKeyDictionary()


def session_of(viewer: napari.Viewer) -> Session:
    """Return the one session of a viewer, which its docks share."""
    key = unwrapped(viewer)
    if key not in _sessions:
        _sessions[key] = Session()
    return _sessions[key]


class GameDock(dock.GameDock):
    """The main dock, as napari opens it."""

    def __init__(self, viewer: napari.Viewer) -> None:
        super().__init__(viewer, session_of(viewer))


class InspectorDock(inspector.InspectorDock):
    """The inspector, as napari opens it."""

    def __init__(self, viewer: napari.Viewer) -> None:
        super().__init__(viewer, session_of(viewer))


def open_docks(viewer: napari.Viewer) -> dock.GameDock:
    """Open both docks, where they are not yet, and return the main one."""
    game = _opened(viewer, GAME, GameDock, "right")
    _opened(viewer, INSPECTOR, InspectorDock, "bottom")
    # The main dock is long: it takes the corner, the inspector the room beside it.
    game.window().setCorner(
        Qt.Corner.BottomRightCorner, Qt.DockWidgetArea.RightDockWidgetArea
    )
    return game


def _opened(viewer: napari.Viewer, name: str, kind: type, area: str) -> Any:
    full_name = f"{name} (napari-embedding-game)"  # as napari's own menu names it
    present = viewer.window.dock_widgets.get(full_name)
    if present is not None:
        return present
    widget = kind(viewer)
    viewer.window.add_dock_widget(
        widget, name=full_name, area=area, add_vertical_stretch=False
    )
    return widget


# Files


def get_reader(path: str | Sequence[str]) -> Callable[..., list[LayerData]] | None:
    """Return a reader for tables of cells, images or texts, or None."""
    if isinstance(path, list | tuple) and len(path) == 1:
        path = path[0]
    if not isinstance(path, str) or not readers.can_read(path):
        return None
    return read_into_viewer


def read_into_viewer(path: str | os.PathLike[str]) -> list[LayerData]:
    """Load a file into the dock of the present viewer.

    The reading itself goes on in the background, so no layer comes back but
    one that keeps the place.  Without a viewer the rows come back as points,
    at the principal components of their numbers.
    """
    viewer = napari.current_viewer()
    if viewer is None:
        return [_as_points(readers.read(path))]
    return _load_later(viewer, FileSource(Path(path)))


def _as_points(dataset: Dataset) -> LayerData:
    from sklearn.decomposition import PCA

    n_components = min(2, *dataset.X.shape)
    flat = PCA(n_components, random_state=0).fit_transform(dataset.X)
    places = np.pad(flat, [(0, 0), (0, 2 - n_components)])
    features = dataset.obs.reset_index(drop=True)
    return places, {"name": dataset.name, "features": features}, "points"


# Samples


def open_digits() -> list[LayerData]:
    """Open 1,797 handwritten digits."""
    return _open_sample("digits")


def open_pbmc() -> list[LayerData]:
    """Open 700 blood cells."""
    return _open_sample("pbmc")


def open_nuclei() -> list[LayerData]:
    """Open the nuclei of a stained section: image, labels and a map of them."""
    return _open_sample("nuclei")


def open_mnist() -> list[LayerData]:
    """Open 70,000 handwritten digits, downloaded at the first time."""
    return _open_sample("mnist")


def _open_sample(key: str) -> list[LayerData]:
    viewer = napari.current_viewer()
    source = SampleSource(key)
    if viewer is None:
        return [_as_points(finish(source.read(Wish())).dataset)]
    return _load_later(viewer, source)


def _load_later(viewer: napari.Viewer, source: Source) -> list[LayerData]:
    # napari wants a layer from every sample; the map takes the place of this one.
    QTimer.singleShot(0, lambda: open_docks(viewer).player.load(source))
    meta = {"name": POINTS_NAME, "metadata": dict(PLACEHOLDER)}
    return [(np.empty((0, 2)), meta, "points")]
