"""Gene against gene: typed axes, and a rectangle that selects cells on the map."""

from dataclasses import replace

import numpy as np
import pytest
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest

from napari_embedding_game.ui.game_dock import PLOTS
from napari_embedding_game.ui.inspector.scatter_plot import ticks

LEFT = Qt.MouseButton.LeftButton


@pytest.fixture
def pane(session, dock, inspector, dataset, play):
    """Cells whose genes a and b are high in the first and second ten."""
    rng = np.random.default_rng(0)
    values = 0.2 + rng.random((40, 5)).astype(np.float32) / 2
    values[:10, 0] += 3
    values[10:20, 1] += 3
    values[20:, :2] = 0
    session.load(replace(dataset, profile=values, has_expression=True))
    play()
    inspector.resize(1200, 320)
    inspector.show(PLOTS)
    pane = inspector.plots.scatter
    inspector.plots.tabs.setCurrentWidget(pane)
    return pane


def name(pane, across, up):
    for field, text in ((pane.across, across), (pane.up, up)):
        field.clear()
        QTest.keyClicks(field, text)
        QTest.keyClick(field, Qt.Key.Key_Return)


def drag(plot, one, other, modifier=Qt.KeyboardModifier.NoModifier):
    begin, end = plot.place(*one).toPoint(), plot.place(*other).toPoint()
    QTest.mousePress(plot, LEFT, modifier, begin)
    QTest.mouseMove(plot, (begin + end) / 2)
    QTest.mouseMove(plot, end)
    QTest.mouseRelease(plot, LEFT, modifier, end)


def test_a_gate_selects_its_cells_on_the_map(pane, session):
    name(pane, "A", "b")
    assert pane.across.text() == "a"
    assert pane.state.text().startswith("Correlation (Pearson) -0.")
    drag(pane.plot, (2, -0.1), (9, 1))
    assert session.selection.rows.tolist() == list(range(10))
    assert pane.state.text() == "10 of 40 points in the gate, 25.0%."
    shift = Qt.KeyboardModifier.ShiftModifier
    drag(pane.plot, (0.1, 2), (1, 9), shift)
    assert session.selection.rows.tolist() == list(range(20))
    assert pane.plot.gate is not None
    session.selection.select(0)  # elsewhere: what is drawn is no gate any more
    assert pane.plot.gate is None
    assert pane.state.text().startswith("Correlation")


def test_zeros_are_seen_below_0_and_are_in_a_gate_that_reaches_there(pane, session):
    name(pane, "a", "b")
    drag(pane.plot, (-1, -1), (0.1, 0.1))
    assert session.selection.rows.tolist() == list(range(20, 40))
    drag(pane.plot, (0.01, 0.01), (9, 9))
    assert session.selection.rows.tolist() == list(range(20))


def test_an_empty_gate_and_a_click_select_nothing(pane, session):
    name(pane, "a", "b")
    drag(pane.plot, (2, 2), (3, 3))
    assert session.selection.is_empty
    assert pane.state.text() == "0 of 40 points in the gate, 0.0%."
    session.selection.select(0)
    QTest.mouseClick(pane.plot, LEFT, pos=pane.plot.place(1, 1).toPoint())
    assert session.selection.is_empty
    assert pane.isVisible()


def test_selected_points_have_their_colour_and_others_are_grey(pane, session):
    name(pane, "a", "b")
    session.selection.select_points(np.arange(10))
    image = pane.plot.grab().toImage()
    place = pane.plot.place(*session.dataset.profile[3, :2]).toPoint()
    color = image.pixelColor(place).getRgbF()[:3]
    wanted = pane._palette.of_points()[3, :3]
    np.testing.assert_allclose(color, wanted, atol=0.02)
    other = pane.plot.place(*session.dataset.profile[13, :2]).toPoint()
    red, green, blue, _ = image.pixelColor(other).getRgb()
    assert max(red, green, blue) - min(red, green, blue) < 30


def test_what_is_no_axis_is_told(pane, session):
    name(pane, "a", "kind")
    assert 'no gene, score or column of numbers "kind"' in pane.state.text()
    assert pane.plot.grab().toImage().width() > 0
    name(pane, "a", "counts")
    assert pane.state.text().startswith("Correlation")
    pane.up.clear()
    pane.up.editingFinished.emit()
    assert pane.state.text().startswith("Type two names")


def test_a_new_score_is_offered(pane, session):
    session.dataset.add_score("mine", np.arange(40.0), ("a",))
    session.columns_changed.emit()
    assert "mine" in pane._names.stringList()
    name(pane, "mine", "a")
    drag(pane.plot, (-1, -1), (9.5, 9))
    assert session.selection.rows.tolist() == list(range(10))


def test_ticks_are_round_numbers():
    assert ticks(-0.3, 6.2) == [0, 2, 4, 6]
    assert ticks(0.011, 0.032) == [0.015, 0.02, 0.025, 0.03]
    assert ticks(-1200, 400) == [-1000, -500, 0]
