"""What napari's manifest names, with the real engine and real data."""

import subprocess
import sys
import threading

import numpy as np
import pandas as pd
import pytest
from anndata import read_h5ad
from napari.components import ViewerModel
from napari.settings import get_settings
from napari.utils.notifications import notification_manager
from qtpy.QtCore import Qt
from qtpy.QtWidgets import QDockWidget, QWidget

from napari_embedding_game import ui
from napari_embedding_game.session.file import archive
from napari_embedding_game.ui import plugin
from napari_embedding_game.ui.compat import find_main_window
from napari_embedding_game.ui.game_dock import GameDock
from napari_embedding_game.ui.workspace import get_workspace

PLUGIN = "Embedding Game"
GAME = f"Map ({PLUGIN})"


def boxes(viewer):
    """Return title, area and visibility of the docks of this plugin."""
    main = find_main_window(viewer.window.main_menu)
    ours = [
        box
        for box in main.findChildren(QDockWidget)
        if isinstance(box.widget(), GameDock)
    ]
    return {
        box.windowTitle(): (main.dockWidgetArea(box), box.isHidden()) for box in ours
    }


def test_what_the_menu_and_a_program_open(window, from_menu, monkeypatch, qtbot):
    loaded = threading.Event()
    warm_up = "napari_embedding_game.ui.controller._compile_and_warm_up"
    monkeypatch.setattr(warm_up, lambda compilers: loaded.wait())
    from_menu(window.window.plugins_menu, PLUGIN, GAME)  # before the engine is loaded
    shown = {GAME: (Qt.DockWidgetArea.RightDockWidgetArea, False)}
    assert boxes(window) == shown
    loaded.set()
    plugin.open_dock(window)  # as a sample does: there is no other
    assert boxes(window) == shown
    opened = plugin.open_dock(window)
    window.window.show()
    before = window.window.add_dock_widget(QWidget(), tabify=True)
    qtbot.waitUntil(opened.visibleRegion().isEmpty)
    plugin.open_dock(window)
    qtbot.waitUntil(lambda: not opened.visibleRegion().isEmpty())
    before.close()
    for _ in range(2):
        add = window.window.add_plugin_dock_widget
        box, widget = add("napari-embedding-game", "Map")
        assert widget is opened  # with all that a person has done in it
        qtbot.waitUntil(lambda box=box: box.isVisible() and opened.isVisible())
        assert list(boxes(window)) == ["Map (napari-embedding-game)"]
    assert widget.workspace.docks
    width, table, letters = (
        widget.minimumWidth(),
        widget.cluster_pane.table,
        get_settings(),
    )
    letters.appearance.font_size = 2 * letters.appearance.font_size
    assert widget.minimumWidth() > 1.3 * width
    assert table.font().pointSize() == letters.appearance.font_size
    assert not table.tabKeyNavigation()  # Tab leaves it, and reaches what has a name
    assert widget.method_controls.repulsion.native.accessibleName() == "Repulsion"
    image = window.add_image(np.zeros((2, 2)))
    assert window.layers.selection.active is image
    from_menu(window.window.plugins_menu, PLUGIN, GAME)
    qtbot.waitUntil(lambda: boxes(window) == shown)
    assert plugin.open_dock(window) is opened


def test_a_sample_shows_the_dock_wherever_it_is(window, qtbot, from_menu):
    session, sample = get_workspace(window).session, "Handwritten digits (1,797 images)"
    assert get_workspace(ViewerModel()).session is not session  # of another viewer
    window.window.show()
    for name in ("Teach", "Plate", "Reference", "Tracks"):  # before there are data
        from_menu(window.window.plugins_menu, PLUGIN, f"{name} ({PLUGIN})")
        widget = window.window.dock_widgets[f"{name} ({PLUGIN})"]
        qtbot.waitUntil(lambda state=widget.state: bool(state.text()))
        assert "#" in widget.styleSheet()  # the colours of the theme
        widget.close()
    from_menu(window.window.plugins_menu, PLUGIN, GAME)
    for change in ("float", "hide", "close"):
        box = find_main_window(window.window.main_menu).findChild(QDockWidget, GAME)
        box.setFloating(True) if change == "float" else getattr(box, change)()
        before = session.dataset
        from_menu(window.window.file_menu, "Open Sample", PLUGIN, sample)
        qtbot.waitUntil(lambda before=before: session.dataset is not before)
        assert [hidden for _, hidden in boxes(window).values()] == [False], change


