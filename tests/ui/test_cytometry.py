"""A cytometry file in the window: opened, mapped, gated, clusters by event number."""

import pandas as pd
from qtpy.QtCore import Qt
from qtpy.QtTest import QTest

import worlds

LEFT = Qt.MouseButton.LeftButton
MARKERS = "CD3 (FITC-A)", "CD19 (PE-A)"


def test_events_are_opened_mapped_gated_and_come_back_by_number(person, tmp_path):
    kind = worlds.cytometry(tmp_path / "tube.fcs")
    person.open(tmp_path / "tube.fcs")
    dock, session = person.dock, person.session
    assert session.dataset.var_names == MARKERS
    person.run()
    person.save(tmp_path / "clusters.csv")
    table = pd.read_csv(tmp_path / "clusters.csv", index_col="row")
    assert table.index.tolist() == list(range(1, 301))
    agree = pd.crosstab(kind, table["embedding_game_cluster"])
    assert agree.to_numpy().max(axis=0).sum() > 280

    person.open_tab("Plots")
    person.open_tab("Scatter")
    scatter = dock.plots.scatter
    for field, name in zip((scatter.across, scatter.up), MARKERS, strict=True):
        QTest.keyClicks(field, name)
        QTest.keyClick(field, Qt.Key.Key_Return)
    person.wait(lambda: scatter.canvas.axes and not scatter.canvas.is_due, "the plot")
    begin, end = scatter.canvas.pixel(4.0, 0.5), scatter.canvas.pixel(7.5, 3.5)
    QTest.mousePress(scatter.canvas.canvas, LEFT, pos=begin)
    for place in ((begin + end) / 2, end):
        QTest.mouseMove(scatter.canvas.canvas, place)
    QTest.mouseRelease(scatter.canvas.canvas, LEFT, pos=end)
    assert set(kind[session.selection.rows]) == {0}
    assert len(session.selection.rows) > 0.9 * (kind == 0).sum()
