"""Names are suggested in a window of their own, and used by a click, never before."""

from dataclasses import replace

import numpy as np
import pytest

from napari_embedding_game.ui.inspector.names_window import NO_EVIDENCE, USE
from worlds import click

G = 300


@pytest.fixture
def played(session, dock, dataset, play, inspector):
    """Forty cells in four clusters; the genes of B cells are high in a cluster."""
    play()
    rng = np.random.default_rng(0)
    counts = rng.poisson(rng.gamma(0.6, 0.8, G), (40, G)).astype(np.float32)
    names = ["CD79A", "MS4A1", "CD19", "BANK1", *(f"g{i}" for i in range(G - 4))]
    counts[:, :4] = 0
    for cluster in (1, 2):
        counts[session.clusters.labels == cluster, :4] = 5
    cells = dataset.with_matrices(
        profile=counts, profile_names=tuple(names), has_expression=True
    )
    session.load(cells)
    play()
    dock.show()
    return inspector


@pytest.fixture
def suggest(qtbot, played, from_menu):
    """Press Suggest names, and wait for the window."""

    def suggest():
        edits = played.clusters.edits
        from_menu(edits.more, "Suggest names…")
        qtbot.waitUntil(lambda: not edits.names._jobs.is_busy)
        return edits.names

    return suggest


def test_a_name_is_used_by_a_click_and_taken_back(qtbot, played, session, suggest):
    session.selection.select_cluster(1)
    edits = played.clusters.edits
    assert edits.suggestion.isHidden()
    window = suggest()
    table = window.table
    assert window.isVisible()
    assert "its 514 genes are not in the data" in window.state.text()
    assert [c.name for c in session.clusters.clusters] == ["0", "1", "2", "3"]
    texts = [table.item(row, 1).text() for row in range(4)]
    assert texts == ["None fits", "B cell", "B cell", "None fits"]
    assert table.item(0, 2).text() == NO_EVIDENCE
    assert "4 of 8 genes high: " in table.item(1, 2).text()
    assert table.cellWidget(0, USE) is None
    click(table.cellWidget(1, USE))
    qtbot.waitUntil(lambda: table.item(1, 0).text() == "B cell")
    assert table.cellWidget(1, USE) is None
    # A second cluster of the type has a name of its own; both by one step each.
    session.selection.select_cluster(2)
    assert edits.suggestion.text.text() == "Suggested: B cell (4 of 8 genes high)"
    assert "× in 100%" in edits.suggestion.text.toolTip()
    click(edits.suggestion.use_button)
    named = [c.name for c in session.clusters.clusters]
    assert named == ["0", "B cell", "B cell (2)", "3"]
    edits.undo.trigger()
    assert session.clusters.clustering.by_id[2].name == "2"
    edits.undo.trigger()
    assert session.clusters.clustering.by_id[1].name == "1"
    assert table.cellWidget(1, USE) is not None


def test_what_changed_is_suggested_again_and_refusals_are_told(
    qtbot, played, session, dataset, suggest, tmp_path, answer
):
    window = suggest()
    assert window.again_button.isHidden()
    session.clusters.merge([1, 2])
    assert "have changed" in window.state.text()
    click(window.again_button)
    qtbot.waitUntil(lambda: not window._jobs.is_busy)
    assert window.again_button.isHidden()
    answer(tmp_path / "mine.csv").write_text("type,gene\nMine,CD19\nMine,BANK1\n")
    click(window.open_button)
    qtbot.waitUntil(lambda: not window._jobs.is_busy)
    assert "From mine.csv: 1 type" in window.state.text()
    assert window.table.item(1, 1).text() == "Mine"
    (tmp_path / "mine.csv").write_text("x\n")
    window.suggest_names()
    qtbot.waitUntil(lambda: not window._jobs.is_busy)
    assert "needs the columns type and gene" in window.state.text()
    assert window.table.cellWidget(1, USE) is None
    session.load(replace(dataset))  # columns that are no genes
    assert window.suggestions is None
    window.suggest_names()
    assert "There is no map yet" in window.state.text()
