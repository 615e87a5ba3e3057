"""The state that the docks of a viewer share, which lives as long as the viewer."""

from __future__ import annotations

from weakref import WeakKeyDictionary, WeakSet

import msgspec
import napari
from napari.layers import Layer
from psygnal import Signal

from napari_embedding_game.session.maps import MapTree
from napari_embedding_game.session.session import Session
from napari_embedding_game.ui.compat import unwrap_viewer
from napari_embedding_game.ui.images.linked_layers import LinkedLayers
from napari_embedding_game.ui.style.coloring import choice_of_feature


class Workspace:
    """The state that the docks of a viewer share; holds no reference to the viewer."""

    reveal_wanted = Signal(int)
    """Asks for the camera to move to a point; carries the row of the point."""
    trouble = Signal(str)
    """Carries an error message; "" when the failure is over."""

    def __init__(self, session: Session | None = None) -> None:
        self.session = Session() if session is None else session
        self.map_tree = MapTree(self.session)
        self.linked_layers = LinkedLayers()
        self.map_tree.view = lambda: {
            "layers": msgspec.to_builtins(self.linked_layers.record)
        }
        self.leftover_layers: tuple[Layer | None, ...] = ()
        """Layers of the map that a closed dock left; the next dock replaces them."""
        self.docks: WeakSet[object] = WeakSet()
        """The open docks."""

    def color_by_value(self, name: str) -> None:
        """Colour the map by a gene or column of values; do nothing without data."""
        dataset = self.session.dataset
        if dataset is not None:
            self.session.look.color_by = choice_of_feature(name, dataset)


_workspaces: WeakKeyDictionary[object, Workspace] = WeakKeyDictionary()


def get_workspace(viewer: napari.Viewer) -> Workspace:
    """Return the workspace of a viewer; the first call makes one with a new session."""
    return _workspaces.get(unwrap_viewer(viewer)) or make_workspace(viewer, Session())


def make_workspace(viewer: napari.Viewer, session: Session) -> Workspace:
    """Make a workspace of a session, register it for a viewer and return it."""
    workspace = _workspaces[unwrap_viewer(viewer)] = Workspace(session)
    return workspace
