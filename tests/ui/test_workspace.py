"""What the docks of a viewer share: made once, closed with the window."""

import numpy as np
from napari.components import ViewerModel

from napari_embedding_game.ui import plugin
from napari_embedding_game.ui.images.linked_layers import Linked
from napari_embedding_game.ui.widgets.teach import TeachWidget
from napari_embedding_game.ui.workspace import workspace_of


def test_two_viewers_share_nothing(viewer):
    one, other = workspace_of(viewer), workspace_of(ViewerModel())
    assert one.session is not other.session
    assert one.linked is not other.linked


def test_the_workspace_outlives_its_docks(window, qtbot):
    workspace = workspace_of(window)
    window.window.show()
    dock = plugin.open_dock(window)
    qtbot.waitUntil(dock.isVisible)
    assert len(workspace.docks) == 1
    window.window.remove_dock_widget(dock)
    qtbot.waitUntil(lambda: not workspace.docks)
    assert workspace_of(window) is workspace


def test_layers_of_the_map_are_saved_though_another_dock_is_closed_first(
    dock, session, play
):
    play()
    other = TeachWidget(dock._viewer)
    layer = dock._viewer.add_labels(np.ones((8, 8), int), name="cells")
    dock.workspace.linked.set(Linked(layer))
    other.close()
    view = dock.workspace.maps.capture().maps[0].view
    assert view["layers"]["labels"]["name"] == "cells"
