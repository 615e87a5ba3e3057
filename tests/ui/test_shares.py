"""Shares of clusters in samples: offered, compared, chosen, coloured and saved."""

import numpy as np
import pandas as pd
import pytest
from qtpy.QtCore import QPoint, Qt
from qtpy.QtTest import QTest

from napari_embedding_game.ui.game_dock import PLOTS
from napari_embedding_game.ui.inspector import shares_pane
from napari_embedding_game.ui.style.coloring import color_by_column_or_feature
from worlds import drawn, rows

LEFT, NONE = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier


def of_six_donors():
    """Return 480 rows; the first quarter is mostly of treated donors, others of both.

    The fake engine makes each quarter a landmark and a cluster.
    """
    quarter = np.arange(480) // 120
    order = np.arange(480) % 120
    donors = order % 6
    donors[(quarter == 0) & (order >= 40)] = np.arange(80) % 3  # 0 to 2 are treated
    obs = pd.DataFrame(
        {
            "donor": [f"d{one}" for one in donors],
            "condition": np.where(donors < 3, "drug", "control"),
            "cell_type": ["B", "T"] * 240,
        },
        index=[f"cell{i}" for i in range(480)],
    )
    return rows(np.random.default_rng(0).normal(size=(480, 4)), obs=obs)


@pytest.fixture
def open_shares(qtbot, session, inspector, play):
    def open_(data):
        session.load(data)
        play()
        inspector.resize(400, 800)
        inspector.show(PLOTS)
        tabs = inspector.plots.tabs
        pane = inspector.plots.shares
        tabs.setCurrentWidget(inspector.plots.conditions)
        inspector.plots.conditions.choice.value = pane
        qtbot.waitUntil(lambda: not pane._share_jobs.is_busy)
        return pane

    return open_


def test_clusters_are_compared_by_donors_and_colour_the_map(
    qtbot, open_shares, session, dock, answer, tmp_path
):
    pane = open_shares(of_six_donors())
    assert pane.state.text() == "Not paired: 3 against 3 samples."
    assert (pane.first.value, pane.second.value) == ("drug", "control")
    first = session.clusters.clusters[0].id
    row = pane.table.keys.index(0)
    texts = [pane.table.item(row, place).text() for place in range(4)]
    assert texts[:2] == [str(first), "36% / 9.5%"]
    assert texts[2] == "+1.8"
    assert float(texts[3]) < 1e-3
    assert pane.canvas.plot.chosen == pane.table.keys[0]  # the surest change
    canvas = drawn(qtbot, pane)
    at = canvas.position_to_pixel(0.3, canvas.plot.row_positions[4])
    QTest.mouseClick(canvas.canvas, LEFT, NONE, at)
    second = session.clusters.clusters[1].id
    assert session.selection.clusters == (second,)
    assert canvas.plot.title == f"cluster {second}"
    pane.color_button.click()
    name = "Change drug / control"
    qtbot.waitUntil(lambda: session.look.color_by == name)
    qtbot.waitUntil(lambda: not pane._share_jobs.is_busy)
    assert "Blue: more in drug" in pane.state.text()
    values = session.dataset.obs[name]
    assert (values[:100] > 1).all()
    colors = color_by_column_or_feature(name, session.dataset).rgba
    assert colors[0, 2] > colors[0, 0]  # blue
    path = answer(tmp_path / "shares.csv")
    assert dock.plots_tab.shares.table_button.isVisibleTo(dock.plots_tab)
    dock.plots_tab.shares.table_button.click()
    table = pd.read_csv(path)
    assert table["count d0 (drug)"].sum() == sum(session.dataset.obs["donor"] == "d0")
    plot = answer(tmp_path / "shares.svg")
    dock.plots_tab.save_button.click()
    assert "Share of cluster" in plot.read_text()
    pane.first.value = "control"
    qtbot.waitUntil(lambda: pane.result.levels == ("control", "drug"))
    qtbot.waitUntil(lambda: not pane._share_jobs.is_busy)
    assert pane.state.text() == "Not paired: 3 against 3 samples."
    pane.grouping.value = pane.grouping.choices[1]
    qtbot.waitUntil(lambda: [*pane.canvas.plot.groups] == ["B", "T"])
    heads = pane.table.horizontalHeader()
    place = QPoint(heads.sectionViewportPosition(2) + 5, heads.height() // 2)
    QTest.mouseClick(heads.viewport(), LEFT, NONE, place)
    heading = pane.table.horizontalHeaderItem
    assert heading(2).text().endswith("▲")
    assert heading(1).text() == "control /\ndrug"


def test_what_cannot_be_told_is_not_told(open_shares, session):
    every = of_six_donors()
    is_in = every.obs["donor"].isin(["d0", "d4", "d5"]).to_numpy()
    few = rows(every.X[is_in], obs=every.obs[is_in])
    pane = open_shares(few)
    assert pane.state.text().startswith("Too few samples to tell: drug has 1 sample")
    assert not pane.color_button.isEnabled()
    assert {pane.table.item(row, 3).text() for row in range(4)} == {""}
    session.load(rows(few.X, obs=few.obs[["cell_type"]]))
    pane.update_view()
    assert pane.state.text() == shares_pane.NO_SAMPLES
    assert pane.canvas.plot is None
    assert pane.samples.isHidden()
