"""What the docks of one viewer share, and what outlives them as long as the viewer."""

from __future__ import annotations

from weakref import WeakKeyDictionary, WeakSet

import msgspec
import napari
from napari.layers import Layer
from psygnal import Signal

from napari_embedding_game.session.maps import MapTree
from napari_embedding_game.session.session import Session
from napari_embedding_game.ui.compat import unwrap
from napari_embedding_game.ui.images.linked_layers import LinkedLayers
from napari_embedding_game.ui.style.coloring import choice_of_feature


class Workspace:
    """The shared state of one viewer; it holds no reference to the viewer."""

    reveal = Signal(int)
    """Brings the row of the point that the camera is to go to."""
    trouble = Signal(str)
    """A sentence about what failed, "" when it is over."""

    def __init__(self, session: Session | None = None) -> None:
        self.session = Session() if session is None else session
        self.maps = MapTree(self.session)
        self.linked = LinkedLayers()
        self.maps.view = lambda: {"layers": msgspec.to_builtins(self.linked.record)}
        self.left_layers: tuple[Layer | None, ...] = ()
        """The map that a closed dock has left, which the next one draws anew."""
        self.docks: WeakSet[object] = WeakSet()
        """Those that are open."""

    def color_by_value(self, name: str) -> None:
        """Colour the map by a gene, or another column of numbers."""
        dataset = self.session.dataset
        if dataset is not None:
            self.session.look.color_by = choice_of_feature(name, dataset)


_open: WeakKeyDictionary[object, Workspace] = WeakKeyDictionary()


def workspace_of(viewer: napari.Viewer) -> Workspace:
    """Return the workspace of a viewer; the first call makes it."""
    return _open.get(unwrap(viewer)) or open_workspace(viewer, Session())


def open_workspace(viewer: napari.Viewer, session: Session) -> Workspace:
    """Make the workspace of a viewer around a session, and return it."""
    workspace = _open[unwrap(viewer)] = Workspace(session)
    return workspace
