"""The quality of the map, measured in the background while its fold is open."""

import threading
from dataclasses import replace

import numpy as np
import pytest
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest

from napari_embedding_game.core.inspect.quality import (
    ColumnAgreement,
    GraphParts,
    MapQuality,
)
from napari_embedding_game.ui.controls import quality_panel, stability_panel
from napari_embedding_game.ui.controls.quality_panel import (
    NOT_KNOWN,
    WAITING,
    QualityPanel,
    told_parts,
)
from napari_embedding_game.ui.style.form_widgets import Fold

FOUND = MapQuality(0.25, 0.9, 0.8, 0.7, 0.95, 1000, 15)


def fold_around(panel):
    """Return the fold of the dock that the panel is in."""
    fold = panel.parentWidget()
    while not isinstance(fold, Fold):
        fold = fold.parentWidget()
    return fold


def unfold(panel):
    button = fold_around(panel).toggleButton()
    button.window().resize(500, 1500)
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)
    assert panel.isExpanded()


@pytest.fixture
def panel(dock, qtbot):
    dock.show()
    return dock.quality


def test_the_figures_of_a_map_are_shown_with_what_they_mean(panel, play, qtbot):
    assert panel.note.text() == WAITING
    play()
    unfold(panel)
    qtbot.waitUntil(lambda: "40 points" in panel.note.text())
    bars = panel.bars
    for name in ("neighbors_kept", "trustworthiness", "continuity", "triplets"):
        assert bars[name].text().endswith("%")
        assert "%" in bars[name].toolTip()
    assert bars["accuracy"].isHidden()  # coloured by clusters: no known groups


def test_a_folded_panel_measures_the_finished_map_alone(
    panel, play, session, monkeypatch
):
    asked = []
    monkeypatch.setattr(
        quality_panel, "quality_job", lambda one: asked.append(one.state)
    )
    play()
    session.look.color_by = "Stretch"
    QTest.qWait(2 * quality_panel.SOON_MS)
    assert asked == ["finished"]
    unfold(panel)
    assert len(asked) == 2


def test_a_folded_panel_leaves_large_maps_alone(panel, play, session, monkeypatch):
    asked = []
    monkeypatch.setattr(quality_panel, "quality_job", lambda one: asked.append(one))
    monkeypatch.setattr(quality_panel, "MOST_UNASKED", 39)
    play()
    QTest.qWait(2 * quality_panel.SOON_MS)
    assert asked == []


def test_the_groups_that_the_map_is_coloured_by_are_judged(
    panel, play, session, dataset, qtbot
):
    groups = dataset.obs.select_dtypes("category").columns
    assert len(groups)
    play()
    unfold(panel)
    session.look.color_by = groups[0]
    qtbot.waitUntil(lambda: not panel.bars["accuracy"].isHidden())
    assert panel.labels["accuracy"].text() == f"Same {groups[0]}"
    session.look.color_by = "Cluster"
    qtbot.waitUntil(lambda: panel.bars["accuracy"].isHidden())


def test_it_is_measured_again_while_the_points_move(
    panel, play, session, slow, qtbot, monkeypatch
):
    monkeypatch.setattr(quality_panel, "AGAIN_MS", 50)
    shown = []
    real = QualityPanel.show_quality
    monkeypatch.setattr(
        QualityPanel,
        "show_quality",
        lambda panel, found, column: (shown.append(found), real(panel, found, column)),
    )
    fold_around(panel).expand(animate=False)
    play(until="running")
    qtbot.waitUntil(lambda: sum(one is not None for one in shown) >= 2)
    assert session.state == "running"
    session.stop()


def test_other_data_take_the_figures_away(panel, play, session, dataset, qtbot):
    play()
    unfold(panel)
    qtbot.waitUntil(lambda: panel.bars["triplets"].text() != "–")
    session.load(None)
    qtbot.waitUntil(lambda: panel.bars["triplets"].text() == "–")
    assert panel.note.text() == WAITING


def test_a_map_without_its_data_says_so(qtbot, session, dataset, play, panel):
    play()
    saved = session.capture()
    lost = replace(dataset, X=np.empty((40, 0)), var_names=[])
    session.restore(saved, lost)
    unfold(panel)
    qtbot.waitUntil(lambda: panel.note.text() == NOT_KNOWN)


def test_an_error_becomes_a_sentence(panel, play, monkeypatch, qtbot):
    def broken(session):
        def work_out():
            raise MemoryError

        return work_out

    monkeypatch.setattr(quality_panel, "quality_job", broken)
    play()
    unfold(panel)
    qtbot.waitUntil(lambda: "memory" in panel.note.text())


