"""The timeline in the window: click a mark, step, continue."""

from dataclasses import replace

import numpy as np
import pytest
from qtpy.QtCore import QPointF, Qt
from qtpy.QtTest import QTest

from napari_embedding_game.session.moment import Moment
from napari_embedding_game.ui.canvas.layers import BESIDE
from napari_embedding_game.ui.canvas.pick import row_at
from napari_embedding_game.ui.controls.timeline_strip import PICTURE, Strip


@pytest.fixture
def finished(qtbot, dock, session):
    """The dock after a run that was held once."""
    dock.run.run.native.click()
    qtbot.waitUntil(lambda: session.state == "finished")
    dock.trust_fold.expand(animate=False)
    session.settings.repulsion = 900.0
    qtbot.waitUntil(lambda: session.timeline.marks[-1].snapshot.iteration > 50)
    return dock


def click(strip, mark):
    QTest.mouseClick(
        strip, Qt.MouseButton.LeftButton, pos=strip.place(mark.number).toPoint()
    )


def test_a_click_on_a_mark_shows_its_map_and_continue_plays_on(
    qtbot, finished, session
):
    timeline, strip = session.timeline, finished.run.timeline.strip
    first, end = timeline.marks[0], timeline.marks[-1]
    finished.game.show_settings()
    assert finished.game.repulsion.value == 900
    click(strip, first)
    assert session.snapshot is first.snapshot
    assert session.settings.repulsion is None
    assert finished.game.repulsion.value == 300  # that of the map on show
    layer = finished.controller.layers.points
    assert finished.run.status.text().startswith("50 of")
    drawn, layer.data[:] = layer.data.copy(), 0.0
    click(strip, end)
    assert np.ptp(layer.data[:, 1]) == np.ptp(drawn[:, 1])  # drawn once more
    assert not finished.run.status.text().startswith("50 of")
    QTest.keyClick(strip, Qt.Key.Key_Left)
    changed = timeline.marks[-2]
    assert timeline.shown is changed
    finished.run.timeline.go_on.native.click()
    qtbot.waitUntil(lambda: session.state == "finished")
    assert timeline.newest.parent == changed.number
    assert timeline.newest.branch == end.branch + 1
    assert finished.controller.layers.points is layer


def test_steps_back_and_forth(finished, session):
    steps = finished.run.timeline
    assert not steps.forward.enabled
    steps.back.native.click()
    steps.back.native.click()
    assert session.timeline.shown is session.timeline.marks[-2]
    steps.forward.native.click()
    assert session.timeline.shown is session.timeline.marks[-1]


def test_a_mark_is_told_pinned_and_deleted_by_its_menu(finished, session):
    strip, timeline = finished.run.timeline.strip, session.timeline
    first = timeline.marks[0]
    place = strip.place(first.number)
    assert strip.mark_at(place) is first
    assert strip.mark_at(QPointF(place.x() + 200, place.y())) is None
    assert "Finished" in strip.told(first)
    assert "Embedding game, seed 0" in strip.told(first)
    texts = {a.text(): a for a in strip.menu(first).actions()}
    texts["Pin (keep when memory runs short)"].trigger()
    assert "Pinned" in strip.told(timeline.marks[0])
    texts["Delete"].trigger()
    assert timeline.find(first.number) is None


def test_the_small_picture_is_the_right_way_up(qtbot, make_snapshot):
    qtbot.addWidget(strip := Strip())
    places = np.zeros((40, 2), np.float32)
    places[0] = [1.0, 1.0]  # to the right, and up
    shot = replace(make_snapshot(), embedding=places)
    image = strip.picture(shot)
    half = PICTURE // 2

    def drawn(column, row):
        cells = range(half)
        return any(
            image.pixelColor(column * half + i, row * half + j).lightness() > 100
            for i in cells
            for j in cells
        )

    assert (drawn(1, 0), drawn(0, 1)) == (True, True)
    assert (drawn(0, 0), drawn(1, 1)) == (False, False)


