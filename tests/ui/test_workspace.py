"""What the docks of a viewer share: made once, closed with the window."""

import gc
from weakref import ref

import numpy as np
import pytest
from napari.components import ViewerModel

from napari_embedding_game.ui import plugin
from napari_embedding_game.ui.images.linked_layers import Linked
from napari_embedding_game.ui.widgets.teach import TeachWidget
from napari_embedding_game.ui.workspace import (
    Workspace,
    workspace_of,
)


def test_two_viewers_share_nothing(viewer):
    one, other = workspace_of(viewer), workspace_of(ViewerModel())
    assert one.session is not other.session
    assert one.linked is not other.linked


def test_a_workspace_does_not_keep_its_viewer_alive():
    viewer = ViewerModel()
    seen, workspace = ref(viewer), workspace_of(viewer)
    del viewer
    gc.collect()
    assert seen() is None
    assert isinstance(workspace, Workspace)


@pytest.mark.parametrize("close", ["the docks", "the window"])
def test_the_workspace_is_closed_with_the_window_and_not_with_its_docks(
    window, qtbot, close
):
    workspace, closed = workspace_of(window), []
    workspace.close = lambda: closed.append(list(workspace.docks))
    window.window.show()
    dock = plugin.open_dock(window)
    qtbot.waitUntil(dock.isVisible)
    assert len(workspace.docks) == 1
    if close == "the docks":
        for widget in list(workspace.docks):
            window.window.remove_dock_widget(widget)
        qtbot.wait(50)
        assert not workspace.docks
        assert not closed
        assert workspace_of(window) is workspace
    else:
        window.close()
        qtbot.waitUntil(lambda: closed == [[]])  # once, after its docks


def test_layers_of_the_map_are_saved_though_another_dock_is_closed_first(
    dock, session, play
):
    play()
    other = TeachWidget(dock._viewer)
    layer = dock._viewer.add_labels(np.ones((8, 8), int), name="cells")
    dock.workspace.linked.set(Linked(layer))
    for each in (other, dock):
        each._closing.is_with_window = True
    other.close()
    view = dock.controller.session_store.capture().maps[0].view
    assert view["layers"]["labels"]["name"] == "cells"
    dock.close()
    assert dock.workspace.linked.current is None