def test_a_dropped_file_is_loaded_into_the_dock(window, qtbot, tmp_path, monkeypatch):
    table = str(tmp_path / "table.csv")
    rows = np.random.default_rng(0).normal(size=(30, 3))
    np.savetxt(table, rows, delimiter=",", header="a,b,c", comments="")
    reader = plugin.get_reader([table])
    assert [data[0].shape for data in reader(table)] == [(0, 2)]
    session = get_workspace(window).session
    qtbot.waitUntil(lambda: session.dataset is not None)
    assert session.dataset.X.shape == (30, 3)
    path = tmp_path / "none.h5ad"  # one that cannot be read leaves no empty layer
    path.write_text("no file at all")
    # It is dropped on another window than the present one.
    monkeypatch.setattr("napari.current_viewer", ViewerModel)
    layers = window.open([table, path], plugin="napari-embedding-game")
    # An empty layer may end the program when it is drawn.
    assert [layer.visible for layer in layers] == [False, False]
    dock = plugin.open_dock(window)
    qtbot.waitUntil(lambda: bool(dock.data_controls.trouble.text()))
    assert list(window.layers) == []
    assert notification_manager.records[-1].message == plugin.ONE_FILE
    assert plugin.get_reader("picture.tif") is None  # left to others
    saved, other = tmp_path / "saved.zip", tmp_path / "other.ZIP"
    archive.save_session(dock.workspace.map_tree.to_saved_session(), saved)
    np.savez(other.with_suffix(""), rows)
    other.with_suffix(".npz").rename(other)
    for path, is_ours in ((saved, True), (other, False), (tmp_path / "no.zip", False)):
        assert bool(plugin.get_reader(str(path))) == is_ours, path
    points = tmp_path / "points.csv"  # as napari saves a layer
    window.add_points(rows[:, :2], name="points").save(str(points))
    window.layers.remove("points")
    assert plugin.get_reader(str(points)) is None
    window.open(saved, plugin="napari-embedding-game")
    with qtbot.waitSignal(dock.controller.reading.session_opened):
        pass
    assert plugin.get_reader(["a.csv", "b.csv"]) is None


def test_napari_saves_the_layer_of_a_map_as_anndata(window, qtbot, tmp_path):
    rows = np.random.default_rng(0).normal(size=(60, 4))
    table = pd.DataFrame(rows, columns=list("abcd")).assign(kind=["A", "B"] * 30)
    table.to_csv(tmp_path / "cells.csv", index=False)
    dock = plugin.open_dock(window)
    with qtbot.waitSignal(dock.controller.reading.loaded):
        window.open(tmp_path / "cells.csv", plugin="napari-embedding-game")
    other = window.add_points(np.zeros((3, 2)), name="other")
    with pytest.raises(OSError, match="Only a map of the Embedding Game is saved"):
        other.save(str(tmp_path / "map.h5ad"))
    dock.run_controls.run_button.click()
    session = dock.workspace.session
    qtbot.waitUntil(lambda: session.state == "finished")
    points = dock.controller.scene.map_layers.points
    points.save(str(tmp_path / "map.h5ad"))
    with pytest.raises(OSError, match="cannot be written, as the folder"):
        points.save(str(tmp_path / "none" / "map.h5ad"))
    adata = read_h5ad(tmp_path / "map.h5ad")
    places = adata.obsm["X_embedding_game"]
    np.testing.assert_array_equal(places, session.snapshot.embedding)
    assert adata.obs["kind"].tolist() == table["kind"].tolist()


def test_the_first_opening_is_announced(monkeypatch, qapp):
    """Its imports take seconds, in which the window would seem to be stuck."""
    told = []
    announce = property(fset=lambda viewer, text: told.append(text))
    viewer = type("Viewer", (), {"status": announce})()
    assert plugin._import_dock_class(viewer) is GameDock
    assert not told  # it is imported
    monkeypatch.setattr(ui, "game_dock", ui.game_dock)  # the import replaces it
    monkeypatch.delitem(sys.modules, "napari_embedding_game.ui.game_dock")
    assert plugin._import_dock_class(viewer) is not GameDock
    assert told == [plugin.OPENING, plugin.READY]


def test_who_only_reads_a_file_keeps_their_process_as_it_is():
    """malloc has its own settings, and garbage is Python's."""
    code = (
        "import ctypes, gc\n"
        "asked, get = [], ctypes.CDLL.__getattr__\n"
        "def spy(library, name):\n"
        "    asked.append(name)\n"
        "    return get(library, name)\n"
        "ctypes.CDLL.__getattr__ = spy\n"
        "from napari_embedding_game.ui.plugin import get_reader\n"
        "assert get_reader('table.csv') is not None\n"
        "assert gc.isenabled()\n"
        "assert 'mallopt' not in asked, asked\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