def test_figures_without_a_value_are_dashes(panel):
    panel.show_quality(FOUND, "cell type")
    assert panel.bars["accuracy"].text() == "95%"
    assert "1,000 points" in panel.note.text()
    panel.show_quality(None, None)
    assert panel.bars["neighbors_kept"].text() == "–"


def test_a_graph_in_parts_is_told_where_it_matters():
    assert told_parts(None) == []
    assert told_parts(GraphParts(3, 0.004, 15)) == []
    (told,) = told_parts(GraphParts(4, 0.25, 15))
    assert "4 groups without any link (25% of the points" in told


def test_a_graph_in_parts_is_mended_by_a_button(
    dock, play, session, monkeypatch, qtbot
):
    panel = dock.quality
    found = replace(FOUND, parts=GraphParts(4, 0.25, 15))
    monkeypatch.setattr(quality_panel, "quality_job", lambda one: lambda: found)
    play()
    qtbot.waitUntil(
        lambda: "4 pieces" in fold_around(panel).toggleButton().text()
    )  # folded
    assert panel.link.text == "Continue with Neighbours 30"
    former = session.run
    dock.show()
    unfold(panel)
    assert not panel.link.native.isHidden()
    panel.link.native.click()
    assert dock.game.controls["n_neighbors"].value == 30
    qtbot.waitUntil(lambda: session.run is not former and session.state == "finished")
    assert session.played.settings.n_neighbors == 30
    assert session.played.is_branch
    qtbot.waitUntil(lambda: panel.link.text == "Continue with Neighbours 39")
    session.settings.choose_method("pca")
    panel.show_quality(found, None)
    assert panel.link.native.isHidden()  # it would begin anew


def test_a_map_that_follows_samples_is_told_and_mended(panel, dock, qtbot):
    unfold(panel)
    followed = (
        ColumnAgreement("cell_type", 0.9, 0.2),
        ColumnAgreement("stim", 0.88, 0.5),
    )
    panel.show_quality(replace(FOUND, columns=followed), None)
    assert "cell_type 90% (20% by chance), stim 88%" in panel.columns_note.text()
    assert (
        "88% of a point's neighbours are of its own stim" in panel.samples_note.text()
    )
    assert fold_around(panel).toggleButton().text().endswith("the map follows stim")
    clusters = ColumnAgreement("clusters", 0.7, 0.2)
    panel.show_quality(replace(FOUND, columns=followed, clusters=clusters), None)
    assert "more than of its own cluster (70%)" in panel.samples_note.text()
    assert panel.mix.native.isHidden()  # not raw counts, or no Harmony
    dock.data.mixable_changed.emit(("stim", "donor"))
    assert not panel.mix.native.isHidden()
    asked = []
    panel.mix_requested.connect(asked.append)
    qtbot.mouseClick(panel.mix.native, Qt.MouseButton.LeftButton)
    assert asked == ["stim"]
    panel.show_quality(replace(FOUND, columns=followed[:1]), None)
    assert fold_around(panel).toggleButton().text().endswith("Trust and time")
    assert panel.samples_note.isHidden()
    assert panel.mix.native.isHidden()


def test_stability_is_measured_beside_the_map_and_can_be_stopped(
    panel, dock, play, session, qtbot, monkeypatch
):
    stability = panel.stability
    assert not stability.button.isEnabled()
    play()
    unfold(panel)
    before = session.snapshot
    stability.seeds.setValue(2)
    waiting = threading.Event()
    real = stability_panel.stability_job

    def slow_job(*args):
        stages = real(*args, engine=session._engine)

        def begun():
            waiting.wait(10)
            return (yield from stages())

        return begun

    monkeypatch.setattr(stability_panel, "stability_job", slow_job)
    qtbot.waitUntil(lambda: stability.button.height() > 10)  # it is being unfolded
    QTest.mouseClick(stability.button, Qt.MouseButton.LeftButton)
    assert stability.button.text() == "Stop"
    assert stability.bar.isVisible()
    QTest.mouseClick(stability.button, Qt.MouseButton.LeftButton)
    assert "Stopped" in stability.note.text()
    waiting.set()
    QTest.mouseClick(stability.button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: "each of 2 maps from other seeds" in stability.note.text())
    assert stability.button.text() == "Measure stability"
    assert stability.keep.text() == "Keep these 2 maps to compare"
    QTest.mouseClick(stability.keep, Qt.MouseButton.LeftButton)
    *_, one, two = session.timeline.marks
    assert [one.label, two.label] == ["Seed 1", "Seed 2"]
    assert "Neighbours kept" in dock.run.timeline.strip.told(one)
    assert stability.keep.isHidden()
    assert session.look.color_by == "Stability"
    assert len(session.dataset.obs["Stability"]) == 40
    assert session.snapshot is before