def test_a_map_is_compared_with_another_by_a_slider_and_colours(
    qtbot, finished, session
):
    steps, layers = finished.run.timeline, finished.controller.layers
    bar, look, here = steps.comparison, session.look, session.snapshot
    mixed = np.random.default_rng(0).permutation(here.embedding)
    other = replace(here, embedding=mixed)
    added = session.timeline.add(
        "Other", "hand", Moment(settings=session.settings.value, snapshot=other)
    )
    assert not bar.isVisibleTo(steps)
    gallery = steps.gallery
    gallery.popup(steps.compare.mapToGlobal(steps.compare.rect().center()))
    pictures = gallery.pictures
    assert pictures.count() == len(session.timeline.marks) - 1
    place = pictures.visualItemRect(pictures.item(0)).center()  # the newest
    QTest.mouseClick(pictures.viewport(), Qt.MouseButton.LeftButton, pos=place)
    qtbot.waitUntil(lambda: session.comparing.current is not None)
    assert session.comparing.current.mark is added
    assert bar.isVisibleTo(steps)
    assert added.title in bar.there.text()
    assert "Neighbours kept" in bar.words.text()
    drawn = layers.points.data.copy()
    bar.slider.setValue(100)
    assert session.snapshot is here
    assert session.drawn is not here
    moved = np.linalg.norm(layers.points.data - drawn, axis=1)
    told = session.comparing.current.maps.moved
    assert told.max() > 0.1
    assert np.corrcoef(moved, told)[0, 1] > 0.999
    bar.by_movement.click()
    assert look.color_by == "Movement"
    bar.close_button.click()
    assert look.color_by == "Cluster"
    assert not bar.isVisibleTo(steps)
    np.testing.assert_allclose(layers.points.data, drawn, atol=1e-5)


def test_a_mark_is_compared_by_its_menu_and_playing_on_ends_it(
    qtbot, finished, session
):
    steps = finished.run.timeline
    menu = steps.strip.menu(session.timeline.marks[0])
    texts = {action.text(): action for action in menu.actions()}
    texts["Compare with the map on show"].trigger()
    qtbot.waitUntil(lambda: session.comparing.current is not None)
    steps.comparison.slider.setValue(40)
    finished.run.run.native.click()
    assert session.comparing.current is None
    assert session.drawn is session.snapshot
    assert not steps.comparison.isVisibleTo(steps)
    qtbot.waitUntil(lambda: session.state == "finished")


def test_maps_lie_side_by_side_and_are_chosen_from_together(
    qtbot, finished, session, viewer
):
    layers, bar = finished.controller.layers, finished.run.timeline.comparison
    here = session.snapshot
    rng = np.random.default_rng(0)
    other = replace(here, embedding=rng.permutation(here.embedding))
    added = session.timeline.add(
        "Other", "hand", Moment(settings=session.settings.value, snapshot=other)
    )
    finished.run.timeline.comparison.begin(added.number)
    qtbot.waitUntil(lambda: session.comparing.current is not None)
    n_layers = len(viewer.layers)
    bar.side_by_side.click()
    assert not bar.slider.isVisibleTo(bar)
    beside = layers.other(BESIDE)
    assert viewer.layers[-1] is beside
    assert len(viewer.layers) == n_layers + 1
    n_points = len(here.embedding)
    assert len(beside.data) == n_points
    assert beside.data[:, 1].min() > layers.points.data[:, 1].max()
    np.testing.assert_array_equal(beside.face_color, layers.points.face_color)

    # What is under the mouse on either map is the same row; a click chooses there too.
    seen = layers.projection().to_pixels(session.seen)
    for row in (0, 20, 39):
        for pixel in (seen[row], seen[n_points + row]):
            found = row_at(layers, session.seen, pixel) % n_points
            assert found == row or any(
                np.allclose(seen[found + shift], pixel, atol=3)
                for shift in (0, n_points)
            )
    around = seen[n_points + 5] + np.array([[-4, -4], [4, -4], [4, 4], [-4, 4]])
    finished.controller.mouse.surround(around, False)
    assert 5 in session.selection.rows
    chosen = session.selection.points
    assert not chosen.all()
    np.testing.assert_array_equal(beside.face_color, layers.points.face_color)

    viewer.layers.remove(beside)
    assert not session.comparing.is_side_by_side
    assert not bar.side_by_side.isChecked()
    bar.side_by_side.click()
    assert layers.other(BESIDE) in viewer.layers
    bar.close_button.click()
    assert len(viewer.layers) == n_layers
    assert layers.other(BESIDE) is None
    assert session.snapshot is here
