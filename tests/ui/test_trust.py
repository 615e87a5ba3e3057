"""Trust and earlier maps: how good the map is, its timeline, and maps compared."""

import threading
from dataclasses import replace

import numpy as np
import pytest
from qtpy.QtCore import QItemSelectionModel, Qt
from qtpy.QtTest import QTest

from napari_embedding_game.core.inspect.quality import (
    ColumnAgreement,
    GraphParts,
    MapQuality,
)
from napari_embedding_game.session.run.record import Moment
from napari_embedding_game.ui.canvas.layers import COMPARED
from napari_embedding_game.ui.canvas.pick import find_row_at_pixel
from napari_embedding_game.ui.controls import trust as trust_module
from napari_embedding_game.ui.controls.timeline import describe_mark
from napari_embedding_game.ui.controls.trust import WAITING

FOUND = MapQuality(0.25, 0.9, 0.8, 0.7, 1000, 15)
LEFT = Qt.MouseButton.LeftButton


@pytest.fixture
def trust(dock):
    dock.resize(400, 1500)
    dock.show()
    return dock.trust_controls


def unfold(dock):
    QTest.mouseClick(dock.trust_fold.button, LEFT)
    assert dock.trust_fold.is_expanded


def test_the_figures_follow_the_map_and_its_colours(
    trust, dock, play, session, dataset, qtbot
):
    def share(name):
        return trust.figures.frame.loc[name].iloc[2]

    assert trust.note.text() == WAITING
    play()
    qtbot.waitUntil(lambda: "Trustworthy" in trust.summary.text())  # folded: once
    unfold(dock)
    qtbot.waitUntil(lambda: "on 40 points. " in trust.note.text())  # on all of them
    for name in trust_module.FIGURES:
        assert share(name).endswith("%")
        assert "%" in trust.figures.tips[name]
    is_doubtful = float(share("trustworthiness").rstrip("%")) < 80
    assert (trust.summary.property("role") == "warning") == is_doubtful
    QTest.mouseClick(trust.show_misplaced, LEFT)
    assert session.look.color_by == "Stretch"
    session.load(None)
    qtbot.waitUntil(lambda: share("triplets") == "–")
    assert trust.note.text() == WAITING


@pytest.mark.parametrize("most", [39, 40])
def test_a_large_map_is_measured_when_it_is_asked_for(
    trust, play, qtbot, dock, monkeypatch, most
):
    monkeypatch.setattr(trust_module, "MAX_AUTOMATIC_ROWS", most)
    measured = []
    monkeypatch.setattr(
        trust_module, "make_quality_job", lambda session: measured.append(session.state)
    )
    play()
    assert measured == (["finished"] if most == 40 else [])
    unfold(dock)
    assert measured[-1:] == ["finished"]


def test_what_was_measured_of_a_former_map_is_not_told_of_the_next(
    trust, dock, play, session, monkeypatch, qtbot
):
    gates = []

    def job(session):
        gates.append(gate := threading.Event())
        found = replace(FOUND, trustworthiness=0.4 + len(gates) / 10)
        return lambda: gate.wait(20) and found

    monkeypatch.setattr(trust_module, "make_quality_job", job)
    monkeypatch.setattr(trust_module, "MAX_AUTOMATIC_ROWS", 30)
    play()
    unfold(dock)
    qtbot.waitUntil(lambda: len(gates) == 1)
    dock.trust_fold.set_expanded(False)
    former = session.snapshot
    dock.run_controls.run_button.click()
    qtbot.waitUntil(lambda: session.snapshot not in (None, former))
    qtbot.waitUntil(lambda: session.state == "finished")
    gates[0].set()
    qtbot.settle()
    assert "Trustworthy" not in trust.summary.text()
    unfold(dock)
    qtbot.waitUntil(lambda: len(gates) > 1)
    for gate in gates:
        gate.set()
    qtbot.waitUntil(lambda: "Trustworthy" in trust.summary.text())
    dock.trust_fold.set_expanded(False)
    former = session.snapshot
    session.settings.repulsion = 900.0
    qtbot.waitUntil(lambda: session.snapshot is not former)
    session.stop()  # nor what was measured while it moved, of a stopped map
    assert session.state == "stopped"
    assert "Trustworthy" not in trust.summary.text()


