"""The button that gives the map the room of the other docks."""

import numpy as np
from qtpy.QtWidgets import QApplication, QDockWidget

from napari_embedding_game.ui.canvas.projection import layer_projection
from napari_embedding_game.ui.compat import find_main_window
from worlds import click


def on_show(main):
    boxes = main.findChildren(QDockWidget)
    return {box.objectName() for box in boxes if box.isVisible()}


def test_the_map_has_most_of_the_window_and_the_panels_come_back(
    seen, qtbot, monkeypatch
):
    a_smaller_window_shows_all_of_the_map(seen, qtbot)
    the_tools_stand_in_the_corner_of_the_map(seen, qtbot)
    main, larger = find_main_window(seen.dock), seen.dock.larger_map
    canvas, noted = main.centralWidget(), []

    def is_large():
        return canvas.width() * canvas.height() >= 0.6 * main.width() * main.height()

    for width in (1100, 1500, 2000):
        seen.viewer.window.resize(width, 900)
        before = on_show(main)
        click(larger)
        assert on_show(main) == {"game"}
        qtbot.waitUntil(is_large)
        click(larger)
        assert on_show(main) == before

    def refuse(main, event):
        noted.append(on_show(main))
        event.ignore()

    click(larger)  # they are back before napari notes where they were
    with monkeypatch.context() as refusing:
        refusing.setattr(type(main), "closeEvent", refuse)
        main.close()
    assert noted == [before]
    assert not larger.isChecked()
    click(larger)  # a dock that is closed gives the others back
    click(main.findChild(QDockWidget, "game").title.close_button)
    qtbot.waitUntil(lambda: on_show(main) == before - {"game"})


def the_tools_stand_in_the_corner_of_the_map(seen, qtbot):
    viewer, strip, points = seen.viewer, seen.dock.tool_strip, seen.layers.points
    tools = seen.dock.selection_controls

    def is_in_the_corner():
        x, y, _, height = layer_projection(viewer, points).canvas_box
        corner = strip.geometry().bottomLeft()
        return abs(corner.x() - x) < 10 > abs(y + height - corner.y())

    assert strip.isVisible()
    assert is_in_the_corner()
    n_high = strip.height()
    click(tools.lasso_button)
    qtbot.waitUntil(lambda: strip.height() > n_high)  # with the hint
    assert is_in_the_corner()
    click(tools.lasso_button)
    qtbot.waitUntil(lambda: strip.height() == n_high)
    viewer.add_image(np.zeros((40, 40)))
    viewer.canvas.grid.enabled = True
    qtbot.waitUntil(is_in_the_corner)
    viewer.canvas.grid.enabled = False
    viewer.layers.remove(viewer.layers[-1])
    points.visible = False  # where no map is there are no tools
    qtbot.waitUntil(lambda: not strip.isVisible())
    points.visible = True
    qtbot.waitUntil(strip.isVisible)


def a_smaller_window_shows_all_of_the_map(seen, qtbot):
    viewer, points = seen.viewer, seen.layers.points

    def resize(width, height):
        before = viewer.canvas.size
        viewer.window.resize(width, height)
        qtbot.waitUntil(lambda: viewer.canvas.size != before)
        QApplication.processEvents()

    def is_seen():
        drawn = layer_projection(viewer, points)
        return drawn.contains(drawn.to_pixels(points.data)).all()

    resize(1500, 950)
    viewer.reset_view()
    resize(1100, 700)
    assert is_seen()
    viewer.scene.camera.zoom *= 3  # who looks at a part goes on with it
    zoom = viewer.scene.camera.zoom
    resize(1000, 650)
    assert viewer.scene.camera.zoom == zoom
