"""The list of presets: chosen with the mouse."""

import pytest
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest

from napari_embedding_game.ui.controls.method import MethodControls
from napari_embedding_game.ui.controls.preset_box import BY_HAND, SOON_MS


@pytest.fixture
def method(qtbot, session):
    method = MethodControls(session)
    qtbot.addWidget(method)
    method.show()
    yield method
    method.close()


def pick(method, name):
    """Click on the list, and choose one of its presets with the keyboard."""
    box = method.presets
    QTest.mouseClick(box, Qt.MouseButton.LeftButton)
    view = box.view()
    assert view.isVisible()
    view.setCurrentIndex(view.model().index(box.findText(name), 0))
    QTest.keyClick(view, Qt.Key.Key_Return)
    assert box.currentText() == name
    QTest.qWait(SOON_MS + 50)


def test_a_preset_is_chosen_with_the_mouse(method, session):
    box = method.presets
    assert box.currentText() == "Standard"
    pick(method, "Islands apart")
    assert session.settings.repulsion == 100
    assert method.repulsion.value == 100
    assert box.currentText() == "Islands apart"
    pick(method, "Continuity")
    assert method.controls["n_neighbors"].value == 50
    pick(method, "Standard")
    assert method.controls["n_neighbors"].value == 15
    assert method.repulsion.value == 300


def test_what_is_changed_by_hand_is_no_preset(method, session, qtbot):
    box = method.presets
    method.controls["n_neighbors"].value = 33
    qtbot.waitUntil(lambda: box.currentIndex() == -1)
    assert box.placeholderText() == BY_HAND
    method.controls["n_neighbors"].value = 15
    qtbot.waitUntil(lambda: box.currentText() == "Standard")


def test_each_preset_says_what_it_sets(method):
    box = method.presets
    tips = {
        box.itemText(i): box.itemData(i, Qt.ItemDataRole.ToolTipRole)
        for i in range(box.count())
    }
    assert "Repulsion 100, Neighbours 50" in tips["Continuity"]
    assert "by default" in tips["Standard"]
    assert all(tips.values())


@pytest.mark.parametrize("repulsion", [26_700.123, 1e-7, 10_000.0, 300.0])
def test_a_repulsion_beyond_the_slider_is_shown(method, session, repulsion):
    """Sessions and programs can set what no person could choose here."""
    session.settings.repulsion = repulsion
    method.show_settings()
    assert method.repulsion.value == pytest.approx(repulsion, rel=1e-2)
    slider = method.repulsion_slider
    assert slider.min <= slider.value <= slider.max