def test_parts_and_samples_that_a_map_follows_are_warned_of(
    dock, play, trust, monkeypatch, qtbot
):
    found = replace(FOUND, parts=GraphParts(4, 0.25, 15))
    monkeypatch.setattr(trust_module, "make_quality_job", lambda one: lambda: found)
    title = dock.trust_fold.button
    play()
    qtbot.waitUntil(lambda: "4 pieces" in title.text())  # seen while it is folded
    assert "4 groups without any link (25% of the points" in trust.warning.text()
    few = replace(FOUND, parts=GraphParts(3, 0.004, 15))
    trust.show_quality(few)
    assert trust.warning.isHidden()
    unfold(dock)
    followed = (
        ColumnAgreement("cell_type", 0.9, 0.2),
        ColumnAgreement("stim", 0.88, 0.5),
    )
    clusters = ColumnAgreement("clusters", 0.7, 0.2)
    found = replace(FOUND, columns=followed, clusters=clusters)
    trust.show_quality(found)
    assert "cell_type 90% (20% by chance), stim 88%" in trust.note.text()
    assert "88% of a point's neighbours have the same stim" in trust.warning.text()
    assert "more than are of its cluster (70%)" in trust.warning.text()
    assert "Batch effect of stim" in dock.trust_fold.button.text()
    trust.show_quality(FOUND)
    assert trust.warning.isHidden()
    assert "batch" not in dock.trust_fold.button.text()


# The timeline


@pytest.fixture
def finished(qtbot, dock, session):
    """The dock after a run that was steered once."""
    dock.resize(400, 1500)
    dock.show()
    dock.run_controls.run_button.click()
    qtbot.waitUntil(lambda: session.state == "finished")
    dock.trust_fold.set_expanded(True)
    session.settings.repulsion = 900.0
    qtbot.waitUntil(lambda: session.timeline.marks[-1].snapshot.iteration > 50)
    return dock


def click(timeline, row):
    place = timeline.marks.visualItemRect(timeline.marks.item(row)).center()
    QTest.mouseClick(timeline.marks.viewport(), LEFT, pos=place)


def test_a_click_on_a_picture_shows_its_map_and_continue_plays_on(
    qtbot, finished, session
):
    timeline, shown = session.timeline, finished.timeline_controls
    first = timeline.marks[0]
    assert finished.method_controls.repulsion.value == 900
    qtbot.settle()
    shown.marks.setCurrentRow(0, QItemSelectionModel.SelectionFlag.NoUpdate)
    assert session.snapshot is not first.snapshot  # Tab came in, nothing was chosen
    click(shown, 0)
    assert session.snapshot is first.snapshot
    assert session.settings.repulsion is None
    assert finished.method_controls.repulsion.value == 300  # that of the map on show
    layer = finished.controller.scene.map_layers.points
    stage = finished.run_controls.stage.text
    assert stage() == "An earlier map."
    session.selection.select_cluster(0)
    assert stage() == "An earlier map. Escape shows all groups."
    session.selection.clear()
    assert stage() == "An earlier map."
    QTest.keyClick(shown.marks, Qt.Key.Key_Right)
    assert timeline.current is timeline.marks[1]
    changed = timeline.current
    finished.run_controls.continue_button.click()
    qtbot.waitUntil(lambda: session.state == "finished")
    assert timeline.newest.parent == changed.number
    assert finished.controller.scene.map_layers.points is layer
    assert "Finished" in describe_mark(first)  # and deleted by its menu
    assert "Embedding game, seed 0" in describe_mark(first)
    actions = {a.text(): a for a in shown.make_mark_menu(first).actions()}
    n_marks = len(timeline.marks)
    actions["Delete"].trigger()
    assert timeline.find_mark(first.number) is None
    assert shown.marks.count() == n_marks - 1


