"""Gene sets in the dock: typed, chosen from a file, scored, and offered as a colour."""

from dataclasses import replace
from threading import Event

import numpy as np
import pytest
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QInputDialog

from napari_embedding_game.data.gene_sets import score_genes
from napari_embedding_game.ui.game_dock import MAP
from napari_embedding_game.ui.style.legend import LegendView
from worlds import click

G = 200


@pytest.fixture
def panel(session, dock, dataset, play):
    rng = np.random.default_rng(0)
    values = rng.poisson(2.0, (40, G)).astype(np.float32)
    values[:10, :3] += 9
    names = tuple(f"g{i}" for i in range(G))
    session.load(
        dataset.with_matrices(profile=values, profile_names=names, has_expression=True)
    )
    play()
    dock.show()
    dock.look_fold.set_expanded(True)
    dock.display_controls.gene_sets.set_expanded(True)
    return dock.display_controls.gene_sets


def test_typed_genes_colour_the_map_and_are_offered(
    qtbot, panel, session, dock, inspector
):
    assert panel.score.isHidden()
    QTest.keyClicks(panel.genes, "g0, G0, G1, g2, nope")
    QTest.keyClicks(panel.name, "mine")
    click(panel.score)
    qtbot.waitUntil(lambda: session.look.color_by == "mine")
    assert dock.display_controls.color_by.value == "mine"
    score = session.dataset.obs["mine"].to_numpy()
    assert score[:10].min() > score[10:].max()
    assert panel.state.text() == ("mine: 4 of 5 genes found. Not in the data: nope.")
    session.selection.select_cluster(0)
    assert "mine" in inspector.details.column.choices
    inspector.show(MAP)
    assert isinstance(dock.display_controls.legend, LegendView)
    scale = dock.display_controls.legend.color_scale
    assert scale.high.text() != ""
    assert scale.bar.width() > scale.width() / 2
    session.look.color_by = "Cluster"
    assert "mine" in dock.display_controls.color_by.choices


def test_a_score_is_of_the_data_that_it_was_asked_of(
    qtbot, panel, session, dataset, monkeypatch
):
    go_on = Event()

    def slow(*asked):
        go_on.wait()
        return score_genes(*asked)

    module = "napari_embedding_game.ui.controls.gene_sets"
    monkeypatch.setattr(f"{module}.score_genes", slow)
    QTest.keyClicks(panel.genes, "g0, g1, g2")
    click(panel.score)
    assert panel.state.text() == "Scoring …"
    session.load(replace(dataset))  # another file, with as many rows
    go_on.set()
    qtbot.waitUntil(lambda: not panel._score_jobs.is_busy)
    assert not session.dataset.added


def test_a_set_is_chosen_from_a_file_or_refused(
    qtbot, panel, session, tmp_path, answer, monkeypatch
):
    answer(tmp_path / "sets.gmt").write_text("")
    click(panel.file)
    assert "is empty" in panel.state.text()
    QTest.keyClicks(panel.genes, "ENSG1")
    QTest.keyClick(panel.name, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: "Use the names that the data have" in panel.state.text())
    assert session.look.color_by == "Cluster"
    answer(tmp_path / "sets.gmt").write_text("ALPHA\tx\tg0\tg1\nBETA\tx\tg5\tg6\tg7\n")
    monkeypatch.setattr(QInputDialog, "getItem", lambda *q: (q[3][1], True))
    click(panel.file)
    assert (panel.name.text(), panel.genes.text()) == ("BETA", "g5, g6, g7")
    assert panel.genes.cursorPosition() == 0  # of many the first are seen
    QTest.keyClick(panel.genes, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: session.look.color_by == "BETA")
    assert session.dataset.added["BETA"].genes == ("g5", "g6", "g7")
    answer(tmp_path / "cycle.txt").write_text("g1\ng2\n")
    click(panel.file)
    assert (panel.name.text(), panel.genes.text()) == ("cycle", "g1, g2")
