"""Levels hidden by clicks in the legend: not drawn, not picked, told, and kept."""

from types import SimpleNamespace

import numpy as np
import pytest
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QMenu

from napari_embedding_game.session.file import archive
from napari_embedding_game.ui.canvas.pick import row_at
from napari_embedding_game.ui.tasks.writing import colors_of

LEFT, RIGHT = Qt.MouseButton.LeftButton, Qt.MouseButton.RightButton
PLAIN = Qt.KeyboardModifier.NoModifier


@pytest.fixture
def layers(play, dock):
    dock.look.color_by.value = "kind"
    layers = play()
    dock.show()
    return layers


@pytest.fixture
def row(dock):
    """The name of a level in the legend, where a click finds it."""

    def row(level):
        body = dock.look.legend.levels
        return next(name for _, name in body._rows if name.text() == level)

    return row


@pytest.fixture
def choose(dock, row):
    """Click on an entry of the menu of a level."""

    def choose(level, entry):
        body = dock.look.legend.levels
        place = [name for _, name in body._rows].index(row(level))
        menu = body.menu_of(place)
        next(a for a in menu.actions() if a.text() == entry).trigger()
        menu.close()

    return choose


def drawn(layers):
    """Return the rows that are drawn."""
    return np.flatnonzero(layers.points.shown).tolist()


def test_a_level_is_hidden_from_its_menu(layers, dock, row, qtbot):
    body = dock.look.legend.levels
    QTest.mouseClick(row("B"), RIGHT)
    menu = body.findChild(QMenu)
    assert [a.text() for a in menu.actions()] == ["Hide", "Show only this", "Show all"]
    assert not menu.actions()[2].isEnabled()
    menu.actions()[0].trigger()
    menu.close()
    assert drawn(layers) == list(range(1, 40, 2))
    assert dock.look.legend.note.text() == (
        "1 level of kind hidden: 20 points are not drawn."
    )
    assert row("B").font().strikeOut()
    last = body.menu_of(1)
    assert not last.actions()[0].isEnabled()  # the last one stays
    last.close()
    dock.look.legend.show_all.click()
    assert drawn(layers) == list(range(40))
    assert dock.look.legend.note.text() == ""


def test_a_click_shows_a_hidden_level_again(layers, choose, row, session):
    choose("B", "Hide")
    QTest.mouseClick(row("B"), LEFT)
    assert drawn(layers) == list(range(40))
    assert session.selection.is_empty


def test_hidden_points_are_not_pointed_at(layers, choose, session, dock):
    pixels = layers.projection().to_pixels(session.view.drawn.embedding)
    places = session.view.drawn.embedding
    assert row_at(layers, places, pixels[0]) == 0
    choose("B", "Hide")
    found = row_at(layers, places, pixels[0], session.view.hidden)
    assert found is None or found % 2
    pointing = dock.mouse
    low, high = pixels.min(axis=0) - 5, pixels.max(axis=0) + 5
    corners = np.array([low, [high[0], low[1]], high, [low[0], high[1]]])
    pointing.surround(corners, False)
    np.testing.assert_array_equal(session.selection.rows, range(1, 40, 2))
    session.selection.clear()
    choose("B", "Show")
    labels = session.clusters.labels
    dock.look.color_by.value = "Cluster"
    session.view.hide("", str(labels[0]))
    pointing.click(SimpleNamespace(pos=pixels[0], modifiers=[], view_direction=None))
    assert int(labels[0]) not in session.selection.clusters


def test_selected_points_that_are_hidden_are_told(layers, choose, session, dock):
    session.selection.select_points(np.arange(4))
    choose("B", "Hide")
    assert dock.select.text.text() == "2 of them hidden"
    assert drawn(layers) == list(range(1, 40, 2))


def test_points_stay_hidden_while_the_game_runs(layers, choose, play, session):
    choose("B", "Hide")
    seen = []
    session.progressed.connect(lambda _: seen.append(drawn(layers)))
    play()
    assert seen
    assert all(rows == list(range(1, 40, 2)) for rows in seen)


def test_a_session_file_brings_them_back(
    qtbot, layers, choose, session, dock, tmp_path
):
    choose("B", "Hide")
    path = tmp_path / "map.egs"
    archive.save(dock.controller.session_store.capture(), path)
    session.view.show_all()
    dock.controller.reading.open_session(path)
    qtbot.waitUntil(lambda: session.look.hidden.levels == ("B",))
    assert session.view.n_hidden == 20


def test_figures_leave_them_out(layers, choose, workspace):
    choose("B", "Hide")
    colors = colors_of(workspace)
    assert colors.shown.sum() == 20
    assert set(colors.levels.codes[colors.shown].tolist()) == {1}


def test_names_of_hidden_clusters_are_not_written(layers, dock, session, qtbot):
    dock.look.color_by.value = "Cluster"
    qtbot.waitUntil(lambda: len(dock.names.names.clusters) == 4)
    first = session.clusters.clusters[0].id
    session.view.hide("", str(first))
    qtbot.waitUntil(lambda: len(dock.names.names.clusters) == 3)
    assert first not in {c.id for c in dock.names.names.clusters}