def test_it_is_told_that_earlier_maps_are_thinned(finished, session, monkeypatch):
    shown, moment = finished.timeline_controls, session.moment
    assert not shown.thinned.isVisible()
    monkeypatch.setattr("napari_embedding_game.session.timeline.MAX_MARKS", 3)
    for number in range(4):
        session.timeline.add_mark(f"Moved {number}", "hand", moment)
    assert shown.marks.count() == 3
    assert shown.thinned.isVisible()
    n_gone = session.timeline.state.n_made - 3
    assert shown.thinned.text() == (
        f"{n_gone} earlier maps without a name left out to save memory. Rename a map "
        "to keep it."
    )


def test_a_map_is_compared_with_another_by_colours_and_side_by_side(
    qtbot, finished, session, viewer
):
    look, here, bar = session.look, session.snapshot, finished.timeline_controls
    mixed = np.random.default_rng(0).permutation(here.embedding)
    moment = Moment(
        settings=session.settings.value, snapshot=replace(here, embedding=mixed)
    )
    other = session.timeline.add_mark("Other", "hand", moment)

    def compare():
        """Compare with the newest of the other maps, by the menu."""
        bar.others.aboutToShow.emit()
        bar.others.actions()[0].trigger()
        qtbot.waitUntil(lambda: session.view.comparison is not None)

    assert not bar.end.isVisible()
    compare()
    assert session.view.comparison.mark is other
    assert bar.end.isVisible()
    (_, one), (title, _) = session.view.panels.captions
    assert title == other.title
    assert "neighbours kept" in one
    assert "of a point's neighbours are the same" in bar.words.text()
    offered = finished.display_controls.color_by
    assert "Movement" in offered.choices
    look.color_by = "Movement"
    bar.end.click()
    assert look.color_by == offered.value == "Cluster"
    assert "Movement" not in offered.choices
    assert not bar.end.isVisible()
    n_layers, layers = len(viewer.layers), finished.controller.scene.map_layers
    compare()
    are_side_by_side_and_chosen_from_together(session, finished, len(here.embedding))
    viewer.layers.remove(layers.find_points_layer(COMPARED))
    assert not bar.end.isVisible()
    compare()
    assert len(viewer.layers) == n_layers + 1
    assert layers.find_points_layer(COMPARED) in viewer.layers
    bar.end.click()
    assert len(viewer.layers) == n_layers
    compare()
    chosen = [layers.points, layers.find_points_layer(COMPARED)]
    for layer in chosen:  # as napari removes those that are selected
        viewer.layers.remove(layer)
    finished.run_controls.run_button.click()
    qtbot.waitUntil(lambda: session.state == "finished")
    compare()
    viewer.layers.remove(layers.points)
    qtbot.waitUntil(lambda: chosen[1].name not in viewer.layers)
    finished.run_controls.run_button.click()
    qtbot.waitUntil(lambda: session.state == "finished")
    compare()
    finished.run_controls.run_button.click()  # playing ends it
    assert session.view.comparison is None
    assert not bar.end.isVisible()
    qtbot.waitUntil(lambda: session.state == "finished")


def are_side_by_side_and_chosen_from_together(session, dock, n_points):
    """What is under the mouse on either map is the same row; a lasso, too."""
    layers = dock.controller.scene.map_layers
    beside = layers.find_points_layer(COMPARED)
    assert len(beside.data) == n_points
    assert beside.data[:, 1].min() > layers.points.data[:, 1].max()
    np.testing.assert_array_equal(beside.face_color, layers.points.face_color)
    seen = layers.projection().to_pixels(session.view.positions)
    for row in (0, 20, 39):
        for pixel in (seen[row], seen[n_points + row]):
            found = find_row_at_pixel(layers, session.view.positions, pixel) % n_points
            near = seen[[found, found + n_points]]
            assert found == row or np.isclose(near, pixel, atol=3).all(axis=1).any()
    around = seen[n_points + 5] + np.array([[-4, -4], [4, -4], [4, 4], [-4, 4]])
    dock.mouse.select_in_line(around)
    assert 5 in session.selection.rows
    assert not session.selection.points.all()
    np.testing.assert_array_equal(beside.face_color, layers.points.face_color)
